//! Client body → TurnRequest, by the dialect's `request:` rules. Errors name the `param`.

use crate::diagnostics::schema_message::{self, quoted_value, with_article};
use crate::domain::emit::{EmitField, EmittedFields, scalar_text};
use crate::domain::request_item::{ChoiceMode, Tool};
use crate::domain::{Fault, FaultKind, RequestContent, RequestHead, Text, Tree, TurnRequest};
use crate::engine::emission_budget::{Cancelled, EmissionBudget};
use crate::engine::fields::Mismatch;
use crate::engine::request_checks;
use crate::engine::request_items;
use crate::engine::rules::{Emission, RuleOutput, UNMATCHED_ELEMENT};
use crate::engine::selector::Cursor;
use crate::engine::unknown_values;
use crate::engine::unread::ReadRecord;
use crate::mapping::config::dialect_request::{RequestPlan, RequiredMember, RequiredType};
use crate::mapping::language::field::FieldMapping;
use crate::mapping::language::rule::RuleSet;
use reframe_json::{Limits, ParseErrorKind, ViolationKind, pointer_to_path};
use std::sync::Arc;

/// Each choice costs memory for the whole turn.
const MAX_CHOICES: usize = 128;

/// What a request may cost. A body of many small values takes far more memory than its text, in each of its forms:
/// JSON, items, the backend's request.
#[derive(Clone, Debug)]
pub struct RequestLimits {
    /// The number of JSON values.
    pub values: usize,
    /// The number of messages, content parts, calls, results and tools.
    pub items: usize,
    /// The nesting of the body.
    pub depth: usize,
    /// The number of choices.
    pub choices: usize,
    /// Set if the client disconnects.
    pub cancelled: Option<Cancelled>,
}

impl RequestLimits {
    /// For requests that do not come from a client.
    pub const NONE: RequestLimits = RequestLimits {
        values: usize::MAX,
        items: usize::MAX,
        depth: usize::MAX,
        choices: usize::MAX,
        cancelled: None,
    };

    /// Call between the steps of a large request.
    pub fn check_cancelled(&self) -> Result<(), Fault> {
        match &self.cancelled {
            // Nobody receives it.
            Some(cancelled) if cancelled.is_set() => Err(Fault::new(FaultKind::Internal, "the client disconnected")),
            Some(_) | None => Ok(()),
        }
    }
}

/// What a route adds to a client's body.
#[derive(Clone, Debug, Default)]
pub struct RouteInput<'r> {
    pub head: RequestHead,
    /// Scalars that the route sets, whatever the client sent.
    pub set: &'r [(&'static str, Tree)],
}

pub fn read(plan: &RequestPlan, body: &[u8]) -> Result<TurnRequest, Fault> {
    read_within(plan, body, &RequestLimits::NONE)
}

pub fn read_within(plan: &RequestPlan, body: &[u8], limits: &RequestLimits) -> Result<TurnRequest, Fault> {
    read_with(plan, body, RouteInput::default(), limits)
}

pub fn read_with(
    plan: &RequestPlan,
    body: &[u8],
    input: RouteInput,
    limits: &RequestLimits,
) -> Result<TurnRequest, Fault> {
    let of_gateway = Limits::default();
    let max_depth = if limits.depth == usize::MAX { of_gateway.max_depth } else { limits.depth };
    let json_limits = Limits { max_nodes: limits.values.min(of_gateway.max_nodes), max_depth, ..of_gateway };
    let body = Tree::parse_with(body, &json_limits).map_err(|error| match error.kind {
        ParseErrorKind::TooManyValues => {
            Fault::new(FaultKind::TooLarge, format!("the body has more than {} values", json_limits.max_nodes))
        }
        ParseErrorKind::Syntax | ParseErrorKind::TooLong | ParseErrorKind::TooDeep => {
            Fault::new(FaultKind::NotJson, format!("the body is not valid JSON: {error}"))
        }
    })?;
    if body.as_map().is_none() {
        return Err(Fault::new(FaultKind::NotJson, "the body must be a JSON object"));
    }
    read_tree_within(plan, body, input, limits)
}

pub fn read_tree(plan: &RequestPlan, body: Tree) -> Result<TurnRequest, Fault> {
    read_tree_with(plan, body, RouteInput::default())
}

pub fn read_tree_with(plan: &RequestPlan, body: Tree, input: RouteInput) -> Result<TurnRequest, Fault> {
    read_tree_within(plan, body, input, &RequestLimits::NONE)
}

fn read_tree_within(
    plan: &RequestPlan,
    body: Tree,
    input: RouteInput,
    limits: &RequestLimits,
) -> Result<TurnRequest, Fault> {
    limits.check_cancelled()?;
    let head = if plan.head_parameters.is_empty() { Tree::Null } else { input.head.to_tree() };
    let mut cursor = Cursor::new(&body).with_head(&head);
    for (selector, RequiredMember { required_type, unless }) in &plan.required {
        let fault = |kind, message: String| {
            let param = selector.param(&cursor);
            Fault::new(kind, format!("`{param}` {message}")).param(param)
        };
        let Some(node) = selector.one(&cursor).filter(|n| !n.is_null()) else {
            if unless.as_ref().and_then(|other| other.one(&cursor)).is_some_and(|other| !other.is_null()) {
                continue;
            }
            return Err(fault(FaultKind::Missing, "is required".to_owned()));
        };
        if let Some(expected) = required_type.unmet(node) {
            return Err(fault(FaultKind::Invalid, format!("must be {expected}")));
        }
    }
    for rejected in &plan.rejected_fields {
        let node = rejected.selector.one(&cursor).filter(|node| !node.is_null());
        if let Some(node) = node.filter(|node| !rejected.allowed_values.contains(node)) {
            // A filter selects one of several nodes.
            let found = rejected.selector.many(&cursor).next().filter(|_| rejected.selector.is_over_several());
            let path = found.map(|(_, path)| cursor.text_of(&path).into_string());
            let param = path.unwrap_or_else(|| rejected.selector.param(&cursor));
            let fault = Fault::new(FaultKind::Unsupported, rejected.message.as_str()).param(param);
            let value = scalar_text(node).map(String::into_boxed_str);
            return Err(Fault { code: rejected.code.clone(), value, ..fault });
        }
    }
    if let Some(fault) = request_checks::first_failure(&plan.checks, &body) {
        return Err(fault);
    }
    let most = limits.choices.min(MAX_CHOICES);
    let mut scalars = read_fields(&plan.scalars, &mut cursor).map_err(|fault| match plan.param_of("n") {
        Some(n) if fault.param.as_ref() == Some(&n) => wrong_choices(plan, &cursor, most),
        _ => fault,
    })?;
    scalars.retain(|(name, _)| !input.set.iter().any(|(set, _)| set == name));
    scalars.extend(input.set.iter().cloned());
    let unknown = unknown_values::find(plan, &cursor);
    let tool_choice = match unknown_values::of_group(&plan.tool_choice, &unknown, &cursor) {
        Some(unknown) => Some(unknown_values::tool_choice(unknown, &body)),
        None => read_group(&plan.tool_choice, &mut cursor)?,
    };
    let format = match unknown_values::of_group(&plan.format, &unknown, &cursor) {
        Some(unknown) => Some(unknown_values::format(unknown, &body)),
        None => read_group(&plan.format, &mut cursor)?,
    };
    let n = scalars.iter().find(|(name, _)| *name == "n").and_then(|(_, n)| n.as_i64()).unwrap_or(1);
    if !(1..=most as i64).contains(&n) {
        return Err(wrong_choices(plan, &cursor, most));
    }
    // The fields read above have clearer messages; the schema checks the rest.
    if let Some(Err(violation)) = plan.schema.as_ref().map(|s| s.schema.check(&body)) {
        let kind = match &violation.kind {
            ViolationKind::Missing(_) => FaultKind::Missing,
            _ => FaultKind::Invalid,
        };
        let param = Some(pointer_to_path(&violation.subject())).filter(|p| !p.is_empty());
        return Err(Fault { param, ..Fault::new(kind, schema_message::describe(&violation, &body)) });
    }
    limits.check_cancelled()?;
    let mut budget = EmissionBudget::new(limits.items, limits.cancelled.clone());
    let mut record = ReadRecord::default();
    let mut items = emissions(&plan.items, &body, &mut budget, &mut record, limits)?;
    let item_paths = items.iter_mut().map(|item| item.path.take().unwrap_or_default()).collect();
    let items = request_items::items(items);
    let mut tools = emissions(&plan.tools, &body, &mut budget, &mut record, limits)?;
    let tool_paths = tools.iter_mut().map(|tool| tool.path.take().unwrap_or_default()).collect();
    let tools = tools.into_iter().filter_map(|mut tool| Tool::take(tool.name, &mut tool.fields));
    let tools = tools.map(Arc::new).collect();
    let mut request = TurnRequest::new(scalars);
    request.content = RequestContent::new(items, tools, tool_choice, format);
    check_chosen_tool(plan, &request.content, &body)?;
    let members = body.as_map().unwrap_or(&[]);
    let is_known = |key: &Text| plan.known_members.binary_search_by(|known| known.as_str().cmp(key)).is_ok();
    let extra = members.iter().filter(|(key, _)| !is_known(key)).cloned();
    request.unread = record.unread(&body, &plan.always_read);
    (request.item_paths, request.tool_paths) = (item_paths, tool_paths);
    request.unknown_values = unknown;
    request.extra = Tree::Map(extra.collect());
    request.raw = body;
    request.head = input.head;
    Ok(request)
}

/// `n` is no integer, or not one of those that the gateway accepts.
fn wrong_choices(plan: &RequestPlan, cursor: &Cursor, most: usize) -> Fault {
    let param = plan.param_of("n").unwrap_or_else(|| "n".to_owned());
    let mut selectors = plan.scalars.iter().filter(|read| read.field.name == "n").flat_map(FieldMapping::selectors);
    let sent = selectors.find_map(|selector| selector.one(cursor).filter(|n| !n.is_null()));
    let found = match sent {
        Some(number @ Tree::Num(_)) => schema_message::truncate(&number.to_json()),
        other => with_article(other.map_or("null", Tree::type_name)),
    };
    let value = sent.and_then(scalar_text).map(|text| schema_message::truncate(&text).into_boxed_str());
    let message = format!("`{param}` must be an integer between 1 and {most}, not {found}");
    Fault { value, ..Fault::new(FaultKind::Invalid, message).param(param) }
}

/// A choice of a tool that the client does not offer is a mistake of the client. A tool without a name may be one that
/// contains others, such as those of a server.
fn check_chosen_tool(plan: &RequestPlan, content: &RequestContent, body: &Tree) -> Result<(), Fault> {
    let choice = content.tool_choice.as_ref().filter(|choice| choice.mode == Some(ChoiceMode::Named));
    let Some(name) = choice.and_then(|choice| choice.name.as_ref()) else { return Ok(()) };
    if content.tools.iter().any(|tool| tool.name.as_ref().is_none_or(|offered| offered == name)) {
        return Ok(());
    }
    let param = plan.param_in("tool_choice", body).unwrap_or_else(|| "tool_choice".to_owned());
    let message =
        format!("`{param}` names the tool {}, which is not offered", quoted_value(&Tree::from(name.as_str())));
    Err(Fault::new(FaultKind::Invalid, message).param(param))
}

/// How many scalar fields most requests have.
const USUAL_FIELDS: usize = 8;

/// The fields that have a value.
fn read_fields(reads: &[FieldMapping], cursor: &mut Cursor) -> Result<EmittedFields, Fault> {
    let mut fields = EmittedFields::new();
    for read in reads {
        let value = read.value(cursor).map_err(invalid)?;
        if !value.is_null() {
            if fields.is_empty() {
                fields.reserve(USUAL_FIELDS);
            }
            fields.push((read.field.name, value));
        }
    }
    Ok(fields)
}

/// `None` if no field has a value.
fn read_group<T: EmitField>(reads: &[FieldMapping], cursor: &mut Cursor) -> Result<Option<T>, Fault> {
    let mut fields = read_fields(reads, cursor)?;
    Ok(if fields.is_empty() { None } else { T::take("", &mut fields) })
}

fn emissions<'t>(
    rules: &'t RuleSet,
    body: &'t Tree,
    budget: &mut EmissionBudget,
    record: &mut ReadRecord<'t>,
    limits: &RequestLimits,
) -> Result<Vec<Emission>, Fault> {
    let output = rules.apply_recorded(body, std::mem::take(budget), record);
    limits.check_cancelled()?;
    if let Some(param) = output.budget.exceeded_at() {
        let message = format!(
            "`{param}` exceeds the limit of {} messages, content parts, tool calls and tools in a request",
            limits.items
        );
        return Err(Fault::new(FaultKind::Invalid, message).param(param));
    }
    *budget = output.budget;
    let RuleOutput { emissions, mismatches, unknown, failed, failed_at, .. } = output;
    if let Some(mismatch) = mismatches.into_iter().next() {
        return Err(invalid(mismatch));
    }
    if let Some((message, _)) = failed {
        let param = Some(failed_at).filter(|path| !path.is_empty());
        return Err(Fault { param, ..Fault::new(FaultKind::Unsupported, message) });
    }
    if let Some(param) = unknown.into_iter().next() {
        return Err(invalid(Mismatch { param, message: UNMATCHED_ELEMENT.to_owned() }));
    }
    Ok(emissions)
}

fn invalid(mismatch: Mismatch) -> Fault {
    Fault::new(FaultKind::Invalid, format!("`{}` {}", mismatch.param, mismatch.message)).param(mismatch.param)
}

impl RequiredType {
    /// What was expected, as the end of the sentence "`x` must be …"; `None` if the value meets it.
    pub fn unmet(self, node: &Tree) -> Option<&'static str> {
        let (met, expected) = match self {
            RequiredType::Exists => (true, ""),
            RequiredType::String => (node.type_name() == "string", "a string"),
            RequiredType::Number => (node.type_name() == "number", "a number"),
            RequiredType::Boolean => (node.type_name() == "boolean", "a boolean"),
            RequiredType::Object => (node.type_name() == "object", "an object"),
            RequiredType::Array => (node.type_name() == "array", "an array"),
            RequiredType::NonBlankString => {
                (node.as_str().is_some_and(|text| !text.trim().is_empty()), "a string that is not blank")
            }
            RequiredType::NonEmptyArray => {
                (node.as_list().is_some_and(|l| !l.is_empty()), "an array with at least one element")
            }
        };
        (!met).then_some(expected)
    }
}

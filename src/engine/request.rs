//! Client body → TurnRequest, by the dialect's `request:` rules. Errors name the `param`.

use crate::diagnostics::schema_message;
use crate::domain::{Fault, FaultKind, Tree, TurnRequest};
use crate::engine::fields::Mismatch;
use crate::engine::rules::{Emission, RuleOutput, UNMATCHED_ELEMENT};
use crate::engine::selector::Cursor;
use crate::mapping::config::dialect_request::{RequestPlan, RequiredType};
use crate::mapping::language::field::FieldMapping;
use crate::mapping::language::rule::RuleSet;
use reframe_json::pointer_to_path;

/// Each choice costs memory for the whole turn.
const MAX_CHOICES: i64 = 128;

pub fn read(plan: &RequestPlan, body: &[u8]) -> Result<TurnRequest, Fault> {
    let body =
        Tree::parse(body).map_err(|e| Fault::new(FaultKind::NotJson, format!("the body is not valid JSON: {e}")))?;
    if body.as_map().is_none() {
        return Err(Fault::new(FaultKind::NotJson, "the body must be a JSON object"));
    }
    read_tree(plan, &body)
}

pub fn read_tree(plan: &RequestPlan, body: &Tree) -> Result<TurnRequest, Fault> {
    let mut cursor = Cursor::new(body);
    for (selector, need) in &plan.required {
        let param = selector.param(&cursor);
        let Some(node) = selector.one(&cursor).filter(|n| !n.is_null()) else {
            return Err(Fault::new(FaultKind::Missing, format!("`{param}` is required")).param(param));
        };
        if let Some(expected) = need.unmet(node) {
            return Err(Fault::new(FaultKind::Invalid, format!("`{param}` must be {expected}")).param(param));
        }
    }
    for rejected in &plan.rejected_fields {
        if rejected.selector.one(&cursor).is_some_and(|n| !n.is_null() && !rejected.allowed_values.contains(n)) {
            let fault =
                Fault::new(FaultKind::Unsupported, rejected.message.as_str()).param(rejected.selector.param(&cursor));
            return Err(Fault { code: rejected.code.clone(), ..fault });
        }
    }
    let mut view = Tree::Map(Vec::new());
    read_fields(&mut view, &plan.scalars, &mut cursor)?;
    for (name, reads) in [("tool_choice", &plan.tool_choice), ("format", &plan.format)] {
        let mut group = Tree::Map(Vec::new());
        read_fields(&mut group, reads, &mut cursor)?;
        let empty = group.as_map().is_none_or(<[_]>::is_empty);
        view.insert(name, if empty { Tree::Null } else { group });
    }
    let n = view.get("n").and_then(Tree::as_i64).unwrap_or(1);
    if !(1..=MAX_CHOICES).contains(&n) {
        let message = format!("`n` must be between 1 and {MAX_CHOICES}, not {n}");
        return Err(Fault::new(FaultKind::Invalid, message).param("n"));
    }
    // The fields read above have clearer messages; the schema checks the rest.
    if let Some(Err(violation)) = plan.schema.as_ref().map(|s| s.schema.check(body)) {
        let fault = Fault::new(FaultKind::Invalid, schema_message::describe(&violation, body));
        let param = Some(pointer_to_path(&violation.pointer)).filter(|p| !p.is_empty());
        return Err(Fault { param, ..fault });
    }
    let items = emissions(&plan.items, body)?.into_iter().map(normalized_item).collect::<Vec<_>>();
    let tools = emissions(&plan.tools, body)?.into_iter().map(record).collect::<Vec<_>>();
    view.insert("items", Tree::from(items));
    view.insert("tools", Tree::from(tools));
    let members = body.as_map().unwrap_or(&[]);
    let extra = members.iter().filter(|(key, _)| !plan.known_members.iter().any(|k| **k == **key)).cloned();
    view.insert("extra", Tree::Map(extra.collect()));
    view.insert("raw", body.clone());
    Ok(TurnRequest::new(view))
}

fn read_fields(view: &mut Tree, reads: &[FieldMapping], cursor: &mut Cursor) -> Result<(), Fault> {
    for read in reads {
        let value = read.value(cursor).map_err(invalid)?;
        if !value.is_null() {
            view.insert(read.field.name, value);
        }
    }
    Ok(())
}

fn emissions(rules: &RuleSet, body: &Tree) -> Result<Vec<Emission>, Fault> {
    let RuleOutput { emissions, mismatches, unknown, failed, .. } = rules.apply(body);
    if let Some(mismatch) = mismatches.into_iter().next() {
        return Err(invalid(mismatch));
    }
    if let Some((message, _)) = failed {
        return Err(Fault::new(FaultKind::Unsupported, message));
    }
    if let Some(param) = unknown.into_iter().next() {
        return Err(invalid(Mismatch { param, message: UNMATCHED_ELEMENT.to_owned() }));
    }
    Ok(emissions)
}

fn invalid(mismatch: Mismatch) -> Fault {
    Fault::new(FaultKind::Invalid, format!("`{}` {}", mismatch.param, mismatch.message)).param(mismatch.param)
}

fn record(emission: Emission) -> Tree {
    Tree::map(emission.fields)
}

/// Gives an item both its text and its parts, whichever of the two the client sent.
fn normalized_item(emission: Emission) -> Tree {
    let kind = emission.name;
    let mut item = Tree::map([("type", Tree::from(kind))]);
    for (name, value) in emission.fields {
        item.insert(name, value);
    }
    if matches!(kind, "message" | "result") {
        if item.get("parts").is_none() {
            let text = item.get("text").cloned().unwrap_or_else(|| Tree::from(""));
            let part = Tree::map([("type", Tree::from("text")), ("text", text)]);
            item.insert("parts", Tree::from(vec![part]));
        }
        let texts: Vec<&str> = item
            .get("parts")
            .and_then(Tree::as_list)
            .unwrap_or(&[])
            .iter()
            .filter_map(|p| p.get("text").and_then(Tree::as_str))
            .collect();
        let text = texts.concat();
        item.insert("text", Tree::from(text));
    }
    item
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
            RequiredType::NonEmptyArray => {
                (node.as_list().is_some_and(|l| !l.is_empty()), "an array with at least one element")
            }
        };
        (!met).then_some(expected)
    }
}

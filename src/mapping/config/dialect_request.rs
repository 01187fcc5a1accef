//! A dialect's `request:`: how a client's body is decoded into request items and fields.

use super::dialect::NamedSchema;
use crate::diagnostics::Code;
use crate::domain::emit::{FORMAT, FieldSpec, ITEMS, SCALARS, TOOL_CHOICE, TOOLS};
use crate::domain::{Tree, named_enum};
use crate::mapping::language::field::{FieldContext, FieldMapping};
use crate::mapping::language::rule::{NamedRules, RuleSet, parse_content_part_rules};
use crate::mapping::language::selector::Selector;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::{FieldReader, LoadContext, constant};
use crate::mapping::source::yaml::{Node, YamlKind};

named_enum! {
    /// The type of a required member.
    pub enum RequiredType {
        Exists = "exists",
        String = "string",
        Number = "number",
        Boolean = "boolean",
        Object = "object",
        Array = "array",
        /// An array with at least one element.
        NonEmptyArray = "non_empty_array",
    }
}

/// A member that the endpoint does not support: `name: message`, or `name: { message, code, allowed_values: [VALUE] }`.
#[derive(Debug)]
pub struct RejectedField {
    pub selector: Selector,
    pub message: String,
    pub code: Option<String>,
    /// Values without effect, which are accepted.
    pub allowed_values: Vec<Tree>,
}

impl RejectedField {
    fn parse(selector: Selector, node: &Node, cx: LoadContext) -> Option<RejectedField> {
        if let Some(message) = node.as_text() {
            return Some(RejectedField {
                selector,
                message: message.to_owned(),
                code: None,
                allowed_values: Vec::new(),
            });
        }
        let fields = FieldReader::of(node, "a rejected field", cx)?;
        let message = fields.required_text("message");
        let code = fields.text("code").map(str::to_owned);
        let allowed_values = fields.list("allowed_values").iter().map(constant).collect();
        fields.finish();
        Some(RejectedField { selector, message: message?.to_owned(), code, allowed_values })
    }
}

#[derive(Debug)]
pub struct RequestPlan {
    /// Members that must be present, not null and of this type.
    pub required: Vec<(Selector, RequiredType)>,
    /// Members that are rejected.
    pub rejected_fields: Vec<RejectedField>,
    pub scalars: Vec<FieldMapping>,
    pub tool_choice: Vec<FieldMapping>,
    pub format: Vec<FieldMapping>,
    pub items: RuleSet,
    pub tools: RuleSet,
    /// The schema of the body: `schemas/DIALECT/request.json`, if it exists.
    pub schema: Option<NamedSchema>,
    /// The members that are read by the above. All others are `request.extra`.
    pub known_members: Vec<String>,
}

impl RequestPlan {
    pub fn parse(node: &Node, tables: &Tables, cx: LoadContext) -> Option<RequestPlan> {
        let fields = FieldReader::of(node, "`request:`", cx)?;
        let mut required = Vec::new();
        for entry in fields.map("required") {
            let need = cx.one_of(&entry.value, RequiredType::NAMES).and_then(RequiredType::from_name);
            if let (Some(at), Some(need)) = (Selector::parse(&entry.key, entry.key_span, cx), need) {
                required.push((at, need));
            }
        }
        let mut rejected_fields = Vec::new();
        for entry in fields.map("rejected_fields") {
            let path = if Selector::looks_like(&entry.key) { entry.key.clone() } else { format!("$.{}", entry.key) };
            if let Some(at) = Selector::parse(&path, entry.key_span, cx) {
                rejected_fields.extend(RejectedField::parse(at, &entry.value, cx));
            }
        }
        if node.misspells("rules") {
            cx.findings.suppress(&[Code::UnknownReference]);
        }
        let mut named_rules = NamedRules::default();
        for entry in fields.map("rules") {
            named_rules.add(&entry.key, parse_content_part_rules(list_of(&entry.value), tables, cx));
        }
        let context = FieldContext { cx, tables, named_rules: &named_rules, lenient: false };
        let mut scalars = Vec::new();
        for field in SCALARS {
            if let Some(node) = fields.get(field.name) {
                scalars.extend(FieldMapping::parse(field, node, &context));
            }
        }
        let tool_choice = parse_fields(fields.get("tool_choice"), "`tool_choice:`", TOOL_CHOICE, &context);
        let format = parse_fields(fields.get("format"), "`format:`", FORMAT, &context);
        let items = RuleSet::parse(&ITEMS, None, fields.list("items"), tables, &named_rules, cx);
        let tools = RuleSet::parse(&TOOLS, None, fields.list("tools"), tables, &named_rules, cx);
        let mut known_members: Vec<String> = Vec::new();
        known_members.extend(
            required
                .iter()
                .map(|(s, _)| s)
                .chain(rejected_fields.iter().map(|r| &r.selector))
                .filter_map(Selector::root_member)
                .map(str::to_owned),
        );
        let mappings = scalars.iter().chain(&tool_choice).chain(&format);
        known_members
            .extend(mappings.flat_map(FieldMapping::selectors).filter_map(Selector::root_member).map(str::to_owned));
        known_members.extend(items.root_members().into_iter().chain(tools.root_members()).map(str::to_owned));
        fields.finish();
        Some(RequestPlan {
            required,
            rejected_fields,
            scalars,
            tool_choice,
            format,
            items,
            tools,
            schema: None,
            known_members,
        })
    }
}

fn parse_fields(
    node: Option<&Node>,
    subject: &str,
    known: &'static [FieldSpec],
    context: &FieldContext,
) -> Vec<FieldMapping> {
    let Some(fields) = node.and_then(|n| FieldReader::of(n, subject, context.cx)) else { return Vec::new() };
    let mut mappings = Vec::new();
    for field in known {
        if let Some(node) = fields.get(field.name) {
            mappings.extend(FieldMapping::parse(field, node, context));
        }
    }
    fields.finish();
    mappings
}

fn list_of(node: &Node) -> &[Node] {
    match &node.kind {
        YamlKind::List(items) => items,
        _ => std::slice::from_ref(node),
    }
}

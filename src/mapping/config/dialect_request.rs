//! A dialect's `request:`: how a client's body is decoded into request items and fields.

use super::dialect::NamedSchema;
use super::request_checks::{CheckSection, RequestCheck};
use crate::domain::emit::{FORMAT, FieldSpec, ITEMS, SCALARS, TOOL_CHOICE, TOOLS};
use crate::domain::{Tree, named_enum};
use crate::mapping::grammar::collections::{Elements, Entries, List, Map, OneOrMore};
use crate::mapping::grammar::notation::{AnyValue, NameOf, Spanned, closed, notation_schema};
use crate::mapping::grammar::unparsed::Unparsed;
use crate::mapping::grammar::{At, FromNode, Section, section};
use crate::mapping::language::field::{FieldContext, FieldMapping};
use crate::mapping::language::field_schema;
use crate::mapping::language::read_paths::ReadTree;
use crate::mapping::language::rule::{NamedRules, RuleSet, parse_content_part_rules};
use crate::mapping::language::rule_schema::{ItemRules, PartRules, RuleOf, ToolRules};
use crate::mapping::language::selector::{BySelector, Selector};
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::{FieldReader, LoadContext, MessageHead, SelectorScope};
use crate::mapping::source::yaml::{Node, YamlKind};
use schemars::{SchemaGenerator, json_schema};
use serde_json::Value;

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
        /// A string that has more than white space.
        NonBlankString = "non_blank_string",
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

section! {
    /// The error for a rejected member, with details.
    #[subject = "a rejected field"]
    #[title = "rejected field"]
    pub struct RejectedFieldDetails {
        /// The error message.
        message: String,
        /// The error code.
        code: Option<String>,
        /// Values without effect, which are accepted.
        allowed_values: List<AnyValue> = List::default(),
    }
}

/// A message, or a message with details.
impl<'n> FromNode<'n> for RejectedEntry {
    fn from_node(node: &'n Node, at: At) -> Option<RejectedEntry> {
        let details = match node.as_text() {
            Some(message) => {
                let (message, allowed_values) = (message.to_owned(), List::default());
                RejectedFieldDetails { message, code: None, allowed_values }
            }
            None => RejectedFieldDetails::from_node(node, at)?,
        };
        Some(RejectedEntry(details))
    }
}

/// The error for a rejected member.
#[derive(Clone, Debug)]
pub struct RejectedEntry(RejectedFieldDetails);

notation_schema!(RejectedEntry, |generator| {
    let details = generator.subschema_for::<RejectedFieldDetails>();
    json_schema!({
        "title": "message, or a map",
        "if": { "type": "object" }, "then": details, "else": { "type": "string" },
    })
});

/// A type, or a type with details.
#[derive(Clone, Debug)]
pub struct RequiredMember {
    pub required_type: RequiredType,
    pub unless: Option<Selector>,
}

section! {
    /// A required member, with details.
    #[subject = "a required member"]
    #[title = "required member"]
    pub struct RequiredDetails {
        /// Its type.
        required_type as "type": NameOf<RequiredType>,
        /// Another member: if it is present, this one may be absent.
        unless: Option<Selector>,
    }
}

impl<'n> FromNode<'n> for RequiredMember {
    fn from_node(node: &'n Node, at: At) -> Option<RequiredMember> {
        let (NameOf(required_type), unless) = match &node.kind {
            YamlKind::Map(_) => {
                let RequiredDetails { required_type, unless } = RequiredDetails::from_node(node, at)?;
                (required_type, unless)
            }
            _ => (NameOf::from_node(node, at)?, None),
        };
        Some(RequiredMember { required_type, unless })
    }
}

notation_schema!(RequiredMember, |generator| {
    let (details, name) =
        (generator.subschema_for::<RequiredDetails>(), generator.subschema_for::<NameOf<RequiredType>>());
    json_schema!({ "title": "type, or a map", "if": { "type": "object" }, "then": details, "else": name })
});

section! {
    /// How a client's body is read. Scalars are filled like the fields of a rule. Members that nothing here reads are
    /// kept in `request.extra`.
    #[subject = "`request:`"]
    #[title = "request"]
    pub struct RequestSection<'n> {
        /// Required members: selector to type, or a map. Checked first; a missing member is a 400.
        required: BySelector<RequiredMember> = BySelector::default(),
        /// Members that are rejected if they are present and not null: selector, or just a member's name, to the
        /// message.
        rejected_fields: Map<RejectedEntry> = Map::default(),
        /// What else a request must meet, each with a message of its own.
        checks: Elements<'n, CheckSection> = Elements::default(),
        /// The words that the API defines for members with a closed list of words: selector to words. What happens to
        /// others is decided by `unknown_values` of the backend.
        known_values: BySelector<List<String>> = BySelector::default(),
        /// Members that are known and have no effect: selectors that begin with `$`. They are not listed as dropped.
        ignored: List<Spanned<Selector>> = List::default(),
        /// Named rules that emit content parts, for `use:`.
        rules: Entries<'n, Map<OneOrMore<RuleOf<PartRules>>>> = Entries::default(),
        /// Rules that emit the items of the conversation.
        items: Elements<'n, RuleOf<ItemRules>> = Elements::default(),
        /// Rules that emit the tools.
        tools: Elements<'n, RuleOf<ToolRules>> = Elements::default(),
        /// Which tool the model must call.
        tool_choice: Option<Unparsed<'n, ToolChoice>>,
        /// The format that the response must have.
        format: Option<Unparsed<'n, Format>>,
        ..scalars: Scalars<'n>,
    }
}

#[derive(Debug)]
pub struct RequestPlan {
    /// Members that must be present, not null and of this type.
    pub required: Vec<(Selector, RequiredMember)>,
    /// Members that are rejected.
    pub rejected_fields: Vec<RejectedField>,
    /// What else a request must meet, in order.
    pub checks: Vec<RequestCheck>,
    /// Members with a closed list of words.
    pub known_values: Vec<(Selector, Vec<String>)>,
    pub scalars: Vec<FieldMapping>,
    pub tool_choice: Vec<FieldMapping>,
    pub format: Vec<FieldMapping>,
    pub items: RuleSet,
    pub tools: RuleSet,
    /// The schema of the body: `schemas/DIALECT/request.json`, if it exists.
    pub schema: Option<NamedSchema>,
    /// The members that are read by the above, sorted. All others are `request.extra`.
    pub known_members: Vec<String>,
    /// What is read of every body, apart from what its items and tools contain.
    pub always_read: ReadTree,
    /// What the scalars read of the client's HTTP request: `path` and `model` for `path.model`.
    pub head_parameters: Vec<(String, String)>,
}

impl RequestPlan {
    pub fn new(section: RequestSection, tables: &Tables, cx: LoadContext) -> RequestPlan {
        let required: Vec<_> = section.required.into_iter().collect();
        let known_values = section.known_values.into_iter().map(|(at, words)| (at, words.0)).collect();
        let mut rejected_fields = Vec::new();
        for entry in section.rejected_fields.0 {
            let path = if Selector::looks_like(&entry.key) { entry.key } else { format!("$.{}", entry.key) };
            if let Some(selector) = Selector::parse(&path, entry.key_span, cx) {
                let RejectedEntry(RejectedFieldDetails { message, code, allowed_values }) = entry.value;
                let allowed_values = allowed_values.into_iter().map(|value| value.0).collect();
                rejected_fields.push(RejectedField { selector, message, code, allowed_values });
            }
        }
        let checks = section.checks.iter().filter_map(|check| RequestCheck::parse(check, cx)).collect();
        let mut named_rules = NamedRules::default();
        for entry in section.rules.items {
            named_rules.add(&entry.key, parse_content_part_rules(entry.value.as_list_or_one(), tables, cx));
        }
        let selectors = SelectorScope { head: MessageHead::Request, ..cx.selectors };
        let of_scalars = LoadContext { selectors, ..cx };
        let context = FieldContext { cx: of_scalars, tables, named_rules: &named_rules, lenient: false };
        let set = section.scalars.0.iter();
        let scalars: Vec<_> = set.filter_map(|(field, node)| FieldMapping::parse(field, node, &context)).collect();
        let tool_choice = parse_fields(section.tool_choice, "`tool_choice:`", TOOL_CHOICE, &context);
        let format = parse_fields(section.format, "`format:`", FORMAT, &context);
        let selectors = scalars.iter().chain(&tool_choice).chain(&format).flat_map(FieldMapping::selectors);
        let head_parameters = selectors.filter_map(Selector::head_parameter);
        let head_parameters = head_parameters.map(|(part, name)| (part.to_owned(), name.to_owned())).collect();
        let items = RuleSet::parse(&ITEMS, None, &section.items, tables, &named_rules, cx);
        let tools = RuleSet::parse(&TOOLS, None, &section.tools, tables, &named_rules, cx);
        let mut always_read = ReadTree::default();
        let mappings = || scalars.iter().chain(&tool_choice).chain(&format);
        mappings().flat_map(FieldMapping::selectors).for_each(|selector| always_read.add_whole(selector));
        required.iter().for_each(|(selector, _)| always_read.add_tested(selector));
        rejected_fields.iter().for_each(|rejected| always_read.add_whole(&rejected.selector));
        always_read.add_ignored(&section.ignored, cx);
        items.add_always_read(&mut always_read);
        tools.add_always_read(&mut always_read);
        let mut known_members: Vec<String> = Vec::new();
        known_members
            .extend(section.ignored.0.iter().filter_map(|selector| selector.value.root_member()).map(str::to_owned));
        known_members.extend(
            required
                .iter()
                .map(|(s, _)| s)
                .chain(rejected_fields.iter().map(|r| &r.selector))
                .filter_map(Selector::root_member)
                .map(str::to_owned),
        );
        known_members
            .extend(mappings().flat_map(FieldMapping::selectors).filter_map(Selector::root_member).map(str::to_owned));
        known_members.extend(items.root_members().into_iter().chain(tools.root_members()).map(str::to_owned));
        known_members.sort_unstable();
        known_members.dedup();
        RequestPlan {
            required,
            rejected_fields,
            checks,
            known_values,
            scalars,
            tool_choice,
            format,
            items,
            tools,
            schema: None,
            known_members,
            always_read,
            head_parameters,
        }
    }
}

/// The scalar fields of a request, which are set like the fields of a rule.
#[derive(Clone, Debug)]
pub struct Scalars<'n>(Vec<(&'static FieldSpec, &'n Node)>);

impl<'n> Section<'n> for Scalars<'n> {
    fn subject(_: &str) -> String {
        RequestSection::subject("request")
    }

    fn read_fields(fields: &FieldReader<'n, '_>) -> Option<Self> {
        Some(Scalars(SCALARS.iter().filter_map(|field| Some((field, fields.get(field.name)?))).collect()))
    }

    fn properties(generator: &mut SchemaGenerator) -> serde_json::Map<String, Value> {
        field_schema::properties(SCALARS, generator)
    }

    fn required() -> Vec<&'static str> {
        Vec::new()
    }
}

/// `tool_choice:`
#[derive(Clone, Copy, Debug)]
pub struct ToolChoice;

/// `format:`
#[derive(Clone, Copy, Debug)]
pub struct Format;

notation_schema!(ToolChoice, |generator| closed(field_schema::properties(TOOL_CHOICE, generator)));
notation_schema!(Format, |generator| closed(field_schema::properties(FORMAT, generator)));

fn parse_fields<S>(
    section: Option<Unparsed<S>>,
    subject: &str,
    known: &'static [FieldSpec],
    context: &FieldContext,
) -> Vec<FieldMapping> {
    let fields = section.and_then(|section| FieldReader::of(section.node, subject, context.cx));
    let Some(fields) = fields else { return Vec::new() };
    let set = known.iter().filter_map(|field| FieldMapping::parse(field, fields.get(field.name)?, context)).collect();
    fields.finish();
    set
}

//! A dialect's `request:`: how a client's body becomes request items and scalars.

use super::dialect::NamedSchema;
use crate::diagnostics::Code;
use crate::domain::emit::{FORMAT, Field, ITEMS, SCALARS, TOOL_CHOICE, TOOLS};
use crate::domain::{Tree, words};
use crate::mapping::language::field::{Read, ReadCx};
use crate::mapping::language::named_rules::RuleBook;
use crate::mapping::language::rule::{RuleSet, parse_parts};
use crate::mapping::language::selector::Selector;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::{Cx, Fields, constant};
use crate::mapping::source::yaml::{Kind, Node};

words! {
    /// What a required member must be.
    pub enum Need {
        Exists = "exists",
        String = "string",
        Number = "number",
        Boolean = "boolean",
        Object = "object",
        Array = "array",
        /// An array with something in it.
        List = "list",
    }
}

/// A member that this endpoint does not take: `name: why`, or `name: { message, code, unless: [values] }`.
#[derive(Debug)]
pub struct Refused {
    pub at: Selector,
    pub message: String,
    pub code: Option<String>,
    /// Values that ask for nothing, and so are no reason to refuse.
    pub unless: Vec<Tree>,
}

impl Refused {
    fn parse(at: Selector, node: &Node, cx: Cx) -> Option<Refused> {
        if let Some(message) = node.as_text() {
            return Some(Refused { at, message: message.to_owned(), code: None, unless: Vec::new() });
        }
        let fields = Fields::of(node, "a refused member", cx)?;
        let message = fields.required_text("message");
        let code = fields.text("code").map(str::to_owned);
        let unless = fields.list("unless").iter().map(constant).collect();
        fields.done();
        Some(Refused { at, message: message?.to_owned(), code, unless })
    }
}

#[derive(Debug)]
pub struct RequestPlan {
    /// Must be there, not null, and of this kind.
    pub required: Vec<(Selector, Need)>,
    /// Members that are refused when they are there, and why.
    pub refused: Vec<Refused>,
    pub scalars: Vec<Read>,
    pub tool_choice: Vec<Read>,
    pub format: Vec<Read>,
    pub items: RuleSet,
    pub tools: RuleSet,
    /// The types of the members that are known: `schemas/DIALECT/request.json`, where there is one.
    pub schema: Option<NamedSchema>,
    /// The members that something above reads; the rest is `request.extra`.
    pub known: Vec<String>,
}

impl RequestPlan {
    pub fn parse(node: &Node, tables: &Tables, cx: Cx) -> Option<RequestPlan> {
        let fields = Fields::of(node, "`request:`", cx)?;
        let mut required = Vec::new();
        for entry in fields.map("required") {
            let need = cx.word(&entry.value, Need::WORDS).and_then(Need::from_word);
            if let (Some(at), Some(need)) = (Selector::parse(&entry.key, entry.key_span, cx), need) {
                required.push((at, need));
            }
        }
        let mut refused = Vec::new();
        for entry in fields.map("refused") {
            let path = if Selector::looks_like(&entry.key) { entry.key.clone() } else { format!("$.{}", entry.key) };
            if let Some(at) = Selector::parse(&path, entry.key_span, cx) {
                refused.extend(Refused::parse(at, &entry.value, cx));
            }
        }
        if node.misspells("rules") {
            cx.findings.mute(&[Code::UnknownReference]);
        }
        let mut book = RuleBook::default();
        for entry in fields.map("rules") {
            book.add(&entry.key, parse_parts(list_of(&entry.value), tables, cx));
        }
        let rcx = ReadCx { cx, tables, book: &book, lenient: false };
        let mut scalars = Vec::new();
        for field in SCALARS {
            if let Some(node) = fields.get(field.name) {
                scalars.extend(Read::parse(field, node, &rcx));
            }
        }
        let tool_choice = group(fields.get("tool_choice"), "`tool_choice:`", TOOL_CHOICE, &rcx);
        let format = group(fields.get("format"), "`format:`", FORMAT, &rcx);
        let items = RuleSet::parse(&ITEMS, None, fields.list("items"), tables, &book, cx);
        let tools = RuleSet::parse(&TOOLS, None, fields.list("tools"), tables, &book, cx);
        let mut known: Vec<String> = Vec::new();
        known.extend(
            required
                .iter()
                .map(|(s, _)| s)
                .chain(refused.iter().map(|r| &r.at))
                .filter_map(Selector::first_key)
                .map(str::to_owned),
        );
        let reads = scalars.iter().chain(&tool_choice).chain(&format);
        known.extend(reads.flat_map(Read::selectors).filter_map(Selector::first_key).map(str::to_owned));
        known.extend(items.first_keys().into_iter().chain(tools.first_keys()).map(str::to_owned));
        fields.done();
        Some(RequestPlan { required, refused, scalars, tool_choice, format, items, tools, schema: None, known })
    }
}

fn group(node: Option<&Node>, what: &str, known: &'static [Field], rcx: &ReadCx) -> Vec<Read> {
    let Some(fields) = node.and_then(|n| Fields::of(n, what, rcx.cx)) else { return Vec::new() };
    let mut reads = Vec::new();
    for field in known {
        if let Some(node) = fields.get(field.name) {
            reads.extend(Read::parse(field, node, rcx));
        }
    }
    fields.done();
    reads
}

fn list_of(node: &Node) -> &[Node] {
    match &node.kind {
        Kind::List(items) => items,
        _ => std::slice::from_ref(node),
    }
}

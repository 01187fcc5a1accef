//! A dialect's `request:`: how a client's body becomes request items and scalars.

use super::book::RuleBook;
use super::dialect::NamedSchema;
use super::fields::{Cx, Fields, constant};
use super::read::{Read, ReadCx};
use super::rules::{RuleSet, parse_parts};
use super::select::{Cursor, Selector};
use super::table::Tables;
use super::yaml::{Kind, Node};
use crate::canon::vocabulary::{FORMAT, Field, ITEMS, SCALARS, TOOL_CHOICE, TOOLS};
use crate::canon::{Tree, words};
use crate::diag::Code;

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

impl Need {
    /// What it is instead, as the end of the sentence "`x` must be …".
    pub fn unmet(self, node: &Tree) -> Option<&'static str> {
        let (met, expected) = match self {
            Need::Exists => (true, ""),
            Need::String => (node.type_name() == "string", "a string"),
            Need::Number => (node.type_name() == "number", "a number"),
            Need::Boolean => (node.type_name() == "boolean", "a boolean"),
            Need::Object => (node.type_name() == "object", "an object"),
            Need::Array => (node.type_name() == "array", "an array"),
            Need::List => (node.as_list().is_some_and(|l| !l.is_empty()), "an array with at least one element"),
        };
        (!met).then_some(expected)
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
    /// What a client of this dialect calls one of our scalars.
    pub fn param_of(&self, scalar: &str) -> Option<String> {
        let read = self.scalars.iter().find(|r| r.field.name == scalar)?;
        read.selectors().first().map(|s| s.param(&Cursor::new(&Tree::Null)))
    }

    /// What this client called it: of several names the one that it used.
    pub fn param_in(&self, scalar: &str, body: Option<&Tree>) -> String {
        let null = Tree::Null;
        let cursor = Cursor::new(body.unwrap_or(&null));
        let group = match scalar {
            "tool_choice" => &self.tool_choice,
            "format" => &self.format,
            _ => &self.scalars,
        };
        let grouped = matches!(scalar, "tool_choice" | "format");
        let reads = group.iter().filter(|r| grouped || r.field.name == scalar).flat_map(Read::selectors);
        let mut said = reads.filter(|s| s.one(&cursor).is_some_and(|v| !v.is_null()));
        let found = said.next();
        match (found, grouped) {
            (Some(selector), true) => selector.first_key().unwrap_or(scalar).to_owned(),
            (Some(selector), false) => selector.param(&cursor),
            (None, _) => scalar.to_owned(),
        }
    }

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

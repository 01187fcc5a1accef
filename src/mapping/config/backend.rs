//! A backend file: what the backend sends, and what that means.

use super::backend_request::AskPlan;
use crate::diagnostics::Span;
use crate::domain::emit::EVENTS;
use crate::domain::words;
use crate::mapping::language::named_rules::RuleBook;
use crate::mapping::language::rule::RuleSet;
use crate::mapping::language::selector::Selector;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::{Cx, Fields, text_of};
use crate::mapping::source::yaml::{Entry, Kind, Node};

words! {
    /// How a backend is reached.
    pub enum Transport {
        Replay = "replay",
        Http = "http",
        /// JSON-RPC over the standard streams of a child process.
        ChildJsonrpc = "child_jsonrpc",
    }
}

words! {
    /// How a backend's bytes are cut into raw events.
    pub enum Framing {
        Sse = "sse",
        Ndjson = "ndjson",
        Json = "json",
        Jsonrpc = "jsonrpc",
    }
}

words! {
    /// What becomes of a raw event that no rule knows.
    pub enum Unmatched {
        Warn = "warn",
        Drop = "drop",
        Fail = "fail",
    }
}

#[derive(Debug)]
pub struct BackendPlan {
    pub name: String,
    pub span: Span,
    pub transport: Transport,
    pub framings: Vec<Framing>,
    /// The line that ends an event stream, where the backend sends one.
    pub end: Option<String>,
    /// The member that the name of an SSE event is kept in, for a backend that says its types only there.
    pub event: Option<String>,
    /// How a turn is asked for; without it the file only reads what was recorded.
    pub ask: Option<AskPlan>,
    pub unmatched: Unmatched,
    pub rules: RuleSet,
}

impl BackendPlan {
    pub fn parse(node: &Node, shared: &Tables, shared_parts: &[Entry], cx: Cx) -> Option<BackendPlan> {
        let fields = Fields::of(node, "a backend", cx)?;
        let name = fields.required_text("backend")?;
        let transport =
            fields.required("transport").and_then(|n| cx.word(n, Transport::WORDS)).and_then(Transport::from_word);
        let tables = Tables::parse(fields.map("tables"), cx).or(shared);
        let mut plan = BackendPlan {
            name: name.to_owned(),
            span: node.span,
            transport: transport?,
            framings: Vec::new(),
            end: None,
            event: None,
            ask: None,
            unmatched: Unmatched::Warn,
            rules: RuleSet::parse(&EVENTS, None, &[], &tables, &RuleBook::default(), cx),
        };
        let (parts, models) = (fields.map("parts"), fields.get("models"));
        if let Some(request) = fields.get("request") {
            plan.ask = AskPlan::parse(request, parts, shared_parts, models, &tables, cx);
        }
        match fields.get("events") {
            Some(events) => plan.events(events, &tables, cx),
            // A replayed transcript names the backend whose rules read it.
            None if plan.transport == Transport::Replay => {}
            None => {
                fields.required("events");
            }
        }
        fields.done();
        Some(plan)
    }

    fn events(&mut self, node: &Node, tables: &Tables, cx: Cx) {
        let Some(fields) = Fields::of(node, "`events:`", cx) else { return };
        if let Some(framing) = fields.required("framing") {
            self.framing(framing, cx);
        }
        if let Some(word) = fields.get("unmatched").and_then(|n| cx.word(n, Unmatched::WORDS)) {
            self.unmatched = Unmatched::from_word(word).unwrap_or(Unmatched::Warn);
        }
        let key = fields.get("key").and_then(|n| Selector::parse(text_of(n, cx)?, n.span, cx));
        fields.required("rules");
        self.rules = RuleSet::parse(&EVENTS, key, fields.list("rules"), tables, &RuleBook::default(), cx);
        fields.done();
    }

    /// `framing: ndjson`, or a map: `{ sse: { end: "[DONE]" }, json: whole }`.
    fn framing(&mut self, node: &Node, cx: Cx) {
        let Kind::Map(_) = &node.kind else {
            self.framings.extend(cx.word(node, Framing::WORDS).and_then(Framing::from_word));
            return;
        };
        let Some(fields) = Fields::of(node, "`framing:`", cx) else { return };
        for framing in Framing::ALL {
            let Some(node) = fields.get(framing.word()) else { continue };
            self.framings.push(*framing);
            match &node.kind {
                Kind::Null => {}
                Kind::Text(text) if text == "whole" && *framing == Framing::Json => {}
                _ => {
                    let Some(inner) = Fields::of(node, format!("`{}:`", framing.word()), cx) else { continue };
                    self.end = inner.text("end").map(str::to_owned);
                    self.event = inner.text("event").map(str::to_owned);
                    inner.done();
                }
            }
        }
        fields.done();
    }
}

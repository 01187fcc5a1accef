//! A backend file: how to send requests to a backend, and how its events are decoded.

use super::backend_request::RequestTemplate;
use crate::diagnostics::Span;
use crate::domain::emit::EVENTS;
use crate::domain::named_enum;
use crate::mapping::language::rule::{NamedRules, RuleSet};
use crate::mapping::language::selector::Selector;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::{FieldReader, LoadContext, text_of};
use crate::mapping::source::yaml::{Entry, Node, YamlKind};

named_enum! {
    /// How the gateway reaches a backend.
    pub enum Transport {
        Replay = "replay",
        Http = "http",
        /// JSON-RPC over the standard streams of a child process.
        ChildJsonrpc = "child_jsonrpc",
    }
}

named_enum! {
    /// How a backend's bytes are split into raw events.
    pub enum Framing {
        Sse = "sse",
        Ndjson = "ndjson",
        Json = "json",
        Jsonrpc = "jsonrpc",
    }
}

named_enum! {
    /// What happens to a raw event that no rule matches.
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
    /// The line that ends an event stream, if the backend sends one.
    pub end: Option<String>,
    /// The member that receives the name of an SSE event, for a backend that sends types only as event names.
    pub event: Option<String>,
    /// Without it, the file can only decode transcripts.
    pub request_template: Option<RequestTemplate>,
    pub unmatched: Unmatched,
    pub rules: RuleSet,
}

impl BackendPlan {
    pub fn parse(node: &Node, shared: &Tables, shared_fragments: &[Entry], cx: LoadContext) -> Option<BackendPlan> {
        let fields = FieldReader::of(node, "a backend", cx)?;
        let name = fields.required_text("backend")?;
        let transport =
            fields.required("transport").and_then(|n| cx.one_of(n, Transport::NAMES)).and_then(Transport::from_name);
        let tables = Tables::parse(fields.map("tables"), cx).with_shared(shared);
        let mut plan = BackendPlan {
            name: name.to_owned(),
            span: node.span,
            transport: transport?,
            framings: Vec::new(),
            end: None,
            event: None,
            request_template: None,
            unmatched: Unmatched::Warn,
            rules: RuleSet::parse(&EVENTS, None, &[], &tables, &NamedRules::default(), cx),
        };
        let (fragments, models) = (fields.map("fragments"), fields.get("models"));
        if let Some(request) = fields.get("request") {
            plan.request_template = RequestTemplate::parse(request, fragments, shared_fragments, models, &tables, cx);
        }
        match fields.get("events") {
            Some(events) => plan.events(events, &tables, cx),
            // A transcript names the backend file that decodes it.
            None if plan.transport == Transport::Replay => {}
            None => {
                fields.required("events");
            }
        }
        fields.finish();
        Some(plan)
    }

    fn events(&mut self, node: &Node, tables: &Tables, cx: LoadContext) {
        let Some(fields) = FieldReader::of(node, "`events:`", cx) else { return };
        if let Some(framing) = fields.required("framing") {
            self.framing(framing, cx);
        }
        if let Some(word) = fields.get("unmatched").and_then(|n| cx.one_of(n, Unmatched::NAMES)) {
            self.unmatched = Unmatched::from_name(word).unwrap_or(Unmatched::Warn);
        }
        let event_name = fields.get("event_name").and_then(|n| Selector::parse(text_of(n, cx)?, n.span, cx));
        fields.required("rules");
        self.rules = RuleSet::parse(&EVENTS, event_name, fields.list("rules"), tables, &NamedRules::default(), cx);
        fields.finish();
    }

    /// `framing: ndjson`, or a map: `{ sse: { end: "[DONE]" }, json: whole }`.
    fn framing(&mut self, node: &Node, cx: LoadContext) {
        let YamlKind::Map(_) = &node.kind else {
            self.framings.extend(cx.one_of(node, Framing::NAMES).and_then(Framing::from_name));
            return;
        };
        let Some(fields) = FieldReader::of(node, "`framing:`", cx) else { return };
        for framing in Framing::ALL {
            let Some(node) = fields.get(framing.name()) else { continue };
            self.framings.push(*framing);
            match &node.kind {
                YamlKind::Null => {}
                YamlKind::Text(text) if text == "whole" && *framing == Framing::Json => {}
                _ => {
                    let Some(inner) = FieldReader::of(node, format!("`{}:`", framing.name()), cx) else { continue };
                    self.end = inner.text("end").map(str::to_owned);
                    self.event = inner.text("event").map(str::to_owned);
                    inner.finish();
                }
            }
        }
        fields.finish();
    }
}

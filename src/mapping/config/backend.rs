//! A backend file: how to send requests to a backend, and how its events are decoded.

use super::backend_request::{ModelListPlan, RequestFieldsRead, RequestSection, RequestSettings, RequestTemplate};
use super::child_process::{ProcessSection, ProcessTemplate};
use super::conversation::{ConversationPlan, ConversationSection};
use super::derived_backend;
use super::inline::{InlinePlan, InlineSection};
use crate::diagnostics::{Code, Span};
use crate::domain::emit::EVENTS;
use crate::domain::{CallIdentity, EventKind, named_enum};
use crate::mapping::grammar::collections::{Elements, Entries, List, Map};
use crate::mapping::grammar::notation::{AnyValue, NameOf, Spanned, closed, notation_schema, one_of};
use crate::mapping::grammar::unparsed::Unparsed;
use crate::mapping::grammar::{At, FromNode, Quoted, Required, Section, section};
use crate::mapping::language::directives::SkeletonNode;
use crate::mapping::language::read_paths::ReadTree;
use crate::mapping::language::rule::{NamedRules, RuleSet};
use crate::mapping::language::rule_schema::{EventRules, NamedRuleOf, event_rules_need_a_name_selector};
use crate::mapping::language::selector::Selector;
use crate::mapping::language::table::{TableNode, Tables};
use crate::mapping::language::value_reads::ValueReads;
use crate::mapping::source::field_reader::{FieldReader, LoadContext, MessageHead, SelectorScope};
use crate::mapping::source::yaml::{Entry, Node, YamlKind};
use schemars::{Schema, json_schema};
use serde_json::json;
use std::sync::{Arc, OnceLock};

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
        /// The binary event stream of AWS.
        AwsEventstream = "aws_eventstream",
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

named_enum! {
    /// What happens to calls of tools that the client did not offer.
    pub enum UndeclaredTools {
        Keep = "keep",
        Drop = "drop",
    }
}

#[derive(Debug)]
pub struct BackendPlan {
    pub name: String,
    pub span: Span,
    /// The name of its provider in metrics.
    pub provider: String,
    /// The backend that it is derived from.
    pub extends: Option<Spanned<String>>,
    pub transport: Transport,
    pub framings: Vec<Framing>,
    /// The line that ends an event stream, if the backend sends one.
    pub end: Option<String>,
    /// The member that receives the name of an event, for a backend that sends types only as names next to the data.
    pub event: Option<String>,
    /// Without it, the file can only decode transcripts.
    pub request_template: Option<RequestTemplate>,
    /// The calls to a child process. Without it, the file can only decode transcripts.
    pub conversation: Option<ConversationPlan>,
    pub process: Option<Arc<ProcessTemplate>>,
    pub unmatched: Unmatched,
    pub rules: RuleSet,
    pub calls_by: CallIdentity,
    pub undeclared_tools: UndeclaredTools,
    /// What is read of every event, or known to have no effect.
    pub always_read: ReadTree,
    /// Blocks in its text.
    pub inline: InlinePlan,
    /// The headers of a response that its rules read; `None` if they do not read the head of a response.
    pub response_headers: Option<Vec<String>>,
    value_reads: OnceLock<ValueReads>,
}

section! {
    /// One kind of backend: how it is called, what it supports, and what its events mean.
    #[subject = "a backend"]
    #[title = "a backend"]
    #[transform = derived_or_complete]
    pub struct BackendFile<'n> {
        /// Its name.
        backend: String,
        /// The name of the backend that this one is derived from. A derived backend has no other keys than `backend`,
        /// `extends` and `patch`.
        extends: Option<Spanned<String>>,
        /// Changes to the backend that `extends` names. Maps are merged, and so are lists with elements that have a
        /// `name`, such as rules; `$remove` deletes a key, `{ $replace: VALUE }` replaces a map, `{ $add: VALUE }` adds
        /// a key, `{ $before: OTHER, … }` adds an entry before another; any other value replaces what is there.
        patch: Option<Entries<'n, Map<AnyValue>>>,
        /// How it is called; required unless the backend is derived. A `replay` backend plays transcripts; each names
        /// the backend file with the rules that read it.
        transport: NameOf<Transport>,
        /// The name of its provider in metrics, by the OpenTelemetry conventions: `openai`, `anthropic`. Default: the
        /// name of the backend.
        provider: Option<String>,
        /// The backend's list of models.
        models: Option<ModelListPlan>,
        /// The request template; without it the file only reads recorded events.
        request: Option<RequestSection<'n>>,
        /// The conversation with a child process; only for the transport `child_jsonrpc`. Without it the file only reads
        /// recorded events.
        conversation: Option<ConversationSection<'n>>,
        /// The command of a child process, and how it is supervised.
        process: Option<Unparsed<'n, ProcessSection<'n>>>,
        /// The events that it sends. Only a `replay` backend has none.
        events: Option<Events<'n>>,
        /// Tables, by name. They take precedence over those of shared.yaml.
        tables: Entries<'n, Map<TableNode>> = Entries::default(),
        /// Fragments, by name: skeletons for `$use`. They take precedence over those of shared.yaml.
        fragments: Entries<'n, Map<SkeletonNode<'n>>> = Entries::default(),
    }
}

section! {
    /// The events that a backend sends, and the rules that read them.
    #[subject = "`events:`"]
    #[transform = event_rules_need_a_name_selector]
    pub struct Events<'n> {
        /// How bytes become events: a name, or a map if a backend uses several framings.
        framing: Required<Framings>,
        /// The selector of an event's name; needed by rules with `event:`.
        event_name: Option<Selector>,
        /// What happens to an event that no rule matches.
        unmatched: NameOf<Unmatched> = NameOf(Unmatched::Warn),
        /// Members of events that are known and have no effect: selectors that begin with `$`. `explain --loss` does not
        /// list them.
        ignored: List<Spanned<Selector>> = List::default(),
        /// Rules that emit events.
        rules: Required<Elements<'n, NamedRuleOf<EventRules>>>,
        /// What identifies a tool call. `key` is for backends that send another id with every delta.
        calls_by: NameOf<CallIdentity> = NameOf(CallIdentity::Id),
        /// What happens to a call of a tool that the client did not offer: `drop` is for agents, which call tools of their
        /// own and send the name with every event of a call.
        undeclared_tools: NameOf<UndeclaredTools> = NameOf(UndeclaredTools::Keep),
        /// Blocks in the text of the model that are reasoning or tool calls, by name.
        inline: Map<InlineSection> = Map::default(),
    }
}

section! {
    /// Details of a framing.
    #[subject = Quoted]
    pub struct FramingDetails: Default {
        /// The data that ends the stream.
        end: Option<String>,
        /// The member of an event's data that receives its name, unless the data has that member: the name in its
        /// `event:` line, or in its header `:event-type`, `:exception-type` or `:error-code`.
        event: Option<String>,
    }
}

/// A derived backend has three keys; a complete one has a transport and, unless it is a replay backend, events.
fn derived_or_complete(schema: &mut Schema) {
    let replay = json!({ "properties": { "transport": { "const": Transport::Replay.name() } } });
    let complete = json!({ "required": ["transport"], "if": replay, "else": { "required": ["events"] } });
    schema.insert("required".to_owned(), json!(["backend"]));
    schema.insert("if".to_owned(), json!({ "anyOf": [{ "required": ["extends"] }, { "required": ["patch"] }] }));
    let keys = json!({ "propertyNames": { "enum": derived_backend::KEYS }, "required": ["extends"] });
    schema.insert("then".to_owned(), keys);
    schema.insert("else".to_owned(), complete);
}

impl BackendPlan {
    pub fn parse(node: &Node, shared: &Tables, shared_fragments: &[Entry], cx: LoadContext) -> Option<BackendPlan> {
        let fields = BackendFile::open(node, "", cx)?;
        let file = BackendFile::read_fields(&fields);
        // A transcript names the backend file that decodes it, so a replay backend has no events.
        let is_replay = file.as_ref().is_some_and(|f| f.transport.0 == Transport::Replay);
        if file.is_some() && !is_replay {
            fields.required("events");
        }
        if let Some(file) = &file {
            report_misplaced(&fields, file.transport.0);
        }
        fields.finish();
        let file = file?;
        let tables = Tables::parse(&file.tables, cx).with_shared(shared, cx);
        let template = file.request.and_then(|request| {
            RequestTemplate::new(request, &file.fragments, shared_fragments, file.models, &tables, cx)
        });
        let conversation = file.conversation.and_then(|conversation| {
            ConversationPlan::new(conversation, &file.fragments, shared_fragments, &tables, cx)
        });
        let process = file.process.as_ref().and_then(|process| {
            ProcessTemplate::new(process, &[&file.fragments, shared_fragments], &tables, cx).map(Arc::new)
        });
        let none = NamedRules::default();
        let calls_by = file.events.as_ref().map_or(CallIdentity::default(), |events| events.calls_by.0);
        let undeclared_tools = file.events.as_ref().map_or(UndeclaredTools::Keep, |events| events.undeclared_tools.0);
        let mut always_read = ReadTree::default();
        let (Framings { framings, details }, unmatched, rules, inline) = match file.events {
            Some(events) => {
                let selectors = SelectorScope { head: MessageHead::Response, ..cx.selectors };
                let cx = LoadContext { selectors, ..cx };
                let mut rules = RuleSet::parse(&EVENTS, events.event_name, &events.rules, &tables, &none, cx);
                rules.require_lists();
                rules.add_always_read(&mut always_read);
                always_read.add_ignored(&events.ignored, cx);
                (events.framing.0, events.unmatched.0, rules, InlinePlan::new(events.inline, cx))
            }
            None => {
                let rules = RuleSet::parse(&EVENTS, None, &[], &tables, &none, cx);
                (Framings::default(), Unmatched::Warn, rules, InlinePlan::default())
            }
        };
        let mut response_headers: Option<Vec<String>> = None;
        for header in rules.selectors().into_iter().filter_map(Selector::response_part) {
            response_headers.get_or_insert_default().extend(header.map(str::to_owned));
        }
        Some(BackendPlan {
            provider: file.provider.unwrap_or_else(|| file.backend.clone()),
            response_headers,
            name: file.backend,
            span: node.span,
            extends: file.extends,
            transport: file.transport.0,
            framings,
            end: details.end,
            event: details.event,
            request_template: template,
            conversation,
            process,
            unmatched,
            rules,
            calls_by,
            undeclared_tools,
            always_read,
            inline,
            value_reads: OnceLock::new(),
        })
    }

    /// Which fields of a request it reads, and its capabilities; `None` if nothing can be sent to it.
    pub fn sends(&self) -> Option<(&RequestFieldsRead, &RequestSettings)> {
        let over_http = self.request_template.as_ref().map(|template| (&template.reads, &template.settings));
        over_http.or(self.conversation.as_ref().map(|conversation| (&conversation.reads, &conversation.settings)))
    }

    /// Which values of an event change what its rules emit. Found when a stream needs it: many backends have none.
    pub fn value_reads(&self) -> &ValueReads {
        self.value_reads.get_or_init(|| self.rules.value_reads())
    }

    /// Whether its rules emit snapshots of the text so far.
    pub fn has_text_snapshots(&self) -> bool {
        let is_text = |name| name == EventKind::Text.name();
        self.rules.emits().any(|emit| is_text(emit.kind.name) && emit.fields.iter().any(|f| f.field.name == "whole"))
    }
}

/// Reports keys that have no effect with this transport.
fn report_misplaced(fields: &FieldReader, transport: Transport) {
    let is_child = transport == Transport::ChildJsonrpc;
    let misplaced: &[&'static str] = if is_child { &["request", "models"] } else { &["conversation", "process"] };
    for entry in misplaced.iter().filter_map(|key| fields.entry(key)) {
        let message = format!("`{}:` has no effect with the transport `{}`", entry.key, transport.name());
        fields.cx.error(Code::UnknownKey, entry.key_span, message);
    }
}

/// `framing: ndjson`, or a map: `{ sse: { end: "[DONE]" }, json: whole }`.
#[derive(Clone, Debug, Default)]
pub struct Framings {
    framings: Vec<Framing>,
    details: FramingDetails,
}

impl<'n> FromNode<'n> for Framings {
    fn from_node(node: &'n Node, at: At) -> Option<Framings> {
        let cx = at.cx;
        let YamlKind::Map(_) = &node.kind else {
            let framing = cx.one_of(node, Framing::NAMES).and_then(Framing::from_name)?;
            return Some(Framings { framings: vec![framing], details: FramingDetails::default() });
        };
        let fields = FieldReader::of(node, "`framing:`", cx)?;
        let mut framings = Framings::default();
        for framing in Framing::ALL {
            let Some(entry) = fields.entry(framing.name()) else { continue };
            framings.framings.push(*framing);
            match &entry.value.kind {
                YamlKind::Null => {}
                YamlKind::Text(text) if text == "whole" && *framing == Framing::Json => {}
                _ => framings.details = fields.value(framing.name()).unwrap_or_default(),
            }
        }
        fields.finish();
        Some(framings)
    }
}

notation_schema!(Framings, |generator| {
    let details = generator.subschema_for::<FramingDetails>();
    let one = |framing: &Framing| match framing {
        Framing::Json => json!({ "anyOf": [{ "type": "null" }, { "const": "whole" }, details] }),
        Framing::Sse | Framing::Ndjson | Framing::Jsonrpc | Framing::AwsEventstream => {
            json!({ "anyOf": [{ "type": "null" }, details] })
        }
    };
    let several = closed(Framing::ALL.iter().map(|f| (f.name().to_owned(), one(f))).collect());
    json_schema!({
        "title": "`sse`, `ndjson`, `json`, `jsonrpc`, `aws_eventstream`, or a map of these",
        "if": { "type": "object" }, "then": several, "else": one_of(Framing::NAMES),
    })
});

//! The synthetic turns that frames are rendered with: every kind of event that a backend can send, every finish reason and
//! fault, and optional values both present and absent. Each value occurs once, not in every combination.

use crate::domain::policy::{InvalidArguments, NonObjectArguments};
use crate::domain::request_item::Derived;
use crate::domain::{
    Annotation, AnnotationKind, CallKind, Delta, Event, Fault, FaultKind, Finish, Logprobs, Merge, ReasoningKind, Tree,
    TurnRequest, Usage,
};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::language::expression::{Expression, Filter};
use std::sync::Arc;

/// A synthetic turn.
pub struct WitnessTurn {
    /// What is special about it, for a message.
    pub about: String,
    pub choices: usize,
    pub request: WitnessRequest,
    pub events: Vec<Event>,
    /// What keeps it from clients, besides an edit of the schema.
    pub help: Option<&'static str>,
}

/// The request of a synthetic turn.
#[derive(Clone, Default)]
pub struct WitnessRequest {
    /// The client requests usage in the stream.
    usage: bool,
    /// The optional scalars are present.
    is_full: bool,
    /// A member of the client's body that the dialect looks up in a table: its path, and a word.
    word: Option<(Vec<Arc<str>>, String)>,
}

impl WitnessRequest {
    pub fn build(&self, stream: bool, choices: usize) -> TurnRequest {
        let mut request = TurnRequest::synthetic("witness", stream, self.usage, choices);
        if self.is_full {
            request.imply(&[
                ("max_tokens", Tree::from(16i64)),
                ("temperature", Tree::from(0.5f64)),
                ("top_p", Tree::from(0.5f64)),
                ("seed", Tree::from(1i64)),
                ("reasoning_effort", Tree::from("low")),
                ("parallel_tool_calls", Tree::from(false)),
                ("metadata", Tree::map([("key", Tree::from("value"))])),
                ("user", Tree::from("user")),
            ]);
        }
        if let Some((path, word)) = &self.word {
            request.raw =
                path.iter().rev().fold(Tree::from(word.as_str()), |inner, name| Tree::map([(&**name, inner)]));
        }
        request
    }
}

/// The turns of a dialect. The first violation of a frame is the one that is reported, so the order matters.
pub fn witness_turns(dialect: &DialectPlan) -> Vec<WitnessTurn> {
    let with_usage = WitnessRequest { usage: true, ..WitnessRequest::default() };
    let turn = |request: &WitnessRequest, about: String, events: Vec<Event>| WitnessTurn {
        about,
        choices: 1,
        request: request.clone(),
        events,
        help: None,
    };
    let finishes = Finish::ALL.iter().map(|reason| {
        let events = vec![text("a"), text("b"), usage(), finish(*reason)];
        turn(&with_usage, format!("with the finish `{}`", reason.name()), events)
    });
    let plain = WitnessRequest::default();
    let contents = contents().into_iter().map(|(about, events)| turn(&plain, about.to_owned(), events));
    let faults = FaultKind::ALL.iter().map(|kind| {
        let about = format!("with the fault `{}` in mid-stream", kind.name());
        turn(&with_usage, about, vec![text("a"), fault(*kind, None)])
    });
    let with_code = vec![text("a"), fault(FaultKind::Backend, Some("code"))];
    let with_code = turn(&with_usage, "with a fault that has a code".to_owned(), with_code);
    let full = WitnessRequest { is_full: true, ..with_usage.clone() };
    let full = turn(&full, "with all settings in the request".to_owned(), vec![text("a"), finish(Finish::Stop)]);
    let words = request_words(dialect).into_iter().map(|(path, word)| {
        let about = format!("with `{}: {word}` in the request", path.join("."));
        let request = WitnessRequest { word: Some((path, word)), ..with_usage.clone() };
        turn(&request, about, vec![text("a"), finish(Finish::Stop)])
    });
    let two_choices = vec![text("a"), text_in(1, "b"), usage(), finish(Finish::Stop)];
    let two_choices = WitnessTurn { choices: 2, ..turn(&with_usage, "with two choices".to_owned(), two_choices) };
    let two_choices = Some(two_choices).filter(|_| dialect.request.param_of("n").is_some());
    let arguments = unusual_arguments(dialect).into_iter().map(|(about, arguments, help)| {
        let events = vec![tool_call("c1", CallKind::Function, arguments), finish(Finish::ToolCalls)];
        WitnessTurn { help: Some(help), ..turn(&plain, about.to_owned(), events) }
    });
    let contents = contents.chain(arguments);
    finishes.chain(contents).chain(faults).chain([with_code, full]).chain(words).chain(two_choices).collect()
}

fn contents() -> Vec<(&'static str, Vec<Event>)> {
    let bare_citation = |kind: AnnotationKind| Annotation { title: None, name: None, index: None, ..citation(kind) };
    vec![
        ("with a model and an id of the backend", vec![start(), text("a"), finish(Finish::Stop)]),
        ("with a refusal", vec![refusal("no"), finish(Finish::Stop)]),
        ("with text and a refusal", vec![text("a"), refusal("no"), usage(), finish(Finish::Stop)]),
        (
            "with reasoning",
            vec![
                reasoning(ReasoningKind::Summary, "s"),
                reasoning(ReasoningKind::Raw, "r"),
                text("a"),
                usage(),
                finish(Finish::Stop),
            ],
        ),
        ("with encrypted reasoning", vec![encrypted_reasoning(), text("a"), finish(Finish::Stop)]),
        ("with reasoning that is truncated", vec![reasoning(ReasoningKind::Raw, "r"), finish(Finish::Length)]),
        (
            "with citations",
            vec![
                text("before "),
                text("a"),
                annotation(citation(AnnotationKind::Url)),
                annotation(citation(AnnotationKind::File)),
                annotation(citation(AnnotationKind::Other)),
                finish(Finish::Stop),
            ],
        ),
        (
            "with citations without a title",
            vec![
                text("a"),
                annotation(bare_citation(AnnotationKind::Url)),
                annotation(bare_citation(AnnotationKind::File)),
                finish(Finish::Stop),
            ],
        ),
        ("with log-probabilities", vec![logprobs(true), text("a"), finish(Finish::Stop)]),
        ("with log-probabilities without bytes", vec![logprobs(false), text("a"), finish(Finish::Stop)]),
        (
            "with tool calls",
            vec![
                tool_call("c1", CallKind::Function, "{\"a\":1}"),
                tool_call("c2", CallKind::Function, ""),
                finish(Finish::ToolCalls),
            ],
        ),
        (
            "with a custom tool call",
            vec![text("a"), tool_call("c1", CallKind::Custom, "raw input"), finish(Finish::ToolCalls)],
        ),
        (
            "with text after a tool call",
            vec![text("a"), tool_call("c1", CallKind::Function, "{}"), text("b"), finish(Finish::ToolCalls)],
        ),
        ("with a call in the legacy form", vec![legacy_call(), finish(Finish::FunctionCall)]),
        ("without output", vec![finish(Finish::Stop)]),
        ("without output or finish", vec![text("a")]),
        ("with all token counts", vec![text("a"), tokens(Usage::ZERO), finish(Finish::Stop)]),
        (
            "with one token count",
            vec![text("a"), tokens(Usage { input: Some(3), ..Usage::default() }), finish(Finish::Stop)],
        ),
    ]
}

/// Arguments of a call that are no object, for a dialect that sends them as JSON: what is special about them, and which
/// policy keeps them from its clients. Models write such arguments now and then.
fn unusual_arguments(dialect: &DialectPlan) -> Vec<(&'static str, &'static str, &'static str)> {
    if !dialect.stream_reads.inputs && !dialect.body_reads.inputs {
        return Vec::new();
    }
    let policies = &dialect.resolved.policies;
    let as_fault = "with `invalid_arguments: fault` below `policies:` such a call is a fault";
    let not_json = ("with arguments of a call that are not JSON", "{\"a\":", as_fault);
    let help = match (policies.non_object_arguments, policies.invalid_arguments) {
        (NonObjectArguments::Invalid, _) => as_fault,
        (NonObjectArguments::Keep, InvalidArguments::Fault) => {
            "with `non_object_arguments: invalid` below `policies:` such a call is a fault"
        }
        (NonObjectArguments::Keep, InvalidArguments::Text) => {
            "with `non_object_arguments: invalid` and `invalid_arguments: fault` below `policies:` such a call is a fault"
        }
    };
    vec![
        ("with arguments of a call that are a list", "[1]", help),
        ("with arguments of a call that are a string", "\"a\"", help),
        ("with arguments of a call that are a number", "1", help),
        ("with arguments of a call that are null", "null", help),
        not_json,
    ]
}

/// The words that the dialect looks up in its tables and finds in the client's body, each with its path.
fn request_words(dialect: &DialectPlan) -> Vec<(Vec<Arc<str>>, String)> {
    let mut words: Vec<(Vec<Arc<str>>, String)> = Vec::new();
    let mut add = |expression: &Expression| {
        let Expression::Chain { path, filters, .. } = expression else { return };
        let (Some(Filter::Table(table)), [root, raw, member @ ..]) = (filters.first(), &path.0[..]) else { return };
        if &**root == "request" && &**raw == "raw" && !member.is_empty() {
            let rows = table.keys().map(|word| (member.to_vec(), word.to_owned()));
            let new: Vec<_> = rows.filter(|row| !words.contains(row)).collect();
            words.extend(new);
        }
    };
    dialect.outputs().for_each(|skeleton| skeleton.visit(&mut |visited| add(visited.expression)));
    words
}

fn start() -> Event {
    Event::Start { id: Some("id".into()), model: Some("model".into()), created: Some(1_767_225_600) }
}

fn text(delta: &str) -> Event {
    text_in(0, delta)
}

fn text_in(choice: usize, delta: &str) -> Event {
    Event::Text { choice, item: None, part: None, delta: Delta::Append(delta.into()) }
}

fn refusal(delta: &str) -> Event {
    Event::Refusal { choice: 0, item: None, part: None, delta: Delta::Append(delta.into()) }
}

fn reasoning(kind: ReasoningKind, delta: &str) -> Event {
    let delta = Some(Delta::Append(delta.into()));
    Event::Reasoning { choice: 0, item: None, kind, part: None, delta, encrypted: None }
}

fn encrypted_reasoning() -> Event {
    let encrypted = Some("sealed".into());
    Event::Reasoning { choice: 0, item: None, kind: ReasoningKind::Raw, part: None, delta: None, encrypted }
}

fn citation(kind: AnnotationKind) -> Annotation {
    Annotation {
        kind: Some(kind),
        url: Some("https://example.com/".into()),
        title: Some("title".into()),
        file: Some("file".into()),
        name: Some("name".into()),
        start: Some(0),
        end: Some(1),
        index: Some(0),
        value: None,
    }
}

fn annotation(annotation: Annotation) -> Event {
    Event::Annotation { choice: 0, item: None, annotation }
}

fn logprobs(is_full: bool) -> Event {
    let token = |top: Tree| {
        let bytes = if is_full { Tree::from(vec![Tree::from(97i64)]) } else { Tree::Null };
        Tree::map([
            ("token", Tree::from("a")),
            ("logprob", Tree::from(-0.5f64)),
            ("bytes", bytes),
            ("top_logprobs", top),
        ])
    };
    let top = if is_full { Tree::from(vec![token(Tree::Null)]) } else { Tree::Null };
    Event::Logprobs { choice: 0, item: None, logprobs: Logprobs::read(Tree::from(vec![token(top)])) }
}

fn tool_call(id: &str, kind: CallKind, arguments: &str) -> Event {
    let delta = Some(Delta::Append(arguments.into()));
    Event::Tool {
        choice: 0,
        key: Some(id.into()),
        id: Some(id.into()),
        name: Some("f".into()),
        kind: Some(kind),
        by: Derived::default(),
        legacy: false,
        literal: Derived::default(),
        delta,
    }
}

fn legacy_call() -> Event {
    Event::Tool {
        choice: 0,
        key: None,
        id: None,
        name: Some("f".into()),
        kind: None,
        by: Derived::default(),
        legacy: true,
        literal: Derived::default(),
        delta: Some(Delta::Append("{\"a\":1}".into())),
    }
}

fn usage() -> Event {
    tokens(Usage { input: Some(3), output: Some(2), total: Some(5), cached: Some(1), ..Usage::default() })
}

fn tokens(usage: Usage) -> Event {
    Event::Usage { usage, merge: Merge::Replace, trigger: None }
}

fn finish(reason: Finish) -> Event {
    Event::Finish { choice: None, reason: Some(reason), other: None }
}

fn fault(kind: FaultKind, code: Option<&str>) -> Event {
    let fault = Fault { code: code.map(str::to_owned), ..Fault::new(kind, "what went wrong") };
    Event::Fault { fault, is_final: true }
}

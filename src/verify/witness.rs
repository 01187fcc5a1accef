//! Renders every frame of a set with witness values before the set is used: synthetic turns that contain every kind of
//! event that a backend can send. A frame that violates its schema in all of them can never satisfy it.

use super::runner;
use super::violation::locate_mismatch;
use crate::diagnostics::{Code, Diagnostic, Sources, Span};
use crate::domain::request_item::Derived;
use crate::domain::{
    Annotation, AnnotationKind, CallKind, Delta, Event, Fault, FaultKind, Finish, Logprobs, Merge, ReasoningKind,
    StreamEnd, Tree, TurnRequest, Usage, WorkBudget,
};
use crate::engine::encode;
use crate::engine::pipeline::{
    Observer, Pipeline, ResponseMode, SchemaMismatch, TraceEvent, TurnSpec, ViolationCause, lock,
};
use crate::mapping::Plan;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::Validation;
use crate::mapping::policy::variants::reachable_dialects;
use crate::mapping::source::layout::SetFile;
use reframe_json::ViolationKind;
use std::sync::{Arc, Mutex};

#[derive(Default)]
pub struct WitnessResult {
    /// One diagnostic for each frame that cannot satisfy its schema.
    pub found: Vec<Diagnostic>,
    /// How many frames, bodies and errors were rendered.
    pub shapes: usize,
}

pub fn check_witnesses(plan: &Plan, budget: &WorkBudget) -> WitnessResult {
    let mut result = WitnessResult::default();
    let Some(backend) = plan.backends.first() else { return result };
    let mut unsatisfiable: Vec<Unsatisfiable> = Vec::new();
    let reachable = reachable_dialects(plan.gateway.routes.iter().filter(|r| r.validation != Validation::Off));
    for &(route, dialect, ref client) in &reachable {
        let file = plan.sources.get(dialect.body.span.file).map_or("", |source| source.name.as_str());
        budget.begin(file, format!("rendering the frames of `{}` for the route {}{client}", dialect.name, route.path));
        let attempts = Arc::new(Mutex::new(Attempts::default()));
        for turn in witness_turns() {
            if !budget.spend(super::STEPS_PER_EVENT * turn.events.len() as u64) {
                return result;
            }
            run_turn(backend, dialect, &turn, &attempts);
        }
        for kind in FaultKind::ALL {
            check_error(dialect, &Fault::new(*kind, "what went wrong"), &attempts);
            let detailed = Fault { code: Some("code".into()), ..Fault::new(*kind, "what went wrong").param("param") };
            check_error(dialect, &detailed, &attempts);
        }
        let attempts = std::mem::take(&mut *lock(&attempts));
        result.shapes += attempts.frames.len();
        for mismatch in attempts.unsatisfiable() {
            let location = locate_mismatch(&mismatch, dialect, plan);
            // A mistake in `base:` or in a fragment affects every frame that uses it and is reported once.
            let same = |known: &&mut Unsatisfiable| known.location == location || known.is_same_mistake(&mismatch);
            match unsatisfiable.iter_mut().find(same) {
                Some(first) => first.add(mismatch.what, dialect),
                None => {
                    let (others, dialects) = (Vec::new(), vec![dialect]);
                    unsatisfiable.push(Unsatisfiable { location, mismatch, client: client.clone(), others, dialects });
                }
            }
        }
    }
    let all: Vec<&Arc<DialectPlan>> = reachable.iter().map(|(_, dialect, _)| *dialect).collect();
    result.found = unsatisfiable.iter().map(|u| u.diagnostic(&all, &plan.sources)).collect();
    result
}

/// A frame, body or error that no values can make valid.
struct Unsatisfiable<'p> {
    location: Span,
    mismatch: SchemaMismatch,
    /// The client that would get it, if not every client.
    client: String,
    /// Further frames with the same mistake.
    others: Vec<String>,
    /// The dialects that contain the mistake.
    dialects: Vec<&'p Arc<DialectPlan>>,
}

impl<'p> Unsatisfiable<'p> {
    /// If no line is found, equal mistakes in one file count as one.
    fn is_same_mistake(&self, other: &SchemaMismatch) -> bool {
        let mine = &self.mismatch;
        let is_same_cause = || mine.schema == other.schema && mine.reason() == other.reason();
        self.location == mine.template && self.location.file == other.template.file && is_same_cause()
    }

    fn add(&mut self, what: String, dialect: &'p Arc<DialectPlan>) {
        if what != self.mismatch.what && !self.others.contains(&what) {
            self.others.push(what);
        }
        self.dialects.push(dialect);
    }

    /// `all`: every dialect that was checked.
    fn diagnostic(&self, all: &[&Arc<DialectPlan>], sources: &Sources) -> Diagnostic {
        let SchemaMismatch { what, schema, .. } = &self.mismatch;
        let reason = self.mismatch.reason();
        let profile = self.profile(all, sources);
        let message = format!("{what} never satisfies its schema{profile}{}: {reason}", self.client);
        let help = match allowing_line(&self.mismatch) {
            Some(line) => format!("allow it in schemas/{schema}: {line}"),
            None => format!("output is defined in two files: this mapping, and schemas/{schema}, which must allow it"),
        };
        let help = match &self.others[..] {
            [] => help,
            [one] => format!("{help}; the same in {one}"),
            [one, more @ ..] => format!("{help}; the same in {one} and {} more", more.len()),
        };
        Diagnostic::new(Code::UnsatisfiableFrame, self.location, message).help(help)
    }

    /// The profile that causes the mistake: without it the dialect is valid.
    fn profile(&self, all: &[&Arc<DialectPlan>], sources: &Sources) -> String {
        let Some(DialectPlan { name, profile: Some(profile), .. }) = self.dialects.first().map(|d| &***d) else {
            return String::new();
        };
        let mut same_dialect = all.iter().filter(|d| d.name == *name);
        let is_valid = |d: &&Arc<DialectPlan>| !self.dialects.iter().any(|invalid| invalid.profile == d.profile);
        let is_cause = same_dialect.any(is_valid)
            || sources.get(self.location.file).is_some_and(|s| SetFile::Profile.matches(&s.name));
        if is_cause { format!(" with the profile `{profile}`") } else { String::new() }
    }
}

/// The line of the schema that would allow an unknown member.
fn allowing_line(mismatch: &SchemaMismatch) -> Option<String> {
    let ViolationKind::NotAllowed(names) = &mismatch.violation.kind else { return None };
    let name = names.first()?;
    let kind = match mismatch.data.as_ref()?.pointer(&mismatch.violation.pointer)?.get(name)? {
        Tree::Num(n) if n.as_i64().is_some() => "integer",
        other => other.type_name(),
    };
    Some(format!("\"{name}\": {{ \"type\": \"{kind}\" }}"))
}

/// The results of each frame, by its span in the mapping.
#[derive(Default)]
struct Attempts {
    /// The span, whether the frame was valid at least once, and its first violation.
    frames: Vec<(Span, bool, Option<SchemaMismatch>)>,
    /// The frame of the last violation. Its `Frame` event follows and does not count as valid.
    violating: Option<Span>,
}

impl Attempts {
    fn record(&mut self, span: Span, found: Option<SchemaMismatch>) {
        let at = match self.frames.iter().position(|(s, ..)| *s == span) {
            Some(at) => at,
            None => {
                self.frames.push((span, false, None));
                self.frames.len() - 1
            }
        };
        let (_, is_valid, violation) = &mut self.frames[at];
        match found {
            None => *is_valid = true,
            Some(found) => *violation = violation.take().or(Some(found)),
        }
    }

    fn unsatisfiable(self) -> impl Iterator<Item = SchemaMismatch> {
        self.frames.into_iter().filter(|(_, is_valid, _)| !is_valid).filter_map(|(.., violation)| violation)
    }
}

impl Observer for Attempts {
    fn on(&mut self, event: TraceEvent) {
        match event {
            TraceEvent::Violation(violation) => {
                if let ViolationCause::Schema(mismatch) = &violation.cause {
                    self.violating = Some(mismatch.template);
                    self.record(mismatch.template, Some(SchemaMismatch::clone(mismatch)));
                }
            }
            TraceEvent::Frame(_, span) | TraceEvent::Body(_, span) if self.violating.take() != Some(span) => {
                self.record(span, None);
            }
            _ => {}
        }
    }
}

fn run_turn(
    backend: &Arc<BackendPlan>,
    dialect: &Arc<DialectPlan>,
    turn: &WitnessTurn,
    attempts: &Arc<Mutex<Attempts>>,
) {
    for mode in [ResponseMode::Stream, ResponseMode::Body] {
        let stream = mode == ResponseMode::Stream;
        let request = Arc::new(TurnRequest::synthetic("witness", stream, turn.usage, turn.choices));
        let spec = TurnSpec {
            validation: Validation::Report,
            now_ms: 1_767_225_600_000,
            ..runner::test_turn_spec(backend, dialect, request, mode)
        };
        let mut pipeline = Pipeline::new(spec).with_observer(Box::new(attempts.clone()));
        pipeline.begin();
        for event in &turn.events {
            pipeline.push_event(event.clone(), 1_767_225_600_007);
        }
        pipeline.finish(StreamEnd::Marker, 1_767_225_600_009);
        if mode == ResponseMode::Body {
            // The observer records the result.
            let _ = pipeline.body();
        }
    }
}

/// Renders an error response and records whether it is valid.
fn check_error(dialect: &DialectPlan, fault: &Fault, attempts: &Arc<Mutex<Attempts>>) {
    let Some(named) = &dialect.errors.schema else { return };
    let Ok(data) = encode::error(dialect, fault) else { return };
    let template = dialect.errors.span;
    let mismatch = named.schema.check(&data).err().map(|violation| SchemaMismatch {
        what: format!("the error of `{}`", dialect.name),
        template,
        schema: named.name.clone(),
        violation,
        data: Some(data),
    });
    lock(attempts).record(template, mismatch);
}

/// A synthetic turn.
struct WitnessTurn {
    choices: usize,
    usage: bool,
    events: Vec<Event>,
}

fn witness_turns() -> Vec<WitnessTurn> {
    let turn = |usage: bool, events: Vec<Event>| WitnessTurn { choices: 1, usage, events };
    let finishes = Finish::ALL.iter().map(|reason| vec![text("a"), text("b"), usage(), finish(*reason)]);
    let faults = FaultKind::ALL.iter().map(|kind| vec![text("a"), fault(*kind, None)]);
    let with_code = vec![text("a"), fault(FaultKind::Backend, Some("code"))];
    let two_choices = vec![text("a"), text_in(1, "b"), usage(), finish(Finish::Stop)];
    let without_usage = [
        vec![start(), text("a"), finish(Finish::Stop)],
        vec![refusal("no"), finish(Finish::Stop)],
        vec![
            reasoning(ReasoningKind::Summary, "s"),
            reasoning(ReasoningKind::Raw, "r"),
            text("a"),
            usage(),
            finish(Finish::Stop),
        ],
        vec![encrypted_reasoning(), text("a"), finish(Finish::Stop)],
        vec![
            text("before "),
            text("a"),
            annotation(AnnotationKind::Url),
            annotation(AnnotationKind::File),
            annotation(AnnotationKind::Other),
            finish(Finish::Stop),
        ],
        vec![logprobs(), text("a"), finish(Finish::Stop)],
        vec![
            tool_call("c1", CallKind::Function, "{\"a\":1}"),
            tool_call("c2", CallKind::Function, ""),
            finish(Finish::ToolCalls),
        ],
        vec![text("a"), tool_call("c1", CallKind::Custom, "raw input"), finish(Finish::ToolCalls)],
        vec![finish(Finish::Stop)],
        vec![text("a")],
    ];
    // The first violation of a frame is the one that is reported, so the order matters.
    let turns = finishes.map(|events| turn(true, events));
    let turns = turns.chain(without_usage.map(|events| turn(false, events)));
    let turns = turns.chain(faults.chain([with_code]).map(|events| turn(true, events)));
    turns.chain([WitnessTurn { choices: 2, ..turn(true, two_choices) }]).collect()
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

fn annotation(kind: AnnotationKind) -> Event {
    let annotation = Annotation {
        kind: Some(kind),
        url: Some("https://example.com/".into()),
        title: Some("title".into()),
        file: Some("file".into()),
        name: Some("name".into()),
        start: Some(0),
        end: Some(1),
        index: Some(0),
        value: None,
    };
    Event::Annotation { choice: 0, item: None, annotation }
}

fn logprobs() -> Event {
    let token = |top: Tree| {
        Tree::map([
            ("token", Tree::from("a")),
            ("logprob", Tree::from(-0.5f64)),
            ("bytes", Tree::from(vec![Tree::from(97i64)])),
            ("top_logprobs", top),
        ])
    };
    let value = Tree::from(vec![token(Tree::from(vec![token(Tree::Null)]))]);
    Event::Logprobs { choice: 0, item: None, logprobs: Logprobs::read(value) }
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
        delta,
    }
}

fn usage() -> Event {
    let usage = Usage { input: Some(3), output: Some(2), total: Some(5), cached: Some(1), ..Usage::default() };
    Event::Usage { usage, merge: Merge::Replace }
}

fn finish(reason: Finish) -> Event {
    Event::Finish { choice: None, reason: Some(reason), other: None }
}

fn fault(kind: FaultKind, code: Option<&str>) -> Event {
    let fault = Fault { code: code.map(str::to_owned), ..Fault::new(kind, "what went wrong") };
    Event::Fault { fault, is_final: true }
}

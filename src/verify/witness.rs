//! Renders every frame of a set with witness values before the set is used: synthetic turns that contain every kind of
//! event that a backend can send. A frame that violates its schema in one of them would be an error for a client.

use super::runner;
use super::schema_advice::advice;
use super::violation::locate_mismatch;
use super::witness_turns::{WitnessTurn, witness_turns};
use crate::diagnostics::{Code, Diagnostic, Sources, Span};
use crate::domain::{Fault, FaultKind, StreamEnd, WorkBudget};
use crate::engine::encode;
use crate::engine::pipeline::{
    Observer, Pipeline, ResponseMode, SchemaMismatch, TraceEvent, TurnSpec, ViolationCause, lock,
};
use crate::mapping::Plan;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::Validation;
use crate::mapping::policy::variants::reachable_values;
use crate::mapping::source::layout::SetFile;
use crate::mapping::two_threads;
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
    let reachable = reachable_values(plan.gateway.routes.iter().filter(|r| r.validation != Validation::Off));
    let turns: Vec<Vec<WitnessTurn>> = reachable.iter().map(|(_, dialect, _)| witness_turns(dialect)).collect();
    let mut ahead = match turns.iter().flatten().map(steps).sum::<u64>() < budget.left() {
        true => two_threads::results(turns.len(), |at| attempts(backend, reachable[at].1, &turns[at], budget)),
        false => None,
    };
    for (at, &(route, dialect, ref client)) in reachable.iter().enumerate() {
        let file = plan.sources.get(dialect.body.span.file).map_or("", |source| source.name.as_str());
        budget.begin(file, format!("rendering the frames of `{}` for the route {}{client}", dialect.name, route.path));
        let known = ahead.as_mut().and_then(|ahead| ahead[at].take());
        let Some(attempts) = known.or_else(|| attempts(backend, dialect, &turns[at], budget)) else { return result };
        result.shapes += attempts.frames.len();
        for (span, fault, when) in &attempts.not_rendered {
            if !result.found.iter().any(|d| d.span == *span) {
                let message = format!("{}, {when}: {}", fault.message, fault.detail.as_deref().unwrap_or_default());
                let help = "a value can be absent, which is null: `default(…)` replaces it";
                result.found.push(Diagnostic::new(Code::UnsatisfiableFrame, *span, message).help(help));
            }
        }
        for (mismatch, when, help) in attempts.violations() {
            let location = locate_mismatch(&mismatch, dialect, plan);
            // A mistake in `base:` or in a fragment affects every frame that uses it and is reported once.
            let same = |known: &&mut Unsatisfiable| known.location == location || known.is_same_mistake(&mismatch);
            match unsatisfiable.iter_mut().find(same) {
                Some(first) => first.add(mismatch.what, dialect),
                None => {
                    let (others, dialects) = (Vec::new(), vec![dialect]);
                    let client = client.clone();
                    unsatisfiable.push(Unsatisfiable { location, mismatch, when, help, client, others, dialects });
                }
            }
        }
    }
    let all: Vec<&Arc<DialectPlan>> = reachable.iter().map(|(_, dialect, _)| *dialect).collect();
    result.found.extend(unsatisfiable.iter().map(|u| u.diagnostic(&all, &plan.sources)));
    result
}

/// Steps of the budget that a turn takes.
fn steps(turn: &WitnessTurn) -> u64 {
    super::STEPS_PER_EVENT * turn.events.len() as u64
}

/// The results of all turns and faults. `None`: the budget is exhausted.
fn attempts(
    backend: &Arc<BackendPlan>,
    dialect: &Arc<DialectPlan>,
    turns: &[WitnessTurn],
    budget: &WorkBudget,
) -> Option<Attempts> {
    let attempts = Arc::new(Mutex::new(Attempts::default()));
    for turn in turns {
        if !budget.spend(steps(turn)) {
            return None;
        }
        lock(&attempts).begin(turn.about.clone(), turn.help);
        run_turn(backend, dialect, turn, &attempts);
    }
    for kind in FaultKind::ALL {
        lock(&attempts).begin(format!("with the fault `{}`", kind.name()), None);
        check_error(dialect, &Fault::new(*kind, "what went wrong"), &attempts);
        let detailed = Fault { code: Some("code".into()), ..Fault::new(*kind, "what went wrong").param("param") };
        check_error(dialect, &detailed, &attempts);
    }
    Some(std::mem::take(&mut *lock(&attempts)))
}

/// A frame, body or error that violates its schema.
struct Unsatisfiable<'p> {
    location: Span,
    mismatch: SchemaMismatch,
    /// The witness for which it does; `None` if it does for all of them.
    when: Option<String>,
    /// What keeps it from clients, besides an edit of the schema.
    help: Option<&'static str>,
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
        let SchemaMismatch { what, .. } = &self.mismatch;
        let reason = self.mismatch.reason();
        let profile = self.profile(all, sources);
        let message = match &self.when {
            None => format!("{what} never satisfies its schema{profile}{}: {reason}", self.client),
            Some(when) => format!("{what} violates its schema{profile}{}, {when}: {reason}", self.client),
        };
        let help = self.help.map_or(String::new(), |help| format!("{help}; ")) + &advice(&self.mismatch, sources);
        let help = match &self.others[..] {
            [] => help,
            [one] => format!("{help}; the same in {one}"),
            [one, more @ ..] => format!("{help}; the same in {one} and {} more", more.len()),
        };
        Diagnostic::new(Code::UnsatisfiableFrame, self.location, message).help(help)
    }

    /// The profile that causes the mistake: without it the dialect is valid.
    fn profile(&self, all: &[&Arc<DialectPlan>], sources: &Sources) -> String {
        let first = self.dialects.first();
        let Some((name, profile)) = first.and_then(|d| Some((&d.name, d.profile.as_ref()?))) else {
            return String::new();
        };
        let mut same_dialect = all.iter().filter(|d| d.name == *name);
        let is_valid = |d: &&Arc<DialectPlan>| !self.dialects.iter().any(|invalid| invalid.profile == d.profile);
        let is_cause = same_dialect.any(is_valid)
            || sources.get(self.location.file).is_some_and(|s| SetFile::Profile.matches(&s.name));
        if is_cause { format!(" with the profile `{profile}`") } else { String::new() }
    }
}

/// The results of each frame, by its span in the mapping.
#[derive(Default)]
struct Attempts {
    frames: Vec<FrameAttempts>,
    /// The frame of the last violation. Its `Frame` event follows and does not count as valid.
    violating: Option<Span>,
    /// Frames with an expression that fails, each with its first witness.
    not_rendered: Vec<(Span, Fault, String)>,
    /// What is special about the current witness.
    about: String,
    /// What keeps it from clients.
    help: Option<&'static str>,
}

struct FrameAttempts {
    span: Span,
    /// It was valid at least once.
    is_valid: bool,
    /// Each reason once, with the witness.
    violations: Vec<(SchemaMismatch, String, Option<&'static str>)>,
}

/// How many different violations of one frame are reported.
const MAX_VIOLATIONS: usize = 8;

impl Attempts {
    /// The next witness.
    fn begin(&mut self, about: String, help: Option<&'static str>) {
        (self.about, self.help) = (about, help);
    }

    fn record(&mut self, span: Span, found: Option<SchemaMismatch>) {
        let at = self.frames.iter().position(|frame| frame.span == span).unwrap_or_else(|| {
            self.frames.push(FrameAttempts { span, is_valid: false, violations: Vec::new() });
            self.frames.len() - 1
        });
        let frame = &mut self.frames[at];
        let Some(found) = found else {
            frame.is_valid = true;
            return;
        };
        let is_known = |(known, ..): &(SchemaMismatch, String, _)| known.violation == found.violation;
        if frame.violations.len() < MAX_VIOLATIONS && !frame.violations.iter().any(is_known) {
            frame.violations.push((found, self.about.clone(), self.help));
        }
    }

    /// Of a frame that is never valid, the first violation.
    fn violations(self) -> impl Iterator<Item = (SchemaMismatch, Option<String>, Option<&'static str>)> {
        self.frames.into_iter().flat_map(|frame| {
            let count = if frame.is_valid { MAX_VIOLATIONS } else { 1 };
            let violations = frame.violations.into_iter().take(count);
            violations.map(move |(mismatch, about, help)| (mismatch, frame.is_valid.then_some(about), help))
        })
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
            TraceEvent::NotRendered(fault, span) if !self.not_rendered.iter().any(|(known, ..)| *known == span) => {
                self.not_rendered.push((span, fault.clone(), self.about.clone()));
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
        let request = Arc::new(turn.request.build(stream, turn.choices));
        let spec = TurnSpec {
            validation: Validation::Report,
            now_ms: 1_767_225_600_000,
            ..runner::test_turn_spec(backend, dialect, request, mode)
        };
        let mut pipeline = Pipeline::new(spec).with_observer(Box::new(attempts.clone()));
        pipeline.begin();
        if stream {
            pipeline.keepalive();
        }
        for event in &turn.events {
            pipeline.push_event(event.clone(), 1_767_225_600_007);
            if stream {
                pipeline.keepalive();
            }
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

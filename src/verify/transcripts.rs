//! Replays the transcripts of a set through every route before the set is used: a violation of a schema or an order
//! there would also occur with a client.

use super::runner::test_turn_spec;
use super::schema_advice::advice;
use super::violation::{FirstViolation, locate};
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::{Fault, FaultKind, TurnRequest, WorkBudget};
use crate::engine::pipeline::{Pipeline, ResponseMode, Violation, ViolationCause, lock};
use crate::mapping::Plan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::Validation;
use crate::mapping::config::transcript::Transcript;
use crate::mapping::policy::variants::reachable_dialects;
use crate::mapping::two_threads;
use std::sync::{Arc, Mutex};

/// Longer transcripts are skipped: they cover no more than shorter ones.
const MAX_LINES: usize = 64;

const ORDER_HELP: &str = "add the moment to this order; `reframe check --explain RF203` explains how to widen an order";

pub struct TranscriptReplay {
    /// At most one diagnostic per route and location.
    pub found: Vec<Diagnostic>,
    pub transcripts: usize,
    /// Routes that share a compiled dialect count once.
    pub routes: usize,
}

pub fn replay_transcripts(plan: &Plan, budget: &WorkBudget) -> TranscriptReplay {
    let mut found: Vec<Diagnostic> = Vec::new();
    let reachable = reachable_dialects(plan.gateway.routes.iter().filter(|r| r.validation == Validation::Strict));
    let steps = |transcript: &Transcript| {
        let source = plan.sources.get(transcript.backend_span.file);
        let bytes = source.map_or(0, |source| source.text.len() as u64);
        super::STEPS_PER_EVENT * transcript.lines.len() as u64 + bytes
    };
    let all_steps = short(plan).map(|transcript| steps(transcript)).sum::<u64>() * reachable.len() as u64;
    let replay_all = |at: usize| -> Vec<Option<[ReplayResult; 2]>> {
        let replay =
            |t: &Arc<Transcript>| budget.spend(steps(t)).then(|| MODES.map(|m| replay(plan, reachable[at].1, t, m)));
        short(plan).map(replay).collect()
    };
    let mut ahead = match all_steps < budget.left() {
        true => two_threads::results(reachable.len(), replay_all),
        false => None,
    };
    'routes: for (at, &(route, dialect, ref client)) in reachable.iter().enumerate() {
        for (number, transcript) in short(plan).enumerate() {
            let source = plan.sources.get(transcript.backend_span.file);
            let file = source.map_or("", |source| source.name.as_str());
            budget.begin(file, format!("replaying this transcript through the route {}{client}", route.path));
            let known = ahead.as_mut().and_then(|ahead| ahead[at][number].take());
            let now = || budget.spend(steps(transcript)).then(|| MODES.map(|m| replay(plan, dialect, transcript, m)));
            let Some(results) = known.or_else(now) else { break 'routes };
            for (fault, violation) in results.into_iter().flatten() {
                let span = violation.as_ref().map_or(dialect.body.span, |violation| locate(violation, dialect, plan));
                if found.iter().any(|d| d.span == span) {
                    continue;
                }
                let shown = dialect.profile.as_ref().map_or(String::new(), |p| format!(" with the profile `{p}`"));
                let reason = violation.as_ref().map_or_else(|| fault.full_message(), Violation::message);
                let message = format!(
                    "replayed as `{}`{shown}{client}, the transcript `{}` fails: {reason}",
                    dialect.name, transcript.name
                );
                let help = match violation.map(|v| v.cause) {
                    Some(ViolationCause::Order(_)) => ORDER_HELP.to_owned(),
                    Some(ViolationCause::Schema(mismatch)) => advice(&mismatch, &plan.sources),
                    None => "an expression of the mapping fails with the values of this transcript".to_owned(),
                };
                found.push(Diagnostic::new(Code::TranscriptFailed, span, message).help(help));
            }
        }
    }
    TranscriptReplay { found, transcripts: short(plan).count(), routes: reachable.len() }
}

/// A fault that the mapping causes, with the violation if it is one.
type ReplayResult = Option<(Fault, Option<Violation>)>;

const MODES: [ResponseMode; 2] = [ResponseMode::Stream, ResponseMode::Body];

fn short(plan: &Plan) -> impl Iterator<Item = &Arc<Transcript>> {
    plan.transcripts.iter().filter(|t| t.lines.len() <= MAX_LINES)
}

fn replay(plan: &Plan, dialect: &Arc<DialectPlan>, transcript: &Transcript, mode: ResponseMode) -> ReplayResult {
    let first = Arc::new(Mutex::new(FirstViolation::default()));
    let request = Arc::new(TurnRequest::synthetic("replay", mode == ResponseMode::Stream, true, 1));
    let spec = test_turn_spec(plan.backend(&transcript.backend)?, dialect, request, mode);
    let mut pipeline = Pipeline::new(spec).with_observer(Box::new(first.clone()));
    pipeline.replay(transcript.lines.iter().map(|l| &l.event), 0);
    let fault = match mode {
        ResponseMode::Stream => pipeline.fault().cloned(),
        ResponseMode::Body => pipeline.body().err(),
    };
    // Transcripts with several choices do not apply to a dialect that cannot request several.
    if pipeline.state().choices.len() > 1 && dialect.request.param_of("n").is_none() {
        return None;
    }
    let is_mapping_fault = |f: &Fault| matches!(f.kind, FaultKind::Violation | FaultKind::Internal);
    fault.filter(is_mapping_fault).map(|fault| (fault, lock(&first).0.take()))
}

//! Before a set goes live, its own transcripts are played through every route: what breaks its schema or its order
//! there would break it in front of a client.

use super::runner::tried;
use super::violation::{First, Wrong};
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::{Fault, FaultKind, TurnRequest};
use crate::engine::pipeline::{Answer, Pipeline};
use crate::mapping::Plan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::Validation;
use crate::mapping::config::transcript::Transcript;
use std::sync::Arc;

/// Longer ones show nothing that shorter ones do not.
const MAX_LINES: usize = 64;

const SHAPE_HELP: &str = "a shape is two files: the mapping that makes it and the schema that allows it";
const ORDER_HELP: &str =
    "give the moment a place in this order; `reframe check --explain RF203` says how an order is widened";

pub struct Rehearsal {
    /// One finding for each route and place at most.
    pub found: Vec<Diagnostic>,
    pub transcripts: usize,
    /// Those that speak the same dialect under the same profile are one.
    pub routes: usize,
}

pub fn rehearse(plan: &Plan) -> Rehearsal {
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut seen: Vec<*const DialectPlan> = Vec::new();
    let routes = plan.gateway.routes.iter().filter(|r| r.validation == Validation::Strict);
    for (dialect, client) in routes.flat_map(|r| r.variants.reachable()) {
        if seen.contains(&Arc::as_ptr(dialect)) {
            continue;
        }
        seen.push(Arc::as_ptr(dialect));
        for transcript in short(plan) {
            for answer in [Answer::Stream, Answer::Body] {
                let Some((fault, wrong)) = play(plan, dialect, transcript, answer) else { continue };
                let span = wrong.as_ref().map_or(dialect.body.span, |wrong| wrong.place(dialect, plan));
                if found.iter().any(|d| d.span == span) {
                    continue;
                }
                let shown = dialect.profile.as_ref().map_or(String::new(), |p| format!(" with the profile `{p}`"));
                let why = wrong.as_ref().map_or(fault.message, Wrong::says);
                let message = format!(
                    "played as `{}`{shown}{client}, the transcript `{}` goes wrong: {why}",
                    dialect.name, transcript.name
                );
                let help = match &wrong {
                    Some(Wrong::Order(..)) => ORDER_HELP,
                    Some(Wrong::Shape(_)) | None => SHAPE_HELP,
                };
                found.push(Diagnostic::new(Code::FailedRehearsal, span, message).help(help));
            }
        }
    }
    Rehearsal { found, transcripts: short(plan).count(), routes: seen.len() }
}

fn short(plan: &Plan) -> impl Iterator<Item = &Arc<Transcript>> {
    plan.transcripts.iter().filter(|t| t.lines.len() <= MAX_LINES)
}

fn play(
    plan: &Plan,
    dialect: &Arc<DialectPlan>,
    transcript: &Transcript,
    answer: Answer,
) -> Option<(Fault, Option<Wrong>)> {
    let first = First::default();
    let mut view = TurnRequest::plain("rehearsed", answer == Answer::Stream).view;
    view.insert("usage", true.into());
    let request = Arc::new(TurnRequest::new(view));
    let order = tried(plan.backend(&transcript.backend)?, dialect, request, answer);
    let mut pipeline = Pipeline::new(order).observe(Box::new(first.clone()));
    pipeline.play(transcript.lines.iter().map(|l| &l.what), 0);
    let fault = match answer {
        Answer::Stream => pipeline.fault().cloned(),
        Answer::Body => pipeline.body().err(),
    };
    // A dialect that cannot ask for several answers is not measured by a transcript that has them.
    let several = pipeline.state().choices.len() > 1 && dialect.request.param_of("n").is_none();
    if several {
        return None;
    }
    let ours = |f: &Fault| matches!(f.kind, FaultKind::Breach | FaultKind::Internal);
    fault.filter(ours).map(|fault| (fault, first.taken()))
}

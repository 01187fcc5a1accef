//! TurnRequest → backend → RawEvents. The only folder that talks to backends.

pub mod adapt_request;
pub mod build_request;
mod client;
pub mod decode;
mod http;
pub mod models;
mod replay;
pub mod secrets;

pub use client::Dialler;

use crate::domain::{Ended, Fault, FaultKind, Hidden, Masks, Tree, TurnRequest};
use crate::mapping::Plan;
use crate::mapping::config::backend::{BackendPlan, Transport};
use crate::mapping::config::dialect_request::RequestPlan;
use crate::mapping::config::gateway::Backend;
use http::{Bounds, Http};
use replay::Replay;
use std::sync::Arc;
use std::task::{Context, Poll};

/// What arrives from a backend.
#[derive(Debug)]
pub enum Arrived {
    Raw(Tree),
    /// A piece that cannot be read, and why.
    Skipped(String),
    /// The backend said no instead of answering.
    Refused(Refusal),
    Ended(Ended),
    Failed(Fault),
}

/// A status that tells of an error, and what came with it.
#[derive(Debug)]
pub struct Refusal {
    pub status: u16,
    /// Seconds.
    pub retry_after: Option<u64>,
    /// Its body, for the backend's own rules to read.
    pub raws: Vec<Tree>,
    /// Its body as one line, where it is short enough: for a reason that the rules do not know.
    pub text: Option<String>,
}

/// What came so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub events: u64,
    pub skipped: u64,
    pub bytes: u64,
    /// As events, not as one document.
    pub streamed: bool,
}

/// A backend at work on one turn. Dropping it leaves the backend.
pub enum Source {
    Replay(Replay),
    Http(Box<Http>),
}

impl Source {
    /// After `Ended`, `Refused` and `Failed` it is not asked again.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Arrived> {
        match self {
            Source::Replay(replay) => replay.poll_next(cx),
            Source::Http(http) => http.poll_next(cx),
        }
    }

    /// Of a backend that is dialled.
    pub fn tally(&self) -> Option<Tally> {
        match self {
            Source::Replay(_) => None,
            Source::Http(http) => Some(http.tally()),
        }
    }
}

/// A backend that was asked.
pub struct Asked {
    pub source: Source,
    /// The rules that read its answer: a transcript names its own.
    pub rules: Arc<BackendPlan>,
    /// What of the request did not reach it, in the client's words.
    pub dropped: Vec<String>,
    pub masks: Masks,
    /// What no client may read: the key.
    pub hidden: Option<Hidden>,
}

/// Asks the backend.
pub fn ask(
    dialler: &Dialler,
    plan: &Plan,
    backend: &Backend,
    request: &TurnRequest,
    client: &RequestPlan,
) -> Result<Asked, Fault> {
    match backend.plan.transport {
        Transport::Replay => {
            let script = backend
                .script
                .as_ref()
                .ok_or_else(|| Fault::new(FaultKind::Internal, "the replay backend has no script"))?;
            let (transcript, pace) = crate::engine::render::choose(script, request)?;
            let rules = plan
                .backend(&transcript.backend)
                .ok_or_else(|| Fault::new(FaultKind::Internal, "the transcript's backend is gone"))?;
            let source = Source::Replay(Replay::new(transcript, pace));
            Ok(Asked { source, rules: rules.clone(), dropped: Vec::new(), masks: Masks::default(), hidden: None })
        }
        Transport::Http => dial(dialler, plan, backend, request, client),
        Transport::ChildJsonrpc => Err(Fault::new(
            FaultKind::Unreachable,
            format!("the backend `{}` is not reached by this version", backend.name),
        )),
    }
}

fn dial(
    dialler: &Dialler,
    plan: &Plan,
    backend: &Backend,
    request: &TurnRequest,
    client: &RequestPlan,
) -> Result<Asked, Fault> {
    let (Some(reach), Some(ask)) = (&backend.reach, &backend.plan.ask) else {
        return Err(Fault::new(FaultKind::Internal, "the backend has no address"));
    };
    let key = match &reach.key {
        None => None,
        Some(source) => match dialler.keys.get(source) {
            Some(key) => Some(key),
            None => {
                let (name, why) = (&backend.name, dialler.keys.why_missing(source));
                tracing::error!(backend = name, why, "the backend's key is missing");
                return Err(Fault::new(FaultKind::Internal, format!("the key of the backend `{name}` is missing")));
            }
        },
    };
    let mut composed = build_request::compose(ask, reach, key.as_ref(), request, client)?;
    let dropped = std::mem::take(&mut composed.dropped);
    let masks = Masks { custom: std::mem::take(&mut composed.wrapped), answer: composed.answer_tool.take() };
    let connections = dialler.client(reach).map_err(|why| {
        tracing::error!(why, "no connection can be made");
        Fault::new(FaultKind::Internal, "this gateway cannot open connections")
    })?;
    let limits = plan.gateway.limits;
    let bounds =
        Bounds { event_bytes: limits.event_bytes, answer_bytes: (!request.stream).then_some(limits.answer_bytes) };
    let hidden = key.as_ref().map(|key| Hidden::new(key.expose()));
    let source = Http::new(&connections, composed, backend.plan.clone(), bounds);
    Ok(Asked { source: Source::Http(Box::new(source)), rules: backend.plan.clone(), dropped, masks, hidden })
}

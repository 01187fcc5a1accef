//! TurnRequest → backend → raw events. The only folder that connects to backends.

mod aws_eventstream;
pub mod child;
mod client;
pub mod decode;
pub mod descriptors;
mod http;
mod http_client;
pub mod models;
mod outgoing_request;
mod replay;
pub mod secrets;

pub use child::StderrReader;
pub use client::ClientPool;

use crate::domain::{Fault, FaultKind, Redactor, StreamEnd, ToolAliases, Tree, TurnRequest};
use crate::engine::backend_request::{self, BackendRequest};
use crate::engine::conversation::{self, PreparedCalls};
use crate::engine::event_cache::{DeltaEvent, EventCache};
use crate::mapping::Plan;
use crate::mapping::config::backend::{BackendPlan, Transport};
use crate::mapping::config::dialect_request::RequestPlan;
use crate::mapping::config::gateway_backends::Backend;
use child::ChildSource;
use http::{HttpSource, SizeLimits};
use outgoing_request::OutgoingRequest;
use replay::ReplaySource;
use secrets::Secret;
use std::sync::Arc;
use std::task::{Context, Poll};

/// One step of an upstream response.
#[derive(Debug)]
pub enum UpstreamEvent {
    Raw(Tree),
    /// A raw event of a known shape.
    Delta(DeltaEvent),
    /// An event that cannot be parsed, and why.
    Malformed(String),
    /// The backend responded with an error status.
    Rejected(ErrorResponse),
    Ended(StreamEnd),
    Failed(Fault),
    /// A call was answered with an error. The fault applies unless the backend's rules read another one.
    CallFailed {
        raw: Tree,
        fault: Fault,
    },
}

/// An upstream response with an error status.
#[derive(Debug)]
pub struct ErrorResponse {
    pub status: u16,
    /// Seconds.
    pub retry_after: Option<u64>,
    /// The body, decoded, for the backend's rules.
    pub raws: Vec<Tree>,
    /// The body as one line, if it is short: the message if the rules find none.
    pub text: Option<String>,
}

/// What a backend has sent so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct UpstreamStats {
    pub events: u64,
    pub skipped: u64,
    pub bytes: u64,
    /// Bytes of events, also of those that are not complete: without comments and white space.
    pub data_bytes: u64,
    /// The response is a stream of events, not one JSON document.
    pub streamed: bool,
}

/// The upstream response of one turn. Dropping it cancels the upstream request.
pub enum UpstreamSource {
    Replay(ReplaySource),
    Http(Box<HttpSource>),
    Child(Box<ChildSource>),
}

impl UpstreamSource {
    /// Not to be polled after `Ended`, `Rejected` and `Failed`.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<UpstreamEvent> {
        match self {
            UpstreamSource::Replay(replay) => replay.poll_next(cx),
            UpstreamSource::Http(http) => http.poll_next(cx),
            UpstreamSource::Child(child) => child.poll_next(cx),
        }
    }

    /// The head of an HTTP response, once, if the rules of the backend read it.
    pub fn take_response_head(&mut self) -> Option<Tree> {
        match self {
            UpstreamSource::Replay(_) | UpstreamSource::Child(_) => None,
            UpstreamSource::Http(http) => http.take_response_head(),
        }
    }

    /// Events of known shapes are delivered as [`UpstreamEvent::Delta`]. Call before the first event.
    pub fn cache_events(&mut self, cache: EventCache) {
        match self {
            UpstreamSource::Replay(_) | UpstreamSource::Child(_) => {}
            UpstreamSource::Http(http) => http.cache_events(cache),
        }
    }

    /// The events so far have opened the turn.
    pub fn mark_turn_open(&mut self) {
        if let UpstreamSource::Http(http) = self {
            http.mark_turn_open();
        }
    }

    /// `None` for a replay.
    pub fn stats(&self) -> Option<UpstreamStats> {
        match self {
            UpstreamSource::Replay(_) => None,
            UpstreamSource::Http(http) => Some(http.stats()),
            UpstreamSource::Child(child) => Some(child.stats()),
        }
    }

    /// Every choice is finished: a backend that waits for something need not continue.
    pub fn finish_early(&mut self) {
        if let UpstreamSource::Child(child) = self {
            child.finish_early();
        }
    }
}

/// A turn that was started on a backend.
pub struct UpstreamTurn {
    pub source: UpstreamSource,
    /// The backend that decodes the response; a transcript names its own.
    pub rules: Arc<BackendPlan>,
    /// Request fields that were not sent, by the client's names.
    pub dropped: Vec<String>,
    pub tool_aliases: ToolAliases,
    /// Removes the backend's secrets from messages to clients.
    pub redactor: Option<Redactor>,
}

/// Starts a turn on the backend.
pub fn start(
    client_pool: &ClientPool,
    plan: &Plan,
    backend: &Backend,
    request: &Arc<TurnRequest>,
    client: &RequestPlan,
) -> Result<UpstreamTurn, Fault> {
    match backend.plan.transport {
        Transport::Replay => {
            // There is no backend that could know them.
            if let Some(unknown) = request.unknown_values.first() {
                return Err(unknown.fault());
            }
            let script = backend
                .script
                .as_ref()
                .ok_or_else(|| Fault::new(FaultKind::Internal, "the replay backend has no script"))?;
            let (transcript, pace) = crate::engine::script_step::select_transcript(script, request)?;
            let rules = plan
                .backend(&transcript.backend)
                .ok_or_else(|| Fault::new(FaultKind::Internal, "the backend of the transcript does not exist"))?;
            let source = UpstreamSource::Replay(ReplaySource::new(transcript, pace));
            Ok(UpstreamTurn {
                source,
                rules: rules.clone(),
                dropped: Vec::new(),
                tool_aliases: ToolAliases::default(),
                redactor: None,
            })
        }
        Transport::Http => start_http(client_pool, plan, backend, request, client),
        Transport::ChildJsonrpc => start_child(client_pool, plan, backend, request, client),
    }
}

fn start_child(
    client_pool: &ClientPool,
    plan: &Plan,
    backend: &Backend,
    request: &Arc<TurnRequest>,
    client: &RequestPlan,
) -> Result<UpstreamTurn, Fault> {
    let missing = || Fault::new(FaultKind::Internal, format!("the backend `{}` was not started", backend.name));
    let entry = backend.child.as_ref().ok_or_else(missing)?;
    let PreparedCalls { calls, dropped, tool_aliases } =
        conversation::prepare(&backend.plan, &entry.settings, request, client)?;
    let pool = client_pool.children.pool(&backend.name).ok_or_else(missing)?;
    let redactor = Some(pool.redactor.clone());
    let source = ChildSource::new(pool, calls, plan.gateway.limits.turn_bytes.0);
    let (source, rules) = (UpstreamSource::Child(Box::new(source)), backend.plan.clone());
    Ok(UpstreamTurn { source, rules, dropped, tool_aliases, redactor })
}

fn start_http(
    client_pool: &ClientPool,
    plan: &Plan,
    backend: &Backend,
    request: &TurnRequest,
    client: &RequestPlan,
) -> Result<UpstreamTurn, Fault> {
    let (Some(address), Some(template)) = (&backend.address, &backend.plan.request_template) else {
        return Err(Fault::new(FaultKind::Internal, "the backend has no address"));
    };
    let key = match &address.api_key {
        None => None,
        Some(source) => match client_pool.keys.get(source) {
            Some(key) => Some(key),
            None => {
                let (name, why) = (&backend.name, client_pool.keys.missing_reason(source));
                tracing::error!(backend = name, reason = why, "the API key of the backend is missing");
                return Err(Fault::new(FaultKind::Internal, format!("the API key of the backend `{name}` is missing")));
            }
        },
    };
    let key_text = key.as_ref().map(Secret::expose);
    let BackendRequest { method, path, headers, body, dropped, tool_aliases } =
        backend_request::prepare(template, &address.settings, key_text, request, client)?;
    let redactor = key_text.map(Redactor::new);
    let outgoing = OutgoingRequest { method, base_url: &address.url, path, headers, body };
    outgoing.log(&backend.name, &dropped, redactor.as_ref());
    let client = client_pool.client(address).map_err(|why| {
        tracing::error!(reason = why, "the HTTP client could not be created");
        // It needs files and memory, which may be there later.
        let message = "the gateway could not create an HTTP client";
        Fault { retry_after: Some(1), ..Fault::new(FaultKind::Overloaded, message) }
    })?;
    let limits = plan.gateway.limits;
    let size_limits = SizeLimits {
        event_bytes: limits.event_bytes.0,
        answer_bytes: (!request.stream).then_some(limits.answer_bytes.0),
    };
    let source = HttpSource::new(outgoing.send(&client)?, backend.plan.clone(), size_limits);
    Ok(UpstreamTurn {
        source: UpstreamSource::Http(Box::new(source)),
        rules: backend.plan.clone(),
        dropped,
        tool_aliases,
        redactor,
    })
}

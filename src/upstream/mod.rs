//! TurnRequest → backend → raw events. The only folder that connects to backends.

mod client;
pub mod decode;
mod http;
pub mod models;
mod outgoing_request;
mod replay;
pub mod secrets;

pub use client::ClientPool;

use crate::domain::{Fault, FaultKind, Redactor, StreamEnd, ToolAliases, Tree, TurnRequest};
use crate::engine::backend_request::{self, BackendRequest};
use crate::mapping::Plan;
use crate::mapping::config::backend::{BackendPlan, Transport};
use crate::mapping::config::dialect_request::RequestPlan;
use crate::mapping::config::gateway::Backend;
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
    /// An event that cannot be parsed, and why.
    Malformed(String),
    /// The backend responded with an error status.
    Rejected(ErrorResponse),
    Ended(StreamEnd),
    Failed(Fault),
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
}

impl UpstreamSource {
    /// Not to be polled after `Ended`, `Rejected` and `Failed`.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<UpstreamEvent> {
        match self {
            UpstreamSource::Replay(replay) => replay.poll_next(cx),
            UpstreamSource::Http(http) => http.poll_next(cx),
        }
    }

    /// `None` for a replay.
    pub fn stats(&self) -> Option<UpstreamStats> {
        match self {
            UpstreamSource::Replay(_) => None,
            UpstreamSource::Http(http) => Some(http.stats()),
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
    /// Removes the backend's API key from messages to clients.
    pub redactor: Option<Redactor>,
}

/// Starts a turn on the backend.
pub fn start(
    client_pool: &ClientPool,
    plan: &Plan,
    backend: &Backend,
    request: &TurnRequest,
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
        Transport::ChildJsonrpc => Err(Fault::new(
            FaultKind::Unreachable,
            format!("the transport of the backend `{}` is not supported by this version", backend.name),
        )),
    }
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
    let outgoing = OutgoingRequest { method, url: format!("{}{path}", address.url), headers, body: body.to_json() };
    outgoing.log(&backend.name, &dropped, redactor.as_ref());
    let http_client = client_pool.client(address).map_err(|why| {
        tracing::error!(reason = why, "the HTTP client could not be created");
        Fault::new(FaultKind::Internal, "the gateway could not create an HTTP client")
    })?;
    let limits = plan.gateway.limits;
    let size_limits = SizeLimits {
        event_bytes: limits.event_bytes.0,
        answer_bytes: (!request.stream).then_some(limits.answer_bytes.0),
    };
    let source = HttpSource::new(&http_client, outgoing, backend.plan.clone(), size_limits);
    Ok(UpstreamTurn {
        source: UpstreamSource::Http(Box::new(source)),
        rules: backend.plan.clone(),
        dropped,
        tool_aliases,
        redactor,
    })
}

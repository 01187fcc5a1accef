//! Runs a test through the pipeline of the server, with sequential ids and a fixed clock.

use super::difference_source::first_violation;
use super::test_case::TestCase;
use super::trace::{RawEvent, TraceDetail, TraceEntry, TraceRecorder, describe_raw};
use crate::diagnostics::Span;
use crate::domain::variables::{Record, Value};
use crate::domain::{Event, Fault, ToolAliases, Tree, TurnRequest};
use crate::engine::backend_request::{self, RequestPreview};
use crate::engine::decode;
use crate::engine::encode;
use crate::engine::fault_report;
use crate::engine::inline::InlineStage;
use crate::engine::pipeline::{Pipeline, ResponseMode, TurnSpec, Violation, lock};
use crate::engine::request::{self, RouteInput};
use crate::engine::response_head::{self, HeadContext};
use crate::engine::script_step;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::{GatewayPlan, Validation};
use crate::mapping::config::test_file::BackendResponse;
use crate::mapping::config::transcript::RecordedEvent;
use crate::turn::Ids;
use crate::turn::inline::CallableTools;
use std::sync::{Arc, Mutex};

/// The outputs of a test.
#[derive(Default)]
pub struct TestOutcome {
    /// The events that the rules emitted.
    pub events: Vec<EmittedEvent>,
    pub trace: Vec<TraceEntry>,
    pub body: Option<BodyOutcome>,
    pub request: Option<Tree>,
    /// The request that the backend would get.
    pub sent: Option<SentRequest>,
    /// The response to a client that does not stream.
    pub response: Option<ClientResponse>,
    /// The transcript that the script selects.
    pub plays: Option<String>,
    pub fault: Option<Fault>,
    /// The first violation of a schema or an order, in the stream or else in the body.
    pub violation: Option<Violation>,
}

/// An event as one line of text, the rule that emitted it, and the raw event that the rule read.
pub struct EmittedEvent {
    pub brief: String,
    pub rule: Span,
    pub raw: RawEvent,
}

impl EmittedEvent {
    fn new(event: &Event, rule: Span, raw: &RawEvent) -> EmittedEvent {
        EmittedEvent { brief: event.summary(), rule, raw: raw.clone() }
    }
}

/// The request to the backend as JSON, and the span of its body in the mapping.
pub struct SentRequest {
    pub request: Tree,
    pub span: Span,
}

/// The HTTP response to a client as JSON, and the span of its body in the mapping.
pub struct ClientResponse {
    pub tree: Tree,
    pub span: Span,
}

/// The JSON body, its span in the mapping, and the trace of its turn.
pub struct BodyOutcome {
    pub result: Result<Tree, Fault>,
    pub span: Span,
    pub trace: Vec<TraceEntry>,
}

/// The inputs of a turn: the backend of the events, the dialect of the client, the request and the events.
pub struct TestTurn {
    pub backend: Arc<BackendPlan>,
    pub dialect: Arc<DialectPlan>,
    pub request: Arc<TurnRequest>,
    pub given: Vec<RecordedEvent>,
    /// The head of the backend's response.
    pub response: Option<BackendResponse>,
}

pub fn run(case: &TestCase, gateway: &GatewayPlan) -> TestOutcome {
    let mut outcome = run_turn(case, gateway);
    if let (Some(dialect), Some(fault), None) = (&case.dialect, &outcome.fault, &outcome.response) {
        outcome.response = Some(ClientResponse::error(dialect, None, fault));
    }
    outcome
}

fn run_turn(case: &TestCase, gateway: &GatewayPlan) -> TestOutcome {
    let mut outcome = TestOutcome::default();
    let raws = case.given.iter().filter_map(|arrival| match arrival {
        RecordedEvent::Raw(raw) => Some(raw),
        RecordedEvent::Idle | RecordedEvent::End | RecordedEvent::Disconnect(_) => None,
    });
    outcome.events = case.events(raws);
    let test_turn = match case.test_turn() {
        Ok(Some(test_turn)) => test_turn,
        Ok(None) => return outcome,
        Err(fault) => {
            outcome.fault = Some(fault);
            return outcome;
        }
    };
    outcome.request = Some(Value::from(Record::request(&test_turn.request)).to_tree());
    if let Some(script) = &case.script {
        match script_step::select_transcript(script, &test_turn.request) {
            Ok((transcript, _)) => outcome.plays = Some(transcript.name.clone()),
            Err(fault) => outcome.fault = Some(fault),
        }
    }
    if case.sends {
        match case.preview(&test_turn, gateway) {
            Ok(sent) => {
                let of_calls =
                    case.backend.conversation.as_ref().map_or(Span::NOWHERE, |conversation| conversation.span);
                let span = case.backend.request_template.as_ref().map_or(of_calls, |template| template.body_span);
                outcome.sent = Some(SentRequest { request: sent.to_tree(), span });
            }
            Err(fault) => outcome.fault = Some(fault),
        }
    }
    if test_turn.given.is_empty() {
        return outcome;
    }
    let (pipeline, trace) = test_turn.stream(TraceDetail::Locations);
    outcome.fault = pipeline.fault().cloned();
    let in_stream = first_violation(&trace).cloned();
    outcome.trace = trace;
    let (mut pipeline, trace) = test_turn.body_turn();
    let result = pipeline.body();
    outcome.response = Some(match &result {
        Ok(body) => ClientResponse::success(&test_turn, &pipeline, body),
        Err(fault) => ClientResponse::error(&test_turn.dialect, Some(&test_turn.request), fault),
    });
    outcome.violation = in_stream.or_else(|| first_violation(&trace).cloned());
    outcome.body = Some(BodyOutcome { result, span: test_turn.dialect.body.span, trace });
    outcome
}

impl TestCase {
    /// What the rules emit, with the inline blocks of the backend. Without a request, every tool can be called.
    fn events<'r>(&self, raws: impl Iterator<Item = &'r Tree>) -> Vec<EmittedEvent> {
        let requested = self.request.as_ref().and_then(|_| self.test_turn().ok().flatten());
        let tools = requested.map_or(CallableTools::Any, |t| CallableTools::of(&t.request, &ToolAliases::default()));
        let head = self.response.as_ref().map_or(Tree::Null, backend_head);
        let mut inline = InlineStage::new(&self.backend, self.dialect.as_deref(), tools);
        let mut emitted = Vec::new();
        let mut last = RawEvent { number: 0, name: String::new(), unread: Vec::new(), data: None };
        for (at, raw) in raws.enumerate() {
            last = RawEvent { number: at + 1, name: describe_raw(&self.backend, raw), unread: Vec::new(), data: None };
            for (event, rule) in decode::decode_event(&self.backend, raw, &head).events {
                let events = match &mut inline {
                    Some(inline) => inline.push(event, rule),
                    None => vec![(event, rule)],
                };
                emitted.extend(events.into_iter().map(|(event, rule)| EmittedEvent::new(&event, rule, &last)));
            }
        }
        let held_back = inline.map_or_else(Vec::new, |mut inline| inline.flush(self.backend.span));
        emitted.extend(held_back.into_iter().map(|(event, rule)| EmittedEvent::new(&event, rule, &last)));
        emitted
    }

    /// The turn to run, or the fault that rejects the request; `None` if the test has no dialect.
    pub fn test_turn(&self) -> Result<Option<TestTurn>, Fault> {
        self.dialect.as_ref().map(|dialect| self.test_turn_to(dialect)).transpose()
    }

    /// The request that the backend would get for this turn.
    fn preview(&self, turn: &TestTurn, gateway: &GatewayPlan) -> Result<RequestPreview, Fault> {
        let mut request = TurnRequest::clone(&turn.request);
        if self.settings.is_some() {
            gateway.resolve_model(&mut request);
        }
        backend_request::preview(&self.backend, self.settings.as_ref(), &Arc::new(request), &turn.dialect.request)
    }

    /// The same turn, to a client of this dialect.
    pub fn test_turn_to(&self, dialect: &Arc<DialectPlan>) -> Result<TestTurn, Fault> {
        let request = match &self.request {
            None => TurnRequest::minimal("test", true),
            Some(body) => {
                let input = RouteInput { head: self.head.clone(), set: &[] };
                request::read_tree_with(&dialect.request, body.clone(), input)?
            }
        };
        let (backend, dialect, given) = (self.backend.clone(), dialect.clone(), self.given.clone());
        Ok(TestTurn { backend, dialect, request: Arc::new(request), given, response: self.response.clone() })
    }
}

impl TestTurn {
    /// Runs the turn as a stream.
    pub fn stream(&self, detail: TraceDetail) -> (Pipeline, Vec<TraceEntry>) {
        let (pipeline, recorder) = self.run(ResponseMode::Stream, detail);
        let trace = std::mem::take(&mut lock(&recorder).trace);
        (pipeline, trace)
    }

    /// Runs the same turn as one JSON body.
    pub fn body(&self) -> (Result<Tree, Fault>, Vec<TraceEntry>) {
        let (mut pipeline, trace) = self.body_turn();
        (pipeline.body(), trace)
    }

    fn body_turn(&self) -> (Pipeline, Vec<TraceEntry>) {
        let (pipeline, recorder) = self.run(ResponseMode::Body, TraceDetail::Locations);
        let trace = std::mem::take(&mut lock(&recorder).trace);
        (pipeline, trace)
    }

    fn run(&self, response_mode: ResponseMode, detail: TraceDetail) -> (Pipeline, Arc<Mutex<TraceRecorder>>) {
        let recorder = Arc::new(Mutex::new(TraceRecorder::new(self.backend.clone(), detail)));
        let mut request = self.request.clone();
        Arc::make_mut(&mut request).set_stream(response_mode == ResponseMode::Stream);
        let spec = test_turn_spec(&self.backend, &self.dialect, request, response_mode);
        let mut pipeline = Pipeline::new(spec).with_observer(Box::new(recorder.clone()));
        if let Some(response) = &self.response {
            pipeline.set_response_head(backend_head(response));
        }
        match self.response.as_ref().filter(|response| response.status.0 >= 300) {
            Some(response) => {
                let header = |name: &str| response.headers.pairs().find(|(of, _)| of.eq_ignore_ascii_case(name));
                let wait = header("retry-after").and_then(|(_, seconds)| seconds.trim().parse().ok());
                let raws = self.given.iter().filter_map(|arrival| match arrival {
                    RecordedEvent::Raw(raw) => Some(raw.clone()),
                    RecordedEvent::Idle | RecordedEvent::End | RecordedEvent::Disconnect(_) => None,
                });
                let fault = pipeline.error_response(response.status.0, wait, None, &raws.collect::<Vec<_>>());
                pipeline.fail(fault, 0);
            }
            None => pipeline.replay(&self.given, 0),
        }
        (pipeline, recorder)
    }
}

fn backend_head(response: &BackendResponse) -> Tree {
    let headers: Vec<(String, &String)> =
        response.headers.pairs().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    decode::response_head(response.status.0, headers.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

impl ClientResponse {
    /// The id of the request in tests.
    const REQUEST_ID: &str = "test";

    fn success(turn: &TestTurn, pipeline: &Pipeline, body: &Tree) -> ClientResponse {
        let context = HeadContext {
            request_id: Self::REQUEST_ID,
            request: Some(&turn.request),
            turn: Some(pipeline.state()),
            fault: None,
        };
        ClientResponse::new(200, &turn.dialect, &context, body.clone(), turn.dialect.body.span)
    }

    /// `request` is absent if it could not be read.
    fn error(dialect: &DialectPlan, request: Option<&TurnRequest>, fault: &Fault) -> ClientResponse {
        let fault = &fault_report::reported(dialect, fault.clone());
        let context = HeadContext { request_id: Self::REQUEST_ID, request, turn: None, fault: Some(fault) };
        let status = response_head::status(dialect, &context).ok().flatten().unwrap_or_else(|| fault.status());
        let body = encode::error(dialect, fault).unwrap_or_default();
        ClientResponse::new(status, dialect, &context, body, dialect.errors.span)
    }

    fn new(status: u16, dialect: &DialectPlan, context: &HeadContext, body: Tree, span: Span) -> ClientResponse {
        let retry_after = context.fault.and_then(|fault| fault.retry_after).map(|seconds| seconds.to_string());
        let own = response_head::headers(dialect, context).unwrap_or_default();
        let headers = retry_after.map(|value| ("retry-after", value)).into_iter().chain(own);
        let headers = Tree::map(headers.map(|(name, value)| (name, Tree::from(value))));
        let tree = Tree::map([("status", Tree::from(i64::from(status))), ("headers", headers), ("body", body)]);
        ClientResponse { tree, span }
    }
}

/// A turn without a client: sequential ids, a fixed clock, strict validation.
pub fn test_turn_spec(
    backend: &Arc<BackendPlan>,
    dialect: &Arc<DialectPlan>,
    request: Arc<TurnRequest>,
    response_mode: ResponseMode,
) -> TurnSpec {
    TurnSpec {
        backend: backend.clone(),
        dialect: dialect.clone(),
        request,
        validation: Validation::Strict,
        response_mode,
        tool_aliases: Default::default(),
        redactor: None,
        ids: Ids::Counting(0),
        now_ms: 0,
    }
}

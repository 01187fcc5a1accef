//! Runs a test through the pipeline of the server, with sequential ids and a fixed clock.

use super::difference_source::first_violation;
use super::test_case::TestCase;
use super::trace::{RawEvent, TraceDetail, TraceEntry, TraceRecorder, describe_raw};
use crate::diagnostics::Span;
use crate::domain::variables::{Record, Value};
use crate::domain::{Event, Fault, ToolAliases, Tree, TurnRequest};
use crate::engine::backend_request::{self, BackendRequest};
use crate::engine::decode;
use crate::engine::inline::InlineStage;
use crate::engine::pipeline::{Pipeline, ResponseMode, TurnSpec, Violation, lock};
use crate::engine::request::{self, RouteInput};
use crate::engine::script_step;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::{GatewayPlan, Validation};
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
}

pub fn run(case: &TestCase, gateway: &GatewayPlan) -> TestOutcome {
    let mut outcome = TestOutcome::default();
    let raws = case.given.iter().filter_map(|arrival| match arrival {
        RecordedEvent::Raw(raw) => Some(raw),
        RecordedEvent::End | RecordedEvent::Disconnect(_) => None,
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
                let span = case.backend.request_template.as_ref().map_or(Span::NOWHERE, |template| template.body_span);
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
    let (result, trace) = test_turn.body();
    outcome.violation = in_stream.or_else(|| first_violation(&trace).cloned());
    outcome.body = Some(BodyOutcome { result, span: test_turn.dialect.body.span, trace });
    outcome
}

impl TestCase {
    /// What the rules emit, with the inline blocks of the backend. Without a request, every tool can be called.
    fn events<'r>(&self, raws: impl Iterator<Item = &'r Tree>) -> Vec<EmittedEvent> {
        let requested = self.request.as_ref().and_then(|_| self.test_turn().ok().flatten());
        let tools = requested.map_or(CallableTools::Any, |t| CallableTools::of(&t.request, &ToolAliases::default()));
        let mut inline = InlineStage::new(&self.backend, self.dialect.as_deref(), tools);
        let mut emitted = Vec::new();
        let mut last = RawEvent { number: 0, name: String::new(), unread: Vec::new(), data: None };
        for (at, raw) in raws.enumerate() {
            last = RawEvent { number: at + 1, name: describe_raw(&self.backend, raw), unread: Vec::new(), data: None };
            for (event, rule) in decode::decode_event(&self.backend, raw).events {
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
    fn preview(&self, turn: &TestTurn, gateway: &GatewayPlan) -> Result<BackendRequest, Fault> {
        let mut request = TurnRequest::clone(&turn.request);
        if self.settings.is_some() {
            gateway.resolve_model(&mut request);
        }
        backend_request::preview(&self.backend, self.settings.as_ref(), &request, &turn.dialect.request)
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
        Ok(TestTurn { backend, dialect, request: Arc::new(request), given })
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
        let (mut pipeline, recorder) = self.run(ResponseMode::Body, TraceDetail::Locations);
        let body = pipeline.body();
        let trace = std::mem::take(&mut lock(&recorder).trace);
        (body, trace)
    }

    fn run(&self, response_mode: ResponseMode, detail: TraceDetail) -> (Pipeline, Arc<Mutex<TraceRecorder>>) {
        let recorder = Arc::new(Mutex::new(TraceRecorder::new(self.backend.clone(), detail)));
        let spec = test_turn_spec(&self.backend, &self.dialect, self.request.clone(), response_mode);
        let mut pipeline = Pipeline::new(spec).with_observer(Box::new(recorder.clone()));
        pipeline.replay(&self.given, 0);
        (pipeline, recorder)
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

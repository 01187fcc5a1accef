//! Runs a test through the pipeline of the server, with sequential ids and a fixed clock.

use super::difference_source::first_violation;
use super::test_case::TestCase;
use super::trace::{RawEvent, TraceDetail, TraceEntry, TraceRecorder, describe_raw};
use crate::diagnostics::Span;
use crate::domain::variables::{Record, Value};
use crate::domain::{Fault, Tree, TurnRequest};
use crate::engine::decode;
use crate::engine::pipeline::{Pipeline, ResponseMode, TurnSpec, Violation, lock};
use crate::engine::request;
use crate::engine::script_step;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::Validation;
use crate::mapping::config::transcript::RecordedEvent;
use crate::turn::Ids;
use std::sync::{Arc, Mutex};

/// The outputs of a test.
#[derive(Default)]
pub struct TestOutcome {
    /// The events that the rules emitted.
    pub events: Vec<EmittedEvent>,
    pub trace: Vec<TraceEntry>,
    pub body: Option<BodyOutcome>,
    pub request: Option<Tree>,
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

pub fn run(case: &TestCase) -> TestOutcome {
    let mut outcome = TestOutcome::default();
    let raws = case.given.iter().filter_map(|arrival| match arrival {
        RecordedEvent::Raw(raw) => Some(raw),
        RecordedEvent::End | RecordedEvent::Disconnect(_) => None,
    });
    for (at, raw) in raws.enumerate() {
        for (event, rule) in decode::decode_event(&case.backend, raw).events {
            let raw =
                RawEvent { number: at + 1, name: describe_raw(&case.backend, raw), unread: Vec::new(), data: None };
            outcome.events.push(EmittedEvent { brief: event.summary(), rule, raw });
        }
    }
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
    /// The turn to run, or the fault that rejects the request; `None` if the test has no dialect.
    pub fn test_turn(&self) -> Result<Option<TestTurn>, Fault> {
        self.dialect.as_ref().map(|dialect| self.test_turn_to(dialect)).transpose()
    }

    /// The same turn, to a client of this dialect.
    pub fn test_turn_to(&self, dialect: &Arc<DialectPlan>) -> Result<TestTurn, Fault> {
        let request = match &self.request {
            None => TurnRequest::minimal("test", true),
            Some(body) => request::read_tree(&dialect.request, body.clone())?,
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

//! What comes of a test: the same pipeline that serves, with ids that count and a clock that stands.

use super::difference_source;
use super::test_case::Case;
use super::trace::{Keep, Raw, Recorder, Seen, name_of, taken};
use super::violation::Wrong;
use crate::diagnostics::Span;
use crate::domain::{Fault, Tree, TurnRequest};
use crate::engine::decode;
use crate::engine::pipeline::{Answer, Order, Pipeline};
use crate::engine::render;
use crate::engine::request;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::Validation;
use crate::mapping::config::transcript::Arrival;
use crate::turn::Ids;
use std::sync::Arc;

/// What came out.
#[derive(Default)]
pub struct Played {
    /// What the rules made of the raw events.
    pub events: Vec<Said>,
    pub seen: Vec<Seen>,
    pub body: Option<Body>,
    pub request: Option<Tree>,
    /// The transcript that the script would play.
    pub plays: Option<String>,
    pub fault: Option<Fault>,
    /// What broke the contract first, in the stream or else in the body.
    pub wrong: Option<Wrong>,
}

/// An event in a line, the rule that said it, and what the rule read.
pub struct Said {
    pub brief: String,
    pub rule: Span,
    pub raw: Raw,
}

/// The JSON answer, where it is made, and what was seen on the way.
pub struct Body {
    pub answer: Result<Tree, Fault>,
    pub span: Span,
    pub seen: Vec<Seen>,
}

/// What is played: whose events, to whom, for which request.
pub struct Scene {
    pub backend: Arc<BackendPlan>,
    pub dialect: Arc<DialectPlan>,
    pub request: Arc<TurnRequest>,
    pub given: Vec<Arrival>,
}

pub fn play(case: &Case) -> Played {
    let mut played = Played::default();
    let raws = case.given.iter().filter_map(|arrival| match arrival {
        Arrival::Raw(raw) => Some(raw),
        Arrival::End | Arrival::Cut(_) => None,
    });
    for (at, raw) in raws.enumerate() {
        for (event, rule) in decode::hear(&case.backend, raw).events {
            let raw = Raw { number: at + 1, name: name_of(&case.backend, raw), data: None };
            played.events.push(Said { brief: event.brief(), rule, raw });
        }
    }
    let scene = match case.scene() {
        Ok(Some(scene)) => scene,
        Ok(None) => return played,
        Err(fault) => {
            played.fault = Some(fault);
            return played;
        }
    };
    played.request = Some(scene.request.view.clone());
    if let Some(script) = &case.script {
        match render::choose(script, &scene.request) {
            Ok((transcript, _)) => played.plays = Some(transcript.name.clone()),
            Err(fault) => played.fault = Some(fault),
        }
    }
    if scene.given.is_empty() {
        return played;
    }
    let (pipeline, seen) = scene.stream(Keep::Places);
    played.fault = pipeline.fault().cloned();
    let in_stream = first_wrong(&seen);
    played.seen = seen;
    let (answer, seen) = scene.body();
    played.wrong = in_stream.or_else(|| first_wrong(&seen));
    played.body = Some(Body { answer, span: scene.dialect.body.span, seen });
    played
}

impl Case {
    /// What is played, or why the request is refused; nothing where no dialect is named.
    pub fn scene(&self) -> Result<Option<Scene>, Fault> {
        let Some(dialect) = &self.dialect else { return Ok(None) };
        let request = match &self.request {
            None => TurnRequest::plain("test", true),
            Some(body) => request::read_tree(&dialect.request, body)?,
        };
        Ok(Some(Scene {
            backend: self.backend.clone(),
            dialect: dialect.clone(),
            request: Arc::new(request),
            given: self.given.clone(),
        }))
    }
}

fn first_wrong(seen: &[Seen]) -> Option<Wrong> {
    difference_source::breach(seen).cloned()
}

impl Scene {
    /// The turn as a stream, and all that was seen of it.
    pub fn stream(&self, keep: Keep) -> (Pipeline, Vec<Seen>) {
        let (recorder, shared) = Recorder::new(self.backend.clone(), keep);
        let mut pipeline = self.pipeline(Answer::Stream).observe(Box::new(recorder));
        pipeline.play(&self.given, 0);
        let seen = taken(&shared);
        (pipeline, seen)
    }

    /// The same turn as one JSON answer, and all that was seen of it.
    pub fn body(&self) -> (Result<Tree, Fault>, Vec<Seen>) {
        let (recorder, shared) = Recorder::new(self.backend.clone(), Keep::Places);
        let mut pipeline = self.pipeline(Answer::Body).observe(Box::new(recorder));
        pipeline.play(&self.given, 0);
        (pipeline.body(), taken(&shared))
    }

    fn pipeline(&self, answer: Answer) -> Pipeline {
        Pipeline::new(tried(&self.backend, &self.dialect, self.request.clone(), answer))
    }
}

/// A turn that nobody waits for: ids count, the clock stands, every breach counts.
pub fn tried(
    backend: &Arc<BackendPlan>,
    dialect: &Arc<DialectPlan>,
    request: Arc<TurnRequest>,
    answer: Answer,
) -> Order {
    Order {
        backend: backend.clone(),
        dialect: dialect.clone(),
        request,
        validation: Validation::Strict,
        answer,
        masks: Default::default(),
        hidden: None,
        ids: Ids::Counting(0),
        now_ms: 0,
    }
}

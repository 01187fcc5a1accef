//! What comes of a test: the same pipeline that serves, with ids that count and a clock that stands.

use super::case::Case;
use super::culprit::{First, Wrong};
use super::seen::{Keep, Recorder, Seen, taken};
use crate::canon::{Fault, Tree, TurnRequest};
use crate::diag::Span;
use crate::fill;
use crate::ingest;
use crate::ingress;
use crate::mapping::backend::BackendPlan;
use crate::mapping::dialect::DialectPlan;
use crate::mapping::gateway::Validation;
use crate::mapping::transcript::Arrival;
use crate::pipeline::{Answer, Order, Pipeline};
use crate::turn::Ids;
use std::sync::Arc;

/// What came out.
#[derive(Default)]
pub struct Played {
    /// What the rules made of the raw events, a line each.
    pub events: Vec<String>,
    pub seen: Vec<Seen>,
    /// The JSON answer, and where it is made.
    pub body: Option<(Result<Tree, Fault>, Span)>,
    pub request: Option<Tree>,
    /// The transcript that the script would play.
    pub plays: Option<String>,
    pub fault: Option<Fault>,
    /// What broke the contract first, in the stream or else in the body.
    pub wrong: Option<Wrong>,
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
    for arrival in &case.given {
        if let Arrival::Raw(raw) = arrival {
            let heard = ingest::hear(&case.backend, raw).events;
            played.events.extend(heard.into_iter().map(|(event, _)| event.brief()));
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
        match fill::choose(script, &scene.request) {
            Ok((transcript, _)) => played.plays = Some(transcript.name.clone()),
            Err(fault) => played.fault = Some(fault),
        }
    }
    if scene.given.is_empty() {
        return played;
    }
    let (pipeline, seen) = scene.stream(Keep::Places);
    played.fault = pipeline.fault().cloned();
    let in_stream = seen.iter().find_map(|s| match s {
        Seen::Breach(wrong) => Some(wrong.clone()),
        Seen::Raw(_) | Seen::Event(..) | Seen::Dropped(_) | Seen::Puzzling(_) | Seen::Late => None,
        Seen::Moment(..) | Seen::Frame(..) => None,
    });
    played.seen = seen;
    let first = First::default();
    let body = scene.told_whole(Some(first.clone()));
    let in_body = first.taken();
    let plainly = |fault: Fault| Fault { message: in_body.as_ref().map_or(fault.message, Wrong::says), ..fault };
    played.body = Some((body.map_err(plainly), scene.dialect.body.span));
    played.wrong = in_stream.or(in_body);
    played
}

impl Case {
    /// What is played, or why the request is refused; nothing where no dialect is named.
    pub fn scene(&self) -> Result<Option<Scene>, Fault> {
        let Some(dialect) = &self.dialect else { return Ok(None) };
        let request = match &self.request {
            None => TurnRequest::plain("test", true),
            Some(body) => ingress::read_tree(&dialect.request, body)?,
        };
        Ok(Some(Scene {
            backend: self.backend.clone(),
            dialect: dialect.clone(),
            request: Arc::new(request),
            given: self.given.clone(),
        }))
    }
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

    /// The same turn as one JSON answer.
    pub fn body(&self) -> Result<Tree, Fault> {
        self.told_whole(None)
    }

    fn told_whole(&self, first: Option<First>) -> Result<Tree, Fault> {
        let mut pipeline = self.pipeline(Answer::Body);
        if let Some(first) = first {
            pipeline = pipeline.observe(Box::new(first));
        }
        pipeline.play(&self.given, 0);
        pipeline.body()
    }

    fn pipeline(&self, answer: Answer) -> Pipeline {
        Pipeline::new(Order {
            backend: self.backend.clone(),
            dialect: self.dialect.clone(),
            request: self.request.clone(),
            validation: Validation::Strict,
            answer,
            masks: Default::default(),
            hidden: None,
            ids: Ids::Counting(0),
            now_ms: 0,
        })
    }
}

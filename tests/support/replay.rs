//! Plays transcripts through the pipeline, with ids that count and a clock that stands.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use reframe::diagnostics::{Findings, Sources, render_all};
use reframe::domain::{Ended, Frame, Tree};
use reframe::engine::pipeline::{Answer, Filling, Observer, Order, Pipeline, Sight};
use reframe::engine::{encode, request, sse};
use reframe::mapping::config::gateway::Validation;
use reframe::mapping::config::transcript;
use reframe::mapping::config::transcript::{Arrival, Transcript};
use reframe::mapping::source::field_reader::Cx;
use reframe::mapping::{Plan, load};
use reframe::reload::embedded;
use reframe::turn::Ids;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// 2026-01-01, so that goldens do not age.
pub const NOW_MS: u64 = 1_767_225_600_000;

pub struct Set {
    pub plan: Plan,
}

/// A stream as it left.
#[derive(Debug, Default)]
pub struct Outcome {
    pub frames: Vec<Frame>,
    /// For each frame, the mapping line that made it.
    pub rules: Vec<String>,
    pub bytes: Vec<u8>,
    /// The turn failed before anything was told: the client sees an HTTP error instead.
    pub refused: Option<(u16, Tree)>,
}

impl Outcome {
    pub fn text(&self) -> String {
        match &self.refused {
            Some((status, envelope)) => format!("HTTP {status}\n{}\n", envelope.to_json_pretty()),
            None => String::from_utf8(self.bytes.clone()).unwrap(),
        }
    }

    pub fn data(&self) -> Vec<&Tree> {
        let data = |f: &'_ Frame| matches!(f.body, reframe::domain::FrameBody::Data(_));
        self.frames
            .iter()
            .filter(|f| data(f))
            .map(|f| match &f.body {
                reframe::domain::FrameBody::Data(tree) => tree,
                _ => unreachable!(),
            })
            .collect()
    }
}

impl Set {
    pub fn embedded() -> Set {
        Set::of(&embedded::files())
    }

    pub fn of(files: &[reframe::mapping::FileText]) -> Set {
        let loaded = load(files);
        let Some(plan) = loaded.plan else { panic!("{}", render_all(&loaded.diagnostics, &loaded.sources, false)) };
        Set { plan }
    }

    /// Every dialect under every profile.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let profiled = self.plan.dialects().filter_map(|d| Some((d.name.clone(), d.profile.clone()?)));
        profiled.collect()
    }

    fn order(
        &self,
        transcript: &Transcript,
        dialect: &str,
        profile: &str,
        answer: Answer,
        body: &Tree,
    ) -> Result<Order, (u16, Tree)> {
        let dialect = self.plan.dialect(dialect, Some(profile)).expect("a dialect under this profile").clone();
        let request = request::read_tree(&dialect.request, body)
            .map_err(|fault| (fault.status(), encode::error(&dialect, &fault).unwrap()))?;
        Ok(Order {
            backend: self.plan.backend(&transcript.backend).expect("the transcript's backend").clone(),
            dialect,
            request: Arc::new(request),
            validation: Validation::Strict,
            answer,
            masks: Default::default(),
            hidden: None,
            ids: Ids::Counting(0),
            now_ms: NOW_MS,
        })
    }

    pub fn stream(&self, transcript: &Transcript, dialect: &str, profile: &str, body: &Tree) -> Outcome {
        let order = match self.order(transcript, dialect, profile, Answer::Stream, body) {
            Ok(order) => order,
            Err(refused) => return Outcome { refused: Some(refused), ..Outcome::default() },
        };
        let plan = order.dialect.clone();
        let rules = Arc::new(Mutex::new(Vec::new()));
        let mut pipeline = Pipeline::new(order).observe(Box::new(Lines(self.plan.sources.clone(), rules.clone())));
        let mut outcome = Outcome { frames: feed(&mut pipeline, transcript), ..Outcome::default() };
        outcome.rules = rules.lock().unwrap().clone();
        if let Some(fault) = pipeline.fault().filter(|_| !pipeline.is_open()) {
            outcome.refused = Some((fault.status(), encode::error(&plan, fault).unwrap()));
        }
        for frame in &outcome.frames {
            sse::write(frame, plan.wire.kind, &mut outcome.bytes);
        }
        outcome
    }

    /// Only the bytes, as the server would write them.
    pub fn bytes(
        &self,
        filling: Filling,
        transcript: &Transcript,
        dialect: &str,
        profile: &str,
        body: &Tree,
    ) -> Vec<u8> {
        let Ok(order) = self.order(transcript, dialect, profile, Answer::Stream, body) else { return Vec::new() };
        let mut pipeline = Pipeline::new(order).writing().filling(filling);
        feed(&mut pipeline, transcript);
        let mut bytes = Vec::new();
        pipeline.drain(&mut bytes);
        bytes
    }

    /// The JSON body, or the error envelope under its status.
    pub fn body(&self, transcript: &Transcript, dialect: &str, profile: &str, body: &Tree) -> String {
        let answer = self.order(transcript, dialect, profile, Answer::Body, body).and_then(|order| {
            let plan = order.dialect.clone();
            let mut pipeline = Pipeline::new(order);
            feed(&mut pipeline, transcript);
            pipeline.body().map_err(|fault| (fault.status(), encode::error(&plan, &fault).unwrap()))
        });
        match answer {
            Ok(body) => body.to_json_pretty() + "\n",
            Err((status, envelope)) => format!("HTTP {status}\n{}\n", envelope.to_json_pretty()),
        }
    }
}

pub fn feed(pipeline: &mut Pipeline, transcript: &Transcript) -> Vec<Frame> {
    let mut frames = pipeline.begin().frames;
    let mut ended = false;
    for line in &transcript.lines {
        let now = NOW_MS + line.at_ms;
        frames.extend(match &line.what {
            Arrival::Raw(raw) => pipeline.push(raw, now).frames,
            Arrival::End => {
                ended = true;
                pipeline.finish(Ended::Marker, now).frames
            }
            Arrival::Cut(why) => {
                ended = true;
                pipeline.finish(Ended::Cut(why.clone()), now).frames
            }
        });
    }
    if !ended {
        frames.extend(pipeline.finish(Ended::Eof, NOW_MS).frames);
    }
    frames
}

struct Lines(Arc<Sources>, Arc<Mutex<Vec<String>>>);

impl Observer for Lines {
    fn see(&mut self, sight: Sight) {
        if let Sight::Frame(_, span) = sight {
            self.1.lock().unwrap().push(self.0.show_short(span));
        }
    }
}

pub fn transcript(path: &Path) -> Transcript {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut sources = Sources::default();
    let file = sources.add("events", path.display().to_string(), Arc::from(text.as_str()));
    let findings = Findings::default();
    let parsed = transcript::parse("golden", file, &text, Cx { sources: &sources, findings: &findings });
    parsed.unwrap_or_else(|| panic!("{}", render_all(&findings.into_sorted(), &sources, false)))
}

/// `request.json`: dialect → the body that a client of it sends.
pub fn requests(path: &Path) -> BTreeMap<String, Tree> {
    let text = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let tree = Tree::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    tree.as_map().unwrap().iter().map(|(k, v)| (k.to_string(), v.clone())).collect()
}

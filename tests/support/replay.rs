//! Replays transcripts through the pipeline, with counting ids and a fixed clock.

use reframe::testing::diagnostics::{Findings, Sources, render_all};
use reframe::testing::domain::{Frame, StreamEnd, Tree, WorkBudget};
use reframe::testing::engine::pipeline::{Observer, Pipeline, RenderMode, ResponseMode, TraceEvent, TurnSpec};
use reframe::testing::engine::{encode, request, sse};
use reframe::testing::mapping::config::transcript;
use reframe::testing::mapping::config::transcript::{RecordedEvent, Transcript};
use reframe::testing::mapping::source::field_reader::LoadContext;
use reframe::testing::mapping::{Plan, load};
use reframe::testing::reload::embedded;
use reframe::testing::verify::test_turn_spec;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};

/// 2026-01-01. A fixed clock keeps the golden files stable.
pub const NOW_MS: u64 = 1_767_225_600_000;

pub struct LoadedSet {
    pub plan: Plan,
}

/// The output of a streamed turn.
#[derive(Debug, Default)]
pub struct StreamOutput {
    pub frames: Vec<Frame>,
    /// For each frame, the mapping line that produced it.
    pub rules: Vec<String>,
    pub bytes: Vec<u8>,
    /// Set if the turn failed before the first frame: the client gets an HTTP error.
    pub http_error: Option<(u16, Tree)>,
}

impl StreamOutput {
    pub fn text(&self) -> String {
        match &self.http_error {
            Some((status, envelope)) => format!("HTTP {status}\n{}\n", envelope.to_json_pretty()),
            None => String::from_utf8(self.bytes.clone()).unwrap(),
        }
    }
}

impl LoadedSet {
    /// Loaded once for all tests.
    pub fn embedded() -> &'static LoadedSet {
        static SHARED: LazyLock<LoadedSet> = LazyLock::new(|| LoadedSet::of(&embedded::files()));
        &SHARED
    }

    pub fn of(files: &[reframe::testing::mapping::SourceFile]) -> LoadedSet {
        let loaded = load(files);
        let Some(plan) = loaded.plan else { panic!("{}", render_all(&loaded.diagnostics, &loaded.sources, false)) };
        LoadedSet { plan }
    }

    /// Every dialect with every profile.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let profiled = self.plan.dialects().filter_map(|d| Some((d.name.clone(), d.profile.clone()?)));
        profiled.collect()
    }

    fn turn_spec(
        &self,
        transcript: &Transcript,
        dialect: &str,
        profile: &str,
        response_mode: ResponseMode,
        body: &Tree,
    ) -> Result<TurnSpec, (u16, Tree)> {
        let dialect = self.plan.dialect(dialect, Some(profile)).expect("a dialect under this profile").clone();
        let request = request::read_tree(&dialect.request, body.clone())
            .map_err(|fault| (fault.status(), encode::error(&dialect, &fault).unwrap()))?;
        let backend = self.plan.backend(&transcript.backend).expect("the transcript's backend");
        Ok(TurnSpec { now_ms: NOW_MS, ..test_turn_spec(backend, &dialect, Arc::new(request), response_mode) })
    }

    pub fn stream(&self, transcript: &Transcript, dialect: &str, profile: &str, body: &Tree) -> StreamOutput {
        let turn_spec = match self.turn_spec(transcript, dialect, profile, ResponseMode::Stream, body) {
            Ok(turn_spec) => turn_spec,
            Err(http_error) => return StreamOutput { http_error: Some(http_error), ..StreamOutput::default() },
        };
        let plan = turn_spec.dialect.clone();
        let rules = Arc::new(Mutex::new(Vec::new()));
        let mut pipeline =
            Pipeline::new(turn_spec).with_observer(Box::new(RuleRecorder(self.plan.sources.clone(), rules.clone())));
        let mut output = StreamOutput { frames: feed(&mut pipeline, transcript), ..StreamOutput::default() };
        output.rules = rules.lock().unwrap().clone();
        if let Some(fault) = pipeline.fault().filter(|_| !pipeline.is_open()) {
            output.http_error = Some((fault.status(), encode::error(&plan, fault).unwrap()));
        }
        for frame in &output.frames {
            sse::write(frame, plan.encoding.format, &mut output.bytes);
        }
        output
    }

    /// A pipeline that writes bytes, like that of the server; `None` if the request is refused.
    pub fn pipeline(
        &self,
        render_mode: RenderMode,
        transcript: &Transcript,
        dialect: &str,
        profile: &str,
        body: &Tree,
    ) -> Option<Pipeline> {
        let turn_spec = self.turn_spec(transcript, dialect, profile, ResponseMode::Stream, body).ok()?;
        Some(Pipeline::new(turn_spec).with_byte_output().with_render_mode(render_mode))
    }

    /// Only the bytes, as the server writes them.
    pub fn bytes(
        &self,
        render_mode: RenderMode,
        transcript: &Transcript,
        dialect: &str,
        profile: &str,
        body: &Tree,
    ) -> Vec<u8> {
        let Some(mut pipeline) = self.pipeline(render_mode, transcript, dialect, profile, body) else {
            return Vec::new();
        };
        feed(&mut pipeline, transcript);
        let mut bytes = Vec::new();
        pipeline.drain(&mut bytes);
        bytes
    }

    /// The JSON body, or the status and error envelope.
    pub fn body(&self, transcript: &Transcript, dialect: &str, profile: &str, body: &Tree) -> String {
        let body = &without_stream(body);
        let result = self.turn_spec(transcript, dialect, profile, ResponseMode::Body, body).and_then(|turn_spec| {
            let plan = turn_spec.dialect.clone();
            let mut pipeline = Pipeline::new(turn_spec);
            feed(&mut pipeline, transcript);
            pipeline.body().map_err(|fault| (fault.status(), encode::error(&plan, &fault).unwrap()))
        });
        match result {
            Ok(body) => body.to_json_pretty() + "\n",
            Err((status, envelope)) => format!("HTTP {status}\n{}\n", envelope.to_json_pretty()),
        }
    }
}

/// The same request for a JSON response.
fn without_stream(body: &Tree) -> Tree {
    let Tree::Map(members) = body else { return body.clone() };
    Tree::Map(members.iter().filter(|(name, _)| &**name != "stream").cloned().collect())
}

pub fn feed(pipeline: &mut Pipeline, transcript: &Transcript) -> Vec<Frame> {
    let mut frames = pipeline.begin().frames;
    let mut ended = false;
    for line in &transcript.lines {
        let now = NOW_MS + line.at_ms;
        frames.extend(match &line.event {
            RecordedEvent::Raw(raw) => pipeline.push(raw, now).frames,
            RecordedEvent::Idle => {
                pipeline.keepalive();
                Vec::new()
            }
            RecordedEvent::End => {
                ended = true;
                pipeline.finish(StreamEnd::Marker, now).frames
            }
            RecordedEvent::Disconnect(why) => {
                ended = true;
                pipeline.finish(StreamEnd::Disconnected(why.clone()), now).frames
            }
        });
    }
    if !ended {
        frames.extend(pipeline.finish(StreamEnd::Eof, NOW_MS).frames);
    }
    frames
}

struct RuleRecorder(Arc<Sources>, Arc<Mutex<Vec<String>>>);

impl Observer for RuleRecorder {
    fn on(&mut self, event: TraceEvent) {
        if let TraceEvent::Frame(_, span) = event {
            self.1.lock().unwrap().push(self.0.show_short(span));
        }
    }
}

pub fn transcript(path: &Path) -> Transcript {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    parse_transcript(&text, path.display().to_string())
}

/// A turn of a backend that sends these raw events.
pub fn turn_of(backend: &str, events: &[serde_json::Value]) -> Transcript {
    let lines: String = events.iter().map(|raw| serde_json::json!({ "raw": raw }).to_string() + "\n").collect();
    parse_transcript(&format!("{{\"transcript\":\"{backend}\"}}\n{lines}"), "turn".to_owned())
}

fn parse_transcript(text: &str, shown: String) -> Transcript {
    let mut sources = Sources::default();
    let file = sources.add("events", shown, Arc::from(text));
    let findings = Findings::default();
    let cx = LoadContext {
        sources: &sources,
        findings: &findings,
        budget: &WorkBudget::default(),
        selectors: Default::default(),
    };
    let parsed = transcript::parse("golden", file, text, cx);
    parsed.unwrap_or_else(|| panic!("{}", render_all(&findings.into_sorted(), &sources, false)))
}

/// `request.json`: dialect → request body.
pub fn requests(path: &Path) -> BTreeMap<String, Tree> {
    let text = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let tree = Tree::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    tree.as_map().unwrap().iter().map(|(k, v)| (k.to_string(), v.clone())).collect()
}

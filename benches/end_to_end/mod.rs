//! The whole ways through the gateway's code, for every backend and dialect: what the benches and the cost gate repeat.
//! Not included in any: sockets, TLS, HTTP.

use reframe::testing::domain::{StreamEnd, ToolAliases, TurnRequest};
use reframe::testing::engine::backend_request::prepare;
use reframe::testing::engine::event_cache::EventCache;
use reframe::testing::engine::pipeline::{Pipeline, RenderMode, ResponseMode, TurnSpec};
use reframe::testing::engine::request;
use reframe::testing::mapping::config::backend::Framing;
use reframe::testing::mapping::{Plan, SourceFile, load};
use reframe::testing::reload::embedded;
use reframe::testing::turn::Ids;
use reframe::testing::upstream::decode::{Decoder, DecoderOutput};
use reframe::testing::verify::test_turn_spec;
use std::fmt;
use std::hint::black_box;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// From where to where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The bytes of a backend's event with a text delta → the bytes of the client's frame, in a turn in progress.
    TextDelta,
    /// The same for a delta of a tool call's arguments.
    ArgumentDelta,
    /// The same for a custom tool that was sent to the backend as a function; its frame follows when it is complete.
    WrappedDelta,
    /// A text delta that has no known shape: it is parsed and matched with the rules.
    UnknownDelta,
    /// The client's body with three messages and two tools → the backend's body.
    Request,
    /// The backend's JSON answer → the client's JSON body.
    Answer,
}

impl Way {
    pub const ALL: [Way; 6] =
        [Way::TextDelta, Way::ArgumentDelta, Way::WrappedDelta, Way::UnknownDelta, Way::Request, Way::Answer];

    fn name(self) -> &'static str {
        match self {
            Way::TextDelta => "text_delta",
            Way::ArgumentDelta => "argument_delta",
            Way::WrappedDelta => "wrapped_delta",
            Way::UnknownDelta => "unknown_delta",
            Way::Request => "request",
            Way::Answer => "answer",
        }
    }
}

/// A way for one backend and one dialect.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub way: Way,
    pub backend: &'static str,
    pub dialect: &'static str,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} {} {}", self.way.name(), self.backend, self.dialect)
    }
}

const BACKENDS: [&str; 5] =
    ["openai-chat", "openai-responses", "anthropic-messages", "gemini-generate", "codex-app-server"];
const DIALECTS: [&str; 3] = ["chat", "responses", "completions"];

/// Every case that exists: Gemini and Codex send whole calls, Codex has no JSON answer and no HTTP request, and
/// completions have no tools.
pub fn cases(way: Way) -> Vec<Case> {
    let exists = |case: &Case| match case.way {
        Way::TextDelta | Way::UnknownDelta => true,
        Way::ArgumentDelta | Way::WrappedDelta => {
            case.dialect != "completions" && !matches!(case.backend, "gemini-generate" | "codex-app-server")
        }
        Way::Request | Way::Answer => has_http(case.backend),
    };
    let all = BACKENDS.iter().flat_map(|backend| DIALECTS.iter().map(move |dialect| Case { way, backend, dialect }));
    all.filter(exists).collect()
}

/// The files of the embedded set, with an address for each HTTP backend and so many routes.
pub fn files(routes: usize) -> Vec<SourceFile> {
    let mut gateway = "backends:\n".to_owned();
    for backend in BACKENDS.iter().filter(|backend| has_http(backend)) {
        gateway += &format!("  {backend}: {{ use: {backend}, url: \"http://backend.test/v1\" }}\n");
    }
    gateway += "models: [ { match: \"*\", backend: openai-chat } ]\nroutes:\n";
    for number in 0..routes {
        gateway += &format!("  - {{ endpoint: POST /chat{number}, dialect: chat, profile: openai }}\n");
    }
    let mut files: Vec<SourceFile> = embedded::files().into_iter().filter(|f| f.name != "gateway.yaml").collect();
    files.push(file("gateway.yaml", &gateway));
    files
}

fn has_http(backend: &str) -> bool {
    backend != "codex-app-server"
}

pub fn file(name: &str, text: &str) -> SourceFile {
    SourceFile { shown: name.to_owned(), name: name.to_owned(), layer: 0, text: text.into() }
}

pub static PLAN: LazyLock<Plan> = LazyLock::new(|| load(&files(1)).plan.expect("the set loads"));

fn sample(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/end_to_end/samples").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// One repetition of a case.
pub type Repetition<'p> = Box<dyn FnMut() + 'p>;

impl Case {
    pub fn repetition<'p>(self, plan: &'p Plan) -> Repetition<'p> {
        match self.way {
            Way::TextDelta | Way::UnknownDelta => self.delta(plan, "text", RenderMode::Cached),
            Way::ArgumentDelta | Way::WrappedDelta => self.delta(plan, "arguments", RenderMode::Cached),
            Way::Request => self.request(plan),
            Way::Answer => self.answer(plan),
        }
    }

    /// The naive interpreter instead of cached frames.
    pub fn interpreted(self, plan: &Plan) -> Repetition<'_> {
        self.delta(plan, if self.way == Way::TextDelta { "text" } else { "arguments" }, RenderMode::Interpreted)
    }

    /// The turn is open after the sample's first events; the last one is repeated.
    fn delta<'p>(self, plan: &'p Plan, kind: &str, mode: RenderMode) -> Repetition<'p> {
        let (extension, separator, framing) = match self.backend {
            "codex-app-server" => ("jsonl", "\n", Framing::Jsonrpc),
            _ => ("sse", "\n\n", Framing::Sse),
        };
        let text = sample(&format!("{}.{kind}.{extension}", self.backend));
        let last = text.trim_end().rfind(separator).expect("two events") + separator.len();
        let (opening, delta) = (text[..last].to_owned(), text[last..].to_owned());
        let mut pipeline = self
            .pipeline(plan, self.turn_request(plan), ResponseMode::Stream)
            .with_byte_output()
            .with_render_mode(mode);
        let backend = plan.backend(self.backend).expect("it exists");
        let mut decoder = Decoder::new(backend, framing, 1 << 20);
        // As the server does for a response over HTTP.
        let is_cached = self.way != Way::UnknownDelta && mode == RenderMode::Cached && framing == Framing::Sse;
        if let Some(cache) = EventCache::new(backend, &Default::default()).filter(|_| is_cached) {
            decoder = decoder.with_cache(cache);
        }
        let mut decoded = Vec::new();
        let mut out = Vec::with_capacity(1 << 16);
        pipeline.begin();
        let mut push = move |bytes: &[u8]| {
            decoder.push(bytes, &mut decoded).expect("it fits");
            for event in decoded.drain(..) {
                match event {
                    DecoderOutput::Raw(raw) => pipeline.push(&raw, 1),
                    DecoderOutput::Delta(delta) => pipeline.push_delta(delta, 1),
                    other => panic!("not an event: {other:?}"),
                };
            }
            out.clear();
            pipeline.drain(&mut out);
            assert!(pipeline.fault().is_none() && pipeline.violations().is_empty(), "{self}: {:?}", pipeline.fault());
            black_box(out.len());
        };
        push(opening.as_bytes());
        Box::new(move || push(delta.as_bytes()))
    }

    fn request(self, plan: &Plan) -> Repetition<'_> {
        let body = sample(&format!("{}.request.json", self.dialect));
        let client = &plan.dialect(self.dialect, Some("openai")).expect("it exists").request;
        let backend = plan.gateway.backends.iter().find(|b| b.name == self.backend).expect("it exists");
        let template = backend.plan.request_template.as_ref().expect("it has a request");
        let address = backend.address.as_ref().expect("it has an address");
        Box::new(move || {
            let request = request::read(client, body.as_bytes()).expect("it is valid");
            black_box(prepare(template, &address.settings, None, &request, client).expect("it is valid").body);
        })
    }

    fn answer(self, plan: &Plan) -> Repetition<'_> {
        let answer = sample(&format!("{}.answer.json", self.backend));
        let backend = plan.backend(self.backend).expect("it exists");
        let request = self.turn_request(plan);
        Box::new(move || {
            let mut pipeline = self.pipeline(plan, request.clone(), ResponseMode::Body);
            let mut decoder = Decoder::new(backend, Framing::Json, 1 << 20);
            let mut decoded = Vec::new();
            decoder.push(answer.as_bytes(), &mut decoded).expect("it fits");
            decoder.finish(&mut decoded);
            for event in decoded {
                match event {
                    DecoderOutput::Raw(raw) => pipeline.push(&raw, 1),
                    other => panic!("not an event: {other:?}"),
                };
            }
            pipeline.finish(StreamEnd::Eof, 1);
            black_box(pipeline.body_json().expect("a body"));
        })
    }

    fn turn_request(self, plan: &Plan) -> Arc<TurnRequest> {
        let body = sample(&format!("{}.request.json", self.dialect));
        let dialect = plan.dialect(self.dialect, Some("openai")).expect("it exists");
        Arc::new(request::read(&dialect.request, body.as_bytes()).expect("it is valid"))
    }

    fn pipeline(self, plan: &Plan, request: Arc<TurnRequest>, response_mode: ResponseMode) -> Pipeline {
        let mut tool_aliases = ToolAliases::default();
        if self.way == Way::WrappedDelta {
            tool_aliases.custom.push("lookup".to_owned());
        }
        let backend = plan.backend(self.backend).expect("it exists");
        let dialect = plan.dialect(self.dialect, Some("openai")).expect("it exists");
        let spec = test_turn_spec(backend, dialect, request, response_mode);
        // The ids of a server, which cost more than those of tests.
        Pipeline::new(TurnSpec { tool_aliases, ids: Ids::Seeded(7), ..spec })
    }
}

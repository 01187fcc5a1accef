//! A gateway with a scripted backend behind it, started with one line. What the backend answers is chosen by the model
//! that is asked for, so that many tests can share one process.

use super::{Answer, Backend, Disk, Reply, Request, Server, repo, serve};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};

pub struct Behind {
    pub server: Server,
    pub backend: Backend,
    answers: Arc<Mutex<HashMap<String, Answer>>>,
    _undertaker: Option<Child>,
}

impl Behind {
    /// `reframe serve --backend KIND=URL --profile PROFILE`, with the layer of a disk over the set.
    pub fn start(kind: &str, profile: &str, disk: Disk) -> Behind {
        Behind::launch(kind, Some(profile), disk)
    }

    fn launch(kind: &str, profile: Option<&str>, disk: Disk) -> Behind {
        let answers: Arc<Mutex<HashMap<String, Answer>>> = Arc::default();
        let backend = Backend::start({
            let answers = Arc::clone(&answers);
            move |seen| {
                let model = seen.json()["model"].as_str().unwrap().to_owned();
                let answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
                answers.get(&model).unwrap_or_else(|| panic!("nobody said what {model} answers")).clone()
            }
        });
        let at = format!("{kind}={}", backend.url());
        let launch = serve().args(["--backend", &at]).add(disk);
        let launch = match profile {
            Some(profile) => launch.args(["--profile", profile]),
            None => launch,
        };
        let server = launch.start();
        Behind { server, backend, answers, _undertaker: None }
    }

    /// For a static.
    pub fn shared(kind: &str, profile: &str, disk: Disk) -> Behind {
        Behind::start(kind, profile, disk).kept()
    }

    /// For a static; each route has the profile that its gateway.yaml says.
    pub fn shared_as_mapped(kind: &str, disk: Disk) -> Behind {
        Behind::launch(kind, None, disk).kept()
    }

    fn kept(self) -> Behind {
        let behind = self;
        let undertaker = Some(behind.server.outlived_by_nobody());
        Behind { _undertaker: undertaker, ..behind }
    }

    /// From now on the backend answers this to whoever asks for this model.
    pub fn plays(&self, model: &str, answer: Answer) {
        let earlier = self.answers.lock().unwrap_or_else(PoisonError::into_inner).insert(model.to_owned(), answer);
        assert!(earlier.is_none(), "{model} has an answer already");
    }

    /// What the client gets when the backend answers this: JSON, unless it asks for a stream.
    pub fn ask(&self, model: &str, answer: Answer, request: Request) -> Reply {
        self.plays(model, answer);
        self.server.ask(request)
    }

    /// The requests for this model, as the backend saw them.
    pub fn seen(&self, model: &str) -> Vec<Value> {
        let bodies = self.backend.seen().into_iter().map(|seen| seen.json());
        bodies.filter(|body| body["model"] == model).collect()
    }

    /// A line of `GET /metrics`, or 0.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.server.ask(Request::get("/metrics")).text();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().unwrap())
    }
}

/// A request in each dialect: `responses`, `chat`, `completions`; `stream` as it is given, or not there at all.
pub fn asking(dialect: &str, model: &str, stream: impl Into<Option<bool>>) -> Request {
    let (path, mut body) = match dialect {
        "responses" => ("/v1/responses", json!({ "model": model, "input": "Speak." })),
        "chat" => {
            ("/v1/chat/completions", json!({ "model": model, "messages": [{ "role": "user", "content": "Speak." }] }))
        }
        "completions" => ("/v1/completions", json!({ "model": model, "prompt": "Speak." })),
        other => panic!("no dialect {other}"),
    };
    if let Some(stream) = stream.into() {
        body["stream"] = json!(stream);
    }
    Request::post(body.to_string()).at(path).header("content-type", "application/json")
}

/// Everything that is expected stands in what came. A map may have more keys, a list no more elements.
pub fn holds(expected: &Value, got: &Value) {
    fn differs(expected: &Value, got: &Value, at: &str) -> Option<String> {
        match (expected, got) {
            (Value::Object(expected), Value::Object(_)) => {
                expected.iter().find_map(|(key, value)| differs(value, &got[key], &format!("{at}/{key}")))
            }
            (Value::Array(expected), Value::Array(got)) if expected.len() == got.len() => {
                let pairs = expected.iter().zip(got).enumerate();
                pairs.into_iter().find_map(|(i, (e, g))| differs(e, g, &format!("{at}/{i}")))
            }
            _ => (expected != got).then(|| format!("{at}: expected {expected}, got {got}")),
        }
    }
    if let Some(difference) = differs(expected, got, "") {
        panic!("{difference}\nin {got:#}");
    }
}

//! A gateway with a mock backend. The requested model selects the backend's response, so that many tests can share one
//! process.

use super::{MockBackend, MockResponse, Reply, Request, Server, TestDir, serve};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};

pub struct TestGateway {
    pub server: Server,
    pub backend: MockBackend,
    responses: Arc<Mutex<HashMap<String, MockResponse>>>,
    _killer: Option<Child>,
}

impl TestGateway {
    /// `reframe serve --backend KIND=URL --profile PROFILE --add DIR/layer`
    pub fn start(kind: &str, profile: &str, dir: TestDir) -> TestGateway {
        TestGateway::launch(kind, Some(profile), dir)
    }

    fn launch(kind: &str, profile: Option<&str>, dir: TestDir) -> TestGateway {
        let responses: Arc<Mutex<HashMap<String, MockResponse>>> = Arc::default();
        let backend = MockBackend::start({
            let responses = Arc::clone(&responses);
            move |request| {
                let model = request.json()["model"].as_str().unwrap().to_owned();
                let responses = responses.lock().unwrap_or_else(PoisonError::into_inner);
                responses.get(&model).unwrap_or_else(|| panic!("no response is set for {model}")).clone()
            }
        });
        let at = format!("{kind}={}", backend.url());
        let launch = serve().args(["--backend", &at]).add(dir);
        let launch = match profile {
            Some(profile) => launch.args(["--profile", profile]),
            None => launch,
        };
        let server = launch.start();
        TestGateway { server, backend, responses, _killer: None }
    }

    /// Stored in a static: killed when the test process exits.
    pub fn shared(kind: &str, profile: &str, dir: TestDir) -> TestGateway {
        TestGateway::start(kind, profile, dir).killed_on_exit()
    }

    /// Like `shared`, with the profiles of gateway.yaml.
    pub fn shared_with_route_profiles(kind: &str, dir: TestDir) -> TestGateway {
        TestGateway::launch(kind, None, dir).killed_on_exit()
    }

    fn killed_on_exit(self) -> TestGateway {
        let gateway = self;
        let killer = Some(gateway.server.kill_on_exit());
        TestGateway { _killer: killer, ..gateway }
    }

    /// Sets the backend's response to requests for this model.
    pub fn set_response(&self, model: &str, answer: MockResponse) {
        let earlier = self.responses.lock().unwrap_or_else(PoisonError::into_inner).insert(model.to_owned(), answer);
        assert!(earlier.is_none(), "{model} has an answer already");
    }

    /// Sets the backend's response and sends the request.
    pub fn fetch(&self, model: &str, answer: MockResponse, request: Request) -> Reply {
        self.set_response(model, answer);
        self.server.fetch(request)
    }

    /// The bodies of the backend requests for this model.
    pub fn requests_for(&self, model: &str) -> Vec<Value> {
        let bodies = self.backend.requests().into_iter().map(|request| request.json());
        bodies.filter(|body| body["model"] == model).collect()
    }

    /// The value of a metric in `GET /metrics`, or 0.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.server.fetch(Request::get("/metrics")).text();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().unwrap())
    }
}

/// A request in the dialect `responses`, `chat` or `completions`, with the given `stream` or without it.
pub fn dialect_request(dialect: &str, model: &str, stream: impl Into<Option<bool>>) -> Request {
    let (path, mut body) = match dialect {
        "responses" => ("/v1/responses", json!({ "model": model, "input": "Hello." })),
        "chat" => {
            ("/v1/chat/completions", json!({ "model": model, "messages": [{ "role": "user", "content": "Hello." }] }))
        }
        "completions" => ("/v1/completions", json!({ "model": model, "prompt": "Hello." })),
        other => panic!("no dialect {other}"),
    };
    if let Some(stream) = stream.into() {
        body["stream"] = json!(stream);
    }
    Request::post(body.to_string()).at(path).header("content-type", "application/json")
}

/// Asserts that `got` contains `expected`. Objects may have more keys, arrays no more elements.
pub fn assert_contains(expected: &Value, got: &Value) {
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

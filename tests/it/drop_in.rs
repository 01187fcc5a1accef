//! The profile `codex-completions-api` in place of the proxy that it is named after: started by the environment of that
//! proxy alone, with a worker that speaks the same protocol. Each test names the lines of `lines.txt` that it proves.

mod access;
mod chat;
mod errors;
mod health;
mod lines;
mod logs;
mod metrics;
mod responses;
mod tools;

use crate::support::{ChatRequest, Client, Launch, Request, Server, TestDir, chat, eventually};
use serde_json::{Value, json};
use std::path::PathBuf;

const KEY: &str = "test-sk-ci";

/// A gateway that was started like the proxy, and the files that its worker writes.
struct DropIn {
    server: Server,
    files: PathBuf,
}

/// Starts `reframe serve --profile codex-completions-api`, with these variables besides those that every start has.
fn start(variables: &[(&str, &str)]) -> DropIn {
    let dir = TestDir::empty();
    let files = dir.path("");
    let worker = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/worker/conversations.py");
    let path = |name: &str| dir.path(name).to_string_lossy().into_owned();
    let launch = Launch::new()
        .args(["serve", "--profile", "codex-completions-api"])
        .env("PORT", "0")
        .env("PROXY_API_KEY", KEY)
        .env("PROXY_USE_APP_SERVER", "true")
        .env("CODEX_BIN", worker)
        .env("PROXY_CODEX_WORKDIR", &path("work"))
        .env("FAKE_PIDS", &path("pids"))
        .env("FAKE_LOG", &path("log"))
        .env("FAKE_RELEASE", &path("release"))
        .env("TOKEN_LOG_PATH", &path("usage.ndjson"))
        .env("PROTO_LOG_PATH", &path("proto.ndjson"))
        .env("SANITIZER_LOG_PATH", &path("sanitizer.ndjson"));
    let launch = variables.iter().fold(launch, |launch, (name, value)| launch.env(name, value));
    DropIn { server: launch.keep(dir).start(), files }
}

/// As `start`, when the worker is ready.
fn ready(variables: &[(&str, &str)]) -> DropIn {
    let gateway = start(variables);
    gateway.wait_until_ready();
    gateway
}

fn with_key(request: impl Into<Request>) -> Request {
    request.into().header("authorization", &format!("Bearer {KEY}"))
}

/// A request of a chat client to the first model of the proxy.
fn ask(text: &str) -> ChatRequest {
    chat(text).with("model", "codex-5")
}

fn responses(body: Value) -> Request {
    Request::post(body.to_string()).at("/v1/responses").header("content-type", "application/json")
}

impl DropIn {
    fn wait_until_ready(&self) {
        eventually("ready", || (self.get("/readyz").0 == 200).then_some(()));
    }

    /// The status and the body.
    fn get(&self, path: &str) -> (u16, Value) {
        let reply = self.server.fetch(with_key(Request::get(path)));
        let body = serde_json::from_str(&reply.text()).unwrap_or(Value::Null);
        (reply.status(), body)
    }

    fn chat(&self, request: ChatRequest) -> (u16, Value) {
        let reply = self.server.fetch(with_key(request));
        (reply.status(), reply.json())
    }

    /// The data of each frame, in order.
    fn stream(&self, request: ChatRequest) -> Vec<Value> {
        let reply = self.server.fetch(with_key(request.streamed()));
        let data = |text: String| if text == "[DONE]" { json!("[DONE]") } else { serde_json::from_str(&text).unwrap() };
        let events = reply.sse_messages().into_iter().filter(|message| message.name() != "comment");
        events.map(|message| data(message.text().to_owned())).collect()
    }

    /// The starts of the worker: arguments, folder, environment.
    fn starts(&self) -> Vec<(u32, Value)> {
        let text = std::fs::read_to_string(self.files.join("pids")).unwrap_or_default();
        let start = |line: &str| {
            let (pid, rest) = line.split_once(' ')?;
            Some((pid.parse().ok()?, serde_json::from_str(rest).ok()?))
        };
        text.lines().filter_map(start).collect()
    }

    /// The parameters of the calls with this method that the worker received.
    fn received(&self, method: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.files.join("log")).unwrap_or_default();
        let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        messages.filter(|message| message["method"] == method).map(|message| message["params"].clone()).collect()
    }

    /// The JSON lines of a file, once there are so many.
    fn lines_of(&self, file: &str, count: usize) -> Vec<Value> {
        eventually("the file has its lines", || {
            let text = std::fs::read_to_string(self.files.join(file)).unwrap_or_default();
            let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            (lines.len() >= count).then_some(lines)
        })
    }

    fn release(&self) {
        std::fs::write(self.files.join("release"), "").unwrap();
    }

    fn client(&self) -> Client {
        Client::connect(self.server.addr())
    }
}

/// The choices of all frames, in order: index, delta and finish.
fn deltas(frames: &[Value]) -> Vec<(u64, Value, Value)> {
    let choices = frames.iter().filter_map(|frame| frame["choices"].as_array()).flatten();
    choices
        .map(|choice| (choice["index"].as_u64().unwrap(), choice["delta"].clone(), choice["finish_reason"].clone()))
        .collect()
}

//! Timing and disconnects: when response headers are sent, keepalive comments, timeouts, client disconnects and
//! backpressure. The tests run the real binary with a mock backend and short time limits.
//!
//! Where the order of two things matters, a `Gate` holds the backend back until the client has seen the first. Where
//! time itself is the subject, `ms` stretches all times of a test on a busy machine.

mod backpressure;
mod client_disconnects;
mod keepalive;
mod slow_clients;
mod stream_start;
mod timeouts;

use crate::support::sse::SseContent;
use crate::support::{
    MockResponse, ResponseStream, SseMessage, TestDir, TestGateway, backend_events, dialect_request, edited, repo,
};
use std::time::Duration;

/// A layer with an edited gateway.yaml.
pub struct GatewayConfig {
    gateway: String,
    dir: TestDir,
}

pub fn gateway_config() -> GatewayConfig {
    GatewayConfig { gateway: repo("mappings/gateway.yaml"), dir: TestDir::empty() }
}

impl GatewayConfig {
    /// `edit("first_event: 300s", "first_event: 400ms")`
    pub fn edit(self, old: &str, new: &str) -> GatewayConfig {
        GatewayConfig { gateway: edited(&self.gateway, old, new), ..self }
    }

    fn keepalive(self, time: Duration) -> GatewayConfig {
        self.edit("every: 15s", &format!("every: {}ms", time.as_millis()))
    }

    pub fn first_event(self, time: Duration) -> GatewayConfig {
        self.edit("first_event: 300s", &format!("first_event: {}ms", time.as_millis()))
    }

    pub fn idle(self, time: Duration) -> GatewayConfig {
        self.edit("idle: 300s", &format!("idle: {}ms", time.as_millis()))
    }

    fn overall(self, time: Duration) -> GatewayConfig {
        self.edit("overall: 600s", &format!("overall: {}ms", time.as_millis()))
    }

    /// Adds a profile with these policies.
    fn profile(self, name: &str, policies: &str) -> GatewayConfig {
        let text = format!("profile: {name}\npolicies: {{ {policies} }}\n");
        self.dir.write(&format!("layer/profiles/{name}.yaml"), &text);
        self
    }

    pub fn start(self, kind: &str, profile: &str) -> TestGateway {
        self.dir.write("layer/gateway.yaml", &self.gateway);
        TestGateway::start(kind, profile, self.dir)
    }

    /// Stored in a static: killed when the test process exits.
    fn shared(self, kind: &str, profile: &str) -> TestGateway {
        self.dir.write("layer/gateway.yaml", &self.gateway);
        TestGateway::shared(kind, profile, self.dir)
    }
}

/// The rest of a stream, with its comments.
fn rest(mut stream: ResponseStream) -> Vec<SseMessage> {
    std::iter::from_fn(|| stream.next_message()).collect()
}

fn stream(gateway: &TestGateway, dialect: &str, model: &str) -> ResponseStream {
    gateway.server.client().stream(dialect_request(dialect, model, true))
}

fn is_comment(message: &SseMessage) -> bool {
    matches!(message.content, SseContent::Comment(_))
}

/// Runs all in parallel: these tests mostly wait.
fn run_concurrently<T: Send>(all: impl IntoIterator<Item = T>, each: impl Fn(T) + Sync) {
    std::thread::scope(|scope| all.into_iter().for_each(|one| drop(scope.spawn(|| each(one)))));
}

/// A chat stream with headers and no event yet.
fn empty_stream() -> MockResponse {
    MockResponse::sse(&[])
}

fn word(text: &str) -> String {
    backend_events::word(text).to_string()
}

/// Adds the end of a chat stream.
fn finished(answer: MockResponse) -> MockResponse {
    let last = backend_events::chunk(&serde_json::json!({}), &serde_json::json!("stop"));
    answer.event(&last.to_string()).event("[DONE]")
}

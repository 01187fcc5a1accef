//! Time and presence: when the head leaves, what keeps a silent stream open, how long a backend may take, and what
//! becomes of it when nobody listens any more. The real binary, a scripted backend behind it, small limits.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

#[path = "disconnects/backpressure.rs"]
mod backpressure;
#[path = "disconnects/client_disconnects.rs"]
mod client_disconnects;
#[path = "disconnects/keepalive.rs"]
mod keepalive;
#[path = "disconnects/stream_start.rs"]
mod stream_start;
#[path = "disconnects/timeouts.rs"]
mod timeouts;

use std::time::Duration;
use support::{Answer, Behind, Disk, backend_events, edited, repo};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A layer whose gateway.yaml has other times.
struct Paced {
    gateway: String,
    disk: Disk,
}

fn paced() -> Paced {
    Paced { gateway: repo("mappings/gateway.yaml"), disk: Disk::empty() }
}

impl Paced {
    /// `times("first_event: 300s", "first_event: 400ms")`
    fn times(self, old: &str, new: &str) -> Paced {
        Paced { gateway: edited(&self.gateway, old, new), ..self }
    }

    fn keepalive(self, every: &str) -> Paced {
        self.times("every: 15s", &format!("every: {every}"))
    }

    fn first_event(self, limit: &str) -> Paced {
        self.times("first_event: 300s", &format!("first_event: {limit}"))
    }

    fn idle(self, limit: &str) -> Paced {
        self.times("idle: 300s", &format!("idle: {limit}"))
    }

    fn overall(self, limit: &str) -> Paced {
        self.times("overall: 600s", &format!("overall: {limit}"))
    }

    /// A profile of the shapes of `openai`, with these policies.
    fn profile(self, name: &str, policies: &str) -> Paced {
        let text = format!("profile: {name}\npolicies: {{ {policies} }}\n");
        self.disk.write(&format!("layer/profiles/{name}.yaml"), &text);
        self
    }

    fn before(self, kind: &str, profile: &str) -> Behind {
        self.disk.write("layer/gateway.yaml", &self.gateway);
        Behind::start(kind, profile, self.disk)
    }

    /// For a static.
    fn shared(self, kind: &str, profile: &str) -> Behind {
        self.disk.write("layer/gateway.yaml", &self.gateway);
        Behind::shared(kind, profile, self.disk)
    }
}

/// Waiting takes no power: what waits can wait together.
fn side_by_side<T: Send>(all: impl IntoIterator<Item = T>, each: impl Fn(T) + Sync) {
    std::thread::scope(|scope| all.into_iter().for_each(|one| drop(scope.spawn(|| each(one)))));
}

/// A chat stream that has not said anything yet: only its head.
fn silence() -> Answer {
    Answer::sse(&[])
}

fn word(text: &str) -> String {
    backend_events::word(text).to_string()
}

/// The end of a chat stream.
fn ending(answer: Answer) -> Answer {
    let last = backend_events::chunk(&serde_json::json!({}), &serde_json::json!("stop"));
    answer.event(&last.to_string()).event("[DONE]")
}

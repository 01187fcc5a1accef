//! How long things may take, and what is sent meanwhile.

use crate::mapping::source::field_reader::{Cx, Fields, text_of};
use crate::mapping::source::yaml::{Kind, Node};
use std::time::Duration;

/// `None` anywhere: no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    pub connect: Option<Duration>,
    /// From the request to the first event that a client is told of.
    pub first_event: Option<Duration>,
    /// Between two pieces of the backend's answer.
    pub idle: Option<Duration>,
    /// For a whole JSON answer.
    pub overall: Option<Duration>,
    /// For a whole stream: off, because a stream that goes on is healthy.
    pub stream: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = |s| Some(Duration::from_secs(s));
        Timeouts {
            connect: seconds(10),
            first_event: seconds(300),
            idle: seconds(300),
            overall: seconds(600),
            stream: None,
        }
    }
}

impl Timeouts {
    pub fn refined(self, node: Option<&Node>, cx: Cx) -> Timeouts {
        let Some(fields) = node.and_then(|n| Fields::of(n, "`timeouts:`", cx)) else { return self };
        let limit = |key: &'static str, before: Option<Duration>| match fields.get(key) {
            Some(node) => duration(node, cx).unwrap_or(before),
            None => before,
        };
        let timeouts = Timeouts {
            connect: limit("connect", self.connect),
            first_event: limit("first_event", self.first_event),
            idle: limit("idle", self.idle),
            overall: limit("overall", self.overall),
            stream: limit("stream", self.stream),
        };
        fields.done();
        timeouts
    }
}

/// The comment that keeps a silent stream open, and who does not want it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keepalive {
    pub every: Option<Duration>,
    pub comment: String,
    /// A header, a query parameter (both with the value 1) and words in the user agent that turn it off.
    pub header: Option<String>,
    pub query: Option<String>,
    pub user_agents: Vec<String>,
}

impl Default for Keepalive {
    fn default() -> Self {
        Keepalive {
            every: Some(Duration::from_secs(15)),
            comment: "keepalive".to_owned(),
            header: None,
            query: None,
            user_agents: Vec::new(),
        }
    }
}

impl Keepalive {
    pub fn parse(node: &Node, cx: Cx) -> Keepalive {
        let mut keepalive = Keepalive::default();
        let Some(fields) = Fields::of(node, "`keepalive:`", cx) else { return keepalive };
        if let Some(every) = fields.get("every").and_then(|n| duration(n, cx)) {
            keepalive.every = every;
        }
        if let Some(node) = fields.get("comment") {
            match text_of(node, cx) {
                Some(text) if text.contains(['\n', '\r', '\0']) => {
                    cx.error(crate::diagnostics::Code::UnsafeText, node.span, "a line break in a comment");
                }
                Some(text) => keepalive.comment = text.to_owned(),
                None => {}
            }
        }
        if let Some(inner) = fields.get("unless").and_then(|n| Fields::of(n, "`unless:`", cx)) {
            keepalive.header = inner.text("header").map(str::to_ascii_lowercase);
            keepalive.query = inner.text("query").map(str::to_owned);
            let words = inner.list("user_agents").iter().filter_map(|n| text_of(n, cx));
            keepalive.user_agents = words.map(str::to_lowercase).collect();
            inner.done();
        }
        fields.done();
        keepalive
    }
}

/// `250ms`, `15s`, `5m`, `none`. `Some(None)` is "no limit", `None` a mistake that has been told.
pub fn duration(node: &Node, cx: Cx) -> Option<Option<Duration>> {
    let parsed = match &node.kind {
        Kind::Text(text) if text == "none" => Some(None),
        Kind::Text(text) => [("ms", 1), ("s", 1000), ("m", 60_000)]
            .iter()
            .find_map(|(unit, ms)| text.strip_suffix(unit)?.trim().parse::<u64>().ok()?.checked_mul(*ms))
            .filter(|ms| *ms > 0)
            .map(|ms| Some(Duration::from_millis(ms))),
        _ => None,
    };
    if parsed.is_none() {
        cx.wrong_value(node, "a time", "250ms, 15s, 5m or none");
    }
    parsed
}

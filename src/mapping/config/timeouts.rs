//! `timeouts:` and `keepalive:` of gateway.yaml.

use crate::mapping::source::field_reader::{FieldReader, LoadContext, text_of};
use crate::mapping::source::yaml::{Node, YamlKind};
use std::time::Duration;

/// `None` means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    pub connect: Option<Duration>,
    /// From the request to the first event that is sent to the client.
    pub first_event: Option<Duration>,
    /// Between two chunks of the backend's response.
    pub idle: Option<Duration>,
    /// For a whole JSON response.
    pub overall: Option<Duration>,
    /// For a whole stream. Off by default, because an active stream is healthy.
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
    /// Applies the values of `node` over these.
    pub fn with_overrides(self, node: Option<&Node>, cx: LoadContext) -> Timeouts {
        let Some(fields) = node.and_then(|n| FieldReader::of(n, "`timeouts:`", cx)) else { return self };
        let limit = |key: &'static str, inherited: Option<Duration>| match fields.get(key) {
            Some(node) => duration(node, cx).unwrap_or(inherited),
            None => inherited,
        };
        let timeouts = Timeouts {
            connect: limit("connect", self.connect),
            first_event: limit("first_event", self.first_event),
            idle: limit("idle", self.idle),
            overall: limit("overall", self.overall),
            stream: limit("stream", self.stream),
        };
        fields.finish();
        timeouts
    }
}

/// The comment that keeps an idle stream open, and for which clients it is disabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keepalive {
    pub interval: Option<Duration>,
    pub comment: String,
    /// A request header and a query parameter that disable it with the value 1.
    pub header: Option<String>,
    pub query: Option<String>,
    /// Words in the user agent that disable it, in lower case.
    pub user_agents: Vec<String>,
}

impl Default for Keepalive {
    fn default() -> Self {
        Keepalive {
            interval: Some(Duration::from_secs(15)),
            comment: "keepalive".to_owned(),
            header: None,
            query: None,
            user_agents: Vec::new(),
        }
    }
}

impl Keepalive {
    pub fn parse(node: &Node, cx: LoadContext) -> Keepalive {
        let mut keepalive = Keepalive::default();
        let Some(fields) = FieldReader::of(node, "`keepalive:`", cx) else { return keepalive };
        if let Some(interval) = fields.get("every").and_then(|n| duration(n, cx)) {
            keepalive.interval = interval;
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
        if let Some(inner) = fields.get("disable_for").and_then(|n| FieldReader::of(n, "`disable_for:`", cx)) {
            keepalive.header = inner.text("header").map(str::to_ascii_lowercase);
            keepalive.query = inner.text("query").map(str::to_owned);
            let words = inner.list("user_agents").iter().filter_map(|n| text_of(n, cx));
            keepalive.user_agents = words.map(str::to_lowercase).collect();
            inner.finish();
        }
        fields.finish();
        keepalive
    }
}

/// Parses `250ms`, `15s`, `5m` or `none`. `Some(None)` is "no limit", `None` a mistake that was reported.
pub fn duration(node: &Node, cx: LoadContext) -> Option<Option<Duration>> {
    let parsed = match &node.kind {
        YamlKind::Text(text) if text == "none" => Some(None),
        YamlKind::Text(text) => [("ms", 1), ("s", 1000), ("m", 60_000)]
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

//! The lines of `logs:`: when they are written, and what they can read besides the request and the turn.

use super::named_enum;

named_enum! {
    /// When a line of a log is written.
    pub enum LogMoment {
        /// The gateway listens.
        Start = "start",
        /// A request was read and given to its backend.
        Request = "request",
        /// A frame of a stream is sent.
        Frame = "frame",
        /// The JSON body of a turn is sent.
        Body = "body",
        /// A turn ended, however it ended.
        Turn = "turn",
        /// The response to a request begins: of every endpoint, also an error.
        Response = "response",
        /// A child process wrote a line to its standard error.
        Worker = "worker",
    }
}

/// A request and its response, without their bodies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpExchange {
    pub method: String,
    /// The path of the endpoint as gateway.yaml writes it; `other` if nothing serves it.
    pub route: String,
    /// As the client sent it, without the query.
    pub path: Option<String>,
    pub status: u16,
    pub user_agent: Option<String>,
    /// By the closed list of gateway.yaml.
    pub client: String,
    /// The name of the API key.
    pub key: Option<String>,
    /// Whether the request has an API key: `present` or `none`.
    pub auth: Option<&'static str>,
    pub duration_ms: Option<u64>,
}

/// The time at which a line is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogTime {
    /// Milliseconds since 1970.
    pub ms: i64,
    /// `2026-01-31T09:00:00.123Z`
    pub iso: String,
}

/// What was counted of a turn that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnSummary {
    pub status: u16,
    pub outcome: &'static str,
    /// The kind of fault.
    pub error: Option<&'static str>,
    pub finish: Option<&'static str>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub total_tokens: u64,
    pub cached_tokens: Option<u64>,
    pub reasoning_tokens: Option<u64>,
    /// The tokens are an estimate.
    pub estimated: bool,
    pub choices: usize,
    pub tool_calls: usize,
    /// `structured`, or `textual` if a call was found in text.
    pub tool_source: Option<&'static str>,
    /// `limits.tool_calls` of the gateway.
    pub tool_call_limit: Option<usize>,
    pub frames: u64,
    pub first_frame_ms: Option<u64>,
    pub duration_ms: u64,
    pub metadata: RemovedMetadata,
}

/// The metadata lines that were removed from the text of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovedMetadata {
    /// How many lines.
    pub lines: usize,
    /// The keys of these lines, each once.
    pub keys: Vec<String>,
    /// Where the backend's mapping found keys, in its words, each once.
    pub sources: Vec<String>,
}

impl RemovedMetadata {
    pub fn add_key(&mut self, key: String) {
        add_once(&mut self.keys, key);
    }

    pub fn add_source(&mut self, source: String) {
        add_once(&mut self.sources, source);
    }
}

/// A turn can have many names.
fn add_once(names: &mut Vec<String>, name: String) {
    const MAX_NAMES: usize = 256;
    if names.len() < MAX_NAMES && !names.contains(&name) {
        names.push(name);
    }
}

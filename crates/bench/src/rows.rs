//! The rows of the table: which load each one is, and how a mock backend and a client talk about it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// An API of a client or a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Api {
    Chat,
    Responses,
}

impl Api {
    pub fn path(self) -> &'static str {
        match self {
            Api::Chat => "/v1/chat/completions",
            Api::Responses => "/v1/responses",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Api::Chat => "chat",
            Api::Responses => "responses",
        }
    }
}

/// What the mock backend answers. It travels as the name of the model, which gateways forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// One JSON body.
    Json,
    /// A stream of so many deltas, with a pause before each.
    Text { deltas: u32, pause_ms: u32 },
    /// The same, with one tool call and its arguments in so many deltas.
    Tool { deltas: u32, pause_ms: u32 },
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Answer::Json => write!(f, "json"),
            Answer::Text { deltas, pause_ms } => write!(f, "text-{deltas}-{pause_ms}"),
            Answer::Tool { deltas, pause_ms } => write!(f, "tool-{deltas}-{pause_ms}"),
        }
    }
}

impl FromStr for Answer {
    type Err = ();

    fn from_str(name: &str) -> Result<Answer, ()> {
        let mut words = name.split('-');
        let kind = words.next().ok_or(())?;
        let mut number = || words.next().and_then(|word| word.parse().ok()).ok_or(());
        match kind {
            "json" => Ok(Answer::Json),
            "text" => Ok(Answer::Text { deltas: number()?, pause_ms: number()? }),
            "tool" => Ok(Answer::Tool { deltas: number()?, pause_ms: number()? }),
            _ => Err(()),
        }
    }
}

impl Answer {
    pub fn deltas(self) -> u32 {
        match self {
            Answer::Json => 0,
            Answer::Text { deltas, .. } | Answer::Tool { deltas, .. } => deltas,
        }
    }

    /// The request of a client that asks for this answer.
    pub fn request(self, api: Api) -> String {
        let stream = self != Answer::Json;
        let question = match api {
            Api::Chat => {
                r#""messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"Describe Rust."}]"#
            }
            Api::Responses => r#""instructions":"You are a helpful assistant.","input":"Describe Rust.""#,
        };
        let parameters = r#"{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}"#;
        let tools = match (self, api) {
            (Answer::Tool { .. }, Api::Chat) => format!(
                r#","tools":[{{"type":"function","function":{{"name":"lookup","description":"Looks up","parameters":{parameters}}}}}]"#
            ),
            (Answer::Tool { .. }, Api::Responses) => format!(
                r#","tools":[{{"type":"function","name":"lookup","description":"Looks up","parameters":{parameters},"strict":false}}]"#
            ),
            _ => String::new(),
        };
        format!(r#"{{"model":"{self}","stream":{stream},{question}{tools}}}"#)
    }
}

/// What a row compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// CPU time of the gateway per JSON request.
    CpuPerRequest,
    /// CPU time of the gateway per delta of the backend.
    CpuPerFrame,
    /// Time from the backend's write to the client's read: median, 99th percentile.
    Latency,
    /// Resident memory without a stream, and what each open stream adds.
    Memory,
}

pub struct Row {
    /// The same name as in the table of targets.
    pub name: &'static str,
    pub measure: Measure,
    pub answer: Answer,
    /// Connections, each with one request at a time.
    pub connections: usize,
    pub warm_up: Duration,
}

const LONG: u32 = 1_000_000;

pub const ROWS: &[Row] = &[
    Row {
        name: "JSON requests at saturation, 64 connections",
        measure: Measure::CpuPerRequest,
        answer: Answer::Json,
        connections: 64,
        warm_up: Duration::from_millis(300),
    },
    Row {
        name: "256 live streams, a frame every 10 ms",
        measure: Measure::CpuPerFrame,
        answer: Answer::Text { deltas: LONG, pause_ms: 10 },
        connections: 256,
        warm_up: Duration::from_millis(800),
    },
    Row {
        name: "burst: streams of 2,000 frames without pause, 16 connections",
        measure: Measure::CpuPerFrame,
        answer: Answer::Text { deltas: 2_000, pause_ms: 0 },
        connections: 16,
        warm_up: Duration::from_millis(300),
    },
    Row {
        name: "tool calls: 100 argument frames, 64 connections",
        measure: Measure::CpuPerFrame,
        answer: Answer::Tool { deltas: 100, pause_ms: 4 },
        connections: 64,
        warm_up: Duration::from_millis(500),
    },
    Row {
        name: "1,000 short streams of 6 frames",
        measure: Measure::CpuPerFrame,
        answer: Answer::Text { deltas: 6, pause_ms: 500 },
        connections: 1_000,
        warm_up: Duration::from_millis(3_500),
    },
    Row {
        name: "one stream: latency of a frame",
        measure: Measure::Latency,
        answer: Answer::Text { deltas: LONG, pause_ms: 5 },
        connections: 1,
        warm_up: Duration::from_millis(300),
    },
    Row {
        name: "memory: idle, and per open stream",
        measure: Measure::Memory,
        answer: Answer::Text { deltas: LONG, pause_ms: 500 },
        connections: 1_000,
        warm_up: Duration::from_millis(3_000),
    },
];

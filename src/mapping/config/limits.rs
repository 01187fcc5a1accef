//! `limits:` of gateway.yaml: sizes, concurrency and rates.

use crate::mapping::grammar::notation::{Bytes, PositiveCount};
use crate::mapping::grammar::section;

section! {
    /// Limits on sizes, concurrency and rates.
    #[derive(Copy)]
    #[subject = "`limits:`"]
    pub struct Limits: Default {
        /// The size of a request body.
        body_bytes: Bytes = Bytes(16 << 20),
        /// The nesting of arrays and objects in a request body, at most 512; deeper ones are rejected with 400.
        json_depth: PositiveCount = PositiveCount(128),
        /// The number of JSON values in a request body, at most a million; more are rejected with 413. Many small values
        /// take much more memory than their text.
        request_values: PositiveCount = PositiveCount(250_000),
        /// The number of messages, content parts, tool calls, results and tools in a request; more are rejected with
        /// 400.
        request_items: PositiveCount = PositiveCount(50_000),
        /// The number of choices that a client may request (`n`), at most 128; more are rejected with 400.
        choices: PositiveCount = PositiveCount(128),
        /// The tokens of a request, estimated as one per four characters; more are rejected with a fault of the kind
        /// `context_length`. Default: no limit.
        request_tokens: Option<PositiveCount>,
        /// The number of turns in flight, streamed or not; more are rejected with 429.
        streams: PositiveCount = PositiveCount(2000),
        /// The number of turns in flight of one client: of one API key, or of one address if clients send no key. More
        /// are rejected with 429. Default: half of `streams` if there are several `api_keys`, else `streams`.
        streams_per_client: Option<PositiveCount>,
        /// The requests that one client may send in a minute, all of them at once if it sent none before; more are
        /// rejected with 429. Default: no limit.
        requests_per_minute: Option<PositiveCount>,
        /// The tokens that one client may use in a minute: those of its requests, estimated, and of the responses when
        /// they have ended. More are rejected with 429. Default: no limit.
        tokens_per_minute: Option<PositiveCount>,
        /// The size of one event of a backend.
        event_bytes: Bytes = Bytes(16 << 20),
        /// The size of a backend's response that becomes one JSON body.
        answer_bytes: Bytes = Bytes(16 << 20),
        /// The memory of what a turn keeps of a backend's response: text, arguments, reasoning, citations,
        /// log-probabilities. A turn that needs more fails.
        turn_bytes: Bytes = Bytes(64 << 20),
        /// The number of tool calls of a choice. It finishes after the last one, and the backend is cancelled. Default: no
        /// limit.
        tool_calls: Option<PositiveCount>,
        /// The size of the arguments of one tool call. A turn with a larger call fails.
        argument_bytes: Bytes = Bytes(1 << 20),
        /// The memory of what all turns in flight keep together. While they need more, new requests are rejected with 503.
        buffered_bytes: Bytes = Bytes(1 << 30),
    }
}

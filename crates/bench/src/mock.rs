//! The mock backend: Chat Completions and Responses, as JSON or as a stream of stamped deltas.

use crate::rows::{Answer, Api};
use anyhow::Result;
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep_until};

/// Serves until the process is killed. The first line of its output is its address.
pub async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        tokio::spawn(
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service_fn(answer)),
        );
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<BoxBody<Bytes, Infallible>>, hyper::Error> {
    let api = if request.uri().path().ends_with("/responses") { Api::Responses } else { Api::Chat };
    let body = request.into_body().collect().await?.to_bytes();
    let Some(answer) = model(&body).and_then(|name| name.parse().ok()) else {
        let mut response =
            Response::new(Full::new(Bytes::from_static(b"{\"error\":{\"message\":\"unknown model\"}}")).boxed());
        *response.status_mut() = hyper::StatusCode::NOT_FOUND;
        return Ok(response);
    };
    let (media_type, body) = match answer {
        Answer::Json => ("application/json", Full::new(Bytes::from_static(json(api).as_bytes())).boxed()),
        Answer::Text { .. } | Answer::Tool { .. } => {
            ("text/event-stream", StreamBody::new(events(api, answer)).boxed())
        }
    };
    Ok(Response::builder().header(CONTENT_TYPE, media_type).body(body).unwrap_or_default())
}

/// The value of `"model"`; gateways may write a space after the colon.
fn model(body: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(body).ok()?;
    let (_, rest) = text.split_once("\"model\":")?;
    rest.trim_start().strip_prefix('"')?.split_once('"').map(|(name, _)| name)
}

fn json(api: Api) -> &'static str {
    match api {
        Api::Chat => {
            r#"{"id":"chatcmpl-8x2kQ","object":"chat.completion","created":1767225600,"model":"gpt-5.2","choices":[{"index":0,"message":{"role":"assistant","content":"Rust is a systems programming language that is fast, memory-safe and well suited for concurrent programs.","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":23,"completion_tokens":21,"total_tokens":44,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_44709d6fcb"}"#
        }
        Api::Responses => {
            r#"{"id":"resp_8x2kQ","object":"response","created_at":1767225600,"status":"completed","error":null,"incomplete_details":null,"model":"gpt-5.2","output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Rust is a systems programming language that is fast, memory-safe and well suited for concurrent programs.","annotations":[],"logprobs":[]}]}],"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":{"input_tokens":23,"input_tokens_details":{"cached_tokens":0},"output_tokens":21,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":44},"metadata":{}}"#
        }
    }
}

/// The events of a stream: its beginning, the deltas at their times, its end. Every event is a chunk of its own; without
/// a pause they follow each other as fast as the gateway reads.
fn events(api: Api, answer: Answer) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + Sync {
    let (deltas, pause) = match answer {
        Answer::Text { deltas, pause_ms } | Answer::Tool { deltas, pause_ms } => {
            (deltas, Duration::from_millis(pause_ms.into()))
        }
        Answer::Json => (0, Duration::ZERO),
    };
    let writer = EventWriter { api, tool: matches!(answer, Answer::Tool { .. }) };
    let start = Instant::now();
    stream::unfold(0, move |sent| async move {
        let mut out = String::new();
        if sent == 0 {
            writer.begin(&mut out);
            return Some((out, 1));
        }
        if sent > deltas {
            if sent > deltas + 1 {
                return None;
            }
            writer.end(&mut out);
            return Some((out, deltas + 2));
        }
        if !pause.is_zero() {
            sleep_until(start + pause * sent).await;
        }
        writer.delta(&mut out, sent - 1);
        Some((out, sent + 1))
    })
    .map_frames()
}

trait MapFrames: Stream<Item = String> + Sized {
    fn map_frames(self) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
        futures_util::StreamExt::map(self, |text| Ok(Frame::data(Bytes::from(text))))
    }
}
impl<S: Stream<Item = String>> MapFrames for S {}

/// Nanoseconds since 1970; mock and client run on the same machine.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

#[derive(Clone, Copy)]
struct EventWriter {
    api: Api,
    tool: bool,
}

impl EventWriter {
    fn chat(out: &mut String, delta: &str, finish: &str) {
        out.push_str(r#"data: {"id":"chatcmpl-8x2kQ","object":"chat.completion.chunk","created":1767225600,"model":"gpt-5.2","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":"#);
        out.push_str(delta);
        out.push_str(r#","logprobs":null,"finish_reason":"#);
        out.push_str(finish);
        out.push_str("}]}\n\n");
    }

    fn event(out: &mut String, name: &str, members: &str) {
        out.push_str(&format!("event: {name}\ndata: {{\"type\":\"{name}\",{members}}}\n\n"));
    }

    fn begin(self, out: &mut String) {
        match (self.api, self.tool) {
            (Api::Chat, false) => Self::chat(out, r#"{"role":"assistant","content":""}"#, "null"),
            (Api::Chat, true) => Self::chat(
                out,
                r#"{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"lookup","arguments":"{\"q\":\""}}]}"#,
                "null",
            ),
            (Api::Responses, tool) => {
                Self::event(
                    out,
                    "response.created",
                    &format!(r#""sequence_number":0,"response":{}"#, Self::response("in_progress", "[]", "null")),
                );
                if tool {
                    Self::event(
                        out,
                        "response.output_item.added",
                        r#""sequence_number":1,"output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"lookup","arguments":"","status":"in_progress"}"#,
                    );
                    Self::event(
                        out,
                        "response.function_call_arguments.delta",
                        r#""sequence_number":2,"item_id":"fc_1","output_index":0,"delta":"{\"q\":\"""#,
                    );
                } else {
                    Self::event(
                        out,
                        "response.output_item.added",
                        r#""sequence_number":1,"output_index":0,"item":{"type":"message","id":"msg_1","status":"in_progress","role":"assistant","content":[]}"#,
                    );
                    Self::event(
                        out,
                        "response.content_part.added",
                        r#""sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}"#,
                    );
                }
            }
        }
    }

    /// A delta with its number and the time of its writing: `@NUMBER:NANOSECONDS `.
    fn delta(self, out: &mut String, number: u32) {
        let text = format!("@{number}:{} ", now());
        match (self.api, self.tool) {
            (Api::Chat, false) => Self::chat(out, &format!(r#"{{"content":"{text}"}}"#), "null"),
            (Api::Chat, true) => {
                Self::chat(
                    out,
                    &format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":"{text}"}}}}]}}"#),
                    "null",
                );
            }
            (Api::Responses, false) => Self::event(
                out,
                "response.output_text.delta",
                &format!(
                    r#""sequence_number":{},"item_id":"msg_1","output_index":0,"content_index":0,"delta":"{text}","logprobs":[]"#,
                    number + 3
                ),
            ),
            (Api::Responses, true) => Self::event(
                out,
                "response.function_call_arguments.delta",
                &format!(r#""sequence_number":{},"item_id":"fc_1","output_index":0,"delta":"{text}""#, number + 3),
            ),
        }
    }

    fn end(self, out: &mut String) {
        match self.api {
            Api::Chat => {
                if self.tool {
                    Self::chat(out, r#"{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]}"#, "null");
                }
                Self::chat(out, "{}", if self.tool { r#""tool_calls""# } else { r#""stop""# });
                out.push_str("data: [DONE]\n\n");
            }
            Api::Responses => {
                if self.tool {
                    Self::event(
                        out,
                        "response.function_call_arguments.delta",
                        r#""sequence_number":1000001,"item_id":"fc_1","output_index":0,"delta":"\"}""#,
                    );
                }
                let usage = r#"{"input_tokens":23,"input_tokens_details":{"cached_tokens":0},"output_tokens":21,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":44}"#;
                Self::event(
                    out,
                    "response.completed",
                    &format!(r#""sequence_number":1000002,"response":{}"#, Self::response("completed", "[]", usage)),
                );
            }
        }
    }

    fn response(status: &str, output: &str, usage: &str) -> String {
        format!(
            r#"{{"id":"resp_8x2kQ","object":"response","created_at":1767225600,"status":"{status}","error":null,"incomplete_details":null,"model":"gpt-5.2","output":{output},"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":{usage},"metadata":{{}}}}"#
        )
    }
}

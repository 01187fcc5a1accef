//! Parses a gateway response of any dialect: a complete response, an interrupted one, or an error.

use crate::support::{Reply, Request};
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dialect {
    Chat,
    Responses,
    Completions,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    Stream,
    Json,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Received {
    Complete(String),
    HttpError {
        status: u16,
        message: String,
        code: Option<String>,
        retry_after: Option<u64>,
    },
    /// A failure after some text.
    Interrupted {
        text: String,
        message: String,
        code: Option<String>,
    },
}

/// One SSE event.
#[derive(Debug)]
pub struct Event {
    pub name: Option<String>,
    pub data: String,
}

impl Dialect {
    pub const ALL: [Dialect; 3] = [Dialect::Chat, Dialect::Responses, Dialect::Completions];

    pub fn request(self, form: Form) -> Request {
        self.request_with(form, json!({}))
    }

    /// With additional members.
    pub fn request_with(self, form: Form, more: Value) -> Request {
        let (path, mut body) = match self {
            Dialect::Chat => ("/v1/chat/completions", json!({ "messages": [{ "role": "user", "content": "hi" }] })),
            Dialect::Responses => ("/v1/responses", json!({ "input": "hi" })),
            Dialect::Completions => ("/v1/completions", json!({ "prompt": "hi" })),
        };
        body["model"] = json!("m");
        if form == Form::Stream {
            body["stream"] = json!(true);
        }
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Request::post(body.to_string()).at(path).header("content-type", "application/json")
    }

    /// Parses a response strictly; panics if it is malformed.
    pub fn read(self, form: Form, reply: &Reply) -> Received {
        assert_eq!(reply.header("x-request-id").map(str::len), Some(32), "no request id: {:?}", reply.head);
        if reply.status() != 200 {
            let (message, code) = envelope(&reply.json(), reply.status());
            let retry_after = reply.header("retry-after").map(|text| text.parse().unwrap());
            return Received::HttpError { status: reply.status(), message, code, retry_after };
        }
        assert_eq!(reply.header("retry-after"), None);
        match form {
            Form::Json => self.body(&reply.json()),
            Form::Stream => {
                assert_eq!(reply.header("content-type"), Some("text/event-stream; charset=utf-8"));
                self.stream(&events(&reply.text()))
            }
        }
    }

    fn body(self, body: &Value) -> Received {
        match self {
            Dialect::Chat => {
                let choice = only(&body["choices"]);
                assert_eq!((&body["object"], &choice["finish_reason"]), (&json!("chat.completion"), &json!("stop")));
                Received::Complete(string(&choice["message"]["content"]))
            }
            Dialect::Completions => {
                let choice = only(&body["choices"]);
                assert_eq!((&body["object"], &choice["finish_reason"]), (&json!("text_completion"), &json!("stop")));
                Received::Complete(string(&choice["text"]))
            }
            Dialect::Responses => response(body),
        }
    }

    fn stream(self, events: &[Event]) -> Received {
        match self {
            Dialect::Responses => typed(events),
            Dialect::Chat => chunks(events, |choice| choice["delta"]["content"].as_str().map(str::to_owned)),
            Dialect::Completions => chunks(events, |choice| choice["text"].as_str().map(str::to_owned)),
        }
    }
}

/// Chat and Completions: chunks, one finish, `[DONE]`; or chunks and a final error.
fn chunks(events: &[Event], delta: fn(&Value) -> Option<String>) -> Received {
    assert!(events.iter().all(|event| event.name.is_none()), "a named event: {events:?}");
    let (last, before) = events.split_last().expect("an empty stream");
    let mut text = String::new();
    let mut finishes = Vec::new();
    for event in before {
        let chunk = event.json();
        assert_eq!(chunk.get("error"), None, "something follows an error: {events:?}");
        let choice = only(&chunk["choices"]);
        assert!(finishes.is_empty(), "something follows the finish: {events:?}");
        text += &delta(choice).unwrap_or_default();
        finishes.extend(choice["finish_reason"].as_str().map(str::to_owned));
    }
    if last.data == "[DONE]" {
        assert_eq!(finishes, ["stop"], "{events:?}");
        return Received::Complete(text);
    }
    let error = last.json();
    assert_eq!(finishes, [""; 0], "an error after the finish: {events:?}");
    let (message, code) = envelope(&error, 0);
    Received::Interrupted { text, message, code }
}

/// Responses: named and numbered events, one final event, `[DONE]`.
fn typed(events: &[Event]) -> Received {
    let (done, events) = events.split_last().expect("an empty stream");
    assert_eq!((done.name.as_deref(), done.data.as_str()), (None, "[DONE]"), "the end of {events:?}");
    let mut text = String::new();
    for (number, event) in events.iter().enumerate() {
        let data = event.json();
        assert_eq!(
            (data["sequence_number"].as_u64(), data["type"].as_str()),
            (Some(number as u64), event.name.as_deref())
        );
        let is_end =
            matches!(data["type"].as_str(), Some("response.completed" | "response.failed" | "response.incomplete"));
        assert_eq!(is_end, number + 1 == events.len(), "not one end: {events:?}");
        if data["type"] == "response.output_text.delta" {
            text += &string(&data["delta"]);
        }
    }
    assert_eq!(events[0].name.as_deref(), Some("response.created"));
    let end = events.last().unwrap().json();
    assert_eq!(end["type"], format!("response.{}", string(&end["response"]["status"])));
    let received = response(&end["response"]);
    let repeated = match &received {
        Received::Complete(text) | Received::Interrupted { text, .. } => text,
        Received::HttpError { .. } => panic!("{received:?}"),
    };
    assert_eq!(*repeated, text, "the final event repeats the text");
    received
}

fn response(body: &Value) -> Received {
    assert_eq!(body["object"], "response");
    let items = body["output"].as_array().unwrap();
    let text = items.iter().map(|item| string(&only(&item["content"])["text"])).collect();
    match body["status"].as_str().unwrap() {
        "completed" => {
            assert_eq!((&body["error"], items.len()), (&Value::Null, 1), "{body}");
            Received::Complete(text)
        }
        "failed" => {
            let error = &body["error"];
            Received::Interrupted { text, message: string(&error["message"]), code: Some(string(&error["code"])) }
        }
        other => panic!("the status {other}: {body}"),
    }
}

/// The message and code of an error. Checks that its type matches the status, if there is one.
fn envelope(body: &Value, status: u16) -> (String, Option<String>) {
    let error = &body["error"];
    let keys: Vec<&str> =
        error.as_object().unwrap_or_else(|| panic!("no error: {body}")).keys().map(String::as_str).collect();
    assert_eq!((body.as_object().unwrap().len(), &keys[..]), (1, &["message", "type", "param", "code"][..]), "{body}");
    let kind = match status {
        0 => string(&error["type"]),
        429 => "rate_limit_error".to_owned(),
        400..=499 => "invalid_request_error".to_owned(),
        _ => "server_error".to_owned(),
    };
    assert_eq!(error["type"], kind, "{body}");
    (string(&error["message"]), error["code"].as_str().map(str::to_owned))
}

pub fn events(text: &str) -> Vec<Event> {
    let blocks =
        text.strip_suffix("\n\n").unwrap_or_else(|| panic!("half an event at the end: {text:?}")).split("\n\n");
    let events = blocks.map(|block| {
        let (name, data) = match block.split_once('\n') {
            Some((name, data)) => (Some(name.strip_prefix("event: ").unwrap().to_owned()), data),
            None => (None, block),
        };
        let data = data.strip_prefix("data: ").unwrap_or_else(|| panic!("not an event: {block:?}"));
        assert!(!data.contains('\n'), "data of two lines: {block:?}");
        Event { name, data: data.to_owned() }
    });
    events.collect()
}

impl Event {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {:?}", self.data))
    }
}

fn only(list: &Value) -> &Value {
    let [one] = &list.as_array().unwrap_or_else(|| panic!("not a list: {list}"))[..] else { panic!("not one: {list}") };
    one
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not text: {value}")).to_owned()
}

//! What a client was told, whatever dialect it speaks: the whole answer, half of one, or why there is none.

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
pub enum Told {
    Whole(String),
    /// As an HTTP error.
    No {
        status: u16,
        message: String,
        code: Option<String>,
        retry_after: Option<u64>,
    },
    /// After a part had been told.
    Broke {
        said: String,
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

    /// With more members.
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

    /// Reads a reply as strictly as its dialect allows; what is not well formed is a panic.
    pub fn read(self, form: Form, reply: &Reply) -> Told {
        assert_eq!(reply.header("x-request-id").map(str::len), Some(32), "no request id: {:?}", reply.head);
        if reply.status() != 200 {
            let (message, code) = envelope(&reply.json(), reply.status());
            let retry_after = reply.header("retry-after").map(|text| text.parse().unwrap());
            return Told::No { status: reply.status(), message, code, retry_after };
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

    fn body(self, body: &Value) -> Told {
        match self {
            Dialect::Chat => {
                let choice = only(&body["choices"]);
                assert_eq!((&body["object"], &choice["finish_reason"]), (&json!("chat.completion"), &json!("stop")));
                Told::Whole(text(&choice["message"]["content"]))
            }
            Dialect::Completions => {
                let choice = only(&body["choices"]);
                assert_eq!((&body["object"], &choice["finish_reason"]), (&json!("text_completion"), &json!("stop")));
                Told::Whole(text(&choice["text"]))
            }
            Dialect::Responses => response(body),
        }
    }

    fn stream(self, events: &[Event]) -> Told {
        match self {
            Dialect::Responses => typed(events),
            Dialect::Chat => chunks(events, |choice| choice["delta"]["content"].as_str().map(str::to_owned)),
            Dialect::Completions => chunks(events, |choice| choice["text"].as_str().map(str::to_owned)),
        }
    }
}

/// Chat and Completions: chunks, one finish, `[DONE]`; or chunks, an error, nothing.
fn chunks(events: &[Event], piece: fn(&Value) -> Option<String>) -> Told {
    assert!(events.iter().all(|event| event.name.is_none()), "a named event: {events:?}");
    let (last, before) = events.split_last().expect("an empty stream");
    let mut said = String::new();
    let mut finishes = Vec::new();
    for event in before {
        let chunk = event.json();
        assert_eq!(chunk.get("error"), None, "something follows an error: {events:?}");
        let choice = only(&chunk["choices"]);
        assert!(finishes.is_empty(), "something follows the finish: {events:?}");
        said += &piece(choice).unwrap_or_default();
        finishes.extend(choice["finish_reason"].as_str().map(str::to_owned));
    }
    if last.data == "[DONE]" {
        assert_eq!(finishes, ["stop"], "{events:?}");
        return Told::Whole(said);
    }
    let error = last.json();
    assert_eq!(finishes, [""; 0], "an error after the finish: {events:?}");
    let (message, code) = envelope(&error, 0);
    Told::Broke { said, message, code }
}

/// Responses: numbered events that say their names, one end, `[DONE]`.
fn typed(events: &[Event]) -> Told {
    let (done, events) = events.split_last().expect("an empty stream");
    assert_eq!((done.name.as_deref(), done.data.as_str()), (None, "[DONE]"), "the end of {events:?}");
    let mut said = String::new();
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
            said += &text(&data["delta"]);
        }
    }
    assert_eq!(events[0].name.as_deref(), Some("response.created"));
    let end = events.last().unwrap().json();
    assert_eq!(end["type"], format!("response.{}", text(&end["response"]["status"])));
    let told = response(&end["response"]);
    let repeated = match &told {
        Told::Whole(text) | Told::Broke { said: text, .. } => text,
        Told::No { .. } => panic!("{told:?}"),
    };
    assert_eq!(*repeated, said, "the end repeats what was said");
    told
}

fn response(body: &Value) -> Told {
    assert_eq!(body["object"], "response");
    let items = body["output"].as_array().unwrap();
    let said = items.iter().map(|item| text(&only(&item["content"])["text"])).collect();
    match body["status"].as_str().unwrap() {
        "completed" => {
            assert_eq!((&body["error"], items.len()), (&Value::Null, 1), "{body}");
            Told::Whole(said)
        }
        "failed" => {
            let error = &body["error"];
            Told::Broke { said, message: text(&error["message"]), code: Some(text(&error["code"])) }
        }
        other => panic!("the status {other}: {body}"),
    }
}

/// Its message and code; the type is that of the status, where there is one.
fn envelope(body: &Value, status: u16) -> (String, Option<String>) {
    let error = &body["error"];
    let keys: Vec<&str> =
        error.as_object().unwrap_or_else(|| panic!("no error: {body}")).keys().map(String::as_str).collect();
    assert_eq!((body.as_object().unwrap().len(), &keys[..]), (1, &["message", "type", "param", "code"][..]), "{body}");
    let kind = match status {
        0 => text(&error["type"]),
        429 => "rate_limit_error".to_owned(),
        400..=499 => "invalid_request_error".to_owned(),
        _ => "server_error".to_owned(),
    };
    assert_eq!(error["type"], kind, "{body}");
    (text(&error["message"]), error["code"].as_str().map(str::to_owned))
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

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not text: {value}")).to_owned()
}

//! Turns through the shipped mappings, perhaps edited: raw events of a backend in, the client's frames and body out.

use crate::support::replay::LoadedSet;
use crate::support::temp_sets::edited;
use reframe::testing::domain::Tree;
use reframe::testing::mapping::SourceFile;
use reframe::testing::mapping::config::transcript::{RecordedEvent, Transcript, TranscriptLine};
use reframe::testing::reload::embedded;
use serde_json::{Value, json};

/// What a client gets for one turn.
pub struct Answer {
    /// The data of all frames, without `[DONE]`.
    pub frames: Vec<Value>,
    /// The status and the body for a client that does not stream.
    pub status: u16,
    pub body: Value,
}

/// The shipped files with edits: file, old text (which must occur once), new text.
pub fn edited_files(edits: &[(&str, &str, &str)]) -> Vec<SourceFile> {
    let mut files = embedded::files();
    for (name, old, new) in edits {
        let file = files.iter_mut().find(|file| file.name == *name).unwrap_or_else(|| panic!("no file {name}"));
        file.text = edited(&file.text, old, new).into();
    }
    files
}

pub fn added_file(name: &str, text: &str) -> SourceFile {
    SourceFile { name: name.to_owned(), shown: name.to_owned(), layer: 1, text: text.into() }
}

pub fn tree(value: &Value) -> Tree {
    Tree::parse(value.to_string().as_bytes()).unwrap()
}

/// A turn of a backend that sends these events, for a request in this dialect.
pub fn answer(set: &LoadedSet, backend: &str, raws: &[Value], dialect: &str, profile: &str, request: &Value) -> Answer {
    let line = |raw: &Value| TranscriptLine { at_ms: 0, event: RecordedEvent::Raw(tree(raw)) };
    let mut transcript = empty_transcript();
    transcript.backend = backend.to_owned();
    transcript.lines = raws.iter().map(line).collect();
    let streamed = set.stream(&transcript, dialect, profile, &tree(request));
    let data = |line: &str| serde_json::from_str(line.strip_prefix("data: ")?).ok();
    let text = streamed.text();
    let body = set.body(&transcript, dialect, profile, &tree(request));
    let (status, body) = match body.strip_prefix("HTTP ") {
        Some(failed) => {
            failed.split_once('\n').map(|(status, body)| (status.parse().unwrap(), body.to_owned())).unwrap()
        }
        None => (200, body),
    };
    Answer { frames: text.lines().filter_map(data).collect(), status, body: serde_json::from_str(&body).unwrap() }
}

fn empty_transcript() -> Transcript {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/transcripts/greeting.jsonl");
    crate::support::replay::transcript(&path)
}

/// A chunk of a chat backend.
pub fn chunk(delta: Value, finish: Value) -> Value {
    json!({ "id": "x", "model": "m", "created": 1, "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}

/// A JSON response of a chat backend.
pub fn response(message: Value, finish: &str) -> Value {
    json!({
        "id": "x", "model": "m", "created": 1, "object": "chat.completion",
        "choices": [{ "index": 0, "message": message, "finish_reason": finish }],
    })
}

/// The calls of a chat body or of chat chunks: id, name, arguments.
pub fn calls(answer: &Answer) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_body = &answer.body["choices"][0]["message"]["tool_calls"];
    let of_body: Vec<_> = of_body.as_array().into_iter().flatten().collect();
    let of_body: Vec<(String, String, String)> = of_body
        .iter()
        .map(|call| (text(&call["id"]), text(&call["function"]["name"]), text(&call["function"]["arguments"])))
        .collect();
    let mut streamed: Vec<(String, String, String)> = Vec::new();
    for frame in &answer.frames {
        for call in frame["choices"][0]["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let index = call["index"].as_u64().unwrap() as usize;
            if streamed.len() <= index {
                streamed.resize(index + 1, Default::default());
            }
            streamed[index].0.push_str(&text(&call["id"]));
            streamed[index].1.push_str(&text(&call["function"]["name"]));
            streamed[index].2.push_str(&text(&call["function"]["arguments"]));
        }
    }
    assert_eq!(streamed, of_body, "the stream and the body differ:\n{:#?}\n{:#}", answer.frames, answer.body);
    streamed
}

/// The text of a chat answer, in the stream and in the body.
pub fn content(answer: &Answer) -> String {
    let streamed: String =
        answer.frames.iter().filter_map(|frame| frame["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(streamed, answer.body["choices"][0]["message"]["content"].as_str().unwrap_or_default());
    streamed
}

pub fn finish(answer: &Answer) -> String {
    let reasons: Vec<&str> =
        answer.frames.iter().filter_map(|frame| frame["choices"][0]["finish_reason"].as_str()).collect();
    assert_eq!(reasons.len(), 1, "{:#?}", answer.frames);
    assert_eq!(answer.body["choices"][0]["finish_reason"], reasons[0]);
    reasons[0].to_owned()
}

//! What rules can read: lists inside lists, elements by name, the head of a response, binary streams.

use super::turns::{added_file, answer};
use crate::support::replay::LoadedSet;
use crate::support::{MockResponse, TestDir, TestGateway, dialect_request, repo};
use reframe::testing::domain::variables::RecordType;
use reframe::testing::reload::embedded;
use serde_json::{Value, json};

fn set(backend: &str) -> LoadedSet {
    let mut files = embedded::files();
    files.push(added_file("backends/nested.yaml", backend));
    LoadedSet::of(&files)
}

fn content(set: &LoadedSet, raws: &[Value]) -> Vec<String> {
    let request = json!({ "model": "m", "stream": true, "n": 2, "messages": [{ "role": "user", "content": "Hi" }] });
    let answer = answer(set, "nested", raws, "chat", "openai", &request);
    let choices = answer.body["choices"].as_array().unwrap_or_else(|| panic!("{:#}", answer.body));
    choices.iter().map(|choice| choice["message"]["content"].as_str().unwrap_or_default().to_owned()).collect()
}

const NESTED: &str = r#"
backend: nested
transport: http
request: { path: /chat, body: { model: "{{ request.model }}", n: "{{ request.n }}" } }
events:
  framing: ndjson
  rules:
    - each: "$.choices[*]"
      as: choice
      emit:
        - each: "@.messages[*]"
          as: message
          where: { "@.blocks": array }
          emit:
            - { where: { $message.title: string }, text: { choice: $choice.index, delta: "@.title" } }
            - each: "@.blocks[*]"
              where: { $message.hidden: absent }
              emit:
                - text: { choice: $choice.index, delta: { from: "@.lines[*].text", as: concat } }
                - { where: { "@.end": true }, text: { choice: "$choice.index", delta: "^.tail" } }
        - finish: { choice: "@.index", reason: stop }
"#;

#[test]
fn a14_lists_inside_lists_read_the_elements_around_them_by_name() {
    let line = |text: &str| json!({ "text": text });
    let raw = json!({ "choices": [
        { "index": 1, "messages": [
            { "title": "T ", "tail": "!", "blocks": [
                { "lines": [line("a"), line("b")] }, { "lines": [line("c")], "end": true },
            ] },
            { "hidden": true, "blocks": [{ "lines": [line("never")] }] },
            { "blocks": [{ "lines": [] }, { "lines": [line("d")] }] },
        ] },
        { "index": 0, "messages": [{ "blocks": [{ "lines": [line("first")] }] }] },
    ] });
    assert_eq!(content(&set(NESTED), &[raw]), ["first", "T abc!d"]);
}

#[test]
fn a14_what_cannot_be_concatenated_fails_the_turn() {
    let raw = json!({ "choices": [{ "index": 0, "messages": [{ "blocks": [{ "lines": [{ "text": 5 }] }] }] }] });
    let request = json!({ "model": "m", "messages": [{ "role": "user", "content": "Hi" }] });
    let answer = answer(&set(NESTED), "nested", &[raw], "chat", "openai", &request);
    assert_eq!(answer.status, 502, "{:#}", answer.body);
    let message = answer.body["error"]["message"].as_str().unwrap();
    assert!(message.contains("choices[0].messages[0].blocks[0].lines[0].text"), "{message}");
}

/// Nothing that nested entries read is reported as lost.
#[test]
fn a14_members_of_inner_lists_count_as_read() {
    let set = set(NESTED);
    let backend = set.plan.backend("nested").unwrap();
    let raw = json!({ "choices": [{ "index": 0, "messages": [
        { "title": "T", "tail": "!", "note": "n", "blocks": [{ "lines": [{ "text": "a", "style": "b" }], "end": true }] },
    ] }] });
    let unread = reframe::testing::engine::decode::unread_members(backend, &super::turns::tree(&raw));
    assert_eq!(unread, ["choices[].messages[].note", "choices[].messages[].blocks[].lines[].style"]);
}

const HEADED: &str = r#"
backend: headed
transport: http
request: { path: /chat, body: { model: "{{ request.model }}" } }
events:
  framing: { json: whole, ndjson: {} }
  rules:
    - where: { response.headers.x-region: string, $.text: string }
      emit: [ text: { delta: response.headers.x-region } ]
    - { where: { $.text: string }, emit: [ text: { delta: $.text } ] }
    - { where: { $.stop: true }, emit: [ finish: { reason: stop } ] }
    - where: { response.status: 418 }
      emit: [ fault: { message: a teapot, code: response.headers.X-Error-Code } ]
"#;

#[test]
fn a20_rules_read_the_status_and_the_headers_of_a_response() {
    let dir = TestDir::empty();
    dir.write("layer/backends/headed.yaml", HEADED);
    let gateway = TestGateway::start("headed", "openai", dir);
    let lines = [json!({ "text": "here" }).to_string(), json!({ "stop": true }).to_string()];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let text = |model: &str, response: MockResponse| {
        let reply = gateway.fetch(model, response, dialect_request("chat", model, false));
        reply.json()["choices"][0]["message"]["content"].clone()
    };
    assert_eq!(text("with", MockResponse::ndjson(&lines).header("X-Region", "north/")), "north/here");
    assert_eq!(text("without", MockResponse::ndjson(&lines)), "here");
    let failed = MockResponse::json(418, "{}").header("x-error-code", "short_and_stout");
    let reply = gateway.fetch("failed", failed, dialect_request("chat", "failed", false));
    let error = &reply.json()["error"];
    assert_eq!(
        (reply.status(), &error["message"], &error["code"]),
        (418, &json!("a teapot"), &json!("short_and_stout"))
    );
}

/// A message of the binary event stream of AWS.
fn message(event: &str, payload: &Value) -> Vec<u8> {
    let mut headers = Vec::new();
    for (name, value) in [(":message-type", "event"), (":event-type", event), (":content-type", "application/json")] {
        headers.push(name.len() as u8);
        headers.extend(name.as_bytes());
        headers.push(7);
        headers.extend((value.len() as u16).to_be_bytes());
        headers.extend(value.as_bytes());
    }
    let payload = payload.to_string();
    let total = 16 + headers.len() + payload.len();
    let mut bytes = (total as u32).to_be_bytes().to_vec();
    bytes.extend((headers.len() as u32).to_be_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes.extend(&headers);
    bytes.extend(payload.as_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

fn converse_stream() -> Vec<u8> {
    let text = |text: &str| json!({ "contentBlockIndex": 0, "delta": { "text": text }, "p": "abcd" });
    [
        message("messageStart", &json!({ "role": "assistant" })),
        message("contentBlockDelta", &text("Good ")),
        message("contentBlockDelta", &text("morning")),
        message("contentBlockStop", &json!({ "contentBlockIndex": 0 })),
        message("messageStop", &json!({ "stopReason": "end_turn" })),
        message("metadata", &json!({ "usage": { "inputTokens": 3, "outputTokens": 2, "totalTokens": 5 } })),
    ]
    .concat()
}

#[test]
fn a20_a_binary_event_stream_is_read_at_any_split_and_damage_is_a_fault() {
    let dir = TestDir::empty();
    let file = repo("examples/bedrock/backends/bedrock-converse.yaml");
    // The mock backend selects its response by the model in the body.
    let file = file.replacen("  body:\n", "  body:\n    model: \"{{ request.model }}\"\n", 1);
    dir.write("layer/backends/bedrock-converse.yaml", &file);
    let gateway = TestGateway::start("bedrock-converse", "openai", dir);
    let content_type = "application/vnd.amazon.eventstream";
    let response = |bytes: &[u8]| MockResponse::new(200).header("content-type", content_type).bytes(bytes);
    for split in [1, 7, 64] {
        let model = format!("split-{split}");
        let sent = response(&converse_stream()).split(split);
        let reply = gateway.fetch(&model, sent, dialect_request("chat", &model, false));
        let body = reply.json();
        assert_eq!(body["choices"][0]["message"]["content"], "Good morning", "{body:#}");
        assert_eq!(body["usage"]["total_tokens"], 5);
    }
    let streamed = gateway.fetch("streamed", response(&converse_stream()), dialect_request("chat", "streamed", true));
    assert!(streamed.text().contains("\"content\":\"morning\""), "{}", streamed.text());
    let mut damaged = converse_stream();
    let at = damaged.windows(7).position(|window| window == b"morning").unwrap();
    damaged[at] = b'M';
    let reply = gateway.fetch("damaged", response(&damaged), dialect_request("chat", "damaged", false));
    assert_eq!(reply.status(), 502);
    assert!(reply.text().contains("the checksum of a message is wrong"), "{}", reply.text());
    let bytes = converse_stream();
    let cut = response(&bytes[..bytes.len() / 2]);
    let reply = gateway.fetch("cut", cut, dialect_request("chat", "cut", false));
    assert_eq!(reply.status(), 502, "{}", reply.text());
}

/// What users asked about, and the chapter that answers it.
const DOCUMENTED: &[(&str, &str)] = &[
    ("backends.md", "With neither `item` nor `key` it marks every open call of the choice"),
    ("backends.md", "A scalar counts as read if any expression of the body reads it"),
    ("templates.md", "Arguments that are no object, or no JSON at all, are its only member: `{ \"input\": TEXT }`"),
    ("rules.md", "one entry can be written without a list: `emit: { WORD: { … } }`"),
    ("rules.md", "In a rule's own `each`, `@` and `^` are the node that the rules are applied to"),
    ("rules.md", "An element that no rule of its group matches, nor of another group over the same list, is logged"),
];

#[test]
fn c24_the_chapters_answer_what_users_asked() {
    let chapter = |name: &str| {
        let text = repo(&format!("docs/mappings/{name}"));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (name, answer) in DOCUMENTED {
        assert!(chapter(name).contains(answer), "{name}: {answer}");
    }
    let templates = chapter("templates.md");
    let mut fields = 0;
    for record in [RecordType::RequestPart, RecordType::RequestCall, RecordType::Tool] {
        for (field, _) in record.fields().unwrap() {
            assert!(templates.contains(&format!("`{field}`")), "templates.md lacks `{field}` of {record:?}");
            fields += 1;
        }
    }
    assert!(fields > 15, "{fields}");
}

const AS_DOCUMENTED: &str = r#"
backend: nested
transport: http
request: { path: /chat, body: { model: "{{ request.model }}" } }
events:
  framing: ndjson
  rules:
    - { where: { $.text: string }, emit: { text: { delta: $.text } } }
    - { where: { $.id: string }, emit: { tool: { id: $.id, name: f, delta: $.arguments } } }
    - { where: { $.close: true }, emit: { close: {} } }
    - { where: { $.stop: true }, emit: { finish: { reason: tool_calls } } }
"#;

/// The same answers, as behaviour: one entry without a list, and `close` without a key.
#[test]
fn c24_the_answers_are_true() {
    let set = set(AS_DOCUMENTED);
    let request = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "Hi" }] });
    let raws = [
        json!({ "text": "Hi" }),
        json!({ "id": "c1", "arguments": "{}" }),
        json!({ "close": true }),
        json!({ "id": "c1", "arguments": "late" }),
        json!({ "id": "c2", "arguments": "{}" }),
        json!({ "stop": true }),
    ];
    let answer = answer(&set, "nested", &raws, "chat", "openai", &request);
    assert_eq!(super::turns::content(&answer), "Hi");
    let calls: Vec<String> =
        super::turns::calls(&answer).into_iter().map(|(id, _, arguments)| id + &arguments).collect();
    assert_eq!(calls[0], "c1{}", "a closed call gets no more arguments: {calls:?}");
}

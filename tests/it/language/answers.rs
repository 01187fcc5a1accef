//! Answers: items, blocks, arguments as JSON, vendor fields, keepalive frames, and the head of a response, in a dialect
//! that sends one block at a time.

use crate::support::replay::{self, LoadedSet};
use crate::support::{Gate, MockResponse, Request, TestDir, TestGateway, edited, ms, repo};
use reframe::testing::domain::Tree;
use reframe::testing::mapping::SourceFile;
use reframe::testing::reload::embedded;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// A dialect with a flat list of blocks, as Anthropic's: text and calls, no reasoning.
const BLOCKS: &str = r#"dialect: blocks
policies: { items_overlap: serial }
request:
  required: { $.model: string }
  model: $.model
  stream: { from: $.stream, default: false }
  items: [ { where: { $.q: string }, emit: [ message: { role: user, text: $.q } ] } ]
tables: { status: { overloaded: 529, backend: 418, default: null } }
fragments:
  block:
    $switch: item.kind
    message: { type: text, text: "{{ item.text }}" }
    $default: { type: tool_use, id: "{{ item.call_id }}", name: "{{ item.name }}", input: "{{ item.input }}" }
stream:
  framing: { data: json }
  base: { type: "{{ frame }}" }
  frames:
    turn.open: { start: { data: { input_tokens: "{{ turn.usage_so_far.input }}" } } }
    part.open: { block: { data: { block: "{{ part.block }}", item: "{{ item.index }}" } } }
    text.delta: { delta: { data: { block: "{{ part.block }}", text: "{{ text }}" } } }
    part.close: { stop: { data: { block: "{{ part.block }}" } } }
    tool.open: { block: { data: { block: "{{ item.block }}", item: "{{ item.index }}" } } }
    tool.args: { delta: { data: { block: "{{ item.block }}", text: "{{ args }}" } } }
    tool.close: { stop: { data: { block: "{{ item.block }}", input: "{{ item.input }}" } } }
    turn.close:
      end:
        data:
          stop_sequence: "{{ turn.choices[0].extra.stop_sequence }}"
          fingerprint: "{{ turn.extra.fingerprint }}"
    turn.fail: { error: { data: { message: "{{ fault.message }}" } } }
    idle: { ping: { data: {} } }
  order:
    turn: turn.open (part.open | part.close | tool.open | tool.close)* turn.close
    item: (part.open text.delta* part.close)* | tool.open tool.args* tool.close
body:
  content: { $each: turn.items, as: item, where: item.kind != 'reasoning', do: { $use: block } }
  fingerprint: "{{ turn.extra.fingerprint }}"
errors: { type: error, message: "{{ fault.message }}" }
headers:
  request-id: "req_{{ request_id }}"
  x-model: "{{ request.model }}"
  x-tokens: "{{ turn.usage.total }}"
  x-fault: "{{ fault.kind }}"
status: "{{ fault.kind | table('status') }}"
"#;

/// A backend of which every event has one member.
const BACKEND: &str = r#"backend: members
transport: http
events:
  framing: { ndjson: {} }
  rules:
    - { where: { $.text: string }, emit: [ text: { delta: $.text, part: $.part } ] }
    - { where: { $.thought: string }, emit: [ reasoning: { delta: $.thought } ] }
    - { where: { $.sealed: string }, emit: [ reasoning: { encrypted: $.sealed, item: $.sealed } ] }
    - { where: { $.call: string }, emit: [ tool: { id: $.call, name: $.name, delta: $.arguments } ] }
    - { where: { $.usage: number }, emit: [ usage: { input: $.usage } ] }
    - { where: { $.fingerprint: exists }, emit: [ extra: { name: fingerprint, value: $.fingerprint } ] }
    - where: { $.sequence: string }
      emit: [ extra: { choice: 0, name: stop_sequence, value: $.sequence } ]
    - { where: { $.finish: string }, emit: [ finish: { reason: $.finish } ] }
"#;

fn file(name: &str, text: &str) -> SourceFile {
    SourceFile { name: name.to_owned(), shown: name.to_owned(), layer: 0, text: text.into() }
}

fn set_with(dialect: &str) -> LoadedSet {
    set_of(dialect, &[])
}

/// The same with further files.
fn set_of(dialect: &str, further: &[(&str, &str)]) -> LoadedSet {
    let mut files = embedded::files();
    files.push(file("dialects/blocks.yaml", dialect));
    files.push(file("backends/members.yaml", BACKEND));
    files.extend(further.iter().map(|(name, text)| file(name, text)));
    LoadedSet::of(&files)
}

fn blocks() -> &'static LoadedSet {
    static SET: LazyLock<LoadedSet> = LazyLock::new(|| set_with(BLOCKS));
    &SET
}

fn transcript(events: &[Value]) -> reframe::testing::mapping::config::transcript::Transcript {
    let dir = TestDir::empty();
    let lines: String = events.iter().map(|event| format!("{}\n", json!({ "raw": event }))).collect();
    dir.write("events.jsonl", &format!("{{\"transcript\":\"members\"}}\n{lines}{{\"end\":true}}\n"));
    replay::transcript(&dir.path("events.jsonl"))
}

fn request() -> Tree {
    Tree::parse(br#"{"model":"m","q":"hi"}"#).unwrap()
}

/// The data of all frames.
fn stream(set: &LoadedSet, events: &[Value]) -> Vec<Value> {
    let output = set.stream(&transcript(events), "blocks", "openai", &request());
    let text = output.text();
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

fn body(set: &LoadedSet, events: &[Value]) -> Result<Value, String> {
    let text = set.body(&transcript(events), "blocks", "openai", &request());
    serde_json::from_str(&text).map_err(|_| text)
}

fn call(id: &str, arguments: &str) -> Value {
    json!({ "call": id, "name": "f", "arguments": arguments })
}

/// The frames of one type, with one member of each.
fn members<'f>(frames: &'f [Value], kind: &str, member: &str) -> Vec<&'f Value> {
    frames.iter().filter(|frame| frame["type"] == kind).map(|frame| &frame[member]).collect()
}

#[test]
fn a03_the_arguments_of_a_call_are_json_in_frames_and_bodies() {
    let events = [call("c1", "{\"z\":1,"), call("c1", "\"a\":[2]}"), call("c2", ""), json!({ "finish": "tool_calls" })];
    let frames = stream(blocks(), &events);
    assert_eq!(members(&frames, "stop", "input"), [&json!({ "z": 1, "a": [2] }), &json!({})]);
    let body = body(blocks(), &events).unwrap();
    assert_eq!(body["content"][0]["input"], json!({ "z": 1, "a": [2] }));
    // In the order in which the model wrote them.
    let text = blocks().body(&transcript(&events), "blocks", "openai", &request());
    assert!(text.find("\"z\"").unwrap() < text.find("\"a\"").unwrap(), "{text}");
}

#[test]
fn a03_arguments_that_are_not_json_are_a_fault_or_text_and_never_an_empty_object() {
    let events = [call("c1", "{\"a\":"), json!({ "finish": "tool_calls" })];
    let failed = body(blocks(), &events).unwrap_err();
    assert!(
        failed.starts_with("HTTP 502") && failed.contains("arguments of the call of `f` are not valid JSON"),
        "{failed}"
    );
    let frames = stream(blocks(), &events);
    assert_eq!(frames.last().unwrap()["type"], "error");
    assert_eq!(frames.iter().filter(|frame| frame["type"] == "error").count(), 1, "{frames:?}");
    let text = set_with(&BLOCKS.replace("items_overlap: serial", "items_overlap: serial, invalid_arguments: text"));
    assert_eq!(body(&text, &events).unwrap()["content"][0]["input"], json!("{\"a\":"));
}

#[test]
fn a03_arguments_that_are_no_object_are_invalid_by_policy() {
    let events = [call("c1", "[1]"), json!({ "finish": "tool_calls" })];
    assert_eq!(body(blocks(), &events).unwrap()["content"][0]["input"], json!([1]));
    let strict = BLOCKS.replace("items_overlap: serial", "items_overlap: serial, non_object_arguments: invalid");
    let failed = body(&set_with(&strict), &events).unwrap_err();
    assert!(failed.contains("the arguments of the call of `f` are no object but an array"), "{failed}");
    let text =
        strict.replace("non_object_arguments: invalid", "non_object_arguments: invalid, invalid_arguments: text");
    assert_eq!(body(&set_with(&text), &events).unwrap()["content"][0]["input"], json!("[1]"));
    let object = [call("c1", "{}"), json!({ "finish": "tool_calls" })];
    assert_eq!(body(&set_with(&strict), &object).unwrap()["content"][0]["input"], json!({}));
}

const HEAD_TESTS: &str = r#"tests:
  - name: a keepalive is a frame, and has no number
    backend: members
    given: [ { text: a }, $idle, { text: b }, { finish: stop } ]
    expect:
      frames: [ start, block, delta, ping, delta, stop, end ]
      stream: { "$[*].n": [ 0, 1, 2, 3, 4, 5 ] }
  - name: headers of a JSON response
    backend: members
    request: { model: m, q: Hi }
    given: [ { text: a }, { usage: 7 }, { finish: stop } ]
    expect:
      response: { status: 200, headers: { request-id: req_test, x-model: m, x-tokens: "7" }, body: { content: [ {} ] } }
  - name: status and headers of an error
    backend: members
    request: { model: m, q: Hi }
    backend_response: { status: 500 }
    given: [ { nothing: 1 } ]
    expect:
      response: { status: 418, headers: { x-fault: backend, x-model: m, x-tokens: null }, body: { type: error } }
  - name: a request that cannot be read
    request: { q: Hi }
    expect: { response: { status: 400, headers: { x-model: null, x-fault: missing }, body: { type: error } } }
"#;

/// The head of a response, error envelopes and keepalive frames can be tested next to a mapping.
#[test]
fn a16_tests_compare_the_response_and_keepalive_frames() {
    let numbered =
        BLOCKS.replace("base: { type: \"{{ frame }}\" }", "base: { type: \"{{ frame }}\", n: \"{{ seq }}\" }");
    let numbered = numbered.replace("ping: { data: {} }", "ping: { base: false, data: { type: ping } }");
    let run = |tests: &str| {
        let set = set_of(&numbered, &[("dialects/blocks.test.yaml", tests)]);
        let reports = crate::support::suites::run_all(&set.plan);
        let own = reports.into_iter().find(|report| report.file.contains("blocks.test")).unwrap();
        (own.passed, own.failures.join("\n"))
    };
    assert_eq!(run(HEAD_TESTS), (4, String::new()));
    let wrong = HEAD_TESTS.replace("status: 418", "status: 419").replace("req_test", "req_other").replace("ping, ", "");
    let (passed, failures) = run(&wrong);
    assert_eq!(passed, 1, "{failures}");
    assert!(failures.contains("response.status: expected 419, got 418"), "{failures}");
}

const EARLY_TESTS: &str = r#"tests:
  - name: a keepalive before the first frame
    backend: members
    given: [ $idle, { text: a }, $idle, { finish: stop } ]
    expect: { frames: [ ping, start, block, delta, ping, pong, stop, end ] }
  - name: a failure after it is inside the stream
    backend: members
    given: [ $idle ]
    disconnect: connection reset
    expect: { fault: { kind: truncated }, frames: [ ping, start, error ] }
"#;

#[test]
fn a15_a_keepalive_before_the_first_frame_is_a_frame_if_the_dialect_wants_it() {
    let early = BLOCKS.replace("ping: { data: {} }", "ping: { before_open: true, data: {} }, pong: { data: {} }");
    let set = set_of(&early, &[("dialects/blocks.test.yaml", EARLY_TESTS)]);
    let reports = crate::support::suites::run_all(&set.plan);
    let own = reports.into_iter().find(|report| report.file.contains("blocks.test")).unwrap();
    assert_eq!((own.passed, own.failures), (2, Vec::new()));
}

const FAULT_TESTS: &str = r#"tests:
  - name: a request that is rejected has the status of `faults:`
    request: { q: Hi }
    expect: { response: { status: 422, body: { type: error, status: 422 } } }
  - name: the client waits as long as the backend asks for
    backend: members
    request: { model: m, q: Hi }
    backend_response: { status: 503, headers: { retry-after: "7" } }
    given: [ { nothing: 1 } ]
    expect: { response: { headers: { retry-after: "7" } } }
"#;

/// A test sees what a client gets.
#[test]
fn a16_errors_of_tests_have_the_status_of_faults_and_the_wait_of_the_backend() {
    let dialect = BLOCKS
        .replace(
            "errors: { type: error, ",
            "faults: { $switch: fault.kind, missing: { status: 422 }, $default: {} }\nerrors: { type: error, status: \"{{ \
             fault.status }}\", ",
        )
        .replace("status: \"{{ fault.kind | table('status') }}\"\n", "");
    let set = set_of(&dialect, &[("dialects/blocks.test.yaml", FAULT_TESTS)]);
    let failures = crate::support::suites::run_all(&set.plan).into_iter().flat_map(|report| report.failures);
    assert_eq!(failures.collect::<Vec<_>>(), Vec::<String>::new());
}

/// A frame without `base:` has no member with its name; its event name identifies it.
#[test]
fn a16_validate_accepts_frames_without_the_members_of_base() {
    let dialect = BLOCKS.replace("ping: { data: {} }", "ping: { base: false, event: ping, data: { wait: true } }");
    let set = set_with(&dialect);
    let plan = set.plan.dialect("blocks", Some("openai")).unwrap();
    let findings = |ping: &str| {
        let capture = format!(
            "data: {{\"type\":\"start\",\"input_tokens\":null}}\n\n{ping}\n\ndata: \
             {{\"type\":\"end\",\"stop_sequence\":null,\"fingerprint\":null}}\n\n"
        );
        let report = reframe::testing::capture::validate(plan, &reframe::testing::capture::read(&capture).unwrap());
        report.findings.into_iter().map(|finding| finding.text).collect::<Vec<_>>()
    };
    assert_eq!(findings("event: ping\ndata: {\"wait\":true}"), Vec::<String>::new());
    let unnamed = findings("data: {\"wait\":true}");
    assert_eq!(unnamed, ["there is no `event:` line before the data"]);
}

#[test]
fn a03_text_is_parsed_by_the_filter_parse_json() {
    let dialect = BLOCKS.replace("input: \"{{ item.input }}\" }", "input: \"{{ (item.arguments | parse_json).a }}\" }");
    let events = [call("c1", "{\"a\":{\"y\":1,\"b\":2}}"), json!({ "finish": "tool_calls" })];
    let body = body(&set_with(&dialect), &events).unwrap();
    assert_eq!(body["content"][0]["input"], json!({ "y": 1, "b": 2 }));
    let broken = [call("c1", "{"), json!({ "finish": "tool_calls" })];
    // Null, because no expression may fail a turn.
    let dialect = dialect.replace("input: \"{{ item.input }}\"", "input: null");
    assert_eq!(self::body(&set_with(&dialect), &broken).unwrap()["content"][0]["input"], Value::Null);
}

#[test]
fn a11_vendor_fields_of_the_response_and_of_a_choice() {
    let events = [
        json!({ "fingerprint": { "b": 1, "a": 2 } }),
        json!({ "usage": 7 }),
        json!({ "text": "Hi" }),
        json!({ "sequence": "END" }),
        json!({ "finish": "stop" }),
    ];
    let frames = stream(blocks(), &events);
    assert_eq!(members(&frames, "end", "stop_sequence"), [&json!("END")]);
    assert_eq!(members(&frames, "end", "fingerprint"), [&json!({ "b": 1, "a": 2 })]);
    // The usage so far is known when the turn opens.
    assert_eq!(members(&frames, "start", "input_tokens"), [&json!(7)]);
    assert_eq!(body(blocks(), &events).unwrap()["fingerprint"], json!({ "b": 1, "a": 2 }));
    let without = [json!({ "text": "Hi" }), json!({ "finish": "stop" })];
    assert_eq!(members(&stream(blocks(), &without), "start", "input_tokens"), [&Value::Null]);
    assert_eq!(body(blocks(), &without).unwrap()["fingerprint"], Value::Null);
}

#[test]
fn a12_the_index_and_the_block_count_only_what_is_sent() {
    let events = [
        json!({ "thought": "hm" }),
        json!({ "text": "a", "part": 0 }),
        json!({ "text": "b", "part": 1 }),
        call("c1", "{}"),
        json!({ "thought": "hm" }),
        json!({ "text": "c" }),
        json!({ "finish": "stop" }),
    ];
    let frames = stream(blocks(), &events);
    // Two parts of one message are two blocks.
    assert_eq!(members(&frames, "block", "block"), [0, 1, 2, 3].map(|n| json!(n)).iter().collect::<Vec<_>>());
    assert_eq!(members(&frames, "block", "item"), [0, 0, 1, 2].map(|n| json!(n)).iter().collect::<Vec<_>>());
}

#[test]
fn a12_reasoning_that_is_sent_is_a_block_also_without_text() {
    let dialect = BLOCKS
        .replace("    idle:", "    reasoning.close: { sealed: { data: { block: \"{{ item.block }}\" } } }\n    idle:")
        .replace("(part.open |", "(reasoning.close | part.open |");
    let events =
        [json!({ "sealed": "x" }), json!({ "sealed": "y" }), json!({ "text": "a" }), json!({ "finish": "stop" })];
    let frames = stream(&set_with(&dialect), &events);
    assert_eq!(members(&frames, "sealed", "block"), [&json!(0), &json!(1)]);
    assert_eq!(members(&frames, "block", "block"), [&json!(2)]);
    assert_eq!(members(&frames, "block", "item"), [&json!(2)]);
}

#[test]
fn a13_one_item_is_open_at_a_time() {
    let events = [
        json!({ "text": "a" }),
        call("c1", "{\"a\""),
        json!({ "text": "b" }),
        call("c2", "{}"),
        call("c1", ":1}"),
        json!({ "text": "c" }),
        json!({ "finish": "tool_calls" }),
    ];
    let frames = stream(blocks(), &events);
    let mut open: Option<Value> = None;
    let mut texts: Vec<String> = Vec::new();
    for frame in &frames {
        match frame["type"].as_str().unwrap() {
            "block" => {
                assert_eq!(open, None, "{frames:#?}");
                open = Some(frame["block"].clone());
                texts.push(String::new());
            }
            "delta" => {
                assert_eq!(open.as_ref(), Some(&frame["block"]), "{frames:#?}");
                *texts.last_mut().unwrap() += frame["text"].as_str().unwrap();
            }
            "stop" => assert_eq!(open.take().as_ref(), Some(&frame["block"]), "{frames:#?}"),
            _ => {}
        }
    }
    texts.sort();
    assert_eq!(texts, ["a", "bc", "{\"a\":1}", "{}"], "{frames:#?}");
}

/// A gateway with the dialect at `/blocks`.
fn gateway(edit: impl Fn(String) -> String) -> TestGateway {
    let dir = TestDir::empty();
    dir.write("layer/dialects/blocks.yaml", BLOCKS);
    let route = "routes:\n  - { endpoint: POST /blocks, dialect: blocks }\n";
    dir.write("layer/gateway.yaml", &edit(edited(&repo("mappings/gateway.yaml"), "routes:\n", route)));
    TestGateway::shared_with_route_profiles("openai-chat", dir)
}

fn ask(model: &str, stream: bool) -> Request {
    let body = json!({ "model": model, "q": "hi", "stream": stream });
    Request::post(body.to_string()).at("/blocks").header("content-type", "application/json")
}

fn word(text: &str) -> String {
    json!({ "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": null }] }).to_string()
}

fn finish() -> String {
    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 });
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }], "usage": usage }).to_string()
}

#[test]
fn a15_a_keepalive_is_a_frame() {
    let gateway = gateway(|text| edited(&text, "every: 15s", &format!("every: {}ms", ms(200).as_millis())));
    let gate = Gate::default();
    let answer = MockResponse::sse(&[&word("One")]).wait(&gate);
    let answer = answer.event(&finish()).event("[DONE]");
    gateway.set_response("idle", answer);
    let mut stream = gateway.server.client().stream(ask("idle", true));
    // Before the first event, the stream has comments; after it, frames of the moment `idle`.
    let mut pings = 0;
    let mut last = String::new();
    while let Some(message) = stream.next_message() {
        let text = message.text().to_owned();
        if text.contains("\"ping\"") {
            pings += 1;
            if pings == 2 {
                gate.open();
            }
        } else {
            assert!(pings == 0 || !text.starts_with("keepalive"), "a comment in an open stream: {text}");
            last = text;
        }
    }
    assert!(pings >= 2, "{pings} pings");
    assert!(last.contains("\"end\""), "{last}");
}

#[test]
fn a16_headers_and_status_by_dialect() {
    let gateway = gateway(|text| text);
    let header = |reply: &crate::support::Reply, name: &str| reply.head.header(name).map(str::to_owned);
    let answer = MockResponse::sse(&[&word("One"), &finish(), "[DONE]"]);
    let body = gateway.fetch("json", answer.clone(), ask("json", false));
    assert_eq!(body.status(), 200);
    assert_eq!(header(&body, "x-tokens").as_deref(), Some("5"), "{body:?}");
    assert_eq!(header(&body, "x-model").as_deref(), Some("json"));
    assert_eq!(header(&body, "x-fault"), None);
    let id = header(&body, "x-request-id").unwrap();
    assert_eq!(header(&body, "request-id"), Some(format!("req_{id}")));
    // A stream begins before its usage is known.
    let stream = gateway.fetch("stream", answer, ask("stream", true));
    assert_eq!(header(&stream, "x-tokens"), None, "{stream:?}");
    assert_eq!(header(&stream, "x-model").as_deref(), Some("stream"));
    // An error of the backend, and a request that cannot be read.
    for stream in [false, true] {
        let model = format!("error-{stream}");
        let error = gateway.fetch(&model, MockResponse::json(500, "{}"), ask(&model, stream));
        assert_eq!((error.status(), header(&error, "x-fault").as_deref()), (418, Some("backend")), "{error:?}");
        assert_eq!(header(&error, "x-model").as_deref(), Some(model.as_str()));
    }
    let wrong = gateway.server.fetch(Request::post("{}").at("/blocks").header("content-type", "application/json"));
    assert_eq!((wrong.status(), header(&wrong, "x-fault").as_deref()), (400, Some("missing")), "{wrong:?}");
    assert_eq!(header(&wrong, "x-model"), None);
}

#[test]
fn c21_an_answer_of_which_nothing_was_read_is_a_fault() {
    let dir = TestDir::empty();
    dir.write("layer/profiles/lenient.yaml", "profile: lenient\npolicies: { aggregate.on_empty: completed }\n");
    let gateway = TestGateway::start("openai-chat", "lenient", dir);
    let strange = json!({ "output": { "words": ["Hello"] } }).to_string();
    for (name, answer) in
        [("json", MockResponse::json(200, &strange)), ("sse", MockResponse::sse(&[&strange, "[DONE]"]))]
    {
        for stream in [false, true] {
            let model = format!("{name}-{stream}");
            let reply = gateway.fetch(&model, answer.clone(), crate::support::dialect_request("chat", &model, stream));
            assert_eq!(reply.status(), 502, "{name} {stream}: {}", reply.text());
            assert!(reply.text().contains("no rule of the backend's mapping reads"), "{}", reply.text());
        }
    }
    // A response without any event is still an empty one.
    let empty =
        gateway.fetch("none", MockResponse::sse(&["[DONE]"]), crate::support::dialect_request("chat", "none", false));
    assert_eq!(empty.status(), 200, "{}", empty.text());
}

#[test]
fn c01_a_citation_without_positions_costs_neither_the_answer_nor_shows_an_expression() {
    let gateway = TestGateway::start("openai-chat", "openai", TestDir::empty());
    let cited = json!([{ "type": "url_citation", "url_citation": { "url": "https://a.example/" } }]);
    let message = json!({ "role": "assistant", "content": "Hello", "annotations": cited });
    let answer = json!({ "model": "m", "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] });
    for dialect in ["chat", "responses"] {
        for stream in [false, true] {
            let model = format!("c-{dialect}-{stream}");
            let request = crate::support::dialect_request(dialect, &model, stream);
            let reply = gateway.fetch(&model, MockResponse::json(200, &answer.to_string()), request);
            assert_eq!(reply.status(), 200, "{}", reply.text());
            assert!(reply.text().contains("Hello") && !reply.text().contains("annotation."), "{}", reply.text());
        }
    }
}

/// The class of the mistake: an expression that fails is the gateway's error, and its text is for the log.
#[test]
fn c01_an_expression_that_fails_is_not_shown_to_clients() {
    let dialect = BLOCKS.replace("text: \"{{ item.text }}\" }", "text: \"{{ item.text + turn.created }}\" }").replace(
        "data: { block: \"{{ part.block }}\", text: \"{{ text }}\" }",
        "data: { text: \"{{ text + turn.created }}\" }",
    );
    let set = set_with(&dialect);
    let events = [json!({ "text": "a" }), json!({ "finish": "stop" })];
    let failed = body(&set, &events).unwrap_err();
    assert!(failed.starts_with("HTTP 500") && !failed.contains("turn.created"), "{failed}");
    let frames = stream(&set, &events);
    let error = frames.last().unwrap();
    assert_eq!(error["type"], "error");
    assert!(!error.to_string().contains("turn.created"), "{error}");
}

#[test]
fn c22_the_filter_json_writes_keys_in_the_order_of_a_placeholder() {
    let dialect = BLOCKS.replace(
        "  fingerprint: \"{{ turn.extra.fingerprint }}\"\nerrors",
        "  fingerprint: \"{{ turn.extra.fingerprint }} {{ turn.extra.fingerprint | json }}\"\nerrors",
    );
    let events = [
        json!({ "text": "a" }),
        json!({ "fingerprint": { "z": { "y": 1, "b": 2 }, "a": 2 } }),
        json!({ "finish": "stop" }),
    ];
    let set = set_with(&dialect);
    let text = set.body(&transcript(&events), "blocks", "openai", &request());
    let body = Tree::parse(text.as_bytes()).unwrap();
    let fingerprint = body.get("fingerprint").unwrap().as_str().unwrap().to_owned();
    let (placeholder, filter) = fingerprint.split_once(' ').unwrap();
    assert_eq!(placeholder, r#"{"z":{"y":1,"b":2},"a":2}"#);
    assert_eq!(placeholder, filter);
}

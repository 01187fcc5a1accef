//! The real binary over HTTP, as clients use it.

use crate::support::backend_events::{self, word};
use crate::support::{
    ChatRequest, Exit, GREETING, Gate, Launch, MockBackend, MockResponse, Reply, Request, Server, TestDir, chat, chunk,
    chunks, demo, eventually, greeting_chunks, normalize, repo, serve, serve_with, words,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::BufRead;
use std::net::{TcpListener, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

// ---- JSON or a stream

#[test]
fn without_stream_true_the_response_is_one_json_body() {
    let demo = demo();
    for request in [chat("Hello!"), chat("Hello!").with("stream", false), chat("Hello!").with("stream", Value::Null)] {
        let reply = demo.fetch(request);
        assert_eq!(reply.status(), 200);
        assert_eq!(normalize(reply.json()), greeting_body());
    }
}

#[test]
fn with_stream_true_the_response_is_a_stream() {
    let reply = demo().fetch(chat("Hello!").streamed());
    assert_eq!(reply.status(), 200);
    assert_eq!(reply.header("content-type"), Some("text/event-stream; charset=utf-8"));
}

#[test]
fn the_accept_header_is_ignored() {
    let demo = demo();
    let body = demo.fetch(chat("Hello!").with("stream", false).header("accept", "text/event-stream"));
    assert_eq!(normalize(body.json()), greeting_body());
    let stream = demo.fetch(chat("Hello!").streamed().header("accept", "application/json"));
    assert_eq!(chunks(&stream.frames()), greeting_chunks());
}

#[test]
fn a_stream_disables_buffering_and_caching() {
    let reply = demo().fetch(chat("Hello!").streamed());
    assert_eq!(reply.header("cache-control"), Some("no-cache, no-transform"));
    assert_eq!(reply.header("x-accel-buffering"), Some("no"));
    assert_eq!(reply.header("content-length"), None);
}

#[test]
fn every_response_has_a_unique_request_id() {
    let demo = demo();
    let request: [Request; 8] = [
        chat("Hello!").into(),
        chat("Hello!").streamed().into(),
        chat("Hello!").with("n", 3).streamed().into(),
        chat("Hello!").with("model", "unknown").into(),
        Request::post(""),
        Request::get("/v1/models"),
        Request::get("/nowhere"),
        Request::new("HEAD", "/v1/models"),
    ];
    let replies = request.map(|request| demo.fetch(request));
    let ids: BTreeSet<_> = replies.iter().map(|reply| reply.header("x-request-id").unwrap()).collect();
    assert_eq!(ids.len(), replies.len(), "{ids:?}");
    assert!(ids.iter().all(|id| id.len() == 32), "{ids:?}");
}

// ---- the contents of a stream

#[test]
fn the_greeting_is_streamed_word_by_word_and_ends_with_one_done() {
    let reply = demo().fetch(chat("Hello!").streamed());
    // `chunks` removes the last frame as terminator, so a second terminator or a chunk after it would be noticed.
    assert_eq!(chunks(&reply.frames()), greeting_chunks());
}

#[test]
fn a_connection_is_reused_after_a_stream() {
    let demo = demo();
    let mut client = demo.client();
    for _ in 0..3 {
        assert_eq!(chunks(&client.fetch(chat("Hello!").streamed()).frames()), greeting_chunks());
        assert_eq!(normalize(client.fetch(chat("Hello!")).json()), greeting_body());
        assert_eq!(client.fetch(Request::post("{")).status(), 400);
        assert_eq!(client.fetch(Request::new("HEAD", "/v1/models")).status(), 200);
    }
}

#[test]
fn requested_usage_is_in_the_last_chunk_and_null_before() {
    let request = chat("Hello!").with("stream_options", json!({ "include_usage": true })).streamed();
    let mut expected = greeting_chunks();
    for chunk in &mut expected {
        chunk["usage"] = Value::Null;
    }
    let mut last = chunk(0, json!({}), Value::Null);
    last["choices"] = json!([]);
    last["usage"] = greeting_body()["usage"].clone();
    expected.push(last);
    assert_eq!(chunks(&demo().fetch(request).frames()), expected);
}

#[test]
fn usage_is_not_streamed_unless_requested() {
    let request = chat("Hello!").with("stream_options", json!({ "include_usage": false })).streamed();
    assert_eq!(chunks(&demo().fetch(request).frames()), greeting_chunks());
}

#[test]
fn two_choices_are_streamed_interleaved_and_complete() {
    let stream = chunks(&demo().fetch(chat("Which?").with("n", 2).streamed()).frames());
    assert_eq!(stream[0]["choices"][0]["index"], 0, "clients count choices by the order in which they appear");
    for (index, text) in TWO_CHOICES.iter().enumerate() {
        let of_choice = |chunk: &&Value| chunk["choices"][0]["index"] == index;
        let got: Vec<Value> = stream.iter().filter(of_choice).cloned().collect();
        assert_eq!(got, choice_chunks(index, text));
    }
}

#[test]
fn two_choices_are_in_one_body() {
    let body = demo().fetch(chat("Which?").with("n", 2)).json();
    let choices = [0, 1].map(|index| {
        let message = json!({ "role": "assistant", "content": TWO_CHOICES[index], "refusal": null });
        json!({ "index": index, "message": message, "logprobs": null, "finish_reason": "stop" })
    });
    assert_eq!(body["choices"], json!(choices));
}

#[test]
fn a_tool_call_is_streamed_with_its_name_once_and_argument_deltas() {
    let stream = chunks(&demo().fetch(weather().streamed()).frames());
    let call = |call: Value| chunk(0, json!({ "tool_calls": [call] }), Value::Null);
    let arguments_delta = |text: &str| call(json!({ "index": 0, "function": { "arguments": text } }));
    let opening = json!({ "name": "get_weather", "arguments": "" });
    let expected = [
        chunk(0, json!({ "role": "assistant", "content": "", "refusal": null }), Value::Null),
        call(json!({ "index": 0, "id": "call_demo_weather_1", "type": "function", "function": opening })),
        arguments_delta("{\"ci"),
        arguments_delta("ty\":"),
        arguments_delta("\"Par"),
        arguments_delta("is\"}"),
        chunk(0, json!({}), json!("tool_calls")),
    ];
    assert_eq!(stream, expected);
}

#[test]
fn a_tool_call_in_a_body_has_complete_arguments() {
    let body = demo().fetch(weather()).json();
    let function = json!({ "name": "get_weather", "arguments": "{\"city\":\"Paris\"}" });
    let call = json!({ "id": "call_demo_weather_1", "type": "function", "function": function });
    let message = json!({ "role": "assistant", "content": null, "refusal": null, "tool_calls": [call] });
    let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": "tool_calls" });
    assert_eq!(body["choices"], json!([choice]));
}

// ---- rejected requests

#[test]
fn more_choices_than_recorded_are_rejected() {
    let rejected = error_body(400, chat("Hello!").with("n", 3));
    let message = "the demo supports at most two choices";
    assert_eq!(rejected, envelope(message, json!("n"), json!("unsupported_parameter")));
}

#[test]
fn a_value_of_the_wrong_type_is_rejected_with_its_param() {
    let rejected = error_body(400, chat("Hello!").with("temperature", "hot"));
    let message = "`temperature` must be a number, not a string";
    assert_eq!(rejected, envelope(message, json!("temperature"), json!("invalid_value")));
}

#[test]
fn a_value_outside_a_closed_list_is_rejected_with_the_value() {
    let rejected = error_body(400, chat("Hello!").with("response_format", json!({ "type": "xml" })));
    let message = "`response_format.type` must be one of text, json_object or json_schema, not `xml`";
    assert_eq!(rejected, envelope(message, json!("response_format.type"), json!("invalid_value")));
    let rejected = error_body(400, chat("Hello!").with("response_format", json!({ "type": [] })));
    let message = "`response_format.type` must be one of text, json_object or json_schema, not an array";
    assert_eq!(rejected, envelope(message, json!("response_format.type"), json!("invalid_value")));
}

#[test]
fn a_message_that_no_rule_matches_is_rejected() {
    for message in [json!({ "role": "alien", "content": "hi" }), json!({ "role": "tool", "content": "hi" })] {
        let rejected = error_body(400, chat("").with("messages", json!([message])));
        let message = "`messages[0]` is not supported: check its role or type, and its required fields";
        assert_eq!(rejected, envelope(message, json!("messages[0]"), json!("invalid_value")));
    }
}

#[test]
fn a_content_part_without_its_content_is_rejected() {
    for part in [json!({ "type": "image_url" }), json!({ "type": "file", "file": {} }), json!({ "type": "text" })] {
        let content = json!([{ "type": "text", "text": "Hi" }, part]);
        let rejected = error_body(400, chat("").with("messages", json!([{ "role": "user", "content": content }])));
        assert_eq!(rejected["error"]["param"], "messages[0].content[1]", "{part}: {rejected}");
    }
}

#[test]
fn a_violation_of_the_request_schema_is_a_sentence() {
    let cases = [
        (
            "reasoning_effort",
            json!("huge"),
            "`reasoning_effort` must be one of none, minimal, low, medium, high or xhigh, not `huge`",
        ),
        ("logit_bias", json!("x"), "`logit_bias` must be an object, not a string"),
    ];
    for (field, value, message) in cases {
        let rejected = error_body(400, chat("Hello!").with(field, value));
        assert_eq!(rejected, envelope(message, json!(field), json!("invalid_value")));
    }
}

#[test]
fn the_param_of_a_name_with_a_slash_is_the_name_as_the_client_wrote_it() {
    let rejected = error_body(400, chat("Hello!").with("metadata", json!({ "a/b": 5, "~": "x" })));
    assert_eq!(rejected["error"]["param"], "metadata.a/b");
}

#[test]
fn a_stream_that_is_not_a_boolean_is_rejected() {
    let rejected = error_body(400, chat("Hello!").with("stream", "true"));
    let message = "`stream` must be a boolean, not a string";
    assert_eq!(rejected, envelope(message, json!("stream"), json!("invalid_value")));
}

#[test]
fn missing_messages_are_rejected() {
    let rejected = error_body(400, chat("").without("messages"));
    assert_eq!(rejected, envelope("`messages` is required", json!("messages"), json!("missing_required_parameter")));
}

#[test]
fn messages_that_are_not_an_array_or_empty_are_rejected() {
    for messages in [json!("Hello!"), json!({}), json!([])] {
        let rejected = error_body(400, chat("").with("messages", messages));
        let message = "`messages` must be an array with at least one element";
        assert_eq!(rejected, envelope(message, json!("messages"), json!("invalid_value")));
    }
}

#[test]
fn an_unknown_model_is_not_found() {
    let rejected = error_body(404, chat("Hello!").with("model", "unknown"));
    assert_eq!(rejected, envelope("the model `unknown` does not exist", json!("model"), json!("model_not_found")));
}

#[test]
fn invalid_json_is_rejected_with_its_position() {
    for (body, why) in [
        ("", "line 1 column 1: expected a value"),
        ("{", "line 1 column 2: expected a key in quotes"),
        ("{}\n x", "line 2 column 2: expected the end of the text"),
    ] {
        let message = format!("the body is not valid JSON: {why}");
        assert_eq!(error_body(400, Request::post(body)), envelope(&message, Value::Null, Value::Null));
    }
}

#[test]
fn a_body_that_is_not_an_object_is_rejected() {
    for body in ["[]", "null", "\"Hello!\"", "17"] {
        let rejected = error_body(400, Request::post(body));
        assert_eq!(rejected, envelope("the body must be a JSON object", Value::Null, Value::Null));
    }
}

#[test]
fn a_body_of_a_million_brackets_is_rejected_and_the_server_survives() {
    let demo = demo();
    for bracket in ["[", "{\"a\":"] {
        let reply = demo.fetch(Request::post(bracket.repeat(1_000_000)));
        assert_eq!(reply.status(), 400);
        assert_eq!(normalize(demo.fetch(chat("Hello!")).json()), greeting_body());
    }
}

#[test]
fn an_error_before_the_first_frame_has_an_http_status_even_for_a_stream() {
    for (request, status) in [
        (chat("Hello!").with("n", 3), 400),
        (chat("Hello!").with("temperature", "hot"), 400),
        (chat("Hello!").with("messages", json!([])), 400),
        (chat("Hello!").with("model", "unknown"), 404),
    ] {
        assert_eq!(error_body(status, request.clone().streamed()), error_body(status, request));
    }
}

#[test]
fn an_unknown_path_is_not_found() {
    for path in [
        "/",
        "/v1",
        "/v1/chat",
        "/v1/chat/completions/",
        "/v1/models/",
        "//v1/models",
        "/v1//models",
        "/v1/%6dodels",
        "/V1/models",
    ] {
        let message = format!("unknown endpoint: {path}");
        let rejected = error_body(404, Request::get(path));
        assert_eq!(rejected, envelope(&message, Value::Null, json!("unknown_url")));
    }
}

#[test]
fn a_wrong_method_gets_the_allowed_methods() {
    let demo = demo();
    for (method, path, allowed) in [
        ("GET", "/v1/chat/completions", "POST,HEAD,OPTIONS"),
        ("DELETE", "/v1/chat/completions", "POST,HEAD,OPTIONS"),
        ("POST", "/v1/models", "GET,HEAD,OPTIONS"),
        ("PUT", "/v1/models/demo", "GET,HEAD,OPTIONS"),
    ] {
        let reply = demo.fetch(Request::new(method, path));
        assert_eq!((reply.status(), reply.header("allow")), (405, Some(allowed)));
        assert_eq!(reply.json(), envelope(&format!("{path} does not allow {method}"), Value::Null, Value::Null));
    }
}

#[test]
fn a_path_may_have_a_parameter_before_a_verb() {
    let dir = TestDir::shipped();
    let endpoint = "endpoint: \"POST /v1beta/models/{model}:complete\"";
    dir.edit("mappings/gateway.yaml", "endpoint: POST /v1/completions", endpoint);
    let server = serve().in_folder(&dir.path("")).start();
    let post = |path: &str| {
        let body = json!({ "model": "demo", "prompt": "Hello!" }).to_string();
        server.client().fetch(Request::post(body).at(path)).status()
    };
    for path in
        ["/v1beta/models/demo:complete", "/v1beta/models/a:8b:complete?alt=sse", "/v1beta/models/a%2Fb:complete"]
    {
        assert_eq!(post(path), 200, "{path}");
    }
    for path in ["/v1beta/models/demo", "/v1beta/models/:complete", "/v1beta/models/a/b:complete", "/v1/completions"] {
        assert_eq!(post(path), 404, "{path}");
    }
    let wrong = server.client().fetch(Request::new("DELETE", "/v1beta/models/demo:complete"));
    assert_eq!((wrong.status(), wrong.header("allow")), (405, Some("POST,HEAD,OPTIONS")));
}

// ---- request bodies

#[test]
fn a_body_may_be_as_large_as_the_limit_and_no_larger() {
    let server = serve_with(TestDir::empty().with_edit("gateway.yaml", "body_bytes: 16MiB", "body_bytes: 1KiB"));
    let padded = |length: usize| {
        let body = chat("Hello!").body.to_string();
        Request::post(format!("{body}{}", " ".repeat(length - body.len())))
    };
    assert_eq!(normalize(server.fetch(padded(1024)).json()), greeting_body());
    let reply = server.fetch(padded(1025));
    assert_eq!(reply.status(), 413);
    let too_large = envelope("the body is larger than 1024 bytes", Value::Null, "request_too_large".into());
    assert_eq!(reply.json(), too_large);
    // A client that sends everything before it reads must get the response, not a broken pipe.
    assert_eq!(server.fetch(padded(8 << 20)).json(), too_large);
}

#[test]
fn a_body_may_come_in_chunks_and_slowly() {
    let demo = demo();
    let mut client = demo.client();
    client.send_bytes(b"POST /v1/chat/completions HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n");
    for part in chat("Hello!").body.to_string().as_bytes().chunks(20) {
        client.send_bytes(format!("{:x}\r\n", part.len()).as_bytes());
        client.send_bytes(&[part, b"\r\n"].concat());
        thread::sleep(Duration::from_millis(2));
    }
    client.send_bytes(b"0\r\n\r\n");
    assert_eq!(normalize(client.reply().json()), greeting_body());
}

// ---- static routes

#[test]
fn the_models_are_listed() {
    let listed = demo().fetch(Request::get("/v1/models")).json();
    let created = listed["data"][0]["created"].clone();
    assert!(created.as_u64().is_some_and(|seconds| seconds > 1_700_000_000), "{listed}");
    let model = json!({ "id": "demo", "object": "model", "created": created, "owned_by": "demo" });
    assert_eq!(listed, json!({ "object": "list", "data": [model] }));
}

#[test]
fn one_model_is_described_as_in_the_list() {
    let demo = demo();
    let listed = demo.fetch(Request::get("/v1/models")).json();
    assert_eq!(demo.fetch(Request::get("/v1/models/demo")).json(), listed["data"][0]);
    assert_eq!(demo.fetch(Request::get("/v1/models/d%65mo")).json(), listed["data"][0]);
}

#[test]
fn an_unknown_model_is_not_described() {
    let rejected = error_body(404, Request::get("/v1/models/no%2Fbody"));
    assert_eq!(rejected, envelope("the model `no/body` does not exist", json!("model"), json!("model_not_found")));
}

#[test]
fn head_returns_headers_without_a_body() {
    let demo = demo();
    let mut client = demo.client();
    let head = client.fetch(Request::new("HEAD", "/v1/models"));
    let page = client.fetch(Request::get("/v1/models"));
    for name in ["content-type", "content-length"] {
        assert_eq!(head.header(name), page.header(name));
    }
    assert_eq!((head.status(), head.chunks.len()), (200, 0));
}

// ---- when frames are sent

#[test]
fn frames_that_are_ready_together_are_sent_in_one_write() {
    let server = serve_with(TestDir::empty().with_pace("none"));
    let reply = server.fetch(chat("Hello!").streamed());
    assert_eq!(chunks(&reply.frames()), greeting_chunks());
    assert_eq!(reply.chunks.len(), 1);
}

#[test]
fn a_frame_is_sent_as_soon_as_it_is_ready() {
    const WORDS: [&str; 3] = ["One", "Two", "Three"];
    let gate = Gate::default();
    let held =
        WORDS.iter().fold(MockResponse::sse(&[]), |answer, text| answer.event(&word(text).to_string()).wait(&gate));
    let answer = held.event(&backend_events::chunk(&json!({}), &json!("stop")).to_string()).event("[DONE]");
    let backend = MockBackend::start(move |_| answer.clone());
    let server = serve().args(["--backend", &format!("openai-chat={}", backend.url())]).start();
    let mut stream = server.stream(chat("Hello!"));
    assert_eq!(stream.head.status, 200);
    assert_eq!(stream.next().unwrap().json()["choices"][0]["delta"]["role"], "assistant");
    for text in WORDS {
        // The backend sends nothing until the gate opens: a frame that waits for the next event never comes.
        assert_eq!(stream.next().unwrap().json()["choices"][0]["delta"]["content"], text);
        gate.open();
    }
    assert_eq!(stream.rest().last().unwrap().data, "[DONE]");
}

#[test]
fn a_paced_replay_sends_no_frame_before_its_event() {
    let pace = Duration::from_millis(50);
    let server = serve_with(TestDir::empty().with_pace("{ fixed: 50 }"));
    let sent = Instant::now();
    let frames = server.fetch(weather().streamed()).frames();
    // The first line produces no frame. The second opens the call: two frames; then one frame per line.
    assert_eq!(frames.len(), 8);
    for (number, (frame, line)) in frames.iter().zip([1, 1, 2, 3, 4, 5]).enumerate() {
        assert!(frame.at.duration_since(sent) >= pace * line, "frame {number} came before its event");
    }
}

#[test]
fn a_client_disconnect_during_a_stream_frees_its_slot() {
    let server = single_slot_server();
    let mut stream = server.stream(chat("A story, please."));
    assert!(stream.next().is_some());

    let rejected = server.fetch(chat("Hello!").streamed());
    assert_eq!((rejected.status(), rejected.header("retry-after")), (429, Some("1")));
    let error = json!({
        "message": "concurrency limit reached (1 request in flight)",
        "type": "rate_limit_error",
        "param": null,
        "code": "rate_limit_exceeded",
    });
    assert_eq!(rejected.json(), json!({ "error": error }));

    drop(stream);
    eventually("a slot is free", || (server.fetch(chat("Hello!").streamed()).status() == 200).then_some(()));
}

#[test]
fn a_client_that_sends_its_body_slowly_takes_no_slot() {
    let server = single_slot_server();
    let mut slow = server.client();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    slow.send_bytes(format!("{head}content-length: 100\r\n\r\n{{").as_bytes());
    for _ in 0..20 {
        assert_eq!(server.fetch(chat("Hello!")).status(), 200);
    }
}

#[test]
fn a_client_disconnect_before_the_body_frees_its_slot() {
    let server = single_slot_server();
    let mut client = server.client();
    client.send(&chat("A story, please.").into());
    // Checked by the metric: a chat request could take the slot itself.
    eventually("the slot is taken", || {
        server.fetch(Request::get("/metrics")).text().contains("\nreframe_turns_in_flight 1\n").then_some(())
    });
    drop(client);
    eventually("a slot is free", || (server.fetch(chat("Hello!")).status() == 200).then_some(()));
}

#[test]
fn sixty_four_concurrent_streams_are_all_complete() {
    let demo = demo();
    let start = Barrier::new(64);
    thread::scope(|scope| {
        let streams: Vec<_> = (0..64)
            .map(|_| {
                scope.spawn(|| {
                    let client = demo.client();
                    start.wait();
                    chunks(&client.stream(chat("Hello!").streamed()).rest())
                })
            })
            .collect();
        for stream in streams {
            assert_eq!(stream.join().unwrap(), greeting_chunks());
        }
    });
}

// ---- backend failures

#[test]
fn a_backend_failure_before_the_first_event_is_an_http_error() {
    let server = server_playing(&[r#"{"at":0,"raw":{"error":{"message":"no power","code":"dark","status":503}}}"#]);
    for request in [chat("Hello!"), chat("Hello!").streamed()] {
        let reply = server.fetch(request);
        assert_eq!(reply.status(), 503);
        let error = json!({ "message": "no power", "type": "server_error", "param": null, "code": "dark" });
        assert_eq!(reply.json(), json!({ "error": error }));
    }
}

#[test]
fn a_backend_disconnect_ends_the_stream_with_an_error_and_no_done() {
    let word = r#"{"at":0,"raw":{"model":"demo","choices":[{"index":0,"delta":{"content":"Hel"}}]}}"#;
    let server = server_playing(&[word, r#"{"at":9,"disconnect":"power"}"#]);
    let error = json!({ "message": "the connection to the backend was lost: power", "type": "server_error", "param": null, "code": null });

    let stream: Vec<Value> = server.fetch(chat("Hello!").streamed()).frames().iter().map(|f| f.json()).collect();
    let contents: Vec<&Value> = stream.iter().map(|frame| &frame["choices"][0]["delta"]["content"]).collect();
    assert_eq!(contents, [&json!(""), &json!("Hel"), &Value::Null]);
    assert_eq!(stream[2], json!({ "error": error }));

    let reply = server.fetch(chat("Hello!"));
    assert_eq!((reply.status(), reply.json()), (502, json!({ "error": error })));
}

// ---- the process

/// How long a server waits for its last requests: one that need not wait exits before.
const DRAIN: Duration = Duration::from_secs(10);

#[test]
fn a_stream_in_flight_is_finished_before_the_server_stops() {
    let mut server = serve_with(TestDir::empty().with_pace("{ fixed: 20 }"));
    let mut stream = server.stream(chat("Hello!"));
    let mut frames = vec![stream.next().unwrap()];
    server.terminate();
    server.wait_for_log("shutting down: draining 1 request, at most 10s");
    frames.extend(stream.rest());
    assert_eq!(chunks(&frames), greeting_chunks());
    let finished = Instant::now();
    assert_eq!(server.wait().code(), Some(0));
    assert!(finished.elapsed() < DRAIN, "last frame to exit: {:?}", finished.elapsed());
    server.wait_for_log("stopped");
}

#[test]
fn an_idle_server_stops_immediately() {
    let mut server = serve().start();
    let idle = server.client();
    let signalled = Instant::now();
    server.terminate();
    assert_eq!(server.wait().code(), Some(0));
    assert!(signalled.elapsed() < DRAIN, "signal to exit: {:?}", signalled.elapsed());
    drop(idle);
}

#[test]
fn a_second_stop_signal_stops_the_server_immediately() {
    let mut server = single_slot_server();
    let mut stream = server.stream(chat("A story, please."));
    assert!(stream.next().is_some());
    server.terminate();
    // Pending signals of the same kind are merged, so wait until the first is handled.
    eventually("the first signal is handled", || TcpStream::connect(server.addr()).is_err().then_some(()));
    let signalled = Instant::now();
    server.terminate();
    assert_eq!(server.wait().code(), Some(0));
    assert!(signalled.elapsed() < DRAIN, "second signal to exit: {:?}", signalled.elapsed());
}

#[test]
fn a_log_that_nobody_reads_stops_neither_requests_nor_the_server() {
    let (mut server, unread) = serve().start_with_unread_log();
    let mut client = server.client();
    let long = format!("/{}", "x".repeat(4000));
    // 4 MB of log: the pipe is full after 64 KiB, the queue after 1 MiB.
    for _ in 0..1000 {
        assert_eq!(client.fetch(Request::new("GET", &long)).status(), 404);
    }
    assert_eq!(server.fetch(chat("Hello!")).status(), 200);
    assert_eq!(server.fetch(Request::new("GET", "/status")).status(), 200);
    let metrics = server.fetch(Request::new("GET", "/metrics")).text();
    let dropped = metrics.lines().find_map(|line| line.strip_prefix("reframe_log_lines_dropped_total "));
    assert!(dropped.is_some_and(|count| count.parse::<u64>().unwrap() > 100), "{dropped:?}");
    server.terminate();
    assert_eq!(server.wait().code(), Some(0));
    drop(unread);
}

#[test]
fn a_literal_path_hides_no_other_method() {
    let routes = "routes:
  - { endpoint: POST /v1/models/search, dialect: chat }
  - { endpoint: \"POST /v1/models/{model}:generate\", dialect: chat }
";
    let dir = TestDir::empty().with_edit(
        "gateway.yaml",
        "routes:\n  - { endpoint: POST /v1/chat",
        &format!("{routes}  - {{ endpoint: POST /v1/chat"),
    );
    let server = serve_with(dir);
    for model in ["search", "demo:generate", "demo"] {
        assert_eq!(
            server.fetch(Request::get(&format!("/v1/models/{model}"))).status(),
            if model == "demo" { 200 } else { 404 }
        );
    }
    let reply = server.fetch(Request::new("DELETE", "/v1/models/search"));
    assert_eq!((reply.status(), reply.header("allow")), (405, Some("POST,HEAD,OPTIONS")));
    assert_eq!(
        server.fetch(Request::new("POST", "/v1/models/search").header("content-type", "application/json")).status(),
        400
    );
}

#[test]
fn a_port_in_use_is_reported_with_help() {
    let demo = demo();
    let addr = demo.addr().to_string();
    let exit = Launch::new().args(["serve", "--listen", &addr]).run();
    assert_eq!((exit.code, exit.stdout.as_str()), (Some(2), ""));
    let lines: Vec<&str> = exit.stderr.lines().collect();
    assert!(lines[0].starts_with(&format!("error: cannot listen on {addr}: ")), "{lines:?}");
    let help = "help: choose another address with --listen 127.0.0.1:0 or PORT=0, which picks a free port";
    assert_eq!(lines[1..], [help]);
}

#[test]
fn without_a_command_it_serves_and_port_0_picks_a_port() {
    let server = Launch::new().env("PORT", "0").start();
    assert!(server.addr().ip().is_loopback());
    assert_eq!(normalize(server.fetch(chat("Hello!")).json()), greeting_body());
}

#[test]
fn the_flag_wins_over_the_environment() {
    let demo = demo();
    // This port is in use: binding it fails.
    let taken = demo.addr().port().to_string();
    assert_eq!(Launch::new().arg("serve").env("PORT", &taken).run().code, Some(2));
    let server = serve().env("PORT", &taken).start();
    assert_ne!(server.addr(), demo.addr());
}

#[test]
fn an_invalid_port_is_rejected() {
    let exit = Launch::new().env("PORT", "http").run();
    assert_eq!(exit.code, Some(2));
    assert_eq!(exit.stderr, "error: PORT must be a number from 0 to 65535, not `http`\n");
    // Not used by other commands, or with --listen.
    assert_eq!(Launch::new().arg("schema").env("PORT", "http").run().code, Some(0));
    let exit = Launch::new().args(["--listen", "nowhere"]).env("PORT", "http").run();
    assert_eq!(exit.code, Some(2));
    assert!(exit.stderr.starts_with("error: `nowhere` is not HOST:PORT\nhelp: "), "{exit:?}");
}

#[test]
fn a_missing_folder_is_reported() {
    for flag in ["--mappings", "--add"] {
        let exit = Launch::new().args(["serve", flag, "nowhere"]).run();
        let stderr = "error: nowhere is not a folder\n".to_owned();
        assert_eq!(exit, Exit { code: Some(2), stdout: String::new(), stderr });
    }
}

#[test]
fn mappings_that_do_not_load_are_not_served() {
    let dir = TestDir::empty();
    dir.write("layer/scripts/demo.yaml", &repo("mappings/scripts/demo.yaml").replace("greeting", "greetin"));
    let exit = serve().add(dir).run();
    assert_eq!((exit.code, exit.stdout.as_str()), (Some(2), ""));
    assert!(exit.stderr.contains("error[RF020]: unknown transcript `greetin`"), "{}", exit.stderr);
    assert!(exit.stderr.contains("scripts/demo.yaml:19:13"), "{}", exit.stderr);
    assert!(exit.stderr.ends_with("error: the mappings do not load, so there is nothing to serve\n"));
}

#[test]
fn an_unknown_flag_is_rejected() {
    let exit = Launch::new().args(["serve", "--lisen", "127.0.0.1:0"]).run();
    assert_eq!((exit.code, exit.stdout.as_str()), (Some(2), ""));
    assert!(exit.stderr.contains("unexpected argument '--lisen'"), "{}", exit.stderr);
    assert!(exit.stderr.contains("'--listen'"), "{}", exit.stderr);
}

#[test]
fn help_and_version_exit_with_0() {
    let help = Launch::new().arg("--help").run();
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    assert!(help.stdout.contains("Usage: reframe"), "{}", help.stdout);
    let stdout = format!("reframe {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(Launch::new().arg("--version").run(), Exit { code: Some(0), stdout, stderr: String::new() });
}

#[test]
fn a_server_with_closed_output_keeps_serving() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Launch::new().args(["serve", "--listen", &free.to_string()]).start_with_closed_output(free);
    for _ in 0..2 {
        assert_eq!(normalize(server.fetch(chat("Hello!")).json()), greeting_body());
    }
}

// ---- which mappings

#[test]
fn in_an_empty_folder_the_embedded_mappings_are_served() {
    let server = serve().start();
    assert!(server.banner.contains("generation 1  embedded mappings\n"), "{}", server.banner);
    assert_eq!(chunks(&server.fetch(chat("Hello!").streamed()).frames()), greeting_chunks());
}

#[test]
fn mappings_in_the_working_folder_are_used() {
    let dir = TestDir::shipped();
    dir.edit(
        "mappings/dialects/chat.yaml",
        "body:\n  id: \"{{ turn.id | prefix('chatcmpl-') }}\"",
        "body:\n  id: \"mine\"",
    );
    let server = serve().in_folder(&dir.path("")).start();
    assert!(server.banner.contains("generation 1  mappings/ (watching)\n"), "{}", server.banner);
    assert_eq!(server.fetch(chat("Hello!")).json()["id"], "mine");
}

#[test]
fn a_mappings_folder_without_a_gateway_is_not_used() {
    let dir = TestDir::empty();
    dir.write("mappings/dialects/chat.yaml", "dialect: nonsense");
    let server = serve().in_folder(&dir.path("")).start();
    assert_eq!(normalize(server.fetch(chat("Hello!")).json()), greeting_body());
}

#[test]
fn the_binary_does_not_contain_build_paths() {
    let binary = fs::read(env!("CARGO_BIN_EXE_reframe")).unwrap();
    let contains = |path: &str| {
        let mut rest = binary.as_slice();
        // Comparing at every byte would take seconds in a debug build.
        while rest.skip_until(b'/').unwrap() > 0 {
            if rest.starts_with(&path.as_bytes()[1..]) {
                return true;
            }
        }
        false
    };
    assert!(contains("/v1/chat/completions"), "the mappings are in it");
    for folder in ["mappings", "schemas"] {
        let path = format!("{}/{folder}", env!("CARGO_MANIFEST_DIR"));
        assert!(!contains(&path), "{path}");
    }
}

// ---- expected contents

const TWO_CHOICES: [&str; 2] = ["The first answer: yes, with a reason.", "The second answer: no, and here is why not."];

fn greeting_body() -> Value {
    let message = json!({ "role": "assistant", "content": GREETING, "refusal": null });
    json!({
        "id": "ID",
        "object": "chat.completion",
        "created": 0,
        "model": "demo",
        "system_fingerprint": null,
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": "stop" }],
        "usage": {
            "prompt_tokens": 9,
            "completion_tokens": 23,
            "total_tokens": 32,
            "prompt_tokens_details": { "cached_tokens": 0 },
            "completion_tokens_details": { "reasoning_tokens": 0 },
        },
    })
}

fn choice_chunks(index: usize, text: &str) -> Vec<Value> {
    let mut chunks = vec![chunk(index, json!({ "role": "assistant", "content": "", "refusal": null }), Value::Null)];
    chunks.extend(words(text).map(|word| chunk(index, json!({ "content": word }), Value::Null)));
    chunks.push(chunk(index, json!({}), json!("stop")));
    chunks
}

fn weather() -> ChatRequest {
    let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let function = json!({ "name": "get_weather", "parameters": parameters });
    chat("What is the weather in Paris?").with("tools", json!([{ "type": "function", "function": function }]))
}

/// The error body of a request that the demo rejects.
fn error_body(status: u16, request: impl Into<Request>) -> Value {
    let reply: Reply = demo().fetch(request);
    assert_eq!(reply.status(), status, "{}", reply.text());
    reply.json()
}

/// An error envelope has exactly these four keys.
fn envelope(message: &str, param: Value, code: Value) -> Value {
    json!({ "error": { "message": message, "type": "invalid_request_error", "param": param, "code": code } })
}

/// A server with a single slot. A story is slow, everything else is fast.
/// The story has 131 events: it takes longer than any test waits.
fn single_slot_server() -> Server {
    let dir = TestDir::empty().with_pace("none").with_edit("gateway.yaml", "streams: 2000", "streams: 1");
    dir.edit("layer/scripts/demo.yaml", "play: story }", "play: story, pace: { fixed: 500 } }");
    serve_with(dir)
}

/// A server with a backend that plays only these transcript lines.
fn server_playing(lines: &[&str]) -> Server {
    let dir = TestDir::empty().with_edit("scripts/demo.yaml", "play: greeting", "play: broken");
    let transcript = [&["{\"transcript\":\"openai-chat\",\"about\":\"trouble\"}"], lines].concat();
    dir.write("layer/transcripts/broken.jsonl", &transcript.join("\n"));
    serve_with(dir)
}

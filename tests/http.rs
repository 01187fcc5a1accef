//! The gateway as a client meets it: the real binary, over HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::BufRead;
use std::net::{TcpListener, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use support::{
    Chat, Disk, Exit, GREETING, Launch, Reply, Request, Server, chat, chunk, chunks, demo, eventually, greeting_chunks,
    normal, repo, serve, serve_with, within, words,
};

// ---- JSON or a stream

#[test]
fn without_stream_true_the_answer_is_one_json_body() {
    let demo = demo();
    for asked in [chat("Hello!"), chat("Hello!").with("stream", false), chat("Hello!").with("stream", Value::Null)] {
        let reply = demo.ask(asked);
        assert_eq!(reply.status(), 200);
        assert_eq!(normal(reply.json()), greeting_body());
    }
}

#[test]
fn with_stream_true_the_answer_is_a_stream() {
    let reply = demo().ask(chat("Hello!").streamed());
    assert_eq!(reply.status(), 200);
    assert_eq!(reply.header("content-type"), Some("text/event-stream; charset=utf-8"));
}

#[test]
fn the_accept_header_decides_nothing() {
    let demo = demo();
    let body = demo.ask(chat("Hello!").with("stream", false).header("accept", "text/event-stream"));
    assert_eq!(normal(body.json()), greeting_body());
    let stream = demo.ask(chat("Hello!").streamed().header("accept", "application/json"));
    assert_eq!(chunks(&stream.frames()), greeting_chunks());
}

#[test]
fn a_stream_asks_everybody_on_the_way_not_to_hold_it_back() {
    let reply = demo().ask(chat("Hello!").streamed());
    assert_eq!(reply.header("cache-control"), Some("no-cache, no-transform"));
    assert_eq!(reply.header("x-accel-buffering"), Some("no"));
    assert_eq!(reply.header("content-length"), None);
}

#[test]
fn every_reply_has_a_request_id_of_its_own() {
    let demo = demo();
    let asked: [Request; 8] = [
        chat("Hello!").into(),
        chat("Hello!").streamed().into(),
        chat("Hello!").with("n", 3).streamed().into(),
        chat("Hello!").with("model", "nobody").into(),
        Request::post(""),
        Request::get("/v1/models"),
        Request::get("/nowhere"),
        Request::new("HEAD", "/v1/models"),
    ];
    let replies = asked.map(|request| demo.ask(request));
    let ids: BTreeSet<_> = replies.iter().map(|reply| reply.header("x-request-id").unwrap()).collect();
    assert_eq!(ids.len(), replies.len(), "{ids:?}");
    assert!(ids.iter().all(|id| id.len() == 32), "{ids:?}");
}

// ---- what a stream says

#[test]
fn the_greeting_is_streamed_word_by_word_and_ends_with_one_done() {
    let reply = demo().ask(chat("Hello!").streamed());
    // `chunks` takes the last frame for the terminator: a second one, or one more chunk after it, would not compare.
    assert_eq!(chunks(&reply.frames()), greeting_chunks());
}

#[test]
fn a_connection_is_good_for_the_next_request_after_a_stream() {
    let demo = demo();
    let mut client = demo.client();
    for _ in 0..3 {
        assert_eq!(chunks(&client.ask(chat("Hello!").streamed()).frames()), greeting_chunks());
        assert_eq!(normal(client.ask(chat("Hello!")).json()), greeting_body());
        assert_eq!(client.ask(Request::post("{")).status(), 400);
        assert_eq!(client.ask(Request::new("HEAD", "/v1/models")).status(), 200);
    }
}

#[test]
fn usage_that_was_asked_for_comes_last_and_is_null_before() {
    let asked = chat("Hello!").with("stream_options", json!({ "include_usage": true })).streamed();
    let mut expected = greeting_chunks();
    for chunk in &mut expected {
        chunk["usage"] = Value::Null;
    }
    let mut last = chunk(0, json!({}), Value::Null);
    last["choices"] = json!([]);
    last["usage"] = greeting_body()["usage"].clone();
    expected.push(last);
    assert_eq!(chunks(&demo().ask(asked).frames()), expected);
}

#[test]
fn usage_that_was_not_asked_for_is_not_in_the_stream() {
    let asked = chat("Hello!").with("stream_options", json!({ "include_usage": false })).streamed();
    assert_eq!(chunks(&demo().ask(asked).frames()), greeting_chunks());
}

#[test]
fn two_answers_are_streamed_side_by_side_each_one_whole() {
    let stream = chunks(&demo().ask(chat("Which?").with("n", 2).streamed()).frames());
    assert_eq!(stream[0]["choices"][0]["index"], 0, "clients count choices by the order in which they appear");
    for (index, text) in TWO_ANSWERS.iter().enumerate() {
        let of_choice = |chunk: &&Value| chunk["choices"][0]["index"] == index;
        let got: Vec<Value> = stream.iter().filter(of_choice).cloned().collect();
        assert_eq!(got, answer_chunks(index, text));
    }
}

#[test]
fn two_answers_stand_in_one_body() {
    let body = demo().ask(chat("Which?").with("n", 2)).json();
    let choices = [0, 1].map(|index| {
        let message = json!({ "role": "assistant", "content": TWO_ANSWERS[index], "refusal": null });
        json!({ "index": index, "message": message, "logprobs": null, "finish_reason": "stop" })
    });
    assert_eq!(body["choices"], json!(choices));
}

#[test]
fn a_tool_call_is_streamed_with_its_name_once_and_its_arguments_in_pieces() {
    let stream = chunks(&demo().ask(weather().streamed()).frames());
    let call = |call: Value| chunk(0, json!({ "tool_calls": [call] }), Value::Null);
    let piece = |text: &str| call(json!({ "index": 0, "function": { "arguments": text } }));
    let opening = json!({ "name": "get_weather", "arguments": "" });
    let expected = [
        chunk(0, json!({ "role": "assistant", "content": "", "refusal": null }), Value::Null),
        call(json!({ "index": 0, "id": "call_demo_weather_1", "type": "function", "function": opening })),
        piece("{\"ci"),
        piece("ty\":"),
        piece("\"Par"),
        piece("is\"}"),
        chunk(0, json!({}), json!("tool_calls")),
    ];
    assert_eq!(stream, expected);
}

#[test]
fn a_tool_call_stands_in_the_body_with_whole_arguments() {
    let body = demo().ask(weather()).json();
    let function = json!({ "name": "get_weather", "arguments": "{\"city\":\"Paris\"}" });
    let call = json!({ "id": "call_demo_weather_1", "type": "function", "function": function });
    let message = json!({ "role": "assistant", "content": null, "refusal": null, "tool_calls": [call] });
    let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": "tool_calls" });
    assert_eq!(body["choices"], json!([choice]));
}

// ---- what is refused

#[test]
fn more_answers_than_were_recorded_are_refused() {
    let refused = refusal(400, chat("Hello!").with("n", 3));
    let message = "the demo has recorded at most two answers at once";
    assert_eq!(refused, envelope(message, json!("n"), json!("unsupported_parameter")));
}

#[test]
fn a_value_of_the_wrong_type_is_refused_with_its_name() {
    let refused = refusal(400, chat("Hello!").with("temperature", "hot"));
    let message = "`temperature` must be a number, not a string";
    assert_eq!(refused, envelope(message, json!("temperature"), json!("invalid_value")));
}

#[test]
fn a_stream_that_is_not_a_boolean_is_refused() {
    let refused = refusal(400, chat("Hello!").with("stream", "true"));
    let message = "`stream` must be a boolean, not a string";
    assert_eq!(refused, envelope(message, json!("stream"), json!("invalid_value")));
}

#[test]
fn missing_messages_are_refused() {
    let refused = refusal(400, chat("").without("messages"));
    assert_eq!(refused, envelope("`messages` is required", json!("messages"), json!("missing_required_parameter")));
}

#[test]
fn messages_that_are_not_a_list_or_empty_are_refused() {
    for messages in [json!("Hello!"), json!({}), json!([])] {
        let refused = refusal(400, chat("").with("messages", messages));
        let message = "`messages` must be an array with at least one element";
        assert_eq!(refused, envelope(message, json!("messages"), json!("invalid_value")));
    }
}

#[test]
fn an_unknown_model_is_not_found() {
    let refused = refusal(404, chat("Hello!").with("model", "nobody"));
    assert_eq!(refused, envelope("the model `nobody` does not exist", json!("model"), json!("model_not_found")));
}

#[test]
fn a_body_that_is_not_json_is_refused_with_the_place() {
    for (body, why) in [
        ("", "line 1 column 1: expected a value"),
        ("{", "line 1 column 2: expected a key in quotes"),
        ("{}\n x", "line 2 column 2: expected the end of the text"),
    ] {
        let message = format!("the body is not valid JSON: {why}");
        assert_eq!(refusal(400, Request::post(body)), envelope(&message, Value::Null, Value::Null));
    }
}

#[test]
fn a_body_that_is_not_an_object_is_refused() {
    for body in ["[]", "null", "\"Hello!\"", "17"] {
        let refused = refusal(400, Request::post(body));
        assert_eq!(refused, envelope("the body must be a JSON object", Value::Null, Value::Null));
    }
}

#[test]
fn a_body_of_a_million_brackets_is_refused_and_the_next_request_is_answered() {
    let demo = demo();
    for bracket in ["[", "{\"a\":"] {
        let reply = demo.ask(Request::post(bracket.repeat(1_000_000)));
        assert_eq!(reply.status(), 400);
        assert_eq!(normal(demo.ask(chat("Hello!")).json()), greeting_body());
    }
}

#[test]
fn an_error_before_the_first_frame_has_its_http_status_also_when_a_stream_was_asked_for() {
    for (asked, status) in [
        (chat("Hello!").with("n", 3), 400),
        (chat("Hello!").with("temperature", "hot"), 400),
        (chat("Hello!").with("messages", json!([])), 400),
        (chat("Hello!").with("model", "nobody"), 404),
    ] {
        assert_eq!(refusal(status, asked.clone().streamed()), refusal(status, asked));
    }
}

#[test]
fn an_unknown_path_is_not_found() {
    for path in ["/", "/v1", "/v1/chat", "/v1/chat/completions/", "/v1/models/", "//v1/models"] {
        let message = format!("there is nothing at {path}");
        let refused = refusal(404, Request::get(path));
        assert_eq!(refused, envelope(&message, Value::Null, json!("unknown_url")));
    }
}

#[test]
fn the_wrong_method_is_told_the_right_ones() {
    let demo = demo();
    for (method, path, allowed) in [
        ("GET", "/v1/chat/completions", "POST"),
        ("DELETE", "/v1/chat/completions", "POST"),
        ("POST", "/v1/models", "GET, HEAD"),
        ("PUT", "/v1/models/demo", "GET, HEAD"),
    ] {
        let reply = demo.ask(Request::new(method, path));
        assert_eq!((reply.status(), reply.header("allow")), (405, Some(allowed)));
        assert_eq!(reply.json(), envelope(&format!("{path} does not take {method}"), Value::Null, Value::Null));
    }
}

// ---- how a body may arrive

#[test]
fn a_body_may_be_as_large_as_the_limit_and_no_larger() {
    let server = serve_with(Disk::empty().lay("gateway.yaml", "body_bytes: 16MiB", "body_bytes: 1KiB"));
    let padded = |length: usize| {
        let body = chat("Hello!").body.to_string();
        Request::post(format!("{body}{}", " ".repeat(length - body.len())))
    };
    assert_eq!(normal(server.ask(padded(1024)).json()), greeting_body());
    let reply = server.ask(padded(1025));
    assert_eq!(reply.status(), 413);
    let too_large = envelope("the body is larger than 1024 bytes", Value::Null, Value::Null);
    assert_eq!(reply.json(), too_large);
    // A client that sends all before it reads must get the answer too, not a broken pipe.
    assert_eq!(server.ask(padded(8 << 20)).json(), too_large);
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
    assert_eq!(normal(client.reply().json()), greeting_body());
}

// ---- pages

#[test]
fn the_models_are_listed() {
    let listed = demo().ask(Request::get("/v1/models")).json();
    let created = listed["data"][0]["created"].clone();
    assert!(created.as_u64().is_some_and(|seconds| seconds > 1_700_000_000), "{listed}");
    let model = json!({ "id": "demo", "object": "model", "created": created, "owned_by": "demo" });
    assert_eq!(listed, json!({ "object": "list", "data": [model] }));
}

#[test]
fn one_model_is_described_as_in_the_list() {
    let demo = demo();
    let listed = demo.ask(Request::get("/v1/models")).json();
    assert_eq!(demo.ask(Request::get("/v1/models/demo")).json(), listed["data"][0]);
    assert_eq!(demo.ask(Request::get("/v1/models/d%65mo")).json(), listed["data"][0]);
}

#[test]
fn a_model_that_does_not_exist_has_no_page() {
    let refused = refusal(404, Request::get("/v1/models/no%2Fbody"));
    assert_eq!(refused, envelope("the model `no/body` does not exist", json!("model"), json!("model_not_found")));
}

#[test]
fn head_gives_the_head_of_a_page_and_no_body() {
    let demo = demo();
    let mut client = demo.client();
    let head = client.ask(Request::new("HEAD", "/v1/models"));
    let page = client.ask(Request::get("/v1/models"));
    for name in ["content-type", "content-length"] {
        assert_eq!(head.header(name), page.header(name));
    }
    assert_eq!((head.status(), head.pieces.len()), (200, 0));
}

// ---- when frames leave

#[test]
fn frames_that_are_ready_together_leave_in_one_write() {
    let server = serve_with(Disk::empty().paced("none"));
    let reply = server.ask(chat("Hello!").streamed());
    assert_eq!(chunks(&reply.frames()), greeting_chunks());
    assert_eq!(reply.pieces.len(), 1);
}

#[test]
fn a_frame_leaves_when_it_is_ready_and_waits_for_no_other() {
    let pace = Duration::from_millis(50);
    let server = serve_with(Disk::empty().paced("{ fixed: 50 }"));
    let mut client = server.client();
    client.ask(Request::get("/v1/models"));
    let asked = Instant::now();
    let reply = client.ask(weather().streamed());
    let frames = reply.frames();
    // Its first line says nothing that a client is told. The second opens the call: two frames; then one frame a line.
    assert_eq!(frames.len(), 8);
    let due = [1, 1, 2, 3, 4, 5].map(|line| pace * line);
    for (number, (frame, due)) in frames.iter().zip(due).enumerate() {
        let late = frame.at.duration_since(asked).checked_sub(due);
        let late = late.unwrap_or_else(|| panic!("frame {number} came before its event"));
        within(&format!("frame {number}, event to client"), late, Duration::from_millis(50));
    }
    println!("{} frames in {} pieces", frames.len(), reply.pieces.len());
    assert!(reply.pieces.len() > 2, "all at once");
}

#[test]
fn a_client_that_goes_in_the_middle_of_a_stream_frees_its_place() {
    let server = one_at_a_time();
    let mut stream = server.stream(chat("Tell me a story."));
    assert!(stream.next().is_some());

    let refused = server.ask(chat("Hello!").streamed());
    assert_eq!((refused.status(), refused.header("retry-after")), (503, Some("1")));
    let error = json!({
        "message": "1 turns are under way, which is all that is allowed",
        "type": "server_error",
        "param": null,
        "code": "overloaded",
    });
    assert_eq!(refused.json(), json!({ "error": error }));

    let closed = Instant::now();
    drop(stream);
    eventually("a place is free", || (server.ask(chat("Hello!").streamed()).status() == 200).then_some(()));
    within("client gone to place free", closed.elapsed(), Duration::from_millis(250));
}

#[test]
fn a_client_that_goes_before_its_body_is_there_frees_its_place() {
    let server = one_at_a_time();
    let mut client = server.client();
    client.send(&chat("Tell me a story.").into());
    // Not by asking for the place: whoever asks may take it.
    eventually("the place is taken", || {
        server.ask(Request::get("/metrics")).text().contains("\nturns 1\n").then_some(())
    });
    let closed = Instant::now();
    drop(client);
    eventually("a place is free", || (server.ask(chat("Hello!")).status() == 200).then_some(()));
    within("client gone to place free", closed.elapsed(), Duration::from_millis(250));
}

#[test]
fn sixty_four_streams_at_once_are_all_whole() {
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

// ---- a backend that fails

#[test]
fn a_backend_that_fails_before_its_first_word_is_a_plain_http_error() {
    let server = broken(&[r#"{"at":0,"raw":{"error":{"message":"no power","code":"dark","status":503}}}"#]);
    for asked in [chat("Hello!"), chat("Hello!").streamed()] {
        let reply = server.ask(asked);
        assert_eq!(reply.status(), 503);
        let error = json!({ "message": "no power", "type": "server_error", "param": null, "code": "dark" });
        assert_eq!(reply.json(), json!({ "error": error }));
    }
}

#[test]
fn a_backend_that_is_lost_in_the_middle_ends_the_stream_with_an_error_and_no_done() {
    let word = r#"{"at":0,"raw":{"model":"demo","choices":[{"index":0,"delta":{"content":"Hel"}}]}}"#;
    let server = broken(&[word, r#"{"at":9,"cut":"power"}"#]);
    let error =
        json!({ "message": "the backend was lost: power", "type": "server_error", "param": null, "code": null });

    let stream: Vec<Value> = server.ask(chat("Hello!").streamed()).frames().iter().map(|f| f.json()).collect();
    let said: Vec<&Value> = stream.iter().map(|frame| &frame["choices"][0]["delta"]["content"]).collect();
    assert_eq!(said, [&json!(""), &json!("Hel"), &Value::Null]);
    assert_eq!(stream[2], json!({ "error": error }));

    let reply = server.ask(chat("Hello!"));
    assert_eq!((reply.status(), reply.json()), (502, json!({ "error": error })));
}

// ---- the process

#[test]
fn a_stream_that_runs_when_the_server_is_told_to_stop_is_finished_first() {
    let mut server = serve_with(Disk::empty().paced("{ fixed: 20 }"));
    let mut stream = server.stream(chat("Hello!"));
    let mut frames = vec![stream.next().unwrap()];
    server.terminate();
    frames.extend(stream.rest());
    assert_eq!(chunks(&frames), greeting_chunks());
    let finished = Instant::now();
    assert_eq!(server.wait().code(), Some(0));
    within("last frame to exit", finished.elapsed(), Duration::from_millis(100));
}

#[test]
fn a_server_that_is_idle_stops_at_once() {
    let mut server = serve().start();
    let idle = server.client();
    let told = Instant::now();
    server.terminate();
    assert_eq!(server.wait().code(), Some(0));
    within("told to exit", told.elapsed(), Duration::from_millis(100));
    drop(idle);
}

#[test]
fn a_server_that_is_told_twice_to_stop_waits_for_nobody() {
    let mut server = one_at_a_time();
    let mut stream = server.stream(chat("Tell me a story."));
    assert!(stream.next().is_some());
    server.terminate();
    // Signals of one kind that come together are one signal.
    eventually("the first is heard", || TcpStream::connect(server.addr()).is_err().then_some(()));
    let told = Instant::now();
    server.terminate();
    assert_eq!(server.wait().code(), Some(0));
    within("told twice to exit", told.elapsed(), Duration::from_millis(100));
}

#[test]
fn a_place_that_is_taken_is_told_with_a_way_out() {
    let demo = demo();
    let addr = demo.addr().to_string();
    let exit = Launch::new().args(["serve", "--listen", &addr]).run();
    assert_eq!((exit.code, exit.stdout.as_str()), (Some(2), ""));
    let lines: Vec<&str> = exit.stderr.lines().collect();
    assert!(lines[0].starts_with(&format!("error: cannot listen on {addr}: ")), "{lines:?}");
    let help = "help: choose another place with --listen 127.0.0.1:0 or PORT=0, which picks a free port";
    assert_eq!(lines[1..], [help]);
}

#[test]
fn without_a_command_it_serves_and_port_0_picks_a_port() {
    let server = Launch::new().env("PORT", "0").start();
    assert!(server.addr().ip().is_loopback());
    assert_eq!(normal(server.ask(chat("Hello!")).json()), greeting_body());
}

#[test]
fn the_flag_wins_over_the_environment() {
    let demo = demo();
    // This port is taken: who tries it fails.
    let taken = demo.addr().port().to_string();
    assert_eq!(Launch::new().arg("serve").env("PORT", &taken).run().code, Some(2));
    let server = serve().env("PORT", &taken).start();
    assert_ne!(server.addr(), demo.addr());
}

#[test]
fn a_port_that_is_none_is_refused() {
    let exit = Launch::new().env("PORT", "http").run();
    assert_eq!(exit.code, Some(2));
    assert!(exit.stderr.starts_with("error: cannot listen on 127.0.0.1:http: "), "{exit:?}");
}

#[test]
fn a_folder_that_is_not_there_is_told() {
    for flag in ["--mappings", "--add"] {
        let exit = Launch::new().args(["serve", flag, "nowhere"]).run();
        let stderr = "error: nowhere is not a folder\n".to_owned();
        assert_eq!(exit, Exit { code: Some(2), stdout: String::new(), stderr });
    }
}

#[test]
fn mappings_that_do_not_load_are_not_served() {
    let disk = Disk::empty();
    disk.write("layer/scripts/demo.yaml", &repo("mappings/scripts/demo.yaml").replace("greeting", "greetin"));
    let exit = serve().add(disk).run();
    assert_eq!((exit.code, exit.stdout.as_str()), (Some(2), ""));
    assert!(exit.stderr.contains("error[RF020]: no transcript is called `greetin`"), "{}", exit.stderr);
    assert!(exit.stderr.contains("scripts/demo.yaml:18:13"), "{}", exit.stderr);
    assert!(exit.stderr.ends_with("error: the mappings do not load, so there is nothing to serve\n"));
}

#[test]
fn an_unknown_flag_is_refused() {
    let exit = Launch::new().args(["serve", "--lisen", "127.0.0.1:0"]).run();
    assert_eq!((exit.code, exit.stdout.as_str()), (Some(2), ""));
    assert!(exit.stderr.contains("unexpected argument '--lisen'"), "{}", exit.stderr);
    assert!(exit.stderr.contains("'--listen'"), "{}", exit.stderr);
}

#[test]
fn help_and_version_are_no_failures() {
    let help = Launch::new().arg("--help").run();
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    assert!(help.stdout.contains("Usage: reframe"), "{}", help.stdout);
    let stdout = format!("reframe {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(Launch::new().arg("--version").run(), Exit { code: Some(0), stdout, stderr: String::new() });
}

#[test]
fn a_server_that_nobody_listens_to_serves_nevertheless() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Launch::new().args(["serve", "--listen", &free.to_string()]).start_unheard(free);
    for _ in 0..2 {
        assert_eq!(normal(server.ask(chat("Hello!")).json()), greeting_body());
    }
}

// ---- which mappings

#[test]
fn in_an_empty_folder_the_compiled_in_mappings_are_served() {
    let server = serve().start();
    assert!(server.banner.contains("generation 1  embedded mappings\n"), "{}", server.banner);
    assert_eq!(chunks(&server.ask(chat("Hello!").streamed()).frames()), greeting_chunks());
}

#[test]
fn mappings_in_the_working_folder_are_picked_up() {
    let disk = Disk::shipped();
    disk.edit(
        "mappings/dialects/chat.yaml",
        "body:\n  id: \"{{ turn.id | prefix('chatcmpl-') }}\"",
        "body:\n  id: \"mine\"",
    );
    let server = serve().in_folder(&disk.path("")).start();
    assert!(server.banner.contains("generation 1  mappings/ (watching)\n"), "{}", server.banner);
    assert_eq!(server.ask(chat("Hello!")).json()["id"], "mine");
}

#[test]
fn a_mappings_folder_without_a_gateway_is_not_picked_up() {
    let disk = Disk::empty();
    disk.write("mappings/dialects/chat.yaml", "dialect: nonsense");
    let server = serve().in_folder(&disk.path("")).start();
    assert_eq!(normal(server.ask(chat("Hello!")).json()), greeting_body());
}

#[test]
fn the_binary_does_not_know_where_it_was_built() {
    let binary = fs::read(env!("CARGO_BIN_EXE_reframe")).unwrap();
    let holds = |path: &str| {
        let mut rest = binary.as_slice();
        // Byte by byte a debug build would take seconds.
        while rest.skip_until(b'/').unwrap() > 0 {
            if rest.starts_with(&path.as_bytes()[1..]) {
                return true;
            }
        }
        false
    };
    assert!(holds("/v1/chat/completions"), "the mappings are in it");
    for folder in ["mappings", "schemas"] {
        let path = format!("{}/{folder}", env!("CARGO_MANIFEST_DIR"));
        assert!(!holds(&path), "{path}");
    }
}

// ---- the words of these stories

const TWO_ANSWERS: [&str; 2] = ["The first answer: yes, with a reason.", "The second answer: no, and here is why not."];

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

fn answer_chunks(index: usize, text: &str) -> Vec<Value> {
    let mut chunks = vec![chunk(index, json!({ "role": "assistant", "content": "", "refusal": null }), Value::Null)];
    chunks.extend(words(text).map(|word| chunk(index, json!({ "content": word }), Value::Null)));
    chunks.push(chunk(index, json!({}), json!("stop")));
    chunks
}

fn weather() -> Chat {
    let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let function = json!({ "name": "get_weather", "parameters": parameters });
    chat("What is the weather in Paris?").with("tools", json!([{ "type": "function", "function": function }]))
}

/// The body of a refusal by the demo.
fn refusal(status: u16, request: impl Into<Request>) -> Value {
    let reply: Reply = demo().ask(request);
    assert_eq!(reply.status(), status, "{}", reply.text());
    reply.json()
}

/// All four keys, always, and no other.
fn envelope(message: &str, param: Value, code: Value) -> Value {
    json!({ "error": { "message": message, "type": "invalid_request_error", "param": param, "code": code } })
}

/// A server with a single place, where a story takes its time and anything else none.
fn one_at_a_time() -> Server {
    let disk = Disk::empty().paced("none").lay("gateway.yaml", "streams: 2000", "streams: 1");
    disk.edit("layer/scripts/demo.yaml", "play: story }", "play: story, pace: { fixed: 100 } }");
    serve_with(disk)
}

/// A server whose backend says only this.
fn broken(lines: &[&str]) -> Server {
    let disk = Disk::empty().lay("scripts/demo.yaml", "play: greeting", "play: broken");
    let transcript = [&["{\"transcript\":\"openai-chat\",\"about\":\"trouble\"}"], lines].concat();
    disk.write("layer/transcripts/broken.jsonl", &transcript.join("\n"));
    serve_with(disk)
}

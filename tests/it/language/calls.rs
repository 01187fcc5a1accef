//! Calls and finishes of backends that are not quite right: repeated ids, parsed arguments, legacy calls, errors as
//! finish reasons.

use super::turns::{Answer, added_file, answer, calls, chunk, content, edited_files, finish, response};
use crate::support::replay::LoadedSet;
use crate::support::{MockBackend, MockResponse, Request, serve};
use reframe::testing::domain::{Delta, Derived, Event, Finish, Moment, MomentKind, Policies, ToolAliases};
use reframe::testing::reload::embedded;
use reframe::testing::turn::{Ids, Turn};
use serde_json::{Value, json};

fn request() -> Value {
    json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "Hi" }] })
}

fn chat(raws: &[Value]) -> Answer {
    answer(LoadedSet::embedded(), "openai-chat", raws, "chat", "openai", &request())
}

fn responses(raws: &[Value]) -> Answer {
    let request = json!({ "model": "m", "stream": true, "input": "Hi" });
    answer(LoadedSet::embedded(), "openai-chat", raws, "responses", "openai", &request)
}

/// A chunk with one delta of a call.
fn call_chunk(call: Value) -> Value {
    chunk(json!({ "tool_calls": [call] }), Value::Null)
}

fn end(reason: &str) -> Value {
    chunk(json!({}), json!(reason))
}

fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
    (id.to_owned(), name.to_owned(), arguments.to_owned())
}

fn names_and_arguments(answer: &Answer) -> Vec<(String, String)> {
    calls(answer).into_iter().map(|(_, name, arguments)| (name, arguments)).collect()
}

#[test]
fn a18_a_known_id_with_another_key_or_name_is_another_call() {
    let delta = |index: usize, id: &str, name: &str, arguments: &str| {
        let function = json!({ "name": name, "arguments": arguments });
        call_chunk(json!({ "index": index, "id": id, "type": "function", "function": function }))
    };
    let other_key = [delta(0, "x", "f", "{\"a\":1}"), delta(1, "x", "f", "{\"b\":2}"), end("tool_calls")];
    assert_eq!(calls(&chat(&other_key)), [call("x", "f", "{\"a\":1}"), call("x_2", "f", "{\"b\":2}")]);
    let other_name = [delta(0, "x", "f", "{\"a\":1}"), delta(0, "x", "g", "{\"b\":2}"), end("tool_calls")];
    assert_eq!(calls(&chat(&other_name)), [call("x", "f", "{\"a\":1}"), call("x_2", "g", "{\"b\":2}")]);
}

#[test]
fn a18_deltas_with_a_repeated_id_go_to_the_call_with_their_key() {
    let delta = |index: usize, id: Value, name: Value, arguments: &str| {
        call_chunk(json!({ "index": index, "id": id, "function": { "name": name, "arguments": arguments } }))
    };
    let raws = [
        delta(0, json!("x"), json!("f"), "{\"a\""),
        delta(1, json!("x"), json!("f"), "{\"b\""),
        delta(0, Value::Null, Value::Null, ":1}"),
        delta(1, json!("x"), Value::Null, ":2}"),
        end("tool_calls"),
    ];
    assert_eq!(calls(&chat(&raws)), [call("x", "f", "{\"a\":1}"), call("x_2", "f", "{\"b\":2}")]);
}

/// Without a key, the name and complete arguments show where the next call begins.
#[test]
fn a18_a_repeated_id_without_a_key_is_another_call_after_complete_arguments() {
    let delta = |name: Value, arguments: &str| {
        call_chunk(json!({ "id": "x", "function": { "name": name, "arguments": arguments } }))
    };
    let raws = [
        delta(json!("f"), "{\"a\""),
        delta(json!("f"), ":1}"),
        delta(json!("f"), ""),
        delta(json!("f"), "{\"b\":2}"),
        end("tool_calls"),
    ];
    assert_eq!(calls(&chat(&raws)), [call("x", "f", "{\"a\":1}"), call("x_2", "f", "{\"b\":2}")]);
}

/// Some servers invent an id for every delta.
#[test]
fn a18_calls_can_be_identified_by_their_key_alone() {
    let derived = "backend: restless\nextends: openai-chat\npatch: { events: { calls_by: { $add: key } } }\n";
    let mut files = edited_files(&[]);
    files.push(super::turns::added_file("backends/restless.yaml", derived));
    let delta = |id: &str, name: Value, arguments: &str| {
        call_chunk(json!({ "index": 0, "id": id, "function": { "name": name, "arguments": arguments } }))
    };
    let raws = [
        delta("x1", json!("f"), "{\"a\""),
        delta("x2", Value::Null, ":1"),
        delta("x3", Value::Null, "}"),
        end("tool_calls"),
    ];
    let by_key = answer(&LoadedSet::of(&files), "restless", &raws, "chat", "openai", &request());
    assert_eq!(calls(&by_key), [call("x1", "f", "{\"a\":1}")]);
    assert_eq!(chat(&raws).status, 502, "by id, these are calls without a name");
}

#[test]
fn c02_a_finish_reason_that_means_an_error_is_an_error() {
    for reason in ["error", "failed", "cancelled", "abort", "insufficient_system_resource"] {
        let raws = [chunk(json!({ "content": "Hel" }), Value::Null), end(reason)];
        let of_chat = chat(&raws);
        assert_eq!(of_chat.status, 502, "{reason}: {:#}", of_chat.body);
        let last = of_chat.frames.last().unwrap();
        assert!(last["error"]["message"].is_string(), "{reason}: {last:#}");
        let of_responses = responses(&raws);
        let last = &of_responses.frames.last().unwrap()["response"];
        assert_eq!((&last["status"], &last["output"][0]["content"][0]["text"]), (&json!("failed"), &json!("Hel")));
    }
    let sensitive = chat(&[chunk(json!({ "content": "Hel" }), Value::Null), end("sensitive")]);
    assert_eq!(finish(&sensitive), "content_filter");
}

#[test]
fn c02_an_error_of_a_choice_is_an_error() {
    let mut raw = end("error");
    raw["choices"][0]["error"] = json!({ "code": 429, "message": "slow down" });
    let answer = chat(&[chunk(json!({ "content": "Hel" }), Value::Null), raw]);
    assert_eq!(answer.frames.last().unwrap()["error"]["message"], "slow down");
    assert_eq!((answer.status, &answer.body["error"]["message"]), (429, &json!("slow down")));
}

#[test]
fn c02_an_unknown_finish_reason_is_a_stop_after_output_and_else_an_error() {
    let text = chunk(json!({ "content": "Hello" }), Value::Null);
    let after_text = chat(&[text.clone(), end("zenith")]);
    assert_eq!((content(&after_text), finish(&after_text)), ("Hello".to_owned(), "stop".to_owned()));
    let alone = chat(&[end("zenith")]);
    assert_eq!(alone.status, 502, "{:#}", alone.body);
    let message = alone.body["error"]["message"].as_str().unwrap();
    assert!(message.contains("`zenith`"), "{message}");
    let profile =
        super::turns::added_file("profiles/strict.yaml", "profile: strict\npolicies: { unknown_finish: fail }\n");
    let mut files = edited_files(&[]);
    files.push(profile);
    let strict = answer(&LoadedSet::of(&files), "openai-chat", &[text, end("zenith")], "chat", "strict", &request());
    assert_eq!(strict.status, 502);
    assert!(strict.frames.last().unwrap()["error"].is_object());
}

#[test]
fn c03_the_error_of_a_chunk_is_sent_and_not_its_finish() {
    let mut raw = chunk(json!({ "content": "" }), json!("error"));
    raw["error"] = json!({ "message": "the model crashed", "code": "server_error" });
    let answer = chat(&[chunk(json!({ "content": "Hel" }), Value::Null), raw]);
    let last = answer.frames.last().unwrap();
    assert_eq!(
        (&last["error"]["message"], &last["error"]["code"]),
        (&json!("the model crashed"), &json!("server_error"))
    );
    let finishes = answer.frames.iter().filter(|f| f["choices"][0]["finish_reason"].is_string()).count();
    assert_eq!(finishes, 0);
    assert_eq!(answer.body["error"]["message"], "the model crashed");
}

#[test]
fn c04_two_calls_with_one_id_are_two_calls_in_json_too() {
    let tool = |id: Value, name: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
    let message = |calls: Value| json!({ "role": "assistant", "content": null, "tool_calls": calls });
    let same = message(json!([tool(json!("x"), "f", "{\"a\":1}"), tool(json!("x"), "f", "{\"b\":2}")]));
    assert_eq!(
        calls(&chat(&[response(same, "tool_calls")])),
        [call("x", "f", "{\"a\":1}"), call("x_2", "f", "{\"b\":2}")]
    );
    let without = message(json!([tool(Value::Null, "f", "{\"a\":1}"), tool(Value::Null, "f", "{\"b\":2}")]));
    assert_eq!(
        names_and_arguments(&chat(&[response(without, "tool_calls")])),
        [("f".into(), "{\"a\":1}".into()), ("f".into(), "{\"b\":2}".into())]
    );
}

#[test]
fn c04_two_calls_of_an_anthropic_answer_with_one_id_are_two_calls() {
    let tool = |input: Value| json!({ "type": "tool_use", "id": "x", "name": "f", "input": input });
    let message = json!({
        "type": "message", "id": "m", "model": "m", "role": "assistant", "stop_reason": "tool_use",
        "content": [tool(json!({ "a": 1 })), tool(json!({ "b": 2 }))], "usage": { "input_tokens": 1, "output_tokens": 1 },
    });
    let answer = answer(LoadedSet::embedded(), "anthropic-messages", &[message], "chat", "openai", &request());
    assert_eq!(calls(&answer), [call("x", "f", "{\"a\":1}"), call("x_2", "f", "{\"b\":2}")]);
}

/// Without an id or a key, only the arguments show where the second call begins.
#[test]
fn c04_two_streamed_calls_of_one_name_without_ids_are_two_calls() {
    let delta = |arguments: &str| call_chunk(json!({ "function": { "name": "f", "arguments": arguments } }));
    let raws = [delta("{\"a\":1}"), delta("{\"b\""), delta(":2}"), end("tool_calls")];
    assert_eq!(names_and_arguments(&chat(&raws)), [("f".into(), "{\"a\":1}".into()), ("f".into(), "{\"b\":2}".into())]);
}

#[test]
fn c05_streamed_arguments_may_be_an_object() {
    let raw =
        call_chunk(json!({ "index": 0, "id": "x", "function": { "name": "f", "arguments": { "b": 1.0, "a": [] } } }));
    assert_eq!(calls(&chat(&[raw, end("tool_calls")])), [call("x", "f", "{\"b\":1.0,\"a\":[]}")]);
}

#[test]
fn c06_arguments_null_are_the_text_null() {
    let tool = json!({ "id": "x", "type": "function", "function": { "name": "f", "arguments": null } });
    let message = json!({ "role": "assistant", "content": null, "tool_calls": [tool] });
    assert_eq!(calls(&chat(&[response(message, "tool_calls")])), [call("x", "f", "null")]);
    // In a stream, null means that there is nothing new.
    let raws = [
        call_chunk(json!({ "index": 0, "id": "x", "function": { "name": "f", "arguments": null } })),
        call_chunk(json!({ "index": 0, "function": { "arguments": "{\"a\":1}" } })),
        end("tool_calls"),
    ];
    assert_eq!(calls(&chat(&raws)), [call("x", "f", "{\"a\":1}")]);
}

#[test]
fn c07_a_call_that_is_sent_as_function_call_and_as_tool_calls_is_one_call() {
    let legacy = |name: Value, arguments: &str| json!({ "name": name, "arguments": arguments });
    let modern = |name: Value, arguments: &str| json!([{ "index": 0, "id": "x", "function": legacy(name, arguments) }]);
    let both = |name: Value, arguments: &str| json!({ "function_call": legacy(name.clone(), arguments), "tool_calls": modern(name, arguments) });
    let streamed = [
        chunk(both(json!("f"), "{\"a\""), Value::Null),
        chunk(both(Value::Null, ":1}"), Value::Null),
        end("tool_calls"),
    ];
    assert_eq!(calls(&chat(&streamed)), [call("x", "f", "{\"a\":1}")]);
    let legacy_first = [
        chunk(json!({ "function_call": legacy(json!("f"), "{\"a\":1}") }), Value::Null),
        chunk(json!({ "tool_calls": modern(json!("f"), "{\"a\":1}") }), Value::Null),
        end("function_call"),
    ];
    assert_eq!(calls(&chat(&legacy_first)), [call("x", "f", "{\"a\":1}")]);
    let mut message = both(json!("f"), "{\"a\":1}");
    message["role"] = json!("assistant");
    assert_eq!(calls(&chat(&[response(message, "tool_calls")])), [call("x", "f", "{\"a\":1}")]);
}

#[test]
fn c07_a_legacy_call_alone_is_a_call() {
    let delta = |call: Value| chunk(json!({ "function_call": call }), Value::Null);
    let raws = [
        delta(json!({ "name": "f", "arguments": "" })),
        delta(json!({ "arguments": "{\"a\"" })),
        delta(json!({ "arguments": ":1}" })),
        end("function_call"),
    ];
    let answer = chat(&raws);
    assert_eq!(names_and_arguments(&answer), [("f".into(), "{\"a\":1}".into())]);
    assert_eq!(finish(&answer), "tool_calls");
    let message = json!({ "role": "assistant", "content": null, "function_call": { "name": "f", "arguments": "{}" } });
    assert_eq!(names_and_arguments(&chat(&[response(message, "function_call")])), [("f".into(), "{}".into())]);
}

/// The embedded set with a profile that preserves legacy calls.
fn preserving() -> LoadedSet {
    let profile = "profile: legacy\npolicies: { legacy_function_call: { chat: preserve } }\n";
    let mut files = embedded::files();
    files.push(added_file("profiles/legacy.yaml", profile));
    LoadedSet::of(&files)
}

#[test]
fn c07_a_legacy_call_is_preserved_by_policy() {
    let set = preserving();
    let chat = |raws: &[Value]| answer(&set, "openai-chat", raws, "chat", "legacy", &request());
    let delta = |call: Value| chunk(json!({ "function_call": call }), Value::Null);
    let raws = [
        delta(json!({ "name": "f", "arguments": "{\"a\"" })),
        delta(json!({ "arguments": ":1}" })),
        // Some backends finish with another word.
        end("stop"),
    ];
    let answer = chat(&raws);
    let deltas: Vec<Value> = answer.frames.iter().map(|frame| frame["choices"][0]["delta"].clone()).collect();
    let calls: Vec<&Value> = deltas.iter().filter_map(|delta| delta.get("function_call")).collect();
    assert_eq!(calls, [&json!({ "name": "f", "arguments": "" }), &json!({ "arguments": "{\"a\":1}" })]);
    assert!(deltas.iter().all(|delta| delta.get("tool_calls").is_none()), "{deltas:?}");
    let choice = &answer.body["choices"][0];
    assert_eq!(choice["message"]["function_call"], json!({ "name": "f", "arguments": "{\"a\":1}" }));
    assert_eq!(choice["message"].get("tool_calls"), None);
    assert_eq!(choice["finish_reason"], "function_call");
    assert_eq!(finish(&answer), "function_call");
}

#[test]
fn c07_tool_calls_win_over_a_preserved_legacy_call() {
    let set = preserving();
    let function = json!({ "name": "f", "arguments": "{}" });
    let delta = json!({ "function_call": function, "tool_calls": [{ "index": 0, "id": "x", "function": function }] });
    let raws = [chunk(delta, Value::Null), end("function_call")];
    let answer = answer(&set, "openai-chat", &raws, "chat", "legacy", &request());
    assert_eq!(calls(&answer), [call("x", "f", "{}")]);
    assert_eq!(answer.body["choices"][0]["message"].get("function_call"), None);
    assert_eq!(finish(&answer), "tool_calls");
}

#[test]
fn c08_thinking_and_redacted_thinking_are_two_items() {
    let started = json!({ "type": "message_start", "message": { "id": "m", "model": "m", "usage": {} } });
    let start =
        |index: usize, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
    let delta = |index: usize, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let stop = |index: usize| json!({ "type": "content_block_stop", "index": index });
    let stream = [
        started,
        start(0, json!({ "type": "thinking", "thinking": "" })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "Hm." })),
        delta(0, json!({ "type": "signature_delta", "signature": "signed" })),
        stop(0),
        start(1, json!({ "type": "redacted_thinking", "data": "hidden" })),
        stop(1),
        start(2, json!({ "type": "text", "text": "" })),
        delta(2, json!({ "type": "text_delta", "text": "Hi" })),
        stop(2),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 1 } }),
        json!({ "type": "message_stop" }),
    ];
    let whole = [json!({
        "type": "message", "id": "m", "model": "m", "stop_reason": "end_turn",
        "content": [
            { "type": "thinking", "thinking": "Hm.", "signature": "signed" },
            { "type": "redacted_thinking", "data": "hidden" },
            { "type": "text", "text": "Hi" },
        ],
        "usage": { "input_tokens": 1, "output_tokens": 1 },
    })];
    let request = json!({ "model": "m", "stream": true, "input": "Hi", "include": ["reasoning.encrypted_content"] });
    for raws in [&stream[..], &whole[..]] {
        let answer = answer(LoadedSet::embedded(), "anthropic-messages", raws, "responses", "openai", &request);
        let output: Vec<(Value, Value)> = answer.body["output"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| (item["type"].clone(), item["encrypted_content"].clone()))
            .collect();
        let expected = [
            (json!("reasoning"), json!("signed")),
            (json!("reasoning"), json!("hidden")),
            (json!("message"), Value::Null),
        ];
        assert_eq!(output, expected, "{:#}", answer.body);
    }
}

fn tool_delta(name: Option<&str>, delta: &str) -> Event {
    Event::Tool {
        choice: 0,
        key: Some("0".into()),
        id: None,
        name: name.map(str::to_owned),
        kind: None,
        by: Derived::default(),
        legacy: false,
        literal: Derived::default(),
        delta: Some(Delta::Append(delta.into())),
    }
}

/// The arguments that each delta of a wrapped custom tool adds for the client.
#[test]
fn c09_calls_of_wrapped_custom_tools_are_streamed() {
    let aliases = ToolAliases { custom: vec!["patch".into()], answer: None };
    let mut turn = Turn::new(Policies::default(), Ids::Counting(0), "m", 1, 0).tool_aliases(aliases);
    let mut seen: Vec<(MomentKind, String)> = Vec::new();
    let deltas = ["{\"in", "put\":\"line", " 1\\", "nline 2", "\"}"];
    for (at, delta) in deltas.into_iter().enumerate() {
        let event = tool_delta((at == 0).then_some("patch"), delta);
        turn.advance(event, &mut |_, moment: &Moment| seen.push((moment.kind, moment.text.clone())));
    }
    let finish = Event::Finish { choice: Some(0), reason: Some(Finish::ToolCalls), other: None };
    turn.advance(finish, &mut |_, moment: &Moment| seen.push((moment.kind, moment.text.clone())));
    let arguments: Vec<&str> =
        seen.iter().filter(|(kind, _)| *kind == MomentKind::ToolArgs).map(|(_, text)| text.as_str()).collect();
    assert_eq!(arguments, ["line", " 1", "\nline 2"]);
    assert_eq!(seen.iter().filter(|(kind, _)| *kind == MomentKind::ToolClose).count(), 1);
    assert_eq!(turn.state().items[0].arguments, "line 1\nline 2");
}

#[test]
fn c21_a_response_of_which_nothing_was_read_is_an_error() {
    let unknown = json!({ "id": "x", "model": "m", "choices": [{ "index": 0, "text": "Hello" }] });
    let answer = chat(&[unknown, end("stop")]);
    assert_eq!(answer.status, 502, "{:#}", answer.body);
    assert_eq!(answer.body["error"]["message"], "nothing in the backend's response could be read");
    assert!(answer.frames.last().is_none_or(|frame| frame["error"].is_object()), "{:#?}", answer.frames);
    // What was read is the answer.
    let unknown = json!({ "id": "x", "model": "m", "choices": [{ "index": 0, "text": "Hello" }] });
    let read = chat(&[unknown, chunk(json!({ "content": "Hi" }), Value::Null), end("stop")]);
    assert_eq!((content(&read), finish(&read)), ("Hi".to_owned(), "stop".to_owned()));
}

/// The finish is read, and what could be the content is not.
#[test]
fn c21_an_answer_that_is_read_only_as_far_as_its_finish_is_an_error() {
    let whole = response(json!({ "role": "assistant", "contents": "Hello" }), "stop");
    let streamed = [chunk(json!({ "role": "assistant", "words": ["Hello"] }), Value::Null), end("stop")];
    for (raws, member) in [(&[whole][..], "choices[].message.contents"), (&streamed[..], "choices[].delta.words")] {
        let answer = chat(raws);
        assert_eq!(answer.status, 502, "{:#}", answer.body);
        let message = answer.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("no content but `{member}`")), "{message}");
        assert!(answer.frames.last().is_none_or(|frame| frame["error"].is_object()), "{:#?}", answer.frames);
    }
    // An empty answer of which everything is read is one.
    let empty = chat(&[response(json!({ "role": "assistant", "content": "" }), "stop")]);
    assert_eq!((empty.status, finish(&empty)), (200, "stop".to_owned()));
}

#[test]
fn c21_an_answer_tool_without_arguments_is_an_error() {
    let aliases = ToolAliases { custom: Vec::new(), answer: Some("answer".into()) };
    let mut turn = Turn::new(Policies::default(), Ids::Counting(0), "m", 1, 0).tool_aliases(aliases);
    turn.advance(tool_delta(Some("answer"), ""), &mut |_, _| {});
    let finish = Event::Finish { choice: Some(0), reason: Some(Finish::ToolCalls), other: None };
    turn.advance(finish, &mut |_, _| {});
    let fault = turn.state().error.as_ref().expect("a fault");
    assert_eq!(fault.message, "the backend's answer is empty");
}

/// The forced call of the answer tool would keep the model from calling the client's tools, so the two never meet.
#[test]
fn c21_a_client_tool_is_never_taken_for_the_answer_tool() {
    let backend = MockBackend::start(|_| MockResponse::json(200, "{}"));
    let gateway = serve().args(["--backend", &format!("anthropic-messages={}", backend.url())]).start();
    let tool = json!({ "type": "function", "function": { "name": "answer", "parameters": {} } });
    let format = json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": { "type": "object" } } });
    let messages = json!([{ "role": "user", "content": "Hi" }]);
    let request = json!({ "model": "m", "messages": messages, "tools": [tool], "response_format": format });
    let reply = gateway.client().fetch(Request::post(request.to_string()).at("/v1/chat/completions"));
    assert_eq!((reply.status(), &reply.json()["error"]["param"]), (400, &json!("response_format")));
    assert!(backend.requests().is_empty());
}

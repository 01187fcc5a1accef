//! Every client with every backend: streamed and JSON responses have the same content.

use super::{chat_backend, openai};
use crate::support::backend_events::{
    call, chat_stream, chat_usage, chunk, completed, completion, created, data, events, item_done, message, reasoning,
    response, text_delta,
};
use crate::support::sse::names;
use crate::support::{MockResponse, Reply, Request, SseMessage, TestGateway, assert_contains, dialect_request};
use serde_json::{Value, json};

const ARGUMENTS: &str = r#"{"at":"sky"}"#;

/// The content of a response, independent of dialect and form.
#[derive(Debug, Default, PartialEq)]
struct Summary {
    text: String,
    calls: Vec<(String, String, String)>,
    finish: String,
    tokens: u64,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn of_chat_body(body: &Value) -> Summary {
    let choice = &body["choices"][0];
    let calls = choice["message"]["tool_calls"].as_array().cloned().unwrap_or_default();
    let call = |c: &Value| (text(&c["id"]), text(&c["function"]["name"]), text(&c["function"]["arguments"]));
    Summary {
        text: text(&choice["message"]["content"]),
        calls: calls.iter().map(call).collect(),
        finish: text(&choice["finish_reason"]),
        tokens: body["usage"]["total_tokens"].as_u64().unwrap(),
    }
}

fn of_chat_stream(messages: &[SseMessage]) -> Summary {
    let (done, chunks) = messages.split_last().unwrap();
    assert_eq!(done.text(), "[DONE]");
    let mut summary = Summary::default();
    for chunk in chunks.iter().map(SseMessage::json) {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        if let Some(tokens) = chunk["usage"]["total_tokens"].as_u64() {
            assert_eq!(chunk["choices"], json!([]));
            summary.tokens = tokens;
            continue;
        }
        let choice = &chunk["choices"][0];
        summary.text += &text(&choice["delta"]["content"]);
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            if let Some(id) = call["id"].as_str() {
                assert_eq!(call["index"], summary.calls.len());
                summary.calls.push((id.to_owned(), text(&call["function"]["name"]), String::new()));
            }
            summary.calls[call["index"].as_u64().unwrap() as usize].2 += &text(&call["function"]["arguments"]);
        }
        summary.finish += &text(&choice["finish_reason"]);
    }
    summary
}

fn of_response(body: &Value) -> Summary {
    let mut summary = Summary { finish: text(&body["status"]), ..Summary::default() };
    for item in body["output"].as_array().unwrap() {
        match item["type"].as_str().unwrap() {
            "message" => summary.text += &text(&item["content"][0]["text"]),
            "function_call" => {
                summary.calls.push((text(&item["call_id"]), text(&item["name"]), text(&item["arguments"])));
            }
            other => assert_eq!(other, "reasoning"),
        }
    }
    summary.tokens = body["usage"]["total_tokens"].as_u64().unwrap();
    summary
}

/// The content of the deltas. Asserts that the final envelope has the same content.
fn of_response_stream(messages: &[SseMessage]) -> Summary {
    let names = names(messages);
    assert_eq!(names[..2], ["response.created", "response.in_progress"]);
    assert_eq!(names[names.len() - 2..], ["response.completed", "[DONE]"]);
    let last = messages[messages.len() - 2].json();
    let mut summary = Summary { finish: text(&last["response"]["status"]), ..Summary::default() };
    for event in messages[..messages.len() - 1].iter().map(SseMessage::json) {
        match event["type"].as_str().unwrap() {
            "response.output_text.delta" => summary.text += &text(&event["delta"]),
            "response.output_item.added" if event["item"]["type"] == "function_call" => {
                summary.calls.push((text(&event["item"]["call_id"]), text(&event["item"]["name"]), String::new()));
            }
            "response.function_call_arguments.delta" => summary.calls.last_mut().unwrap().2 += &text(&event["delta"]),
            _ => {}
        }
    }
    summary.tokens = last["response"]["usage"]["total_tokens"].as_u64().unwrap();
    assert_eq!(summary, of_response(&last["response"]));
    summary
}

/// Fetches in both dialects, as JSON and as a stream.
fn fetch_all(gateway: &TestGateway, model: &str, answer: MockResponse) -> [Summary; 4] {
    gateway.set_response(model, answer);
    let fetch = |request: Request| -> Reply {
        let reply = gateway.server.fetch(request);
        assert_eq!(reply.status(), 200, "{}", reply.text());
        reply
    };
    let options = json!({ "model": model, "stream": true, "stream_options": { "include_usage": true }, "messages": [{ "role": "user", "content": "Hello." }] });
    [
        of_chat_body(&fetch(dialect_request("chat", model, None)).json()),
        of_chat_stream(&fetch(Request::post(options.to_string())).sse_messages()),
        of_response(&fetch(dialect_request("responses", model, None)).json()),
        of_response_stream(&fetch(dialect_request("responses", model, true)).sse_messages()),
    ]
}

fn expected_summaries(text: &str, calls: &[(&str, &str, &str)], tokens: u64) -> [Summary; 4] {
    let calls: Vec<_> = calls.iter().map(|(a, b, c)| ((*a).into(), (*b).into(), (*c).into())).collect();
    let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
    [finish, finish, "completed", "completed"].map(|finish: &str| Summary {
        text: text.into(),
        calls: calls.clone(),
        finish: finish.into(),
        tokens,
    })
}

#[test]
fn text_is_the_same_for_every_client_of_every_backend() {
    let stream = events(&[created(), text_delta("Good "), text_delta("day."), completed()]);
    let whole = response(&json!([message("msg_up", "Good day.")])).to_string();
    let chat = completion(&json!({ "role": "assistant", "content": "Good day." }), "stop").to_string();
    let expected = expected_summaries("Good day.", &[], 15);
    assert_eq!(fetch_all(openai(), "b-text-sse", MockResponse::sse_raw(&stream).split(7)), expected);
    assert_eq!(fetch_all(openai(), "b-text-json", MockResponse::json(200, &whole)), expected);
    assert_eq!(
        fetch_all(chat_backend(), "b-text-sse", MockResponse::sse_raw(chat_stream(&["Good ", "day."])).split(7)),
        expected
    );
    assert_eq!(fetch_all(chat_backend(), "b-text-json", MockResponse::json(200, &chat).split(7)), expected);
}

#[test]
fn tool_calls_are_the_same_for_every_client_of_every_backend() {
    let items =
        [message("msg_up", "Wait."), call("fc_1", "call_1", "look", ARGUMENTS), call("fc_2", "call_2", "nap", "{}")];
    let done: Vec<Value> = items.iter().enumerate().map(|(index, item)| item_done(index, item)).collect();
    let stream = events(&[created()]) + &events(&done) + &events(&[completed()]);
    let whole = response(&json!(items)).to_string();
    let expected = expected_summaries("Wait.", &[("call_1", "look", ARGUMENTS), ("call_2", "nap", "{}")], 15);
    assert_eq!(fetch_all(openai(), "b-calls-sse", MockResponse::sse_raw(&stream)), expected);
    assert_eq!(fetch_all(openai(), "b-calls-json", MockResponse::json(200, &whole)), expected);

    let function = |id: &str, name: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
    let message = json!({ "role": "assistant", "content": "Wait.", "tool_calls": [function("call_1", "look", ARGUMENTS), function("call_2", "nap", "{}")] });
    let chat = completion(&message, "tool_calls").to_string();
    assert_eq!(fetch_all(chat_backend(), "b-calls-json", MockResponse::json(200, &chat)), expected);

    let delta_event = |delta: Value| data(&chunk(&delta, &Value::Null));
    let opening = |index: usize, id: &str, name: &str| json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": "" } }] });
    let arguments =
        |index: usize, text: &str| json!({ "tool_calls": [{ "index": index, "function": { "arguments": text } }] });
    let mut end = chunk(&json!({}), &json!("tool_calls"));
    end["usage"] = chat_usage();
    let stream = [
        delta_event(json!({ "role": "assistant", "content": "Wait." })),
        delta_event(opening(0, "call_1", "look")),
        delta_event(arguments(0, "{\"at\":")),
        delta_event(arguments(0, "\"sky\"}")),
        delta_event(opening(1, "call_2", "nap")),
        delta_event(arguments(1, "{}")),
        data(&end),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    assert_eq!(fetch_all(chat_backend(), "b-calls-sse", MockResponse::sse_raw(&stream).split(5)), expected);
}

#[test]
fn a_chat_client_gets_one_complete_body_from_a_responses_stream() {
    let stream = events(&[
        created(),
        item_done(0, &reasoning("rs_up", "Weighing it.")),
        item_done(1, &message("msg_up", "Yes.")),
        completed(),
    ]);
    let reply =
        openai().fetch("b-chat-body", MockResponse::sse_raw(stream), dialect_request("chat", "b-chat-body", false));
    let message = json!({ "role": "assistant", "content": "Yes.", "refusal": null });
    let usage = json!({ "prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15, "prompt_tokens_details": { "cached_tokens": 2 }, "completion_tokens_details": { "reasoning_tokens": 0 } });
    let expected = json!({
        "id": "ID",
        "object": "chat.completion",
        "created": 0,
        "model": "up-model",
        "system_fingerprint": null,
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": "stop" }],
        "usage": usage,
    });
    assert_eq!(crate::support::normalize(reply.json()), expected);
}

#[test]
fn a_completions_client_is_converted_both_ways() {
    let stream = events(&[created(), text_delta("Good "), text_delta("day."), completed()]);
    let whole = response(&json!([message("msg_up", "Good day.")])).to_string();
    let reply = openai().fetch(
        "b-legacy-sse",
        MockResponse::sse_raw(stream),
        dialect_request("completions", "b-legacy-sse", None),
    );
    assert_contains(
        &json!({ "object": "text_completion", "choices": [{ "text": "Good day.", "index": 0, "finish_reason": "stop" }] }),
        &reply.json(),
    );
    let reply = openai().fetch(
        "b-legacy-json",
        MockResponse::json(200, &whole),
        dialect_request("completions", "b-legacy-json", true),
    );
    let messages = reply.sse_messages();
    assert_eq!(names(&messages), ["chunk", "chunk", "[DONE]"]);
    assert_eq!(messages[0].json()["choices"][0]["text"], "Good day.");
    assert_eq!(messages[1].json()["choices"][0]["finish_reason"], "stop");
}

#[test]
fn an_error_event_in_a_200_stream_is_an_error() {
    let inside = "event: error\ndata: {\"type\":\"error\",\"code\":\"overloaded\",\"message\":\"not now\"}\n\n";
    for dialect in ["chat", "responses", "completions"] {
        for stream in [false, true] {
            let model = format!("b-error-{dialect}-{stream}");
            let reply = openai().fetch(&model, MockResponse::sse_raw(inside), dialect_request(dialect, &model, stream));
            assert_eq!(reply.status(), 502, "{model}");
            assert_contains(&json!({ "error": { "message": "not now", "code": "overloaded" } }), &reply.json());
        }
    }
    let inside = "data: {\"error\":{\"message\":\"not now\",\"code\":\"overloaded\"}}\n\n";
    for stream in [false, true] {
        let model = format!("b-error-{stream}");
        let reply =
            chat_backend().fetch(&model, MockResponse::sse_raw(inside), dialect_request("chat", &model, stream));
        assert_eq!(reply.status(), 502, "{model}");
        assert_contains(&json!({ "error": { "message": "not now", "code": "overloaded" } }), &reply.json());
    }
}

//! Every client before every backend: what was asked for decides, and both ways of asking are told the same.

use super::support::backend_events::{
    call, chat_stream, chat_usage, chunk, completed, completion, created, data, events, item_done, message, reasoning,
    response, text_delta,
};
use super::support::sse::names;
use super::support::{Answer, Behind, Reply, Request, Told, asking, holds};
use super::{chat_backend, openai};
use serde_json::{Value, json};

const ARGUMENTS: &str = r#"{"at":"sky"}"#;

/// What a client makes of an answer, in whatever way it came.
#[derive(Debug, Default, PartialEq)]
struct Sum {
    text: String,
    calls: Vec<(String, String, String)>,
    finish: String,
    tokens: u64,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn of_chat_body(body: &Value) -> Sum {
    let choice = &body["choices"][0];
    let calls = choice["message"]["tool_calls"].as_array().cloned().unwrap_or_default();
    let call = |c: &Value| (text(&c["id"]), text(&c["function"]["name"]), text(&c["function"]["arguments"]));
    Sum {
        text: text(&choice["message"]["content"]),
        calls: calls.iter().map(call).collect(),
        finish: text(&choice["finish_reason"]),
        tokens: body["usage"]["total_tokens"].as_u64().unwrap(),
    }
}

fn of_chat_stream(told: &[Told]) -> Sum {
    let (done, chunks) = told.split_last().unwrap();
    assert_eq!(done.text(), "[DONE]");
    let mut sum = Sum::default();
    for chunk in chunks.iter().map(Told::json) {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        if let Some(tokens) = chunk["usage"]["total_tokens"].as_u64() {
            assert_eq!(chunk["choices"], json!([]));
            sum.tokens = tokens;
            continue;
        }
        let choice = &chunk["choices"][0];
        sum.text += &text(&choice["delta"]["content"]);
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            if let Some(id) = call["id"].as_str() {
                assert_eq!(call["index"], sum.calls.len());
                sum.calls.push((id.to_owned(), text(&call["function"]["name"]), String::new()));
            }
            sum.calls[call["index"].as_u64().unwrap() as usize].2 += &text(&call["function"]["arguments"]);
        }
        sum.finish += &text(&choice["finish_reason"]);
    }
    sum
}

fn of_response(body: &Value) -> Sum {
    let mut sum = Sum { finish: text(&body["status"]), ..Sum::default() };
    for item in body["output"].as_array().unwrap() {
        match item["type"].as_str().unwrap() {
            "message" => sum.text += &text(&item["content"][0]["text"]),
            "function_call" => {
                sum.calls.push((text(&item["call_id"]), text(&item["name"]), text(&item["arguments"])));
            }
            other => assert_eq!(other, "reasoning"),
        }
    }
    sum.tokens = body["usage"]["total_tokens"].as_u64().unwrap();
    sum
}

/// What the deltas say; the last envelope must say the same.
fn of_response_stream(told: &[Told]) -> Sum {
    let names = names(told);
    assert_eq!(names[..2], ["response.created", "response.in_progress"]);
    assert_eq!(names[names.len() - 2..], ["response.completed", "[DONE]"]);
    let last = told[told.len() - 2].json();
    let mut sum = Sum { finish: text(&last["response"]["status"]), ..Sum::default() };
    for event in told[..told.len() - 1].iter().map(Told::json) {
        match event["type"].as_str().unwrap() {
            "response.output_text.delta" => sum.text += &text(&event["delta"]),
            "response.output_item.added" if event["item"]["type"] == "function_call" => {
                sum.calls.push((text(&event["item"]["call_id"]), text(&event["item"]["name"]), String::new()));
            }
            "response.function_call_arguments.delta" => sum.calls.last_mut().unwrap().2 += &text(&event["delta"]),
            _ => {}
        }
    }
    sum.tokens = last["response"]["usage"]["total_tokens"].as_u64().unwrap();
    assert_eq!(sum, of_response(&last["response"]));
    sum
}

/// Asks in both dialects, for JSON and for a stream.
fn all_four(behind: &Behind, model: &str, answer: Answer) -> [Sum; 4] {
    behind.plays(model, answer);
    let ask = |request: Request| -> Reply {
        let reply = behind.server.ask(request);
        assert_eq!(reply.status(), 200, "{}", reply.text());
        reply
    };
    let options = json!({ "model": model, "stream": true, "stream_options": { "include_usage": true }, "messages": [{ "role": "user", "content": "Speak." }] });
    [
        of_chat_body(&ask(asking("chat", model, None)).json()),
        of_chat_stream(&ask(Request::post(options.to_string())).told()),
        of_response(&ask(asking("responses", model, None)).json()),
        of_response_stream(&ask(asking("responses", model, true)).told()),
    ]
}

fn sums(text: &str, calls: &[(&str, &str, &str)], tokens: u64) -> [Sum; 4] {
    let calls: Vec<_> = calls.iter().map(|(a, b, c)| ((*a).into(), (*b).into(), (*c).into())).collect();
    let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
    [finish, finish, "completed", "completed"].map(|finish: &str| Sum {
        text: text.into(),
        calls: calls.clone(),
        finish: finish.into(),
        tokens,
    })
}

#[test]
fn ac_003_b097_text_is_the_same_for_every_client_of_every_backend() {
    let stream = events(&[created(), text_delta("Good "), text_delta("day."), completed()]);
    let whole = response(&json!([message("msg_up", "Good day.")])).to_string();
    let chat = completion(&json!({ "role": "assistant", "content": "Good day." }), "stop").to_string();
    let expected = sums("Good day.", &[], 15);
    assert_eq!(all_four(openai(), "b-text-sse", Answer::sse_raw(&stream).split(7)), expected);
    assert_eq!(all_four(openai(), "b-text-json", Answer::json(200, &whole)), expected);
    assert_eq!(
        all_four(chat_backend(), "b-text-sse", Answer::sse_raw(chat_stream(&["Good ", "day."])).split(7)),
        expected
    );
    assert_eq!(all_four(chat_backend(), "b-text-json", Answer::json(200, &chat).split(7)), expected);
}

#[test]
fn ac_003_b097_calls_are_the_same_for_every_client_of_every_backend() {
    let items =
        [message("msg_up", "Wait."), call("fc_1", "call_1", "look", ARGUMENTS), call("fc_2", "call_2", "nap", "{}")];
    let done: Vec<Value> = items.iter().enumerate().map(|(index, item)| item_done(index, item)).collect();
    let stream = events(&[created()]) + &events(&done) + &events(&[completed()]);
    let whole = response(&json!(items)).to_string();
    let expected = sums("Wait.", &[("call_1", "look", ARGUMENTS), ("call_2", "nap", "{}")], 15);
    assert_eq!(all_four(openai(), "b-calls-sse", Answer::sse_raw(&stream)), expected);
    assert_eq!(all_four(openai(), "b-calls-json", Answer::json(200, &whole)), expected);

    let function = |id: &str, name: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
    let said = json!({ "role": "assistant", "content": "Wait.", "tool_calls": [function("call_1", "look", ARGUMENTS), function("call_2", "nap", "{}")] });
    let chat = completion(&said, "tool_calls").to_string();
    assert_eq!(all_four(chat_backend(), "b-calls-json", Answer::json(200, &chat)), expected);

    let piece = |delta: Value| data(&chunk(&delta, &Value::Null));
    let opening = |index: usize, id: &str, name: &str| json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": "" } }] });
    let arguments =
        |index: usize, text: &str| json!({ "tool_calls": [{ "index": index, "function": { "arguments": text } }] });
    let mut end = chunk(&json!({}), &json!("tool_calls"));
    end["usage"] = chat_usage();
    let stream = [
        piece(json!({ "role": "assistant", "content": "Wait." })),
        piece(opening(0, "call_1", "look")),
        piece(arguments(0, "{\"at\":")),
        piece(arguments(0, "\"sky\"}")),
        piece(opening(1, "call_2", "nap")),
        piece(arguments(1, "{}")),
        data(&end),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    assert_eq!(all_four(chat_backend(), "b-calls-sse", Answer::sse_raw(&stream).split(5)), expected);
}

#[test]
fn ac_003_a_chat_client_gets_one_whole_body_from_a_responses_stream() {
    let stream = events(&[
        created(),
        item_done(0, &reasoning("rs_up", "Weighing it.")),
        item_done(1, &message("msg_up", "Yes.")),
        completed(),
    ]);
    let reply = openai().ask("b-chat-body", Answer::sse_raw(stream), asking("chat", "b-chat-body", false));
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
    assert_eq!(super::support::normal(reply.json()), expected);
}

#[test]
fn ac_003_a_completions_client_is_bridged_both_ways() {
    let stream = events(&[created(), text_delta("Good "), text_delta("day."), completed()]);
    let whole = response(&json!([message("msg_up", "Good day.")])).to_string();
    let reply = openai().ask("b-legacy-sse", Answer::sse_raw(stream), asking("completions", "b-legacy-sse", None));
    holds(
        &json!({ "object": "text_completion", "choices": [{ "text": "Good day.", "index": 0, "finish_reason": "stop" }] }),
        &reply.json(),
    );
    let reply = openai().ask("b-legacy-json", Answer::json(200, &whole), asking("completions", "b-legacy-json", true));
    let told = reply.told();
    assert_eq!(names(&told), ["chunk", "chunk", "[DONE]"]);
    assert_eq!(told[0].json()["choices"][0]["text"], "Good day.");
    assert_eq!(told[1].json()["choices"][0]["finish_reason"], "stop");
}

#[test]
fn ac_003_an_error_inside_a_stream_of_200_is_an_error() {
    let inside = "event: error\ndata: {\"type\":\"error\",\"code\":\"overloaded\",\"message\":\"not now\"}\n\n";
    for dialect in ["chat", "responses", "completions"] {
        for stream in [false, true] {
            let model = format!("b-error-{dialect}-{stream}");
            let reply = openai().ask(&model, Answer::sse_raw(inside), asking(dialect, &model, stream));
            assert_eq!(reply.status(), 502, "{model}");
            holds(&json!({ "error": { "message": "not now", "code": "overloaded" } }), &reply.json());
        }
    }
    let inside = "data: {\"error\":{\"message\":\"not now\",\"code\":\"overloaded\"}}\n\n";
    for stream in [false, true] {
        let model = format!("b-error-{stream}");
        let reply = chat_backend().ask(&model, Answer::sse_raw(inside), asking("chat", &model, stream));
        assert_eq!(reply.status(), 502, "{model}");
        holds(&json!({ "error": { "message": "not now", "code": "overloaded" } }), &reply.json());
    }
}

//! The handler's four unit tests: who asks for what, and what the backend sends.

use super::aggregator::{counted, official, proxied, said, settled};
use super::support::backend_events::{completed, created, events, item_done, message, response, text_delta};
use super::support::sse::names;
use super::support::{Answer, asking, holds};
use super::{codex_proxy, openai};
use serde_json::{Value, json};

fn stream() -> String {
    events(&[
        created(),
        text_delta("Good "),
        text_delta("day."),
        item_done(0, &message("msg_up", "Good day.")),
        completed(),
    ])
}

#[test]
fn ac_003_a_non_streaming_client_gets_json_from_a_stream() {
    let reply = codex_proxy().ask("to-json", Answer::sse_raw(stream()), asking("responses", "to-json", false));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("cache-control"), Some("no-cache"));
    assert_eq!(settled(&reply, "created"), proxied("completed", &json!([said("Good day.")]), &counted()));
}

#[test]
fn ac_003_a_streaming_client_gets_a_stream_from_a_stream() {
    let reply = codex_proxy().ask("to-sse", Answer::sse_raw(stream()), asking("responses", "to-sse", true));
    assert_eq!(reply.header("content-type"), Some("text/event-stream; charset=utf-8"));
    let told = reply.told();
    let expected = [
        "response.created",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.completed",
        "done",
    ];
    assert_eq!(names(&told), expected);
    assert_eq!([&told[1].json()["delta"], &told[2].json()["delta"]], ["Good ", "day."]);
    assert_eq!(told[5].text(), "[DONE]");

    let reply = openai().ask("to-sse", Answer::sse_raw(stream()), asking("responses", "to-sse", true));
    let told = reply.told();
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
        "[DONE]",
    ];
    assert_eq!(names(&told), expected);
    let last = told[9].json();
    holds(
        &json!({ "response": { "status": "completed", "output": [{ "content": [{ "text": "Good day." }] }] } }),
        &last,
    );
}

#[test]
fn ac_003_a_non_streaming_client_gets_json_from_json() {
    let whole = response(&json!([message("msg_up", "Good day.")])).to_string();
    let reply = codex_proxy().ask("json", Answer::json(200, &whole), asking("responses", "json", false));
    assert_eq!(settled(&reply, "created"), proxied("completed", &json!([said("Good day.")]), &counted()));
    let reply = openai().ask("json", Answer::json(200, &whole), asking("responses", "json", false));
    assert_eq!(settled(&reply, "created_at")["output"], json!([official("Good day.", "completed")]));
}

#[test]
fn ac_003_an_omitted_stream_is_false() {
    for behind in [codex_proxy(), openai()] {
        behind.plays("omitted", Answer::sse_raw(stream()));
        let bodies = [None, Some(false)].map(|asked| {
            let reply = behind.server.ask(asking("responses", "omitted", asked));
            assert_eq!((reply.status(), reply.header("content-type")), (200, Some("application/json")));
            reply.json()["output"][0]["content"].clone()
        });
        assert_eq!(bodies[0], bodies[1]);
        assert_eq!(bodies[0][0]["text"], "Good day.");
        // Neither is the backend asked for a stream.
        for seen in behind.seen("omitted") {
            assert!(matches!(seen.get("stream"), None | Some(Value::Bool(false))), "{seen}");
        }
        assert_eq!(behind.seen("omitted").len(), 2);
    }
}

#[test]
fn ac_003_a_stream_of_null_is_false_as_well() {
    openai().plays("null", Answer::sse_raw(stream()));
    let body = json!({ "model": "null", "input": "Speak.", "stream": null }).to_string();
    let asked = super::support::Request::post(body).at("/v1/responses");
    assert_eq!(openai().server.ask(asked).json()["output"][0]["content"][0]["text"], "Good day.");
}

//! Requested form × backend form: JSON or stream.

use super::aggregator::{normalized_body, openai_message, proxied_body, proxied_message, reported_usage};
use super::{codex_proxy, openai};
use crate::support::backend_events::{completed, created, events, item_done, message, response, text_delta};
use crate::support::sse::names;
use crate::support::{MockResponse, assert_contains, dialect_request};
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
fn a_non_streaming_client_gets_json_from_a_stream() {
    let reply =
        codex_proxy().fetch("to-json", MockResponse::sse_raw(stream()), dialect_request("responses", "to-json", false));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("cache-control"), Some("no-cache"));
    assert_eq!(
        normalized_body(&reply, "created"),
        proxied_body("completed", &json!([proxied_message("Good day.")]), &reported_usage())
    );
}

#[test]
fn a_streaming_client_gets_a_stream_from_a_stream() {
    let reply =
        codex_proxy().fetch("to-sse", MockResponse::sse_raw(stream()), dialect_request("responses", "to-sse", true));
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    let messages = reply.sse_messages();
    let expected = [
        "response.created",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.completed",
        "done",
    ];
    assert_eq!(names(&messages), expected);
    assert_eq!([&messages[1].json()["delta"], &messages[2].json()["delta"]], ["Good ", "day."]);
    assert_eq!(messages[5].text(), "[DONE]");

    let reply = openai().fetch("to-sse", MockResponse::sse_raw(stream()), dialect_request("responses", "to-sse", true));
    let messages = reply.sse_messages();
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
    assert_eq!(names(&messages), expected);
    let last = messages[9].json();
    assert_contains(
        &json!({ "response": { "status": "completed", "output": [{ "content": [{ "text": "Good day." }] }] } }),
        &last,
    );
}

#[test]
fn a_non_streaming_client_gets_json_from_json() {
    let whole = response(&json!([message("msg_up", "Good day.")])).to_string();
    let reply =
        codex_proxy().fetch("json", MockResponse::json(200, &whole), dialect_request("responses", "json", false));
    assert_eq!(
        normalized_body(&reply, "created"),
        proxied_body("completed", &json!([proxied_message("Good day.")]), &reported_usage())
    );
    let reply = openai().fetch("json", MockResponse::json(200, &whole), dialect_request("responses", "json", false));
    assert_eq!(normalized_body(&reply, "created_at")["output"], json!([openai_message("Good day.", "completed")]));
}

#[test]
fn an_omitted_stream_is_false() {
    for gateway in [codex_proxy(), openai()] {
        gateway.set_response("omitted", MockResponse::sse_raw(stream()));
        let bodies = [None, Some(false)].map(|stream_flag| {
            let reply = gateway.server.fetch(dialect_request("responses", "omitted", stream_flag));
            assert_eq!((reply.status(), reply.header("content-type")), (200, Some("application/json")));
            reply.json()["output"][0]["content"].clone()
        });
        assert_eq!(bodies[0], bodies[1]);
        assert_eq!(bodies[0][0]["text"], "Good day.");
        // The backend request does not request a stream either.
        for request in gateway.requests_for("omitted") {
            assert!(matches!(request.get("stream"), None | Some(Value::Bool(false))), "{request}");
        }
        assert_eq!(gateway.requests_for("omitted").len(), 2);
    }
}

#[test]
fn a_null_stream_is_false() {
    openai().set_response("null", MockResponse::sse_raw(stream()));
    let body = json!({ "model": "null", "input": "Hello.", "stream": null }).to_string();
    let stream_flag = crate::support::Request::post(body).at("/v1/responses");
    assert_eq!(openai().server.fetch(stream_flag).json()["output"][0]["content"][0]["text"], "Good day.");
}

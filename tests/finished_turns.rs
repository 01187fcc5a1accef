//! An answer whose every choice has said why it ended is whole: what becomes of the line after that costs at most the
//! count of tokens. And who may ask a gateway that asks for no key.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::json;
use std::time::{Duration, Instant};
use support::{Answer, Backend, Request, Server, demo, serve, within};

fn finished() -> Answer {
    let text = json!({ "choices": [{ "index": 0, "delta": { "content": "All of it." } }] }).to_string();
    let last = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }).to_string();
    Answer::sse(&[&text, &last])
}

fn before(answer: Answer) -> (Backend, Server) {
    let backend = Backend::start(move |_| answer.clone());
    let gateway = serve().args(["--backend", &format!("openai-chat={}", backend.url())]).start();
    (backend, gateway)
}

fn is_whole(gateway: &Server) {
    let body =
        |stream: bool| json!({ "model": "m", "stream": stream, "messages": [{ "role": "user", "content": "hi" }] });
    let reply = gateway.ask(Request::post(body(false).to_string()));
    assert_eq!(reply.status(), 200, "{}", reply.text());
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "All of it.");
    let frames = gateway.ask(Request::post(body(true).to_string())).frames();
    assert_eq!(frames.last().unwrap().data, "[DONE]");
    assert!(!frames.iter().any(|f| f.data.contains("\"error\"")));
}

#[test]
fn a_line_that_is_lost_after_the_finish_costs_nothing() {
    let (_backend, gateway) = before(finished().pause(Duration::from_millis(20)).reset());
    is_whole(&gateway);
    let (_backend, gateway) = before(finished().cut());
    is_whole(&gateway);
}

#[test]
fn a_line_that_stays_open_after_the_finish_is_not_waited_for_long() {
    let (_backend, gateway) = before(finished().stall());
    let begun = Instant::now();
    is_whole(&gateway);
    // Five seconds each, for the count that may still come.
    within("two answers whose line stays open", begun.elapsed(), Duration::from_secs(11));
}

#[test]
fn a_page_of_another_host_may_not_use_an_open_gateway() {
    let from = |origin: &str| demo().ask(Request::get("/v1/models").header("origin", origin));
    let foreign = from("https://evil.example");
    assert_eq!((foreign.status(), foreign.json()["error"]["code"].as_str()), (401, Some("invalid_api_key")));
    assert_eq!(from("http://localhost.evil.example").status(), 401);
    assert_eq!(from("null").status(), 401, "a page in a box may be anybody's");
    for own in ["http://localhost:3000", "http://127.0.0.1", "http://[::1]:8080", "app://obsidian.md"] {
        assert_eq!(from(own).status(), 200, "{own}");
    }
}

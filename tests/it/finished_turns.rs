//! A response is complete when every choice has its finish reason: a later connection failure costs at most the usage.
//! Also: which web origins may use a gateway without API keys.

use crate::support::{MockBackend, MockResponse, Request, Server, demo, serve};
use serde_json::json;
use std::thread;
use std::time::Duration;

fn finished() -> MockResponse {
    let text = json!({ "choices": [{ "index": 0, "delta": { "content": "All of it." } }] }).to_string();
    let last = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }).to_string();
    MockResponse::sse(&[&text, &last])
}

fn start_gateway(answer: MockResponse) -> (MockBackend, Server) {
    let backend = MockBackend::start(move |_| answer.clone());
    let gateway = serve().args(["--backend", &format!("openai-chat={}", backend.url())]).start();
    (backend, gateway)
}

fn assert_complete(gateway: &Server) {
    let body =
        |stream: bool| json!({ "model": "m", "stream": stream, "messages": [{ "role": "user", "content": "hi" }] });
    thread::scope(|scope| {
        scope.spawn(|| {
            let reply = gateway.fetch(Request::post(body(false).to_string()));
            assert_eq!(reply.status(), 200, "{}", reply.text());
            assert_eq!(reply.json()["choices"][0]["message"]["content"], "All of it.");
        });
        let frames = gateway.fetch(Request::post(body(true).to_string())).frames();
        assert_eq!(frames.last().unwrap().data, "[DONE]");
        assert!(!frames.iter().any(|f| f.data.contains("\"error\"")));
    });
}

#[test]
fn a_disconnect_after_the_finish_is_no_error() {
    let (_backend, gateway) = start_gateway(finished().pause(Duration::from_millis(20)).reset());
    assert_complete(&gateway);
    let (_backend, gateway) = start_gateway(finished().disconnect());
    assert_complete(&gateway);
}

#[test]
fn an_open_connection_after_the_finish_is_not_waited_for() {
    let (_backend, gateway) = start_gateway(finished().stall());
    // Usage may still arrive for five seconds. Otherwise only the idle timeout of 300 seconds would end the wait.
    assert_complete(&gateway);
}

#[test]
fn a_web_page_of_another_origin_cannot_use_an_unauthenticated_gateway() {
    let from = |origin: &str| demo().fetch(Request::get("/v1/models").header("origin", origin));
    let foreign = from("https://evil.example");
    assert_eq!((foreign.status(), foreign.json()["error"]["code"].as_str()), (401, Some("invalid_api_key")));
    assert_eq!(from("http://localhost.evil.example").status(), 401);
    assert_eq!(from("null").status(), 401, "sandboxed iframes are untrusted");
    for own in ["http://localhost:3000", "http://127.0.0.1", "http://[::1]:8080", "app://obsidian.md"] {
        assert_eq!(from(own).status(), 200, "{own}");
    }
}

//! Clients that send or read too slowly lose their connection, their slot and their backend request.

use super::backpressure::narrow_client;
use super::{GatewayConfig, empty_stream, finished, gateway_config, run_concurrently, word};
use crate::http2_client::{DATA, Http2Client, RST_STREAM};
use crate::support::backend_events::{data, word as chat_word};
use crate::support::{Client, Gate, MockResponse, TestGateway, dialect_request, eventually, ms};
use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};

const WRITE_TIMEOUTS: &str = "reframe_client_timeouts_total{timeout=\"write\"}";
const BODY_TIMEOUTS: &str = "reframe_client_timeouts_total{timeout=\"body\"}";

impl GatewayConfig {
    fn write_timeout(self, time: Duration) -> GatewayConfig {
        self.edit("write: 60s", &format!("write: {}ms", time.as_millis()))
    }
}

/// One slot only: a turn that is not ended blocks the next.
fn gateway(limit: Duration) -> TestGateway {
    let gateway = gateway_config().edit("streams: 2000", "streams: 1").write_timeout(limit);
    let gateway = gateway.start("openai-chat", "openai");
    gateway.set_response("s-endless", empty_stream().endless(data(&chat_word(&"x".repeat(32_000)))));
    gateway.set_response("s-next", finished(empty_stream().event(&word("One"))));
    gateway
}

/// Asserts that the only turn was ended for the only reason that can end it: its stream has no end, and its client stays
/// connected.
fn assert_given_up(gateway: &TestGateway) {
    eventually("the backend request is cancelled", || gateway.backend.disconnects().first().copied());
    eventually("its slot is free", || (gateway.metric("reframe_turns_in_flight") == 0.0).then_some(()));
    assert_eq!(gateway.metric(WRITE_TIMEOUTS), 1.0);
    assert_eq!(gateway.metric("reframe_client_disconnects_total"), 0.0);
    gateway.server.wait_for_log("client stopped reading id=");
    assert_eq!(gateway.server.fetch(dialect_request("chat", "s-next", true)).status(), 200);
}

#[test]
fn a_client_that_stops_reading_loses_its_connection() {
    let limit = ms(500);
    let gateway = gateway(limit);
    let mut stream = narrow_client(&gateway).stream(dialect_request("chat", "s-endless", true));
    let began = Instant::now();
    stream.next_message().unwrap();
    assert_given_up(&gateway);
    assert!(gateway.backend.disconnects()[0].duration_since(began) >= limit);
    gateway.server.wait_for_log("a client stopped reading, its connection was closed");
}

#[test]
fn a_client_that_stops_reading_one_http2_stream_loses_only_that() {
    let gateway = gateway_config().write_timeout(ms(500)).start("openai-chat", "openai");
    gateway.set_response("s-endless", empty_stream().endless(data(&chat_word(&"x".repeat(32_000)))));
    gateway.set_response("s-next", finished(empty_stream().event(&word("One"))));
    let gate = Gate::default();
    gateway.set_response("s-other", finished(empty_stream().event(&word("One")).wait(&gate).event(&word("Two"))));
    let mut client = Http2Client::connect(gateway.server.addr());
    client.open_window(0, 1 << 30);
    let stuck = client.send(&dialect_request("chat", "s-endless", true));
    let other = client.send(&dialect_request("chat", "s-other", true));
    let reset = loop {
        let frame = client.next_frame().unwrap();
        if frame.ends_stream() {
            break frame;
        }
    };
    assert_eq!((reset.kind, reset.stream), (RST_STREAM, stuck));
    gate.open();
    let mut text = Vec::new();
    let last = loop {
        let frame = client.next_frame().unwrap();
        assert_eq!(frame.stream, other);
        if frame.kind == DATA {
            text.extend_from_slice(&frame.payload);
        }
        if frame.ends_stream() {
            break frame;
        }
    };
    assert_eq!(last.kind, DATA);
    assert!(String::from_utf8_lossy(&text).contains("[DONE]"));
    assert_given_up(&gateway);
}

#[test]
fn a_client_that_stops_reading_an_http2_connection_loses_it() {
    let gateway = gateway(ms(500));
    let mut client = Http2Client::connect(gateway.server.addr());
    // Both windows are open, so that only the socket is blocked.
    client.open_window(0, 1 << 30);
    let stream = client.send_headers(&dialect_request("chat", "s-endless", true));
    client.open_window(stream, 1 << 30);
    let body = r#"{"model":"s-endless","messages":[{"role":"user","content":"Hello."}],"stream":true}"#;
    client.send_data(stream, body.as_bytes(), true);
    assert_given_up(&gateway);
}

#[test]
fn a_client_that_does_not_read_a_json_body_loses_its_connection() {
    let gateway = gateway_config().write_timeout(ms(500)).start("openai-chat", "openai");
    let body = serde_json::json!({
        "id": "chatcmpl-up1", "object": "chat.completion", "created": 1_750_000_000, "model": "up-model",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "x".repeat(12 << 20) }, "finish_reason": "stop" }],
    });
    gateway.set_response("s-json", MockResponse::json(200, &body.to_string()));
    let mut client = narrow_client(&gateway);
    client.send(&dialect_request("chat", "s-json", false));
    let mut http2 = Http2Client::connect(gateway.server.addr());
    let stream = http2.send(&dialect_request("chat", "s-json", false));
    eventually("both are given up", || (gateway.metric(WRITE_TIMEOUTS) == 2.0).then_some(()));
    let mut rest = Vec::new();
    let read = client.into_inner().read_to_end(&mut rest);
    assert!(read.is_err() || rest.len() < 12 << 20, "the whole body was received");
    let ended = std::iter::from_fn(|| http2.next_frame().ok()).find(|frame| frame.ends_stream()).unwrap();
    assert_eq!((ended.kind, ended.stream), (RST_STREAM, stream));
}

#[test]
fn a_client_that_reads_slowly_keeps_its_stream() {
    let limit = ms(600);
    let gateway = gateway(limit);
    let mut stream = narrow_client(&gateway).stream(dialect_request("chat", "s-endless", true));
    let began = Instant::now();
    while began.elapsed() < limit * 3 {
        // More than the buffers between the two admit.
        for _ in 0..40 {
            assert_eq!(stream.next_message().unwrap().name(), "chunk");
        }
        std::thread::sleep(limit / 8);
    }
    assert_eq!(gateway.metric(WRITE_TIMEOUTS), 0.0);
}

#[test]
fn a_client_that_sends_its_body_slowly_gets_a_408() {
    let gateway = gateway_config().edit("body: 30s", "body: 300ms").start("openai-chat", "openai");
    // Concurrently: the end of the connection takes some seconds.
    run_concurrently([("/v1/chat/completions", "chat"), ("/v1/responses", "responses")], |(path, kind)| {
        let mut client = gateway.server.client();
        let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{{");
        client.send_bytes(head.as_bytes());
        let reply = client.reply();
        assert_eq!((reply.status(), reply.header("connection")), (408, Some("close")), "{kind}");
        let error = reply.json()["error"].clone();
        assert_eq!(error["type"], "invalid_request_error");
        assert!(
            error["message"].as_str().unwrap().starts_with("the body was sent too slowly: bytes received in "),
            "{error}"
        );
        assert_closed(client);
    });
    assert_eq!(gateway.metric(BODY_TIMEOUTS), 2.0);
}

/// Asserts that the server closes the connection: cleanly, or with a reset.
fn assert_closed(client: Client) {
    match client.into_inner().read(&mut [0; 1]) {
        Ok(0) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        other => panic!("still open: {other:?}"),
    }
}

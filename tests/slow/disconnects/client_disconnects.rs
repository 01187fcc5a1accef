//! A client disconnect cancels the backend request, in every state of the turn.

use super::{empty_stream, gateway_config, is_comment, rest, stream, word};
use crate::support::backend_events::{created, event, text_delta};
use crate::support::{MockResponse, Request, TestGateway, dialect_request, eventually, ms};
use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Asserts that the backend's `n`th connection ended soon after `closed`. Nothing else would end it so early: the first
/// keepalive comment comes after 15 seconds, and a timeout after 300.
fn assert_backend_disconnected(gateway: &TestGateway, n: usize, closed: Instant, what: &str) {
    let disconnected_at =
        eventually("the backend request is cancelled", || gateway.backend.disconnects().get(n).copied());
    let elapsed = disconnected_at.saturating_duration_since(closed);
    println!("{what}: {elapsed:.1?}");
    assert!(elapsed < Duration::from_secs(15), "{what}: {elapsed:?}");
    eventually("its slot is free", || (gateway.metric("reframe_turns_in_flight") == 0.0).then_some(()));
}

fn wait_for_request(gateway: &TestGateway, n: usize) {
    eventually("the backend receives the request", || (gateway.backend.request_count() == n + 1).then_some(()));
}

#[test]
fn a_client_disconnect_is_noticed_behind_bytes_that_follow_the_request() {
    let gateway = gateway_config().edit("streams: 2000", "streams: 1").start("openai-responses", "openai");
    gateway.set_response("g-hang", MockResponse::hang());
    let mut n = 0;
    for stream in [true, false] {
        // More than the buffers of the connection: the end of the connection does not arrive before they are read.
        let many = b"\r\n".repeat(300_000);
        for behind in [&b"\r\n"[..], b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n", &many] {
            let mut client = gateway.server.client();
            client.send(&dialect_request("chat", "g-hang", stream));
            wait_for_request(&gateway, n);
            // Not all of them are accepted: nobody reads them.
            send_without_waiting(client.socket.get_mut(), behind);
            let closed = Instant::now();
            drop(client);
            assert_backend_disconnected(
                &gateway,
                n,
                closed,
                &format!("stream {stream}, {} bytes behind", behind.len()),
            );
            n += 1;
        }
    }
}

#[test]
fn a_client_disconnect_cancels_the_backend_request() {
    // One slot only: a turn that is not cancelled blocks the next.
    let gateway = gateway_config().edit("streams: 2000", "streams: 1").start("openai-responses", "openai");
    gateway.set_response("g-hang", MockResponse::hang());
    gateway.set_response("g-head", empty_stream().stall());
    gateway.set_response("g-mid", MockResponse::sse_raw(event(&created()) + &event(&text_delta("One"))).stall());
    let mut n = 0;
    for dialect in ["chat", "responses", "completions"] {
        for (model, window) in [("g-hang", "before the backend's headers"), ("g-head", "before the first byte")] {
            for stream in [true, false] {
                let mut client = gateway.server.client();
                client.send(&dialect_request(dialect, model, stream));
                wait_for_request(&gateway, n);
                // Lets the backend's headers arrive, if it sends any. If they are late, it is the other window again.
                std::thread::sleep(ms(30));
                let closed = Instant::now();
                drop(client);
                assert_backend_disconnected(&gateway, n, closed, &format!("{dialect}, stream {stream}, {window}"));
                n += 1;
            }
        }
        let mut stream = stream(&gateway, dialect, "g-mid");
        while !stream.next_message().unwrap().text().contains("One") {}
        let closed = Instant::now();
        drop(stream);
        assert_backend_disconnected(&gateway, n, closed, &format!("{dialect}, mid-stream"));
        n += 1;
        let mut client = gateway.server.client();
        client.send(&dialect_request(dialect, "g-mid", false));
        wait_for_request(&gateway, n);
        std::thread::sleep(ms(30));
        let closed = Instant::now();
        drop(client);
        assert_backend_disconnected(&gateway, n, closed, &format!("{dialect}, in the middle of a body"));
        n += 1;
    }
    assert_eq!(gateway.backend.disconnects().len(), n);
}

#[test]
fn a_client_disconnect_between_keepalive_comments_cancels_the_backend_request() {
    // Long, so that the disconnect is noticed before the next comment would fail to be sent.
    let interval = ms(1500);
    let gateway = gateway_config().keepalive(interval).start("openai-chat", "openai");
    gateway.set_response("g-comments", empty_stream().stall());
    let mut stream = stream(&gateway, "chat", "g-comments");
    assert!(is_comment(&stream.next_message().unwrap()));
    let closed = Instant::now();
    drop(stream);
    assert_backend_disconnected(&gateway, 0, closed, "between two comments");
    let elapsed = gateway.backend.disconnects()[0].saturating_duration_since(closed);
    assert!(elapsed < interval, "only the next comment noticed it: {elapsed:?}");
}

#[test]
fn every_finished_turn_frees_its_slot() {
    let gateway = gateway_config().idle(ms(1000)).edit("streams: 2000", "streams: 1").start("openai-chat", "openai");
    gateway.set_response("g-busy", empty_stream().event(&word("One")).event(&word("Two")).stall());
    gateway.set_response("g-fault", MockResponse::json(500, "{}"));
    let mut stream = stream(&gateway, "chat", "g-busy");
    stream.next_message().unwrap();
    let rejected = gateway.server.fetch(dialect_request("chat", "g-busy", false));
    assert_eq!((rejected.status(), rejected.header("retry-after")), (429, Some("1")));
    assert_eq!(gateway.metric("reframe_turns_in_flight"), 1.0);
    assert_eq!(rest(stream).last().unwrap().name(), "error");
    for _ in 0..3 {
        eventually("a slot is free", || {
            (gateway.server.fetch(dialect_request("chat", "g-fault", true)).status() == 500).then_some(())
        });
        assert_eq!(gateway.server.fetch(Request::post("{")).status(), 400);
    }
    eventually("no slot is taken", || (gateway.metric("reframe_turns_in_flight") == 0.0).then_some(()));
}

#[test]
fn a_failed_turn_disconnects_a_backend_that_keeps_sending() {
    // After an order violation or a fault in the stream nothing more is needed from the backend.
    let gateway = gateway_config().start("openai-chat", "openai");
    let fault = serde_json::json!({ "error": { "message": "broken" } }).to_string();
    gateway.set_response("g-over", empty_stream().event(&word("One")).event(&fault).endless("data: {}\n\n"));
    let messages = gateway.server.fetch(dialect_request("chat", "g-over", true)).sse_messages();
    assert_eq!(messages.last().unwrap().name(), "error");
    let answered = Instant::now();
    assert_backend_disconnected(&gateway, 0, answered, "after a fault inside the stream");
}

#[test]
fn a_finished_response_returns_its_connection_to_the_pool() {
    let gateway = gateway_config().start("openai-chat", "openai");
    gateway.set_response("g-good", super::finished(empty_stream().event(&word("One"))));
    for _ in 0..5 {
        for (dialect, stream) in [("chat", true), ("responses", false)] {
            assert_eq!(gateway.server.fetch(dialect_request(dialect, "g-good", stream)).status(), 200);
            // As with real clients, some time passes before the next turn.
            std::thread::sleep(ms(20));
        }
    }
    // On a busy machine a connection may not be back in the pool when the next turn starts.
    let connections = gateway.backend.connections();
    assert!(connections <= 3, "{connections} connections for ten turns");
    assert_eq!(gateway.backend.disconnects().len(), 0);
}

/// Sends as many of the bytes as the buffers of the connection accept.
fn send_without_waiting(socket: &mut TcpStream, bytes: &[u8]) {
    socket.set_nonblocking(true).unwrap();
    let mut rest = bytes;
    while !rest.is_empty() {
        match socket.write(rest) {
            Ok(sent) => rest = &rest[sent..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    socket.set_nonblocking(false).unwrap();
}

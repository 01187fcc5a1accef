//! The life of a server and of its turns: readiness, stop signals, draining, and clients that disconnect.

use crate::support::{
    Gate, MockBackend, MockResponse, Request, Server, TestDir, backend_events, dialect_request, eventually, ms, serve,
};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;

fn word(text: &str) -> String {
    backend_events::word(text).to_string()
}

/// A gateway with these keys in gateway.yaml. Its backend sends a word, and waits for the gate before it ends.
fn gateway(keys: &str) -> (Server, MockBackend, Gate) {
    gateway_with(keys, TestDir::empty())
}

fn gateway_with(keys: &str, dir: TestDir) -> (Server, MockBackend, Gate) {
    let gate = Gate::default();
    let held = gate.clone();
    let backend = MockBackend::start(move |_| {
        let last = backend_events::chunk(&json!({}), &json!("stop")).to_string();
        MockResponse::sse(&[&word("One")]).wait(&held).event(&word("Two")).event(&last).event("[DONE]")
    });
    dir.write("layer/gateway.yaml", keys);
    let server = serve().args(["--backend", &format!("openai-chat={}", backend.url())]).add(dir).start();
    (server, backend, gate)
}

fn stream_request() -> Request {
    dialect_request("chat", "m", true)
}

#[test]
fn a_stopping_server_is_not_ready_and_serves_until_the_delay_is_over() {
    let (mut server, _backend, gate) = gateway(&format!("drain: {{ delay: {}ms }}\n", ms(1500).as_millis()));
    gate.open();
    assert_eq!(server.fetch(Request::get("/readyz")).status(), 200);
    server.terminate();
    server.wait_for_log("not ready, and still serving");
    assert_eq!(server.fetch(Request::get("/readyz")).status(), 503);
    assert_eq!(server.fetch(Request::get("/livez")).status(), 200);
    assert_eq!(server.fetch(dialect_request("chat", "m", false)).status(), 200);
    assert_eq!(server.wait().code(), Some(0));
}

/// A client that has a connection without a request gets no turn: its connection is closed, or its request is a 503.
#[test]
fn a_draining_server_starts_no_turns() {
    let (mut server, backend, gate) = gateway("drain: { limit: 60s }\n");
    let mut idle = server.client();
    assert_eq!(idle.fetch(Request::get("/livez")).status(), 200);
    let mut held = server.client().stream(stream_request());
    assert!(held.next().is_some());
    server.terminate();
    server.wait_for_log("shutting down: draining 1 request");
    let socket = idle.socket.get_mut();
    // Both fail if the connection is closed already.
    let _ = socket.write_all(&stream_request().to_bytes());
    let mut reply = Vec::new();
    let _ = socket.read_to_end(&mut reply);
    let reply = String::from_utf8_lossy(&reply).to_ascii_lowercase();
    assert!(reply.is_empty() || (reply.starts_with("http/1.1 503") && reply.contains("retry-after: 1")), "{reply}");
    assert!(TcpStream::connect(server.addr()).is_err(), "new clients are refused");
    assert_eq!(backend.request_count(), 1);
    gate.open();
    assert_eq!(held.rest().last().unwrap().data, "[DONE]");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn streams_that_finish_in_time_are_complete() {
    let (mut server, _backend, gate) = gateway("drain: { limit: 60s }\n");
    let mut stream = server.client().stream(stream_request());
    assert!(stream.next().is_some());
    server.terminate();
    server.wait_for_log("shutting down: draining 1 request");
    gate.open();
    assert_eq!(stream.rest().last().unwrap().data, "[DONE]");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn streams_that_do_not_finish_in_time_get_their_failure() {
    for (dialect, failure) in [("chat", "\"error\""), ("responses", "response.failed")] {
        let (mut server, _backend, _gate) = gateway(&format!("drain: {{ limit: {}ms }}\n", ms(100).as_millis()));
        let mut stream = server.client().stream(dialect_request(dialect, "m", true));
        assert!(stream.next_message().is_some());
        server.terminate();
        let rest: Vec<_> = std::iter::from_fn(|| stream.next_message()).map(|m| format!("{:?}", m.content)).collect();
        assert!(rest.iter().any(|m| m.contains(failure.trim_matches('"'))), "{dialect}: {rest:?}");
        assert!(rest.iter().any(|m| m.contains("stopped before the response was complete")), "{dialect}: {rest:?}");
        assert_eq!(server.wait().code(), Some(0));
        server.wait_for_log("turn ended");
    }
}

#[test]
fn a_second_signal_ends_the_server_now() {
    let (mut server, _backend, _gate) = gateway("drain: { limit: none }\n");
    let mut stream = server.client().stream(stream_request());
    assert!(stream.next().is_some());
    server.terminate();
    server.wait_for_log("shutting down: draining 1 request");
    server.terminate();
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_server_is_ready_after_a_rejected_reload() {
    let dir = TestDir::empty();
    dir.write("layer/gateway.yaml", "limits: { streams: 100 }\n");
    let path = dir.layer().join("gateway.yaml");
    let server = serve().add(dir).start();
    std::fs::write(path, "limits: { streams: many }\n").unwrap();
    server.wait_for_log("reload rejected");
    assert_eq!(server.fetch(Request::get("/readyz")).status(), 200);
}

/// A profile for clients that leave their turns behind.
fn drain_profile() -> TestDir {
    let dir = TestDir::empty();
    dir.write("layer/profiles/patient.yaml", "profile: patient\npolicies: { disconnect: drain }\n");
    dir
}

fn draining_gateway() -> (Server, MockBackend, Gate) {
    let routes = "routes: { $replace: [ { endpoint: POST /v1/chat/completions, dialect: chat, profile: patient } ] }\n";
    gateway_with(&format!("{routes}limits: {{ streams: 1 }}\n"), drain_profile())
}

#[test]
fn a_drained_turn_is_read_to_its_end_without_its_client_and_without_its_slot() {
    for stream in [true, false] {
        let (server, backend, gate) = draining_gateway();
        let mut client = server.client();
        client.send(&dialect_request("chat", "m", stream));
        eventually("the backend has the request", || (backend.request_count() == 1).then_some(()));
        drop(client);
        server.wait_for_log("reading the response to its end");
        let mut second = server.client();
        second.send(&stream_request());
        eventually("the slot is free at once", || (backend.request_count() == 2).then_some(()));
        assert!(backend.disconnects().is_empty(), "the backend still sends");
        // Both streams.
        gate.open();
        gate.open();
        let log = server.wait_for_log("outcome=\"disconnected\" output_mode=\"openai-json\" finish=\"stop\"");
        assert!(log.contains("status=499"), "{log}");
        assert!(backend.disconnects().is_empty());
    }
}

#[test]
fn a_drained_turn_ends_at_the_idle_limit() {
    let routes = "routes: { $replace: [ { endpoint: POST /v1/chat/completions, dialect: chat, profile: patient } ] }\n";
    let idle = format!("timeouts: {{ idle: {}ms }}\n", ms(200).as_millis());
    let (server, backend, _gate) = gateway_with(&(routes.to_owned() + &idle), drain_profile());
    let mut stream = server.client().stream(stream_request());
    assert!(stream.next().is_some());
    drop(stream);
    server.wait_for_log("reading the response to its end");
    server.wait_for_log("the backend sent no data for");
    eventually("the request to the backend is cancelled", || (!backend.disconnects().is_empty()).then_some(()));
}

#[test]
fn the_profiles_of_the_proxies_drain_unless_the_environment_cancels() {
    for profile in ["codex-proxy", "codex-completions-api"] {
        for (kill, drains) in [("", true), ("false", true), ("true", false)] {
            let gate = Gate::default();
            let held = gate.clone();
            let backend = MockBackend::start(move |_| MockResponse::sse(&[&word("One")]).wait(&held).event("[DONE]"));
            let dir = TestDir::empty();
            let route = format!("{{ endpoint: POST /v1/chat/completions, dialect: chat, profile: {profile} }}");
            dir.write("layer/gateway.yaml", &format!("routes: {{ $replace: [ {route} ] }}\n"));
            let launch = serve().args(["--backend", &format!("openai-chat={}", backend.url())]).add(dir);
            let launch = if kill.is_empty() { launch } else { launch.env("PROXY_KILL_ON_DISCONNECT", kill) };
            let server = launch.start();
            let mut stream = server.client().stream(stream_request());
            assert_eq!(stream.head.header("content-type"), Some("text/event-stream"));
            assert!(stream.next().is_some());
            eventually("the backend has the request", || (backend.request_count() == 1).then_some(()));
            drop(stream);
            if drains {
                server.wait_for_log("reading the response to its end");
                assert!(backend.disconnects().is_empty());
            } else {
                let left = || (!backend.disconnects().is_empty()).then_some(());
                eventually("the request to the backend is cancelled", left);
            }
        }
    }
}

#[test]
fn a_disconnect_cancels_by_default() {
    let (server, backend, _gate) = gateway("{}\n");
    let mut stream = server.client().stream(stream_request());
    assert!(stream.next().is_some());
    drop(stream);
    eventually("the request to the backend is cancelled", || (!backend.disconnects().is_empty()).then_some(()));
    assert!(!server.log().contains("reading the response to its end"));
}

#[test]
fn the_headers_of_a_stream_are_exact_and_a_profile_can_change_them() {
    let dir = TestDir::empty();
    let framing = "framing: { content_type: text/event-stream, headers: { $add: { cache-control: no-store } } }";
    let profile = format!("profile: plain\npatch: {{ chat: {{ stream: {{ {framing} }} }} }}\n");
    dir.write(
        "layer/profiles/plain.yaml",
        &profile
            .replace("content_type: text", "content_type: { $add: text")
            .replace("stream, headers", "stream }, headers"),
    );
    let routes = "routes:\n  - { endpoint: POST /plain, dialect: chat, profile: plain }\n";
    let (server, _backend, gate) = gateway_with(routes, dir);
    // Once per request.
    gate.open();
    gate.open();
    let reply = server.fetch(stream_request());
    for (name, value) in [
        ("content-type", "text/event-stream; charset=utf-8"),
        ("cache-control", "no-cache, no-transform"),
        ("connection", "keep-alive"),
        ("x-accel-buffering", "no"),
    ] {
        assert_eq!(reply.header(name), Some(value));
    }
    assert_eq!(reply.header("content-encoding"), None);
    let plain = server.fetch(stream_request().at("/plain").header("accept-encoding", "gzip, br"));
    assert_eq!(plain.header("content-type"), Some("text/event-stream"));
    assert_eq!((plain.header("cache-control"), plain.header("x-accel-buffering")), (Some("no-store"), None));
    assert_eq!(plain.header("content-encoding"), None, "a stream is not compressed");
}

//! A gateway without file descriptors answers with 503, and recovers.

use crate::support::{
    Client, MockBackend, MockResponse, Reply, Request, Server, backend_events, dialect_request, eventually, serve,
};
use serde_json::json;
use std::net::TcpStream;

/// More than the process itself needs: some are left for clients.
const OPEN_FILES: usize = 64;

fn gateway() -> (Server, MockBackend) {
    let word = backend_events::word("One").to_string();
    let last = backend_events::chunk(&json!({}), &json!("stop")).to_string();
    let backend = MockBackend::start(move |_| MockResponse::sse(&[&word, &last]).event("[DONE]"));
    let at = format!("openai-chat={}", backend.url());
    (serve().args(["--backend", &at]).with_open_files(OPEN_FILES).start(), backend)
}

fn assert_refused(reply: &Reply) {
    assert_eq!((reply.status(), reply.header("retry-after")), (503, Some("1")), "{}", reply.text());
    let error = reply.json()["error"].clone();
    assert_eq!(error["message"], "the gateway has too many open connections");
    assert_eq!((&error["type"], &error["code"]), (&json!("server_error"), &json!("overloaded")));
}

/// Connections that use up all descriptors: the last one was refused.
fn exhaust(server: &Server) -> Vec<TcpStream> {
    let idle: Vec<TcpStream> = (0..OPEN_FILES).map(|_| TcpStream::connect(server.addr()).unwrap()).collect();
    server.wait_for_log("no file descriptors left");
    idle
}

#[test]
fn a_client_that_cannot_be_accepted_gets_a_503_and_does_not_wait() {
    let (server, _backend) = gateway();
    let idle = exhaust(&server);
    assert_refused(&server.fetch(Request::get("/v1/models")));
    let refused = server.fetch(dialect_request("chat", "m", false));
    assert_refused(&refused);
    // Such a client has an id, a line and a count, as any other.
    server.wait_for_log(refused.header("x-request-id").expect("an id"));
    drop(idle);
    eventually("clients are accepted again", || {
        let mut client = Client::connect(server.addr());
        (client.fetch(Request::get("/v1/models")).status() == 200).then_some(())
    });
    let metrics = server.fetch(Request::get("/metrics")).text().to_owned();
    assert!(metrics.contains("reframe_limits_reached_total{limit=\"open_files\"} "), "{metrics}");
}

#[test]
fn a_request_without_a_descriptor_for_the_backend_is_a_503() {
    let (server, backend) = gateway();
    let mut client = server.client();
    assert_eq!(client.fetch(Request::get("/livez")).status(), 200);
    let idle = exhaust(&server);
    for stream in [false, true] {
        assert_refused(&client.fetch(dialect_request("chat", "m", stream)));
    }
    assert_eq!(backend.request_count(), 0);
    drop(idle);
    eventually("backends are reached again", || {
        (client.fetch(dialect_request("chat", "m", false)).status() == 200).then_some(())
    });
}

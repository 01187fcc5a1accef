//! `limits.streams_per_client`: one client, by its key or its address, cannot take every slot.

use crate::support::{
    Client, Gate, MockBackend, MockResponse, Reply, Request, ResponseStream, Server, TestDir, backend_events,
    dialect_request, edited, eventually, repo, serve,
};
use socket2::{Domain, Socket, Type};
use std::net::{IpAddr, SocketAddr};

/// A gateway with these edits of gateway.yaml; its backend holds every stream back until the gate is opened.
fn gateway(edits: &[(&str, &str)]) -> (Server, MockBackend, Gate) {
    let gate = Gate::default();
    let held = gate.clone();
    let word = backend_events::word("One").to_string();
    let backend = MockBackend::start(move |_| MockResponse::sse(&[&word]).wait(&held).event("[DONE]"));
    let text = edits.iter().fold(repo("mappings/gateway.yaml"), |text, (old, new)| edited(&text, old, new));
    let dir = TestDir::empty();
    dir.write("layer/gateway.yaml", &text);
    let at = format!("openai-chat={}", backend.url());
    let keys = [("REFRAME_API_KEY", "first"), ("SECOND_KEY", "second")];
    let launch = serve().args(["--backend", &at]).add(dir);
    let launch = match edits.iter().any(|(_, new)| new.contains("SECOND_KEY")) {
        true => keys.into_iter().fold(launch, |launch, (name, value)| launch.env(name, value)),
        false => launch,
    };
    (launch.start(), backend, gate)
}

const TWO_KEYS: (&str, &str) = ("api_keys:  #", "api_keys:\n  - { name: other, secret: { env: SECOND_KEY } }  #");

fn request(key: &str, stream: bool) -> Request {
    dialect_request("chat", "m", stream).header("authorization", &format!("Bearer {key}"))
}

/// A stream with its first frame.
fn stream(mut client: impl FnMut() -> Client, key: &str) -> ResponseStream {
    let mut stream = client().stream(request(key, true));
    stream.next_message().unwrap();
    stream
}

fn assert_rejected_by_share(reply: &Reply, limit: &str) {
    assert_eq!((reply.status(), reply.header("retry-after")), (429, Some("1")), "{}", reply.text());
    let error = reply.json()["error"].clone();
    assert_eq!(error["type"], "rate_limit_error");
    assert_eq!(error["message"], format!("concurrency limit of this client reached ({limit} in flight)"));
}

#[test]
fn one_key_cannot_take_every_slot() {
    let (server, _backend, gate) = gateway(&[TWO_KEYS, ("streams: 2000", "streams: 4")]);
    // By default each of several keys has half of the slots.
    let held = [stream(|| server.client(), "first"), stream(|| server.client(), "first")];
    assert_rejected_by_share(&server.fetch(request("first", true)), "2 requests");
    let other = [stream(|| server.client(), "second"), stream(|| server.client(), "second")];
    let full = server.fetch(request("second", false));
    assert_eq!(full.status(), 429, "{}", full.text());
    let metrics = server.fetch(Request::get("/metrics").header("authorization", "Bearer first")).text();
    for limit in ["streams", "streams_per_client"] {
        let count = format!("reframe_limits_reached_total{{limit=\"{limit}\"}} 1");
        assert!(metrics.contains(&count), "{metrics}");
    }

    // A share is free again however its turn ends: by its end, by a disconnect, by a fault.
    let [one, two] = held;
    drop(one);
    eventually("the slot of a client that left is free", || {
        let mut next = server.client();
        next.send(&request("first", true));
        let reply = next.head();
        (reply.status == 200).then_some(())
    });
    (0..8).for_each(|_| gate.open());
    drop((two, other));
    for _ in 0..5 {
        eventually("a request without a stream is served", || {
            let reply = server.fetch(Request::post("{").header("authorization", "Bearer first"));
            (reply.status() == 400).then_some(())
        });
    }
}

#[test]
fn a_key_has_its_own_limit_of_turns_in_flight() {
    let limited =
        ("api_keys:  #", "api_keys:\n  - { name: other, secret: { env: SECOND_KEY }, limits: { streams: 1 } }  #");
    let (server, _backend, _gate) = gateway(&[limited]);
    let held = stream(|| server.client(), "second");
    for stream in [true, false] {
        assert_rejected_by_share(&server.fetch(request("second", stream)), "1 request");
    }
    // The limit is that of the key alone.
    let _other = [stream(|| server.client(), "first"), stream(|| server.client(), "first")];
    drop(held);
    eventually("the turn of the key is free again", || {
        let mut next = server.client();
        next.send(&request("second", true));
        (next.head().status == 200).then_some(())
    });
}

#[test]
fn one_address_cannot_take_every_slot() {
    let (server, _backend, _gate) = gateway(&[("streams: 2000", "streams: 4\n  streams_per_client: 1")]);
    let _held = stream(|| client_from([127, 0, 0, 1], &server), "any");
    assert_rejected_by_share(&client_from([127, 0, 0, 1], &server).fetch(request("any", true)), "1 request");
    stream(|| client_from([127, 0, 0, 2], &server), "any");
}

#[test]
fn a_single_key_may_take_every_slot_by_default() {
    let (server, _backend, _gate) = gateway(&[("streams: 2000", "streams: 2")]);
    let _held = [stream(|| server.client(), "any"), stream(|| server.client(), "any")];
    assert_eq!(server.fetch(request("any", true)).status(), 429);
}

fn client_from(address: [u8; 4], server: &Server) -> Client {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(IpAddr::from(address), 0).into()).unwrap();
    socket.connect(&server.addr().into()).unwrap();
    Client::over(socket.into())
}

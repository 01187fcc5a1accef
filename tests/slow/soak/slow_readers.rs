//! Many clients that do not read: each loses its connection, and everybody else gets an answer.

use super::{ProcessStats, SoakLoad};
use crate::disconnects::gateway_config;
use crate::support::backend_events::{chat_stream, data, word};
use crate::support::{Client, MockResponse, dialect_request, eventually, ms};
use socket2::{Domain, Socket, Type};
use std::time::Instant;

#[test]
fn clients_that_do_not_read_do_not_keep_their_slots() {
    let load = SoakLoad::new(10, 100, 10);
    let write_timeout = format!("write: {}ms", ms(500).as_millis());
    let streams = format!("streams: {}", load.count);
    let config = gateway_config().edit("streams: 2000", &streams).edit("write: 60s", &write_timeout);
    let gateway = config.start("openai-chat", "openai");
    gateway.set_response("r-endless", MockResponse::sse(&[]).endless(data(&word(&"x".repeat(32_000)))));
    gateway.set_response("r-good", MockResponse::sse_raw(chat_stream(&["One"])));
    let before = ProcessStats::of(&gateway.server);
    let began = Instant::now();
    let mut rounds = 0;
    let mut during = ProcessStats::of(&gateway.server);
    loop {
        let clients: Vec<Client> = (0..load.count).map(|_| narrow_client(&gateway.server)).collect();
        let clients: Vec<Client> = clients
            .into_iter()
            .map(|mut client| {
                client.send(&dialect_request("chat", "r-endless", true));
                client
            })
            .collect();
        rounds += 1;
        let wanted = (rounds * load.count) as f64;
        eventually("all have lost their connection", || {
            let now = ProcessStats::of(&gateway.server);
            if now.descriptors > during.descriptors {
                during = now;
            }
            (gateway.metric("reframe_client_timeouts_total{timeout=\"write\"}") == wanted).then_some(())
        });
        eventually("another client is served", || {
            (gateway.server.fetch(dialect_request("chat", "r-good", false)).status() == 200).then_some(())
        });
        drop(clients);
        if !load.is_long || load.is_over() {
            break;
        }
    }
    eventually("no slot is taken", || (gateway.metric("reframe_turns_in_flight") == 0.0).then_some(()));
    let after = before.assert_returned(&gateway.server, 2);
    println!("slow readers: {} in {rounds} rounds, {:.0?}", rounds * load.count, began.elapsed());
    println!("  before {before}\n  during {during}\n  after  {after}");
}

/// With a receive buffer that is full at once.
fn narrow_client(server: &crate::support::Server) -> Client {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&server.addr().into()).unwrap();
    Client::over(socket.into())
}

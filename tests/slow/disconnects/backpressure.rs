//! Backpressure: a client that does not read blocks the backend, and many slow clients do not block each other.

use super::{empty_stream, finished, gateway_config, ms, word};
use crate::support::backend_events::{data, word as chat_word};
use crate::support::sse::names;
use crate::support::{Client, TestGateway, assert_within, dialect_request, eventually};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// Waits until the backend cannot write any more, and returns the number of bytes written so far.
fn wait_until_blocked(gateway: &TestGateway) -> u64 {
    let (mut last, mut since) = (gateway.backend.written(), Instant::now());
    eventually("the backend is blocked", || {
        let now = gateway.backend.written();
        if now != last {
            (last, since) = (now, Instant::now());
        }
        (since.elapsed() > ms(500)).then_some(last)
    })
}

#[test]
fn a_client_that_does_not_read_blocks_the_backend() {
    let gateway = gateway_config().start("openai-chat", "openai");
    // An endless stream: an unbounded buffer would grow until the end of the test.
    let chunk = data(&chat_word(&"x".repeat(32_000)));
    gateway.set_response("s-endless", empty_stream().endless(chunk));
    let before = gateway.server.resident();
    let started = Instant::now();
    let mut stream = Client::narrow(gateway.server.addr()).stream(dialect_request("chat", "s-endless", true)).sse();
    stream.next().unwrap();
    let last = wait_until_blocked(&gateway);
    println!("blocked after {:.1?} and {:.1} MiB", started.elapsed(), last as f64 / MIB as f64);
    assert!(last < 32 * MIB, "{last} bytes were taken from the backend before it was blocked");
    let grown = gateway.server.resident().saturating_sub(before);
    println!("the gateway grew by {:.1} MiB", grown as f64 / MIB as f64);
    assert!(grown < 48 * MIB, "{grown} bytes more without a reader");
    // Reading resumes the stream without losses: all bytes written so far arrive, and more follow.
    let mut read = 0;
    while read < last + MIB {
        let next = stream.next().unwrap();
        assert_eq!(next.name(), "chunk");
        read += next.text().len() as u64;
    }
    assert!(gateway.backend.written() > last, "the backend continued");
    let grown = gateway.server.resident().saturating_sub(before);
    println!("and by {:.1} MiB after {} MiB were read", grown as f64 / MIB as f64, read / MIB);
    let closed = Instant::now();
    drop(stream);
    let disconnected_at =
        eventually("the backend request is cancelled", || gateway.backend.disconnects().first().copied());
    assert_within("a blocked backend request is cancelled", disconnected_at.saturating_duration_since(closed), ms(250));
}

#[test]
fn a_slow_reader_does_not_trigger_the_idle_timeout() {
    let gateway = gateway_config().idle("300ms").keepalive("100ms").start("openai-chat", "openai");
    let chunk = data(&chat_word(&"x".repeat(32_000)));
    gateway.set_response("s-away", empty_stream().endless(chunk));
    let mut stream = Client::narrow(gateway.server.addr()).stream(dialect_request("chat", "s-away", true)).sse();
    stream.next().unwrap();
    let blocked_at = wait_until_blocked(&gateway);
    // Longer than the idle timeout. The backend is blocked, so it cannot send anything.
    thread::sleep(ms(400));
    let mut read = 0;
    while read < blocked_at + MIB / 2 {
        let next = stream.next().unwrap();
        assert_ne!(next.name(), "error", "{}", next.text());
        read += next.text().len() as u64;
    }
}

#[test]
fn the_cost_of_a_stream_is_linear_in_its_length() {
    let gateway = gateway_config().start("openai-chat", "openai");
    let stream = |chunks: usize| {
        let model = format!("s-long-{chunks}");
        let text = data(&chat_word(&"x".repeat(4000))).repeat(chunks);
        gateway.set_response(&model, finished(empty_stream().bytes(text)));
        let started = Instant::now();
        let messages = gateway.server.fetch(dialect_request("chat", &model, true)).sse_messages();
        assert_eq!(messages.len(), chunks + 3);
        started.elapsed()
    };
    stream(100);
    let (short, long) = (stream(500), stream(2000));
    println!("500 chunks in {short:.1?}, 2000 in {long:.1?}");
    assert!(
        long < short * 12,
        "four times the length took {:.1} times as long",
        long.as_secs_f64() / short.as_secs_f64()
    );
}

#[test]
fn two_hundred_slow_streams_run_concurrently() {
    const MANY: usize = 200;
    let gateway = gateway_config().start("openai-chat", "openai");
    let words = (0..10).fold(empty_stream(), |answer, i| answer.event(&word(&format!("w{i} "))).pause(ms(150)));
    gateway.set_response("s-many", finished(words));
    let ready = Barrier::new(MANY);
    let before = gateway.server.resident();
    let started = Instant::now();
    let all: Vec<(Duration, usize)> = thread::scope(|scope| {
        let one = || {
            ready.wait();
            let sent = Instant::now();
            let mut stream = gateway.server.client().stream(dialect_request("chat", "s-many", true)).sse();
            stream.next().unwrap();
            let first = sent.elapsed();
            let messages = stream.rest();
            assert_eq!(names(&messages).last().unwrap(), "[DONE]");
            let text: String = messages[..messages.len() - 1]
                .iter()
                .filter_map(|t| Some(t.json()["choices"][0]["delta"]["content"].as_str()?.to_owned()))
                .collect();
            assert_eq!(text, "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 ");
            (first, messages.len())
        };
        let running: Vec<_> = (0..MANY).map(|_| scope.spawn(one)).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let slowest = all.iter().map(|(first, _)| *first).max().unwrap();
    assert_within("the slowest first frame of 200", slowest, ms(1000));
    assert_within("200 streams of 1.5 s each", started.elapsed(), ms(3000));
    let grown = gateway.server.resident().saturating_sub(before);
    println!("the gateway grew by {:.1} MiB", grown as f64 / MIB as f64);
    assert!(grown < 64 * MIB, "{grown} bytes for 200 streams");
    eventually("all slots are free", || (gateway.metric("reframe_turns_in_flight") == 0.0).then_some(()));
}

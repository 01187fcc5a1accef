//! Backpressure: a client that does not read blocks the backend, and many slow clients do not block each other.

use super::{empty_stream, finished, gateway_config, rest, stream, word};
use crate::resident;
use crate::support::backend_events::{data, word as chat_word};
use crate::support::sse::names;
use crate::support::{Client, Gate, Server, TestGateway, dialect_request, eventually, ms};
use socket2::{Domain, Socket, Type};
use std::fs;
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
        // A starved backend is no blocked one, but then it only continues earlier than the tests expect.
        (since.elapsed() > ms(500)).then_some(last)
    })
}

#[test]
fn a_client_that_does_not_read_blocks_the_backend() {
    let gateway = gateway_config().start("openai-chat", "openai");
    // An endless stream: an unbounded buffer would grow until the end of the test.
    let chunk = data(&chat_word(&"x".repeat(32_000)));
    gateway.set_response("s-endless", empty_stream().endless(chunk));
    let before = resident(&gateway.server);
    let started = Instant::now();
    let mut stream = narrow_client(&gateway).stream(dialect_request("chat", "s-endless", true));
    stream.next_message().unwrap();
    let last = wait_until_blocked(&gateway);
    println!("blocked after {:.1?} and {:.1} MiB", started.elapsed(), last as f64 / MIB as f64);
    assert!(last < 32 * MIB, "{last} bytes were taken from the backend before it was blocked");
    let grown = resident(&gateway.server).saturating_sub(before);
    println!("the gateway grew by {:.1} MiB", grown as f64 / MIB as f64);
    assert!(grown < 48 * MIB, "{grown} bytes more without a reader");
    // Reading resumes the stream without losses: all bytes written so far arrive, and more follow.
    let mut read = 0;
    while read < last + MIB {
        let next = stream.next_message().unwrap();
        assert_eq!(next.name(), "chunk");
        read += next.text().len() as u64;
    }
    assert!(gateway.backend.written() > last, "the backend continued");
    let grown = resident(&gateway.server).saturating_sub(before);
    println!("and by {:.1} MiB after {} MiB were read", grown as f64 / MIB as f64, read / MIB);
    // Nothing else would end it: the stream is endless.
    drop(stream);
    eventually("the backend request is cancelled", || gateway.backend.disconnects().first().copied());
}

#[test]
fn a_slow_reader_does_not_trigger_the_idle_timeout() {
    let gateway = gateway_config().idle(ms(1000)).keepalive(ms(300)).start("openai-chat", "openai");
    let chunk = data(&chat_word(&"x".repeat(32_000)));
    gateway.set_response("s-away", empty_stream().endless(chunk));
    let mut stream = narrow_client(&gateway).stream(dialect_request("chat", "s-away", true));
    stream.next_message().unwrap();
    let blocked_at = wait_until_blocked(&gateway);
    // Longer than the idle timeout. The backend is blocked, so it cannot send anything.
    thread::sleep(ms(1200));
    let mut read = 0;
    while read < blocked_at + MIB / 2 {
        let next = stream.next_message().unwrap();
        assert_ne!(next.name(), "error", "{}", next.text());
        read += next.text().len() as u64;
    }
}

/// Measured in CPU time of the gateway, which does not depend on other processes.
#[cfg(target_os = "linux")]
#[test]
fn the_cost_of_a_stream_is_linear_in_its_length() {
    let gateway = gateway_config().start("openai-chat", "openai");
    let cost_of = |chunks: usize| {
        let model = format!("s-long-{chunks}");
        let text = data(&chat_word(&"x".repeat(4000))).repeat(chunks);
        gateway.set_response(&model, finished(empty_stream().bytes(text)));
        let before = cpu_time(&gateway.server);
        let messages = gateway.server.fetch(dialect_request("chat", &model, true)).sse_messages();
        assert_eq!(messages.len(), chunks + 3);
        cpu_time(&gateway.server) - before
    };
    cost_of(100);
    let (short, long) = (cost_of(500), cost_of(2000));
    println!("500 chunks in {short:.1?}, 2000 in {long:.1?}");
    assert!(long > Duration::ZERO);
    // Four times as much, or sixteen times if the cost were quadratic.
    assert!(long < short * 8, "four times the length took {:.1} times as long", long.div_duration_f64(short));
}

#[test]
fn two_hundred_slow_streams_run_concurrently() {
    const MANY: usize = 200;
    let gateway = gateway_config().start("openai-chat", "openai");
    let gate = Gate::default();
    let words = (0..10).fold(empty_stream(), |answer, i| {
        let answer = answer.event(&word(&format!("w{i} ")));
        if i == 0 { answer.wait(&gate) } else { answer.pause(Duration::from_millis(50)) }
    });
    gateway.set_response("s-many", finished(words));
    let all_started = Barrier::new(MANY);
    let before = resident(&gateway.server);
    let started = Instant::now();
    thread::scope(|scope| {
        for _ in 0..MANY {
            scope.spawn(|| {
                let mut stream = stream(&gateway, "chat", "s-many");
                stream.next_message().unwrap();
                // No response continues before every client has its first frame.
                all_started.wait();
                gate.open();
                let messages = rest(stream);
                assert_eq!(names(&messages).last().unwrap(), "[DONE]");
                let text: String = messages[..messages.len() - 1]
                    .iter()
                    .filter_map(|t| Some(t.json()["choices"][0]["delta"]["content"].as_str()?.to_owned()))
                    .collect();
                assert_eq!(text, "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 ");
            });
        }
    });
    println!("{MANY} concurrent streams: {:.1?}", started.elapsed());
    let grown = resident(&gateway.server).saturating_sub(before);
    println!("the gateway grew by {:.1} MiB", grown as f64 / MIB as f64);
    assert!(grown < 64 * MIB, "{grown} bytes for 200 streams");
    eventually("all slots are free", || (gateway.metric("reframe_turns_in_flight") == 0.0).then_some(()));
}

/// A client with a small receive buffer, so that the sender is blocked soon.
pub fn narrow_client(gateway: &TestGateway) -> Client {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(256 * 1024).unwrap();
    socket.connect(&gateway.server.addr().into()).unwrap();
    Client::over(socket.into())
}

/// The CPU time of all threads of the process.
fn cpu_time(server: &Server) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    let nanoseconds = tasks.map(|task| {
        let text = fs::read_to_string(task.unwrap().path().join("schedstat")).unwrap();
        text.split(' ').next().unwrap().parse::<u64>().unwrap()
    });
    Duration::from_nanos(nanoseconds.sum())
}

//! A client that does not read pauses the backend; many slow ones do not stand in each other's way.

use super::support::backend_events::{data, word as chat_word};
use super::support::sse::names;
use super::support::{Behind, Client, asking, eventually, within};
use super::{ending, ms, paced, silence, word};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// Waits until the backend gets rid of nothing more, and says how much it had got rid of by then.
fn paused(behind: &Behind) -> u64 {
    let (mut last, mut still) = (behind.backend.written(), Instant::now());
    eventually("the backend is paused", || {
        let now = behind.backend.written();
        if now != last {
            (last, still) = (now, Instant::now());
        }
        (still.elapsed() > ms(500)).then_some(last)
    })
}

#[test]
fn a_client_that_does_not_read_pauses_the_backend() {
    let behind = paced().before("openai-chat", "openai");
    // Without an end: what is not bounded would grow until the test is over.
    let piece = data(&chat_word(&"x".repeat(32_000)));
    behind.plays("s-endless", silence().endless(piece));
    let before = behind.server.resident();
    let begun = Instant::now();
    let mut stream = Client::narrow(behind.server.addr()).stream(asking("chat", "s-endless", true)).listen();
    stream.next().unwrap();
    let last = paused(&behind);
    println!("paused after {:.1?} and {:.1} MiB", begun.elapsed(), last as f64 / MIB as f64);
    assert!(last < 32 * MIB, "{last} bytes were taken from the backend before it was paused");
    let grown = behind.server.resident().saturating_sub(before);
    println!("the gateway grew by {:.1} MiB", grown as f64 / MIB as f64);
    assert!(grown < 48 * MIB, "{grown} bytes more while nobody reads");
    // It goes on where it stopped, and nothing is lost on the way: as much comes out as went in, and more follows.
    let mut read = 0;
    while read < last + MIB {
        let next = stream.next().unwrap();
        assert_eq!(next.name(), "chunk");
        read += next.text().len() as u64;
    }
    assert!(behind.backend.written() > last, "the backend went on");
    let grown = behind.server.resident().saturating_sub(before);
    println!("and by {:.1} MiB after {} MiB were read", grown as f64 / MIB as f64, read / MIB);
    let closed = Instant::now();
    drop(stream);
    let gone = eventually("the backend is left", || behind.backend.gone().first().copied());
    within("a blocked backend is left", gone.saturating_duration_since(closed), ms(250));
}

#[test]
fn a_reader_that_was_away_is_not_taken_for_a_silent_backend() {
    let behind = paced().idle("300ms").keepalive("100ms").before("openai-chat", "openai");
    let piece = data(&chat_word(&"x".repeat(32_000)));
    behind.plays("s-away", silence().endless(piece));
    let mut stream = Client::narrow(behind.server.addr()).stream(asking("chat", "s-away", true)).listen();
    stream.next().unwrap();
    let paused = paused(&behind);
    // Longer than the idle limit: the backend could not have sent anything.
    thread::sleep(ms(400));
    let mut read = 0;
    while read < paused + MIB / 2 {
        let next = stream.next().unwrap();
        assert_ne!(next.name(), "error", "{}", next.text());
        read += next.text().len() as u64;
    }
}

#[test]
fn a_long_stream_costs_what_its_length_costs() {
    let behind = paced().before("openai-chat", "openai");
    let stream = |pieces: usize| {
        let model = format!("s-long-{pieces}");
        let text = data(&chat_word(&"x".repeat(4000))).repeat(pieces);
        behind.plays(&model, ending(silence().bytes(text)));
        let begun = Instant::now();
        let told = behind.server.ask(asking("chat", &model, true)).told();
        assert_eq!(told.len(), pieces + 3);
        begun.elapsed()
    };
    stream(100);
    let (short, long) = (stream(500), stream(2000));
    println!("500 pieces in {short:.1?}, 2000 in {long:.1?}");
    assert!(
        long < short * 12,
        "four times the length took {:.1} times as long",
        long.as_secs_f64() / short.as_secs_f64()
    );
}

#[test]
fn two_hundred_slow_streams_run_side_by_side() {
    const MANY: usize = 200;
    let behind = paced().before("openai-chat", "openai");
    let words = (0..10).fold(silence(), |answer, i| answer.event(&word(&format!("w{i} "))).pause(ms(150)));
    behind.plays("s-many", ending(words));
    let ready = Barrier::new(MANY);
    let before = behind.server.resident();
    let begun = Instant::now();
    let all: Vec<(Duration, usize)> = thread::scope(|scope| {
        let one = || {
            ready.wait();
            let asked = Instant::now();
            let mut stream = behind.server.client().stream(asking("chat", "s-many", true)).listen();
            stream.next().unwrap();
            let first = asked.elapsed();
            let told = stream.rest();
            assert_eq!(names(&told).last().unwrap(), "[DONE]");
            let said: String = told[..told.len() - 1]
                .iter()
                .filter_map(|t| Some(t.json()["choices"][0]["delta"]["content"].as_str()?.to_owned()))
                .collect();
            assert_eq!(said, "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 ");
            (first, told.len())
        };
        let running: Vec<_> = (0..MANY).map(|_| scope.spawn(one)).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let slowest = all.iter().map(|(first, _)| *first).max().unwrap();
    within("the slowest first frame of 200", slowest, ms(1000));
    within("200 streams of 1.5 s each", begun.elapsed(), ms(3000));
    let grown = behind.server.resident().saturating_sub(before);
    println!("the gateway grew by {:.1} MiB", grown as f64 / MIB as f64);
    assert!(grown < 64 * MIB, "{grown} bytes for 200 streams");
    eventually("all places are free", || (behind.metric("turns") == 0.0).then_some(()));
}

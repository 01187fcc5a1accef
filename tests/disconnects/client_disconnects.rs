//! B083: when the client is gone, so is the request to the backend, wherever it stood.

use super::support::backend_events::{created, event, text_delta};
use super::support::{Answer, Behind, Request, asking, eventually, within};
use super::{ms, paced, silence, word};
use std::time::Instant;

const LIMIT: std::time::Duration = ms(250);

/// How long after `closed` the backend saw its own connection end, for the `n`th time.
fn backend_left(behind: &Behind, n: usize, closed: Instant, what: &str) {
    let gone = eventually("the backend is left", || behind.backend.gone().get(n).copied());
    within(what, gone.saturating_duration_since(closed), LIMIT);
    eventually("its place is free", || (behind.metric("turns") == 0.0).then_some(()));
}

fn asked(behind: &Behind, n: usize) {
    eventually("the backend is asked", || (behind.backend.seen().len() == n + 1).then_some(()));
}

#[test]
fn b083_a_client_that_leaves_takes_the_backend_with_it() {
    // One place only: whoever is not left blocks the next.
    let behind = paced().times("streams: 2000", "streams: 1").before("openai-responses", "openai");
    behind.plays("g-hang", Answer::hang());
    behind.plays("g-head", silence().stall());
    behind.plays("g-mid", Answer::sse_raw(event(&created()) + &event(&text_delta("One"))).stall());
    let mut n = 0;
    for dialect in ["chat", "responses", "completions"] {
        for (model, window) in [("g-hang", "before the backend's head"), ("g-head", "before the first byte")] {
            for stream in [true, false] {
                let mut client = behind.server.client();
                client.send(&asking(dialect, model, stream));
                asked(&behind, n);
                // So that the backend's head, where there is one, has arrived.
                std::thread::sleep(ms(30));
                let closed = Instant::now();
                drop(client);
                backend_left(&behind, n, closed, &format!("{dialect}, stream {stream}, {window}"));
                n += 1;
            }
        }
        let mut stream = behind.server.client().stream(asking(dialect, "g-mid", true)).listen();
        while !stream.next().unwrap().text().contains("One") {}
        let closed = Instant::now();
        drop(stream);
        backend_left(&behind, n, closed, &format!("{dialect}, mid-stream"));
        n += 1;
        let mut client = behind.server.client();
        client.send(&asking(dialect, "g-mid", false));
        asked(&behind, n);
        std::thread::sleep(ms(30));
        let closed = Instant::now();
        drop(client);
        backend_left(&behind, n, closed, &format!("{dialect}, in the middle of a body"));
        n += 1;
    }
    assert_eq!(behind.backend.gone().len(), n);
}

#[test]
fn b083_between_two_comments_as_well() {
    let behind = paced().keepalive("100ms").before("openai-chat", "openai");
    behind.plays("g-comments", silence().stall());
    let mut stream = behind.server.client().stream(asking("chat", "g-comments", true)).listen();
    assert!(stream.next().unwrap().is_comment());
    assert!(stream.next().unwrap().is_comment());
    let closed = Instant::now();
    drop(stream);
    backend_left(&behind, 0, closed, "between two comments");
}

#[test]
fn a_place_is_free_again_after_every_end() {
    let behind = paced().idle("200ms").times("streams: 2000", "streams: 1").before("openai-chat", "openai");
    behind.plays("g-busy", silence().event(&word("One")).event(&word("Two")).stall());
    behind.plays("g-fault", Answer::json(500, "{}"));
    let mut stream = behind.server.client().stream(asking("chat", "g-busy", true)).listen();
    stream.next().unwrap();
    let refused = behind.server.ask(asking("chat", "g-busy", false));
    assert_eq!((refused.status(), refused.header("retry-after")), (503, Some("1")));
    assert_eq!(behind.metric("turns"), 1.0);
    assert_eq!(stream.rest().last().unwrap().name(), "error");
    for _ in 0..3 {
        eventually("a place is free", || {
            (behind.server.ask(asking("chat", "g-fault", true)).status() == 500).then_some(())
        });
        assert_eq!(behind.server.ask(Request::post("{")).status(), 400);
    }
    assert_eq!(behind.metric("turns"), 0.0);
}

#[test]
fn a_turn_that_is_over_leaves_a_backend_that_goes_on() {
    // A breach of order, a fault inside the stream: nothing more is wanted, so nothing more is paid for.
    let behind = paced().before("openai-chat", "openai");
    let fault = serde_json::json!({ "error": { "message": "broken" } }).to_string();
    behind.plays("g-over", silence().event(&word("One")).event(&fault).endless("data: {}\n\n"));
    let told = behind.server.ask(asking("chat", "g-over", true)).told();
    assert_eq!(told.last().unwrap().name(), "error");
    let answered = Instant::now();
    backend_left(&behind, 0, answered, "after a fault inside the stream");
}

#[test]
fn a_finished_answer_leaves_its_connection_to_the_next() {
    let behind = paced().before("openai-chat", "openai");
    behind.plays("g-good", super::ending(silence().event(&word("One"))));
    for _ in 0..5 {
        assert_eq!(behind.server.ask(asking("chat", "g-good", true)).status(), 200);
        assert_eq!(behind.server.ask(asking("responses", "g-good", false)).status(), 200);
    }
    assert_eq!(behind.backend.connections(), 1);
    assert_eq!(behind.backend.gone().len(), 0);
}

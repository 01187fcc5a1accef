//! Many live streams at once, in every dialect, with strict validation: every one is complete, none violates its schema.

use super::{ProcessStats, SoakLoad};
use crate::support::{
    Request, Server, TestDir, assert_within, chat, chunks, dialect_request, eventually, greeting_chunks, serve,
};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn many_live_streams_are_complete_and_valid() {
    let load = SoakLoad::new(150, 2000, 25);
    // Short of a second per stream; in a long run many seconds, so that all are live together.
    let pace = if load.is_long { "{ fixed: 500 }" } else { "{ fixed: 40 }" };
    let server = serve().add(TestDir::empty().with_pace(pace)).start();
    let before = ProcessStats::of(&server);
    let (complete, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let began = Instant::now();
    let (most, during) = thread::scope(|scope| {
        for number in 0..load.count {
            let (server, complete, over, load) = (&server, &complete, &over, &load);
            let client = move || {
                // In a short run each client reads one stream, however late it starts.
                while !load.is_long || !over.load(Ordering::Relaxed) {
                    read_stream(server, number);
                    complete.fetch_add(1, Ordering::Relaxed);
                    if !load.is_long {
                        return;
                    }
                }
            };
            thread::Builder::new().stack_size(256 * 1024).spawn_scoped(scope, client).unwrap();
        }
        let mut most = 0;
        let during = eventually("the streams are live", || {
            most = most.max(turns_in_flight(&server));
            let enough = if load.is_long { most >= load.count } else { most >= load.count / 4 };
            enough.then(|| ProcessStats::of(&server))
        });
        while load.is_long && !load.is_over() {
            thread::sleep(Duration::from_millis(200));
        }
        over.store(true, Ordering::Relaxed);
        (most, during)
    });
    let complete = complete.into_inner();
    println!("live streams: {complete} complete, at most {most} at once, {:.0?}", began.elapsed());
    let after = before.assert_returned(&server, 2);
    println!("  before {before}\n  during {during}\n  after  {after}");
    assert!(complete >= load.count);
    assert_eq!(turns_in_flight(&server), 0);
    let metrics = server.fetch(Request::get("/metrics")).text();
    let unwanted = ["reframe_frame_violations_total{", "reframe_turn_faults_total{", "reframe_client_timeouts_total{"];
    assert_eq!(unwanted.map(|name| metrics.contains(name)), [false; 3], "{metrics}");
    assert_within("a stream of the demo afterwards", time_of_a_stream(&server), Duration::from_secs(15));
}

fn read_stream(server: &Server, number: usize) {
    match number % 3 {
        0 => assert_eq!(chunks(&server.stream(chat("Hello!")).rest()), greeting_chunks()),
        1 => {
            let reply = server.fetch(dialect_request("responses", "demo", true));
            let names: Vec<String> = reply.sse_messages().iter().map(|message| message.name()).collect();
            assert_eq!(names.first().map(String::as_str), Some("response.created"));
            // The shipped profile adds the end marker of Chat.
            assert_eq!(names[names.len() - 2..], ["response.completed", "[DONE]"]);
            assert_eq!(names.iter().filter(|name| *name == "response.completed").count(), 1);
        }
        _ => {
            let reply = server.fetch(dialect_request("completions", "demo", true));
            assert_eq!(reply.sse_messages().last().unwrap().name(), "[DONE]");
        }
    }
}

fn time_of_a_stream(server: &Server) -> Duration {
    let began = Instant::now();
    read_stream(server, 0);
    began.elapsed()
}

fn turns_in_flight(server: &Server) -> usize {
    let text = server.fetch(Request::get("/metrics")).text();
    let value = text.lines().find_map(|line| line.strip_prefix("reframe_turns_in_flight "));
    value.unwrap().parse().unwrap()
}

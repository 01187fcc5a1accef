//! Unit tests of `telemetry::plain_fields`.

use super::*;
use std::io;
use std::sync::{Arc, Mutex};
use tracing_subscriber::fmt::{MakeWriter, SubscriberBuilder};

/// A line of a log, in memory.
#[derive(Clone, Default)]
struct Line(Arc<Mutex<Vec<u8>>>);

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for Line {
    type Writer = Line;

    fn make_writer(&'w self) -> Line {
        self.clone()
    }
}

fn log_everything() {
    let (text, odd, missing) = ("plain text", "a \"quote\", a \\, \u{1b}[1m, ä and \n", None::<&str>);
    let words = ["a", "b"];
    tracing::info!(text, odd, missing, number = 7_u64, negative = -7_i64, part = 0.5, yes = true, %text, ?words, "message");
    tracing::warn!(r#type = "t", "a message with \u{1b}[1m, \u{85}, ä, \"quotes\" and {odd}");
    tracing::error!(some = Some("x"), empty = "");
}

#[test]
fn lines_are_those_of_tracing_subscriber() {
    let (own, theirs) = (Line::default(), Line::default());
    let builder = || SubscriberBuilder::default().with_ansi(false).without_time();
    tracing::subscriber::with_default(
        builder().fmt_fields(PlainFields).with_writer(own.clone()).finish(),
        log_everything,
    );
    tracing::subscriber::with_default(builder().with_writer(theirs.clone()).finish(), log_everything);
    let text = |line: Line| String::from_utf8(line.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text(own), text(theirs));
}

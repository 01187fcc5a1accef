//! The log queue: a bounded queue between the program and standard error, with a thread of its own. A standard error
//! that nobody reads can stop the log, never the server: lines that do not fit are dropped and counted.

use std::io::{self, Write};
use std::mem;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};
use tracing_subscriber::fmt::MakeWriter;

/// Enough for thousands of lines, and little next to the memory of the program.
const MAX_BYTES: usize = 1 << 20;
/// How long the end of the program waits for lines that are still queued.
const FLUSH: Duration = Duration::from_millis(500);

static LOG: OnceLock<LogQueue> = OnceLock::new();

#[derive(Clone, Debug)]
pub struct LogQueue {
    lines: Sender<Vec<u8>>,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    queued_bytes: AtomicUsize,
    dropped: AtomicU64,
}

impl LogQueue {
    /// The queue to standard error; its thread starts with the first call.
    pub fn stderr() -> &'static LogQueue {
        LOG.get_or_init(|| LogQueue::start(io::stderr()))
    }

    fn start(output: impl Write + Send + 'static) -> LogQueue {
        let (lines, queue) = mpsc::channel();
        let counters = Arc::new(Counters::default());
        let shared = counters.clone();
        // Without a thread every line is dropped and counted, which the metrics show.
        let _ = thread::Builder::new().name("log".to_owned()).spawn(move || write_lines(output, &queue, &shared));
        LogQueue { lines, counters }
    }

    /// Lines that were dropped since the start.
    pub fn dropped(&self) -> u64 {
        self.counters.dropped.load(Ordering::Relaxed)
    }

    /// Waits until all lines are written, but not for an output that is blocked.
    pub fn flush(&self) {
        let began = Instant::now();
        while self.counters.queued_bytes.load(Ordering::Acquire) > 0 && began.elapsed() < FLUSH {
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn push(&self, line: Vec<u8>) {
        let length = line.len();
        let queued = self.counters.queued_bytes.fetch_add(length, Ordering::AcqRel);
        if queued + length > MAX_BYTES || self.lines.send(line).is_err() {
            self.counters.queued_bytes.fetch_sub(length, Ordering::AcqRel);
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A failed write is ignored: there is nowhere to report it.
fn write_lines(mut output: impl Write, lines: &Receiver<Vec<u8>>, counters: &Counters) {
    let mut reported = 0;
    loop {
        let line = match lines.try_recv() {
            Ok(line) => line,
            Err(TryRecvError::Empty) => {
                let _ = output.flush();
                let Ok(line) = lines.recv() else { return };
                line
            }
            Err(TryRecvError::Disconnected) => return,
        };
        let dropped = counters.dropped.load(Ordering::Relaxed);
        if dropped > reported {
            let _ = writeln!(output, "{} log lines were dropped before this one", dropped - reported);
            reported = dropped;
        }
        let _ = output.write_all(&line);
        counters.queued_bytes.fetch_sub(line.len(), Ordering::AcqRel);
    }
}

/// One event of the log, which is written as a whole.
pub struct QueuedLine {
    queue: &'static LogQueue,
    line: Vec<u8>,
}

impl Write for QueuedLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for QueuedLine {
    fn drop(&mut self) {
        self.queue.push(mem::take(&mut self.line));
    }
}

impl<'w> MakeWriter<'w> for &'static LogQueue {
    type Writer = QueuedLine;

    fn make_writer(&'w self) -> QueuedLine {
        QueuedLine { queue: self, line: Vec::new() }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#[path = "../../tests/unit/telemetry_log_queue.rs"]
mod tests;

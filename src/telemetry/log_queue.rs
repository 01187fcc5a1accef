//! The log queue: a bounded queue between the program and standard error, with a thread of its own; and another one to
//! standard output. An output that nobody reads can stop the log, never the server: lines that do not fit are dropped and
//! counted.

use std::io::{self, Write};
use std::mem;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tracing_subscriber::fmt::MakeWriter;

/// Enough for thousands of lines, and little next to the memory of the program.
const MAX_BYTES: usize = 1 << 20;
/// How long the end of the program waits for lines that are still queued.
const FLUSH: Duration = Duration::from_millis(500);

/// Lines of this time are written together, or as soon as they are this many bytes: a line of its own would cost each
/// response two switches between threads.
const COLLECT: Duration = Duration::from_millis(20);
const COLLECT_BYTES: usize = 64 * 1024;
/// The buffers keep this much memory.
const KEPT_BYTES: usize = 16 * 1024;
/// The length of most lines.
const LINE_BYTES: usize = 256;

static STDERR: OnceLock<LogQueue> = OnceLock::new();
static STDOUT: OnceLock<LogQueue> = OnceLock::new();

#[derive(Clone, Debug, Default)]
pub struct LogQueue {
    lines: Arc<Lines>,
    counters: Arc<Counters>,
}

/// What is to be written.
#[derive(Debug, Default)]
struct Lines {
    bytes: Mutex<Vec<u8>>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Counters {
    queued_bytes: AtomicUsize,
    dropped: AtomicU64,
}

impl LogQueue {
    /// The queue to standard error; its thread starts with the first call.
    pub fn stderr() -> &'static LogQueue {
        STDERR.get_or_init(|| LogQueue::start(io::stderr()))
    }

    /// The queue to standard output, for lines of `logs:`; its thread starts with the first call.
    pub fn stdout() -> &'static LogQueue {
        STDOUT.get_or_init(|| LogQueue::start(io::stdout()))
    }

    /// Lines to standard output that were dropped since the start.
    pub fn dropped_on_stdout() -> u64 {
        STDOUT.get().map_or(0, LogQueue::dropped)
    }

    /// Waits until all lines of both queues are written, but not for an output that is blocked.
    pub fn flush_all() {
        [&STDERR, &STDOUT].into_iter().filter_map(OnceLock::get).for_each(LogQueue::flush);
    }

    fn start(output: impl Write + Send + 'static) -> LogQueue {
        let queue = LogQueue::default();
        let writer = queue.clone();
        let started = thread::Builder::new().name("log".to_owned()).spawn(move || writer.write_lines(output));
        if started.is_err() {
            // Every line is dropped and counted, which the metrics show.
            queue.counters.queued_bytes.store(MAX_BYTES, Ordering::Release);
        }
        queue
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

    /// Prints a text after the lines before it.
    pub fn print(&self, text: &str) {
        self.push(format!("{text}\n").as_bytes());
    }

    fn push(&self, line: &[u8]) {
        let length = line.len();
        let queued = self.counters.queued_bytes.fetch_add(length, Ordering::AcqRel);
        if queued + length > MAX_BYTES {
            self.counters.queued_bytes.fetch_sub(length, Ordering::AcqRel);
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut bytes = self.lines.lock();
        let before = bytes.len();
        bytes.extend_from_slice(line);
        let after = bytes.len();
        drop(bytes);
        if before == 0 || (before < COLLECT_BYTES && after >= COLLECT_BYTES) {
            self.lines.arrived.notify_one();
        }
    }

    /// A failed write is ignored: there is nowhere to report it.
    fn write_lines(&self, mut output: impl Write) {
        let mut reported = 0;
        let mut batch = Vec::new();
        loop {
            mem::swap(&mut batch, &mut *self.lines.wait());
            let dropped = self.counters.dropped.load(Ordering::Relaxed);
            if dropped > reported {
                let _ = writeln!(output, "{} log lines were dropped before this one", dropped - reported);
                reported = dropped;
            }
            let _ = output.write_all(&batch);
            let _ = output.flush();
            self.counters.queued_bytes.fetch_sub(batch.len(), Ordering::AcqRel);
            batch.clear();
            batch.shrink_to(KEPT_BYTES);
        }
    }
}

impl Lines {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is a line, and then for those that follow it.
    fn wait(&self) -> MutexGuard<'_, Vec<u8>> {
        let first = self.arrived.wait_while(self.lock(), |bytes| bytes.is_empty());
        let first = first.unwrap_or_else(PoisonError::into_inner);
        let others = self.arrived.wait_timeout_while(first, COLLECT, |bytes| bytes.len() < COLLECT_BYTES);
        others.unwrap_or_else(PoisonError::into_inner).0
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
        self.queue.push(&self.line);
    }
}

impl<'w> MakeWriter<'w> for &'static LogQueue {
    type Writer = QueuedLine;

    fn make_writer(&'w self) -> QueuedLine {
        QueuedLine { queue: self, line: Vec::with_capacity(LINE_BYTES) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#[path = "../../tests/unit/telemetry_log_queue.rs"]
mod tests;

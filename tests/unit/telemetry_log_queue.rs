//! Unit tests of `telemetry::log_queue`.

use super::*;
use std::sync::mpsc::{Receiver, channel};

/// An output that accepts nothing until the gate opens.
struct Gated {
    gate: Receiver<()>,
    open: bool,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for Gated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.open {
            self.gate.recv().unwrap();
            self.open = true;
        }
        self.written.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_blocked_output_drops_lines_and_reports_how_many() {
    let (open, gate) = channel();
    let written = Arc::new(Mutex::new(Vec::new()));
    let queue = LogQueue::start(Gated { gate, open: false, written: written.clone() });
    let line = [b'x'; 1023].iter().copied().chain([b'\n']).collect::<Vec<u8>>();
    let lines = 3 * MAX_BYTES / line.len();
    for _ in 0..lines {
        queue.push(&line);
    }
    // The queue is full; nothing waited for the output.
    let dropped = queue.dropped();
    assert_eq!(dropped as usize, lines - MAX_BYTES / line.len());
    queue.flush();
    open.send(()).unwrap();
    while queue.counters.queued_bytes.load(Ordering::Acquire) > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    queue.push(b"after\n");
    while queue.counters.queued_bytes.load(Ordering::Acquire) > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    let written = written.lock().unwrap();
    let text = String::from_utf8_lossy(&written);
    // One report, or two if the thread of the queue came late and the first lines were dropped before it wrote any.
    let reports = text.lines().filter_map(|line| line.strip_suffix(" log lines were dropped before this one"));
    let reported: u64 = reports.map(|count| count.parse::<u64>().unwrap()).sum();
    assert_eq!(reported, dropped, "each dropped line is reported once");
    assert!(text.ends_with("after\n"));
    assert_eq!(text.matches('x').count(), 1023 * (MAX_BYTES / line.len()));
}

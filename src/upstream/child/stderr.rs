//! The standard error of a child process, line by line into the log: limited in length and rate, without escape sequences
//! and without secrets.

use crate::domain::Redactor;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;

/// The longest line that is logged; the rest of it is omitted.
const MAX_LINE: usize = 2048;
/// How many lines are logged in one period.
const MAX_LINES: u32 = 50;
const PERIOD: Duration = Duration::from_secs(1);

/// Receives each line that is logged: the backend, the id of the process, and the text.
pub type StderrReader = Arc<dyn Fn(&str, u32, &str) + Send + Sync>;

/// Relays until the process closes its standard error.
pub async fn relay(
    mut stderr: ChildStderr,
    backend: String,
    pid: u32,
    redactor: Redactor,
    reader: Option<StderrReader>,
) {
    let began = Instant::now();
    let mut log = LineLog { backend, pid, redactor, reader, line: Vec::new(), began, logged: 0, omitted: 0 };
    let mut chunk = vec![0; 8 * 1024];
    loop {
        tokio::select! {
            read = stderr.read(&mut chunk) => match read {
                Ok(read @ 1..) => log.push(&chunk[..read]),
                Ok(0) | Err(_) => break,
            },
            // Lines were omitted, and none follows that would report it.
            () = tokio::time::sleep(PERIOD), if log.omitted > 0 => log.begin_period(),
        }
    }
    log.end_line();
    log.begin_period();
}

struct LineLog {
    backend: String,
    pid: u32,
    redactor: Redactor,
    reader: Option<StderrReader>,
    line: Vec<u8>,
    began: Instant,
    logged: u32,
    omitted: u64,
}

impl LineLog {
    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' => self.end_line(),
                _ if self.line.len() < MAX_LINE => self.line.push(*byte),
                _ => {}
            }
        }
    }

    /// Reports how many lines the last period omitted.
    fn begin_period(&mut self) {
        if self.omitted > 0 {
            let (backend, pid, lines) = (&self.backend, self.pid, self.omitted);
            tracing::warn!(backend, pid, lines, "lines of the worker's standard error were omitted");
        }
        (self.began, self.logged, self.omitted) = (Instant::now(), 0, 0);
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let text = without_escapes(&String::from_utf8_lossy(&line));
        if text.trim().is_empty() {
            return;
        }
        if self.began.elapsed() >= PERIOD {
            self.begin_period();
        }
        if self.logged >= MAX_LINES {
            self.omitted += 1;
            return;
        }
        self.logged += 1;
        let (backend, pid, line) = (&self.backend, self.pid, self.redactor.redact(&text));
        let line = line.trim_end();
        tracing::info!(backend, pid, line, "standard error of the worker");
        if let Some(reader) = &self.reader {
            reader(backend, pid, line);
        }
    }
}

/// Without the escape sequences of terminals (`ESC [ … letter`) and other control characters.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' if chars.peek() == Some(&'[') => {
                chars.next();
                // The sequence ends with its first letter.
                while chars.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
            }
            '\t' => plain.push(' '),
            c if c.is_control() => {}
            c => plain.push(c),
        }
    }
    plain
}

//! The usage log: a file with one JSON record per turn, written by a thread of its own. A disk that is full or slow can
//! stop the log, never a turn: records that do not fit in the queue are dropped and counted.

use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Records that wait for the disk. Each has less than a kilobyte.
const MAX_QUEUED: usize = 4096;
/// How long the end of the program waits for records that are still queued.
const FLUSH: Duration = Duration::from_millis(500);

static LOG: OnceLock<UsageLog> = OnceLock::new();

#[derive(Debug)]
pub struct UsageLog {
    records: SyncSender<Record>,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    queued: AtomicUsize,
    dropped: AtomicU64,
}

/// Where records are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageFile {
    pub path: PathBuf,
    /// The size at which the file is renamed.
    pub max_bytes: u64,
}

impl UsageFile {
    /// The file before the current one.
    pub(super) fn earlier(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(".1");
        path.into()
    }
}

#[derive(Debug)]
struct Record {
    to: UsageFile,
    line: String,
}

impl UsageLog {
    /// The log of this process; its thread starts with the first call.
    pub fn shared() -> &'static UsageLog {
        LOG.get_or_init(UsageLog::start)
    }

    fn start() -> UsageLog {
        let (records, queue) = mpsc::sync_channel(MAX_QUEUED);
        let counters = Arc::new(Counters::default());
        let shared = counters.clone();
        // Without a thread every record is dropped and counted, which the metrics show.
        let _ = thread::Builder::new().name("usage log".to_owned()).spawn(move || write_records(&queue, &shared));
        UsageLog { records, counters }
    }

    pub fn write(&self, to: UsageFile, record: &Value) {
        self.counters.queued.fetch_add(1, Ordering::AcqRel);
        if self.records.try_send(Record { to, line: format!("{record}\n") }).is_err() {
            self.counters.queued.fetch_sub(1, Ordering::AcqRel);
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records that were dropped since the start.
    pub fn dropped(&self) -> u64 {
        self.counters.dropped.load(Ordering::Relaxed)
    }

    /// Waits until all records are written, but not for a disk that is blocked.
    pub fn flush(&self) {
        let began = Instant::now();
        while self.counters.queued.load(Ordering::Acquire) > 0 && began.elapsed() < FLUSH {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The file that is open, with its size.
struct OpenFile {
    log: UsageFile,
    file: File,
    bytes: u64,
}

fn write_records(queue: &Receiver<Record>, counters: &Counters) {
    let mut open: Option<OpenFile> = None;
    let mut has_failed = false;
    while let Ok(record) = queue.recv() {
        match append(&mut open, &record) {
            Ok(()) => has_failed = false,
            Err(error) => {
                open = None;
                counters.dropped.fetch_add(1, Ordering::Relaxed);
                if !has_failed {
                    tracing::error!(path = %record.to.path.display(), %error, "the usage log cannot be written");
                }
                has_failed = true;
            }
        }
        counters.queued.fetch_sub(1, Ordering::AcqRel);
    }
}

fn append(open: &mut Option<OpenFile>, record: &Record) -> io::Result<()> {
    let (log, path) = (&record.to, record.to.path.as_path());
    // A file that was removed or replaced, such as by a tool that rotates logs, is opened again.
    let is_current = |open: &OpenFile| open.log == *log && is_same_file(&open.file, path);
    let mut current = match open.take().filter(is_current) {
        Some(current) => current,
        None => OpenFile::open(log)?,
    };
    if current.bytes > 0 && current.bytes + record.line.len() as u64 > log.max_bytes {
        fs::rename(path, log.earlier())?;
        current = OpenFile::open(log)?;
    }
    current.file.write_all(record.line.as_bytes())?;
    current.bytes += record.line.len() as u64;
    *open = Some(current);
    Ok(())
}

impl OpenFile {
    fn open(log: &UsageFile) -> io::Result<OpenFile> {
        let file = OpenOptions::new().create(true).append(true).open(&log.path)?;
        let bytes = file.metadata()?.len();
        Ok(OpenFile { log: log.clone(), file, bytes })
    }
}

#[cfg(unix)]
fn is_same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    matches!((file.metadata().map(identity), fs::metadata(path).map(identity)), (Ok(open), Ok(named)) if open == named)
}

#[cfg(not(unix))]
fn is_same_file(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "../../tests/unit/telemetry_usage_log.rs"]
mod tests;

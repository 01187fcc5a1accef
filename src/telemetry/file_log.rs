//! Log files: the usage log with one JSON record per turn, and the files of `logs:`. Each of the two has a thread of its
//! own. A disk that is full or slow can stop a log, never a turn: lines that do not fit in the queue are dropped and counted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Lines that wait for the disk, and their bytes.
const MAX_QUEUED: usize = 4096;
const MAX_QUEUED_BYTES: usize = 8 << 20;
/// A longer line is dropped; of a file of its own, one of this size.
const MAX_LINE: usize = 256 << 10;
const MAX_DOCUMENT: usize = 4 << 20;
/// Files that are open at the same time.
const MAX_OPEN: usize = 16;
/// How long the end of the program waits for records that are still queued.
const FLUSH: Duration = Duration::from_millis(500);

static USAGE: OnceLock<FileLog> = OnceLock::new();
static LINES: OnceLock<FileLog> = OnceLock::new();

#[derive(Debug)]
pub struct FileLog {
    lines: SyncSender<QueuedLine>,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    queued: AtomicUsize,
    queued_bytes: AtomicUsize,
    dropped: AtomicU64,
}

/// Where lines are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    pub path: PathBuf,
    /// The size at which the file is renamed.
    pub max_bytes: u64,
}

impl LogFile {
    /// The file before the current one.
    pub(super) fn earlier(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(".1");
        path.into()
    }
}

#[derive(Debug)]
struct QueuedLine {
    to: LogFile,
    /// The line is a file of its own.
    is_file: bool,
    /// With its line break.
    line: String,
}

impl FileLog {
    /// The usage log of this process; its thread starts with the first call.
    pub fn usage() -> &'static FileLog {
        USAGE.get_or_init(|| FileLog::start("usage log"))
    }

    /// The files of `logs:`; their thread starts with the first call.
    pub fn lines() -> &'static FileLog {
        LINES.get_or_init(|| FileLog::start("log files"))
    }

    /// Lines of `logs:` that were dropped since the start.
    pub fn dropped_lines() -> u64 {
        LINES.get().map_or(0, FileLog::dropped)
    }

    /// Waits until all lines of all files are written, but not for a disk that is blocked.
    pub fn flush_all() {
        [&USAGE, &LINES].into_iter().filter_map(OnceLock::get).for_each(FileLog::flush);
    }

    fn start(thread_name: &str) -> FileLog {
        let (lines, queue) = mpsc::sync_channel(MAX_QUEUED);
        let counters = Arc::new(Counters::default());
        let shared = counters.clone();
        // Without a thread every line is dropped and counted, which the metrics show.
        let _ = thread::Builder::new().name(thread_name.to_owned()).spawn(move || write_lines(&queue, &shared));
        FileLog { lines, counters }
    }

    /// `line`: without its line break.
    pub fn write(&self, to: LogFile, line: String) {
        self.queue(to, line, false);
    }

    /// Writes a file of its own, which only its owner can read. Its folder is created if it does not exist.
    pub fn write_file(&self, path: PathBuf, content: String) {
        self.queue(LogFile { path, max_bytes: u64::MAX }, content, true);
    }

    /// Counts a line that a limit does not admit.
    pub fn drop_line(&self) {
        self.counters.dropped.fetch_add(1, Ordering::Relaxed);
    }

    fn queue(&self, to: LogFile, mut line: String, is_file: bool) {
        line.push('\n');
        let length = line.len();
        let queued_bytes = self.counters.queued_bytes.fetch_add(length, Ordering::AcqRel);
        self.counters.queued.fetch_add(1, Ordering::AcqRel);
        let max = if is_file { MAX_DOCUMENT } else { MAX_LINE };
        let fits = length <= max && queued_bytes + length <= MAX_QUEUED_BYTES;
        if !fits || self.lines.try_send(QueuedLine { to, is_file, line }).is_err() {
            self.counters.queued.fetch_sub(1, Ordering::AcqRel);
            self.counters.queued_bytes.fetch_sub(length, Ordering::AcqRel);
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that were dropped since the start.
    pub fn dropped(&self) -> u64 {
        self.counters.dropped.load(Ordering::Relaxed)
    }

    fn flush(&self) {
        let began = Instant::now();
        while self.counters.queued.load(Ordering::Acquire) > 0 && began.elapsed() < FLUSH {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A file that is open, with its size.
struct OpenFile {
    log: LogFile,
    file: File,
    bytes: u64,
}

fn write_lines(queue: &Receiver<QueuedLine>, counters: &Counters) {
    // The most recent one last.
    let mut open: Vec<OpenFile> = Vec::new();
    let mut failed: Option<PathBuf> = None;
    while let Ok(line) = queue.recv() {
        let mut current = open.iter().position(|open| open.log == line.to).map(|at| open.remove(at));
        let written = match line.is_file {
            true => create(&line),
            false => append(&mut current, &line),
        };
        match written {
            Ok(()) => failed = failed.filter(|path| *path != line.to.path),
            Err(error) => {
                current = None;
                counters.dropped.fetch_add(1, Ordering::Relaxed);
                if failed.as_ref() != Some(&line.to.path) {
                    tracing::error!(path = %line.to.path.display(), %error, "a log file cannot be written");
                }
                failed = Some(line.to.path);
            }
        }
        open.extend(current);
        if open.len() > MAX_OPEN {
            open.remove(0);
        }
        counters.queued_bytes.fetch_sub(line.line.len(), Ordering::AcqRel);
        counters.queued.fetch_sub(1, Ordering::AcqRel);
    }
}

fn create(line: &QueuedLine) -> io::Result<()> {
    if let Some(folder) = line.to.path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&line.to.path)?.write_all(line.line.as_bytes())
}

fn append(open: &mut Option<OpenFile>, queued: &QueuedLine) -> io::Result<()> {
    let (log, path) = (&queued.to, queued.to.path.as_path());
    // A file that was removed or replaced, such as by a tool that rotates logs, is opened again.
    let is_current = |open: &OpenFile| open.log == *log && is_same_file(&open.file, path);
    let mut current = match open.take().filter(is_current) {
        Some(current) => current,
        None => OpenFile::open(log)?,
    };
    if current.bytes > 0 && current.bytes + queued.line.len() as u64 > log.max_bytes {
        fs::rename(path, log.earlier())?;
        current = OpenFile::open(log)?;
    }
    current.file.write_all(queued.line.as_bytes())?;
    current.bytes += queued.line.len() as u64;
    *open = Some(current);
    Ok(())
}

impl OpenFile {
    fn open(log: &LogFile) -> io::Result<OpenFile> {
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
#[path = "../../tests/unit/telemetry_file_log.rs"]
mod tests;

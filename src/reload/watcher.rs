//! Notices that files may have changed, however they were saved.
//!
//! Folders are watched, never files: an editor's save or a ConfigMap swap replaces the file that a watch would be
//! attached to. The kind of an event is not trusted; any event only triggers a new scan. Events can get lost (a network
//! mount, a full queue, a folder that was deleted and recreated), so the folders are also scanned every two seconds.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::ModifyKind::{Data, Metadata},
};
use tracing::{error, warn};

use super::set_reader::is_foreign;
use crate::mapping::source::layout::may_belong;

/// A save causes several events. It is over when none arrived for this long.
const DEBOUNCE: Duration = Duration::from_millis(15);
/// Upper bound of the debounce, for folders that are written to all the time.
const MAX_DEBOUNCE: Duration = Duration::from_millis(250);
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Attempts to set up watches while the folders change, before falling back to polling.
const MAX_WATCH_ATTEMPTS: usize = 5;

/// Whether the folders are also scanned without an event. Off only in tests, to prove that the events alone suffice.
#[derive(Clone, Copy)]
pub enum SafetyPoll {
    On,
    Off,
}

/// Calls `on_change` from its own thread when something in the folders may have changed. Dropping it stops the thread;
/// `on_change` is not called after that.
pub struct FolderWatcher {
    signals: Sender<Signal>,
    thread: Option<JoinHandle<()>>,
}

/// What an event means for the watcher.
#[derive(Clone, Copy)]
enum Signal {
    /// Something in a listed folder changed: call back.
    Contents,
    /// A watched folder was created, deleted or moved: its watch may no longer work.
    Folder,
    /// Something changed next to a listed folder: call back only if the fingerprint differs.
    Sibling,
    Stop,
}

/// The signals of one burst of events.
#[derive(Default)]
struct Burst {
    contents_changed: bool,
    folder: bool,
}

struct FolderScanner<F> {
    folders: F,
    /// The topmost folders of the first listing. They are watched for even while they do not exist.
    requested_roots: BTreeSet<PathBuf>,
    signals: Sender<Signal>,
    active: Option<ActiveWatcher>,
    /// Whether the log already has the warning that not every folder can be watched.
    has_warned: bool,
    last_fingerprint: u64,
}

struct ActiveWatcher {
    _watcher: RecommendedWatcher,
    folders_to_watch: WatchedFolders,
}

/// The folders to watch, by identity: two names of one folder share one watch, and removing it for one name would
/// remove it for both.
type WatchedFolders = BTreeMap<Identity, PathBuf>;

/// Device and inode; the path on systems without inodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Identity(u64, u64, Option<PathBuf>);

impl FolderWatcher {
    /// Starts watching. `folders` lists the folders to watch, not recursively, and is called again for every scan.
    /// Changes after this returns are noticed, so start the watcher before reading the files. Where the system offers
    /// no file events, the scan every two seconds remains.
    pub fn start(
        poll: SafetyPoll,
        folders: impl Fn() -> Vec<PathBuf> + Send + 'static,
        on_change: impl FnMut() + Send + 'static,
    ) -> Result<FolderWatcher, String> {
        let (signals, received) = mpsc::channel();
        let mut scanner = FolderScanner {
            requested_roots: root_folders(&folders()),
            folders,
            signals: signals.clone(),
            active: None,
            has_warned: false,
            last_fingerprint: 0,
        };
        scanner.scan(&Burst::default());
        let thread = thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || run(scanner, poll, &received, on_change))
            .map_err(|error| format!("cannot start the thread that watches files: {error}"))?;
        Ok(FolderWatcher { signals, thread: Some(thread) })
    }
}

impl Drop for FolderWatcher {
    fn drop(&mut self) {
        let _ = self.signals.send(Signal::Stop);
        if let Some(thread) = self.thread.take() {
            // If `on_change` drops the watcher, the thread must not join itself.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

fn run<F>(mut scanner: FolderScanner<F>, poll: SafetyPoll, received: &Receiver<Signal>, mut on_change: impl FnMut())
where
    F: Fn() -> Vec<PathBuf>,
{
    while let Some(burst) = next_burst(poll, received) {
        // The fingerprint is taken before the callback, so that changes made while it reads are found by the next scan.
        let differs = scanner.scan(&burst);
        if (burst.contents_changed || differs) && catch_unwind(AssertUnwindSafe(&mut on_change)).is_err() {
            // One bad file must not end hot reload.
            error!("a reload panicked, still watching");
        }
    }
}

/// Waits for events until they pause, or for the poll interval. `None` means stop.
fn next_burst(poll: SafetyPoll, received: &Receiver<Signal>) -> Option<Burst> {
    let mut burst = Burst::default();
    let mut next = match poll {
        SafetyPoll::On => received.recv_timeout(POLL_INTERVAL),
        SafetyPoll::Off => received.recv().map_err(RecvTimeoutError::from),
    };
    let mut end = None;
    loop {
        match next {
            Ok(signal) => burst.add(signal)?,
            Err(RecvTimeoutError::Timeout) => return Some(burst),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
        let left = end.get_or_insert_with(|| Instant::now() + MAX_DEBOUNCE).saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Some(burst);
        }
        next = received.recv_timeout(DEBOUNCE.min(left));
    }
}

impl Burst {
    fn add(&mut self, signal: Signal) -> Option<()> {
        match signal {
            Signal::Contents => self.contents_changed = true,
            Signal::Folder => (self.contents_changed, self.folder) = (true, true),
            Signal::Sibling => {}
            Signal::Stop => return None,
        }
        Some(())
    }
}

impl<F: Fn() -> Vec<PathBuf>> FolderScanner<F> {
    /// Lists the folders, watches those not watched yet, and returns whether anything differs from the last scan.
    fn scan(&mut self, burst: &Burst) -> bool {
        let mut folders = (self.folders)();
        let mut force = burst.folder;
        for _ in 0..MAX_WATCH_ATTEMPTS {
            let folders_to_watch = self.folders_to_watch(&folders);
            let up_to_date = self.active.as_ref().is_some_and(|active| active.folders_to_watch == folders_to_watch);
            if up_to_date && !force {
                break;
            }
            self.activate(folders_to_watch, &folders);
            if self.active.is_none() {
                break;
            }
            // A folder created after the listing and before its watch would be missed, so list again.
            force = false;
            folders = (self.folders)();
        }
        let fingerprint = fingerprint(&folders);
        let differs = fingerprint != self.last_fingerprint;
        self.last_fingerprint = fingerprint;
        differs
    }

    fn folders_to_watch(&self, folders: &[PathBuf]) -> WatchedFolders {
        let mut folders_to_watch = WatchedFolders::new();
        let mut add = |path: &Path| {
            // Events carry the watched path, so watch the canonical one.
            if let Some(path) = nearest_existing(path)
                && let Ok(is) = fs::metadata(&path)
            {
                folders_to_watch.entry(Identity::of(&path, &is)).or_insert(path);
            }
        };
        for folder in folders {
            add(folder);
        }
        // The parent folder reports that a root is deleted and recreated.
        for root in root_folders(folders).iter().chain(&self.requested_roots) {
            add(&parent_folder(root));
        }
        folders_to_watch
    }

    /// Starts the new watches before the old ones are dropped, so that no event is lost in between.
    fn activate(&mut self, folders_to_watch: WatchedFolders, folders: &[PathBuf]) {
        let active = watcher(&folders_to_watch, folders, self.signals.clone());
        let failure = match active {
            Ok((watcher, failure)) => {
                self.active = Some(ActiveWatcher { _watcher: watcher, folders_to_watch });
                failure
            }
            Err(error) => {
                self.active = None;
                Some(error)
            }
        };
        match failure {
            None => self.has_warned = false,
            Some(_) if self.has_warned => {}
            Some(error) => {
                self.has_warned = true;
                warn!(%error, every = ?POLL_INTERVAL, "cannot watch all folders, falling back to polling");
            }
        }
    }
}

/// A watcher of all folders, and the first error of a folder that cannot be watched.
fn watcher(
    folders_to_watch: &WatchedFolders,
    folders: &[PathBuf],
    signals: Sender<Signal>,
) -> notify::Result<(RecommendedWatcher, Option<notify::Error>)> {
    let listed: HashSet<PathBuf> = folders.iter().filter_map(|path| nearest_existing(path)).collect();
    let all: HashSet<PathBuf> = folders_to_watch.values().cloned().collect();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        if let Some(signal) = classify(event, &listed, &all) {
            // Fails only while the watcher is being dropped.
            let _ = signals.send(signal);
        }
    })?;
    let mut failure = None;
    for folder in folders_to_watch.values() {
        if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
            failure.get_or_insert(error);
        }
    }
    Ok((watcher, failure))
}

fn classify(event: notify::Result<Event>, listed: &HashSet<PathBuf>, watched: &HashSet<PathBuf>) -> Option<Signal> {
    let Ok(event) = event else {
        return Some(Signal::Folder);
    };
    if event.need_rescan() {
        return Some(Signal::Folder);
    }
    // Caused by our own reads.
    if matches!(event.kind, EventKind::Access(_)) {
        return None;
    }
    let contents = matches!(event.kind, EventKind::Modify(Data(_) | Metadata(_)));
    if !contents && event.paths.iter().any(|path| watched.contains(path)) {
        return Some(Signal::Folder);
    }
    let in_listed = |path: &PathBuf| path.parent().is_some_and(|folder| listed.contains(folder)) && is_relevant(path);
    if event.paths.is_empty() || event.paths.iter().any(in_listed) {
        return Some(Signal::Contents);
    }
    // A log file that grows next to the mappings is no reason to scan, and a new one none to read them.
    (!contents).then_some(Signal::Sibling)
}

/// Whether a name may be that of a mapping or of a folder.
fn is_relevant(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_none_or(|name| may_belong(name) || !name.contains('.'))
}

/// A cheap hash of the metadata in the folders. Equal fingerprints almost certainly mean equal contents.
fn fingerprint(folders: &[PathBuf]) -> u64 {
    let mut entries: Vec<EntryStamp> = relevant_entries(folders).iter().map(|path| entry_stamp(path)).collect();
    entries.sort();
    let mut hasher = DefaultHasher::new();
    entries.hash(&mut hasher);
    hasher.finish()
}

/// The folders and what is in them, but for foreign files.
fn relevant_entries(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut entries = Vec::new();
    for folder in folders {
        entries.push(folder.clone());
        if let Ok(listed) = fs::read_dir(folder) {
            entries.extend(listed.flatten().filter(|entry| !is_foreign(entry)).map(|entry| entry.path()));
        }
    }
    entries
}

type EntryStamp = (PathBuf, Option<(Identity, u64, i128)>);

/// The identity of a folder: its time changes with every temporary file. Of a file also size and time.
fn entry_stamp(path: &Path) -> EntryStamp {
    let print = fs::metadata(path).ok().map(|is| {
        let identity = Identity::of(path, &is);
        if is.is_dir() { (identity, 0, 0) } else { (identity, is.len(), changed_at(&is)) }
    });
    (path.to_owned(), print)
}

impl Identity {
    #[cfg(unix)]
    fn of(_path: &Path, is: &fs::Metadata) -> Identity {
        use std::os::unix::fs::MetadataExt;
        Identity(is.dev(), is.ino(), None)
    }

    #[cfg(not(unix))]
    fn of(path: &Path, _is: &fs::Metadata) -> Identity {
        Identity(0, 0, Some(path.to_owned()))
    }
}

/// The inode change time: unlike the modification time, a copy that preserves times updates it.
#[cfg(unix)]
fn changed_at(is: &fs::Metadata) -> i128 {
    use std::os::unix::fs::MetadataExt;
    i128::from(is.ctime()) * 1_000_000_000 + i128::from(is.ctime_nsec())
}

#[cfg(not(unix))]
fn changed_at(is: &fs::Metadata) -> i128 {
    let written = is.modified().ok();
    let since = written.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    since.map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(0))
}

/// The folders without a listed parent.
fn root_folders(folders: &[PathBuf]) -> BTreeSet<PathBuf> {
    let listed: HashSet<&Path> = folders.iter().map(PathBuf::as_path).collect();
    let is_top = |folder: &&PathBuf| folder.parent().is_none_or(|parent_folder| !listed.contains(parent_folder));
    folders.iter().filter(is_top).cloned().collect()
}

/// The parent of a path, by name where possible: `a/..` would resolve a symlink `a` first.
pub(super) fn parent_folder(path: &Path) -> PathBuf {
    match (path.file_name(), path.parent()) {
        (Some(_), Some(parent)) if parent.as_os_str().is_empty() => PathBuf::from("."),
        (Some(_), Some(parent)) => parent.to_owned(),
        _ => path.join(".."),
    }
}

/// The canonical path of a folder or, while it does not exist, of its nearest existing ancestor.
fn nearest_existing(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    loop {
        match fs::canonicalize(&path) {
            Ok(real) if real.is_dir() => return Some(real),
            Ok(_) | Err(_) => {}
        }
        match (path.file_name(), path.parent()) {
            (Some(_), Some(_)) => path = parent_folder(&path),
            _ => return None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#[path = "../../tests/unit/reload_watcher.rs"]
mod tests;

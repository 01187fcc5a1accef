//! Noticing that files may have changed, however they were saved.
//!
//! Folders are watched, never files: an editor's save and a ConfigMap's swap replace the file that a watch on it would
//! hold. What kind of event came is not trusted; it only says "look again". And since events get lost (a network
//! mount, a full queue, a folder that was deleted and made again), a look every two seconds does not wait for one.

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

/// A save is several events; after this much silence it is over.
const QUIET: Duration = Duration::from_millis(15);
/// Where something writes all the time, nobody waits longer than this.
const LONGEST: Duration = Duration::from_millis(250);
const POLL: Duration = Duration::from_secs(2);
/// How often folders may change while they are being listed, before the poll takes over.
const ARM_TRIES: usize = 5;

/// Calls `on_change` from a thread of its own when something below the folders may have changed. Dropping it stops the
/// thread, and `on_change` is not called after that.
pub struct Watch {
    signals: Sender<Signal>,
    thread: Option<JoinHandle<()>>,
}

/// What an event may mean.
#[derive(Clone, Copy)]
enum Signal {
    /// Something in a listed folder changed: a call is due.
    Inside,
    /// A watched folder itself came, went or moved: its watch may be dead.
    Folder,
    /// Something changed next to a listed folder: a call is due only if it made a difference.
    Beside,
    Stop,
}

/// What came during one burst of events.
#[derive(Default)]
struct Burst {
    inside: bool,
    folder: bool,
}

struct Looker<F> {
    folders: F,
    /// The topmost folders of the first listing: what was asked for, also while it does not exist.
    asked: BTreeSet<PathBuf>,
    signals: Sender<Signal>,
    armed: Option<Armed>,
    /// Whether the log already says that not everything can be watched.
    told: bool,
    seen: u64,
}

struct Armed {
    _watcher: RecommendedWatcher,
    places: Places,
}

/// The folders to arm, by who they are: one folder under two names would be one watch, and removing one name would
/// remove it for both.
type Places = BTreeMap<Identity, PathBuf>;

/// Device and inode; on other systems the path has to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Identity(u64, u64, Option<PathBuf>);

impl Watch {
    /// Starts watching. `folders` lists what to watch, each folder by itself, and is asked again at every look.
    /// What is saved after this returns is noticed, so start the watch first and read the files then. Where the
    /// system offers no watching, the look every two seconds remains.
    pub fn start(
        folders: impl Fn() -> Vec<PathBuf> + Send + 'static,
        on_change: impl FnMut() + Send + 'static,
    ) -> Result<Watch, String> {
        let (signals, heard) = mpsc::channel();
        let mut looker =
            Looker { asked: tops(&folders()), folders, signals: signals.clone(), armed: None, told: false, seen: 0 };
        looker.look(&Burst::default());
        let thread = thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || run(looker, &heard, on_change))
            .map_err(|error| format!("cannot start the thread that watches files: {error}"))?;
        Ok(Watch { signals, thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.signals.send(Signal::Stop);
        if let Some(thread) = self.thread.take() {
            // Dropped by `on_change` itself, the thread would wait for its own end.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

fn run<F>(mut looker: Looker<F>, heard: &Receiver<Signal>, mut on_change: impl FnMut())
where
    F: Fn() -> Vec<PathBuf>,
{
    while let Some(burst) = next_burst(heard) {
        // The print is taken before the call, so that what changes while files are read is found by the next look.
        let differs = looker.look(&burst);
        if (burst.inside || differs) && catch_unwind(AssertUnwindSafe(&mut on_change)).is_err() {
            // One bad file must not be the end of reloading.
            error!("a reload panicked, still watching");
        }
    }
}

/// Waits for events until they pause, or for the poll. `None` means stop.
fn next_burst(heard: &Receiver<Signal>) -> Option<Burst> {
    let mut burst = Burst::default();
    match heard.recv_timeout(POLL) {
        Ok(signal) => burst.add(signal)?,
        Err(RecvTimeoutError::Timeout) => return Some(burst),
        Err(RecvTimeoutError::Disconnected) => return None,
    }
    let end = Instant::now() + LONGEST;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Some(burst);
        }
        match heard.recv_timeout(QUIET.min(left)) {
            Ok(signal) => burst.add(signal)?,
            Err(RecvTimeoutError::Timeout) => return Some(burst),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

impl Burst {
    fn add(&mut self, signal: Signal) -> Option<()> {
        match signal {
            Signal::Inside => self.inside = true,
            Signal::Folder => (self.inside, self.folder) = (true, true),
            Signal::Beside => {}
            Signal::Stop => return None,
        }
        Some(())
    }
}

impl<F: Fn() -> Vec<PathBuf>> Looker<F> {
    /// Lists the folders, arms what is not armed, and says whether anything differs from the last look.
    fn look(&mut self, burst: &Burst) -> bool {
        let mut folders = (self.folders)();
        let mut force = burst.folder;
        for _ in 0..ARM_TRIES {
            let places = self.places(&folders);
            let armed = self.armed.as_ref().is_some_and(|armed| armed.places == places);
            if armed && !force {
                break;
            }
            self.arm(places, &folders);
            if self.armed.is_none() {
                break;
            }
            // A folder that was made after the listing and before the arming would be missed.
            force = false;
            folders = (self.folders)();
        }
        let print = fingerprint(&folders);
        let differs = print != self.seen;
        self.seen = print;
        differs
    }

    fn places(&self, folders: &[PathBuf]) -> Places {
        let mut places = Places::new();
        let mut add = |path: &Path| {
            // Events come with the path that was armed; the real one is the same for everybody.
            if let Some(path) = nearest(path)
                && let Ok(is) = fs::metadata(&path)
            {
                places.entry(Identity::of(&path, &is)).or_insert(path);
            }
        };
        for folder in folders {
            add(folder);
        }
        // The folder above sees a root go and come back.
        for root in tops(folders).iter().chain(&self.asked) {
            add(&above(root));
        }
        places
    }

    /// Arms the new places before the old ones are let go, so that nothing falls between.
    fn arm(&mut self, places: Places, folders: &[PathBuf]) {
        let armed = watcher(&places, folders, self.signals.clone());
        let trouble = match armed {
            Ok((watcher, trouble)) => {
                self.armed = Some(Armed { _watcher: watcher, places });
                trouble
            }
            Err(error) => {
                self.armed = None;
                Some(error)
            }
        };
        match trouble {
            None => self.told = false,
            Some(_) if self.told => {}
            Some(error) => {
                self.told = true;
                warn!(%error, every = ?POLL, "cannot watch all folders, looking at them from time to time");
            }
        }
    }
}

/// A watcher over all places, and the first trouble there was with one of them.
fn watcher(
    places: &Places,
    folders: &[PathBuf],
    signals: Sender<Signal>,
) -> notify::Result<(RecommendedWatcher, Option<notify::Error>)> {
    let listed: HashSet<PathBuf> = folders.iter().filter_map(|path| nearest(path)).collect();
    let all: HashSet<PathBuf> = places.values().cloned().collect();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        if let Some(signal) = meaning(event, &listed, &all) {
            // It fails only while the watch is being dropped.
            let _ = signals.send(signal);
        }
    })?;
    let mut trouble = None;
    for place in places.values() {
        if let Err(error) = watcher.watch(place, RecursiveMode::NonRecursive) {
            trouble.get_or_insert(error);
        }
    }
    Ok((watcher, trouble))
}

fn meaning(event: notify::Result<Event>, listed: &HashSet<PathBuf>, armed: &HashSet<PathBuf>) -> Option<Signal> {
    let Ok(event) = event else {
        return Some(Signal::Folder);
    };
    if event.need_rescan() {
        return Some(Signal::Folder);
    }
    // Our own reading makes these.
    if matches!(event.kind, EventKind::Access(_)) {
        return None;
    }
    let contents = matches!(event.kind, EventKind::Modify(Data(_) | Metadata(_)));
    if !contents && event.paths.iter().any(|path| armed.contains(path)) {
        return Some(Signal::Folder);
    }
    let is_inside = |path: &PathBuf| path.parent().is_some_and(|folder| listed.contains(folder));
    if event.paths.is_empty() || event.paths.iter().any(is_inside) {
        return Some(Signal::Inside);
    }
    // A log file that grows beside the mappings is no reason to look.
    (!contents).then_some(Signal::Beside)
}

/// A cheap print of everything in the folders: what has the same print has, but for luck, the same contents.
fn fingerprint(folders: &[PathBuf]) -> u64 {
    let mut entries = Vec::new();
    for folder in folders {
        entries.push(entry(folder));
        if let Ok(listed) = fs::read_dir(folder) {
            entries.extend(listed.flatten().map(|one| entry(&one.path())));
        }
    }
    entries.sort();
    let mut hasher = DefaultHasher::new();
    entries.hash(&mut hasher);
    hasher.finish()
}

type Entry = (PathBuf, Option<(Identity, u64, i128)>);

/// Of a folder only who it is, for its time changes with every scratch file in it; of a file also size and time.
fn entry(path: &Path) -> Entry {
    let print = fs::metadata(path).ok().map(|is| {
        let who = Identity::of(path, &is);
        if is.is_dir() { (who, 0, 0) } else { (who, is.len(), changed_at(&is)) }
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

/// The time of the last change of any kind: unlike the time of the last write, a copy that keeps times moves it.
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

/// The folders whose parent is not listed.
fn tops(folders: &[PathBuf]) -> BTreeSet<PathBuf> {
    let listed: HashSet<&Path> = folders.iter().map(PathBuf::as_path).collect();
    let is_top = |folder: &&PathBuf| folder.parent().is_none_or(|above| !listed.contains(above));
    folders.iter().filter(is_top).cloned().collect()
}

/// The folder above a path, by name.
fn above(path: &Path) -> PathBuf {
    match (path.file_name(), path.parent()) {
        (Some(_), Some(parent)) if parent.as_os_str().is_empty() => PathBuf::from("."),
        (Some(_), Some(parent)) => parent.to_owned(),
        _ => path.join(".."),
    }
}

/// The real path of a folder or, while it does not exist, of the nearest folder above it.
fn nearest(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    loop {
        match fs::canonicalize(&path) {
            Ok(real) if real.is_dir() => return Some(real),
            Ok(_) | Err(_) => {}
        }
        match (path.file_name(), path.parent()) {
            (Some(_), Some(_)) => path = above(&path),
            _ => return None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::{
        cell::RefCell,
        io::Write,
        os::unix::fs::symlink,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use notify::event::RemoveKind;
    use tempfile::TempDir;

    use super::*;

    /// Ten times what a save may take: a loaded machine is slow, a save that is missed takes for ever.
    const FAR_TOO_LONG: Duration = Duration::from_secs(3);
    const ROUNDS: usize = 5;

    #[test]
    fn a_write_in_place_is_noticed() {
        let scene = Scene::plain();
        for round in 0..ROUNDS {
            let text = format!("in place {round}");
            fs::write(scene.file(), &text).unwrap();
            scene.expect("write in place", &text);
        }
        scene.assert_told_by_events();
    }

    #[test]
    fn a_rename_over_the_file_is_noticed() {
        let scene = Scene::plain();
        for round in 0..ROUNDS {
            let text = format!("renamed {round}");
            fs::write(scene.path("set/.new"), &text).unwrap();
            let saved = Instant::now();
            fs::rename(scene.path("set/.new"), scene.file()).unwrap();
            scene.expect_since("rename over", &text, saved);
        }
        scene.assert_told_by_events();
    }

    #[test]
    fn a_move_away_and_a_new_file_are_noticed() {
        let scene = Scene::plain();
        for round in 0..ROUNDS {
            let text = format!("created {round}");
            fs::rename(scene.file(), scene.path("set/gateway.yaml~")).unwrap();
            fs::write(scene.file(), &text).unwrap();
            scene.expect("move away, create", &text);
        }
        scene.assert_told_by_events();
    }

    #[test]
    fn the_second_half_of_a_slow_save_is_noticed() {
        let scene = Scene::plain();
        for round in 0..ROUNDS {
            let text = format!("first half, second half {round}");
            let (first, second) = text.split_at(11);
            let mut file = fs::File::create(scene.file()).unwrap();
            file.write_all(first.as_bytes()).unwrap();
            thread::sleep(Duration::from_millis(40));
            file.write_all(second.as_bytes()).unwrap();
            scene.expect("half, 40 ms, half", &text);
        }
        scene.assert_told_by_events();
    }

    #[test]
    fn a_config_map_swap_is_noticed() {
        let scene = Scene::new(|root| {
            fs::create_dir_all(root.join("set/..0")).unwrap();
            fs::write(root.join("set/..0/gateway.yaml"), "swapped").unwrap();
            symlink("..0", root.join("set/..data")).unwrap();
            symlink("..data/gateway.yaml", root.join("set/gateway.yaml")).unwrap();
        });
        for round in 1..=ROUNDS {
            let text = format!("swapped {round}");
            let (old, new) = (format!("..{}", round - 1), format!("..{round}"));
            fs::create_dir(scene.path("set").join(&new)).unwrap();
            fs::write(scene.path("set").join(&new).join("gateway.yaml"), &text).unwrap();
            // The kubelet's files are complete long before the swap; its watch must not need them to be fresh.
            thread::sleep(Duration::from_millis(100));
            symlink(&new, scene.path("set/..data_tmp")).unwrap();
            let saved = Instant::now();
            fs::rename(scene.path("set/..data_tmp"), scene.path("set/..data")).unwrap();
            scene.expect_since("ConfigMap swap", &text, saved);
            fs::remove_dir_all(scene.path("set").join(old)).unwrap();
        }
        scene.assert_told_by_events();
    }

    #[test]
    fn a_folder_that_is_deleted_and_made_again_is_noticed_and_watched_again() {
        let scene = Scene::plain();
        for round in 0..2 * ROUNDS {
            fs::remove_dir_all(scene.path("set")).unwrap();
            let how = if round % 2 == 0 {
                "folder made again at once"
            } else {
                // Long enough for the empty place to be seen.
                thread::sleep(Duration::from_millis(100));
                "folder made again later"
            };
            let text = format!("made again {round}");
            fs::create_dir(scene.path("set")).unwrap();
            fs::write(scene.file(), &text).unwrap();
            scene.expect(how, &text);
            let text = format!("and written {round}");
            fs::write(scene.file(), &text).unwrap();
            scene.expect("write in that folder", &text);
        }
        scene.assert_told_by_events();
    }

    #[test]
    fn a_folder_that_is_replaced_by_another_is_noticed_and_watched() {
        let scene = Scene::plain();
        for round in 0..ROUNDS {
            let text = format!("replaced {round}");
            fs::create_dir(scene.path("next")).unwrap();
            fs::write(scene.path("next/gateway.yaml"), &text).unwrap();
            let saved = Instant::now();
            fs::rename(scene.path("set"), scene.path("last")).unwrap();
            fs::rename(scene.path("next"), scene.path("set")).unwrap();
            scene.expect_since("folder replaced", &text, saved);
            fs::remove_dir_all(scene.path("last")).unwrap();
            let text = format!("and written {round}");
            fs::write(scene.file(), &text).unwrap();
            scene.expect("write in that folder", &text);
        }
        scene.assert_told_by_events();
    }

    #[test]
    fn a_link_to_another_folder_is_noticed() {
        let scene = Scene::new(|root| {
            for release in ["0", "1"] {
                fs::create_dir_all(root.join("releases").join(release)).unwrap();
                let text = format!("release {release}");
                fs::write(root.join("releases").join(release).join("gateway.yaml"), text).unwrap();
            }
            symlink("releases/0", root.join("set")).unwrap();
        });
        for round in 1..=ROUNDS {
            let release = (round % 2).to_string();
            symlink(Path::new("releases").join(&release), scene.path("set.new")).unwrap();
            let saved = Instant::now();
            fs::rename(scene.path("set.new"), scene.path("set")).unwrap();
            scene.expect_since("root link swap", &format!("release {release}"), saved);
        }
        scene.assert_told_by_events();
    }

    #[test]
    fn a_change_that_no_event_tells_is_found_by_the_poll() {
        let scene = Scene::new(|root| {
            for release in ["0", "1"] {
                fs::create_dir_all(root.join("far").join(release)).unwrap();
                fs::write(root.join("far").join(release).join("file"), release).unwrap();
            }
            symlink("0", root.join("far/current")).unwrap();
            fs::create_dir(root.join("set")).unwrap();
            symlink("../far/current/file", root.join("set/gateway.yaml")).unwrap();
        });
        symlink("1", scene.path("far/new")).unwrap();
        fs::rename(scene.path("far/new"), scene.path("far/current")).unwrap();
        // The usual time counts from the moment at which the poll is due.
        scene.expect_since("after the poll", "1", Instant::now() + POLL);
    }

    #[test]
    fn a_new_folder_is_watched() {
        let scene = Scene::plain();
        fs::create_dir(scene.path("set/dialects")).unwrap();
        scene.wait("folder made", || scene.calls() > 0);
        thread::sleep(Duration::from_millis(100));
        let before = scene.calls();
        let saved = Instant::now();
        fs::write(scene.path("set/dialects/chat.yaml"), "new").unwrap();
        scene.wait("write in a new folder", || scene.calls() > before);
        println!("write in a new folder: {:?}", saved.elapsed());
    }

    #[test]
    fn nothing_is_called_while_nothing_changes_or_something_beside_does() {
        let scene = Scene::plain();
        let mut log = fs::File::create(scene.path("server.log")).unwrap();
        for _ in 0..25 {
            log.write_all(b"a line\n").unwrap();
            fs::read_to_string(scene.file()).unwrap();
            thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(scene.calls(), 0);
    }

    #[test]
    fn steady_writing_delays_a_call_by_a_bounded_time() {
        let scene = Scene::plain();
        let begun = Instant::now();
        while scene.calls() == 0 {
            fs::write(scene.path("set/busy"), "x").unwrap();
            thread::sleep(Duration::from_millis(2));
            assert!(begun.elapsed() < FAR_TOO_LONG);
        }
        println!("steady writing, first call: {:?}", begun.elapsed());
    }

    #[test]
    fn a_panic_in_the_call_does_not_end_the_watch() {
        let scene = Scene::plain();
        fs::write(scene.file(), "panic").unwrap();
        scene.wait("panic", || scene.calls() > 0);
        fs::write(scene.file(), "fine again").unwrap();
        scene.expect("write after a panic", "fine again");
    }

    #[test]
    fn nothing_is_called_after_the_drop() {
        let Scene { disk, calls, watch, .. } = Scene::plain();
        drop(watch);
        fs::write(disk.path().join("set/gateway.yaml"), "late").unwrap();
        thread::sleep(Duration::from_millis(100));
        assert_eq!(calls.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_folder_that_went_is_armed_again_even_if_the_new_one_has_its_inode() {
        let disk = TempDir::new().unwrap();
        let root = fs::canonicalize(disk.path()).unwrap();
        let (signals, heard) = mpsc::channel();
        let mut looker = Looker {
            folders: {
                let root = root.clone();
                move || vec![root.clone()]
            },
            asked: BTreeSet::new(),
            signals,
            armed: None,
            told: false,
            seen: 0,
        };
        looker.look(&Burst::default());
        // What the system does when the folder goes: the watch ends, though the folder seems to be the same.
        let armed = looker.armed.as_mut().unwrap();
        armed._watcher.unwatch(&root).unwrap();
        let gone = Event::new(EventKind::Remove(RemoveKind::Folder)).add_path(root.clone());
        let listed = HashSet::from([root.clone()]);
        let mut burst = Burst::default();
        burst.add(meaning(Ok(gone), &listed, &listed).unwrap());
        looker.look(&burst);
        fs::write(root.join("new.yaml"), "new").unwrap();
        while !matches!(heard.recv_timeout(FAR_TOO_LONG).unwrap(), Signal::Inside) {}
    }

    #[test]
    fn what_no_event_tells_is_found_by_its_print() {
        let disk = TempDir::new().unwrap();
        let file = disk.path().join("a.yaml");
        fs::write(&file, "one").unwrap();
        let folders = [disk.path().to_owned()];
        let before = fingerprint(&folders);
        assert_eq!(fingerprint(&folders), before);
        // Same size, same time of writing: only the time of change and the inode tell.
        let written = fs::metadata(&file).unwrap().modified().unwrap();
        let other = disk.path().join("b");
        fs::write(&other, "two").unwrap();
        let times = fs::FileTimes::new().set_modified(written);
        fs::File::options().write(true).open(&other).unwrap().set_times(times).unwrap();
        fs::rename(&other, &file).unwrap();
        assert_ne!(fingerprint(&folders), before);
    }

    /// A set with one file, a watch on it, and what the file held at each call.
    struct Scene {
        disk: TempDir,
        calls: std::sync::Arc<AtomicUsize>,
        seen: Receiver<String>,
        fastest: RefCell<BTreeMap<String, Duration>>,
        watch: Watch,
    }

    impl Scene {
        fn plain() -> Scene {
            Scene::new(|root| {
                fs::create_dir(root.join("set")).unwrap();
                fs::write(root.join("set/gateway.yaml"), "before").unwrap();
            })
        }

        fn new(prepare: impl FnOnce(&Path)) -> Scene {
            let disk = TempDir::new().unwrap();
            prepare(disk.path());
            let calls = std::sync::Arc::new(AtomicUsize::new(0));
            let (tell, seen) = mpsc::channel();
            let root = disk.path().join("set");
            let on_change = {
                let (calls, file) = (std::sync::Arc::clone(&calls), root.join("gateway.yaml"));
                move || {
                    calls.fetch_add(1, Ordering::SeqCst);
                    let text = fs::read_to_string(&file).unwrap_or_default();
                    assert!(text != "panic", "as asked");
                    let _ = tell.send(text);
                }
            };
            let watch = Watch::start(move || listed(&root), on_change).unwrap();
            Scene { disk, calls, seen, fastest: RefCell::default(), watch }
        }

        fn path(&self, path: &str) -> PathBuf {
            self.disk.path().join(path)
        }

        fn file(&self) -> PathBuf {
            self.path("set/gateway.yaml")
        }

        fn calls(&self) -> usize {
            self.calls.load(Ordering::SeqCst)
        }

        fn expect(&self, how: &str, text: &str) {
            self.expect_since(how, text, Instant::now());
        }

        fn expect_since(&self, how: &str, text: &str, saved: Instant) {
            loop {
                let end = saved + FAR_TOO_LONG;
                let left = end.saturating_duration_since(Instant::now());
                let Ok(seen) = self.seen.recv_timeout(left) else {
                    panic!("{how}: {text:?} was not seen within {FAR_TOO_LONG:?}");
                };
                if seen == text {
                    let took = saved.elapsed();
                    println!("{how}: {took:?}");
                    let mut fastest = self.fastest.borrow_mut();
                    let best = fastest.entry(how.to_owned()).or_insert(took);
                    *best = took.min(*best);
                    return;
                }
            }
        }

        /// Each way of saving was, at least once, noticed sooner than the poll would have.
        fn assert_told_by_events(&self) {
            for (how, took) in &*self.fastest.borrow() {
                assert!(*took < POLL / 2, "{how}: {took:?}");
            }
        }

        fn wait(&self, what: &str, done: impl Fn() -> bool) {
            let begun = Instant::now();
            while !done() {
                assert!(begun.elapsed() < FAR_TOO_LONG, "{what}");
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// The root, its plain folders, and where its links lead.
    fn listed(root: &Path) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        let Ok(entries) = fs::read_dir(root) else {
            return folders;
        };
        folders.push(root.to_owned());
        folders.extend(fs::canonicalize(root));
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.extend(fs::canonicalize(path));
            }
        }
        folders.sort();
        folders.dedup();
        folders
    }
}

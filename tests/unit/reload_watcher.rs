//! Unit tests of `reload::watcher`.

use std::{
    io::Write,
    os::unix::fs::symlink,
    sync::atomic::{AtomicUsize, Ordering},
};

use notify::event::RemoveKind;
use tempfile::TempDir;

use super::*;

/// It only decides how long a failure takes: without the poll, a missed save is never noticed.
const TIMEOUT: Duration = Duration::from_secs(60);
const ROUNDS: usize = 5;

#[test]
fn a_write_in_place_is_noticed() {
    let fixture = WatchFixture::plain();
    for round in 0..ROUNDS {
        let text = format!("in place {round}");
        fs::write(fixture.file(), &text).unwrap();
        fixture.expect("write in place", &text);
    }
}

#[test]
fn an_event_of_a_foreign_file_is_no_reason_to_read_the_set() {
    let listed = HashSet::from([PathBuf::from("/set")]);
    let signal = |kind: EventKind, name: &str| {
        let event = Event::new(kind).add_path(Path::new("/set").join(name));
        classify(Ok(event), &listed, &listed)
    };
    let written = EventKind::Modify(Data(notify::event::DataChange::Content));
    let created = EventKind::Create(notify::event::CreateKind::File);
    assert!(signal(written, "access.log").is_none());
    assert!(matches!(signal(created, "access.log"), Some(Signal::Sibling)));
    for relevant in ["gateway.yaml", "chunk.json", "folder"] {
        assert!(matches!(signal(written, relevant), Some(Signal::Contents)), "{relevant}");
        assert!(matches!(signal(created, relevant), Some(Signal::Contents)), "{relevant}");
    }
}

#[test]
fn foreign_files_are_not_looked_at() {
    let fixture = WatchFixture::plain();
    let folders = [fixture.path("set")];
    let before = relevant_entries(&folders);
    let print = fingerprint(&folders);
    for number in 0..500 {
        fs::write(fixture.path(&format!("set/{number}.log")), "").unwrap();
    }
    assert_eq!(relevant_entries(&folders), before);
    assert_eq!(fingerprint(&folders), print);
    fs::write(fixture.path("set/shared.yaml"), "").unwrap();
    assert_ne!(fingerprint(&folders), print);
}

#[test]
fn a_rename_over_the_file_is_noticed() {
    let fixture = WatchFixture::plain();
    for round in 0..ROUNDS {
        let text = format!("renamed {round}");
        fs::write(fixture.path("set/.new"), &text).unwrap();
        fs::rename(fixture.path("set/.new"), fixture.file()).unwrap();
        fixture.expect("rename over", &text);
    }
}

#[test]
fn a_move_away_and_a_new_file_are_noticed() {
    let fixture = WatchFixture::plain();
    for round in 0..ROUNDS {
        let text = format!("created {round}");
        fs::rename(fixture.file(), fixture.path("set/gateway.yaml~")).unwrap();
        fs::write(fixture.file(), &text).unwrap();
        fixture.expect("move away, create", &text);
    }
}

#[test]
fn the_second_half_of_a_slow_save_is_noticed() {
    let fixture = WatchFixture::plain();
    for round in 0..ROUNDS {
        let text = format!("first half, second half {round}");
        let (first, second) = text.split_at(11);
        let mut file = fs::File::create(fixture.file()).unwrap();
        file.write_all(first.as_bytes()).unwrap();
        thread::sleep(Duration::from_millis(40));
        file.write_all(second.as_bytes()).unwrap();
        fixture.expect("half, 40 ms, half", &text);
    }
}

#[test]
fn a_config_map_swap_is_noticed() {
    let fixture = WatchFixture::new(SafetyPoll::Off, |root| {
        fs::create_dir_all(root.join("set/..0")).unwrap();
        fs::write(root.join("set/..0/gateway.yaml"), "swapped").unwrap();
        symlink("..0", root.join("set/..data")).unwrap();
        symlink("..data/gateway.yaml", root.join("set/gateway.yaml")).unwrap();
    });
    for round in 1..=ROUNDS {
        let text = format!("swapped {round}");
        let (old, new) = (format!("..{}", round - 1), format!("..{round}"));
        fs::create_dir(fixture.path("set").join(&new)).unwrap();
        fs::write(fixture.path("set").join(&new).join("gateway.yaml"), &text).unwrap();
        // The kubelet writes the files long before the swap, so the swap alone must be noticed.
        thread::sleep(Duration::from_millis(100));
        symlink(&new, fixture.path("set/..data_tmp")).unwrap();
        fs::rename(fixture.path("set/..data_tmp"), fixture.path("set/..data")).unwrap();
        fixture.expect("ConfigMap swap", &text);
        fs::remove_dir_all(fixture.path("set").join(old)).unwrap();
    }
}

#[test]
fn a_folder_that_is_deleted_and_recreated_is_noticed_and_watched_again() {
    let fixture = WatchFixture::plain();
    for round in 0..2 * ROUNDS {
        fs::remove_dir_all(fixture.path("set")).unwrap();
        let operation = if round % 2 == 0 {
            "folder made again at once"
        } else {
            // Long enough for the missing folder to be noticed.
            thread::sleep(Duration::from_millis(100));
            "folder made again later"
        };
        let text = format!("made again {round}");
        fs::create_dir(fixture.path("set")).unwrap();
        fs::write(fixture.file(), &text).unwrap();
        fixture.expect(operation, &text);
        let text = format!("and written {round}");
        fs::write(fixture.file(), &text).unwrap();
        fixture.expect("write in that folder", &text);
    }
}

#[test]
fn a_folder_that_is_replaced_by_another_is_noticed_and_watched() {
    let fixture = WatchFixture::plain();
    for round in 0..ROUNDS {
        let text = format!("replaced {round}");
        fs::create_dir(fixture.path("next")).unwrap();
        fs::write(fixture.path("next/gateway.yaml"), &text).unwrap();
        fs::rename(fixture.path("set"), fixture.path("last")).unwrap();
        fs::rename(fixture.path("next"), fixture.path("set")).unwrap();
        fixture.expect("folder replaced", &text);
        fs::remove_dir_all(fixture.path("last")).unwrap();
        let text = format!("and written {round}");
        fs::write(fixture.file(), &text).unwrap();
        fixture.expect("write in that folder", &text);
    }
}

#[test]
fn a_symlink_switched_to_another_folder_is_noticed() {
    let fixture = WatchFixture::new(SafetyPoll::Off, |root| {
        for release in ["0", "1"] {
            fs::create_dir_all(root.join("releases").join(release)).unwrap();
            let text = format!("release {release}");
            fs::write(root.join("releases").join(release).join("gateway.yaml"), text).unwrap();
        }
        symlink("releases/0", root.join("set")).unwrap();
    });
    for round in 1..=ROUNDS {
        let release = (round % 2).to_string();
        symlink(Path::new("releases").join(&release), fixture.path("set.new")).unwrap();
        fs::rename(fixture.path("set.new"), fixture.path("set")).unwrap();
        fixture.expect("root link swap", &format!("release {release}"));
    }
}

#[test]
fn a_change_without_an_event_is_found_by_polling() {
    let fixture = WatchFixture::new(SafetyPoll::On, |root| {
        for release in ["0", "1"] {
            fs::create_dir_all(root.join("far").join(release)).unwrap();
            fs::write(root.join("far").join(release).join("file"), release).unwrap();
        }
        symlink("0", root.join("far/current")).unwrap();
        fs::create_dir(root.join("set")).unwrap();
        symlink("../far/current/file", root.join("set/gateway.yaml")).unwrap();
    });
    symlink("1", fixture.path("far/new")).unwrap();
    fs::rename(fixture.path("far/new"), fixture.path("far/current")).unwrap();
    fixture.expect("after the poll", "1");
}

#[test]
fn a_new_folder_is_watched() {
    let fixture = WatchFixture::plain();
    fs::create_dir(fixture.path("set/dialects")).unwrap();
    fixture.wait("folder made", || fixture.calls() > 0);
    thread::sleep(Duration::from_millis(100));
    let before = fixture.calls();
    let saved = Instant::now();
    fs::write(fixture.path("set/dialects/chat.yaml"), "new").unwrap();
    fixture.wait("write in a new folder", || fixture.calls() > before);
    println!("write in a new folder: {:?}", saved.elapsed());
}

#[test]
fn writes_outside_the_listed_folders_do_not_call_back() {
    // Long enough for a poll.
    let fixture = WatchFixture::new(SafetyPoll::On, one_file);
    let mut log = fs::File::create(fixture.path("server.log")).unwrap();
    for _ in 0..25 {
        log.write_all(b"a line\n").unwrap();
        fs::read_to_string(fixture.file()).unwrap();
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(fixture.calls(), 0);
}

#[test]
fn continuous_writing_delays_the_callback_by_a_bounded_time() {
    let fixture = WatchFixture::plain();
    let started = Instant::now();
    while fixture.calls() == 0 {
        fs::write(fixture.path("set/busy"), "x").unwrap();
        thread::sleep(Duration::from_millis(2));
        assert!(started.elapsed() < TIMEOUT);
    }
    println!("steady writing, first call: {:?}", started.elapsed());
}

#[test]
fn a_panic_in_the_callback_does_not_end_the_watch() {
    let fixture = WatchFixture::plain();
    fs::write(fixture.file(), "panic").unwrap();
    fixture.wait("panic", || fixture.calls() > 0);
    fs::write(fixture.file(), "fine again").unwrap();
    fixture.expect("write after a panic", "fine again");
}

#[test]
fn the_callback_is_not_called_after_the_drop() {
    let WatchFixture { disk, calls, watch, .. } = WatchFixture::plain();
    drop(watch);
    fs::write(disk.path().join("set/gateway.yaml"), "late").unwrap();
    thread::sleep(Duration::from_millis(100));
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[test]
fn a_recreated_folder_is_watched_again_even_if_it_reuses_the_inode() {
    let disk = TempDir::new().unwrap();
    let root = fs::canonicalize(disk.path()).unwrap();
    let (signals, received) = mpsc::channel();
    let mut scanner = FolderScanner {
        folders: {
            let root = root.clone();
            move || vec![root.clone()]
        },
        requested_roots: BTreeSet::new(),
        signals,
        active: None,
        has_warned: false,
        last_fingerprint: 0,
    };
    scanner.scan(&Burst::default());
    // When the folder is deleted the system ends the watch, although the new folder looks the same.
    let active = scanner.active.as_mut().unwrap();
    active._watcher.unwatch(&root).unwrap();
    let gone = Event::new(EventKind::Remove(RemoveKind::Folder)).add_path(root.clone());
    let listed = HashSet::from([root.clone()]);
    let mut burst = Burst::default();
    burst.add(classify(Ok(gone), &listed, &listed).unwrap());
    scanner.scan(&burst);
    fs::write(root.join("new.yaml"), "new").unwrap();
    while !matches!(received.recv_timeout(TIMEOUT).unwrap(), Signal::Contents) {}
}

#[test]
fn a_change_without_an_event_changes_the_fingerprint() {
    let disk = TempDir::new().unwrap();
    let file = disk.path().join("a.yaml");
    fs::write(&file, "one").unwrap();
    let folders = [disk.path().to_owned()];
    let before = fingerprint(&folders);
    assert_eq!(fingerprint(&folders), before);
    // Same size and modification time: only the change time and the inode differ.
    let written = fs::metadata(&file).unwrap().modified().unwrap();
    let other = disk.path().join("b");
    fs::write(&other, "two").unwrap();
    let times = fs::FileTimes::new().set_modified(written);
    fs::File::options().write(true).open(&other).unwrap().set_times(times).unwrap();
    fs::rename(&other, &file).unwrap();
    assert_ne!(fingerprint(&folders), before);
}

/// A set with one file, a watcher on it, and the text of the file at each callback.
struct WatchFixture {
    disk: TempDir,
    calls: std::sync::Arc<AtomicUsize>,
    seen: Receiver<String>,
    watch: FolderWatcher,
}

impl WatchFixture {
    fn plain() -> WatchFixture {
        WatchFixture::new(SafetyPoll::Off, one_file)
    }

    fn new(poll: SafetyPoll, prepare: impl FnOnce(&Path)) -> WatchFixture {
        let disk = TempDir::new().unwrap();
        prepare(disk.path());
        let calls = std::sync::Arc::new(AtomicUsize::new(0));
        let (sender, seen) = mpsc::channel();
        let root = disk.path().join("set");
        let on_change = {
            let (calls, file) = (std::sync::Arc::clone(&calls), root.join("gateway.yaml"));
            move || {
                calls.fetch_add(1, Ordering::SeqCst);
                let text = fs::read_to_string(&file).unwrap_or_default();
                assert!(text != "panic", "a panic on request");
                let _ = sender.send(text);
            }
        };
        let watch = FolderWatcher::start(poll, move || listed(&root), on_change).unwrap();
        WatchFixture { disk, calls, seen, watch }
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

    fn expect(&self, operation: &str, text: &str) {
        let started = Instant::now();
        loop {
            let left = TIMEOUT.saturating_sub(started.elapsed());
            let Ok(seen) = self.seen.recv_timeout(left) else {
                panic!("{operation}: {text:?} was not seen");
            };
            if seen == text {
                return println!("{operation}: {:?}", started.elapsed());
            }
        }
    }

    fn wait(&self, what: &str, done: impl Fn() -> bool) {
        let started = Instant::now();
        while !done() {
            assert!(started.elapsed() < TIMEOUT, "{what}");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn one_file(root: &Path) {
    fs::create_dir(root.join("set")).unwrap();
    fs::write(root.join("set/gateway.yaml"), "before").unwrap();
}

/// The root, its folders, and the targets of its symlinks.
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

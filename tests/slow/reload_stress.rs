//! Stress test of hot reload: good and bad sets, by the admin listener and by the watcher, while clients read streams.
//!
//! The default run is short. REFRAME_STRESS=full (see tests/all.d/reload-stress) reloads 1,000 times by the admin
//! listener and 100 times by the watcher, during 500 streams; `./test soak MINUTES` until its share of the time is over.

use crate::soak::{ProcessStats, SoakLoad};
use crate::support::small_set::{expected_frames, small_dialect, small_set};
use crate::support::{AdminClient, Server, TestDir, chat, edited, eventually, serve};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

struct StressLoad {
    streams: usize,
    by_admin: usize,
    by_watch: usize,
    soak: SoakLoad,
}

impl StressLoad {
    fn from_env() -> StressLoad {
        let soak = SoakLoad::new(40, 500, 25);
        match std::env::var("REFRAME_STRESS").as_deref() {
            _ if soak.is_long => StressLoad { streams: soak.count, by_admin: 1_000, by_watch: 100, soak },
            Ok("full") => StressLoad { streams: 500, by_admin: 1_000, by_watch: 100, soak },
            _ => StressLoad { streams: soak.count, by_admin: 100, by_watch: 20, soak },
        }
    }
}

/// Milliseconds between two words of a stream: long enough for several reloads during every stream.
const PACE: u32 = 60;
/// Every third set is bad.
const BAD_RELOAD_INTERVAL: usize = 3;

#[test]
fn reloads_do_not_affect_streams_and_bad_sets_are_never_served() {
    let load = StressLoad::from_env();
    let dir = small_set(PACE);
    let server = serve().args(["--no-poll", "--mappings"]).arg(dir.path("mappings")).with_admin().start();
    let admin = server.admin();
    let before = ProcessStats::of(&server);
    let stats = StreamStats::default();
    let over = AtomicBool::new(false);
    let started = Instant::now();
    thread::scope(|scope| {
        // Stops the clients even if an assertion fails.
        let _stop = StopOnDrop(&over);
        for number in 0..load.streams {
            let (server, over, stats) = (&server, &over, &stats);
            scope.spawn(move || {
                // Staggered, so that reloads happen at every position of a stream.
                thread::sleep(Duration::from_millis(number as u64 * 1_200 / 200));
                read_streams(server, over, stats);
            });
        }
        eventually("all clients are connected", || (admin.status()["turns_in_flight"] == load.streams).then_some(()));
        let memory = crate::resident(&server);
        let mut driver = ReloadDriver {
            dir: &dir,
            admin,
            good: 1,
            kinds: BTreeSet::new(),
            reloads: &stats.reloads,
            server: &server,
            soak: &load.soak,
        };
        let admin_report = driver.reload_by_admin(load.by_admin);
        let watch_report = driver.reload_by_watcher(load.by_watch);
        let kinds = driver.kinds.len();
        let status = admin.status();
        println!("{admin_report}\n{watch_report}\n{kinds} kinds of bad files; {}", status["reloads"]);
        let after = crate::resident(&server);
        println!("  before {before}\n  during {}", ProcessStats::of(&server));
        println!("memory: {} MiB before, {} MiB after", memory >> 20, after >> 20);
        assert!(after <= memory * 3 / 2, "memory is not reused: {} MiB, then {} MiB", memory >> 20, after >> 20);
        assert!(load.soak.is_over() || kinds == BAD_SETS.len().min(load.by_admin / BAD_RELOAD_INTERVAL), "{kinds}");
    });
    let (complete, across) = (stats.complete.into_inner(), stats.across.into_inner());
    let generations = stats.marks.into_inner().unwrap().len();
    println!(
        "{complete} streams, {across} of them across a reload, {generations} generations served, {:.1?}",
        started.elapsed()
    );
    assert!(across >= load.streams, "{across}");
    assert!(load.soak.is_over() || generations >= load.by_admin / 20, "{generations}");

    // Without streams only the last generation remains.
    let generation_count = |status: &Value| status["generations"].as_array().unwrap().len();
    eventually("the old generations are freed", || (generation_count(&admin.status()) == 1).then_some(()));
    assert_eq!(admin.status()["turns_in_flight"], 0);
    println!("  after  {}", before.assert_returned(&server, 2));
    assert!(admin.metrics().contains("\nreframe_config_generations_in_memory 1\n"));
}

/// Stops the clients when it is dropped.
struct StopOnDrop<'c>(&'c AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

// ---- the clients

#[derive(Default)]
struct StreamStats {
    reloads: AtomicUsize,
    complete: AtomicUsize,
    across: AtomicUsize,
    marks: Mutex<BTreeSet<String>>,
}

/// Asserts that every frame of a stream belongs to the generation that the stream started with.
fn read_streams(server: &Server, over: &AtomicBool, stats: &StreamStats) {
    while !over.load(Ordering::SeqCst) {
        let mut stream = server.stream(chat("Hello!"));
        let first = stream.next().unwrap();
        let before = stats.reloads.load(Ordering::SeqCst);
        let frames = [vec![first], stream.rest()].concat();
        let after = stats.reloads.load(Ordering::SeqCst);
        let mark = frames[0].json()["mark"].as_str().unwrap().to_owned();
        let got: Vec<&str> = frames.iter().map(|frame| frame.data.as_str()).collect();
        assert_eq!(got, expected_frames(&mark));
        stats.complete.fetch_add(1, Ordering::SeqCst);
        stats.across.fetch_add(usize::from(before != after), Ordering::SeqCst);
        stats.marks.lock().unwrap().insert(mark);
    }
}

// ---- the reloads

struct ReloadDriver<'w> {
    dir: &'w TestDir,
    admin: AdminClient,
    /// The mark of the last good set.
    good: usize,
    kinds: BTreeSet<&'static str>,
    reloads: &'w AtomicUsize,
    server: &'w Server,
    soak: &'w SoakLoad,
}

impl ReloadDriver<'_> {
    fn reload_by_admin(&mut self, times: usize) -> String {
        let mut elapsed = Vec::new();
        let (mut applied, mut rejected) = (0, 0);
        while applied + rejected < times && !self.soak.is_over() {
            assert!(elapsed.len() < 3 * times, "the watch is always first");
            let is_bad = elapsed.len() % BAD_RELOAD_INTERVAL == BAD_RELOAD_INTERVAL - 1;
            let kind = is_bad.then(|| self.break_set(elapsed.len() / BAD_RELOAD_INTERVAL));
            if !is_bad {
                self.next_good();
            }
            let started = Instant::now();
            let (status, response) = self.admin.reload();
            elapsed.push(started.elapsed());
            match kind {
                Some(kind) => {
                    assert_eq!((status, &response["outcome"]), (422, &"rejected".into()), "{}: {response}", kind.name);
                    kind.assert_reported(&response["rejected"]);
                    rejected += 1;
                    kind.restore(self.dir, self.good);
                }
                // If the watcher applied the set first, the outcome is `unchanged`.
                None => {
                    assert_eq!(status, 200, "{response}");
                    applied += usize::from(response["outcome"] == "applied");
                }
            }
            self.assert_last_good_set_is_live();
        }
        elapsed.sort();
        let (median, slowest) = (elapsed[elapsed.len() / 2], elapsed[elapsed.len() - 1]);
        format!("admin: {applied} applied, {rejected} rejected; a reload: median {median:.0?}, slowest {slowest:.0?}")
    }

    fn reload_by_watcher(&mut self, times: usize) -> String {
        let mut elapsed = Vec::new();
        let (mut applied, mut rejected) = (0, 0);
        for number in (0..times).take_while(|number| *number < 2 || !self.soak.is_over()) {
            let before = self.admin.status();
            let started = Instant::now();
            if number % BAD_RELOAD_INTERVAL == BAD_RELOAD_INTERVAL - 1 {
                let kind = self.break_set(number / BAD_RELOAD_INTERVAL);
                let status = eventually("the set is rejected", || {
                    let status = self.admin.status();
                    (status["reloads"]["rejected"] != before["reloads"]["rejected"]).then_some(status)
                });
                assert_eq!(status["last_rejected"]["cause"], "watch");
                kind.assert_reported(&status["last_rejected"]);
                assert_eq!(status["generation"]["hash"], before["generation"]["hash"], "{}", kind.name);
                rejected += 1;
                kind.restore(self.dir, self.good);
                eventually("the rejection is resolved", || {
                    (self.admin.status()["config_state"] == "applied").then_some(())
                });
            } else {
                self.next_good();
                eventually("the set is applied", || {
                    let now = self.admin.status();
                    (now["generation"]["number"] != before["generation"]["number"]).then_some(())
                });
                assert_eq!(self.admin.status()["generation"]["cause"], "watch");
                applied += 1;
                elapsed.push(started.elapsed());
            }
            self.assert_last_good_set_is_live();
        }
        elapsed.sort();
        let (median, slowest) = (elapsed[elapsed.len() / 2], elapsed[elapsed.len() - 1]);
        format!(
            "watch: {applied} applied, {rejected} rejected; save to active: median {median:.0?}, slowest {slowest:.0?}"
        )
    }

    fn next_good(&mut self) {
        self.good += 1;
        self.dir.save(DIALECT, &small_dialect(self.good));
    }

    fn break_set(&mut self, number: usize) -> &'static BadSet {
        let kind = &BAD_SETS[number % BAD_SETS.len()];
        self.kinds.insert(kind.name);
        (kind.break_set)(self.dir, self.good);
        kind
    }

    /// Asserts that the last good set is served.
    fn assert_last_good_set_is_live(&self) {
        self.reloads.fetch_add(1, Ordering::SeqCst);
        eventually("the last good set serves", || {
            let status = self.admin.status();
            (status["config_state"] == "applied").then_some(())
        });
        assert_eq!(self.server.fetch(chat("Hello!").with("user", "quick")).json()["mark"], format!("g{}", self.good));
    }
}

// ---- bad sets

const DIALECT: &str = "mappings/dialects/tiny.yaml";
const BACKEND: &str = "mappings/backends/tiny.yaml";
const GATEWAY: &str = "mappings/gateway.yaml";
const WORDS: &str = "mappings/transcripts/words.jsonl";
const TEST: &str = "mappings/dialects/tiny.test.yaml";

struct BadSet {
    name: &'static str,
    code: &'static str,
    /// The file of the diagnostic, or empty if it has none.
    reported_file: &'static str,
    break_set: fn(&TestDir, usize),
}

impl BadSet {
    /// Asserts the code and the file of the first diagnostic.
    fn assert_reported(&self, rejected: &Value) {
        let finding = &rejected["diagnostics"][0];
        assert_eq!(finding["code"], self.code, "{}: {rejected}", self.name);
        let file = finding["file"].as_str().unwrap_or_default();
        assert!(file.ends_with(self.reported_file), "{}: {file}", self.name);
    }

    /// Restores the last good set.
    fn restore(&self, dir: &TestDir, good: usize) {
        let fresh = small_set(PACE);
        for file in [BACKEND, GATEWAY, WORDS] {
            if fs::read(dir.path(file)).ok() != fs::read(fresh.path(file)).ok() {
                dir.save(file, &fresh.read(file));
            }
        }
        for extra in [TEST, "mappings/dialects/latin.yaml", "mappings/profiles/p.yaml", "mappings/shared.yaml"] {
            let _ = fs::remove_file(dir.path(extra));
        }
        for extra in ["mappings/dialect", "mappings/profiles"] {
            let _ = fs::remove_dir_all(dir.path(extra));
        }
        dir.save(DIALECT, &small_dialect(good));
    }
}

fn in_dialect(dir: &TestDir, good: usize, old: &str, new: &str) {
    dir.save(DIALECT, &edited(&small_dialect(good), old, new));
}

fn in_file(dir: &TestDir, file: &str, old: &str, new: &str) {
    dir.save(file, &edited(&dir.read(file), old, new));
}

const fn bad_set(
    name: &'static str,
    code: &'static str,
    reported_file: &'static str,
    break_set: fn(&TestDir, usize),
) -> BadSet {
    BadSet { name, code, reported_file, break_set }
}

const BAD_SETS: &[BadSet] = &[
    bad_set("half a file", "RF002", DIALECT, |dir, good| {
        let text = small_dialect(good);
        let half = text.find("text }}").unwrap();
        dir.save(DIALECT, &text[..half]);
    }),
    bad_set("no YAML", "RF002", GATEWAY, |dir, _| in_file(dir, GATEWAY, "models: [", "models: [[")),
    bad_set("not UTF-8", "RF001", "latin.yaml", |dir, _| {
        fs::write(dir.path("mappings/dialects/latin.yaml"), b"caf\xe9").unwrap();
    }),
    bad_set("no gateway", "RF001", "", |dir, _| fs::remove_file(dir.path(GATEWAY)).unwrap()),
    bad_set("an empty file", "RF011", DIALECT, |dir, _| dir.save(DIALECT, "")),
    bad_set("a key twice", "RF003", DIALECT, |dir, good| {
        in_dialect(dir, good, "dialect: tiny\n", "dialect: tiny\ndialect: tiny\n");
    }),
    bad_set("an unknown key", "RF010", DIALECT, |dir, good| in_dialect(dir, good, "errors:", "error:")),
    bad_set("a missing key", "RF011", DIALECT, |dir, good| in_dialect(dir, good, "  framing: { data: json }\n", "")),
    bad_set("a wrong type", "RF012", DIALECT, |dir, good| {
        in_dialect(dir, good, "    turn.end: {", "    turn.end: [] #")
    }),
    bad_set("an invalid value", "RF013", GATEWAY, |dir, _| {
        in_file(dir, GATEWAY, "models:", "validation: strickt\nmodels:");
    }),
    bad_set("a dialect that is not there", "RF020", GATEWAY, |dir, _| {
        in_file(dir, GATEWAY, "dialect: tiny", "dialect: tyni");
    }),
    bad_set("no selector", "RF101", BACKEND, |dir, _| in_file(dir, BACKEND, "delta: $.word", "delta: \"$.word[\"")),
    bad_set("no expression", "RF102", DIALECT, |dir, good| {
        in_dialect(dir, good, "{{ fault.message }}", "{{ fault.message + }}");
    }),
    bad_set("an unclosed placeholder", "RF103", DIALECT, |dir, good| {
        in_dialect(dir, good, "{{ fault.message }}", "{{ fault.message");
    }),
    bad_set("an unknown variable", "RF104", DIALECT, |dir, good| in_dialect(dir, good, "{{ text }}", "{{ texxt }}")),
    bad_set("an unknown filter", "RF105", DIALECT, |dir, good| {
        in_dialect(dir, good, "{{ fault.message }}", "{{ fault.message | shout }}");
    }),
    bad_set("an unknown table", "RF106", DIALECT, |dir, good| {
        in_dialect(dir, good, "{{ fault.message }}", "{{ fault.kind | table('kinds') }}");
    }),
    bad_set("an unknown fragment", "RF107", DIALECT, |dir, good| {
        in_dialect(dir, good, "{ error: \"{{ fault.message }}\" }", "{ $use: envelope }");
    }),
    bad_set("an unknown event", "RF120", BACKEND, |dir, _| in_file(dir, BACKEND, "emit: [ text:", "emit: [ txt:")),
    bad_set("an unknown moment", "RF122", DIALECT, |dir, good| in_dialect(dir, good, "turn.end: {", "turn.ends: {")),
    bad_set("an unknown policy", "RF123", DIALECT, |dir, good| {
        in_dialect(dir, good, "body:", "policies: { usages: zeros }\nbody:");
    }),
    bad_set("an order that cannot be read", "RF125", DIALECT, |dir, good| {
        in_dialect(dir, good, "item: text.delta+", "item: (text.delta+");
    }),
    bad_set("a transcript that cannot be played", "RF129", WORDS, |dir, _| {
        in_file(dir, WORDS, "{\"end\":true}", "{\"ended\":true}");
    }),
    bad_set("a test that fails", "RF140", TEST, |dir, _| {
        let test = "tests:\n  - { name: it ends, backend: tiny, given: [ { word: a }, { stop: stop } ], expect: { frames: [ text ] } }\n";
        dir.save(TEST, test);
    }),
    bad_set("an unknown folder", "RF001", "more.yaml", |dir, _| {
        dir.write("mappings/dialect/more.yaml", "dialect: more\n")
    }),
];

//! Reloads without end, good and bad mixed, through every door, while clients read their streams.
//!
//! The quick run is short; REFRAME_STRESS=full (see tests/all.d/storm) reloads 1,000 times through the admin listener and
//! 100 times through the watch, during 200 streams.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use support::small_set::{tiny, tiny_dialect, tiny_frames};
use support::{Disk, Operator, Server, chat, edited, eventually, serve};

struct Storm {
    streams: usize,
    by_admin: usize,
    by_watch: usize,
}

impl Storm {
    fn asked() -> Storm {
        match std::env::var("REFRAME_STRESS").as_deref() {
            Ok("full") => Storm { streams: 200, by_admin: 1_000, by_watch: 100 },
            _ => Storm { streams: 40, by_admin: 100, by_watch: 20 },
        }
    }
}

/// Milliseconds between two words of a stream: long enough that every stream sees reloads come and go.
const PACE: u32 = 60;
/// Every third reload is bad.
const EVERY: usize = 3;

#[test]
fn no_reload_tears_a_stream_and_nothing_bad_goes_live() {
    let storm = Storm::asked();
    let disk = tiny(PACE);
    let server = serve().arg("--mappings").arg(disk.path("mappings")).operated().start();
    let operator = server.operator();
    let seen = Seen::default();
    let over = AtomicBool::new(false);
    let begun = Instant::now();
    thread::scope(|scope| {
        // Also when an expectation fails: the clients would read for ever.
        let _calm = Calm(&over);
        for number in 0..storm.streams {
            let (server, over, seen) = (&server, &over, &seen);
            scope.spawn(move || {
                // One after the other, so that every generation meets streams at every word.
                thread::sleep(Duration::from_millis(number as u64 * 1_200 / 200));
                read_streams(server, over, seen);
            });
        }
        eventually("all clients read", || (operator.status()["turns"] == storm.streams).then_some(()));
        let memory = server.resident();
        let mut weather =
            Weather { disk: &disk, operator, good: 1, kinds: BTreeSet::new(), reloads: &seen.reloads, server: &server };
        let admin = weather.through_the_admin_listener(storm.by_admin);
        let watch = weather.through_the_watch(storm.by_watch);
        let kinds = weather.kinds.len();
        let status = operator.status();
        println!("{admin}\n{watch}\n{kinds} kinds of bad files; {}", status["reloads"]);
        let after = server.resident();
        println!("memory: {} MiB before, {} MiB after", memory >> 20, after >> 20);
        // A generation of this set is some hundred kilobytes; a hundred of them that stay would show.
        assert!(after < memory + (100 << 20), "generations stay in memory");
        assert_eq!(kinds, BAD.len().min(storm.by_admin / EVERY));
    });
    let (whole, across) = (seen.whole.into_inner(), seen.across.into_inner());
    let spoken = seen.marks.into_inner().unwrap().len();
    println!("{whole} streams, {across} of them across a reload, {spoken} generations spoken, {:.1?}", begun.elapsed());
    assert!(across >= storm.streams && spoken >= storm.by_admin / 20, "{across} {spoken}");

    // Nobody reads any more: of all generations the last one is left.
    let left = |status: &Value| status["generations"].as_array().unwrap().len();
    eventually("the old generations are freed", || (left(&operator.status()) == 1).then_some(()));
    assert_eq!(operator.status()["turns"], 0);
    assert!(operator.metrics().contains("\ngenerations 1\n"));
}

/// Ends the storm when it is dropped.
struct Calm<'c>(&'c AtomicBool);

impl Drop for Calm<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

// ---- the clients

#[derive(Default)]
struct Seen {
    reloads: AtomicUsize,
    whole: AtomicUsize,
    across: AtomicUsize,
    marks: Mutex<BTreeSet<String>>,
}

/// Every frame of a stream is the golden one of the generation that the stream began with.
fn read_streams(server: &Server, over: &AtomicBool, seen: &Seen) {
    while !over.load(Ordering::SeqCst) {
        let mut stream = server.stream(chat("Hello!"));
        let first = stream.next().unwrap();
        let before = seen.reloads.load(Ordering::SeqCst);
        let frames = [vec![first], stream.rest()].concat();
        let after = seen.reloads.load(Ordering::SeqCst);
        let mark = frames[0].json()["mark"].as_str().unwrap().to_owned();
        let got: Vec<&str> = frames.iter().map(|frame| frame.data.as_str()).collect();
        assert_eq!(got, tiny_frames(&mark));
        seen.whole.fetch_add(1, Ordering::SeqCst);
        seen.across.fetch_add(usize::from(before != after), Ordering::SeqCst);
        seen.marks.lock().unwrap().insert(mark);
    }
}

// ---- the reloads

struct Weather<'w> {
    disk: &'w Disk,
    operator: Operator,
    /// The mark of the last good set.
    good: usize,
    kinds: BTreeSet<&'static str>,
    reloads: &'w AtomicUsize,
    server: &'w Server,
}

impl Weather<'_> {
    fn through_the_admin_listener(&mut self, times: usize) -> String {
        let mut took = Vec::new();
        let (mut applied, mut refused) = (0, 0);
        while applied + refused < times {
            assert!(took.len() < 3 * times, "the watch is always first");
            let bad = took.len() % EVERY == EVERY - 1;
            let kind = bad.then(|| self.spoil(took.len() / EVERY));
            if !bad {
                self.next_good();
            }
            let begun = Instant::now();
            let (status, told) = self.operator.reload();
            took.push(begun.elapsed());
            match kind {
                Some(kind) => {
                    assert_eq!((status, &told["outcome"]), (422, &"refused".into()), "{}: {told}", kind.name);
                    kind.is_told(&told["refused"]);
                    refused += 1;
                    kind.mend(self.disk, self.good);
                }
                // The watch may have been there first; then it is in use all the same.
                None => {
                    assert_eq!(status, 200, "{told}");
                    applied += usize::from(told["outcome"] == "applied");
                }
            }
            self.is_live();
        }
        took.sort();
        let (median, slowest) = (took[took.len() / 2], took[took.len() - 1]);
        format!("admin: {applied} applied, {refused} refused; a reload: median {median:.0?}, slowest {slowest:.0?}")
    }

    fn through_the_watch(&mut self, times: usize) -> String {
        let mut took = Vec::new();
        let (mut applied, mut refused) = (0, 0);
        for number in 0..times {
            let before = self.operator.status();
            let begun = Instant::now();
            if number % EVERY == EVERY - 1 {
                let kind = self.spoil(number / EVERY);
                let status = eventually("it is refused", || {
                    let status = self.operator.status();
                    (status["reloads"]["refused"] != before["reloads"]["refused"]).then_some(status)
                });
                assert_eq!(status["last_refused"]["cause"], "watch");
                kind.is_told(&status["last_refused"]);
                assert_eq!(status["generation"]["hash"], before["generation"]["hash"], "{}", kind.name);
                refused += 1;
                kind.mend(self.disk, self.good);
                eventually("it is mended", || (self.operator.status()["files"] == "applied").then_some(()));
            } else {
                self.next_good();
                eventually("it is applied", || {
                    let now = self.operator.status();
                    (now["generation"]["number"] != before["generation"]["number"]).then_some(())
                });
                assert_eq!(self.operator.status()["generation"]["cause"], "watch");
                applied += 1;
                took.push(begun.elapsed());
            }
            self.is_live();
        }
        took.sort();
        let (median, slowest) = (took[took.len() / 2], took[took.len() - 1]);
        format!(
            "watch: {applied} applied, {refused} refused; save to active: median {median:.0?}, slowest {slowest:.0?}"
        )
    }

    fn next_good(&mut self) {
        self.good += 1;
        self.disk.save(DIALECT, &tiny_dialect(self.good));
    }

    fn spoil(&mut self, number: usize) -> &'static Bad {
        let kind = &BAD[number % BAD.len()];
        self.kinds.insert(kind.name);
        (kind.spoil)(self.disk, self.good);
        kind
    }

    /// What serves is the last good set, and no other.
    fn is_live(&self) {
        self.reloads.fetch_add(1, Ordering::SeqCst);
        eventually("the last good set serves", || {
            let status = self.operator.status();
            (status["files"] == "applied").then_some(())
        });
        assert_eq!(self.server.ask(chat("Hello!").with("user", "quick")).json()["mark"], format!("g{}", self.good));
    }
}

// ---- what is bad

const DIALECT: &str = "mappings/dialects/tiny.yaml";
const BACKEND: &str = "mappings/backends/tiny.yaml";
const GATEWAY: &str = "mappings/gateway.yaml";
const WORDS: &str = "mappings/transcripts/words.jsonl";
const TEST: &str = "mappings/dialects/tiny.test.yaml";

struct Bad {
    name: &'static str,
    code: &'static str,
    /// Where it is told, or nothing if it stands nowhere.
    blamed: &'static str,
    spoil: fn(&Disk, usize),
}

impl Bad {
    /// The code and the file are there, and a place in it.
    fn is_told(&self, refused: &Value) {
        let finding = &refused["diagnostics"][0];
        assert_eq!(finding["code"], self.code, "{}: {refused}", self.name);
        let file = finding["file"].as_str().unwrap_or_default();
        assert!(file.ends_with(self.blamed), "{}: {file}", self.name);
    }

    /// Everything as it was.
    fn mend(&self, disk: &Disk, good: usize) {
        let fresh = tiny(PACE);
        for file in [BACKEND, GATEWAY, WORDS] {
            if fs::read(disk.path(file)).ok() != fs::read(fresh.path(file)).ok() {
                disk.save(file, &fresh.read(file));
            }
        }
        for extra in [TEST, "mappings/dialects/latin.yaml", "mappings/profiles/p.yaml", "mappings/shared.yaml"] {
            let _ = fs::remove_file(disk.path(extra));
        }
        for extra in ["mappings/dialect", "mappings/profiles"] {
            let _ = fs::remove_dir_all(disk.path(extra));
        }
        disk.save(DIALECT, &tiny_dialect(good));
    }
}

fn in_dialect(disk: &Disk, good: usize, old: &str, new: &str) {
    disk.save(DIALECT, &edited(&tiny_dialect(good), old, new));
}

fn in_file(disk: &Disk, file: &str, old: &str, new: &str) {
    disk.save(file, &edited(&disk.read(file), old, new));
}

const fn bad(name: &'static str, code: &'static str, blamed: &'static str, spoil: fn(&Disk, usize)) -> Bad {
    Bad { name, code, blamed, spoil }
}

const BAD: &[Bad] = &[
    bad("half a file", "RF002", DIALECT, |disk, good| {
        let text = tiny_dialect(good);
        let half = text.find("text }}").unwrap();
        disk.save(DIALECT, &text[..half]);
    }),
    bad("no YAML", "RF002", GATEWAY, |disk, _| in_file(disk, GATEWAY, "models: [", "models: [[")),
    bad("not UTF-8", "RF001", "latin.yaml", |disk, _| {
        fs::write(disk.path("mappings/dialects/latin.yaml"), b"caf\xe9").unwrap();
    }),
    bad("no gateway", "RF001", "", |disk, _| fs::remove_file(disk.path(GATEWAY)).unwrap()),
    bad("an empty file", "RF011", DIALECT, |disk, _| disk.save(DIALECT, "")),
    bad("a key twice", "RF003", DIALECT, |disk, good| {
        in_dialect(disk, good, "dialect: tiny\n", "dialect: tiny\ndialect: tiny\n");
    }),
    bad("a key that nobody reads", "RF010", DIALECT, |disk, good| in_dialect(disk, good, "errors:", "error:")),
    bad("a missing key", "RF011", DIALECT, |disk, good| in_dialect(disk, good, "  framing: { data: json }\n", "")),
    bad("a wrong type", "RF012", DIALECT, |disk, good| in_dialect(disk, good, "    turn.end: {", "    turn.end: [] #")),
    bad("a word that cannot stand here", "RF013", GATEWAY, |disk, _| {
        in_file(disk, GATEWAY, "models:", "validation: strickt\nmodels:");
    }),
    bad("a dialect that is not there", "RF020", GATEWAY, |disk, _| {
        in_file(disk, GATEWAY, "dialect: tiny", "dialect: tyni");
    }),
    bad("no selector", "RF101", BACKEND, |disk, _| in_file(disk, BACKEND, "delta: $.say", "delta: \"$.say[\"")),
    bad("no expression", "RF102", DIALECT, |disk, good| {
        in_dialect(disk, good, "{{ fault.message }}", "{{ fault.message + }}");
    }),
    bad("an open hole", "RF103", DIALECT, |disk, good| {
        in_dialect(disk, good, "{{ fault.message }}", "{{ fault.message");
    }),
    bad("an unknown variable", "RF104", DIALECT, |disk, good| in_dialect(disk, good, "{{ text }}", "{{ texxt }}")),
    bad("an unknown filter", "RF105", DIALECT, |disk, good| {
        in_dialect(disk, good, "{{ fault.message }}", "{{ fault.message | shout }}");
    }),
    bad("an unknown table", "RF106", DIALECT, |disk, good| {
        in_dialect(disk, good, "{{ fault.message }}", "{{ fault.kind | table('kinds') }}");
    }),
    bad("an unknown part", "RF107", DIALECT, |disk, good| {
        in_dialect(disk, good, "{ error: \"{{ fault.message }}\" }", "{ $use: envelope }");
    }),
    bad("an unknown event", "RF120", BACKEND, |disk, _| in_file(disk, BACKEND, "emit: [ text:", "emit: [ txt:")),
    bad("an unknown moment", "RF122", DIALECT, |disk, good| in_dialect(disk, good, "turn.end: {", "turn.ends: {")),
    bad("an unknown policy", "RF123", DIALECT, |disk, good| {
        in_dialect(disk, good, "body:", "policies: { usages: zeros }\nbody:");
    }),
    bad("an order that cannot be read", "RF125", DIALECT, |disk, good| {
        in_dialect(disk, good, "item: text.delta+", "item: (text.delta+");
    }),
    bad("a transcript that cannot be played", "RF129", WORDS, |disk, _| {
        in_file(disk, WORDS, "{\"end\":true}", "{\"ended\":true}");
    }),
    bad("a test that fails", "RF140", TEST, |disk, _| {
        let test = "tests:\n  - { name: it ends, backend: tiny, given: [ { say: a }, { stop: stop } ], expect: { frames: [ text ] } }\n";
        disk.save(TEST, test);
    }),
    bad("a folder that no set has", "RF001", "more.yaml", |disk, _| {
        disk.write("mappings/dialect/more.yaml", "dialect: more\n")
    }),
];

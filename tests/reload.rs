//! Files that change while the gateway runs: the next answer differs, a running one does not, a bad file changes nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use support::small_set::{tiny, tiny_dialect, tiny_frames};
use support::{Disk, Server, chat, chunks, edited, eventually, greeting_chunks, repo, serve, within};

const CHAT: &str = "mappings/dialects/chat.yaml";
const SCRIPT: &str = "mappings/scripts/demo.yaml";

// ---- what a save changes

#[test]
fn an_edit_changes_the_next_answer() {
    let live = Live::shipped();
    assert!(live.answer()["id"].as_str().unwrap().starts_with("chatcmpl-"));
    live.edit(CHAT, "body:\n  id: \"{{ turn.id | prefix('chatcmpl-') }}\"", "body:\n  id: \"mine-{{ turn.id }}\"");
    live.becomes("another prefix", |answer| answer["id"].as_str().unwrap().starts_with("mine-"));
}

#[test]
fn an_edited_table_changes_the_next_answer() {
    let live = Live::shipped();
    assert_eq!(live.answer()["choices"][0]["finish_reason"], "stop");
    live.edit(CHAT, "    stop: stop\n    length", "    stop: length\n    length");
    live.becomes("another finish", |answer| answer["choices"][0]["finish_reason"] == "length");
}

#[test]
fn a_schema_and_a_mapping_that_are_saved_together_change_together() {
    let live = Live::shipped();
    // Either of the two alone breaks the contract: the schema allows no key that it does not know.
    live.edit(
        "schemas/chat/body.json",
        "\"properties\": {\n    \"id\"",
        "\"properties\": {\n    \"mark\": {},\n    \"id\"",
    );
    live.edit(CHAT, "\nbody:\n", "\nbody:\n  mark: mine\n");
    live.becomes("a new key", |answer| answer["mark"] == "mine");
}

#[test]
fn an_edit_of_an_added_layer_changes_the_next_answer() {
    let disk = Disk::empty().paced("none");
    let server = serve().arg("--add").arg(disk.layer()).start();
    let live = Live { disk, server };
    // A file that the layer did not have, and then an edit of it.
    for prefix in ["one", "two"] {
        let chat = edited(
            &repo(CHAT),
            "prefix('chatcmpl-') }}\"\n  object: chat.completion\n",
            &format!("prefix('{prefix}-') }}}}\"\n  object: chat.completion\n"),
        );
        live.disk.write("layer/dialects/chat.yaml", &chat);
        live.becomes("another prefix", |answer| answer["id"].as_str().unwrap().starts_with(prefix));
    }
    // Without it, the file below shows again.
    fs::remove_dir_all(live.disk.path("layer/dialects")).unwrap();
    live.becomes("the old prefix", |answer| answer["id"].as_str().unwrap().starts_with("chatcmpl-"));
}

#[test]
fn a_new_model_and_a_new_route_need_no_restart() {
    let live = Live::shipped();
    let demo = "  - { id: demo, backend: demo }\n";
    live.edit("mappings/gateway.yaml", demo, &format!("{demo}  - {{ id: second, backend: demo }}\n"));
    let route = "  - { endpoint: POST /v1/chat/completions, dialect: chat, profile: openai }\n";
    live.edit("mappings/gateway.yaml", route, &format!("{route}{}", route.replace("/v1", "/v2")));
    eventually("the model is there", || {
        (live.server.ask(chat("Hello!").with("model", "second")).status() == 200).then_some(())
    });
    let request = support::Request::from(chat("Hello!")).at("/v2/chat/completions");
    eventually("the route is there", || (live.server.ask(request.clone()).status() == 200).then_some(()));
}

#[test]
fn a_save_that_changes_nothing_makes_no_generation() {
    let live = Live::shipped();
    for _ in 0..3 {
        live.disk.write(CHAT, &live.disk.read(CHAT));
        live.disk.save(CHAT, &live.disk.read(CHAT));
        thread::sleep(Duration::from_millis(50));
    }
    live.save(CHAT, &marked(1));
    live.becomes("the mark", |answer| answer["system_fingerprint"] == "g1");
    // The log is read by a thread of its own, which may be behind.
    live.server.wait_for_log("generation 2 applied");
    let log = live.server.log();
    assert_eq!((log.matches(" applied").count(), log.matches("generation 2 applied").count()), (1, 1), "{log}");
}

// ---- what is bad changes nothing

#[test]
fn a_bad_file_changes_nothing_until_it_is_mended() {
    let live = Live::shipped();
    let good = live.disk.read(CHAT);
    let before = live.settled();
    live.save(CHAT, &edited(&good, "{{ choice.text }}", "{{ choice.txet }}"));
    let log = live.server.wait_for_log("did you mean `choice.text`?");
    assert!(log.contains("still on generation 1: 1 error in "), "{log}");
    assert!(log.contains("error[RF104]: "), "{log}");
    let (line, column) = place(&good, "choice.text }}");
    let place = format!("{}:{line}:{column}", live.disk.path(CHAT).display());
    assert!(log.contains(&place), "{place} is not in:\n{log}");
    assert_eq!(live.settled(), before);

    live.save(CHAT, &marked(7));
    live.becomes("the mended file", |answer| answer["system_fingerprint"] == "g7");
}

#[test]
fn a_bad_edit_that_is_made_again_is_told_again() {
    let live = Live::shipped();
    let good = live.disk.read(CHAT);
    let bad = edited(&good, "dialect: chat", "dialects: chat");
    live.save(CHAT, &bad);
    live.server.wait_for_log("reload refused");
    // That the good file was seen in between is told nowhere, so the bad one may have to come more than once.
    eventually("it is told again", || {
        live.save(CHAT, &good);
        thread::sleep(Duration::from_millis(200));
        live.save(CHAT, &bad);
        thread::sleep(Duration::from_millis(200));
        (live.server.log().matches("reload refused").count() > 1).then_some(())
    });
}

#[test]
fn no_kind_of_bad_edit_replaces_what_is_good() {
    let live = Live::shipped();
    let before = live.settled();
    for Bad { file, old, new, code, blamed } in BAD_EDITS {
        let good = live.disk.read(file);
        let from = live.server.log().len();
        live.save(file, &edited(&good, old, new));
        live.server.wait_for_log_from(from, &format!("error[{code}]"));
        live.server.wait_for_log_from(from, &format!("--> {}:", live.disk.path(blamed).display()));
        assert_eq!(live.settled(), before, "{code}");
        live.save(file, &good);
    }
    for (what, spoil, mend, code) in BAD_DEEDS {
        let from = live.server.log().len();
        spoil(&live.disk);
        live.server.wait_for_log_from(from, code);
        assert_eq!(live.settled(), before, "{what}");
        mend(&live.disk);
    }
    println!("{} kinds of bad edits", BAD_EDITS.len() + BAD_DEEDS.len());
    assert!(!live.server.log().contains("applied"), "{}", live.server.log());
    // And a good one is still taken.
    live.save(CHAT, &marked(1));
    live.becomes("the mark", |answer| answer["system_fingerprint"] == "g1");
}

#[test]
fn a_failing_test_beside_a_mapping_refuses_the_reload() {
    let live = Live::shipped();
    let test = "tests:\n  - { name: says hello, transcript: greeting, expect: { body: { system_fingerprint: g1 } } }\n";
    live.save("mappings/dialects/chat.test.yaml", test);
    let log = live.server.wait_for_log("error[RF140]");
    assert!(log.contains("the test \"says hello\" does not hold"), "{log}");
    assert!(log.contains("body.system_fingerprint: expected \"g1\", got null"), "{log}");
    live.save(CHAT, &marked(2));
    live.server.wait_for_log("got \"g2\"");
    assert_eq!(live.answer()["system_fingerprint"], Value::Null);
    live.save(CHAT, &marked(1));
    live.becomes("what the test asks for", |answer| answer["system_fingerprint"] == "g1");
}

// ---- a running stream

#[test]
fn a_stream_under_way_keeps_its_generation() {
    let live = Live::shipped();
    let last = "  - { play: greeting }\n";
    // Three seconds, which is ten times what a save may take to be active.
    let slow = "  - { when: request.user == 'slow', play: greeting, pace: { fixed: 120 } }\n";
    // In this order: where the mark is seen, the step is there.
    live.edit(SCRIPT, last, &format!("{slow}{last}"));
    live.save(CHAT, &marked(1));
    live.becomes("the first mark", |answer| answer["system_fingerprint"] == "g1");

    let mut stream = live.server.stream(chat("Hello!").with("user", "slow"));
    let first = stream.next().unwrap();
    thread::scope(|scope| {
        // Read as it comes, so that the times are those of the wire.
        let rest = scope.spawn(|| stream.rest());
        live.save(CHAT, &edited(&marked(2), "    stop: stop\n    length", "    stop: length\n    length"));
        live.becomes("the second mark", |answer| answer["system_fingerprint"] == "g2");
        let switched = Instant::now();
        let mut expected = with_mark(greeting_chunks(), "g2");
        expected.last_mut().unwrap()["choices"][0]["finish_reason"] = json!("length");
        assert_eq!(chunks(&live.server.stream(chat("Hello!")).rest()), expected);

        let frames = [vec![first], rest.join().unwrap()].concat();
        let late = frames.iter().filter(|frame| frame.at > switched).count();
        println!("{late} of {} frames came after the switch", frames.len());
        assert!(late > 0, "the stream was over before the switch");
        assert_eq!(chunks(&frames), with_mark(greeting_chunks(), "g1"));
    });
}

#[test]
fn two_hundred_reloads_tear_none_of_sixteen_streams() {
    const RELOADS: usize = 200;
    let disk = tiny(10);
    let server = serve().arg("--mappings").arg(disk.path("mappings")).start();
    let (applied, over) = (AtomicUsize::new(1), AtomicBool::new(false));
    let spoken = Mutex::new(BTreeSet::new());
    let (whole, across) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    let mut stream = server.stream(chat("Hello!"));
                    let first = stream.next().unwrap();
                    let from = applied.load(Ordering::SeqCst);
                    let frames = [vec![first], stream.rest()].concat();
                    let to = applied.load(Ordering::SeqCst);
                    let mark = frames[0].json()["mark"].as_str().unwrap().to_owned();
                    let got: Vec<&str> = frames.iter().map(|frame| frame.data.as_str()).collect();
                    assert_eq!(got, tiny_frames(&mark));
                    whole.fetch_add(1, Ordering::SeqCst);
                    across.fetch_add(usize::from(from != to), Ordering::SeqCst);
                    spoken.lock().unwrap().insert(mark);
                }
            });
        }
        let begun = Instant::now();
        let mut from = 0;
        for number in 2..=RELOADS + 1 {
            disk.save("mappings/dialects/tiny.yaml", &tiny_dialect(number));
            let log = server.wait_for_log_from(from, &format!("generation {number} applied"));
            from += log.len();
            applied.store(number, Ordering::SeqCst);
        }
        println!("{RELOADS} reloads: {:.1?} each", begun.elapsed() / RELOADS as u32);
        over.store(true, Ordering::SeqCst);
    });
    let (whole, across) = (whole.into_inner(), across.into_inner());
    let spoken = spoken.into_inner().unwrap().len();
    println!("{whole} streams, {across} of them across a reload, {spoken} generations spoken");
    assert!(across >= 16 && spoken >= 16);
}

// ---- how a file may be saved

#[test]
fn a_file_that_is_saved_in_two_halves_counts_when_it_is_whole() {
    let live = Live::shipped();
    for number in 1..=3 {
        let text = marked(number);
        let (first, second) = text.split_at(text.len() / 2);
        let mut file = fs::File::create(live.disk.path(CHAT)).unwrap();
        file.write_all(first.as_bytes()).unwrap();
        thread::sleep(Duration::from_millis(40));
        file.write_all(second.as_bytes()).unwrap();
        drop(file);
        live.becomes("the whole file", |answer| answer["system_fingerprint"] == format!("g{number}"));
    }
}

#[test]
fn a_file_that_is_replaced_by_a_rename_counts() {
    let live = Live::shipped();
    for number in 1..=3 {
        live.disk.save(CHAT, &marked(number));
        live.becomes("the renamed file", |answer| answer["system_fingerprint"] == format!("g{number}"));
    }
}

#[test]
fn a_folder_that_is_deleted_and_made_again_counts() {
    let live = Live::shipped();
    let again = Disk::shipped();
    again.edit(SCRIPT, "pace: { fixed: 5 }", "pace: none");
    for (number, pause) in [(1, 0), (2, 100)] {
        again.write(CHAT, &marked(number));
        let before = live.answer()["system_fingerprint"].clone();
        fs::remove_dir_all(live.disk.path("mappings")).unwrap();
        thread::sleep(Duration::from_millis(pause));
        assert_eq!(live.answer()["system_fingerprint"], before, "nothing to load is no reason to stop");
        support::temp_sets::copy(&again.path("mappings"), &live.disk.path("mappings"));
        live.becomes("the new folder", |answer| answer["system_fingerprint"] == format!("g{number}"));
        // And the new folder is watched like the old one.
        live.save(CHAT, &marked(number + 10));
        live.becomes("a file in it", |answer| answer["system_fingerprint"] == format!("g{}", number + 10));
    }
}

/// As Kubernetes mounts a ConfigMap: links into a folder of its own, which is swapped for the next one at once.
#[cfg(unix)]
#[test]
fn a_config_map_that_is_swapped_counts() {
    use std::os::unix::fs::symlink;
    let (disk, source) = (Disk::empty(), Disk::shipped());
    source.edit(SCRIPT, "pace: { fixed: 5 }", "pace: none");
    let mount = disk.path("mount");
    let fill = |version: &str| {
        support::temp_sets::copy(&source.path("mappings"), &mount.join(version));
        support::temp_sets::copy(&source.path("schemas"), &mount.join(version).join("schemas"));
    };
    fill("..1");
    symlink("..1", mount.join("..data")).unwrap();
    for entry in fs::read_dir(mount.join("..1")).unwrap() {
        let name = entry.unwrap().file_name();
        symlink(std::path::Path::new("..data").join(&name), mount.join(&name)).unwrap();
    }
    let server = serve().arg("--mappings").arg(&mount).start();
    let live = Live { disk, server };
    for number in 2..=4 {
        let (old, new) = (format!("..{}", number - 1), format!("..{number}"));
        source.write(CHAT, &marked(number));
        fill(&new);
        symlink(&new, mount.join("..data_tmp")).unwrap();
        let swapped = Instant::now();
        fs::rename(mount.join("..data_tmp"), mount.join("..data")).unwrap();
        live.becomes("the swapped set", |answer| answer["system_fingerprint"] == format!("g{number}"));
        within("ConfigMap swap to active", swapped.elapsed(), Duration::from_millis(300));
        fs::remove_dir_all(mount.join(old)).unwrap();
    }
    assert!(!live.server.log().contains("refused"), "{}", live.server.log());
}

#[test]
fn many_files_that_are_saved_at_once_are_one_generation() {
    let live = Live::shipped();
    // Each of these alone would be refused: the profile names a policy that only the new dialect has.
    let chat = edited(&marked(1), "own_policies:\n", "own_policies:\n  mood: [ plain, merry ]\n");
    live.save(CHAT, &chat);
    live.save(PROFILE, &(live.disk.read(PROFILE) + "  mood: { chat: merry }\n"));
    live.save(
        "mappings/dialects/completions.yaml",
        &(live.disk.read("mappings/dialects/completions.yaml") + "\n# more\n"),
    );
    live.becomes("all of them", |answer| answer["system_fingerprint"] == "g1");
    live.server.wait_for_log("generation 2 applied: dialects/chat.yaml changed, dialects/completions.yaml changed");
    assert!(!live.server.log().contains("generation 3"), "{}", live.server.log());
}

#[test]
fn a_save_is_active_within_the_limit() {
    const LIMIT: Duration = Duration::from_millis(300);
    let live = Live::shipped();
    let mut client = live.server.client();
    let mut took = Vec::new();
    for number in 1..=20 {
        let text = marked(number);
        let saved = Instant::now();
        fs::write(live.disk.path(CHAT), text).unwrap();
        eventually("the save is active", || {
            (client.ask(chat("Hello!")).json()["system_fingerprint"] == format!("g{number}")).then_some(())
        });
        took.push(saved.elapsed());
    }
    took.sort();
    println!("save to active: fastest {:.0?}, median {:.0?}", took[0], took[took.len() / 2]);
    within("save to active, slowest of 20", took[took.len() - 1], LIMIT);
}

// ---- the words of these stories

/// A server over a copy of the shipped mappings that may be edited. It answers as fast as it can.
struct Live {
    disk: Disk,
    server: Server,
}

impl Live {
    fn shipped() -> Live {
        let disk = Disk::shipped();
        disk.edit(SCRIPT, "pace: { fixed: 5 }", "pace: none");
        let server = serve().arg("--mappings").arg(disk.path("mappings")).start();
        Live { disk, server }
    }

    /// As an editor saves: the old file or the new one, never half of it.
    fn save(&self, path: &str, text: &str) {
        self.disk.save(path, text);
    }

    fn edit(&self, path: &str, old: &str, new: &str) {
        self.save(path, &edited(&self.disk.read(path), old, new));
    }

    fn answer(&self) -> Value {
        let reply = self.server.ask(chat("Hello!"));
        assert_eq!(reply.status(), 200, "{}", reply.text());
        reply.json()
    }

    /// The answer without what differs from one to the next.
    fn settled(&self) -> Value {
        support::normal(self.answer())
    }

    fn becomes(&self, what: &str, wanted: impl Fn(&Value) -> bool) {
        eventually(what, || {
            let reply = self.server.ask(chat("Hello!"));
            (reply.status() == 200 && wanted(&reply.json())).then_some(())
        });
    }
}

/// The chat dialect with a mark in every frame and in the body.
fn marked(number: usize) -> String {
    let chat = repo(CHAT);
    let plain = "system_fingerprint: null\n";
    assert_eq!(chat.matches(plain).count(), 2);
    chat.replace(plain, &format!("system_fingerprint: g{number}\n"))
}

fn with_mark(mut chunks: Vec<Value>, mark: &str) -> Vec<Value> {
    for chunk in &mut chunks {
        chunk["system_fingerprint"] = json!(mark);
    }
    chunks
}

/// Line and column, counted from one, of a text that stands there once.
fn place(text: &str, wanted: &str) -> (usize, usize) {
    let at = text.find(wanted).unwrap();
    let line = text[..at].matches('\n').count() + 1;
    (line, at - text[..at].rfind('\n').map_or(0, |end| end + 1) + 1)
}

struct Bad {
    file: &'static str,
    old: &'static str,
    new: &'static str,
    code: &'static str,
    blamed: &'static str,
}

const fn bad(file: &'static str, old: &'static str, new: &'static str, code: &'static str) -> Bad {
    Bad { file, old, new, code, blamed: file }
}

const GATEWAY: &str = "mappings/gateway.yaml";
const SHARED: &str = "mappings/shared.yaml";
const PROFILE: &str = "mappings/profiles/openai.yaml";
const BACKEND: &str = "mappings/backends/openai-chat.yaml";
const CHUNK: &str = "schemas/chat/chunk.json";
const GREETING: &str = "mappings/transcripts/greeting.jsonl";

const BAD_EDITS: &[Bad] = &[
    bad(GATEWAY, "routes:", "routes: [", "RF002"),
    bad(GATEWAY, "validation: strict", "validation: strict\nvalidation: strict", "RF003"),
    bad(GATEWAY, "limits:", "limit:", "RF010"),
    bad(GATEWAY, "use: replay, ", "", "RF011"),
    bad(GATEWAY, "streams: 2000", "streams: many", "RF012"),
    bad(GATEWAY, "validation: strict", "validation: stict", "RF013"),
    bad(GATEWAY, "script: demo", "script: dmeo", "RF020"),
    bad(SCRIPT, "play: greeting", "play: greetings", "RF020"),
    bad(BACKEND, "where: { \"$.usage\": object }", "where: { \"$.usage[\": object }", "RF101"),
    bad(CHAT, "{{ usage.output }}", "{{ usage.output + }}", "RF102"),
    bad(CHAT, "{{ usage.total }}", "{{ usage.total", "RF103"),
    bad(CHAT, "{{ usage.input }}", "{{ usage.inputs }}", "RF104"),
    bad(CHAT, "usage.cached | default(0)", "usage.cached | defaults(0)", "RF105"),
    bad(SHARED, "table('error_code')", "table('error_codes')", "RF106"),
    bad(CHAT, "delta: { $use: role }", "delta: { $use: rolle }", "RF107"),
    bad(CHAT, "$switch: policy.role_content", "$swich: policy.role_content", "RF109"),
    bad(CHAT, "    cancelled: stop\n", "", "RF110"),
    bad(BACKEND, "emit: [ start: {", "emit: [ begin: {", "RF120"),
    bad(CHAT, "    refusal.delta:\n", "    refusal.dleta:\n", "RF122"),
    bad(PROFILE, "usage: as_reported", "usages: as_reported", "RF123"),
    bad(PROFILE, "usage: as_reported", "usage: as_told", "RF124"),
    bad(CHAT, "turn: turn.open (choice.open", "turn: turn.open ((choice.open", "RF125"),
    // A schema is read when a mapping asks for it, and the mapping is told.
    bad(CHUNK, "[\"function\", \"custom\"]", "\"function\"", "RF128"),
    bad(CHUNK, "\"title\": \"Chat completion chunk\",", "\"title\": \"Chat completion chunk\"", "RF002"),
    bad(GREETING, "{\"at\":654,\"end\":true}", "{\"at\":654,\"ends\":true}", "RF129"),
];

type Deed = fn(&Disk);

/// What is bad with no text in a file to blame.
const BAD_DEEDS: &[(&str, Deed, Deed, &str)] = &[
    (
        "the gateway is gone",
        |disk| fs::remove_file(disk.path(GATEWAY)).unwrap(),
        |disk| disk.save(GATEWAY, &repo(GATEWAY)),
        "this set has no gateway.yaml",
    ),
    (
        "a folder has the wrong name",
        |disk| disk.write("mappings/dialect/more.yaml", "dialect: more\n"),
        |disk| fs::remove_dir_all(disk.path("mappings/dialect")).unwrap(),
        "nobody reads the folder `dialect/`",
    ),
    (
        "a file is not text",
        |disk| fs::write(disk.path("mappings/dialects/latin.yaml"), b"caf\xe9").unwrap(),
        |disk| fs::remove_file(disk.path("mappings/dialects/latin.yaml")).unwrap(),
        "is not UTF-8 text",
    ),
    (
        "two files have one name",
        |disk| disk.write("mappings/profiles/again.yaml", &repo(PROFILE)),
        |disk| fs::remove_file(disk.path("mappings/profiles/again.yaml")).unwrap(),
        "error[RF014]",
    ),
];

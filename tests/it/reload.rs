//! Hot reload: an edit changes the next response but no response in flight, and a bad file changes nothing.

use crate::support::small_set::{expected_frames, small_dialect, small_set};
use crate::support::{
    GREETING as GREETING_TEXT, Gate, MockBackend, MockResponse, Server, TestDir, assert_within, chat, chunks, edited,
    eventually, greeting_chunks, repo, serve, words,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const CHAT: &str = "mappings/dialects/chat.yaml";
const SCRIPT: &str = "mappings/scripts/demo.yaml";

// ---- effects of a save

#[test]
fn an_edit_changes_the_next_response() {
    let live = LiveServer::shipped();
    assert!(live.response()["id"].as_str().unwrap().starts_with("chatcmpl-"));
    live.edit(CHAT, "body:\n  id: \"{{ turn.id | prefix('chatcmpl-') }}\"", "body:\n  id: \"mine-{{ turn.id }}\"");
    live.wait_for_response("another prefix", |response| response["id"].as_str().unwrap().starts_with("mine-"));
}

#[test]
fn an_edited_table_changes_the_next_response() {
    let live = LiveServer::shipped();
    assert_eq!(live.response()["choices"][0]["finish_reason"], "stop");
    live.edit(CHAT, "    stop: stop\n    length", "    stop: length\n    length");
    live.wait_for_response("another finish", |response| response["choices"][0]["finish_reason"] == "length");
}

#[test]
fn a_schema_and_a_mapping_saved_together_change_together() {
    let live = LiveServer::shipped();
    // Either edit alone is invalid: the schemas of the dialect and of one profile allow no unknown key.
    for schema in ["schemas/chat/body.json", "schemas/chat-codex-proxy/body.json"] {
        live.edit(schema, "\"properties\": {\n    \"id\"", "\"properties\": {\n    \"mark\": {},\n    \"id\"");
    }
    live.edit(CHAT, "\nbody:\n", "\nbody:\n  mark: mine\n");
    live.wait_for_response("a new key", |response| response["mark"] == "mine");
}

#[test]
fn an_edit_of_an_added_layer_changes_the_next_response() {
    let dir = TestDir::empty().with_pace("none");
    dir.write("layer/gateway.yaml", "limits: { streams: 77 }\n");
    let server = serve().args(["--no-poll", "--add"]).arg(dir.layer()).start();
    let live = LiveServer { dir, server };
    // A new file in the layer, and then an edit of it.
    for prefix in ["one", "two"] {
        let chat = edited(
            &repo(CHAT),
            "prefix('chatcmpl-') }}\"\n  object: chat.completion\n",
            &format!("prefix('{prefix}-') }}}}\"\n  object: chat.completion\n"),
        );
        live.dir.write("layer/dialects/chat.yaml", &chat);
        live.wait_for_response("another prefix", |response| response["id"].as_str().unwrap().starts_with(prefix));
    }
    // Other files of both layers stay as they are.
    let log = live.server.wait_for_log("generation 3 applied");
    let applied = log.lines().find(|line| line.contains("generation 3 applied")).unwrap();
    // A turn may be in flight: it is counted after a semicolon.
    let changed = applied.split([';', '=']).next().unwrap().trim_end_matches(" cause");
    assert!(changed.ends_with("applied: dialects/chat.yaml changed"), "{applied}");
    // After removing it, the file of the layer below is used again.
    fs::remove_dir_all(live.dir.path("layer/dialects")).unwrap();
    live.wait_for_response("the old prefix", |response| response["id"].as_str().unwrap().starts_with("chatcmpl-"));
}

#[test]
fn a_new_model_and_a_new_route_need_no_restart() {
    let live = LiveServer::shipped();
    let demo = "  - { id: demo, backend: demo }\n";
    live.edit("mappings/gateway.yaml", demo, &format!("{demo}  - {{ id: second, backend: demo }}\n"));
    let route = "  - { endpoint: POST /v1/chat/completions, dialect: chat, profile: openai }\n";
    live.edit("mappings/gateway.yaml", route, &format!("{route}{}", route.replace("/v1", "/v2")));
    eventually("the model is there", || {
        (live.server.fetch(chat("Hello!").with("model", "second")).status() == 200).then_some(())
    });
    let request = crate::support::Request::from(chat("Hello!")).at("/v2/chat/completions");
    eventually("the route is there", || (live.server.fetch(request.clone()).status() == 200).then_some(()));
}

#[test]
fn saving_an_unchanged_file_makes_no_generation() {
    let live = LiveServer::shipped();
    for _ in 0..3 {
        live.dir.write(CHAT, &live.dir.read(CHAT));
        live.dir.save(CHAT, &live.dir.read(CHAT));
        thread::sleep(Duration::from_millis(50));
    }
    live.save(CHAT, &marked(1));
    live.wait_for_response("the mark", |response| response["system_fingerprint"] == "g1");
    // The log is read by another thread, which may lag behind.
    live.server.wait_for_log("generation 2 applied");
    let log = live.server.log();
    assert_eq!((log.matches(" applied").count(), log.matches("generation 2 applied").count()), (1, 1), "{log}");
}

// ---- bad files

#[test]
fn a_bad_file_changes_nothing_until_it_is_fixed() {
    let live = LiveServer::shipped();
    let good = live.dir.read(CHAT);
    let before = live.normalized_response();
    live.save(CHAT, &edited(&good, "{{ choice.text }}", "{{ choice.txet }}"));
    // The line and the report are written by two threads.
    live.server.wait_for_log("did you mean `choice.text`?");
    let log = live.server.wait_for_log("still on generation 1: 1 error in ");
    assert!(log.contains("error[RF104]: "), "{log}");
    let (line, column) = location(&good, "choice.text }}");
    let location = format!("{}:{line}:{column}", live.dir.path(CHAT).display());
    assert!(log.contains(&location), "{location} is not in:\n{log}");
    assert_eq!(live.normalized_response(), before);

    live.save(CHAT, &marked(7));
    live.wait_for_response("the fixed file", |response| response["system_fingerprint"] == "g7");
}

#[test]
fn a_repeated_bad_edit_is_reported_again() {
    let live = LiveServer::shipped();
    let good = live.dir.read(CHAT);
    let bad_edit = edited(&good, "dialect: chat", "dialects: chat");
    for _ in 0..2 {
        let from = live.server.log().len();
        live.save(CHAT, &bad_edit);
        live.server.wait_for_log_from(from, "reload rejected");
        let from = live.server.log().len();
        live.save(CHAT, &good);
        live.server.wait_for_log_from(from, "the files are valid again");
    }
}

#[test]
fn no_kind_of_bad_edit_is_applied() {
    let live = LiveServer::shipped();
    let before = live.normalized_response();
    for BadEdit { file, old, new, code, reported_file } in BAD_EDITS {
        let good = live.dir.read(file);
        let from = live.server.log().len();
        live.save(file, &edited(&good, old, new));
        live.server.wait_for_log_from(from, &format!("error[{code}]"));
        live.server.wait_for_log_from(from, &format!("--> {}:", live.dir.path(reported_file).display()));
        assert_eq!(live.normalized_response(), before, "{code}");
        live.save(file, &good);
    }
    for (what, break_set, restore, code) in BAD_FILES {
        let from = live.server.log().len();
        break_set(&live.dir);
        live.server.wait_for_log_from(from, code);
        assert_eq!(live.normalized_response(), before, "{what}");
        restore(&live.dir);
    }
    println!("{} kinds of bad edits", BAD_EDITS.len() + BAD_FILES.len());
    assert!(!live.server.log().contains("applied"), "{}", live.server.log());
    // A good edit is still applied.
    live.save(CHAT, &marked(1));
    live.wait_for_response("the mark", |response| response["system_fingerprint"] == "g1");
}

#[test]
fn a_failing_mapping_test_rejects_the_reload() {
    let live = LiveServer::shipped();
    let test = "tests:\n  - { name: greets, transcript: greeting, expect: { body: { system_fingerprint: g1 } } }\n";
    live.save("mappings/dialects/chat.test.yaml", test);
    let log = live.server.wait_for_log("error[RF140]");
    assert!(log.contains("the test \"greets\" failed"), "{log}");
    assert!(log.contains("body.system_fingerprint: expected \"g1\", got null"), "{log}");
    live.save(CHAT, &marked(2));
    live.server.wait_for_log("got \"g2\"");
    assert_eq!(live.response()["system_fingerprint"], Value::Null);
    live.save(CHAT, &marked(1));
    live.wait_for_response("what the test expects", |response| response["system_fingerprint"] == "g1");
}

// ---- streams in flight

#[test]
fn a_stream_in_flight_keeps_its_generation() {
    // The backend sends the second half of the greeting to the model `held` when the second generation is served.
    let gate = Gate::default();
    let backend = MockBackend::start({
        let gate = gate.clone();
        move |request| {
            let mut deltas: Vec<String> =
                words(GREETING_TEXT).map(|word| demo_event(json!({ "content": word }))).collect();
            let second_half = deltas.split_off(deltas.len() / 2);
            let first_half = deltas.iter().fold(MockResponse::sse(&[]), |answer, delta| answer.event(delta));
            let first_half = if request.json()["model"] == "held" { first_half.wait(&gate) } else { first_half };
            let answer = second_half.iter().fold(first_half, |answer, delta| answer.event(delta));
            answer.event(&demo_finish()).event("[DONE]")
        }
    });
    let dir = TestDir::shipped();
    dir.write(CHAT, &marked(1));
    let at = format!("openai-chat={}", backend.url());
    let server = serve().args(["--no-poll", "--backend", &at, "--mappings"]).arg(dir.path("mappings")).start();
    let live = LiveServer { dir, server };

    let mut stream = live.server.stream(chat("Hello!").with("model", "held"));
    let first = stream.next().unwrap();
    live.save(CHAT, &edited(&marked(2), "    stop: stop\n    length", "    stop: length\n    length"));
    live.wait_for_response("the second mark", |response| response["system_fingerprint"] == "g2");
    let mut expected = with_mark(greeting_chunks(), "g2");
    expected.last_mut().unwrap()["choices"][0]["finish_reason"] = json!("length");
    assert_eq!(chunks(&live.server.stream(chat("Hello!")).rest()), expected);

    gate.open();
    let frames = [vec![first], stream.rest()].concat();
    assert_eq!(chunks(&frames), with_mark(greeting_chunks(), "g1"));
}

fn demo_event(delta: Value) -> String {
    json!({ "model": "demo", "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] }).to_string()
}

fn demo_finish() -> String {
    json!({ "model": "demo", "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }).to_string()
}

#[test]
fn two_hundred_reloads_do_not_affect_sixteen_streams() {
    const RELOADS: usize = 200;
    let dir = small_set(10);
    let server = serve().args(["--no-poll", "--mappings"]).arg(dir.path("mappings")).start();
    let (applied, over) = (AtomicUsize::new(1), AtomicBool::new(false));
    let generations = Mutex::new(BTreeSet::new());
    let (complete, across) = (AtomicUsize::new(0), AtomicUsize::new(0));
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
                    assert_eq!(got, expected_frames(&mark));
                    complete.fetch_add(1, Ordering::SeqCst);
                    across.fetch_add(usize::from(from != to), Ordering::SeqCst);
                    generations.lock().unwrap().insert(mark);
                }
            });
        }
        let started = Instant::now();
        let mut from = 0;
        for number in 2..=RELOADS + 1 {
            dir.save("mappings/dialects/tiny.yaml", &small_dialect(number));
            let log = server.wait_for_log_from(from, &format!("generation {number} applied"));
            from += log.len();
            applied.store(number, Ordering::SeqCst);
        }
        println!("{RELOADS} reloads: {:.1?} each", started.elapsed() / RELOADS as u32);
        over.store(true, Ordering::SeqCst);
    });
    let (complete, across) = (complete.into_inner(), across.into_inner());
    let generations = generations.into_inner().unwrap().len();
    println!("{complete} streams, {across} of them across a reload, {generations} generations served");
    assert!(across >= 16 && generations >= 16);
}

// ---- ways to save a file

#[test]
fn a_file_saved_in_two_halves_is_applied_when_complete() {
    let live = LiveServer::shipped();
    for number in 1..=3 {
        let text = marked(number);
        let (first, second) = text.split_at(text.len() / 2);
        let mut file = fs::File::create(live.dir.path(CHAT)).unwrap();
        file.write_all(first.as_bytes()).unwrap();
        thread::sleep(Duration::from_millis(40));
        file.write_all(second.as_bytes()).unwrap();
        drop(file);
        live.wait_for_response("the whole file", |response| response["system_fingerprint"] == format!("g{number}"));
    }
}

#[test]
fn a_file_replaced_by_a_rename_is_applied() {
    let live = LiveServer::shipped();
    for number in 1..=3 {
        live.dir.save(CHAT, &marked(number));
        live.wait_for_response("the renamed file", |response| response["system_fingerprint"] == format!("g{number}"));
    }
}

#[test]
fn a_folder_that_is_deleted_and_recreated_is_applied() {
    let live = LiveServer::shipped();
    let again = TestDir::shipped();
    again.edit(SCRIPT, "pace: { fixed: 5 }", "pace: none");
    for (number, pause) in [(1, 0), (2, 100)] {
        again.write(CHAT, &marked(number));
        let before = live.response()["system_fingerprint"].clone();
        fs::remove_dir_all(live.dir.path("mappings")).unwrap();
        thread::sleep(Duration::from_millis(pause));
        assert_eq!(live.response()["system_fingerprint"], before, "nothing to load is no reason to stop");
        crate::support::temp_sets::copy(&again.path("mappings"), &live.dir.path("mappings"));
        live.wait_for_response("the new folder", |response| response["system_fingerprint"] == format!("g{number}"));
        // The new folder is watched too.
        live.save(CHAT, &marked(number + 10));
        live.wait_for_response("a file in it", |response| {
            response["system_fingerprint"] == format!("g{}", number + 10)
        });
    }
}

/// Kubernetes mounts a ConfigMap as symlinks into a folder that is swapped atomically.
#[cfg(unix)]
#[test]
fn a_config_map_swap_is_applied() {
    use std::os::unix::fs::symlink;
    let (dir, source) = (TestDir::empty(), TestDir::shipped());
    source.edit(SCRIPT, "pace: { fixed: 5 }", "pace: none");
    let mount = dir.path("mount");
    let fill = |version: &str| {
        crate::support::temp_sets::copy(&source.path("mappings"), &mount.join(version));
        crate::support::temp_sets::copy(&source.path("schemas"), &mount.join(version).join("schemas"));
    };
    fill("..1");
    symlink("..1", mount.join("..data")).unwrap();
    for entry in fs::read_dir(mount.join("..1")).unwrap() {
        let name = entry.unwrap().file_name();
        symlink(std::path::Path::new("..data").join(&name), mount.join(&name)).unwrap();
    }
    let server = serve().args(["--no-poll", "--mappings"]).arg(&mount).start();
    let live = LiveServer { dir, server };
    for number in 2..=4 {
        let (old, new) = (format!("..{}", number - 1), format!("..{number}"));
        source.write(CHAT, &marked(number));
        fill(&new);
        symlink(&new, mount.join("..data_tmp")).unwrap();
        fs::rename(mount.join("..data_tmp"), mount.join("..data")).unwrap();
        live.wait_for_response("the swapped set", |response| response["system_fingerprint"] == format!("g{number}"));
        fs::remove_dir_all(mount.join(old)).unwrap();
    }
    assert!(!live.server.log().contains("rejected"), "{}", live.server.log());
}

#[test]
fn files_saved_together_are_one_generation() {
    let live = LiveServer::shipped();
    // The profile alone would be rejected: it names a policy that only the new dialect has.
    let chat = edited(&marked(1), "custom_policies:\n", "custom_policies:\n  mood: [ plain, merry ]\n");
    live.save(CHAT, &chat);
    live.save(PROFILE, &(live.dir.read(PROFILE) + "  mood: { chat: merry }\n"));
    live.save(
        "mappings/dialects/completions.yaml",
        &(live.dir.read("mappings/dialects/completions.yaml") + "\n# more\n"),
    );
    live.wait_for_response("all of them", |response| response["system_fingerprint"] == "g1");
    live.server.wait_for_log("generation 2 applied: dialects/chat.yaml changed, dialects/completions.yaml changed");
    assert!(!live.server.log().contains("generation 3"), "{}", live.server.log());
}

/// With a small set, which loads in no time: measured is from the save to the first response of the new generation.
#[test]
fn a_save_is_applied_within_the_time_limit() {
    const LIMIT: Duration = Duration::from_millis(300);
    let dir = small_set(0);
    let server = serve().args(["--no-poll", "--mappings"]).arg(dir.path("mappings")).start();
    let mut client = server.client();
    let mut elapsed = Vec::new();
    for number in 2..=21 {
        let text = small_dialect(number);
        let saved = Instant::now();
        fs::write(dir.path("mappings/dialects/tiny.yaml"), text).unwrap();
        eventually("the save is active", || {
            (client.fetch(chat("Hello!").with("user", "quick")).json()["mark"] == format!("g{number}")).then_some(())
        });
        elapsed.push(saved.elapsed());
    }
    elapsed.sort();
    println!("save to active: fastest {:.0?}, slowest {:.0?}", elapsed[0], elapsed[elapsed.len() - 1]);
    assert_within("save to active, median of 20", elapsed[elapsed.len() / 2], LIMIT);
}

// ---- helpers

/// A server with an editable copy of the shipped mappings and no delays. It does not poll: what it applies, it was
/// notified of by a file event.
struct LiveServer {
    dir: TestDir,
    server: Server,
}

impl LiveServer {
    fn shipped() -> LiveServer {
        let dir = TestDir::shipped();
        dir.edit(SCRIPT, "pace: { fixed: 5 }", "pace: none");
        let server = serve().args(["--no-poll", "--mappings"]).arg(dir.path("mappings")).start();
        LiveServer { dir, server }
    }

    /// Saves atomically, as editors do: by renaming a new file.
    fn save(&self, path: &str, text: &str) {
        self.dir.save(path, text);
    }

    fn edit(&self, path: &str, old: &str, new: &str) {
        self.save(path, &edited(&self.dir.read(path), old, new));
    }

    fn response(&self) -> Value {
        let reply = self.server.fetch(chat("Hello!"));
        assert_eq!(reply.status(), 200, "{}", reply.text());
        reply.json()
    }

    /// The response with its id and time replaced.
    fn normalized_response(&self) -> Value {
        crate::support::normalize(self.response())
    }

    fn wait_for_response(&self, what: &str, wanted: impl Fn(&Value) -> bool) {
        eventually(what, || {
            let reply = self.server.fetch(chat("Hello!"));
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

/// Line and column, counted from one, of a text that occurs once.
fn location(text: &str, wanted: &str) -> (usize, usize) {
    let at = text.find(wanted).unwrap();
    let line = text[..at].matches('\n').count() + 1;
    (line, at - text[..at].rfind('\n').map_or(0, |end| end + 1) + 1)
}

struct BadEdit {
    file: &'static str,
    old: &'static str,
    new: &'static str,
    code: &'static str,
    reported_file: &'static str,
}

const fn bad_edit(file: &'static str, old: &'static str, new: &'static str, code: &'static str) -> BadEdit {
    BadEdit { file, old, new, code, reported_file: file }
}

const GATEWAY: &str = "mappings/gateway.yaml";
const SHARED: &str = "mappings/shared.yaml";
const PROFILE: &str = "mappings/profiles/openai.yaml";
const BACKEND: &str = "mappings/backends/openai-chat.yaml";
const CHUNK: &str = "schemas/chat/chunk.json";
const GREETING: &str = "mappings/transcripts/greeting.jsonl";

const BAD_EDITS: &[BadEdit] = &[
    bad_edit(GATEWAY, "\nroutes:", "\nroutes: [", "RF002"),
    bad_edit(GATEWAY, "validation: strict", "validation: strict\nvalidation: strict", "RF003"),
    bad_edit(GATEWAY, "limits:", "limit:", "RF010"),
    bad_edit(GATEWAY, "use: replay, ", "", "RF011"),
    bad_edit(GATEWAY, "streams: 2000", "streams: many", "RF012"),
    bad_edit(GATEWAY, "validation: strict", "validation: stict", "RF013"),
    bad_edit(GATEWAY, "script: demo", "script: dmeo", "RF020"),
    bad_edit(SCRIPT, "play: greeting", "play: greetings", "RF020"),
    bad_edit(BACKEND, "where: { \"$.usage\": object }", "where: { \"$.usage[\": object }", "RF101"),
    bad_edit(CHAT, "{{ usage.output }}", "{{ usage.output + }}", "RF102"),
    bad_edit(CHAT, "{{ usage.total }}", "{{ usage.total", "RF103"),
    bad_edit(CHAT, "{{ usage.input }}", "{{ usage.inputs }}", "RF104"),
    bad_edit(CHAT, "usage.cached | default(0)", "usage.cached | defaults(0)", "RF105"),
    bad_edit(SHARED, "table('error_code')) }}", "table('error_codes')) }}", "RF106"),
    bad_edit(CHAT, "delta: { $use: role }", "delta: { $use: rolle }", "RF107"),
    bad_edit(CHAT, "$switch: policy.role_content", "$swich: policy.role_content", "RF109"),
    bad_edit(CHAT, "    cancelled: stop\n", "", "RF110"),
    bad_edit(BACKEND, "emit: [ start: {", "emit: [ begin: {", "RF120"),
    bad_edit(CHAT, "    refusal.delta:\n", "    refusal.dleta:\n", "RF122"),
    bad_edit(PROFILE, "usage: as_reported", "usages: as_reported", "RF123"),
    bad_edit(PROFILE, "usage: as_reported", "usage: as_sent", "RF124"),
    bad_edit(CHAT, "turn: turn.open (choice.open", "turn: turn.open ((choice.open", "RF125"),
    // A schema is read when a mapping refers to it; the error is reported at the mapping.
    bad_edit(CHUNK, "[\"function\", \"custom\"]", "\"function\"", "RF128"),
    bad_edit(CHUNK, "\"title\": \"Chat completion chunk\",", "\"title\": \"Chat completion chunk\"", "RF002"),
    bad_edit(GREETING, "{\"at\":654,\"end\":true}", "{\"at\":654,\"ends\":true}", "RF129"),
];

type FileAction = fn(&TestDir);

/// Bad sets without an error in a line of a file: description, change, restore, and a text of the log.
const BAD_FILES: &[(&str, FileAction, FileAction, &str)] = &[
    (
        "gateway.yaml is missing",
        |dir| fs::remove_file(dir.path(GATEWAY)).unwrap(),
        |dir| dir.save(GATEWAY, &repo(GATEWAY)),
        "this set has no gateway.yaml",
    ),
    (
        "a folder has the wrong name",
        |dir| dir.write("mappings/dialect/more.yaml", "dialect: more\n"),
        |dir| fs::remove_dir_all(dir.path("mappings/dialect")).unwrap(),
        "unexpected folder `dialect/`",
    ),
    (
        "a file is not text",
        |dir| fs::write(dir.path("mappings/dialects/latin.yaml"), b"caf\xe9").unwrap(),
        |dir| fs::remove_file(dir.path("mappings/dialects/latin.yaml")).unwrap(),
        "is not UTF-8 text",
    ),
    (
        "two files have one name",
        |dir| dir.write("mappings/profiles/again.yaml", &repo(PROFILE)),
        |dir| fs::remove_file(dir.path("mappings/profiles/again.yaml")).unwrap(),
        "error[RF014]",
    ),
];

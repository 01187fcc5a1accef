//! Every folder in `examples/` passes `check` and its own tests. A backend and a dialect defined only in YAML are served
//! by the binary, and another pair is run through the library.

use crate::support::replay::LoadedSet;
use crate::support::{Reply, Request, Server, docs, eventually, serve, suites, temp_sets};
use reframe::testing::diagnostics::{FileId, Findings, render_all};
use reframe::testing::domain::emit::{
    DeltaKind, EVENTS, FORMAT, ITEMS, OBSERVATIONS, PARTS, SCALARS, TOOL_CHOICE, TOOLS,
};
use reframe::testing::domain::policy::BUILT_IN;
use reframe::testing::domain::variables::RecordType;
use reframe::testing::domain::{FaultKind, Finish, MomentKind, StreamFormat, Tree, WorkBudget};
use reframe::testing::mapping::config::backend::{Framing, Transport, Unmatched};
use reframe::testing::mapping::config::capabilities::{OnUnsupported, StreamMode, SystemMessages};
use reframe::testing::mapping::config::dialect_request::RequiredType;
use reframe::testing::mapping::config::gateway::Auth;
use reframe::testing::mapping::config::gateway::Validation;
use reframe::testing::mapping::language::field::Conversion;
use reframe::testing::mapping::source::yaml;
use reframe::testing::mapping::{Overrides, SourceFile, load};
use reframe::testing::reload::{Base, Layers, embedded, generation};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn examples() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("examples")).unwrap().map(|e| e.unwrap().path());
    let mut folders: Vec<PathBuf> = entries.filter(|p| p.join("gateway.yaml").exists()).collect();
    folders.sort();
    assert!(!folders.is_empty(), "there are examples");
    folders
}

fn files(base: Base, add: &[PathBuf]) -> Vec<SourceFile> {
    Layers { base, add: add.to_vec() }.read(&embedded::files()).unwrap()
}

fn parse(line: &str) -> Tree {
    Tree::parse(line.as_bytes()).unwrap_or_else(|e| panic!("{e}: {line}"))
}

#[test]
fn every_example_checks_clean_and_passes_its_own_tests() {
    for folder in examples() {
        let shown = folder.display();
        assert!(folder.join("README.md").is_file(), "{shown} has a README.md");
        let files = files(Base::Embedded, std::slice::from_ref(&folder));
        let loaded = load(&files);
        let diagnostics = render_all(&loaded.diagnostics, &loaded.sources, false);
        assert!(loaded.diagnostics.is_empty(), "{shown}\n{diagnostics}");
        let reports = suites::run_all(&loaded.plan.expect("a plan"));
        let failed: Vec<String> = reports.iter().flat_map(|r| r.failures.clone()).collect();
        assert!(failed.is_empty(), "{shown}\n{}", failed.join("\n"));
        let own = |file: &&suites::SuiteReport| folder.join(&file.file).is_file();
        let passed: usize = reports.iter().filter(own).map(|r| r.passed).sum();
        assert!(passed > 0, "{shown} has tests of its own");
    }
}

#[test]
fn the_parrot_client_is_served_by_both_backends() {
    let server = serve_parrot(&root().join("examples/parrot"));

    let stream = post(&server, "/parrot", r#"{"bird":"polly","ask":"Hello, Polly!","live":true}"#);
    assert_eq!((stream.status(), stream.header("content-type")), (200, Some("application/x-ndjson")));
    let lines: Vec<Tree> = stream.text().lines().map(parse).collect();
    let word = |line: &Tree, key: &str| line.get(key).and_then(Tree::as_str).unwrap_or_default().to_owned();
    let squawks: Vec<String> = lines.iter().map(|l| word(l, "squawk")).collect();
    assert_eq!(squawks, ["begin", "mutter", "sound", "sound", "quiet", "seeds", "end"]);
    let sounds: String = lines.iter().filter(|l| word(l, "squawk") == "sound").map(|l| word(l, "sound")).collect();
    assert_eq!(sounds, "Hello, sailor!");
    let numbers: Vec<Option<u64>> = lines.iter().map(|l| l.get("n").and_then(Tree::as_u64)).collect();
    assert_eq!(numbers, (0..7).map(Some).collect::<Vec<_>>());

    let body = post(&server, "/parrot", r#"{"bird":"polly","ask":"Hello, Polly!"}"#);
    assert_eq!((body.status(), body.header("content-type")), (200, Some("application/json")));
    let body = parse(&body.text());
    let perches = r#"[{"perch":0,"speech":"Hello, sailor!","muttered":"A visitor.","tricks":[],"why":"done"}]"#;
    assert_eq!(body.get("perches"), Some(&parse(perches)));
    assert_eq!(body.get("seeds"), Some(&parse(r#"{"eaten":3,"dropped":9}"#)));

    let demo = parse(&post(&server, "/parrot", r#"{"bird":"demo","ask":"Hello!"}"#).text());
    assert_eq!(demo.get("bird"), Some(&Tree::from("demo")));
    assert_eq!(demo.get("perches").and_then(|p| p.at(0)?.get("why")), Some(&Tree::from("done")));

    assert_eq!(server.fetch(Request::get("/parrot/birds")).text(), r#"{"birds":["polly","demo"]}"#);
}

#[test]
fn the_parrot_client_gets_errors_in_its_own_shape() {
    let server = serve_parrot(&root().join("examples/parrot"));
    let missing = post(&server, "/parrot", r#"{"bird":"polly"}"#);
    let envelope = r#"{"squawk":"ouch","what":"`ask` is required","feather":"ask","mood":"cross"}"#;
    assert_eq!((missing.status(), missing.text().as_str()), (400, envelope));
    let stranger = post(&server, "/parrot", r#"{"bird":"crow","ask":"Hello?"}"#);
    assert_eq!((stranger.status(), parse(&stranger.text()).get("mood")), (404, Some(&Tree::from("puzzled"))));
    // Before the first frame a fault is an HTTP error, after it the last line of the stream.
    let whole = post(&server, "/parrot", r#"{"bird":"polly","ask":"Do you bite?"}"#);
    assert_eq!((whole.status(), parse(&whole.text()).get("what")), (503, Some(&Tree::from("the cat is here"))));
    let cut = post(&server, "/parrot", r#"{"bird":"polly","ask":"Do you bite?","live":true}"#);
    let last = cut.text().lines().last().map(parse).unwrap();
    assert_eq!((cut.status(), last.get("squawk")), (200, Some(&Tree::from("ouch"))));
}

#[test]
fn a_chat_client_is_served_by_the_parrot_backend() {
    let server = serve_parrot(&root().join("examples/parrot"));
    let fetch = |rest: &str| {
        let body = format!(r#"{{"model":"polly","messages":[{{"role":"user","content":"Fetch!"}}]{rest}}}"#);
        post(&server, "/v1/chat/completions", &body)
    };
    let tools = r#","tools":[{"type":"function","function":{"name":"fetch"}}]"#;

    let whole = fetch(tools);
    assert_eq!((whole.status(), whole.header("content-type")), (200, Some("application/json")));
    let whole = parse(&whole.text());
    let choice = whole.get("choices").and_then(|c| c.at(0)).unwrap();
    assert_eq!(choice.get("finish_reason"), Some(&Tree::from("tool_calls")));
    let message = choice.get("message").unwrap();
    assert_eq!(message.get("content"), Some(&Tree::from("Watch this.")));
    let arguments = |n: usize| message.get("tool_calls")?.at(n)?.get("function")?.get("arguments").cloned();
    assert_eq!((arguments(0), arguments(1)), (Some(Tree::from(r#"{"thing":"nut"}"#)), Some(Tree::from("{}"))));

    let stream = fetch(&format!(r#"{tools},"stream":true"#));
    assert_eq!((stream.status(), stream.header("content-type")), (200, Some("text/event-stream; charset=utf-8")));
    let mut frames: Vec<String> = stream.frames().into_iter().map(|frame| frame.data).collect();
    assert_eq!(frames.pop().as_deref(), Some("[DONE]"));
    let chunks: Vec<Tree> = frames.iter().map(|data| parse(data)).collect();
    assert!(chunks.iter().all(|c| c.get("object") == Some(&Tree::from("chat.completion.chunk"))));
    assert_eq!(chunks.len(), 8);
}

/// As the README describes: a changed line changes the next response, and a broken one changes nothing.
#[test]
fn a_changed_line_changes_the_next_response_and_a_broken_one_does_not() {
    let copy = TempDir::new().unwrap();
    temp_sets::copy(&root().join("examples/parrot"), copy.path());
    // These tests assert the word that is about to change.
    fs::remove_file(copy.path().join("dialects/parrot.test.yaml")).unwrap();
    let dialect = copy.path().join("dialects/parrot.yaml");
    let original = fs::read_to_string(&dialect).unwrap();
    let server = serve_parrot(copy.path());
    let why = || {
        let body = parse(&post(&server, "/parrot", r#"{"bird":"polly","ask":"Hello!"}"#).text());
        let why = body.get("perches").and_then(|p| p.at(0)?.get("why")?.as_str());
        why.unwrap_or_default().to_owned()
    };
    assert_eq!(why(), "done");

    let changed = original.replace("stop: done", "stop: hushed");
    fs::write(&dialect, &changed).unwrap();
    eventually("the change is served", || (why() == "hushed").then_some(()));

    fs::write(&dialect, changed.replace("{{ turn.model }}", "{{ turn.modle }}")).unwrap();
    server.wait_for_log("reload rejected");
    assert_eq!(why(), "hushed", "a set that does not load changes nothing");
}

fn serve_parrot(folder: &Path) -> Server {
    serve().arg("--add").arg(folder).start()
}

fn post(server: &Server, path: &str, body: &str) -> Reply {
    server.fetch(Request::post(body).at(path).header("content-type", "application/json"))
}

/// The two edits of the README's walk-through: the first is applied, the second is rejected with the message it shows.
#[test]
fn the_edits_in_the_readme_work_as_described() {
    let edit = |from: &str, to: &str| {
        let mut files = embedded::files();
        let chat = files.iter_mut().find(|f| f.name == "dialects/chat.yaml").unwrap();
        assert!(chat.text.contains(from), "{from}");
        chat.text = chat.text.replace(from, to).into();
        generation::build(&files, 2, None, &Overrides::default(), None, &WorkBudget::default())
            .map_err(|error| error.summary())
    };
    assert!(edit("chatcmpl-", "hello-").is_ok());
    let rejected = edit("choice.refusal", "choice.refusl").unwrap_err();
    assert!(rejected.starts_with("1 error in ") && rejected.contains("RF104"), "{rejected}");
    assert!(rejected.ends_with("unknown variable `choice.refusl` in the body"), "{rejected}");
}

/// The first block of `docs/check.md` is the actual output for a mistake in the shipped set.
#[test]
fn the_example_in_the_docs_of_check_is_current() {
    let place = TempDir::new().unwrap();
    fs::create_dir(place.path().join("mappings")).unwrap();
    temp_sets::copy(&root().join("mappings"), &place.path().join("mappings"));
    let chat = place.path().join("mappings/dialects/chat.yaml");
    let mistake = fs::read_to_string(&chat).unwrap().replace("{{ choice.refusal }}", "{{ choice.refusl }}");
    fs::write(&chat, mistake).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_reframe")).arg("check").current_dir(place.path()).output().unwrap();
    let printed = format!("$ reframe check\n{}", String::from_utf8(output.stdout).unwrap());

    let path = root().join("docs/check.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("```console\n").unwrap();
    let (shown, after) = rest.split_once("```\n").unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, format!("{before}```console\n{printed}```\n{after}")).unwrap();
        return;
    }
    assert_eq!(shown, printed, "UPDATE_GOLDEN=1 cargo test --test it examples:: writes it");
}

/// `docs/mappings/` contains a complete set: the blocks with `file=NAME`. The other YAML blocks must parse.
#[test]
fn the_mappings_in_the_docs_load_and_pass_their_tests() {
    let text = docs::mapping_chapters();
    let mut set = Vec::new();
    for block in text.split("\n```").skip(1).step_by(2) {
        let (info, body) = block.split_once('\n').unwrap();
        if let Some((_, name)) = info.split_once(" file=") {
            set.push(SourceFile { name: name.to_owned(), shown: format!("docs: {name}"), layer: 0, text: body.into() });
        } else if info == "yaml" {
            let findings = Findings::default();
            yaml::parse(FileId::default(), body, &findings);
            assert!(findings.into_sorted().is_empty(), "{body}");
        }
    }
    let loaded = load(&set);
    let diagnostics = render_all(&loaded.diagnostics, &loaded.sources, false);
    assert!(loaded.diagnostics.is_empty(), "{diagnostics}");
    let reports = suites::run_all(&loaded.plan.expect("a plan"));
    let failed: Vec<String> = reports.iter().flat_map(|r| r.failures.clone()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(reports.iter().map(|r| r.passed).sum::<usize>() >= 8);
}

/// The output of `reframe test` for that set if its first test expects another stamp.
#[test]
fn the_failing_test_in_the_docs_is_current() {
    let text = docs::mapping_chapters();
    let folder = TempDir::new().unwrap();
    for block in text.split("\n```").skip(1).step_by(2) {
        let (info, body) = block.split_once('\n').unwrap();
        let Some((_, name)) = info.split_once(" file=") else { continue };
        let file = folder.path().join("mappings").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let changed =
            body.replacen("\"$.stamp\": signed", "\"$.stamp\": sealed", usize::from(name == "dialects/memo.test.yaml"));
        fs::write(file, changed).unwrap();
    }
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_reframe"));
    let output = command.arg("test").current_dir(folder.path()).env("NO_COLOR", "1").output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let (_, sample) = text.split_once("```console\n$ reframe test\n").unwrap();
    let (sample, _) = sample.split_once("```").unwrap();
    // Times differ.
    let without_times = |text: &str| {
        let cut = |line: &str| {
            line.split_once(" failed (").or(line.split_once(" failed in ")).map(|(head, _)| head.to_owned())
        };
        text.lines().map(|line| cut(line).unwrap_or_else(|| line.to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(without_times(&printed), without_times(sample));
}

/// Every word of the language must be in its reference.
#[test]
fn every_key_and_word_of_the_language_is_in_the_docs() {
    let text = docs::mapping_chapters();
    let tokens = || text.split(|c: char| !(c.is_alphanumeric() || "_.{}".contains(c)));
    let documented: HashSet<&str> = tokens().chain(tokens().flat_map(|t| t.split('.'))).collect();
    let mut words: Vec<&str> =
        [MomentKind::NAMES, FaultKind::NAMES, Finish::NAMES, Conversion::NAMES, RequiredType::NAMES].concat();
    words.extend([Transport::NAMES, Framing::NAMES, Unmatched::NAMES, Validation::NAMES, StreamFormat::NAMES].concat());
    words.extend([OnUnsupported::NAMES, StreamMode::NAMES, SystemMessages::NAMES, Auth::NAMES].concat());
    words.extend(DeltaKind::NAMES);
    for grammar in [&EVENTS, &ITEMS, &PARTS, &TOOLS, &OBSERVATIONS] {
        words.extend(grammar.kinds.iter().flat_map(|w| w.fields).map(|f| f.name).chain(grammar.names()));
    }
    words.extend(SCALARS.iter().chain(TOOL_CHOICE).chain(FORMAT).map(|f| f.name));
    for policy in BUILT_IN {
        words.extend(policy.values.iter().chain([&policy.name]).filter(|w| !w.is_empty()));
    }
    for shape in [
        RecordType::Turn,
        RecordType::Choice,
        RecordType::Item,
        RecordType::Part,
        RecordType::Usage,
        RecordType::Fault,
        RecordType::Request,
    ] {
        words.extend(shape.fields().unwrap().iter().map(|(name, _)| name));
    }
    assert!(words.len() > 300, "only {} words", words.len());
    words.retain(|word| !documented.contains(word));
    assert!(words.is_empty(), "docs/mappings/ does not mention {}", words.join(", "));
}

/// A backend that sends mixed blocks in a list, and a client that distinguishes events by their SSE name. The set is
/// independent of `mappings/`.
const TIDE: &[(&str, &str)] = &[
    (
        "gateway.yaml",
        "
backends: { sea: { use: recorded, script: sea } }
models: [ { match: '*', backend: sea } ]
routes: [ { endpoint: POST /tide, dialect: tide } ]
",
    ),
    ("backends/recorded.yaml", "{ backend: recorded, transport: replay }"),
    (
        "backends/sea.yaml",
        r#"
backend: sea
transport: http
events:
  framing: { sse: { end: over } }
  rules:
    - each: $.blocks[*]
      where: { "@.kind": word }
      emit: [ text: { delta: "@.v" } ]
    - each: $.blocks[*]
      where: { "@.kind": tool }
      emit: [ tool: { id: "@.ref", name: "@.fn", whole: { from: "@.input", as: json_text } }, close: { key: "@.ref" } ]
    - where: { $.level: [ low, high ] }
      emit: [ usage: { input: "$.tokens[0]", output: "$.tokens[1]" }, finish: { reason: { from: $.level, table: { low: stop, high: length } } } ]
"#,
    ),
    (
        "dialects/tide.yaml",
        r#"
dialect: tide
request:
  required: { $.q: string }
  model: { value: sea }
  stream: true
  items: [ { where: { $.q: string }, emit: [ message: { role: user, text: $.q } ] } ]
tables:
  ebb: { stop: calm, length: storm, tool_calls: work, default: fog }
fragments:
  call: { ref: "{{ item.call_id }}", fn: "{{ item.name }}", input: "{{ item.arguments }}", at: "{{ item.index }}" }
stream:
  framing: { event: "tide.{{ frame }}", data: json }
  frames:
    turn.open:
      rise: { data: { question: "{{ request.last_user_text }}" } }
    text.delta:
      word: { data: { at: "{{ item.index }}", v: "{{ text }}" } }
    tool.close:
      call: { data: { $use: call } }
    turn.close:
      ebb: { data: { why: "{{ turn.finish | table('ebb') }}", tokens: [ "{{ turn.usage.input }}", "{{ turn.usage.output }}" ] } }
    turn.fail:
      wreck: { data: { why: "{{ fault.message }}" } }
    turn.end:
      bye: { event: bye, text: over }
  order:
    turn: turn.open turn.close turn.end
    item: text.delta+ | tool.close
body: { text: "{{ turn.choices[0].text }}", calls: { $each: turn.items, as: item, where: item.kind == 'function', do: { $use: call } } }
errors: { why: "{{ fault.message }}" }
"#,
    ),
    ("profiles/plain.yaml", "profile: plain"),
    ("scripts/sea.yaml", "{ script: sea, steps: [ { play: wave } ] }"),
    (
        "transcripts/wave.jsonl",
        r#"{"transcript":"sea"}
{"raw":{"blocks":[{"kind":"word","v":"Look"},{"kind":"tool","ref":"t1","fn":"look","input":{"far":1.0}},{"kind":"word","v":"again"}]}}
{"raw":{"blocks":[{"kind":"tool","ref":"t2","fn":"listen"}]}}
{"raw":{"level":"low","tokens":[5,7]}}
{"end":true}
"#,
    ),
];

#[test]
fn a_new_backend_and_a_new_dialect_need_only_yaml() {
    let folder = TempDir::new().unwrap();
    for (name, text) in TIDE {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let set = LoadedSet::of(&files(Base::Folder(folder.path().to_owned()), &[]));
    let wave = set.plan.transcripts[0].clone();
    let request = parse(r#"{"q":"What do you see?"}"#);

    // The order of text and calls is kept, and a number keeps its spelling.
    let stream = set.stream(&wave, "tide", "plain", &request).text();
    assert_eq!(
        stream,
        r#"event: tide.rise
data: {"question":"What do you see?"}

event: tide.word
data: {"at":0,"v":"Look"}

event: tide.call
data: {"ref":"t1","fn":"look","input":"{\"far\":1.0}","at":1}

event: tide.word
data: {"at":2,"v":"again"}

event: tide.call
data: {"ref":"t2","fn":"listen","input":"{}","at":3}

event: tide.ebb
data: {"why":"work","tokens":[5,7]}

event: bye
data: over

"#
    );
    let body = parse(&set.body(&wave, "tide", "plain", &request));
    assert_eq!(
        body,
        parse(
            r#"{"text":"Lookagain","calls":[{"ref":"t1","fn":"look","input":"{\"far\":1.0}","at":1},{"ref":"t2","fn":"listen","input":"{}","at":3}]}"#
        )
    );
    assert_eq!(set.body(&wave, "tide", "plain", &parse("{}")), "HTTP 400\n{\n  \"why\": \"`q` is required\"\n}\n");
}

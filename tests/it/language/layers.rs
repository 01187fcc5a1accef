//! Derived backends, sets that consist of layers, and the commands that show and write sets.

use crate::support::backend_events::{chat_stream, completion};
use crate::support::{Launch, MockBackend, MockResponse, Request, TestDir, TestGateway, assert_contains, chat, serve};
use reframe::testing::diagnostics::{Code, render_all};
use reframe::testing::mapping::{Plan, SourceFile, load};
use reframe::testing::reload::embedded;
use serde_json::{Value, json};

/// A file of a set in memory.
fn file(name: &str, text: &str) -> SourceFile {
    SourceFile { name: name.to_owned(), shown: format!("set/{name}"), layer: 0, text: text.into() }
}

/// The findings of the embedded set with these files.
fn findings(files: &[(&str, &str)]) -> String {
    let mut set = embedded::files();
    for (name, text) in files {
        set.retain(|known| known.name != *name);
        set.push(file(name, text));
    }
    set.sort_by(|a, b| a.name.cmp(&b.name));
    let loaded = load(&set);
    // One of the profiles states another index law, which is a note.
    let others: Vec<_> = loaded.diagnostics.into_iter().filter(|d| d.code != Code::ChangedIndexLaw).collect();
    render_all(&others, &loaded.sources, false)
}

#[test]
fn a02_a_derived_backend_sends_what_its_patch_changes_and_all_else_as_before() {
    let gateway = TestGateway::start("deepseek", "openai", TestDir::empty());
    let answer =
        MockResponse::json(200, &completion(&json!({ "role": "assistant", "content": "Hi" }), "stop").to_string());
    let request = chat("Hello").with("model", "m").with("max_tokens", 7).with("temperature", 0.5);
    let reply = gateway.fetch("m", answer, request.into());
    assert_eq!(reply.status(), 200, "{}", reply.text());
    let sent = gateway.requests_for("m").remove(0);
    assert_contains(&json!({ "max_tokens": 7, "temperature": 0.5 }), &sent);
    assert_eq!(sent.get("max_completion_tokens"), None, "{sent}");

    let rejected = gateway.server.fetch(chat("Hello").with("model", "m").with("n", 2));
    assert_eq!((rejected.status(), &rejected.json()["error"]["param"]), (400, &json!("n")));
    let image =
        json!([{ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "https://x/y" } }] }]);
    assert_eq!(gateway.server.fetch(chat("").with("model", "m").with("messages", image)).status(), 400);
    assert_eq!(gateway.backend.request_count(), 1);
}

#[test]
fn a02_a_derived_backend_can_use_another_header_for_its_key() {
    let backend = MockBackend::start(|_| MockResponse::sse_raw(chat_stream(&["Hi"])));
    let at = format!("azure-openai={}", backend.url());
    let server = serve().args(["--backend", &at]).env("REFRAME_BACKEND_KEY", "a-key-of-azure").start();
    assert_eq!(server.fetch(chat("Hello").with("model", "m")).status(), 200);
    let sent = backend.requests().remove(0);
    assert_eq!((sent.header("api-key"), sent.header("authorization")), (Some("a-key-of-azure"), None));
}

/// The events that a derived backend emits for these raw events, as a test in YAML expects them.
fn expect_events(patch: &str, given: &str, expected: &str) {
    let backend = format!("backend: vendor\nextends: openai-chat\npatch:\n  events:\n    rules:\n{patch}");
    let test = format!("tests:\n  - {{ name: t, given: [ {given} ], expect: {{ events: [ {expected} ] }} }}\n");
    let dir = TestDir::empty();
    dir.write("layer/backends/vendor.yaml", &backend);
    dir.write("layer/backends/vendor.test.yaml", &test);
    let run = Launch::new().args(["test", "vendor"]).add(dir).run();
    assert_eq!(run.code, Some(0), "{backend}\n{}{}", run.stdout, run.stderr);
}

#[test]
fn a02_rules_are_addressed_by_name() {
    let usage = "{ usage: { prompt_tokens: 1, completion_tokens: 2 } }";
    expect_events("      usage: { emit: [ usage: { input: $.usage.completion_tokens } ] }\n", usage, "usage 2+0");
    expect_events("      usage: { where: { $.usage: absent } }\n", usage, "");
    expect_events("      usage: $remove\n", usage, "");
    let error = "{ error: { message: no } }";
    let before = "      errors are text:\n        $before: an error in the stream\n        where: { $.error: object }\n        emit: [ text: { delta: $.error.message } ]\n";
    expect_events(&format!("{before}      an error in the stream: $remove\n"), error, "'text \"no\"'");
    expect_events(
        "      sound: { $add: { where: { $.sound: string }, emit: [ text: { delta: $.sound } ] } }\n",
        "{ sound: x }",
        "'text \"x\"'",
    );
}

#[test]
fn a02_a_backend_can_be_derived_from_a_derived_one() {
    let second = "backend: second\nextends: deepseek\npatch: { request: { body: { max_tokens: $remove } } }\n";
    assert_eq!(findings(&[("backends/second.yaml", second)]), "");
}

#[test]
fn a02_chains_are_bounded_and_cycles_are_reported_once() {
    let link = |name: &str, of: &str| format!("backend: {name}\nextends: {of}\n");
    let names: Vec<String> = (0..10).map(|n| format!("backends/link{n}.yaml")).collect();
    let texts: Vec<String> = (0..10)
        .map(|n| link(&format!("link{n}"), &if n == 0 { "openai-chat".to_owned() } else { format!("link{}", n - 1) }))
        .collect();
    let files: Vec<(&str, &str)> = names.iter().zip(&texts).map(|(n, t)| (n.as_str(), t.as_str())).collect();
    assert_eq!(findings(&files[..8]), "");
    let found = findings(&files);
    assert_eq!(found.matches("derived through more than 8 files").count(), 2, "{found}");

    let found = findings(&[
        ("backends/a.yaml", &link("a", "b")),
        ("backends/b.yaml", &link("b", "a")),
        ("backends/c.yaml", &link("c", "a")),
    ]);
    assert_eq!(found.matches("error[").count(), 1, "{found}");
    assert!(found.contains("error[RF108]: the backend extends itself: a → b → a"), "{found}");
}

#[test]
fn a02_findings_point_to_the_file_that_a_value_is_written_in() {
    // A table of the base that a rule of the derived backend no longer covers, and a mistake in the patch itself.
    let backend = "backend: vendor\nextends: openai-chat\npatch:\n  request:\n    path: /x/{{ modell }}\n";
    let found = findings(&[("backends/vendor.yaml", backend)]);
    assert!(found.contains("--> set/backends/vendor.yaml:5:"), "{found}");
    let backend = "backend: vendor\nextends: openai-chat\npatch: { fragments: { part: $remove } }\n";
    let found = findings(&[("backends/vendor.yaml", backend)]);
    assert_eq!(found.matches("error[").count(), 1, "{found}");
    assert!(found.contains("error[RF107]") && found.contains("mappings/backends/openai-chat.yaml:"), "{found}");
}

// ---- layers

/// A layer over the embedded set.
fn layered(layers: &[&[(&str, &str)]]) -> Vec<SourceFile> {
    let mut set = embedded::files();
    for (at, files) in layers.iter().enumerate() {
        for (name, text) in *files {
            let shown = format!("layer{}/{name}", at + 1);
            set.push(SourceFile { name: (*name).to_owned(), shown, layer: at + 1, text: (*text).into() });
        }
    }
    set
}

/// The plan of a set without findings.
fn plan(set: &[SourceFile]) -> Plan {
    let loaded = load(set);
    let found = render_all(&loaded.diagnostics, &loaded.sources, false);
    assert_eq!(found, "");
    loaded.plan.unwrap()
}

fn route_paths(plan: &Plan) -> Vec<&str> {
    plan.gateway.routes.iter().map(|route| route.path.as_str()).collect()
}

/// The overrides of a plan, as `check` prints them.
fn overrides(plan: &Plan) -> Vec<String> {
    let line = |span| plan.sources.show(span);
    plan.overrides.iter().map(|o| format!("{}: {} {} {}", o.what, line(o.by), o.action.name(), line(o.of))).collect()
}

#[test]
fn a10_the_gateways_of_layers_are_merged_by_key() {
    let first = "backends: { other: { use: openai-chat, url: http://127.0.0.1:9 } }\n\
                 models: [ { match: \"*\", backend: other } ]\n\
                 routes: [ { endpoint: POST /first, dialect: chat } ]\n\
                 limits: { streams: 7 }\n";
    let second = "models: [ { id: mine, backend: other } ]\n\
                  routes: [ { endpoint: POST /second, dialect: chat }, { endpoint: POST /first, dialect: responses } ]\n\
                  api_keys: [ { name: second, secret: { env: SECOND } } ]\n";
    let plan = plan(&layered(&[&[("gateway.yaml", first)], &[("gateway.yaml", second)]]));
    let shipped = ["/v1/chat/completions", "/v1/responses", "/v1/completions"];
    assert_eq!(route_paths(&plan), [&shipped[..], &["/first", "/second"]].concat());
    assert_eq!(plan.gateway.routes[3].dialect, "responses", "the later layer wins, in the same place");
    // The first match is used, so that the models of later layers come first.
    let backend = |name: &str| plan.gateway.model(name).map(|m| plan.gateway.backends[m.backend].name.as_str());
    assert_eq!(["mine", "demo", "x"].map(backend), [Some("other"), Some("other"), Some("other")]);
    assert_eq!((plan.gateway.limits.streams.0, plan.gateway.limits.request_items.0), (7, 50_000));
    let keys: Vec<&str> = plan.gateway.api_keys.iter().map(|key| key.name.as_str()).collect();
    assert_eq!(keys, ["default", "second"]);
    let [limit, route] = &overrides(&plan)[..] else { panic!("{:?}", overrides(&plan)) };
    let expected = "`limits.streams`: layer1/gateway.yaml:4:11 replaces (embedded) mappings/gateway.yaml:";
    assert!(limit.starts_with(expected), "{limit}");
    assert_eq!(route, "route `POST /first`: layer2/gateway.yaml:2:54 replaces layer1/gateway.yaml:3:11");
}

#[test]
fn a10_a_layer_removes_and_replaces_what_is_below_it() {
    let layer = "backends: { mine: { use: openai-chat, url: http://127.0.0.1:9 }, demo: $remove }\n\
                 models: { $replace: [ { id: mine, backend: mine } ] }\n\
                 routes: [ $remove: POST /v1/completions ]\n\
                 static_routes: [ $remove: \"GET /v1/models/{any}\" ]\n\
                 example: $remove\n";
    let plan = plan(&layered(&[&[("gateway.yaml", layer)]]));
    assert_eq!(route_paths(&plan), ["/v1/chat/completions", "/v1/responses"]);
    let backends: Vec<&str> = plan.gateway.backends.iter().map(|b| b.name.as_str()).collect();
    assert_eq!((backends, plan.gateway.models.len()), (vec!["mine"], 1));
    assert_eq!((plan.gateway.static_routes.len(), plan.gateway.example.is_none()), (6, true));
    let actions: Vec<&str> = plan.overrides.iter().map(|o| o.action.name()).collect();
    assert_eq!(actions, ["removes", "replaces", "removes", "removes", "removes"], "{:?}", overrides(&plan));
}

#[test]
fn a10_shared_files_are_merged_by_name() {
    let shared = "fragments: { model: { id: \"{{ model.id }}\", mine: true } }\n";
    let plan = plan(&layered(&[&[("shared.yaml", shared)]]));
    let overrides = overrides(&plan);
    let expected = "fragment `model`: layer1/shared.yaml:1:14 replaces (embedded) mappings/shared.yaml:";
    assert!(overrides.len() == 1 && overrides[0].starts_with(expected), "{overrides:?}");
}

#[test]
fn a10_a_file_of_a_later_layer_replaces_the_one_with_its_name_and_its_tests() {
    let replay = "backend: replay\ntransport: replay\n";
    let profile = "profile: openai\npolicies: { usage: zeros }\n";
    let files = [("backends/mine.yaml", replay), ("profiles/mine.yaml", profile)];
    let plan = plan(&layered(&[&files]));
    assert_eq!(overrides(&plan).len(), 2, "{:?}", overrides(&plan));
    assert!(!plan.tests.iter().any(|test| test.name == "profiles/openai.test.yaml"));
    assert!(plan.tests.iter().any(|test| test.name == "profiles/codex-proxy.test.yaml"));
    let found = findings(&[("backends/one.yaml", replay)]);
    assert!(found.contains("error[RF014]: two files define `backend: replay`"), "{found}");
}

#[test]
fn a10_two_transcripts_of_one_layer_with_one_name_are_an_error() {
    let text = embedded::files().into_iter().find(|f| f.name == "transcripts/greeting.jsonl").unwrap().text;
    let found = findings(&[("transcripts/greeting/events.jsonl", &text)]);
    assert!(found.contains("error[RF014]: two transcripts are called `greeting`"), "{found}");
    let plan = plan(&layered(&[&[("transcripts/greeting/events.jsonl", &text)]]));
    assert_eq!(plan.transcripts.iter().filter(|t| t.name == "greeting").count(), 1);
}

/// Two layers: a model and a route, and another route with a policy.
fn two_layers() -> TestDir {
    let dir = TestDir::empty();
    dir.write(
        "a/gateway.yaml",
        "models:\n  - { id: mine, backend: demo }\nroutes:\n  - { endpoint: POST /a, dialect: chat }\n",
    );
    dir.write("b/gateway.yaml", "routes:\n  - { endpoint: POST /a, dialect: chat, policies: { usage: zeros } }\n");
    dir.write("b/backends/replay.yaml", "backend: replay\ntransport: replay\n");
    dir
}

#[test]
fn a10_check_lists_every_override_with_both_places() {
    let dir = two_layers();
    let run = |format| {
        let arguments = ["check", "--add", "a", "--add", "b", "--format", format];
        Launch::new().args(arguments).in_folder(&dir.path("")).run()
    };
    let (human, json) = (run("human"), run("json"));
    assert_eq!(human.code, Some(0), "{}", human.stdout);
    let lines: Vec<&str> = human.stdout.lines().filter(|line| line.starts_with("override: ")).collect();
    assert_eq!(
        lines,
        [
            "override: file backends/replay.yaml: b/backends/replay.yaml replaces (embedded) mappings/backends/replay.yaml",
            "override: route `POST /a`: b/gateway.yaml:2:5 replaces a/gateway.yaml:4:5",
        ]
    );
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        json["overrides"][1],
        json!({ "what": "route `POST /a`", "action": "replaces", "by": "b/gateway.yaml:2:5", "of": "a/gateway.yaml:4:5" })
    );
}

#[test]
fn a10_the_status_and_explain_name_the_layer_of_everything() {
    let dir = two_layers();
    let folder = dir.path("");
    let server = serve().args(["--add", "a", "--add", "b"]).in_folder(&folder).start();
    let status = server.fetch(Request::get("/status")).json();
    let generation = &status["generation"];
    assert_eq!(generation["layers"], json!(["(embedded) mappings", "a", "b"]));
    let named = |kind: &str, name: &str| {
        let all = generation[kind].as_array().unwrap();
        let found = all.iter().find(|o| o["name"] == name && (kind != "policies" || o["route"] == "POST /a"));
        found.unwrap_or_else(|| panic!("no {name} in {all:?}")).clone()
    };
    let layer = |kind: &str, name: &str| named(kind, name)["layer"].as_str().unwrap().to_owned();
    assert_eq!(layer("models", "mine"), "a");
    assert_eq!(layer("models", "demo"), "(embedded) mappings");
    assert_eq!(layer("backends", "demo"), "(embedded) mappings");
    assert_eq!(
        named("routes", "POST /a"),
        json!({ "name": "POST /a", "value": "chat", "layer": "b", "defined_at": "b/gateway.yaml:2:17" })
    );
    assert_eq!((layer("policies", "usage"), &named("policies", "usage")["value"]), ("b".to_owned(), &json!("zeros")));

    let explained = Launch::new().args(["explain", "--layers", "--add", "a", "--add", "b"]).in_folder(&folder).run();
    let row = |begin: &[&str]| {
        let is_it = |line: &&str| line.split_whitespace().collect::<Vec<_>>().starts_with(begin);
        explained.stdout.lines().find(is_it).unwrap_or_else(|| panic!("no {begin:?}:\n{}", explained.stdout)).to_owned()
    };
    let place = |begin: &[&str]| row(begin).split_whitespace().rev().take(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(place(&["route", "POST", "/a"]), ["b/gateway.yaml:2:17", "b"]);
    assert_eq!(place(&["model", "mine"]), ["a/gateway.yaml:2:11", "a"]);
    assert!(row(&["policy", "usage", "at", "POST", "/a"]).contains("zeros"));
    assert!(explained.stdout.ends_with("override: route `POST /a`: b/gateway.yaml:2:5 replaces a/gateway.yaml:4:5\n"));
}

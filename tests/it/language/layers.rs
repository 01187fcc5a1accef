//! Derived backends, sets that consist of layers, and the commands that show and write sets.

use crate::support::backend_events::{chat_stream, completion};
use crate::support::{Launch, MockBackend, MockResponse, TestDir, TestGateway, assert_contains, chat, serve};
use reframe::testing::diagnostics::render_all;
use reframe::testing::mapping::{SourceFile, load};
use reframe::testing::reload::embedded;
use serde_json::json;

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
    render_all(&loaded.diagnostics, &loaded.sources, false)
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

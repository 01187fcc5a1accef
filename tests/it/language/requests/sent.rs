//! A7: the request to a backend can be tested, explained and logged, without its API key.

use super::{assert_pass, run_tests};
use crate::support::replay::LoadedSet;
use crate::support::{Launch, MockBackend, MockResponse, TestDir, backend_events, chat, serve};
use reframe::testing::mapping::config::backend::Transport;
use reframe::testing::reload::embedded;
use serde_json::json;
use std::collections::BTreeSet;

const TESTS: &str = r#"
tests:
  - name: a request with a field that is not sent
    dialect: chat
    request: { model: m, seed: 7, messages: [ { role: user, content: Hi } ], stream: true }
    expect:
      sent:
        method: POST
        path: /messages
        query: {}
        headers: { x-api-key: API-KEY, content-type: application/json, x-other: null }
        body: { model: m, stream: true, messages: [ { role: user, content: [ { type: text, text: Hi } ] } ] }
        dropped: [ seed ]
  - name: a request that the backend does not support
    dialect: chat
    request: { model: m, n: 2, messages: [ { role: user, content: Hi } ] }
    expect: { fault: { kind: unsupported, param: n } }
"#;

#[test]
fn a07_what_is_sent_can_be_tested() {
    assert_pass(2, &[("backends/anthropic-messages.test.yaml", TESTS)]);
}

#[test]
fn a07_a_wrong_expectation_fails() {
    for (right, wrong, difference) in [
        ("method: POST", "method: GET", "sent.method: expected \"GET\", got \"POST\""),
        ("path: /messages", "path: /other", "sent.path"),
        ("x-api-key: API-KEY", "x-api-key: other", "sent.headers.x-api-key"),
        ("text: Hi } ]", "text: Ho } ]", "sent.body.messages[0].content[0].text"),
        ("dropped: [ seed ]", "dropped: []", "sent.dropped"),
        ("param: n", "param: seed", "fault.param"),
    ] {
        let (passed, failures) =
            run_tests(&[("backends/anthropic-messages.test.yaml", &TESTS.replacen(right, wrong, 1))]);
        assert_eq!(passed, 1, "{wrong}");
        assert!(failures[0].contains(difference), "{wrong}: {failures:?}");
    }
}

#[test]
fn a07_the_settings_of_an_entry_are_tested_too() {
    let gateway = r#"
backends:
  local: { use: openai-chat, url: "http://127.0.0.1:1/v1", fields: { rename: { max_completion_tokens: max_tokens } } }
models: [ { match: "*", backend: local } ]
routes: [ { endpoint: POST /chat, dialect: chat } ]
"#;
    let tests = r#"
tests:
  - name: as the entry has it
    backend_entry: local
    request: { model: m, max_tokens: 5, messages: [ { role: user, content: Hi } ] }
    expect: { sent: { body: { max_tokens: 5, max_completion_tokens: null } } }
  - name: as the file has it
    backend: openai-chat
    request: { model: m, max_tokens: 5, messages: [ { role: user, content: Hi } ] }
    expect: { sent: { body: { max_tokens: null, max_completion_tokens: 5 } } }
"#;
    assert_pass(2, &[("gateway.yaml", gateway), ("dialects/chat.test.yaml", tests)]);
}

#[test]
fn a07_every_shipped_backend_has_tests_of_requests() {
    let plan = &LoadedSet::embedded().plan;
    let with_request: BTreeSet<String> =
        plan.backends.iter().filter(|backend| backend.transport != Transport::Replay).map(|b| b.name.clone()).collect();
    let files = embedded::files();
    let tested: BTreeSet<String> = files
        .iter()
        .filter(|file| file.text.contains("sent:"))
        .filter_map(|file| Some(file.name.strip_prefix("backends/")?.strip_suffix(".test.yaml")?.to_owned()))
        .collect();
    assert!(with_request.len() >= 6, "{with_request:?}");
    assert_eq!(tested, with_request);
}

#[test]
fn a07_explain_shows_what_is_sent() {
    let dir = TestDir::empty();
    dir.write("body.json", r#"{ "model": "m", "seed": 7, "messages": [ { "role": "user", "content": "Hi" } ] }"#);
    let explain = |args: &[&str]| {
        let launch = args.iter().fold(Launch::new().arg("explain").arg(dir.path("body.json")), |l, arg| l.arg(arg));
        let exit = launch.env("REFRAME_BACKEND_KEY", "a-real-secret").run();
        assert_eq!(exit.code, Some(0), "{}", exit.stderr);
        exit.stdout
    };
    let shown = explain(&["--to", "chat", "--sent=anthropic-messages"]);
    let (head, rest) = shown.split_once("\n\n").unwrap();
    assert!(head.starts_with("POST /messages\n"), "{shown}");
    assert!(head.contains("\nx-api-key: API-KEY\n"), "{shown}");
    let (body, dropped) = rest.split_once("\n\n").unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(body).unwrap()["model"], json!("m"));
    assert_eq!(dropped, "dropped: seed (API-KEY is the API key of the backend)\n");
    let rejected = explain(&["--to", "responses", "--sent=anthropic-messages"]);
    assert!(rejected.starts_with("`responses` rejects this request: "), "{rejected}");
}

/// The parameters of a path and a query are those of the endpoint that is given.
#[test]
fn a07_explain_reads_the_parameters_of_a_path() {
    let dir = TestDir::empty();
    let layer = [
        ("gateway.yaml", "routes: [ { endpoint: \"POST /ask/{model}/now\", dialect: ask } ]"),
        (
            "dialects/ask.yaml",
            "dialect: ask\nrequest: { model: path.model, user: query.who, items: [ { where: { $.q: string }, emit: [ \
             message: { role: user, text: $.q } ] } ] }\nstream:\n  framing: { data: json }\n  frames: { text.delta: { \
             delta: { data: \"{{ text }}\" } }, turn.end: { end: { text: end } } }\n  order: { turn: turn.end, item: \
             text.delta* }\nbody: { text: \"{{ turn.choices[0].text }}\" }\nerrors: { why: \"{{ fault.message }}\" }\n",
        ),
        ("body.json", r#"{ "q": "Hi" }"#),
    ];
    layer.iter().for_each(|(name, text)| dir.write(name, text));
    let launch = Launch::new().arg("explain").arg(dir.path("body.json")).arg("--add").arg(dir.path(""));
    let exit = launch.arg("--route").arg("POST /ask/vendor%2Fm/now?who=me").arg("--sent=openai-chat").run();
    assert_eq!(exit.code, Some(0), "{}", exit.stderr);
    assert!(
        exit.stdout.contains("\"model\": \"vendor/m\"") && exit.stdout.contains("\"user\": \"me\""),
        "{}",
        exit.stdout
    );
}

#[test]
fn a07_the_log_shows_what_is_sent_without_the_key() {
    let backend = MockBackend::start(|_| {
        let message = json!({ "role": "assistant", "content": "Hello" });
        MockResponse::json(200, &backend_events::completion(&message, "stop").to_string())
    });
    let log = |level: &str| {
        let url = format!("openai-chat={}", backend.url());
        let server = serve().args(["--backend", &url]).env("REFRAME_LOG", level);
        let server = server.env("REFRAME_BACKEND_KEY", "a-real-secret").start();
        let reply = server.fetch(chat("a private text").with("model", "m").with("nonsense", 1));
        assert_eq!(reply.status(), 200, "{}", reply.text());
        server.wait_for_log("responded")
    };
    let trace = log("trace");
    assert!(trace.contains("request to the backend"), "{trace}");
    assert!(trace.contains("authorization: [redacted]"), "{trace}");
    assert!(trace.contains("dropped=\"nonsense\"") || trace.contains("dropped=nonsense"), "{trace}");
    assert!(trace.contains("a private text"), "{trace}");
    assert!(!trace.contains("a-real-secret"), "{trace}");
    assert_eq!(backend.requests()[0].header("authorization"), Some("Bearer a-real-secret"));
    let debug = log("debug");
    assert!(debug.contains("request to the backend") && !debug.contains("a private text"), "{debug}");
    let info = log("info");
    assert!(!info.contains("request to the backend"), "{info}");
}

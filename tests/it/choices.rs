//! What a client can choose: policies by header with other words, profiles by header, and policies by the content of a
//! request (`choose:`).

use crate::support::{ChatRequest, Request, Server, TestDir, chat, edited, repo, serve_with};
use serde_json::{Value, json};

const ROUTE: &str = "  - { endpoint: POST /v1/chat/completions, dialect: chat, profile: openai }\n";

/// The shipped set with more keys in its chat route, and more files.
fn server(rest: &str, more: &[(&str, &str)]) -> Server {
    let route = ROUTE.replace(" }", &format!(", {rest} }}"));
    let gateway = edited(&repo("mappings/gateway.yaml"), ROUTE, &route);
    let dir = TestDir::empty();
    dir.write("layer/gateway.yaml", &gateway);
    for (path, text) in more {
        dir.write(&format!("layer/{path}"), text);
    }
    serve_with(dir)
}

/// The delta of the first frame.
fn opening(server: &Server, request: ChatRequest) -> Value {
    let frames = server.fetch(request.streamed()).frames();
    frames[0].json()["choices"][0]["delta"].clone()
}

#[test]
fn a_header_may_have_other_words_and_ignore_unknown_ones() {
    let words = "policy: role_content, words: { bare: omitted, Nothing: null_value }";
    let strict = server(&format!("headers: {{ x-role: {{ {words} }} }}"), &[]);
    let delta = |server: &Server, word: &str| opening(server, chat("Hello!").header("x-role", word));
    assert_eq!(delta(&strict, "bare"), json!({ "role": "assistant" }));
    assert_eq!(delta(&strict, "nothing"), json!({ "role": "assistant", "content": null }));
    assert_eq!(delta(&strict, "omitted"), json!({ "role": "assistant" }));
    let rejected = strict.fetch(chat("Hello!").header("x-role", "loud"));
    assert_eq!((rejected.status(), &rejected.json()["error"]["param"]), (400, &json!("x-role")));

    let lenient = server(&format!("headers: {{ x-role: {{ {words}, unknown: ignore }} }}"), &[]);
    assert_eq!(delta(&lenient, "loud"), json!({ "role": "assistant", "content": "", "refusal": null }));
    assert_eq!(delta(&lenient, "bare"), json!({ "role": "assistant" }));
}

const BARE: &str = "profile: bare\npolicies: { role_content: { chat: omitted }, usage: zeros }\n";

#[test]
fn a_header_may_select_a_profile() {
    let rest = "headers: { x-reframe-profile: { profiles: [ bare, openai ] }, x-role: role_content }";
    let server = server(rest, &[("profiles/bare.yaml", BARE)]);
    let delta = |profile: &str, role: &str| {
        opening(&server, chat("Hello!").header("x-reframe-profile", profile).header("x-role", role))
    };
    assert_eq!(delta("bare", ""), json!({ "role": "assistant" }));
    assert_eq!(delta("bare", "null_value"), json!({ "role": "assistant", "content": null }));
    assert_eq!(delta("", ""), json!({ "role": "assistant", "content": "", "refusal": null }));
    let rejected = server.fetch(chat("Hello!").header("x-reframe-profile", "codex-proxy"));
    assert_eq!(rejected.status(), 400);
    assert!(rejected.text().contains("use bare or openai"), "{}", rejected.text());
    let document = server.fetch(Request::get("/openapi.json")).json();
    let parameters = document["paths"]["/v1/chat/completions"]["post"]["parameters"].as_array().unwrap();
    assert!(
        parameters.iter().any(|p| p["name"] == "x-reframe-profile" && p["schema"]["enum"] == json!(["bare", "openai"]))
    );
}

#[test]
fn the_content_of_a_request_may_select_policies() {
    let choose = r#"choose: [
        { when: "headers['x-trace'] and policy.usage == 'zeros'", policies: { role_content: null_value } },
        { when: "'<marked>' in (request.raw | json)", policies: { role_content: omitted, usage: zeros } } ]"#;
    let rest = format!("{}, headers: {{ x-role: role_content, x-usage: usage }}", choose.replace('\n', " "));
    let server = server(&rest, &[]);
    let delta = |text: &str, headers: &[(&str, &str)]| {
        opening(&server, headers.iter().fold(chat(text), |request, (name, value)| request.header(name, value)))
    };
    let (usual, bare) =
        (json!({ "role": "assistant", "content": "", "refusal": null }), json!({ "role": "assistant" }));
    let null = json!({ "role": "assistant", "content": null });
    assert_eq!(delta("Hello!", &[]), usual);
    assert_eq!(delta("Hello <marked>!", &[]), bare);
    assert_eq!(delta("Hello!", &[("x-trace", "1")]), usual);
    assert_eq!(delta("Hello <marked>!", &[("x-trace", "1"), ("x-usage", "zeros")]), null, "the first rule applies");
    assert_eq!(delta("Hello <marked>!", &[("x-role", "null_value")]), null, "a header is stronger");
    // A policy that the turn implements, in a body.
    let usage = |text: &str| server.fetch(chat(text)).json()["usage"]["prompt_tokens"].clone();
    assert_ne!(usage("Hello!"), json!(0));
}

#[test]
fn a_policy_that_only_expressions_read_makes_no_variant() {
    // 12 profiles and 3 × 4 words of headers: 13 × 20 combinations, but only 13 plans.
    let profiles: Vec<String> = (0..12).map(|n| format!("p{n}")).collect();
    let files: Vec<(String, String)> = profiles
        .iter()
        .map(|name| (format!("profiles/{name}.yaml"), format!("profile: {name}\npolicies: {{ usage: zeros }}\n")))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let choice = format!("x-reframe-profile: {{ profiles: [ {} ] }}", profiles.join(", "));
    let open = server(&format!("headers: {{ {choice}, x-role: role_content, x-stream: usage_stream }}"), &files);
    let request = chat("Hello!").header("x-reframe-profile", "p11").header("x-role", "omitted");
    assert_eq!(opening(&open, request.header("x-stream", "always")), json!({ "role": "assistant" }));

    let dir = TestDir::empty();
    let rest = format!("headers: {{ {choice}, x-usage: usage, x-start: stream_start }}");
    let gateway = edited(&repo("mappings/gateway.yaml"), ROUTE, &ROUTE.replace(" }", &format!(", {rest} }}")));
    dir.write("layer/gateway.yaml", &gateway);
    for (path, text) in &files {
        dir.write(&format!("layer/{path}"), text);
    }
    let checked = std::process::Command::new(env!("CARGO_BIN_EXE_reframe"))
        .arg("check")
        .arg("--add")
        .arg(dir.path("layer"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
    assert!(text.contains("this route has 78 variants; the limit is 64"), "{text}");
}

#[test]
fn explain_shows_what_a_client_may_choose() {
    let dir = TestDir::empty();
    let rest = "headers: { x-reframe-profile: { profiles: [ codex-proxy ] } }, \
                choose: [ { when: request.stream, policies: { role_content: omitted } } ]";
    let gateway = edited(&repo("mappings/gateway.yaml"), ROUTE, &ROUTE.replace(" }", &format!(", {rest} }}")));
    dir.write("layer/gateway.yaml", &gateway);
    let run = |header: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_reframe"));
        command.args(["explain", "--policies", "--route", "/v1/chat/completions", "--header", header]);
        let output = command.arg("--add").arg(dir.path("layer")).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let text = run("x-reframe-profile=codex-proxy");
    for part in [
        "serves chat with the profile codex-proxy (by header)",
        "`x-reframe-profile: codex-proxy` selects the profile",
        "`x-reframe-profile` may select a profile: codex-proxy",
        "request.stream  role_content: omitted",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(run("x-reframe-profile=other").contains("cannot be `other`"));
}

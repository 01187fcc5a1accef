//! Precedence of policy settings: built-in < dialect < profile < environment < route < user-agent rule < header.

use crate::support::{Reply, Request, Server, TestDir, chat, edited, repo, serve, serve_with};
use serde_json::json;
use std::fs;
use std::path::Path;

// ---- a policy with the names of the layers as values

const LAYERS: [&str; 7] = ["built_in", "dialect", "profile", "environment", "route", "agent", "header"];

/// The path of a route names the layers that set the policy: `/dialect-profile-route`.
fn endpoint(layers: &[&str]) -> String {
    let kept = ["dialect", "profile", "environment", "route"].into_iter().filter(|l| layers.contains(l));
    format!("/{}", kept.collect::<Vec<_>>().join("-"))
}

/// All subsets.
fn subsets(of: &[&'static str]) -> Vec<Vec<&'static str>> {
    let some = |bits: usize| of.iter().enumerate().filter(|(n, _)| bits >> n & 1 == 1).map(|(_, l)| *l).collect();
    (0..1 << of.len()).map(some).collect()
}

fn dialect(name: &str, policies: &str) -> String {
    format!(
        r#"
dialect: {name}
custom_policies: {{ voice: [ {} ] }}
policies: {{ {policies} }}
request:
  required: {{ $.q: string }}
  model: {{ value: demo }}
  stream: {{ from: $.stream, default: false }}
stream:
  framing: {{ data: json }}
  frames:
    turn.open: {{ voice: {{ data: {{ voice: "{{{{ policy.voice }}}}" }} }} }}
    turn.fail: {{ wreck: {{ data: {{ why: "{{{{ fault.message }}}}" }} }} }}
  order: {{ turn: turn.open }}
body: {{ voice: "{{{{ policy.voice }}}}" }}
errors: {{ why: "{{{{ fault.message }}}}", param: "{{{{ fault.param }}}}", voice: "{{{{ policy.voice }}}}" }}
"#,
        LAYERS.join(", ")
    )
}

/// Two dialects, four profiles and sixteen routes: every combination of the layers in files.
fn voice_set() -> TestDir {
    let dir = TestDir::empty();
    let mut routes = String::new();
    for layers in subsets(&["dialect", "profile", "environment", "route"]) {
        let dialect = if layers.contains(&"dialect") { "set" } else { "bare" };
        let profile: Vec<&str> = layers.iter().copied().filter(|l| ["profile", "environment"].contains(l)).collect();
        let policies = if layers.contains(&"route") { ", policies: { voice: route }" } else { "" };
        let profile = if profile.is_empty() { "none".to_owned() } else { profile.join("-") };
        let endpoint = endpoint(&layers);
        routes += &format!(
            "  - {{ endpoint: POST {endpoint}, dialect: {dialect}, profile: {profile}{policies}, headers: {{ X-Voice: voice }} }}\n"
        );
    }
    dir.write(
        "mappings/gateway.yaml",
        &format!(
            "backends: {{ demo: {{ use: replay, script: demo }} }}\n\
             models: [ {{ id: demo, backend: demo }} ]\n\
             routes:\n{routes}  - {{ endpoint: POST /closed, dialect: bare, policies: {{ voice: route }} }}\n\
             by_user_agent:\n  - {{ match: Parrot, policies: {{ voice: {{ bare: agent, set: agent }} }} }}\n\
             \x20 - {{ match: owl, profile: swap }}\n"
        ),
    );
    for (name, text) in [
        ("none", ""),
        ("profile", "policies: { voice: { bare: profile, set: profile } }"),
        ("environment", "environment: { TEST_VOICE: voice }"),
        (
            "profile-environment",
            "policies: { voice: { bare: profile, set: profile } }\nenvironment: { TEST_VOICE: voice }",
        ),
        (
            "swap",
            "policies: { voice: { bare: profile, set: profile } }\npatch: { bare: { body: { by: { $add: swap } } } }",
        ),
    ] {
        dir.write(&format!("mappings/profiles/{name}.yaml"), &format!("profile: {name}\n{text}\n"));
    }
    dir.write("mappings/dialects/bare.yaml", &dialect("bare", ""));
    dir.write("mappings/dialects/set.yaml", &dialect("set", "voice: dialect"));
    dir.write("mappings/backends/replay.yaml", &repo("mappings/backends/replay.yaml"));
    dir.write(
        "mappings/backends/tiny.yaml",
        "backend: tiny\ntransport: http\nevents: { framing: ndjson, rules: [ { where: { $.stop: string }, emit: [ finish: { reason: $.stop } ] } ] }\n",
    );
    dir.write("mappings/scripts/demo.yaml", "script: demo\nsteps: [ { play: stop } ]\n");
    dir.write("mappings/transcripts/stop.jsonl", "{\"transcript\":\"tiny\"}\n{\"raw\":{\"stop\":\"stop\"}}\n");
    // Without its own folder the set would use the embedded schemas.
    fs::create_dir(dir.path("schemas")).unwrap();
    dir
}

fn start_server(dir: &TestDir) -> Server {
    serve().in_folder(&dir.path("")).env("TEST_VOICE", "environment").start()
}

fn fetch(server: &Server, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let request = Request::post(body).at(path).header("content-type", "application/json");
    server.fetch(headers.iter().fold(request, |request, (name, value)| request.header(name, value)))
}

fn voice(server: &Server, path: &str, headers: &[(&str, &str)]) -> String {
    let reply = fetch(server, path, headers, r#"{"q":"?"}"#);
    assert_eq!(reply.status(), 200, "{}", reply.text());
    reply.json()["voice"].as_str().unwrap().to_owned()
}

#[test]
fn the_last_setting_of_a_policy_wins() {
    let dir = voice_set();
    let server = start_server(&dir);
    let mut count = 0;
    for layers in subsets(&LAYERS[1..]) {
        let mut headers = Vec::new();
        headers.extend(layers.contains(&"agent").then_some(("user-agent", "Parrot/1.0")));
        headers.extend(layers.contains(&"header").then_some(("x-voice", "header")));
        let path = endpoint(&layers);
        let strongest = *layers.last().unwrap_or(&LAYERS[0]);
        assert_eq!(voice(&server, &path, &headers), strongest, "a body, {layers:?}");
        let stream = fetch(&server, &path, &headers, r#"{"q":"?","stream":true}"#);
        let frames = stream.frames();
        assert_eq!(frames[0].json(), json!({ "voice": strongest }), "a stream, {layers:?}");
        count += 1;
    }
    assert_eq!(count, 64);
}

#[test]
fn a_header_selects_any_value_of_its_policy_and_no_other() {
    let dir = voice_set();
    let server = start_server(&dir);
    for word in LAYERS {
        assert_eq!(voice(&server, "/route", &[("X-VOICE", word)]), word);
    }
    let values = "built_in, dialect, profile, environment, route, agent or header";
    for (headers, shown) in [
        (vec![("x-voice", "loud")], "loud"),
        (vec![("x-voice", "Header")], "Header"),
        (vec![("x-voice", "header"), ("x-voice", "header")], "header, header"),
        (vec![("x-voice", "{{ policy.voice }}")], "{{ policy.voice }}"),
    ] {
        let reply = fetch(&server, "/route", &headers, r#"{"q":"?"}"#);
        let why = format!("the header `x-voice` cannot be `{shown}`: use {values}");
        assert_eq!((reply.status(), reply.json()), (400, json!({ "why": why, "param": "x-voice", "voice": "route" })));
    }
    let long = fetch(&server, "/route", &[("x-voice", &"v".repeat(500))], r#"{"q":"?"}"#).text();
    assert!(long.contains(&format!("`{}…`", "v".repeat(40))), "{long}");
}

#[test]
fn an_empty_header_and_a_header_that_is_not_allowed_change_nothing() {
    let dir = voice_set();
    let server = start_server(&dir);
    assert_eq!(voice(&server, "/route", &[("x-voice", "")]), "route");
    assert_eq!(voice(&server, "/closed", &[("x-voice", "header")]), "route");
    assert_eq!(voice(&server, "/closed", &[("x-voice", "loud")]), "route");
    assert_eq!(voice(&server, "/closed", &[("voice", "header"), ("policy", "voice")]), "route");
}

#[test]
fn the_profile_of_a_user_agent_rule_replaces_the_routes_and_overrides_its_policies() {
    let dir = voice_set();
    let server = start_server(&dir);
    let reply = fetch(&server, "/environment-route", &[("user-agent", "an OWL 2")], r#"{"q":"?"}"#).json();
    assert_eq!(reply, json!({ "voice": "profile", "by": "swap" }));
    assert_eq!(voice(&server, "/environment-route", &[("user-agent", "an OWL 2"), ("x-voice", "dialect")]), "dialect");
    // Only the first matching rule applies.
    assert_eq!(voice(&server, "/route", &[("user-agent", "owl and parrot")]), "agent");
    // An error is rendered with the profile of the rule.
    let rejected = fetch(&server, "/route", &[("user-agent", "owl"), ("x-voice", "?")], r#"{"q":"?"}"#);
    assert_eq!((rejected.status(), &rejected.json()["voice"]), (400, &json!("profile")));
}

#[test]
fn a_variable_that_is_empty_or_not_set_sets_nothing() {
    let dir = voice_set();
    let empty = serve().in_folder(&dir.path("")).env("TEST_VOICE", "").start();
    assert_eq!(voice(&empty, "/environment", &[]), "built_in");
    assert_eq!(voice(&empty, "/profile-environment", &[]), "profile");
    let unset = serve().in_folder(&dir.path("")).start();
    assert_eq!(voice(&unset, "/profile-environment", &[]), "profile");
}

#[test]
fn a_variable_with_an_invalid_value_is_reported_without_the_value() {
    let dir = voice_set();
    // The value is not printed: a wrongly named variable may hold a secret.
    for (value, near) in [("enviroment", "did you mean `environment`?"), ("hunter2", "")] {
        let rejected = serve().in_folder(&dir.path("")).env("TEST_VOICE", value).run_with_timeout();
        assert_eq!(rejected.code, Some(2));
        let output = rejected.stderr;
        assert!(
            output.contains(
                "error[RF124]: the value of the environment variable `TEST_VOICE` is invalid for the policy `voice`"
            ),
            "{output}"
        );
        assert!(output.contains("mappings/profiles/environment.yaml:2:16"), "{output}");
        assert!(output.contains(near) && !output.contains(value), "{output}");
    }
}

#[test]
fn a_profile_on_the_command_line_replaces_those_of_the_routes() {
    let dir = voice_set();
    let server = serve().in_folder(&dir.path("")).args(["--profile", "swap"]).start();
    assert_eq!(voice(&server, "/", &[]), "profile");
    assert_eq!(voice(&server, "/route", &[]), "route");
}

/// Allowed headers are reloaded like all mappings.
#[test]
fn an_edit_changes_the_allowed_headers() {
    let dir = voice_set();
    let server = start_server(&dir);
    assert_eq!(voice(&server, "/closed", &[("x-voice", "header")]), "route");
    dir.edit("mappings/gateway.yaml", "policies: { voice: route } }\nby", "headers: { x-voice: voice } }\nby");
    crate::support::eventually("the header is allowed", || {
        (voice(&server, "/closed", &[("x-voice", "header")]) == "header").then_some(())
    });
}

// ---- the shipped dialects

const ROUTE: &str = "endpoint: POST /v1/chat/completions, dialect: chat, profile: openai }";

fn shipped(rest: &str) -> Server {
    let route = ROUTE.replace(" }", &format!(", {rest} }}"));
    let gateway = edited(&repo("mappings/gateway.yaml"), ROUTE, &route);
    let dir = TestDir::empty();
    dir.write("layer/gateway.yaml", &gateway);
    serve_with(dir)
}

#[test]
fn a_chat_client_can_select_when_usage_is_streamed() {
    let server = shipped("headers: { x-usage-stream: usage_stream }");
    let usage = |word: Option<&str>| {
        let request = chat("Hello!").streamed();
        let request = word.into_iter().fold(request, |request, word| request.header("x-usage-stream", word));
        let frames = server.fetch(request).frames();
        frames.iter().filter(|f| f.data != "[DONE]" && f.json()["usage"].is_object()).count()
    };
    assert_eq!((usage(None), usage(Some("always")), usage(Some("never"))), (0, 1, 0));
    let rejected = server.fetch(chat("Hello!").header("x-usage-stream", "sometimes"));
    let message = "the header `x-usage-stream` cannot be `sometimes`: use requested_only, always or never";
    assert_eq!(rejected.status(), 400);
    let error = json!({ "message": message, "type": "invalid_request_error", "param": "x-usage-stream", "code": "invalid_value" });
    assert_eq!(rejected.json(), json!({ "error": error }));
}

#[test]
fn a_route_has_its_own_policies() {
    let server = shipped("policies: { usage_stream: always, role_content: omitted }");
    let frames = server.fetch(chat("Hello!").streamed()).frames();
    assert_eq!(frames[0].json()["choices"][0]["delta"], json!({ "role": "assistant" }));
    assert!(frames[frames.len() - 2].json()["usage"].is_object());
}

/// `A` and `B` are aliases of `as_reported` and `zeros`.
#[test]
fn a_value_of_a_policy_may_have_an_alias() {
    let server = shipped("policies: { usage: B }, headers: { x-usage: usage }");
    let status = |value: &str| server.fetch(chat("Hello!").header("x-usage", value)).status();
    assert_eq!(["A", "B", "zeros"].map(status), [200, 200, 200]);
    let rejected = server.fetch(chat("Hello!").header("x-usage", "C"));
    assert_eq!(rejected.status(), 400);
    assert!(rejected.text().contains("as_reported, zeros or estimate"), "{}", rejected.text());
}

#[test]
fn the_openapi_document_lists_the_policy_headers() {
    let server = shipped("headers: { x-usage-stream: usage_stream }");
    let document = server.fetch(Request::get("/openapi.json")).json();
    let parameters = &document["paths"]["/v1/chat/completions"]["post"]["parameters"];
    let schema = json!({ "type": "string", "enum": ["requested_only", "always", "never"] });
    let description = "Selects the value of the policy `usage_stream`.";
    let header = json!({ "name": "x-usage-stream", "in": "header", "description": description, "required": false, "schema": schema });
    assert_eq!(parameters, &json!([header]));
    assert!(document["paths"]["/v1/responses"]["post"].get("parameters").is_none());
}

// ---- the example house-rules

#[test]
fn house_rules_select_by_user_agent_and_environment() {
    let house = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/house-rules");
    let server = serve().arg("--add").arg(house).env("HOUSE_ARGUMENTS", "incremental").start();
    let weather = json!([{ "type": "function", "function": { "name": "get_weather" } }]);
    let fetch = |agent: &str| {
        server.fetch(chat("The weather?").with("tools", weather.clone()).streamed().header("user-agent", agent))
    };
    let guest = fetch("Villa/1.0").text();
    assert!(guest.starts_with("data: {\"id\":\"chatcmpl-") && guest.ends_with("data: [DONE]\n\n"), "{guest}");
    let own = fetch("Mozilla/5.0 cottage/2.1").text();
    assert!(own.starts_with(": one moment\n\ndata: {\"id\":\"house-") && own.ends_with("data: [END]\n\n"), "{own}");
    // The environment variable overrides the profile.
    let whole = r#""arguments":"{\"city\":\"Paris\"}""#;
    assert!(!own.contains(whole), "{own}");
    let unset = serve().arg("--add").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/house-rules")).start();
    let cumulative = chat("The weather?").with("tools", weather.clone()).streamed().header("user-agent", "Cottage");
    assert!(unset.fetch(cumulative).text().contains(whole));
}

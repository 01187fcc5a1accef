//! Golden requests: `tests/requests/CASE/request.json` holds a client's body and its dialect; `BACKEND.json` next to it
//! holds the request to each HTTP backend. Unsupported fields are listed in `dropped`, or are a fault.
//!
//! A new case needs no compilation. `UPDATE_GOLDEN=1 cargo test --test it requests::` writes files that are missing or
//! differ: review the diff before you commit it.

mod unusual_values;

use crate::support::replay::{self, LoadedSet};
use reframe::testing::domain::variables::{Record, Value};
use reframe::testing::domain::{Fault, RoleNames, Tree, TurnRequest};
use reframe::testing::engine::backend_request::prepare;
use reframe::testing::engine::request;
use reframe::testing::mapping::SourceFile;
use reframe::testing::reload::embedded;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const BACKENDS: &[&str] = &["openai-chat", "openai-responses", "anthropic-messages", "gemini-generate"];

/// Every shipped HTTP backend, and some with other settings.
const GATEWAY: &str = r#"
backends:
  openai-chat: { use: openai-chat, url: "http://backend.test/v1" }
  openai-responses: { use: openai-responses, url: "http://backend.test/v1" }
  anthropic-messages: { use: anthropic-messages, url: "http://backend.test/v1" }
  gemini-generate: { use: gemini-generate, url: "http://backend.test/v1" }
  renames: { use: openai-chat, url: "http://backend.test/v1", fields: { rename: { max_completion_tokens: max_tokens } } }
  renames-onto: { use: openai-chat, url: "http://backend.test/v1", fields: { rename: { user: safety_identifier } } }
  has-defaults: { use: openai-chat, url: "http://backend.test/v1", fields: { default: { temperature: 0.2, top_k: 40 } } }
  forces: { use: openai-chat, url: "http://backend.test/v1", fields: { force: { temperature: 1, options: { a: [ 1 ] } } } }
  drops: { use: openai-chat, url: "http://backend.test/v1", fields: { drop: [ seed, user ] } }
  rejects: { use: openai-chat, url: "http://backend.test/v1", fields: { reject: [ seed ] } }
  forwards-unknown: { use: openai-chat, url: "http://backend.test/v1", unknown_fields: forward }
  drops-unknown: { use: openai-chat, url: "http://backend.test/v1", unknown_fields: drop }
  rejects-unknown: { use: openai-chat, url: "http://backend.test/v1", unknown_fields: reject }
  rejects-values: { use: openai-chat, url: "http://backend.test/v1", unknown_values: reject }
  rejects-seed: { use: anthropic-messages, url: "http://backend.test/v1", unsupported: { seed: reject } }
  drops-n: { use: anthropic-messages, url: "http://backend.test/v1", unsupported: { n: drop } }
  rejects-reasoning: { use: anthropic-messages, url: "http://backend.test/v1", unknown_fields: reject }
  some-tools: { use: openai-chat, url: "http://backend.test/v1", tools: { web_search: forward, namespace: drop, custom: forward } }
  rejects-namespace: { use: openai-chat, url: "http://backend.test/v1", tools: { namespace: reject } }
  drops-custom: { use: openai-chat, url: "http://backend.test/v1", tools: { custom: drop } }
  forwards-tools: { use: gemini-generate, url: "http://backend.test/v1", tools: { other: forward } }
  blind: { use: openai-chat, url: "http://backend.test/v1", content_parts: { image: drop, refusal: drop } }
  rejects-images: { use: openai-chat, url: "http://backend.test/v1", content_parts: { image: reject } }
  sees-results: { use: openai-chat, url: "http://backend.test/v1", text_only_roles: [] }
  formats-by-tool: { use: anthropic-messages, url: "http://backend.test/v1", unsupported: { format: as_tool } }
  always-streams: { use: openai-chat, url: "http://backend.test/v1", stream: always }
  never-streams: { use: openai-chat, url: "http://backend.test/v1", stream: never }
  gemini-always-streams: { use: gemini-generate, url: "http://backend.test/v1", stream: always }
  developer: { use: openai-chat, url: "http://backend.test/v1", role_map: { system: developer, developer: developer } }
  separate: { use: openai-chat, url: "http://backend.test/v1", system_messages: separate }
models: [ { match: "*", backend: openai-chat } ]
routes: [ { endpoint: POST /chat, dialect: chat, profile: openai } ]
"#;

/// The embedded set with this gateway.yaml.
fn set() -> &'static LoadedSet {
    static SET: OnceLock<LoadedSet> = OnceLock::new();
    SET.get_or_init(|| {
        let mut files: Vec<SourceFile> = embedded::files().into_iter().filter(|f| f.name != "gateway.yaml").collect();
        files.push(SourceFile {
            name: "gateway.yaml".into(),
            shown: "gateway.yaml".into(),
            layer: 0,
            text: GATEWAY.into(),
        });
        LoadedSet::of(&files)
    })
}

/// The backend request in the format of the golden files.
fn prepared_request(backend: &str, dialect: &str, body: &Tree) -> Tree {
    let set = set();
    let client = &set.plan.dialect(dialect, Some("openai")).expect("a dialect of the set").request;
    let backend = set.plan.gateway.backends.iter().find(|b| b.name == backend).expect("a backend of gateway.yaml");
    let (template, address) = (backend.plan.request_template.as_ref().unwrap(), backend.address.as_ref().unwrap());
    let prepared = request::read_tree(client, body.clone());
    let prepared = prepared.and_then(|r| prepare(template, &address.settings, Some("KEY"), &r, client));
    let sent = match prepared {
        Ok(sent) => sent,
        Err(fault) => return Tree::map([("fault", fault_tree(&fault))]),
    };
    let header = |name: &str| Tree::from(sent.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default());
    let texts = |list: &[String]| Tree::from(list.iter().map(|t| Tree::from(t.as_str())).collect::<Vec<_>>());
    Tree::map([
        ("method", Tree::from(sent.method)),
        ("path", Tree::from(sent.path.as_str())),
        ("headers", Tree::map(template.headers.iter().map(|(name, _)| (name.as_str(), header(name))))),
        ("body", sent.body_tree()),
        ("dropped", texts(&sent.dropped)),
        ("wrapped", texts(&sent.tool_aliases.custom)),
    ])
}

fn fault_tree(fault: &Fault) -> Tree {
    Tree::map([
        ("status", Tree::from(i64::from(fault.status()))),
        ("param", fault.param.as_deref().map_or(Tree::Null, Tree::from)),
        ("message", Tree::from(fault.message.as_str())),
    ])
}

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/requests");
    let mut cases: Vec<PathBuf> = fs::read_dir(root).unwrap().map(|case| case.unwrap().path()).collect();
    cases.sort();
    cases
}

#[test]
fn every_request_gives_its_golden_output() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    let mut compared = 0;
    for case in cases() {
        let case_file = replay::requests(&case.join("request.json"));
        let about = case_file["about"].as_str().expect("a case has a description");
        for backend in BACKENDS {
            compared += 1;
            let path = case.join(format!("{backend}.json"));
            let golden = fs::read_to_string(&path).unwrap_or_default();
            let got = prepared_request(backend, case_file["dialect"].as_str().unwrap(), &case_file["body"])
                .to_json_pretty()
                + "\n";
            if golden == got {
                continue;
            }
            if update {
                fs::write(&path, &got).unwrap();
            } else {
                wrong.push(report(&path, about, &golden, &got));
            }
        }
    }
    println!("{compared} goldens compared");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    // Besides `request.json`, a case has nothing but goldens.
    let goldens: usize = cases().iter().map(|case| fs::read_dir(case).unwrap().count() - 1).sum();
    assert!(compared > 50 && compared == goldens, "{compared} of {goldens} goldens were compared");
}

/// The description of the case and the first line that differs.
fn report(path: &Path, about: &str, golden: &str, got: &str) -> String {
    let (expected, actual): (Vec<&str>, Vec<&str>) = (golden.lines().collect(), got.lines().collect());
    let at = expected.iter().zip(&actual).position(|(e, a)| e != a).unwrap_or(expected.len().min(actual.len()));
    let line = |lines: &[&str]| lines.get(at).unwrap_or(&"nothing").trim().to_owned();
    format!(
        "{}\n{about}\n  differs in line {}\n  expected {}\n  got      {}",
        path.display(),
        at + 1,
        line(&expected),
        line(&actual)
    )
}

/// The body of the backend request and the dropped fields, or the fault.
fn sent(backend: &str, body: &str) -> (String, String) {
    let got = prepared_request(backend, "chat", &Tree::parse(body.as_bytes()).unwrap());
    match got.get("fault") {
        Some(fault) => (fault.to_json(), String::new()),
        None => (got.get("body").unwrap().to_json(), got.get("dropped").unwrap().to_json()),
    }
}

/// The same for a minimal request with additional members.
fn with(backend: &str, members: &str) -> (String, String) {
    sent(backend, &format!("{HI}{members}}}"))
}

fn unsupported_fault(param: &str, what: &str) -> String {
    format!("{{\"status\":400,\"param\":\"{param}\",\"message\":\"this backend does not support {what}\"}}")
}

const HI: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]"#;

#[test]
fn a_field_is_renamed() {
    let (body, dropped) = with("renames", r#","max_tokens":7"#);
    assert_eq!((body, dropped), (format!("{HI},\"max_tokens\":7}}"), "[]".to_owned()));
}

#[test]
fn a_renamed_field_replaces_one_of_that_name() {
    let (body, _) = with("renames-onto", r#","safety_identifier":"a","user":"b""#);
    assert_eq!(body, format!("{HI},\"safety_identifier\":\"b\"}}"));
}

#[test]
fn a_default_replaces_a_missing_value() {
    assert_eq!(with("has-defaults", "").0, format!("{HI},\"temperature\":0.2,\"top_k\":40}}"));
    let expected = with("has-defaults", r#","temperature":1.0"#).0;
    assert_eq!(expected, format!("{HI},\"temperature\":1.0,\"top_k\":40}}"));
}

#[test]
fn a_forced_value_overrides_the_request() {
    let forced = format!("{HI},\"temperature\":1,\"options\":{{\"a\":[1]}}}}");
    assert_eq!(with("forces", r#","temperature":0.5"#).0, forced);
    assert_eq!(with("forces", "").0, forced);
}

#[test]
fn a_dropped_field_is_listed_if_present() {
    let (body, dropped) = with("drops", r#","seed":1,"top_p":0.5"#);
    assert_eq!((body, dropped), (format!("{HI},\"top_p\":0.5}}"), r#"["seed"]"#.to_owned()));
}

#[test]
fn a_rejected_field_is_a_fault_if_present() {
    assert_eq!(with("rejects", r#","seed":1"#).0, unsupported_fault("seed", "`seed`"));
    assert_eq!(with("rejects", "").0, format!("{HI}}}"));
}

#[test]
fn unknown_fields_are_forwarded_dropped_or_rejected() {
    let members = r#","foo":{"b":1,"a":1e400},"bar":null"#;
    let forwarded = format!("{HI},\"foo\":{{\"b\":1,\"a\":1e400}}}}");
    assert_eq!(with("forwards-unknown", members), (forwarded, "[]".to_owned()));
    assert_eq!(with("drops-unknown", members), (format!("{HI}}}"), r#"["foo"]"#.to_owned()));
    assert_eq!(with("rejects-unknown", members).0, unsupported_fault("foo", "`foo`"));
}

#[test]
fn unknown_nested_members_are_unknown_fields() {
    let body = Tree::parse(br#"{"model":"m","input":"hi","reasoning":{"summary":"auto"}}"#).unwrap();
    let fault = prepared_request("rejects-reasoning", "responses", &body).get("fault").unwrap().to_json();
    assert_eq!(fault, unsupported_fault("reasoning.summary", "`reasoning.summary`"));
}

#[test]
fn unsupported_features_are_dropped_or_rejected() {
    assert_eq!(with("anthropic-messages", r#","seed":1"#).1, r#"["seed"]"#);
    assert_eq!(with("rejects-seed", r#","seed":1"#).0, unsupported_fault("seed", "`seed`"));
    assert_eq!(with("anthropic-messages", r#","n":2"#).0, unsupported_fault("n", "`n`"));
    assert_eq!(with("drops-n", r#","n":2"#).1, r#"["n"]"#);
}

const TOOLS: &str = r#","tools":[{"type":"function","function":{"name":"f"}},{"type":"web_search"},{"type":"custom","custom":{"name":"c"}},{"type":"namespace","name":"x"}]"#;

#[test]
fn tools_are_handled_by_type() {
    let kept =
        r#"{"type":"function","function":{"name":"f"}},{"type":"web_search"},{"type":"custom","custom":{"name":"c"}}"#;
    let expected = (format!("{HI},\"tools\":[{kept}]}}"), r#"["tools[3]"]"#.to_owned());
    assert_eq!(with("some-tools", TOOLS), expected);
    assert_eq!(with("rejects-namespace", TOOLS).0, unsupported_fault("tools[3]", "tools of the type `namespace`"));
    let expected = format!("{HI},\"tools\":[{{\"type\":\"function\",\"function\":{{\"name\":\"f\"}}}}]}}");
    assert_eq!(with("drops-custom", TOOLS), (expected, r#"["tools[1]","tools[2]","tools[3]"]"#.to_owned()));
}

#[test]
fn forwarded_tools_are_listed_apart_from_functions() {
    let tools = r#","tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}},{"type":"google","googleSearch":{}}]"#;
    let body = Tree::parse(with("forwards-tools", tools).0.as_bytes()).unwrap();
    let expected = r#"[{"functionDeclarations":[{"name":"f"},{"name":"g"}]},{"type":"google","googleSearch":{}}]"#;
    assert_eq!(body.get("tools").unwrap().to_json(), expected);
}

#[test]
fn a_tool_choice_is_dropped_with_its_tools() {
    let tools =
        r#","tools":[{"type":"custom","custom":{"name":"c"}}],"tool_choice":{"type":"custom","custom":{"name":"c"}}"#;
    assert_eq!(with("drops-custom", tools), (format!("{HI}}}"), r#"["tools[0]","tool_choice"]"#.to_owned()));
}

#[test]
fn calls_of_custom_tools_are_wrapped_where_the_tools_are_dropped() {
    let body = r#"{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"1","type":"custom","custom":{"name":"c","input":"x"}}]},{"role":"tool","tool_call_id":"1","content":"y"}]}"#;
    let call = r#"{"id":"1","type":"function","function":{"name":"c","arguments":"{\"input\":\"x\"}"}}"#;
    let result = r#"{"role":"tool","tool_call_id":"1","content":"y"}"#;
    let expected = format!(
        "{{\"model\":\"m\",\"messages\":[{{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{call}]}},{result}]}}"
    );
    assert_eq!(sent("drops-custom", body).0, expected);
}

#[test]
fn content_parts_are_handled_by_kind() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"http://a.test/b.png"}}]}]}"#;
    let expected = r#"{"model":"m","messages":[{"role":"user","content":"see"}]}"#;
    assert_eq!(sent("blind", body), (expected.to_owned(), r#"["parts.image"]"#.to_owned()));
    assert_eq!(sent("rejects-images", body).0, unsupported_fault("messages", "content parts of the type `image`"));
}

#[test]
fn tool_results_contain_images_if_configured() {
    let body = r#"{"model":"m","messages":[{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"http://a.test/b.png"}}]}]}"#;
    assert_eq!(sent("sees-results", body), (body.to_owned(), "[]".to_owned()));
    let expected = r#"{"model":"m","messages":[{"role":"tool","tool_call_id":"1","content":"see"}]}"#;
    assert_eq!(sent("openai-chat", body), (expected.to_owned(), r#"["parts.image"]"#.to_owned()));
}

#[test]
fn a_response_format_is_sent_as_a_tool_if_configured() {
    let format = r#","response_format":{"type":"json_schema","json_schema":{"name":"city","schema":{"type":"object","properties":{"b":{"const":1.0},"a":{}}}}}"#;
    let body = Tree::parse(with("formats-by-tool", format).0.as_bytes()).unwrap();
    let tools = r#"[{"name":"city","input_schema":{"type":"object","properties":{"b":{"const":1.0},"a":{}}}}]"#;
    assert_eq!(body.get("tools").unwrap().to_json(), tools);
    assert_eq!(body.get("tool_choice").unwrap().to_json(), r#"{"type":"tool","name":"city"}"#);
}

#[test]
fn a_dropped_part_is_omitted() {
    let body = r#"{"model":"m","messages":[{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"no"}]}]}"#;
    let expected = r#"{"model":"m","messages":[{"role":"assistant","content":"a"}]}"#;
    assert_eq!(sent("blind", body), (expected.to_owned(), r#"["parts.refusal"]"#.to_owned()));
}

#[test]
fn a_backend_can_require_or_forbid_streaming() {
    let streamed = format!("{HI},\"stream\":true,\"stream_options\":{{\"include_usage\":true}}}}");
    assert_eq!(with("always-streams", "").0, streamed);
    assert_eq!(with("openai-chat", r#","stream":true"#).0, streamed);
    assert_eq!(with("never-streams", r#","stream":true"#).0, format!("{HI}}}"));
    let got = prepared_request("gemini-always-streams", "chat", &Tree::parse(format!("{HI}}}").as_bytes()).unwrap());
    assert_eq!(got.get("path").unwrap().as_str(), Some("/models/m:streamGenerateContent?alt=sse"));
}

/// `[("user", "hi")]` as messages of a body.
fn body(messages: &[(&str, &str)]) -> String {
    let message = |(role, text): &(&str, &str)| format!("{{\"role\":\"{role}\",\"content\":\"{text}\"}}");
    let messages: Vec<String> = messages.iter().map(message).collect();
    format!("{{\"model\":\"m\",\"messages\":[{}]}}", messages.join(","))
}

#[test]
fn roles_are_mapped_in_place() {
    let request = body(&[("system", "a"), ("user", "b"), ("developer", "c")]);
    assert_eq!(sent("developer", &request).0, body(&[("developer", "a"), ("user", "b"), ("developer", "c")]));
    assert_eq!(sent("openai-chat", &request).0, body(&[("system", "a"), ("user", "b"), ("system", "c")]));
}

#[test]
fn system_messages_stay_separate_if_configured() {
    let request = body(&[("system", "a"), ("developer", "b"), ("user", "c")]);
    assert_eq!(sent("separate", &request).0, body(&[("system", "a"), ("system", "b"), ("user", "c")]));
    assert_eq!(sent("openai-chat", &request).0, body(&[("system", "a\\n\\nb"), ("user", "c")]));
}

#[test]
fn a_model_prefix_of_the_backends_list_is_normalized() {
    for (model, path) in [("gemini-x", "gemini-x"), ("models/gemini-x", "gemini-x"), ("a/b c", "a%2Fb%20c")] {
        let body = format!("{{\"model\":\"{model}\",\"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}}]}}");
        let got = prepared_request("gemini-generate", "chat", &Tree::parse(body.as_bytes()).unwrap());
        assert_eq!(got.get("path").unwrap().as_str(), Some(format!("/models/{path}:generateContent").as_str()));
    }
}

#[test]
fn without_a_key_no_key_header_is_sent() {
    for name in BACKENDS {
        let backend = set().plan.gateway.backends.iter().find(|b| b.name == *name).unwrap();
        let (template, address) = (backend.plan.request_template.as_ref().unwrap(), backend.address.as_ref().unwrap());
        let client = &set().plan.dialect("chat", Some("openai")).unwrap().request;
        let request = request::read(client, format!("{HI}}}").as_bytes()).unwrap();
        let sent = prepare(template, &address.settings, None, &request, client).unwrap();
        for secret in ["authorization", "x-api-key", "x-goog-api-key"] {
            assert!(!sent.headers.contains_key(secret), "{name}: {secret}");
        }
    }
}

const CALLING: &str = r#"{"model":"m","messages":[
    {"role":"system","content":"a"},
    {"role":"developer","content":"b"},
    {"role":"assistant","content":null,"tool_calls":[
        {"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},
    {"role":"tool","tool_call_id":"1","content":"c"},
    {"role":"user","content":"d"}]}"#;

fn read_chat(body: &str) -> TurnRequest {
    request::read(&set().plan.dialect("chat", Some("openai")).unwrap().request, body.as_bytes()).unwrap()
}

/// The value of a path, as an expression reads it.
fn value<'a>(request: Record<'a>, path: &str) -> Value<'a> {
    path.split('.').fold(Value::from(request), |value, name| value.field(name))
}

/// The addresses of the views that were built: messages, instructions, and the input of the call.
fn built_views(request: &TurnRequest) -> Vec<usize> {
    let views = &request.content.views;
    let messages = views.messages.get().map(|ranges| ranges.as_ptr().addr());
    let instructions = views.instructions.get().map(|text| text.as_ptr().addr());
    let calls = request.content.items().iter().filter_map(|item| item.call());
    let inputs = calls.filter_map(|call| call.input.0.get()).map(|input| input.as_map().unwrap().as_ptr().addr());
    messages.into_iter().chain(instructions).chain(inputs).collect()
}

#[test]
fn a_view_of_a_request_is_built_when_it_is_read_and_only_once() {
    let request = read_chat(CALLING);
    let client = Record::request(&request);
    for path in ["model", "items", "history", "last.text", "last_user_parts", "last_user_text", "tools", "extra", "raw"]
    {
        value(client, path);
        assert_eq!(built_views(&request).len(), 0, "{path}");
    }
    for (count, path) in [(1, "messages"), (1, "conversation"), (2, "instructions")] {
        value(client, path);
        assert_eq!(built_views(&request).len(), count, "{path}");
    }
    let call = value(client, "items").elements().collect::<Vec<_>>()[2].clone();
    call.field("arguments");
    assert_eq!(built_views(&request).len(), 2);
    assert_eq!(call.field("input").to_tree(), Tree::map([("x", Tree::from(1i64))]));
    let built = built_views(&request);
    assert_eq!(built.len(), 3);
    call.field("input");
    for path in ["messages", "conversation", "instructions"] {
        value(client, path);
    }
    assert_eq!(built_views(&request), built);
}

#[test]
fn a_backend_reads_its_own_roles_everywhere() {
    let request = read_chat(CALLING);
    let roles = ["user", "assistant", "tool"].map(|role| (role.to_owned(), format!("my_{role}")));
    let roles = RoleNames(roles.to_vec());
    let adapted = Record::Request(&request, &request.content, &roles);
    assert_eq!(value(adapted, "last.role").to_tree().as_str(), Some("my_user"));
    let roles_of = |list: &str| -> Vec<Tree> {
        value(adapted, list).elements().map(|element| element.field("role").to_tree()).collect()
    };
    let [calls, results, user] = ["my_assistant", "my_tool", "my_user"].map(Tree::from);
    assert_eq!(roles_of("conversation"), [calls, results, user.clone()]);
    assert_eq!(roles_of("items")[4], user);
}

//! How a client of the profile `codex-proxy` gets calls as text: by header, route, environment, and by what it is.

use crate::support::{ChatRequest, Reply, Request, Server, TestDir, chat, serve};
use serde_json::{Value, json};

const MODE: &str = "x-proxy-output-mode";

fn start(variables: &[(&str, &str)]) -> Server {
    let launch = serve().args(["--profile", "codex-proxy"]).add(TestDir::empty().with_pace("none"));
    variables.iter().fold(launch, |launch, (name, value)| launch.env(name, value)).start()
}

fn weather(text: &str) -> ChatRequest {
    chat(text).with("tools", json!([{ "type": "function", "function": { "name": "get_weather" } }]))
}

fn responses(text: &str) -> Request {
    let tools = json!([{ "type": "function", "name": "get_weather", "parameters": {} }]);
    Request::post(json!({ "model": "demo", "input": text, "tools": tools }).to_string()).at("/v1/responses")
}

fn mode(reply: &Reply) -> &str {
    reply.header(MODE).unwrap_or_default()
}

fn content(reply: &Reply) -> Value {
    reply.json()["choices"][0]["message"]["content"].clone()
}

#[test]
fn a_header_selects_the_mode_and_the_answer_repeats_it() {
    let server = start(&[]);
    let plain = server.fetch(weather("The weather?"));
    assert_eq!(mode(&plain), "obsidian-xml");
    assert!(
        content(&plain).as_str().unwrap().starts_with("<use_tool>\n  <name>get_weather</name>"),
        "{}",
        plain.text()
    );
    for word in ["openai-json", "openai", "openai_json", "OpenAI"] {
        let reply = server.fetch(weather("The weather?").header(MODE, word));
        assert_eq!((mode(&reply), content(&reply)), ("openai-json", Value::Null), "{word}");
        assert_eq!(reply.json()["choices"][0]["finish_reason"], "tool_calls");
    }
    let unknown = server.fetch(weather("The weather?").header(MODE, "markdown"));
    assert_eq!((unknown.status(), mode(&unknown)), (200, "obsidian-xml"), "an unknown word has no effect");
    let wrong = server.fetch(weather("The weather?").with("model", "nobody").header(MODE, "openai"));
    assert_eq!((wrong.status(), mode(&wrong)), (404, "openai-json"), "errors have the header too");
    let stream = server.fetch(weather("The weather?").streamed().header(MODE, "openai"));
    assert_eq!(mode(&stream), "openai-json");
    assert!(!stream.text().contains("use_tool"), "{}", stream.text());
}

#[test]
fn each_route_has_its_own_default() {
    let server = start(&[]);
    let reply = server.fetch(responses("The weather?"));
    assert_eq!(mode(&reply), "openai-json");
    assert!(!reply.text().contains("use_tool"), "{}", reply.text());
    let reply = server.fetch(responses("The weather?").header(MODE, "obsidian"));
    assert!(reply.text().contains("<use_tool>"), "{}", reply.text());
}

#[test]
fn variables_of_the_environment_select_the_mode() {
    let server = start(&[("PROXY_OUTPUT_MODE", "openai"), ("PROXY_RESPONSES_OUTPUT_MODE", "obsidian")]);
    assert_eq!(mode(&server.fetch(weather("The weather?"))), "openai-json");
    assert_eq!(mode(&server.fetch(responses("The weather?"))), "obsidian-xml");
}

#[test]
fn obsidian_copilot_is_recognized_by_its_headers() {
    let server = start(&[("PROXY_OUTPUT_MODE", "openai")]);
    for (name, value) in
        [("user-agent", "obsidian/1.9.7 Electron/37"), ("user-agent", "un/JS 6.5.0"), ("x-copilot-trace-id", "1")]
    {
        assert_eq!(mode(&server.fetch(responses("Hello!").header(name, value))), "obsidian-xml", "{name}: {value}");
    }
    assert_eq!(mode(&server.fetch(responses("Hello!").header("user-agent", "curl/8"))), "openai-json");
    // A header of the client itself comes first.
    let both = responses("Hello!").header("user-agent", "obsidian/1").header(MODE, "openai");
    assert_eq!(mode(&server.fetch(both)), "openai-json");
    assert_eq!(mode(&server.fetch(weather("Hello!").header("user-agent", "obsidian/1"))), "openai-json");
}

#[test]
fn obsidian_copilot_is_recognized_by_its_messages() {
    let server = start(&[("PROXY_OUTPUT_MODE", "openai"), ("PROXY_COPILOT_AUTO_DETECT", "true")]);
    assert_eq!(mode(&server.fetch(weather("Hello!"))), "openai-json");
    assert_eq!(mode(&server.fetch(weather("<recent_conversations> Hello!"))), "obsidian-xml");
    assert_eq!(mode(&server.fetch(responses("<saved_memories> Hello!"))), "obsidian-xml");
    let referer = weather("Hello!").header("http-referer", "https://obsidiancopilot.com");
    assert_eq!(mode(&server.fetch(referer.header("x-title", "Obsidian Copilot"))), "obsidian-xml");
    assert_eq!(mode(&server.fetch(responses("Hello!").header("user-agent", "obsidian/1"))), "openai-json");
}

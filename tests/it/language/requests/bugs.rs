//! Mistakes in the way of a request that must not come back.

use super::assert_pass;
use crate::support::{Launch, MockBackend, MockResponse, TestDir, chat, serve};

#[test]
fn c10_the_param_of_an_error_is_a_path_and_no_json_pointer() {
    let tests = r#"
tests:
  - name: a name with a slash
    request: { model: m, messages: [ { role: user, content: Hi } ], metadata: { "a/b": 5 } }
    expect:
      fault:
        status: 400
        param: metadata.a/b
        message: "`metadata.a/b` must be a string, not a number"
  - name: a name with a tilde
    request: { model: m, messages: [ { role: user, content: Hi } ], metadata: { "a~1b": 5 } }
    expect: { fault: { param: metadata.a~1b } }
"#;
    assert_pass(2, &[("dialects/chat.test.yaml", tests)]);
}

/// A dialect with results of tools inside the content of a user's message.
const DIALECT: &str = r#"
dialect: blocks
request:
  model: $.model
  rules:
    content:
      - { each: "@[*]", where: { "@.type": text }, emit: [ text: { text: "@.text" } ] }
      - { each: "@[*]", where: { "@.type": tool_result }, drop: an item of its own }
      - { each: "@[*]", where: { "@.type": video }, fail: videos are not supported }
  items:
    - { each: "$.system", emit: [ message: { role: system, parts: { from: "@", use: content } } ] }
    - each: "$.messages[*]"
      emit:
        - each: "@.content[?@.type == 'tool_use']"
          call: { id: "@.id", name: "@.name", arguments: { from: "@.input", as: json_text } }
        - each: "@.content[?@.type == 'tool_result']"
          result: { call_id: "@.tool_use_id", text: "@.content" }
        - where: { "@.role": user }
          message: { role: user, parts: { from: "@.content", use: content } }
stream:
  framing: { data: json }
  frames: { text.delta: { text: { data: { text: "{{ text }}" } } }, turn.fail: {} }
  order: { item: text.delta* }
body: { text: "{{ turn.choices[0].text }}" }
errors: { message: "{{ fault.message }}" }
"#;

#[test]
fn c14_a_message_with_only_tool_results_is_no_empty_message() {
    let tests = r#"
tests:
  - name: only results
    backend: openai-chat
    request:
      model: m
      messages:
        - { role: user, content: [ { type: text, text: Hi } ] }
        - { role: assistant, content: [ { type: tool_use, id: c1, name: look, input: {} } ] }
        - { role: user, content: [ { type: tool_result, tool_use_id: c1, content: rain } ] }
    expect: { sent: { body: { "$.messages[*].role": [ user, assistant, tool ] } } }
  - name: a result and a text
    backend: openai-chat
    request:
      model: m
      messages:
        - { role: assistant, content: [ { type: tool_use, id: c1, name: look, input: {} } ] }
        - role: user
          content: [ { type: tool_result, tool_use_id: c1, content: rain }, { type: text, text: Really? } ]
    expect: { sent: { body: { "$.messages[*].role": [ assistant, tool, user ] } } }
  - name: no content is an empty message
    backend: openai-chat
    request: { model: m, messages: [ { role: user, content: [] } ] }
    expect: { sent: { body: { messages: [ { role: user, content: "" } ] } } }
"#;
    assert_pass(3, &[("dialects/blocks.yaml", DIALECT), ("dialects/blocks.test.yaml", tests)]);
}

#[test]
fn c15_system_blocks_are_separated_by_a_blank_line() {
    let gateway = r#"
backends:
  paragraphs: { use: openai-chat, url: "http://127.0.0.1:1/v1" }
  concat: { use: openai-chat, url: "http://127.0.0.1:1/v1", system_parts: concat }
models: [ { match: "*", backend: concat } ]
routes: [ { endpoint: POST /blocks, dialect: blocks } ]
"#;
    let request = r#"
    request:
      model: m
      system: [ { type: text, text: One. }, { type: text, text: Two. } ]
      messages: [ { role: user, content: [ { type: text, text: A }, { type: text, text: B } ] } ]
"#;
    let tests = format!(
        r#"
tests:
  - name: as one text
    backend_entry: paragraphs
    {request}
    expect: {{ sent: {{ body: {{ "$.messages[*].content": [ "One.\n\nTwo.", AB ] }} }} }}
  - name: in the place for instructions
    backend: anthropic-messages
    {request}
    expect: {{ sent: {{ body: {{ system: "One.\n\nTwo." }} }} }}
  - name: as they are
    backend_entry: concat
    {request}
    expect: {{ sent: {{ body: {{ "$.messages[*].content": [ One.Two., AB ] }} }} }}
"#
    );
    let files = [("dialects/blocks.yaml", DIALECT), ("gateway.yaml", gateway), ("dialects/blocks.test.yaml", &tests)];
    assert_pass(3, &files);
}

#[test]
fn c16_fail_in_content_rules_names_the_element() {
    let tests = r#"
tests:
  - name: the second part
    request: { model: m, messages: [ { role: user, content: [ { type: text, text: A }, { type: video } ] } ] }
    expect:
      fault:
        { kind: unsupported, status: 400, param: "messages[0].content[1]", message: videos are not supported }
"#;
    assert_pass(1, &[("dialects/blocks.yaml", DIALECT), ("dialects/blocks.test.yaml", tests)]);
}

#[test]
fn c18_a_short_key_does_not_garble_messages() {
    let backend = MockBackend::start(|_| {
        MockResponse::json(400, r#"{"error":{"message":"unexpected key x, next to Bearer x"}}"#)
    });
    let at = format!("openai-chat={}", backend.url());
    let server = serve().args(["--backend", &at]).env("REFRAME_BACKEND_KEY", "x").start();
    let reply = server.fetch(chat("Hi"));
    assert_eq!(reply.json()["error"]["message"], "unexpected key [redacted], next to Bearer [redacted]");
}

#[test]
fn c18_a_short_key_protects_no_remote_address() {
    let exit =
        Launch::new().args(["serve", "--listen", "0.0.0.0:0"]).env("REFRAME_API_KEY", "short").run_with_timeout();
    assert_ne!(exit.code, Some(0));
    assert!(exit.stderr.contains("the API key `default` has fewer than 8 characters"), "{}", exit.stderr);
    // On a local address it is accepted.
    let server = serve().env("REFRAME_API_KEY", "short").add(TestDir::empty()).start();
    assert_eq!(server.fetch(chat("Hi").header("authorization", "Bearer short")).status(), 200);
}

//! A4: reasoning that a client sends back reaches the backends that need it.

use super::{assert_pass, run_tests};

const GATEWAY: &str = r#"
backends:
  deepseek: { use: openai-chat, url: "http://127.0.0.1:1/v1", reasoning: forward }
  strict: { use: openai-chat, url: "http://127.0.0.1:1/v1", reasoning: reject }
models: [ { match: "*", backend: deepseek } ]
routes: [ { endpoint: POST /chat, dialect: chat } ]
"#;

#[test]
fn a04_reasoning_is_sent_back_with_its_call() {
    let tests = r#"
tests:
  - name: a chat client
    backend_entry: deepseek
    request:
      model: m
      messages:
        - { role: user, content: Hi }
        - role: assistant
          content: null
          reasoning_content: "I should look."
          tool_calls: [ { id: c1, type: function, function: { name: look, arguments: "{}" } } ]
        - { role: tool, tool_call_id: c1, content: rain }
    expect:
      sent:
        dropped: []
        body:
          messages:
            - { role: user, content: Hi, reasoning_content: null }
            - { role: assistant, reasoning_content: "I should look.", "$.tool_calls[*].id": [ c1 ] }
            - { role: tool, content: rain }
  - name: a backend that does not know it
    backend: openai-chat
    request:
      { model: m, messages: [ { role: user, content: Hi }, { role: assistant, content: Ho, reasoning: "Hm." } ] }
    expect: { sent: { dropped: [ items.reasoning ], body: { "$..reasoning_content": [] } } }
  - name: a backend that must not get it
    backend_entry: strict
    request:
      { model: m, messages: [ { role: user, content: Hi }, { role: assistant, content: Ho, reasoning: "Hm." } ] }
    expect: { fault: { kind: unsupported, param: items.reasoning } }
  - name: unsigned reasoning is not for Anthropic
    backend: anthropic-messages
    request:
      { model: m, messages: [ { role: user, content: Hi }, { role: assistant, content: Ho, reasoning: "Hm." } ] }
    expect: { sent: { dropped: [ items.reasoning ], body: { "$.messages[1].content[*].type": [ text ] } } }
"#;
    assert_pass(4, &[("gateway.yaml", GATEWAY), ("dialects/chat.test.yaml", tests)]);
}

const SIGNED: &str = r#"
tests:
  - name: a Responses client
    dialect: responses
    request:
      model: m
      input:
        - { role: user, content: Hi }
        - { type: reasoning, id: rs_1, summary: [], encrypted_content: secret }
        - type: reasoning
          id: rs_2
          summary: []
          content: [ { type: reasoning_text, text: "I should look." } ]
          encrypted_content: signature
        - { type: function_call, call_id: c1, name: look, arguments: "{}" }
        - { type: function_call_output, call_id: c1, output: rain }
        - { type: reasoning, id: rs_3, summary: [ { type: summary_text, text: unsigned } ] }
    expect:
      sent:
        dropped: [ items.reasoning ]
        body:
          messages:
            - { role: user }
            - role: assistant
              content:
                - { type: redacted_thinking, data: secret }
                - { type: thinking, thinking: "I should look.", signature: signature }
                - { type: tool_use, id: c1 }
            - { role: user, "$.content[*].type": [ tool_result ] }
"#;

#[test]
fn a04_signed_reasoning_goes_back_to_its_backend() {
    assert_pass(1, &[("backends/anthropic-messages.test.yaml", SIGNED)]);
    let wrong = SIGNED.replace("signature: signature", "signature: secret");
    assert_eq!(run_tests(&[("backends/anthropic-messages.test.yaml", &wrong)]).0, 0);
}

#[test]
fn a04_reasoning_without_a_message_makes_none() {
    let tests = r#"
tests:
  - name: between two messages of the user
    dialect: responses
    request:
      model: m
      input:
        - { role: user, content: Hi }
        - { type: reasoning, id: rs_1, summary: [], encrypted_content: secret }
        - { role: user, content: Ho }
    expect: { sent: { body: { "$.messages[*].role": [ user ] } } }
"#;
    assert_pass(1, &[("backends/anthropic-messages.test.yaml", tests)]);
}

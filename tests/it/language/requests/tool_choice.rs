//! Tool choices: some of the tools, and tools that are not offered.

use super::assert_pass;

const BACKEND: &str = r#"
backend: picky
transport: http
request:
  path: /ask
  unsupported: { tool_choice: { required: reject } }
  body:
    texts: { $each: request.messages, as: m, do: "{{ m.text }}" }
    choice: "{{? request.tool_choice.mode }}"
    tools: { $each: request.tools, as: t, do: "{{ t.name }}" }
events: { framing: ndjson, rules: [ { emit: [ text: { delta: $.text } ] } ] }
"#;

fn chat(choice: &str, expect: &str) -> String {
    let tools = "tools: [ { type: function, function: { name: f } }, { type: function, function: { name: g } } ]";
    let request = format!("{{ model: m, {tools}, messages: [ {{ role: user, content: Hi }} ], {choice} }}");
    format!("  - name: 'chat {choice}'\n    dialect: chat\n    request: {request}\n    expect: {{ {expect} }}\n")
}

fn responses(choice: &str, expect: &str) -> String {
    let tools = "tools: [ { type: function, name: f }, { type: function, name: g } ]";
    let request = format!("{{ model: m, {tools}, input: Hi, {choice} }}");
    format!(
        "  - name: 'responses {choice}'\n    dialect: responses\n    request: {request}\n    expect: {{ {expect} }}\n"
    )
}

fn assert_all(tests: &[String]) {
    let text = format!("tests:\n{}", tests.concat());
    assert_pass(tests.len(), &[("backends/picky.yaml", BACKEND), ("backends/picky.test.yaml", &text)]);
}

#[test]
fn allowed_tools_that_are_required_are_required() {
    let rejected = "fault: { kind: unsupported, status: 400, param: tool_choice }";
    assert_all(&[
        chat(
            "tool_choice: { type: allowed_tools, allowed_tools: { mode: required, tools: [ { type: function, function: { \
             name: g } } ] } }",
            rejected,
        ),
        responses(
            "tool_choice: { type: allowed_tools, mode: required, tools: [ { type: function, name: g } ] }",
            rejected,
        ),
    ]);
}

#[test]
fn a_backend_that_does_not_know_allowed_tools_gets_only_these() {
    let only_g = "sent: { body: { choice: auto, tools: { $exactly: [ g ] } }, dropped: [] }";
    assert_all(&[
        chat(
            "tool_choice: { type: allowed_tools, allowed_tools: { mode: auto, tools: [ { type: function, function: { \
             name: g } } ] } }",
            only_g,
        ),
        responses("tool_choice: { type: allowed_tools, mode: auto, tools: [ { type: function, name: g } ] }", only_g),
    ]);
}

#[test]
fn a_chosen_tool_must_be_offered() {
    let fault = "fault: { kind: invalid, status: 400, param: tool_choice }";
    assert_all(&[
        chat("tool_choice: { type: function, function: { name: h } }", fault),
        responses("tool_choice: { type: function, name: h }", fault),
        chat("tool_choice: { type: function, function: { name: g } }", "sent: { body: { choice: named } }"),
    ]);
    let legacy = "  - name: legacy\n    dialect: chat\n    request: { model: m, messages: [ { role: user, content: Hi } ], \
                  functions: [ { name: f } ], function_call: { name: g } }\n    expect: { fault: { status: 400, param: \
                  function_call } }\n";
    assert_all(&[legacy.to_owned()]);
}

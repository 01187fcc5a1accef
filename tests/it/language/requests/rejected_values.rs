//! A8: values that a backend does not support are rejected or dropped, although its body reads the field.

use super::{assert_pass, diagnostics};

const BACKEND: &str = r#"
backend: picky
transport: http
request:
  path: /ask
  unsupported:
    tool_choice: { required: reject, named: drop }
    format: { json_object: reject }
    reasoning_effort: { xhigh: drop }
    parallel_tool_calls: { "false": reject }
  headers:
    x-user: { $if: request.user == 'root', then: { $reject: "not as {{ request.user }}", param: user }, else: ok }
  body:
    texts: { $each: request.messages, as: m, do: { $each: m.parts, as: p, do: { $use: part } } }
    choice: "{{? request.tool_choice.mode }}"
    format: "{{? request.format.kind }}"
    effort: "{{? request.reasoning_effort }}"
    parallel: "{{? request.parallel_tool_calls }}"
    tools: { $each: request.tools, as: t, do: "{{ t.name }}" }
fragments:
  part:
    $switch: p.type
    text: "{{ p.text }}"
    image:
      $if: p.base64
      then: "{{ p.base64 }}"
      else: { $reject: "this backend does not load images from URLs", param: messages }
    $default: { $reject: "parts of the type {{ p.type }} are not supported" }
events: { framing: ndjson, rules: [ { emit: [ text: { delta: $.text } ] } ] }
"#;

fn test(name: &str, request: &str, expect: &str) -> String {
    let tools = "tools: [ { type: function, function: { name: f } } ]";
    let messages = "messages: [ { role: user, content: Hi } ]";
    format!(
        "  - name: {name}\n    dialect: chat\n    request: {{ model: m, {tools}, {messages}, {request} }}\n    expect: {{ \
         {expect} }}\n"
    )
}

fn with_content(name: &str, content: &str, expect: &str) -> String {
    test(name, "stream: false", expect).replace("content: Hi", &format!("content: [ {content} ]"))
}

#[test]
fn a08_a_template_rejects_what_it_cannot_express() {
    let url = "{ type: image_url, image_url: { url: \"https://example.com/a.png\" } }";
    let data = "{ type: image_url, image_url: { url: \"data:image/png;base64,AAAA\" } }";
    let file = "{ type: file, file: { file_id: f } }";
    let fault = "fault: { kind: unsupported, status: 400, param: messages, message: this backend does not load images \
                 from URLs }";
    let tests = [
        "tests:\n".to_owned(),
        with_content("an image by its URL", url, fault),
        with_content("an image with its bytes", data, "sent: { body: { texts: [ [ AAAA ] ] } }"),
        with_content("a file", file, "fault: { param: null, message: parts of the type file are not supported }"),
        test("a header", "user: root", "fault: { kind: unsupported, param: user, message: not as root }"),
        test("another header", "user: me", "sent: { headers: { x-user: ok } }"),
    ];
    assert_pass(5, &[("backends/picky.yaml", BACKEND), ("backends/picky.test.yaml", &tests.concat())]);
}

#[test]
fn a08_values_of_a_field_are_rejected_or_dropped() {
    let named = "tool_choice: { type: function, function: { name: f } }";
    let tests = [
        "tests:\n".to_owned(),
        test("a value that is rejected", "tool_choice: required", "fault: { kind: unsupported, param: tool_choice }"),
        test("a value that is dropped", named, "sent: { body: { choice: null }, dropped: [ tool_choice ] }"),
        test("another value", "tool_choice: none", "sent: { body: { choice: none }, dropped: [] }"),
        test("a format", "response_format: { type: json_object }", "fault: { param: response_format }"),
        test("another format", "response_format: { type: text }", "sent: { body: { format: text }, dropped: [] }"),
        test("a word", "reasoning_effort: xhigh", "sent: { body: { effort: null }, dropped: [ reasoning_effort ] }"),
        test("another word", "reasoning_effort: low", "sent: { body: { effort: low }, dropped: [] }"),
        test("a boolean", "parallel_tool_calls: false", "fault: { param: parallel_tool_calls }"),
        test("the other boolean", "parallel_tool_calls: true", "sent: { body: { parallel: true } }"),
    ];
    assert_pass(9, &[("backends/picky.yaml", BACKEND), ("backends/picky.test.yaml", &tests.concat())]);
}

#[test]
fn a08_mistakes_are_reported() {
    for (right, wrong, message) in [
        ("required: reject", "requird: reject", "`tool_choice` is never `requird`"),
        ("required: reject", "required: forward", "forward"),
        ("path: /ask", "path: { $reject: never }", "`$reject` is only possible in the body and the headers"),
        ("param: messages }", "parm: messages }", "unknown key `parm` in `$reject`"),
    ] {
        let found = diagnostics(&[("backends/picky.yaml", &BACKEND.replacen(right, wrong, 1))]);
        assert!(found.contains(message), "{wrong}: {found}");
    }
}

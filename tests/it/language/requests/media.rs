//! A5: bytes of content parts, as a `data:` URL and in base64 with their type.

use super::assert_pass;

/// A dialect that sends base64 with its type.
const DIALECT: &str = r#"
dialect: plain
request:
  model: $.model
  rules:
    part:
      - where: { "@.type": image }
        emit: [ image: { media_type: "@.mime", base64: "@.bytes" } ]
      - where: { "@.type": file }
        emit: [ file: { name: "@.name", media_type: "@.mime", base64: "@.bytes" } ]
      - where: { "@.type": audio }
        emit: [ audio: { media_type: "@.mime", base64: "@.bytes" } ]
  items:
    - { each: "$.parts[*]", emit: [ message: { role: user, parts: { from: "@", use: part } } ] }
stream:
  framing: { data: json }
  frames: { text.delta: { text: { data: { text: "{{ text }}" } } }, turn.fail: {} }
  order: { item: text.delta* }
body: { text: "{{ turn.choices[0].text }}" }
errors: { message: "{{ fault.message }}" }
"#;

#[test]
fn a05_base64_is_sent_in_the_form_of_each_backend() {
    let test = |backend: &str, image: &str, file: &str, audio: &str| {
        format!(
            r#"
  - name: {backend}
    backend: {backend}
    request:
      model: m
      parts:
        - {{ type: image, mime: image/png, bytes: AAAA }}
        - {{ type: file, name: a.txt, mime: text/plain, bytes: BBBB }}
{audio}
    expect: {{ sent: {{ body: {{ "$..{image}": [ {file} ] }} }} }}
"#
        )
    };
    let audio = "        - { type: audio, mime: audio/mpeg, bytes: CCCC }";
    let tests = [
        "tests:".to_owned(),
        test("openai-chat", "image_url.url", "\"data:image/png;base64,AAAA\"", audio),
        test("openai-chat", "file_data", "\"data:text/plain;base64,BBBB\"", audio),
        test("openai-chat", "input_audio", "{ $exactly: { data: CCCC, format: mp3 } }", audio),
        test("openai-responses", "image_url", "\"data:image/png;base64,AAAA\"", ""),
        test("openai-responses", "file_data", "\"data:text/plain;base64,BBBB\"", ""),
        test("anthropic-messages", "source.media_type", "image/png, text/plain", ""),
        test("anthropic-messages", "source.data", "AAAA, BBBB", ""),
        test("gemini-generate", "inlineData.mimeType", "image/png, text/plain, audio/mpeg", audio),
        test("gemini-generate", "inlineData.data", "AAAA, BBBB, CCCC", audio),
    ];
    assert_pass(9, &[("dialects/plain.yaml", DIALECT), ("dialects/plain.test.yaml", &tests.concat())]);
}

#[test]
fn a05_a_data_url_is_also_base64() {
    let request = r#"{ model: m, messages: [ { role: user, content: [
        { type: image_url, image_url: { url: "data:image/png;base64,AAAA" } },
        { type: file, file: { filename: a.pdf, file_data: BBBB } },
        { type: input_audio, input_audio: { data: CCCC, format: wav } } ] } ] }"#;
    let tests = format!(
        r#"
tests:
  - name: with a type
    backend: gemini-generate
    request: {request}
    expect:
      sent:
        body:
          "$..inlineData":
            - {{ mimeType: image/png, data: AAAA }}
            - {{ mimeType: application/pdf, data: BBBB }}
            - {{ mimeType: audio/wav, data: CCCC }}
  - name: as it came
    backend: openai-chat
    request: {request}
    expect:
      sent:
        body:
          "$..image_url.url": [ "data:image/png;base64,AAAA" ]
          "$..file_data": [ BBBB ]
          "$..input_audio": [ {{ data: CCCC, format: wav }} ]
"#
    );
    assert_pass(2, &[("dialects/chat.test.yaml", &tests)]);
}

//! `logs:` of gateway.yaml: which lines are written when, what they see, and where they go.

use crate::support::{Request, Server, TestDir, chat, eventually, serve};
use serde_json::{Value, json};

/// A server with the demo and these logs. `FILE` is a file of the folder.
fn with_logs(dir: &TestDir, logs: &str) -> Server {
    let file = dir.path("lines").to_string_lossy().into_owned();
    dir.write("layer/gateway.yaml", &logs.replace("FILE", &file));
    serve().arg("--add").arg(dir.layer()).start()
}

/// The lines of the file, once there are so many.
fn lines(dir: &TestDir, count: usize) -> Vec<String> {
    eventually("the file has its lines", || {
        let text = std::fs::read_to_string(dir.path("lines")).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        (lines.len() >= count).then_some(lines)
    })
}

fn json_lines(dir: &TestDir, count: usize) -> Vec<Value> {
    lines(dir, count).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_turn_has_lines_at_its_moments() {
    let dir = TestDir::empty().with_pace("none");
    let logs = r#"
logs:
  turns:
    to: 'FILE'
    lines:
      - { at: turn, line: { at: turn, outcome: "{{ summary.outcome }}", tokens: "{{ summary.total_tokens }}" } }
      - { at: response, line: { at: response, status: "{{ http.status }}", id: "{{ request_id }}" } }
      - at: body
        line: { at: body, object: "{{ data.object }}", is_counted: "{{ bytes == (data | json | length) }}" }
      - { at: frame, when: frame == 'text' and seq < 3, line: { at: frame, text: "{{ data.choices[0].delta }}" } }
      - at: request
        line: { at: request, model: "{{ request.model }}", backend: "{{ backend }}", dialect: "{{ dialect }}" }
"#;
    let server = with_logs(&dir, logs);
    let reply = server.fetch(chat("Hello!"));
    let seen = json_lines(&dir, 4);
    assert_eq!(seen[0], json!({ "at": "request", "model": "demo", "backend": "demo", "dialect": "chat" }));
    assert_eq!(seen[1], json!({ "at": "body", "object": "chat.completion", "is_counted": true }));
    let total = &reply.json()["usage"]["total_tokens"];
    assert_eq!(seen[2], json!({ "at": "turn", "outcome": "completed", "tokens": total }));
    assert_eq!(seen[3], json!({ "at": "response", "status": 200, "id": reply.header("x-request-id").unwrap() }));
    server.fetch(chat("Hello!").streamed());
    let seen = json_lines(&dir, 9);
    // The head of a stream is complete before or after its first frames.
    let of_turn: Vec<&Value> = seen[4..].iter().filter(|line| line["at"] != "response").collect();
    let moments: Vec<&str> = of_turn.iter().filter_map(|line| line["at"].as_str()).collect();
    assert_eq!(moments, ["request", "frame", "frame", "turn"], "{seen:?}");
    assert_eq!(of_turn[1]["text"].as_object().unwrap().keys().collect::<Vec<_>>(), ["content"]);
}

#[test]
fn a_text_is_one_line_as_it_is_and_outputs_are_kept_apart() {
    let dir = TestDir::empty().with_pace("none");
    let logs = r#"
logs:
  start: { to: stdout, lines: { at: start, line: "on {{ listen }}, ready: {{ health.ready }}" } }
  errors: { to: stderr, lines: { at: response, when: http.status >= 400, line: "failed: {{ http.path }}" } }
  agents: { to: 'FILE', lines: { at: response, line: "{{ headers['x-note'] }} {{ http.auth }} {{ http.client }}" } }
"#;
    let server = with_logs(&dir, logs);
    let start = format!("on {}, ready: true\n", server.addr());
    eventually("it is printed", || (server.printed() == start).then_some(()));
    server
        .fetch(Request::get("/nothing").header("x-note", "a  b").header("authorization", "Bearer secret-of-a-client"));
    server.wait_for_log("failed: /nothing\n");
    assert_eq!(lines(&dir, 1), ["a  b present other"]);
    assert!(!server.printed().contains("failed"));
}

#[test]
fn credentials_are_not_visible() {
    let dir = TestDir::empty();
    let logs = "logs: { all: { to: 'FILE', lines: { at: response, line: { headers: '{{ headers }}' } } } }\n";
    let file = dir.path("lines").to_string_lossy().into_owned();
    dir.write("layer/gateway.yaml", &logs.replace("FILE", &file));
    let server = serve().env("REFRAME_API_KEY", "secret-of-a-client").arg("--add").arg(dir.layer()).start();
    let request = Request::get("/v1/models").header("authorization", "Bearer secret-of-a-client");
    server.fetch(request.header("cookie", "session=secret").header("x-note", "seen"));
    let line = &json_lines(&dir, 1)[0];
    assert_eq!(line["headers"]["x-note"], "seen");
    assert!(!line.to_string().contains("secret"), "{line}");
}

#[test]
fn a_log_that_is_off_is_not_written() {
    let dir = TestDir::empty();
    let logs = r#"
logs:
  on: { to: 'FILE', lines: { at: response, line: "on" } }
  off: { to: 'FILE', enabled: false, lines: { at: response, line: "off" } }
  nowhere: { lines: { at: response, line: "nowhere" } }
"#;
    let server = with_logs(&dir, logs);
    server.fetch(Request::get("/v1/models"));
    server.fetch(Request::get("/v1/models"));
    assert_eq!(lines(&dir, 2), ["on", "on"]);
}

#[test]
fn a_layer_changes_one_key_of_a_log() {
    let dir = TestDir::empty();
    let file = dir.path("lines").to_string_lossy().into_owned();
    dir.write(
        "first/gateway.yaml",
        "logs: { a: { to: stdout, lines: { at: response, line: kept } }, b: { to: stdout } }\n",
    );
    dir.write("second/gateway.yaml", &format!("logs: {{ a: {{ to: '{file}' }}, b: $remove }}\n"));
    let server = serve().arg("--add").arg(dir.path("first")).arg("--add").arg(dir.path("second")).start();
    server.fetch(Request::get("/v1/models"));
    assert_eq!(lines(&dir, 1), ["kept"]);
}

#[test]
fn lines_that_cannot_be_written_are_counted_and_reported_once() {
    let dir = TestDir::empty();
    let logs = "metrics: /metrics\nlogs: { a: { to: 'FILE/missing', lines: { at: response, line: lost } } }\n";
    let server = with_logs(&dir, logs);
    server.fetch(Request::get("/v1/models"));
    server.fetch(Request::get("/v1/models"));
    let log = server.wait_for_log("a log file cannot be written");
    eventually("they are counted", || {
        let metrics = server.fetch(Request::get("/metrics")).text();
        let dropped = metrics.lines().find_map(|line| line.strip_prefix("reframe_log_file_lines_dropped_total "));
        (dropped.unwrap().parse::<u64>().unwrap() >= 2).then_some(())
    });
    assert_eq!(log.matches("a log file cannot be written").count(), 1);
}

#[test]
fn an_expression_that_fails_is_reported_once_and_other_lines_are_written() {
    let dir = TestDir::empty();
    let logs = r#"
logs:
  a:
    to: 'FILE'
    lines:
      - { at: response, line: "{{ headers['x-note'] + 1 }}" }
      - { at: response, line: "next" }
"#;
    let server = with_logs(&dir, logs);
    server.fetch(Request::get("/v1/models").header("x-note", "7"));
    server.fetch(Request::get("/v1/models").header("x-note", "7"));
    assert_eq!(lines(&dir, 2), ["next", "next"]);
    assert_eq!(server.wait_for_log("cannot be rendered").matches("cannot be rendered").count(), 1);
}

#[test]
fn members_are_added_to_the_records_of_the_usage_log() {
    let dir = TestDir::empty().with_pace("none");
    let logs = r#"
usage_log:
  path: 'FILE'
  members: { model: "{{ request.model }}!", price: "{{ summary.output_tokens * 2 }}", gone: "{{? summary.error }}" }
"#;
    let server = with_logs(&dir, logs);
    let reply = server.fetch(chat("Hello!"));
    let record = json_lines(&dir, 1).remove(0);
    let tokens = reply.json()["usage"]["completion_tokens"].as_u64().unwrap();
    assert_eq!((&record["model"], &record["price"]), (&json!("demo!"), &json!(tokens * 2)), "{record}");
    assert_eq!((record.get("gone"), &record["outcome"]), (None, &json!("completed")));
}

#[test]
fn each_line_of_a_folder_is_a_file_up_to_a_limit() {
    let dir = TestDir::empty().with_pace("none");
    let logs = r#"
metrics: /metrics
logs:
  turns:
    to: 'FILE/'
    max_files: 2
    lines: { at: turn, line: { complete: "{{ sent.complete }}", body: "{{ sent.frames[0] }}" } }
"#;
    let server = with_logs(&dir, logs);
    let bodies: Vec<Value> = (0..3).map(|_| server.fetch(chat("Hello!")).json()).collect();
    eventually("the third line is dropped", || {
        let metrics = server.fetch(Request::get("/metrics")).text();
        metrics.contains("reframe_log_file_lines_dropped_total 1\n").then_some(())
    });
    let files = eventually("the files are written", || {
        let files = std::fs::read_dir(dir.path("lines")).ok()?.map(|file| file.unwrap().path());
        let mut files: Vec<_> = files.collect();
        files.sort();
        (files.len() == 2).then_some(files)
    });
    for (file, body) in files.iter().zip(&bodies) {
        let written: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!(written, json!({ "complete": true, "body": body }));
    }
}

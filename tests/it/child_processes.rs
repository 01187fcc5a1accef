//! Backends that are child processes: conversations of two protocols, and the supervision of their processes.

mod supervision;

use crate::support::{Client, Launch, Server, TestDir, chat, eventually, serve};
use serde_json::{Value, json};

/// An invented protocol, to show that no protocol is part of the gateway.
const JOBS: &str = r#"
backend: jobs
transport: child_jsonrpc
process: { command: worker }
conversation:
  session:
    - { call: hello, keep: { greeting: $.result.greeting } }
    - { notify: thanks, params: { for: "{{ session.greeting }}" } }
  turn:
    - { call: job/open, params: { text: "{{ request.last_user_text }}" }, keep: { ticket: $.result.ticket } }
    - { call: job/run, params: { job: "{{ kept.ticket }}", text: "{{ request.last_user_text }}" } }
  cancel:
    - { call: job/stop, when: kept.ticket, params: { job: "{{ kept.ticket }}" } }
  close:
    - { call: job/close, params: { job: "{{ kept.ticket }}" } }
  route_by: { keep: ticket, message: $.params.job }
  ended_by: [ over ]
  on_fault:
    where: { $.method: locked }
    calls: [ { call: key/find, keep: { key: $.result.key } } ]
  on_silence:
    after: 1s
    calls: [ { call: job/state, params: { job: "{{ kept.ticket }}" } } ]
  answers:
    may_i: { result: { ticket: "{{ message.params.ticket }}", allowed: false } }
events:
  framing: jsonrpc
  event_name: $.method
  rules:
    - event: progress
      emit: [ text: { delta: $.params.words } ]
    - event: over
      emit:
        - usage: { input: $.params.cost.in, output: $.params.cost.out }
        - finish: { reason: stop }
        - end: {}
    - event: locked
      emit: [ fault: { message: { from: [ $.kept.key, $.params.why ] }, status: 401 } ]
    - where: { $.method: absent, $.result.state: finished }
      emit: [ finish: { reason: stop }, end: {} ]
    - name: answers
      where: { $.method: absent }
      drop: no event
"#;

/// A gateway with a worker process, and the files that the worker writes.
struct WorkerGateway {
    server: Server,
    log: std::path::PathBuf,
    pids: std::path::PathBuf,
}

/// `process`: settings of the process, in YAML.
fn launch(backend: &str, process: &str) -> (Launch, TestDir) {
    let dir = TestDir::empty();
    let worker = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/worker/worker.py");
    let command = if process.contains("command:") { String::new() } else { format!("command: \"{worker}\", ") };
    let gateway = format!(
        "backends:\n  worker: {{ use: {backend}, process: {{ {command}arguments: [], {process} }} }}\n\
         models: {{ $replace: [ {{ match: \"*\", backend: worker }} ] }}\n"
    );
    dir.write("layer/gateway.yaml", &gateway);
    dir.write("layer/backends/jobs.yaml", JOBS);
    let launch = serve()
        .env("WORKER_PROTOCOL", if backend == "jobs" { "jobs" } else { "legacy" })
        .env("WORKER_LOG", &dir.path("log").to_string_lossy())
        .env("WORKER_PIDS", &dir.path("pids").to_string_lossy())
        .env("REFRAME_LOG", "debug");
    (launch, dir)
}

fn start(backend: &str, process: &str, variables: &[(&str, &str)]) -> WorkerGateway {
    let (launch, dir) = launch(backend, process);
    let (log, pids) = (dir.path("log"), dir.path("pids"));
    let launch = variables.iter().fold(launch, |launch, (name, value)| launch.env(name, value));
    WorkerGateway { server: launch.add(dir).start(), log, pids }
}

impl WorkerGateway {
    /// The messages that the worker received, once there are this many with the method.
    fn received(&self, method: &str, count: usize) -> Vec<Value> {
        eventually(&format!("{count} × {method}"), || {
            let text = std::fs::read_to_string(&self.log).unwrap_or_default();
            let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let found: Vec<Value> = messages.filter(|message| message["method"] == method).collect();
            (found.len() >= count).then_some(found)
        })
    }

    fn pids(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(&self.pids).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn content(&self, text: &str) -> Value {
        let reply = self.server.fetch(chat(text));
        assert_eq!(reply.status(), 200, "{}", reply.text());
        reply.json()["choices"][0]["message"]["content"].clone()
    }
}

#[test]
fn a_conversation_of_calls_is_data() {
    let gateway = start("codex-legacy", "", &[]);
    let reply = gateway.server.fetch(chat("Hi").with("temperature", 0.5));
    assert_eq!(reply.status(), 200, "{}", reply.text());
    let body = reply.json();
    assert_eq!(body["choices"][0]["message"]["content"], "Hello from the worker.");
    assert_eq!(body["usage"]["prompt_tokens"], 8);
    let turn = &gateway.received("sendUserTurn", 1)[0]["params"];
    assert_eq!(turn["items"], json!([{ "type": "text", "data": { "text": "Hi" } }]));
    assert_eq!(turn["sandboxPolicy"], json!({ "type": "read-only" }));
    let message = &gateway.received("sendUserMessage", 1)[0];
    assert_eq!(message["jsonrpc"], "2.0");
    assert_eq!(message["params"]["temperature"], 0.5);
    assert_eq!(message["params"]["conversationId"], turn["conversationId"]);
    gateway.received("removeConversationListener", 1);
    assert_eq!(gateway.received("initialize", 1).len(), 1);
}

#[test]
fn a_stream_and_a_body_have_the_same_calls() {
    let gateway = start("codex-legacy", "", &[("WORKER_MODE", "tools")]);
    let tools = json!([{ "type": "function", "function": { "name": "lookup_user" } }]);
    let body = gateway.server.fetch(chat("Hi").with("tools", tools.clone())).json();
    let calls = &body["choices"][0]["message"]["tool_calls"];
    assert_eq!(calls[0]["function"]["arguments"], r#"{"id": "42"}"#);
    assert_eq!(calls[1]["function"]["arguments"], r#"{"id": "43"}"#);
    assert_eq!(body["choices"][0]["finish_reason"], "tool_calls");
    let frames = gateway.server.stream(chat("Hi").with("tools", tools).streamed()).rest();
    let text: String = frames.iter().map(|frame| frame.data.clone()).collect();
    assert!(text.contains("tool_1") && text.contains(r#""finish_reason":"tool_calls""#), "{text}");
}

#[test]
fn faults_of_the_worker_are_errors_of_the_dialect() {
    let gateway = start("codex-legacy", "", &[]);
    let rejected = gateway.server.fetch(chat("mode:error"));
    assert_eq!(rejected.status(), 500);
    assert_eq!(rejected.json()["error"]["message"], "synthetic worker error");
    let unauthorized = gateway.server.fetch(chat("mode:unauthorized"));
    assert_eq!((unauthorized.status(), &unauthorized.json()["error"]["code"]), (401, &json!("invalid_api_key")));
    // A line that is no message does not matter, and a turn after a fault works.
    assert_eq!(gateway.content("mode:garbage"), "Hello from the worker.");
    let metrics = gateway.server.fetch(crate::support::Request::get("/metrics")).text();
    // Three lines of this turn, and the first line of the worker.
    assert!(metrics.contains("reframe_worker_garbage_lines{backend=\"worker\"} 4"), "{metrics}");
    assert!(metrics.contains("reframe_workers_ready{backend=\"worker\"} 1"), "{metrics}");
}

#[test]
fn another_protocol_needs_no_code() {
    let gateway = start("jobs", "", &[]);
    assert_eq!(gateway.content("Hi"), "Working. ");
    assert_eq!(gateway.received("thanks", 1)[0]["params"]["for"], "welcome");
    let answer = eventually("the answer to the worker's request", || {
        let text = std::fs::read_to_string(&gateway.log).ok()?;
        let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        messages.into_iter().find(|message| message.get("method").is_none())
    });
    assert_eq!(answer, json!({ "id": 7, "result": { "ticket": "job-1", "allowed": false } }));
    gateway.received("job/close", 1);
    let stopped = std::fs::read_to_string(&gateway.log).unwrap().contains("job/stop");
    assert!(!stopped, "a turn that has ended is not cancelled");
}

#[test]
fn a_message_that_reports_a_fault_waits_for_the_calls_about_it() {
    let gateway = start("jobs", "", &[]);
    let reply = gateway.server.fetch(chat("mode:locked"));
    assert_eq!((reply.status(), &reply.json()["error"]["message"]), (401, &json!("below the mat")), "{}", reply.text());
    // A process that rejects the call, or does not answer it, cannot stop the fault.
    for mode in ["mode:locked_without_key", "mode:locked_in_silence"] {
        let reply = gateway.server.fetch(chat(mode));
        assert_eq!((reply.status(), &reply.json()["error"]["message"]), (401, &json!("the door is locked")), "{mode}");
    }
    let mut stream = gateway.server.stream(chat("mode:locked").streamed());
    let frames: String = std::iter::from_fn(|| stream.next()).map(|frame| frame.data).collect();
    assert!(frames.contains("below the mat"), "{frames}");
}

#[test]
fn a_silent_turn_is_asked_about_so_that_a_lost_end_is_found() {
    let gateway = start("jobs", "", &[]);
    assert_eq!(gateway.content("mode:lost"), "Working. ");
    assert_eq!(gateway.received("job/state", 1)[0]["params"]["job"], "job-1");
}

#[test]
fn a_disconnect_cancels_the_turn() {
    let gateway = start("jobs", "", &[]);
    let mut stream = gateway.server.stream(chat("mode:slow").streamed());
    assert!(stream.next().is_some());
    drop(stream);
    let stop = gateway.received("job/stop", 1);
    assert_eq!(stop[0]["params"]["job"], "job-1");
    gateway.received("job/close", 1);
}

#[test]
fn a_cancellation_that_comes_too_early_is_repeated() {
    let gateway = start("jobs", "", &[]);
    let mut stream = gateway.server.stream(chat("mode:late").streamed());
    assert!(stream.next().is_some());
    drop(stream);
    // The first one is rejected, and the turn sends its next message after that.
    let stops = gateway.received("job/stop", 2);
    assert_eq!((&stops[0]["params"]["job"], &stops[1]["params"]["job"]), (&json!("job-1"), &json!("job-1")));
    gateway.received("job/close", 1);
}

#[test]
fn secrets_of_the_environment_are_in_no_error() {
    let gateway = start("codex-legacy", "", &[("WORKER_MODE", "leak"), ("WORKER_SECRET_KEY", "sk-of-the-worker-1")]);
    let reply = gateway.server.fetch(chat("Hi"));
    assert!(reply.status() >= 400 && reply.text().contains("[redacted] worker error"), "{}", reply.text());
    let log = gateway.server.wait_for_log("[redacted] worker error");
    assert!(!log.contains("sk-of-the-worker-1"), "{log}");
}

#[test]
fn many_turns_share_one_worker_and_keep_apart() {
    let gateway = start("codex-legacy", "", &[("WORKER_MODE", "echo")]);
    let addr = gateway.server.addr();
    let turns: Vec<_> = (0..40)
        .map(|n| {
            std::thread::spawn(move || {
                let body = Client::connect(addr).fetch(chat(&format!("number {n}"))).json();
                assert_eq!(body["choices"][0]["message"]["content"], format!("echo number {n}"));
            })
        })
        .collect();
    turns.into_iter().for_each(|turn| turn.join().unwrap());
    assert_eq!(gateway.pids().len(), 1);
    gateway.received("removeConversationListener", 40);
}

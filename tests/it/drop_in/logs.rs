//! The lines that operators of the proxy read: on standard output, and in the files that its variables name.

use super::{DropIn, ask, ready, responses, start, with_key};
use crate::support::{ChatRequest, Request, TestDir, eventually};
use serde_json::{Value, json};

/// The JSON lines on standard output with this member, once there is one.
fn printed(gateway: &DropIn, name: &str, value: &str) -> Vec<Value> {
    eventually("the line is printed", || {
        let text = gateway.server.printed();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let lines: Vec<Value> = lines.filter(|line| line[name] == value).collect();
        (!lines.is_empty()).then_some(lines)
    })
}

/// The id of a request that succeeded.
fn id_of(gateway: &DropIn, request: ChatRequest) -> String {
    let reply = gateway.server.fetch(with_key(request));
    assert_eq!(reply.status(), 200, "{}", reply.text());
    reply.header("x-request-id").unwrap().to_owned()
}

/// Lines: log-access
#[test]
fn every_response_is_a_line_on_standard_output() {
    let gateway = ready(&[]);
    let health = gateway.server.fetch(Request::get("/healthz").header("user-agent", "probe/1"));
    let id = health.header("x-request-id").unwrap();
    let line = printed(&gateway, "req_id", id).remove(0);
    assert_eq!((&line["kind"], &line["route"], &line["status"]), (&json!("access"), &json!("/healthz"), &json!(200)));
    assert_eq!((&line["method"], &line["ua"], &line["auth"]), (&json!("GET"), &json!("probe/1"), &json!("none")));
    assert!(line["dur_ms"].is_u64() && line["ts"].is_string() && line["ts_ms"].is_u64(), "{line}");
    let refused = gateway.server.fetch(Request::get("/nothing").header("x-trace-id", "trace-7"));
    let line = printed(&gateway, "req_id", refused.header("x-request-id").unwrap()).remove(0);
    assert_eq!((&line["route"], &line["status"]), (&json!("/nothing"), &json!(404)), "{line}");
    assert_eq!(line["copilot_trace_id"], "trace-7");
    assert!(!gateway.server.printed().contains(super::KEY), "a key is never logged");
}

/// Lines: log-backend-mode
#[test]
fn the_mode_of_the_backend_is_on_standard_output() {
    let gateway = ready(&[]);
    let mode = "[proxy][backend-mode] PROXY_USE_APP_SERVER=true -> activating app-server backend";
    eventually("the mode is printed", || gateway.server.printed().contains(mode).then_some(()));
    assert!(!gateway.server.printed().contains("spawning backend"));
    assert_eq!(gateway.chat(ask("Hi")).0, 200);
    eventually("the turn is printed", || {
        gateway.server.printed().contains("spawning backend=app-server").then_some(())
    });

    let disabled = start(&[("PROXY_USE_APP_SERVER", "false")]);
    let mode = "[proxy][backend-mode] PROXY_USE_APP_SERVER=false -> app-server disabled (proto deprecated)";
    eventually("the mode is printed", || disabled.server.printed().contains(mode).then_some(()));
    assert_eq!(disabled.chat(ask("Hi")).0, 503);
    printed(&disabled, "route", "/v1/chat/completions");
    assert!(!disabled.server.printed().contains("spawning backend"));
}

/// Lines: log-worker-stream
#[test]
fn lines_of_the_worker_are_reported_without_their_text() {
    let gateway = ready(&[("FAKE_STDERR", "{\"message\": \"what a user wrote\"}")]);
    let line = printed(&gateway, "event", "worker_stream").remove(0);
    let expected = (json!("worker"), json!("stderr"), json!("warn"));
    assert_eq!((line["component"].clone(), line["stream"].clone(), line["level"].clone()), expected);
    assert!(line["ts"].is_string() && line["bytes"] == 32, "{line}");
    assert!(!gateway.server.printed().contains("what a user wrote"));
}

/// Lines: log-usage
#[test]
fn records_have_the_members_of_the_proxy() {
    let gateway = ready(&[("FAKE_MODE", "tools"), ("FAKE_CALLS", "2"), ("PROXY_STOP_AFTER_TOOLS_MODE", "first")]);
    let id = id_of(&gateway, ask("Hi").streamed());
    let record = gateway.lines_of("usage.ndjson", 1).remove(0);
    let expected = json!({
        "phase": "usage_summary", "req_id": id, "route": "/v1/chat/completions", "method": "POST",
        "mode": "chat_stream", "stream": true, "status_code": 200, "requested_model": "codex-5",
        "effective_model": "codex-5", "finish_reason": "tool_calls", "has_tool_calls": true,
        "tool_call_count_total": 1, "tool_call_truncated_total": true, "stop_after_tools_mode": "first",
        "choice_count": 1, "metadata_sanitizer_enabled": false, "sanitized_metadata_count": 0,
        "sanitized_metadata_keys": [], "sanitized_metadata_sources": [], "output_mode": "obsidian-xml",
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&record[name], value, "{name} in {record}");
    }
    assert!(record["total_duration_ms"].is_u64() && record["time_to_first_token_ms"].is_u64(), "{record}");
    let (_, raw) = gateway.get("/v1/usage/raw");
    assert_eq!(raw["events"][0], record, "the endpoint has the same members");
}

/// Lines: log-usage-trigger
#[test]
fn records_name_what_reported_the_usage() {
    let record = |gateway: &DropIn, request: ChatRequest| {
        id_of(gateway, request);
        gateway.lines_of("usage.ndjson", 1).remove(0)
    };
    let provider = record(&ready(&[("FAKE_USAGE", "usage")]), ask("Hi").streamed());
    let of = |record: &Value| {
        let names = ["emission_trigger", "usage_included", "provider_supplied", "prompt_tokens", "completion_tokens"];
        json!(names.map(|name| record[name].clone()))
    };
    assert_eq!(of(&provider), json!(["provider", false, true, 8, 6]));
    let counted = record(&ready(&[]), ask("Hi").streamed().with("stream_options", json!({ "include_usage": true })));
    assert_eq!(of(&counted), json!(["token_count", true, false, 8, 6]));
    assert_eq!((&counted["counts_source"], &counted["total_tokens_est"]), (&json!("event"), &json!(14)));
}

/// Lines: log-usage-metadata log-sanitizer
#[test]
fn metadata_that_was_removed_is_reported() {
    let gateway = ready(&[("FAKE_MODE", "metadata"), ("PROXY_SANITIZE_METADATA", "true")]);
    id_of(&gateway, ask("Hi"));
    let id = id_of(&gateway, ask("Hi").streamed());
    let record = gateway.lines_of("usage.ndjson", 2).remove(1);
    assert_eq!((&record["metadata_sanitizer_enabled"], &record["sanitized_metadata_count"]), (&json!(true), &json!(2)));
    assert_eq!(record["sanitized_metadata_keys"], json!(["rollout_path", "session_id"]));
    assert_eq!(record["sanitized_metadata_sources"], json!(["message.metadata"]));
    let lines = gateway.lines_of("sanitizer.ndjson", 3);
    assert_eq!((&lines[0]["kind"], &lines[0]["enabled"]), (&json!("proxy_sanitize_metadata"), &json!(true)));
    let summary = &lines[2];
    assert_eq!((&summary["kind"], &summary["req_id"]), (&json!("metadata_sanitizer_summary"), &json!(id)));
    assert_eq!((&summary["enabled"], &summary["sanitized_count"]), (&json!(true), &json!(2)));
    assert_eq!(summary["sanitized_keys"], json!(["rollout_path", "session_id"]));
    assert_eq!(summary["sanitized_sources"], json!(["message.metadata"]));

    let kept = ready(&[("FAKE_MODE", "metadata")]);
    id_of(&kept, ask("Hi"));
    let lines = kept.lines_of("sanitizer.ndjson", 2);
    assert_eq!((&lines[0]["enabled"], &lines[1]["sanitized_count"]), (&json!(false), &json!(0)));
}

/// Lines: log-proto
#[test]
fn a_trace_has_all_phases_with_one_id_and_no_content() {
    let gateway = ready(&[("PROXY_ENV", "dev")]);
    let id = id_of(&gateway, ask("a secret question").streamed());
    let lines = gateway.lines_of("proto.ndjson", 6);
    assert!(lines.iter().all(|line| line["req_id"] == *id && line["mode"] == "chat_stream"), "{lines:?}");
    let phases: Vec<&str> = lines.iter().filter_map(|line| line["phase"].as_str()).collect();
    let sent = "client_egress";
    assert_eq!(phases, ["http_ingress", "backend_submission", sent, sent, sent, sent]);
    let kinds: Vec<&str> = lines.iter().skip(2).filter_map(|line| line["kind"].as_str()).collect();
    assert_eq!(kinds, ["client_sse", "client_sse", "client_sse", "client_sse_done"]);
    let last = &lines[5];
    assert_eq!((&last["direction"], &last["status_code"]), (&json!("outbound"), &json!(200)));
    assert_eq!(last["route"], "/v1/chat/completions");

    let id = id_of(&gateway, ask("a secret question"));
    let lines = gateway.lines_of("proto.ndjson", 9);
    assert!(lines[6..].iter().all(|line| line["req_id"] == *id && line["mode"] == "chat_nonstream"), "{lines:?}");
    assert_eq!((&lines[8]["kind"], &lines[8]["phase"]), (&json!("client_json"), &json!(sent)));
    let body = json!({ "model": "codex-5", "input": "Hi", "stream": true });
    gateway.server.fetch(with_key(responses(body)));
    let lines = gateway.lines_of("proto.ndjson", 12);
    let event = lines.iter().find(|line| line["phase"] == "responses_sse_out").unwrap();
    assert_eq!((&event["mode"], event["stream_event_type"].is_string()), (&json!("responses_stream"), true), "{event}");
    let refused = gateway.server.fetch(with_key(ask("Hi").with("model", "nobody")));
    let is_refused = |line: &Value| line["req_id"] == refused.header("x-request-id").unwrap();
    let line =
        eventually("the refusal is written", || gateway.lines_of("proto.ndjson", 13).into_iter().find(is_refused));
    assert_eq!(line["status_code"], 404);
    let text = std::fs::read_to_string(gateway.files.join("proto.ndjson")).unwrap();
    assert!(!text.contains("secret question") && !text.contains("Hello from"), "{text}");

    let production = ready(&[]);
    id_of(&production, ask("Hi"));
    production.lines_of("usage.ndjson", 1);
    assert!(!production.files.join("proto.ndjson").exists(), "only with `PROXY_ENV=dev`");
    let chosen = ready(&[("PROXY_LOG_PROTO", "true"), ("PROXY_ENV", "prod")]);
    id_of(&chosen, ask("Hi"));
    chosen.lines_of("proto.ndjson", 3);
}

/// Lines: log-proto-tools
#[test]
fn a_trace_has_the_calls_of_a_turn() {
    let settings = [("FAKE_MODE", "tools"), ("FAKE_CALLS", "3"), ("PROXY_ENV", "dev"), ("PROXY_TOOL_BLOCK_MAX", "2")];
    let gateway = ready(&settings);
    let id = id_of(&gateway, ask("Hi").streamed());
    let summary = eventually("the summary is written", || {
        gateway.lines_of("proto.ndjson", 1).into_iter().find(|line| line["kind"] == "tool_call_summary")
    });
    let expected = json!({
        "req_id": id, "tool_call_count_total": 2, "tool_call_truncated_total": true,
        "stop_after_tools_mode": "burst", "tool_block_max": 2, "suppress_tail_after_tools": false,
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&summary[name], value, "{name} in {summary}");
    }
}

/// Lines: log-capture
#[test]
fn conversations_are_captured_in_files_of_their_own() {
    let dir = TestDir::empty();
    let folder = dir.path("captures");
    let variables = [("PROXY_CAPTURE_CHAT_TRANSCRIPTS", "true"), ("PROXY_CAPTURE_CHAT_DIR", folder.to_str().unwrap())];
    let gateway = ready(&variables);
    let newest = |count: usize| {
        eventually("the file is written", || {
            let files = std::fs::read_dir(&folder).ok()?.filter_map(|file| Some(file.ok()?.path()));
            let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
            files.sort();
            let text = std::fs::read_to_string(files.last().filter(|_| files.len() == count)?).ok()?;
            serde_json::from_str::<Value>(&text).ok()
        })
    };
    let frames = gateway.stream(ask("What is it?"));
    let capture = newest(1);
    assert_eq!((&capture["metadata"]["stream"], &capture["metadata"]["complete"]), (&json!(true), &json!(true)));
    assert_eq!(capture["stream"].as_array().unwrap()[..], frames[..frames.len() - 1], "all but the terminator");
    assert_eq!(capture["request"]["messages"][0]["content"], "What is it?");
    assert_eq!(capture.get("response"), None);
    let (_, body) = gateway.chat(ask("And now?"));
    let capture = newest(2);
    assert_eq!((&capture["response"], &capture["metadata"]["stream"]), (&body, &json!(false)));
    assert_eq!(capture.get("stream"), None);
    assert!(!capture.to_string().contains(super::KEY));

    let plain = ready(&[("PROXY_CAPTURE_CHAT_DIR", folder.to_str().unwrap())]);
    id_of(&plain, ask("Hi"));
    plain.lines_of("usage.ndjson", 1);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "only with the variable");
}

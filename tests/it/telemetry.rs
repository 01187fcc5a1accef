//! Logs, metrics and the usage log of a running gateway.

use crate::support::{
    MockBackend, MockResponse, Request, Server, TestDir, backend_events, chat, demo, eventually, serve,
};
use serde_json::{Value, json};

/// The line of the log that contains both texts, when it is there.
fn line(server: &Server, text: &str, id: &str) -> String {
    eventually("the log has the line", || {
        server.log().lines().find(|line| line.contains(text) && line.contains(id)).map(str::to_owned)
    })
}

fn usage_log(dir: &TestDir) -> String {
    let path = dir.path("usage.ndjson");
    format!("usage_log: {{ path: '{}' }}\n", path.display())
}

fn records(dir: &TestDir, count: usize) -> Vec<Value> {
    eventually("the usage log has its records", || {
        let text = std::fs::read_to_string(dir.path("usage.ndjson")).unwrap_or_default();
        let records: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        (records.len() >= count).then_some(records)
    })
}

#[test]
fn a_turn_is_one_record_of_the_usage_log_with_marked_estimates() {
    let dir = TestDir::empty().with_pace("none");
    dir.write("layer/gateway.yaml", &usage_log(&dir));
    let layer = dir.layer();
    let server = serve().arg("--add").arg(layer).start();
    let reply = server.fetch(chat("Hello!").header("user-agent", "OpenAI/Python 2.0"));
    let refused = server.fetch(chat("Hello!").with("model", "nobody"));
    assert_eq!((reply.status(), refused.status()), (200, 404));
    server.fetch(chat("Hello!").streamed());
    let records = records(&dir, 2);
    assert_eq!(records.len(), 2, "a request that starts no turn has no record");
    let json = &records[0];
    assert_eq!(json["req_id"], reply.header("x-request-id").unwrap());
    assert_eq!(json["client"], "openai-python");
    assert_eq!(json["route"], "/v1/chat/completions");
    assert_eq!((&json["stream"], &json["status_code"], &json["finish"]), (&false.into(), &200.into(), &"stop".into()));
    assert_eq!(json["total_tokens"], reply.json()["usage"]["total_tokens"]);
    assert_eq!(json["estimated"], false);
    assert!(json["ts_ms"].is_i64() && json["duration_ms"].is_u64(), "{json}");
    assert_eq!(records[1]["stream"], true);
    assert!(records[1]["first_frame_ms"].is_u64(), "{}", records[1]);
}

#[test]
fn a_turn_without_reported_usage_is_estimated() {
    let dir = TestDir::empty().with_pace("none");
    dir.write("layer/gateway.yaml", &usage_log(&dir));
    let server = serve().arg("--add").arg(dir.layer()).start();
    // The transcript fails before its usage.
    server.fetch(chat("Break it.").streamed());
    let record = records(&dir, 1).remove(0);
    assert_eq!(record["estimated"], true, "{record}");
    assert!(record["input_tokens"].as_u64().unwrap() > 0, "{record}");
}

/// The list of names in `metric_aliases:` is that of the metrics.
#[test]
fn every_metric_can_have_an_alias() {
    let schema: Value = serde_json::from_str(include_str!("../../schemas/mapping/gateway.json")).unwrap();
    let names =
        schema["$defs"].as_object().unwrap().values().find_map(|def| def["properties"]["of"]["enum"].as_array());
    let known: Vec<&str> = names.unwrap().iter().filter_map(Value::as_str).collect();
    let text = demo().fetch(Request::get("/metrics")).text();
    let declared: Vec<_> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).map(|(name, _)| name).collect();
    // Metrics without a sample are not in the text, but all are in the documentation.
    let page = include_str!("../../docs/operating.md");
    let documented: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.split(['`', '{']).next()).collect();
    let documented: Vec<&str> =
        documented.into_iter().filter(|name| name.starts_with("reframe_") || name.starts_with("gen_ai_")).collect();
    assert!(declared.len() > 9 && declared.iter().all(|name| known.contains(name)), "{declared:?}");
    let [mut known, mut documented] = [known, documented];
    known.sort_unstable();
    documented.sort_unstable();
    assert_eq!(known, documented);
}

#[test]
fn metrics_have_other_names_labels_and_units() {
    let dir = TestDir::empty().with_pace("none");
    dir.write(
        "layer/gateway.yaml",
        r#"
metric_aliases:
  my_requests_total:
    of: reframe_http_responses_total
    when: labels.route != 'other'
    labels: { family: "{{ labels.status[0:1] }}xx" }
  my_latency_ms: { of: reframe_http_request_duration_seconds, scale: 1000, help: Latency }
  my_requests: { of: reframe_http_responses_total, labels: {} }
  my_answer: { value: 42 }
  my_readiness: { value: "{{ health.ready }}" }
static_routes:
  - endpoint: GET /counts
    body: { requests: "{{ metrics.my_requests_total }}", turns: "{{ metrics.reframe_turns_total | default([]) }}" }
  - { endpoint: POST /reset, resets: [ reframe_http_responses_total ], body: {} }
"#,
    );
    let server = serve().arg("--add").arg(dir.layer()).start();
    assert_eq!(server.fetch(chat("Hello!")).status(), 200);
    assert_eq!(server.fetch(Request::get("/v1/models")).status(), 200);
    assert_eq!(server.fetch(Request::get("/nothing")).status(), 404);
    let get = |accept: &str| server.fetch(Request::get("/metrics").header("accept", accept)).text();
    let text = get("application/openmetrics-text");
    for line in [
        "# HELP my_requests Another name of reframe_http_responses_total",
        "# TYPE my_requests counter",
        "my_requests_total{family=\"2xx\"} 2",
        "# HELP my_latency_ms Latency",
        "# TYPE my_latency_ms histogram",
        "my_latency_ms_bucket{route=\"/v1/models\",le=\"5\"} 1",
        "my_latency_ms_count{route=\"/v1/models\"} 1",
        "my_answer 42",
        "my_readiness 1",
    ] {
        assert!(text.lines().any(|own| own == line), "no {line} in {text}");
    }
    assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1);
    assert!(get("text/plain").contains("# TYPE my_requests_total counter\n"));
    let counts = server.fetch(Request::get("/counts")).json();
    assert_eq!(counts["requests"][0]["labels"], json!({ "family": "2xx" }));
    assert!(counts["requests"][0]["value"].as_u64().unwrap() >= 2, "{counts}");
    assert_eq!(counts["turns"][0]["labels"]["route"], "/v1/chat/completions");
    assert_eq!(server.fetch(Request::new("POST", "/reset")).status(), 200);
    let after = get("application/openmetrics-text");
    assert!(after.contains("my_requests_total{family=\"2xx\"} 1\n"), "the reset itself: {after}");
}

#[test]
fn a_turn_ends_with_one_summary_line() {
    let server = serve().add(TestDir::empty().with_pace("none")).start();
    let reply = server.fetch(chat("Hello!").streamed());
    let id = reply.header("x-request-id").unwrap();
    let line = line(&server, "turn ended", id);
    for part in ["dialect=\"chat\"", "status=200", "outcome=\"completed\"", "finish=\"stop\"", "estimated=false"] {
        assert!(line.contains(part), "no {part} in {line}");
    }
    for name in ["input_tokens=", "output_tokens=", "frames=", "first_frame_ms=", "duration_ms=", "client=\"other\""] {
        assert!(line.contains(name), "no {name} in {line}");
    }
    assert!(!line.contains("tool_source"), "a turn without calls has no source of them: {line}");
}

#[test]
fn the_access_line_has_method_route_status_and_client_and_no_key() {
    let server = serve().env("REFRAME_API_KEY", "a-key-of-a-client").start();
    let request = Request::get("/v1/models").header("authorization", "Bearer a-key-of-a-client");
    let reply = server.fetch(request.header("user-agent", "curl/8.0"));
    let line = line(&server, "responded", reply.header("x-request-id").unwrap());
    for part in ["method=GET", "route=\"/v1/models\"", "status=200", "ua=\"curl/8.0\"", "auth=\"present\"", "dur_ms="] {
        assert!(line.contains(part), "no {part} in {line}");
    }
    assert!(line.contains("client=\"curl\""), "{line}");
    assert!(!server.complete_log().contains("a-key-of-a-client"));
}

#[test]
fn log_lines_can_be_json() {
    let server = serve().args(["--log-format", "json"]).add(TestDir::empty().with_pace("none")).start();
    let reply = server.fetch(chat("Hello!"));
    let id = reply.header("x-request-id").unwrap();
    let access: Value = serde_json::from_str(&line(&server, "access_log", id)).unwrap();
    assert_eq!(access["kind"], "access");
    assert_eq!((&access["component"], &access["level"]), (&"http".into(), &"info".into()));
    assert_eq!((&access["req_id"], &access["method"], &access["status"]), (&id.into(), &"POST".into(), &200.into()));
    assert_eq!((&access["route"], &access["auth"]), (&"/v1/chat/completions".into(), &"none".into()));
    assert!(access["dur_ms"].is_u64() && access["ts_ms"].is_i64() && access["ts"].is_string(), "{access}");
    let turn: Value = serde_json::from_str(&line(&server, "turn ended", id)).unwrap();
    assert_eq!(turn["req_id"], id);
    assert_eq!(turn["finish"], "stop");
    assert!(server.log().lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{}", server.log());
}

#[test]
fn every_frame_and_body_is_a_line_at_debug_without_content() {
    let server = serve().env("REFRAME_LOG", "debug").add(TestDir::empty().with_pace("none")).start();
    let request = Request::post(r#"{"model":"demo","input":"Hello!","stream":true}"#).at("/v1/responses");
    let reply = server.fetch(request);
    let id = reply.header("x-request-id").unwrap();
    line(&server, "turn ended", id);
    let log = server.log();
    let frames: Vec<&str> = log.lines().filter(|line| line.contains(" frame ") && line.contains(id)).collect();
    assert_eq!(frames.len(), reply.sse_messages().len());
    for (seq, frame) in frames.iter().enumerate() {
        assert!(frame.contains(&format!("seq={seq}")) && frame.contains("payload_size="), "{frame}");
        assert!(frame.contains("response_id="), "{frame}");
    }
    let response = reply.sse_messages().into_iter().find_map(|message| {
        let data: Value = serde_json::from_str(message.text()).ok()?;
        let id = data["response"]["id"].as_str().map(str::to_owned);
        id.filter(|id| id.starts_with("resp_"))
    });
    let response_id = format!("response_id=\"{}\"", response.unwrap());
    assert!(frames.iter().all(|frame| frame.contains(&response_id)), "as the client sees it: {frames:?}");
    assert!(
        frames
            .iter()
            .any(|frame| frame.contains("event=\"response.output_text.delta\"") && frame.contains("output_index=0"))
    );
    let reply = server.fetch(chat("Hello!"));
    line(&server, " body ", reply.header("x-request-id").unwrap());
    let answer = reply.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    assert!(!server.log().contains(&answer), "no line has the text of an answer");
}

#[test]
fn frames_are_no_lines_by_default() {
    let server = serve().add(TestDir::empty().with_pace("none")).start();
    let reply = server.fetch(chat("Hello!").streamed());
    line(&server, "turn ended", reply.header("x-request-id").unwrap());
    assert!(!server.log().contains("payload_size"));
}

#[test]
fn turns_frames_and_tokens_are_counted_by_closed_labels() {
    let server = serve().add(TestDir::empty().with_pace("none")).start();
    let agent = |agent: &str| chat("Hello!").streamed().header("user-agent", agent);
    let reply = server.fetch(agent("Obsidian/1.9"));
    server.fetch(agent("somebody \"new\""));
    server.fetch(Request::get("/nowhere"));
    let id = reply.header("x-request-id").unwrap();
    line(&server, "turn ended", id);
    let metrics = eventually("both turns are counted", || {
        let text = server.fetch(Request::get("/metrics")).text();
        text.contains("client=\"other\"").then_some(text)
    });
    let labels = "route=\"/v1/chat/completions\",dialect=\"chat\",backend=\"demo\",status=\"200\"";
    for wanted in [
        &format!("reframe_turns_total{{{labels},client=\"obsidian\"}} 1"),
        &format!("reframe_turns_total{{{labels},client=\"other\"}} 1"),
        "reframe_turn_duration_seconds_count{route=\"/v1/chat/completions\"} 2",
        "reframe_turn_first_frame_seconds_count{backend=\"demo\"} 2",
        "reframe_frame_latency_seconds_count{dialect=\"chat\"}",
        "reframe_http_request_duration_seconds_count{route=\"other\"} 1",
        "reframe_buffered_bytes 0",
        "gen_ai_client_operation_duration_seconds_count{gen_ai_operation_name=\"chat\",gen_ai_provider_name=\"openai\"",
        "gen_ai_token_type=\"output\"} 2",
        "gen_ai_server_time_to_first_token_seconds_count",
        "gen_ai_request_model=\"demo\"",
    ] {
        assert!(metrics.contains(wanted), "no {wanted} in\n{metrics}");
    }
    let sent = reply.frames().len() - 1;
    let frames = metrics.lines().filter(|line| line.starts_with("reframe_frames_total{dialect=\"chat\""));
    let total: f64 = frames.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum();
    assert_eq!(total as usize, 2 * (sent + 1), "two streams with the same frames");
    assert!(!metrics.contains("somebody"), "a client creates no label");
}

#[test]
fn the_shared_demo_names_its_metrics_once() {
    let text = demo().fetch(Request::get("/metrics")).text();
    let mut types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    let count = types.len();
    types.sort_unstable();
    types.dedup();
    assert_eq!(types.len(), count);
    assert!(text.ends_with("# EOF\n"));
}

/// Two calls with the same words, and one of another tool.
const CALLS_IN_TEXT: &str = "<use_tool><name>search</name><args>{\"q\":\"one\"}</args></use_tool>\
    <use_tool><name>search</name><args>{\"q\":\"one\"}</args></use_tool>\
    <use_tool><name>fetch</name><args>{\"q\":\"two\"}</args></use_tool>";

/// The actions and tools of the lines about calls in text, when the turn has ended.
fn inline_calls(policies: &str) -> Vec<(String, String)> {
    let word = backend_events::word(CALLS_IN_TEXT).to_string();
    let last = backend_events::chunk(&json!({}), &json!("stop")).to_string();
    let backend = MockBackend::start(move |_| MockResponse::sse(&[&word, &last]).event("[DONE]"));
    let dir = TestDir::empty();
    let policies = format!("{{ text_tools: use_tool, {policies} }}");
    let route = format!("{{ endpoint: POST /v1/chat/completions, dialect: chat, policies: {policies} }}");
    dir.write("layer/gateway.yaml", &format!("routes: {{ $replace: [ {route} ] }}\n"));
    let launch = serve().env("REFRAME_LOG", "debug").args(["--log-format", "json"]);
    let server = launch.args(["--backend", &format!("openai-chat={}", backend.url())]).add(dir).start();
    let tool =
        |name: &str| json!({ "type": "function", "function": { "name": name, "parameters": { "type": "object" } } });
    let reply = server.fetch(chat("Hello!").with("tools", json!([tool("search"), tool("fetch")])));
    assert_eq!(reply.status(), 200, "{}", reply.text());
    line(&server, "turn ended", reply.header("x-request-id").unwrap());
    let log = server.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let calls = lines.filter(|line| line["msg"] == "inline call");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    calls.map(|line| (text(&line["action"]), text(&line["tool"]))).collect()
}

#[test]
fn each_block_of_reasoning_in_text_is_a_line_at_debug() {
    let words =
        ["<think>a", "b</think>One <thi", "nk>c</think>", "Two"].map(|text| backend_events::word(text).to_string());
    let last = backend_events::chunk(&json!({}), &json!("stop")).to_string();
    let backend = MockBackend::start(move |_| {
        let events: Vec<&str> = words.iter().map(String::as_str).chain([last.as_str()]).collect();
        MockResponse::sse(&events).event("[DONE]")
    });
    let dir = TestDir::empty();
    dir.write(
        "layer/backends/thinker.yaml",
        "backend: thinker\nextends: openai-chat\npatch: { events: { inline: { $add: { think: { open: <think>, close: \
         </think>, reasoning: {} } } } } }\n",
    );
    let launch = serve().env("REFRAME_LOG", "debug").args(["--log-format", "json"]);
    let server = launch.args(["--backend", &format!("thinker={}", backend.url())]).add(dir).start();
    let reply = server.fetch(chat("Hello!"));
    assert_eq!(reply.status(), 200, "{}", reply.text());
    line(&server, "turn ended", reply.header("x-request-id").unwrap());
    let found = server.log().lines().filter(|line| line.contains("\"inline reasoning\"")).count();
    assert_eq!(found, 2, "{}", server.log());
}

#[test]
fn each_call_in_text_that_is_found_deduplicated_or_cut_is_a_line_at_debug() {
    let of = |calls: &[(&str, &str)]| -> Vec<(String, String)> {
        calls.iter().map(|(action, tool)| ((*action).to_owned(), (*tool).to_owned())).collect()
    };
    let found = [("found", "search"), ("found", "search"), ("found", "fetch")];
    assert_eq!(inline_calls("duplicate_calls: keep"), of(&found));
    let deduplicated = [("found", "search"), ("found", "search"), ("deduplicated", "search"), ("found", "fetch")];
    assert_eq!(inline_calls("duplicate_calls: drop_text"), of(&deduplicated));
    let cut = [("found", "search"), ("found", "search"), ("cut", "search"), ("found", "fetch"), ("cut", "fetch")];
    assert_eq!(inline_calls("stop_after_tools: first"), of(&cut));
}

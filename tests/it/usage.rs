//! The endpoints that report the usage log: only if there is one, and only with a key.

use crate::support::{Reply, Request, Server, TestDir, chat, eventually, serve};
use serde_json::{Value, json};
use std::fs;

const KEY: &str = "Bearer key-of-a-client";

/// The demo with a usage log in its own folder.
fn server_with(lines: &str) -> Server {
    let dir = TestDir::empty().with_pace("none");
    let path = dir.path("usage.ndjson");
    fs::write(&path, lines).unwrap();
    dir.write("layer/gateway.yaml", &format!("usage_log: {{ path: '{}' }}\n", path.display()));
    serve().env("REFRAME_API_KEY", "key-of-a-client").add(dir).start()
}

fn get(server: &Server, path: &str) -> Reply {
    server.fetch(Request::get(path).header("authorization", KEY))
}

fn hello() -> Request {
    Request::from(chat("Hello!")).header("authorization", KEY)
}

/// Two hours of a day, and the next day.
const LINES: &str = r#"{"ts_ms":1767258000000,"req_id":"a","input_tokens":1,"output_tokens":2,"total_tokens":3}
not a record
{"ts_ms":1767261600000,"req_id":"b","input_tokens":10,"output_tokens":20,"total_tokens":30,"estimated":true}
{"ts_ms":1767344400000,"req_id":"c","input_tokens":100,"output_tokens":200,"total_tokens":300}
"#;

#[test]
fn the_usage_of_a_turn_is_in_the_report_and_in_the_records() {
    let server = server_with("");
    let turn = server.fetch(hello());
    let report = eventually("the turn is recorded", || {
        let report = get(&server, "/v1/usage").json();
        (report["total_requests"] == 1).then_some(report)
    });
    let usage = turn.json()["usage"].clone();
    assert_eq!(report["prompt_tokens_est"], usage["prompt_tokens"]);
    assert_eq!(report["completion_tokens_est"], usage["completion_tokens"]);
    assert_eq!(report["total_tokens_est"], usage["total_tokens"]);
    assert_eq!((&report["start"], &report["complete"]), (&json!(0), &json!(true)));
    assert_eq!((report.get("group"), report.get("buckets")), (None, None));
    let raw = get(&server, "/v1/usage/raw?limit=5").json();
    assert_eq!(raw["count"], 1);
    assert_eq!(raw["events"][0]["req_id"], turn.header("x-request-id").unwrap());
    let record = &raw["events"][0];
    assert_eq!((&record["route"], &record["method"]), (&json!("/v1/chat/completions"), &json!("POST")));
    assert_eq!((&record["phase"], &record["mode"]), (&json!("usage_summary"), &json!("chat_nonstream")));
    assert_eq!(record["status_code"], 200);
}

#[test]
fn a_report_is_about_a_period_and_has_buckets() {
    let server = server_with(LINES);
    let by_hour = get(&server, "/v1/usage?group=hour&start=2026-01-01&end=1767300000000").json();
    assert_eq!((&by_hour["start"], &by_hour["end"]), (&json!(1_767_225_600_000_i64), &json!(1_767_300_000_000_i64)));
    assert_eq!((&by_hour["total_requests"], &by_hour["total_tokens_est"]), (&json!(2), &json!(33)));
    let bucket = |start: i64, requests: i64, input: i64| {
        json!({
            "start": start, "total_requests": requests, "prompt_tokens_est": input,
            "completion_tokens_est": 2 * input, "total_tokens_est": 3 * input,
        })
    };
    assert_eq!(by_hour["buckets"], json!([bucket(1_767_258_000_000, 1, 1), bucket(1_767_261_600_000, 1, 10)]));
    let by_day = get(&server, "/v1/usage?group=day").json();
    assert_eq!(by_day["group"], "day");
    assert_eq!(by_day["buckets"], json!([bucket(1_767_225_600_000, 2, 11), bucket(1_767_312_000_000, 1, 100)]));
}

#[test]
fn the_number_of_records_is_limited() {
    let server = server_with(LINES);
    let ids = |path: &str| -> Vec<Value> {
        let raw = get(&server, path).json();
        let ids: Vec<Value> = raw["events"].as_array().unwrap().iter().map(|event| event["req_id"].clone()).collect();
        assert_eq!(raw["count"], ids.len());
        ids
    };
    assert_eq!(ids("/v1/usage/raw"), ["a", "b", "c"]);
    assert_eq!(ids("/v1/usage/raw?limit=2"), ["b", "c"], "the newest");
    assert_eq!(ids("/v1/usage/raw?limit=0"), ["c"]);
    assert_eq!(ids("/v1/usage/raw?start=2026-01-02"), ["c"]);
}

#[test]
fn an_invalid_query_is_rejected_with_its_param() {
    let server = server_with(LINES);
    for (path, param) in [
        ("/v1/usage?start=yesterday", "start"),
        ("/v1/usage?end=", "end"),
        ("/v1/usage?group=week", "group"),
        ("/v1/usage?start=5&end=1", "end"),
        ("/v1/usage/raw?limit=all", "limit"),
    ] {
        let reply = get(&server, path);
        let error = reply.json()["error"].clone();
        assert_eq!((reply.status(), &error["param"]), (400, &json!(param)), "{error}");
        assert_eq!(error["type"], "invalid_request_error");
    }
}

#[test]
fn the_reports_need_a_key_and_a_log() {
    let server = server_with(LINES);
    for path in ["/v1/usage", "/v1/usage/raw"] {
        assert_eq!(server.fetch(Request::get(path)).status(), 401);
        assert_eq!(server.fetch(Request::new("POST", path).header("authorization", KEY)).status(), 405);
    }
    let document = server.fetch(Request::get("/openapi.json")).json();
    let parameters = document["paths"]["/v1/usage"]["get"]["parameters"].as_array().unwrap();
    let names: Vec<&str> = parameters.iter().map(|parameter| parameter["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["start", "end", "group", "limit"]);
    assert!(document["paths"]["/v1/usage"]["get"]["responses"]["400"].is_object());

    let without = serve().env("REFRAME_API_KEY", "key-of-a-client").start();
    for path in ["/v1/usage", "/v1/usage/raw"] {
        assert_eq!(get(&without, path).status(), 404);
        let document = without.fetch(Request::get("/openapi.json")).json();
        assert!(document["paths"].get(path).is_none());
    }
}

#[test]
fn a_log_that_cannot_be_read_is_an_error_without_its_path() {
    let dir = TestDir::empty();
    // A file in place of a folder.
    dir.write("file", "");
    let path = dir.path("file/usage.ndjson");
    dir.write("layer/gateway.yaml", &format!("usage_log: {{ path: '{}' }}\n", path.display()));
    let server = serve().env("REFRAME_API_KEY", "key-of-a-client").add(dir).start();
    let reply = get(&server, "/v1/usage");
    assert_eq!(reply.status(), 500, "{}", reply.text());
    assert!(!reply.text().contains("usage.ndjson"), "{}", reply.text());
    server.wait_for_log("the usage log cannot be read");
}

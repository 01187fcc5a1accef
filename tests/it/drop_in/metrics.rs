//! The metrics under the names of the proxy, and who may read them.

use super::{DropIn, KEY, ask, ready, responses, start, with_key};
use crate::support::{Request, eventually};
use serde_json::{Value, json};

fn metrics(gateway: &DropIn) -> String {
    let reply = gateway.server.fetch(Request::get("/metrics"));
    assert_eq!(reply.status(), 200, "on this machine");
    reply.text()
}

/// The value of the sample that begins so.
fn value(metrics: &str, begin: &str) -> Option<f64> {
    metrics.lines().find_map(|line| line.strip_prefix(begin)?.rsplit_once(' ')?.1.parse().ok())
}

/// Lines: metrics
#[test]
fn the_metrics_have_the_names_of_the_proxy() {
    let gateway = ready(&[("PROXY_ENABLE_METRICS", "true")]);
    assert_eq!(gateway.get("/healthz").0, 200);
    let body = json!({ "model": "codex-5", "input": "Hi", "stream": true });
    assert_eq!(gateway.server.fetch(with_key(responses(body))).status(), 200);
    let text = eventually("the turn is counted", || {
        let text = metrics(&gateway);
        text.contains("codex_stream_end_total{").then_some(text)
    });
    let requests = "codex_http_requests_total{route=\"/healthz\",method=\"GET\",status_family=\"2xx\"}";
    assert_eq!(value(&text, requests), Some(1.0), "{text}");
    assert_eq!(value(&text, "codex_streams_active"), Some(0.0));
    assert_eq!(value(&text, "codex_stream_ttfb_ms_count"), Some(1.0), "{text}");
    assert_eq!(value(&text, "codex_stream_duration_ms_count{route=\"/v1/responses\"}"), Some(1.0));
    assert!(text.contains("codex_stream_duration_ms_bucket{route=\"/v1/responses\",le=\"5\"}"), "in milliseconds");
    assert_eq!(value(&text, "codex_stream_end_total{route=\"/v1/responses\",outcome=\"ok\"}"), Some(1.0));
    let event = "codex_responses_sse_event_total{route=\"/v1/responses\",event=\"response.completed\"}";
    assert_eq!(value(&text, event), Some(1.0), "{text}");
    assert_eq!(value(&text, "codex_worker_restarts_total"), Some(0.0));
    let backoff = value(&text, "codex_worker_backoff_ms");
    assert_eq!((backoff, value(&text, "codex_worker_ready")), (Some(0.0), Some(1.0)));
    assert!(!text.contains("request_id") && text.contains("reframe_turns_total{"));
    assert!(text.contains("# TYPE codex_http_requests_total counter\n"), "{text}");
}

/// Lines: metrics-access
#[test]
fn metrics_need_the_token_unless_the_client_is_local() {
    const TOKEN: &str = "a-token-for-metrics";
    let status = |gateway: &DropIn, token: Option<&str>| {
        let request = Request::get("/metrics");
        let request = match token {
            Some(token) => request.header("authorization", &format!("Bearer {token}")),
            None => request,
        };
        gateway.server.fetch(request).status()
    };
    let closed = start(&[("PROXY_METRICS_ALLOW_LOOPBACK", "false"), ("PROXY_METRICS_TOKEN", TOKEN)]);
    assert_eq!((status(&closed, None), status(&closed, Some("wrong"))), (401, 401));
    assert_eq!((status(&closed, Some(TOKEN)), status(&closed, Some(KEY))), (200, 200));
    let models = Request::get("/v1/usage").header("authorization", &format!("Bearer {TOKEN}"));
    assert_eq!(closed.server.fetch(models).status(), 403, "the token is for the metrics alone");
    let open = start(&[("PROXY_METRICS_ALLOW_UNAUTH", "true"), ("PROXY_METRICS_ALLOW_LOOPBACK", "false")]);
    assert_eq!(status(&open, None), 200);
    let local = start(&[("PROXY_METRICS_TOKEN", TOKEN)]);
    assert_eq!(status(&local, None), 200);
    let forwarded = Request::get("/metrics").header("x-forwarded-for", "192.0.2.7");
    assert_eq!(local.server.fetch(forwarded).status(), 401);
    let off = start(&[("PROXY_ENABLE_METRICS", "false"), ("PROXY_METRICS_TOKEN", TOKEN)]);
    assert_eq!(off.server.fetch(with_key(Request::get("/metrics"))).status(), 404);
}

/// Lines: metrics-maintenance
#[test]
fn the_maintenance_mode_is_a_metric() {
    let normal = start(&[]);
    assert_eq!(value(&metrics(&normal), "codex_maintenance_mode"), Some(0.0));
    let maintained = start(&[("PROXY_MAINTENANCE_MODE", "true")]);
    assert_eq!(value(&metrics(&maintained), "codex_maintenance_mode"), Some(1.0));
}

/// Lines: tool-buffer
#[test]
fn blocks_of_calls_in_the_text_are_counted() {
    let gateway = ready(&[("FAKE_MODE", "textual"), ("PROXY_TEST_ENDPOINTS", "true")]);
    let totals = || {
        let (status, body) = gateway.get("/__test/tool-buffer-metrics");
        assert_eq!((status, &body["ok"]), (200, &json!(true)), "{body}");
        let summary = &body["summary"];
        assert_eq!(summary["started"]["name"], "codex_tool_buffer_started_total");
        assert!(summary["flushed"]["buckets"].is_array(), "{body}");
        ["started", "flushed", "aborted"].map(|name| summary[name]["total"].clone())
    };
    assert_eq!(totals(), [json!(0), json!(0), json!(0)]);
    let tools = json!([{ "type": "function", "function": { "name": "lookup_user" } }]);
    gateway.stream(ask("Hi").with("tools", tools));
    eventually("the block is counted", || (totals() == [json!(1), json!(1), json!(0)]).then_some(()));
    let reset = |key: bool| {
        let request = Request::new("POST", "/__test/tool-buffer-metrics/reset");
        gateway.server.fetch(if key { with_key(request) } else { request })
    };
    assert_eq!(reset(false).status(), 401);
    assert_eq!(reset(true).json(), json!({ "ok": true }));
    assert_eq!(totals(), [json!(0), json!(0), json!(0)]);
    assert_eq!(ready(&[]).get("/__test/tool-buffer-metrics").0, 404, "only with the variable");
    let none: Value = gateway.get("/__test/tool-buffer-metrics").1["summary"]["aborted"]["buckets"].clone();
    assert_eq!(none, json!([]));
}

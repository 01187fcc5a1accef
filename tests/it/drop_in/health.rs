//! Health, readiness, and the supervision of the worker.

use super::{ask, ready, start, with_key};
use crate::support::{Request, eventually};
use serde_json::{Value, json};

/// Lines: health-body
#[test]
fn the_bodies_of_the_health_endpoints() {
    let gateway = ready(&[]);
    let (status, body) = gateway.get("/healthz");
    assert_eq!((status, &body["ok"], &body["sandbox_mode"]), (200, &json!(true), &json!("read-only")), "{body}");
    assert_eq!((&body["backend_mode"], &body["app_server_enabled"]), (&json!("app-server"), &json!(true)));
    let readiness = &body["health"]["readiness"];
    assert_eq!((&readiness["ready"], &readiness["reason"]), (&json!(true), &json!("handshake_complete")));
    assert_eq!(body["health"]["liveness"]["live"], true);
    let worker = &body["worker_supervisor"];
    assert_eq!((&worker["enabled"], &worker["running"], &worker["ready"]), (&json!(true), &json!(true), &json!(true)));
    assert_eq!(worker["pid"], gateway.starts()[0].0);
    assert_eq!((&worker["restarts_total"], &worker["consecutive_failures"]), (&json!(0), &json!(0)));
    assert!(worker["startup_latency_ms"].as_u64().is_some() && worker["last_ready_at"].is_number());
    assert_eq!(worker["metrics"]["codex_worker_restarts_total"], worker["restarts_total"]);
    assert_eq!(worker["metrics"]["codex_worker_latency_ms"], worker["startup_latency_ms"]);
    assert_eq!(gateway.get("/readyz").1["health"]["readiness"]["ready"], true);
    assert_eq!(gateway.get("/livez"), (200, gateway.get("/livez").1));
}

/// Lines: health-body
#[test]
fn the_sandbox_is_that_of_the_worker() {
    let gateway = start(&[("PROXY_SANDBOX_MODE", "workspace-write")]);
    let (_, body) = gateway.get("/healthz");
    assert_eq!((&body["sandbox_mode"], &body["backend_mode"]), (&json!("workspace-write"), &json!("app-server")));
}

/// Lines: usage
#[test]
fn the_usage_of_all_requests_is_summed_up() {
    let gateway = ready(&[]);
    let reply = gateway.server.fetch(with_key(ask("Hi")));
    let id = reply.header("x-request-id").unwrap().to_owned();
    assert_eq!(gateway.server.fetch(Request::get("/v1/usage")).status(), 401);
    let usage = eventually("the request is counted", || {
        let (status, body) = gateway.get("/v1/usage?group=hour");
        assert_eq!(status, 200);
        (body["total_requests"] == 1).then_some(body)
    });
    assert_eq!((&usage["prompt_tokens_est"], &usage["completion_tokens_est"]), (&json!(8), &json!(6)));
    assert_eq!((&usage["total_tokens_est"], usage["buckets"].as_array().unwrap().len()), (&json!(14), 1));
    assert!(usage["start"].is_number() && usage["end"].is_number());
    let (status, raw) = gateway.get("/v1/usage/raw?limit=5");
    assert_eq!((status, &raw["count"]), (200, &json!(1)));
    let event = &raw["events"][0];
    assert_eq!((&event["req_id"], &event["route"]), (&json!(id), &json!("/v1/chat/completions")));
}

/// Lines: log-access log-worker
#[test]
fn responses_and_standard_error_of_the_worker_are_logged() {
    let gateway = ready(&[("REFRAME_LOG_FORMAT", "json"), ("FAKE_STDERR", "capture-1")]);
    let reply = gateway.server.fetch(Request::get("/healthz"));
    let id = reply.header("x-request-id").unwrap().to_owned();
    let log = gateway.server.wait_for_log(&id);
    let mut lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let line = lines.find(|line| line["kind"] == "access" && line["req_id"] == *id).unwrap();
    assert_eq!((&line["route"], &line["status"]), (&json!("/healthz"), &json!(200)), "{line}");
    assert!(line["dur_ms"].is_number(), "{line}");
    gateway.server.wait_for_log("capture-1");
}

/// Lines: health-crash
#[test]
fn a_worker_that_dies_is_restarted_and_the_probes_show_it() {
    let settings = [
        ("FAKE_EXIT_AFTER_MS", "300"),
        ("WORKER_BACKOFF_INITIAL_MS", "400"),
        ("WORKER_BACKOFF_MAX_MS", "800"),
        ("WORKER_RESTART_MAX", "50"),
    ];
    let gateway = ready(&settings);
    let details = eventually("the exit is visible", || {
        let (status, body) = gateway.get("/readyz");
        let readiness = &body["health"]["readiness"];
        (status == 503 && readiness["reason"] == "worker_exit").then(|| readiness["details"].clone())
    });
    assert!(details["restarts_total"].as_u64().unwrap() >= 1, "{details}");
    let exit = &details["last_exit"];
    assert!(exit["code"].is_u64() && exit["signal"].is_null() && exit["at"].is_number(), "{exit}");
    assert_eq!(gateway.get("/livez").0, 200);
    gateway.wait_until_ready();
}

/// Lines: health-restart
#[test]
fn a_worker_that_is_killed_is_replaced() {
    let gateway = ready(&[("WORKER_BACKOFF_INITIAL_MS", "10")]);
    let pid = |body: &Value| body["worker_supervisor"]["pid"].as_u64();
    let first = pid(&gateway.get("/healthz").1).unwrap();
    assert!(std::process::Command::new("kill").args(["-KILL", &first.to_string()]).status().unwrap().success());
    let body = eventually("another worker", || {
        let body = gateway.get("/healthz").1;
        let is_other = pid(&body).is_some_and(|pid| pid != first);
        (is_other && body["ok"] == true).then_some(body)
    });
    assert!(body["worker_supervisor"]["restarts_total"].as_u64().unwrap() >= 1);
    let exit = &body["worker_supervisor"]["last_exit"];
    assert_eq!((&exit["code"], &exit["signal"]), (&Value::Null, &json!("SIGKILL")), "{exit}");
    assert_eq!(body["worker_supervisor"]["consecutive_failures"], 0);
    assert_eq!(gateway.chat(ask("Hi")).0, 200);
}

/// Lines: health-disabled error-disabled
#[test]
fn without_the_app_server_there_is_no_worker() {
    let gateway = start(&[("PROXY_USE_APP_SERVER", "false")]);
    let (status, body) = gateway.get("/healthz");
    assert_eq!((status, &body["ok"], &body["backend_mode"]), (200, &json!(false), &json!("disabled")), "{body}");
    assert_eq!(body["sandbox_mode"], "read-only");
    for (path, name, is) in [("/readyz", "readiness", "ready"), ("/livez", "liveness", "live")] {
        let (status, body) = gateway.get(path);
        assert_eq!((status, &body["ok"], &body["app_server_enabled"]), (503, &json!(false), &json!(false)), "{body}");
        let health = &body["health"][name];
        assert_eq!((&health[is], &health["reason"]), (&json!(false), &json!("app_server_disabled")), "{body}");
    }
    let (status, body) = gateway.chat(ask("Hi"));
    let error = &body["error"];
    assert_eq!((status, &error["code"], &error["retryable"]), (503, &json!("app_server_disabled"), &json!(false)));
    assert!(gateway.starts().is_empty());
}

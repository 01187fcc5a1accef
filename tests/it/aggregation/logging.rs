//! The log line and the two metrics of each conversion between stream and JSON. No content is logged.

use crate::support::backend_events::{completed, created, event, events, item_done, message, response, text_delta};
use crate::support::{MockResponse, TestDir, TestGateway, dialect_request};
use serde_json::json;

/// The value of a field in a log line: `events=3`, `direction="stream_to_json"`.
fn field<'l>(line: &'l str, name: &str) -> &'l str {
    let found = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name} in {line:?}")).trim_matches('"')
}

/// The log lines of conversions.
fn lines(gateway: &TestGateway) -> Vec<String> {
    gateway
        .server
        .complete_log()
        .lines()
        .filter(|line| line.contains(" response converted "))
        .map(str::to_owned)
        .collect()
}

const CONVERSIONS: &str = "reframe_response_conversions_total";

fn conversions(gateway: &TestGateway, direction: &str, outcome: &str) -> f64 {
    gateway.metric(&format!("{CONVERSIONS}{{direction=\"{direction}\",outcome=\"{outcome}\"}}"))
}

fn duration_count(gateway: &TestGateway, direction: &str) -> f64 {
    gateway.metric(&format!("reframe_response_conversion_duration_seconds_count{{direction=\"{direction}\"}}"))
}

#[test]
fn each_conversion_is_one_log_line_and_two_metrics() {
    let gateway = TestGateway::start("openai-responses", "codex-proxy", TestDir::empty());
    let all = [created(), text_delta("Sesame"), item_done(0, &message("msg_up", "Sesame")), completed()];
    let whole = events(&all);
    let broken = event(&created()) + "data: {Sesame\n\n" + &events(&all[1..]);
    let json = response(&json!([message("msg_up", "Sesame")])).to_string();
    // Model, backend response, requested stream, and the logged direction, outcome, events, skipped, bytes.
    let to_json = "stream_to_json";
    let to_stream = "json_to_stream";
    let failed = json!({ "type": "response.failed", "response": { "error": { "message": "no" } } });
    let failing = events(&[created(), text_delta("Ses"), failed]);
    let half = events(&all[..2]);
    let cases = [
        ("l-whole", MockResponse::sse_raw(&whole), false, Some((to_json, "completed", 4, 0, whole.len()))),
        ("l-broken", MockResponse::sse_raw(&broken), false, Some((to_json, "completed", 4, 1, broken.len()))),
        ("l-half", MockResponse::sse_raw(&half), false, Some((to_json, "partial", 2, 0, half.len()))),
        ("l-failed", MockResponse::sse_raw(&failing), false, Some((to_json, "partial", 3, 0, failing.len()))),
        ("l-empty", MockResponse::sse(&[]), false, Some((to_json, "empty", 0, 0, 0))),
        ("l-comment", MockResponse::sse_raw(": a\n\n"), false, Some((to_json, "empty", 0, 0, 5))),
        ("l-json", MockResponse::json(200, &json), true, Some((to_stream, "completed", 1, 0, json.len()))),
        ("l-same", MockResponse::sse_raw(&whole), true, None),
        ("l-alike", MockResponse::json(200, &json), false, None),
        ("l-no", MockResponse::json(500, "{}"), false, None),
        ("l-nothing", MockResponse::sse(&[]), true, None),
    ];
    let mut expected = Vec::new();
    for (model, answer, stream, logged) in cases {
        let reply = gateway.fetch(model, answer, dialect_request("responses", model, stream));
        let id = reply.header("x-request-id").unwrap().to_owned();
        let logged = logged.map(|(direction, outcome, events, skipped, bytes)| {
            [
                id,
                "openai-responses".into(),
                direction.into(),
                outcome.into(),
                events.to_string(),
                skipped.to_string(),
                bytes.to_string(),
            ]
        });
        expected.extend(logged);
    }
    let names = ["id", "backend", "direction", "outcome", "events", "skipped", "bytes"];
    let lines = lines(&gateway);
    let got: Vec<_> = lines.iter().map(|line| names.map(|name| field(line, name).to_owned())).collect();
    assert_eq!(got, expected, "{lines:#?}");
    for line in &lines {
        assert!(field(line, "duration_ms").parse::<u64>().unwrap() < 10_000);
        assert!(line.contains(" INFO "), "{line}");
    }
    let counts = [
        (to_json, "completed", 2.0),
        (to_json, "partial", 2.0),
        (to_json, "empty", 2.0),
        (to_stream, "completed", 1.0),
        (to_stream, "empty", 0.0),
    ];
    for (direction, outcome, count) in counts {
        assert_eq!(conversions(&gateway, direction, outcome), count, "{direction} {outcome}");
    }
    assert_eq!((duration_count(&gateway, to_json), duration_count(&gateway, to_stream)), (6.0, 1.0));
    assert_eq!(gateway.metric("reframe_upstream_malformed_events_total{backend=\"openai-responses\"}"), 1.0);
    let log = gateway.server.complete_log();
    assert!(!log.contains("Sesame"), "the response is in the log:\n{log}");
    assert!(!log.contains("Hello."), "the request is in the log:\n{log}");
}

#[test]
fn a_malformed_event_is_logged_without_its_content() {
    let gateway = TestGateway::start("openai-responses", "codex-proxy", TestDir::empty());
    let half = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Sesame\n\n";
    // The content of unknown and unexpected events is not logged either.
    let unknown = json!({ "type": "response.novelty", "text": "Sesame" });
    let strange = json!({ "type": "response.output_text.delta", "delta": { "Sesame": ["Sesame"] } });
    let stream = event(&created()) + half + &events(&[unknown, strange, completed()]) + "data: \"Sesame\"\n\n";
    let reply = gateway.fetch("m", MockResponse::sse_raw(stream), dialect_request("responses", "m", false));
    let log = gateway.server.wait_for_log(" responded ");
    println!("{log}");
    let id = reply.header("x-request-id").unwrap();
    let warned: Vec<&str> =
        log.lines().filter(|l| l.contains("WARN") && l.contains("malformed upstream event")).collect();
    assert_eq!(warned.len(), 1, "{log}");
    assert!(warned[0].contains(id), "{log}");
    assert!(!log.contains("Sesame"), "{log}");
}

#[test]
fn a_client_disconnect_is_counted_as_a_disconnected_conversion() {
    let dir = TestDir::empty();
    let profile = "profile: cancels\nextends: codex-proxy\npolicies: { disconnect: cancel }\n";
    dir.write("layer/profiles/cancels.yaml", profile);
    let gateway = TestGateway::start("openai-responses", "cancels", dir);
    // The malformed event is counted in a metric, so the two before it have been read then.
    let stream = events(&[created(), text_delta("Sesame")]) + "data: {oops\n\n";
    gateway.set_response("left", MockResponse::sse_raw(stream).stall());
    let mut client = gateway.server.client();
    client.send(&dialect_request("responses", "left", false));
    crate::support::eventually("the backend's events are read", || {
        (gateway.metric("reframe_upstream_malformed_events_total{backend=\"openai-responses\"}") == 1.0).then_some(())
    });
    drop(client);
    let log = gateway.server.wait_for_log(" response converted ");
    let line = log.lines().find(|line| line.contains(" response converted ")).unwrap();
    assert_eq!((field(line, "outcome"), field(line, "events")), ("disconnected", "2"), "{line}");
    assert_eq!(conversions(&gateway, "stream_to_json", "disconnected"), 1.0);
}

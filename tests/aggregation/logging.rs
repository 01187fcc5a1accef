//! What is written down about a bridging: one line, two metrics, and nothing of what was said.

use super::support::backend_events::{completed, created, event, events, item_done, message, response, text_delta};
use super::support::{Answer, Behind, Disk, asking};
use serde_json::json;

/// The fields of a line of the log: `events=3`, `direction="stream_to_json"`.
fn field<'l>(line: &'l str, name: &str) -> &'l str {
    let found = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name} in {line:?}")).trim_matches('"')
}

/// The lines about bridgings; the log is whole once the answer of `/metrics` is written, which is asked for last.
fn lines(behind: &Behind) -> Vec<String> {
    let from = behind.server.log().len();
    behind.server.ask(super::support::Request::get("/nowhere"));
    behind.server.wait_for_log_from(from, "/nowhere");
    behind.server.log().lines().filter(|line| line.contains(" bridged ")).map(str::to_owned).collect()
}

const BRIDGES: &str = "bridges_total";

fn bridges(behind: &Behind, direction: &str, outcome: &str) -> f64 {
    behind.metric(&format!("{BRIDGES}{{direction=\"{direction}\",outcome=\"{outcome}\"}}"))
}

fn timed(behind: &Behind, direction: &str) -> f64 {
    behind.metric(&format!("bridge_duration_seconds_count{{direction=\"{direction}\"}}"))
}

#[test]
fn ac_003_each_bridging_is_one_line_and_two_metrics() {
    let behind = Behind::start("openai-responses", "codex-proxy", Disk::empty());
    let all = [created(), text_delta("Sesame"), item_done(0, &message("msg_up", "Sesame")), completed()];
    let whole = events(&all);
    let broken = event(&created()) + "data: {Sesame\n\n" + &events(&all[1..]);
    let json = response(&json!([message("msg_up", "Sesame")])).to_string();
    // What is asked, what comes, and what is written down: direction, outcome, events, skipped, bytes.
    let to_json = "stream_to_json";
    let to_stream = "json_to_stream";
    let failed = json!({ "type": "response.failed", "response": { "error": { "message": "no" } } });
    let failing = events(&[created(), text_delta("Ses"), failed]);
    let half = events(&all[..2]);
    let cases = [
        ("l-whole", Answer::sse_raw(&whole), false, Some((to_json, "completed", 4, 0, whole.len()))),
        ("l-broken", Answer::sse_raw(&broken), false, Some((to_json, "completed", 4, 1, broken.len()))),
        ("l-half", Answer::sse_raw(&half), false, Some((to_json, "partial", 2, 0, half.len()))),
        ("l-failed", Answer::sse_raw(&failing), false, Some((to_json, "partial", 3, 0, failing.len()))),
        ("l-empty", Answer::sse(&[]), false, Some((to_json, "empty", 0, 0, 0))),
        ("l-comment", Answer::sse_raw(": a\n\n"), false, Some((to_json, "empty", 0, 0, 5))),
        ("l-json", Answer::json(200, &json), true, Some((to_stream, "completed", 1, 0, json.len()))),
        ("l-same", Answer::sse_raw(&whole), true, None),
        ("l-alike", Answer::json(200, &json), false, None),
        ("l-no", Answer::json(500, "{}"), false, None),
        ("l-nothing", Answer::sse(&[]), true, None),
    ];
    let mut expected = Vec::new();
    for (model, answer, stream, written) in cases {
        let reply = behind.ask(model, answer, asking("responses", model, stream));
        let id = reply.header("x-request-id").unwrap().to_owned();
        let written = written.map(|(direction, outcome, events, skipped, bytes)| {
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
        expected.extend(written);
    }
    let names = ["id", "backend", "direction", "outcome", "events", "skipped", "bytes"];
    let lines = lines(&behind);
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
        assert_eq!(bridges(&behind, direction, outcome), count, "{direction} {outcome}");
    }
    assert_eq!((timed(&behind, to_json), timed(&behind, to_stream)), (6.0, 1.0));
    assert_eq!(behind.metric("malformed_events_total{backend=\"openai-responses\"}"), 1.0);
    let log = behind.server.log();
    assert!(!log.contains("Sesame"), "what was said stands in the log:\n{log}");
    assert!(!log.contains("Speak."), "what was asked stands in the log:\n{log}");
}

#[test]
fn ac_003_a_malformed_event_is_logged_without_its_content() {
    let behind = Behind::start("openai-responses", "codex-proxy", Disk::empty());
    let half = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Sesame\n\n";
    // Nor of what no rule knows, or what is not what a rule expects.
    let unknown = json!({ "type": "response.novelty", "text": "Sesame" });
    let strange = json!({ "type": "response.output_text.delta", "delta": { "Sesame": ["Sesame"] } });
    let stream = event(&created()) + half + &events(&[unknown, strange, completed()]) + "data: \"Sesame\"\n\n";
    let reply = behind.ask("m", Answer::sse_raw(stream), asking("responses", "m", false));
    let log = behind.server.wait_for_log(" answered ");
    println!("{log}");
    let id = reply.header("x-request-id").unwrap();
    let warned: Vec<&str> = log.lines().filter(|l| l.contains("WARN") && l.contains("was skipped")).collect();
    assert_eq!(warned.len(), 1, "{log}");
    assert!(warned[0].contains(id), "{log}");
    assert!(!log.contains("Sesame"), "{log}");
}

#[test]
fn ac_003_a_client_that_left_is_a_bridging_that_is_gone() {
    let behind = Behind::start("openai-responses", "codex-proxy", Disk::empty());
    behind.plays("left", Answer::sse_raw(events(&[created(), text_delta("Sesame")])).stall());
    let mut client = behind.server.client();
    client.send(&asking("responses", "left", false));
    super::support::eventually("the backend is asked", || (behind.seen("left").len() == 1).then_some(()));
    std::thread::sleep(std::time::Duration::from_millis(100));
    drop(client);
    let log = behind.server.wait_for_log(" bridged ");
    let line = log.lines().find(|line| line.contains(" bridged ")).unwrap();
    assert_eq!((field(line, "outcome"), field(line, "events")), ("gone", "2"), "{line}");
    assert_eq!(bridges(&behind, "stream_to_json", "gone"), 1.0);
}

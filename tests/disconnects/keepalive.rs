//! Comments that keep a silent stream open.

use super::support::backend_events::{created, event, text_delta};
use super::support::sse::names;
use super::support::{Answer, Behind, Told, asking, holds};
use super::{ending, ms, paced, side_by_side, silence, word};
use serde_json::json;
use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

fn chat() -> &'static Behind {
    static SHARED: LazyLock<Behind> = LazyLock::new(|| {
        paced()
            .keepalive("200ms")
            .first_event("1200ms")
            .times("query: no_keepalive", "query: no_keepalive, user_agents: [ Obsidian, electron ]")
            .shared("openai-chat", "openai")
    });
    &SHARED
}

/// How often each name stands there in a row: `comment*3 chunk`.
fn runs(told: &[Told]) -> Vec<(String, usize)> {
    let mut runs: Vec<(String, usize)> = Vec::new();
    for name in names(told) {
        match runs.last_mut() {
            Some((last, count)) if *last == name => *count += 1,
            _ => runs.push((name, 1)),
        }
    }
    runs
}

fn comments(told: &[Told]) -> usize {
    told.iter().filter(|t| t.is_comment()).count()
}

#[test]
fn comments_come_before_the_first_event_and_between_events() {
    let answer = ending(silence().pause(ms(700)).event(&word("One")).pause(ms(500)).event(&word("Two")));
    chat().plays("k-both", answer);
    let begun = Instant::now();
    let stream = chat().server.client().stream(asking("chat", "k-both", true)).listen();
    let head = begun.elapsed();
    assert!(head >= ms(195) && head < ms(600), "the head came after {head:?}");
    let told = stream.rest();
    let runs = runs(&told);
    let names: Vec<&str> = runs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["comment", "chunk", "comment", "chunk", "[DONE]"], "{runs:?}");
    assert_eq!((runs[1].1, runs[3].1), (2, 2), "{runs:?}");
    // Three and two, give or take one on a busy machine.
    assert!((2..=4).contains(&runs[0].1) && (1..=3).contains(&runs[2].1), "{runs:?}");
    // `keepalive {now_ms}`
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let at: u128 = told[0].text().strip_prefix("keepalive ").unwrap().parse().unwrap();
    assert!(now - at < 10_000, "{at} is not now");
    let apart = told[1].at - told[0].at;
    assert!(apart >= ms(190), "two comments after {apart:?}");
}

#[test]
fn traffic_puts_the_next_comment_off() {
    let answer = (0..20).fold(silence(), |answer, _| answer.event(&word("x")).pause(ms(60)));
    chat().plays("k-traffic", ending(answer));
    let told = chat().server.ask(asking("chat", "k-traffic", true)).told();
    assert_eq!(comments(&told), 0, "{:?}", names(&told));
    assert_eq!(told.len(), 23);
}

#[test]
fn what_the_client_is_not_told_is_no_traffic() {
    // Comments and malformed pieces of the backend reach nobody.
    let answer = (0..6).fold(silence().event(&word("x")), |answer, _| answer.pause(ms(100)).bytes(": hm\n\n"));
    chat().plays("k-hidden", ending(answer));
    let told = chat().server.ask(asking("chat", "k-hidden", true)).told();
    assert!((2..=3).contains(&comments(&told)), "{:?}", names(&told));
}

#[test]
fn who_cannot_read_comments_gets_none() {
    let answer = ending(silence().pause(ms(500)).event(&word("One")).pause(ms(500)));
    chat().plays("k-off", answer);
    let asked = || asking("chat", "k-off", true);
    let path = "/v1/chat/completions";
    let without = [
        asked().header("x-no-keepalive", "1"),
        asked().at(&format!("{path}?no_keepalive=1")),
        asked().at(&format!("{path}?a=b&no_keepalive=1")),
        asked().header("user-agent", "Mozilla/5.0 obsidian/1.5"),
        asked().header("user-agent", "An ELECTRON app"),
    ];
    side_by_side(without, |request| {
        let begun = Instant::now();
        let stream = chat().server.client().stream(request).listen();
        assert!(begun.elapsed() >= ms(490), "the head left early: {:?}", begun.elapsed());
        assert_eq!(names(&stream.rest()), ["chunk", "chunk", "chunk", "[DONE]"]);
    });
    let with = [
        asked().header("x-no-keepalive", "0"),
        asked().at(&format!("{path}?no_keepalive=0")),
        asked().header("user-agent", "curl/8"),
    ];
    side_by_side(with, |request| assert!(comments(&chat().server.ask(request).told()) >= 2));
}

#[test]
fn a_body_has_no_comments() {
    let answer = ending(silence().pause(ms(500)).event(&word("One")).pause(ms(300)));
    chat().plays("k-json", answer);
    let reply = chat().server.ask(asking("chat", "k-json", false));
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "One");
}

#[test]
fn after_a_comment_a_fault_is_told_behind_a_proper_beginning() {
    let said = json!({ "error": { "message": "too many", "code": "slow_down" } }).to_string();
    let faults = [
        (
            "k-429",
            Answer::raw().pause(ms(300)).bytes(format!(
                "HTTP/1.1 429 no\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{said}",
                said.len()
            )),
            "too many",
        ),
        ("k-inside", silence().pause(ms(300)).event(&said), "too many"),
        ("k-end", silence().pause(ms(300)), "the backend ended without an answer"),
        ("k-done", silence().pause(ms(300)).event("[DONE]"), "the backend ended without an answer"),
        ("k-stall", silence().stall(), "the backend did not begin its answer in 1.2s"),
        ("k-cut", silence().pause(ms(300)).cut(), "the backend was lost: "),
        ("k-reset", Answer::raw().pause(ms(300)).reset(), "the backend did not answer: "),
    ];
    side_by_side(faults, |(model, answer, message)| {
        chat().plays(model, answer);
        let ask = |dialect: &str| {
            let reply = chat().server.ask(asking(dialect, model, true));
            assert_eq!(reply.status(), 200, "{model}");
            let mut told = reply.told();
            assert!(told[0].is_comment(), "{model}: {:?}", names(&told));
            told.retain(|t| !t.is_comment());
            told
        };
        let told = ask("chat");
        assert_eq!(names(&told), ["chunk", "error"], "{model}");
        assert_eq!(told[0].json()["choices"][0]["delta"]["role"], "assistant");
        let error = told[1].json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(error.starts_with(message), "{model}: {error}");
        let told = ask("responses");
        assert_eq!(names(&told), ["response.created", "response.in_progress", "response.failed", "[DONE]"], "{model}");
        holds(
            &json!({ "response": { "status": "failed", "output": [], "error": { "message": error } } }),
            &told[2].json(),
        );
        let numbers: Vec<u64> = told[..3].iter().map(|t| t.json()["sequence_number"].as_u64().unwrap()).collect();
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(names(&ask("completions")), ["error"], "{model}");
    });
}

#[test]
fn a_comment_changes_nothing_of_what_is_said() {
    let behind = paced().keepalive("100ms").before("openai-responses", "codex-proxy");
    let first = Answer::sse_raw(event(&created())).pause(ms(250)).bytes(event(&text_delta("Good ")));
    let answer =
        first.pause(ms(250)).bytes(event(&text_delta("day.")) + &event(&super::support::backend_events::completed()));
    behind.plays("k-same", answer);
    let mut told = behind.server.ask(asking("responses", "k-same", true)).told();
    assert!(comments(&told) >= 3, "{:?}", names(&told));
    told.retain(|t| !t.is_comment());
    let quiet = behind.server.ask(asking("responses", "k-same", true).header("x-no-keepalive", "1")).told();
    assert_eq!(names(&told), names(&quiet));
    assert_eq!(told[1].text(), quiet[1].text());
}

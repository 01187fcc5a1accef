//! The head is held until the first event: what goes wrong before it is a plain HTTP error.

use super::support::backend_events::{created, event, text_delta};
use super::support::sse::names;
use super::support::{Answer, Behind, asking, holds, within};
use super::{ending, ms, paced, side_by_side, silence, word};
use serde_json::json;
use std::sync::LazyLock;
use std::time::Instant;

fn chat() -> &'static Behind {
    static SHARED: LazyLock<Behind> = LazyLock::new(|| paced().first_event("600ms").shared("openai-chat", "openai"));
    &SHARED
}

const DIALECTS: [&str; 3] = ["chat", "responses", "completions"];

#[test]
fn the_head_waits_for_the_first_event() {
    let chat = chat();
    chat.plays("h-first", ending(silence().pause(ms(250)).event(&word("One")).pause(ms(250)).event(&word("Two"))));
    let begun = Instant::now();
    let mut stream = chat.server.client().stream(asking("chat", "h-first", true)).listen();
    let head = begun.elapsed();
    assert!(head >= ms(240), "the head came after {head:?}");
    within("the head behind the first event", head - ms(240), ms(100));
    assert_eq!(stream.head().status, 200);
    assert_eq!(stream.next().unwrap().json()["choices"][0]["delta"]["role"], "assistant");
    let one = stream.next().unwrap();
    assert_eq!(one.json()["choices"][0]["delta"]["content"], "One");
    let two = stream.next().unwrap();
    assert_eq!(two.json()["choices"][0]["delta"]["content"], "Two");
    assert!(two.at - one.at >= ms(200), "what was sent apart came together");
    assert_eq!(names(&stream.rest()), ["chunk", "[DONE]"]);
}

#[test]
fn a_backend_that_sends_only_its_head_is_a_504() {
    let chat = chat();
    let silent = [
        ("h-head", silence().stall()),
        ("h-hang", Answer::hang()),
        ("h-comments", silence().bytes(": hm\n\n").stall()),
    ];
    for (model, answer) in silent {
        chat.plays(model, answer);
        let ways = DIALECTS.into_iter().flat_map(|dialect| [(dialect, true), (dialect, false)]);
        side_by_side(ways, |(dialect, stream)| {
            let begun = Instant::now();
            let reply = chat.server.ask(asking(dialect, model, stream));
            let took = begun.elapsed();
            assert_eq!(reply.status(), 504, "{model} {dialect} {stream}");
            let error = json!({ "message": "the backend did not begin its answer in 600ms", "type": "server_error", "param": null, "code": null });
            assert_eq!(reply.json(), json!({ "error": error }), "{model} {dialect} {stream}");
            assert!(took >= ms(595), "{took:?}");
            within("a 504 behind its limit", took - ms(595), ms(100));
        });
    }
}

#[test]
fn what_is_only_about_the_turn_does_not_hold_off_the_limit() {
    // `response.created` is nothing that a client is told before there is something to tell.
    let behind = paced().first_event("400ms").before("openai-responses", "openai");
    behind.plays("h-created", Answer::sse_raw(event(&created())).stall());
    for dialect in DIALECTS {
        assert_eq!(behind.server.ask(asking(dialect, "h-created", true)).status(), 504, "{dialect}");
    }
    // But once something was told, the limit is over.
    let told = event(&created()) + &event(&text_delta("Well"));
    behind.plays(
        "h-told",
        Answer::sse_raw(told).pause(ms(700)).bytes(event(&super::support::backend_events::completed())),
    );
    assert_eq!(names(&behind.server.ask(asking("chat", "h-told", true)).told()), ["chunk", "chunk", "chunk", "[DONE]"]);
}

#[test]
fn a_fault_before_the_first_event_is_a_plain_error() {
    let inside = json!({ "error": { "message": "not today", "code": "closed" } }).to_string();
    let said = json!({ "error": { "message": "who are you?", "code": "invalid_api_key" } }).to_string();
    let faults = [
        ("h-inside", Answer::sse(&[&inside]), 502, Some("not today")),
        ("h-401", Answer::json(401, &said), 401, Some("who are you?")),
        ("h-429", Answer::json(429, &said).header("retry-after", "3"), 429, Some("who are you?")),
        ("h-503", Answer::new(503), 503, None),
        ("h-html", Answer::new(200).header("content-type", "text/html").bytes("<html>"), 502, None),
        ("h-cut", silence().cut(), 502, None),
        ("h-reset", silence().reset(), 502, None),
        ("h-none", silence(), 502, None),
        ("h-role", Answer::sse(&["[DONE]"]), 502, None),
    ];
    let chat = chat();
    for (model, answer, status, message) in faults {
        chat.plays(model, answer.clone());
        for dialect in DIALECTS {
            let reply = chat.server.ask(asking(dialect, model, true));
            assert_eq!(
                (reply.status(), reply.header("content-type")),
                (status, Some("application/json")),
                "{model} {dialect}: {}",
                reply.text()
            );
            assert!(!reply.json()["error"]["message"].as_str().unwrap().is_empty());
            if let Some(message) = message {
                assert_eq!(reply.json()["error"]["message"], message, "{model} {dialect}");
            }
            assert_eq!(reply.header("retry-after"), (status == 429).then_some("3"), "{model} {dialect}");
        }
    }
}

#[test]
fn a_fault_after_the_first_event_is_told_in_the_stream() {
    let inside = json!({ "error": { "message": "not today", "code": "closed" } }).to_string();
    let faults = [
        ("h-late-inside", Answer::sse(&[&word("One"), &inside])),
        ("h-late-cut", Answer::sse(&[&word("One")]).cut()),
        ("h-late-reset", Answer::sse(&[&word("One")]).pause(ms(50)).reset()),
        ("h-late-end", Answer::sse(&[&word("One")])),
        ("h-late-done", Answer::sse(&[&word("One"), "[DONE]"])),
    ];
    let chat = chat();
    for (model, answer) in faults {
        chat.plays(model, answer);
        let reply = chat.server.ask(asking("chat", model, true));
        assert_eq!(reply.status(), 200);
        let told = reply.told();
        assert_eq!(names(&told), ["chunk", "chunk", "error"], "{model}");
        assert!(!told[2].json()["error"]["message"].as_str().unwrap().is_empty());
        let told = chat.server.ask(asking("completions", model, true)).told();
        assert_eq!(names(&told), ["chunk", "error"], "{model}");
        let told = chat.server.ask(asking("responses", model, true)).told();
        let expected = [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.failed",
            "[DONE]",
        ];
        assert_eq!(names(&told), expected, "{model}");
        holds(
            &json!({ "response": { "status": "failed", "output": [{ "status": "incomplete", "content": [{ "text": "One" }] }] } }),
            &told[5].json(),
        );
    }
}

#[test]
fn at_once_the_head_does_not_wait() {
    let behind = paced().first_event("600ms").profile("eager", "head: at_once").before("openai-chat", "eager");
    behind.plays("h-once", silence().pause(ms(400)).event(&word("One")).stall());
    behind.plays("h-once-fault", Answer::json(429, "{\"error\":{\"message\":\"not now\"}}"));
    behind.plays("h-once-late", silence().stall());
    let opening: [(&str, &[&str]); 3] =
        [("chat", &["chunk"]), ("responses", &["response.created", "response.in_progress"]), ("completions", &[])];
    // The first connection of a process takes its time.
    behind.server.ask(asking("chat", "h-once-fault", false));
    for (dialect, opening) in opening {
        let begun = Instant::now();
        let mut stream = behind.server.client().stream(asking(dialect, "h-once", true)).listen();
        within(&format!("the head of {dialect} at once"), begun.elapsed(), ms(35));
        for name in opening {
            assert_eq!(stream.next().unwrap().name(), *name);
        }
        assert!(begun.elapsed() < ms(350), "{dialect}: the opening waited {:?}", begun.elapsed());
        drop(stream);
        // It is 200 already, so what goes wrong is told in the stream.
        let failure: &[&str] = if dialect == "responses" { &["response.failed", "[DONE]"] } else { &["error"] };
        for model in ["h-once-fault", "h-once-late"] {
            let reply = behind.server.ask(asking(dialect, model, true));
            assert_eq!(reply.status(), 200, "{dialect} {model}");
            let told = reply.told();
            assert_eq!(names(&told), [opening, failure].concat(), "{dialect} {model}");
        }
    }
    // Nor is silence from the beginning an answer that was cut, whatever the policy says about silence.
    let policies = "head: at_once, stream_idle_result: finish_length";
    let behind = paced().first_event("300ms").profile("both", policies).before("openai-chat", "both");
    behind.plays("h-once-cut", silence().stall());
    assert_eq!(names(&behind.server.ask(asking("chat", "h-once-cut", true)).told()), ["chunk", "error"]);
}

#[test]
fn at_once_is_for_streams_only() {
    let behind = paced().profile("eager", "head: at_once").before("openai-chat", "eager");
    behind.plays("h-once-fault", Answer::json(429, "{\"error\":{\"message\":\"not now\"}}"));
    assert_eq!(behind.server.ask(asking("chat", "h-once-fault", false)).status(), 429);
}

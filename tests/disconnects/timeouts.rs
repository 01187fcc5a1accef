//! How long a backend may take: between two events, and for all of it.

use super::support::backend_events::{created, event, text_delta};
use super::support::sse::names;
use super::support::{Answer, asking, eventually, holds, within};
use super::{ending, ms, paced, silence, word};
use serde_json::json;
use std::time::Instant;

#[test]
fn a_stream_that_falls_silent_ends_with_an_error_at_the_idle_limit() {
    let behind = paced().idle("400ms").before("openai-chat", "openai");
    behind.plays("i-stall", silence().event(&word("One")).stall());
    for (dialect, ends) in
        [("chat", vec!["error"]), ("completions", vec!["error"]), ("responses", vec!["response.failed", "[DONE]"])]
    {
        let mut stream = behind.server.client().stream(asking(dialect, "i-stall", true)).listen();
        let mut told = vec![stream.next().unwrap()];
        told.extend(stream.rest());
        let (last, first) = (told[told.len() - 1].at, told[0].at);
        assert!(last - first >= ms(390), "{dialect}: {:?}", last - first);
        within("the error behind the idle limit", last - first - ms(390), ms(100));
        assert_eq!(names(&told)[told.len() - ends.len()..], ends);
        let failure = told[told.len() - ends.len()].text().to_owned();
        assert!(failure.contains("the backend sent nothing more in 400ms"), "{failure}");
    }
    eventually("the backend is left", || (behind.backend.gone().len() == 3).then_some(()));
}

#[test]
fn by_policy_a_silent_stream_is_an_answer_that_was_cut() {
    let behind =
        paced().idle("300ms").profile("patient", "stream_idle_result: finish_length").before("openai-chat", "patient");
    behind.plays("i-cut", silence().event(&word("One")).stall());
    let told = behind.server.ask(asking("chat", "i-cut", true)).told();
    assert_eq!(names(&told), ["chunk", "chunk", "chunk", "[DONE]"]);
    assert_eq!(told[2].json()["choices"][0]["finish_reason"], "length");
    let told = behind.server.ask(asking("responses", "i-cut", true)).told();
    let end = &told[told.len() - 2];
    assert_eq!(end.name(), "response.incomplete");
    holds(
        &json!({ "response": { "status": "incomplete", "incomplete_details": { "reason": "max_output_tokens" }, "output": [{ "content": [{ "text": "One" }] }] } }),
        &end.json(),
    );
    // The client is told of a cut; the log says what it was.
    let log = behind.server.wait_for_log("a turn was cut short");
    assert!(log.contains("the backend sent nothing more in 300ms"), "{log}");
    eventually("it is counted", || {
        (behind.metric("faults_total{backend=\"openai-chat\",kind=\"timeout\"}") == 2.0).then_some(())
    });
    eventually("both are left", || (behind.backend.gone().len() == 2).then_some(()));
}

#[test]
fn the_proxy_cuts_a_silent_stream_as_the_mission_says() {
    let behind = paced().idle("300ms").before("openai-responses", "codex-proxy");
    behind.plays("i-proxy", Answer::sse_raw(event(&created()) + &event(&text_delta("One"))).stall());
    let told = behind.server.ask(asking("chat", "i-proxy", true)).told();
    assert_eq!(names(&told), ["chunk", "chunk", "chunk", "[DONE]"]);
    assert_eq!(told[2].json()["choices"][0]["finish_reason"], "length");
    let told = behind.server.ask(asking("responses", "i-proxy", true)).told();
    assert_eq!(
        names(&told),
        ["response.created", "response.output_text.delta", "response.output_text.done", "response.completed", "done"]
    );
    assert_eq!(told[3].json()["response"]["status"], "incomplete");
}

#[test]
fn b082_a_slow_and_steady_stream_outlives_every_limit_but_the_idle_one() {
    let behind = paced().first_event("500ms").idle("400ms").overall("500ms").before("openai-chat", "openai");
    let answer = (0..20).fold(silence(), |answer, _| answer.event(&word("x")).pause(ms(150)));
    behind.plays("i-steady", ending(answer));
    let begun = Instant::now();
    let told = behind.server.ask(asking("chat", "i-steady", true)).told();
    assert!(begun.elapsed() >= ms(2900), "{:?}", begun.elapsed());
    assert_eq!(told.len(), 23, "{:?}", names(&told));
    assert_eq!(told[22].text(), "[DONE]");
    // The same backend before a client that waits for all of it: that one is limited.
    let begun = Instant::now();
    let reply = behind.server.ask(asking("chat", "i-steady", false));
    assert_eq!(reply.status(), 504);
    assert_eq!(reply.json()["error"]["message"], "the backend did not finish its answer in 500ms");
    assert!(begun.elapsed() >= ms(495));
    within("the 504 behind the overall limit", begun.elapsed() - ms(495), ms(100));
    // A body that can say so, says what came.
    let body = behind.server.ask(asking("responses", "i-steady", false)).json();
    holds(
        &json!({ "status": "failed", "error": { "message": "the backend did not finish its answer in 500ms" } }),
        &body,
    );
    let came = body["output"][0]["content"][0]["text"].as_str().unwrap().len();
    assert!((1..=4).contains(&came), "{came}");
}

#[test]
fn bytes_that_are_no_event_yet_are_a_sign_of_life() {
    let behind = paced().idle("400ms").before("openai-chat", "openai");
    let long = super::support::backend_events::data(&super::support::backend_events::word(&"x".repeat(200)));
    let slow = Answer::sse(&[&word("One")]).bytes(long).split(40).pace(ms(100));
    behind.plays("i-bytes", ending(slow));
    let begun = Instant::now();
    let told = behind.server.ask(asking("chat", "i-bytes", true)).told();
    assert!(begun.elapsed() > ms(600));
    assert_eq!(names(&told), ["chunk", "chunk", "chunk", "chunk", "[DONE]"]);
}

#[test]
fn a_json_answer_that_falls_silent_is_a_504_or_failed() {
    let behind = paced().idle("300ms").before("openai-chat", "openai");
    behind.plays("i-json", silence().event(&word("One")).stall());
    let reply = behind.server.ask(asking("chat", "i-json", false));
    assert_eq!(reply.status(), 504);
    assert_eq!(reply.json()["error"]["message"], "the backend sent nothing more in 300ms");
    let body = behind.server.ask(asking("responses", "i-json", false)).json();
    holds(&json!({ "status": "failed", "output": [{ "content": [{ "text": "One" }] }] }), &body);
}

#[test]
fn a_whole_stream_may_have_a_limit_too() {
    let behind = paced().times("stream: none", "stream: 600ms").before("openai-chat", "openai");
    let answer = (0..20).fold(silence(), |answer, _| answer.event(&word("x")).pause(ms(100)));
    behind.plays("i-stream", ending(answer));
    let told = behind.server.ask(asking("chat", "i-stream", true)).told();
    assert_eq!(told.last().unwrap().name(), "error");
    assert_eq!(told.last().unwrap().json()["error"]["message"], "the backend did not finish its answer in 600ms");
}

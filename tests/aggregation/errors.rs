//! The five error scenarios, for each profile and for the other dialects.

use super::aggregator::{official, proxied, said, settled, zeros};
use super::support::backend_events::{created, events, text_delta};
use super::support::{Answer, Behind, Disk, Refusing, asking, holds, serve};
use super::{codex_proxy, openai};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn ac_003_error_1_an_empty_stream() {
    // Nothing at all, white space, comments, and a marker are all nothing.
    let nothing =
        [("e1-none", ""), ("e1-space", "\n\n"), ("e1-comment", ": hello\n\n"), ("e1-done", "data: [DONE]\n\n")];
    for (model, text) in nothing {
        let answer = Answer::sse(&[]).bytes(text);
        let reply = codex_proxy().ask(model, answer.clone(), asking("responses", model, false));
        let mut expected = proxied("completed", &json!([]), &zeros());
        expected["model"] = json!(model);
        assert_eq!(settled(&reply, "created"), expected);

        for dialect in ["responses", "chat", "completions"] {
            if dialect == "responses" {
                openai().plays(model, answer.clone());
            }
            let reply = openai().server.ask(asking(dialect, model, false));
            assert_eq!(reply.status(), 502, "{dialect} {text:?}");
            let error = json!({ "message": "the backend ended without an answer", "type": "server_error", "param": null, "code": null });
            assert_eq!(reply.json(), json!({ "error": error }), "{dialect} {text:?}");
        }
    }
}

#[test]
fn ac_003_error_1_a_chat_client_of_the_proxy_gets_an_empty_completion() {
    let reply = codex_proxy().ask("e1-chat", Answer::sse(&[]), asking("chat", "e1-chat", false));
    assert_eq!(reply.status(), 200);
    let message = json!({ "role": "assistant", "content": null, "refusal": null });
    holds(
        &json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }], "usage": { "prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0 } }),
        &reply.json(),
    );
}

#[test]
fn ac_003_error_2_a_partial_stream() {
    let stream = events(&[created(), text_delta("Half")]);
    let ends = [
        ("e2-end", Answer::sse_raw(&stream)),
        ("e2-cut", Answer::sse_raw(&stream).cut()),
        ("e2-reset", Answer::sse_raw(&stream).pause(Duration::from_millis(50)).reset()),
    ];
    for (model, answer) in ends {
        let reply = codex_proxy().ask(model, answer.clone(), asking("responses", model, false));
        assert_eq!(settled(&reply, "created"), proxied("failed", &json!([said("Half")]), &zeros()), "{model}");
        let reply = openai().ask(model, answer, asking("responses", model, false));
        let body = settled(&reply, "created_at");
        assert_eq!(body["output"], json!([official("Half", "incomplete")]), "{model}");
        assert_eq!(body["status"], "failed", "{model}");
        assert!(!body["error"]["message"].as_str().unwrap().is_empty());
        // A chat body has no word for half an answer.
        for behind in [codex_proxy(), openai()] {
            let reply = behind.server.ask(asking("chat", model, false));
            assert_eq!(reply.status(), 502, "{model}: {}", reply.text());
        }
    }
}

#[test]
fn ac_003_error_2_what_began_and_said_nothing_is_not_completed() {
    let answer = Answer::sse_raw(events(&[created()]));
    let reply = codex_proxy().ask("e2-began", answer.clone(), asking("responses", "e2-began", false));
    assert_eq!(settled(&reply, "created"), proxied("failed", &json!([]), &zeros()));
    let chat = codex_proxy().server.ask(asking("chat", "e2-began", false));
    assert_eq!(chat.status(), 502);
    let reply = openai().ask("e2-began", answer, asking("responses", "e2-began", false));
    assert_eq!(reply.status(), 502);
    assert_eq!(reply.json()["error"]["message"], "the backend began an answer and said nothing");
}

#[test]
fn ac_003_error_3_nothing_but_malformed_events() {
    let garbage = "data: {oops\n\nevent: response.completed\ndata: {\"type\":\n\n";
    let reply = openai().ask("e3", Answer::sse_raw(garbage), asking("responses", "e3", false));
    assert_eq!(reply.status(), 502);
    let reply = codex_proxy().ask("e3", Answer::sse_raw(garbage), asking("responses", "e3", false));
    assert_eq!(reply.json()["output"], json!([]));
}

#[test]
fn ac_003_error_4_a_timeout() {
    let patience =
        |disk: Disk| disk.lay("gateway.yaml", "first_event: 300s, idle: 300s", "first_event: 300ms, idle: 300ms");
    for profile in ["openai", "codex-proxy"] {
        let behind = Behind::start("openai-responses", profile, patience(Disk::empty()));
        for (model, answer) in [("e4-hang", Answer::hang()), ("e4-head", Answer::sse(&[]).stall())] {
            let begun = Instant::now();
            let reply = behind.ask(model, answer, asking("responses", model, false));
            assert_eq!(reply.status(), 504, "{profile} {model}");
            let error = json!({ "message": "the backend did not begin its answer in 300ms", "type": "server_error", "param": null, "code": null });
            assert_eq!(reply.json(), json!({ "error": error }), "{profile} {model}");
            assert!(begun.elapsed() >= Duration::from_millis(300));
        }
        let half = Answer::sse_raw(events(&[created(), text_delta("Half")])).stall();
        let reply = behind.ask("e4-half", half, asking("responses", "e4-half", false));
        assert_eq!(reply.status(), 200);
        holds(&json!({ "status": "failed", "output": [{ "content": [{ "text": "Half" }] }] }), &reply.json());
        // A body without a status: the time is over, and that is all.
        assert_eq!(behind.server.ask(asking("chat", "e4-half", false)).status(), 504);
        // It is left, not only forgotten.
        super::support::eventually("the backend is left", || (behind.backend.gone().len() == 4).then_some(()));
    }
}

#[test]
fn ac_003_error_5_a_connection_error() {
    for profile in ["openai", "codex-proxy"] {
        let refusing = Refusing::start();
        let behind = if profile == "openai" { openai() } else { codex_proxy() };
        let resets = Answer::raw().reset();
        for stream in [false, true] {
            let model = format!("e5-{stream}");
            let reply = behind.ask(&model, resets.clone(), asking("responses", &model, stream));
            assert_eq!(reply.status(), 502, "{profile} stream {stream}");
            assert!(reply.json()["error"]["message"].as_str().unwrap().starts_with("the backend did not answer: "));
        }
        let at = format!("openai-responses={}", refusing.url());
        let server = serve().args(["--backend", &at, "--profile", profile]).start();
        for (dialect, stream) in [("responses", false), ("responses", true), ("chat", false), ("completions", true)] {
            let reply = server.ask(asking(dialect, "m", stream));
            assert_eq!(reply.status(), 502, "{profile} {dialect}");
            holds(&json!({ "error": { "type": "server_error" } }), &reply.json());
            assert!(
                reply.json()["error"]["message"].as_str().unwrap().starts_with("the backend could not be reached: ")
            );
        }
    }
}

#[test]
fn ac_003_one_line_serves_the_profile_of_the_mission() {
    let server =
        serve().args(["--backend", "openai-responses=http://127.0.0.1:9/v1", "--profile", "codex-proxy"]).start();
    assert_eq!(server.ask(asking("responses", "m", false)).status(), 502);
}

#[test]
fn ac_003_error_5_a_refusal_keeps_its_status_and_its_words() {
    let said = json!({ "error": { "message": "too many of you", "type": "rate_limit_error", "code": "slow_down" } });
    let answer = Answer::json(429, &said.to_string()).header("retry-after", "7");
    for behind in [codex_proxy(), openai()] {
        behind.plays("e5-429", answer.clone());
        for stream in [false, true] {
            let reply = behind.server.ask(asking("responses", "e5-429", stream));
            assert_eq!((reply.status(), reply.header("retry-after")), (429, Some("7")));
            let error =
                json!({ "message": "too many of you", "type": "rate_limit_error", "param": null, "code": "slow_down" });
            assert_eq!(reply.json(), json!({ "error": error }));
        }
    }
}

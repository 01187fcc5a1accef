//! `/v1/completions` over HTTP, in every profile.

use crate::support::gateway_with_backend::TestGateway;
use crate::support::{MockResponse, Reply, Request, TestDir, backend_events};
use serde_json::{Value, json};

const PROFILES: [&str; 2] = ["openai", "codex-proxy"];

fn post(gateway: &TestGateway, body: &Value) -> Reply {
    let request = Request::post(body.to_string()).at("/v1/completions").header("content-type", "application/json");
    gateway.server.fetch(request)
}

fn gateway(profile: &str) -> TestGateway {
    let gateway = TestGateway::start("openai-chat", profile, TestDir::empty());
    gateway.set_response("m", MockResponse::sse_raw(backend_events::chat_stream(&["Once ", "more"])));
    gateway
}

#[test]
fn a_body_and_a_stream_have_the_legacy_shapes() {
    for (profile, object) in [("openai", "text_completion"), ("codex-proxy", "text_completion.chunk")] {
        let gateway = gateway(profile);
        let body = post(&gateway, &json!({ "model": "m", "prompt": "Hello." })).json();
        assert_eq!(body["object"], "text_completion", "{profile}");
        assert!(body["id"].as_str().unwrap().starts_with("cmpl-"), "{profile}: {body}");
        assert_eq!(body["choices"][0]["text"], "Once more");
        assert_eq!(
            (&body["choices"][0]["logprobs"], &body["choices"][0]["finish_reason"]),
            (&Value::Null, &json!("stop"))
        );
        let stream = post(&gateway, &json!({ "model": "m", "prompt": "Hello.", "stream": true }));
        let frames = stream.frames();
        let (last, chunks) = frames.split_last().unwrap();
        assert_eq!(last.data, "[DONE]");
        let chunks: Vec<Value> = chunks.iter().map(|frame| frame.json()).collect();
        assert!(chunks.iter().all(|chunk| chunk["object"] == object), "{profile}: {chunks:?}");
        let text: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["text"].as_str()).collect();
        assert_eq!(text, "Once more");
    }
}

#[test]
fn an_array_of_prompts_is_one_prompt_or_rejected() {
    for profile in PROFILES {
        let gateway = gateway(profile);
        assert_eq!(post(&gateway, &json!({ "model": "m", "prompt": ["Hello."] })).status(), 200, "{profile}");
        let several = post(&gateway, &json!({ "model": "m", "prompt": ["Hello.", "And more."] }));
        let sent = |at: usize| gateway.requests_for("m")[at]["messages"].clone();
        assert_eq!(sent(0), json!([{ "role": "user", "content": "Hello." }]), "{profile}");
        match profile {
            "openai" => {
                let error = several.json()["error"].clone();
                assert_eq!((several.status(), &error["param"]), (400, &json!("prompt[1]")), "{error}");
            }
            _ => {
                assert_eq!(several.status(), 200);
                assert_eq!(sent(1), json!([{ "role": "user", "content": "Hello.\nAnd more." }]));
            }
        }
        for prompt in [json!([]), json!([1, 2]), json!([[1, 2]]), json!({}), json!(7)] {
            let reply = post(&gateway, &json!({ "model": "m", "prompt": prompt }));
            let error = reply.json()["error"].clone();
            assert_eq!(reply.status(), 400, "{profile}: {prompt}");
            assert!(error["param"].as_str().unwrap().starts_with("prompt"), "{profile}: {prompt}: {error}");
        }
    }
}

#[test]
fn what_is_not_supported_is_rejected_with_its_param() {
    for profile in PROFILES {
        let gateway = gateway(profile);
        for (field, value) in [
            ("echo", json!(true)),
            ("suffix", json!("the end")),
            ("logprobs", json!(2)),
            ("best_of", json!(3)),
            ("n", json!(0)),
            ("n", json!("two")),
        ] {
            let mut body = json!({ "model": "m", "prompt": "Hello." });
            body[field] = value.clone();
            let reply = post(&gateway, &body);
            assert_eq!(
                (reply.status(), &reply.json()["error"]["param"]),
                (400, &json!(field)),
                "{profile}: {field}: {value}"
            );
        }
        let defaults = json!({ "model": "m", "prompt": "Hello.", "echo": false, "suffix": null, "best_of": 1, "logprobs": null, "n": 1 });
        assert_eq!(post(&gateway, &defaults).status(), 200, "{profile}");
    }
}

#[test]
fn several_choices_are_requested_from_the_backend() {
    for profile in PROFILES {
        let gateway = TestGateway::start("openai-chat", profile, TestDir::empty());
        let choice = |index: usize| {
            let message = json!({ "role": "assistant", "content": format!("answer {index}") });
            json!({ "index": index, "message": message, "finish_reason": "stop" })
        };
        let answer = json!({ "id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice(0), choice(1)] });
        gateway.set_response("m", MockResponse::json(200, &answer.to_string()));
        let body = post(&gateway, &json!({ "model": "m", "prompt": "Hello.", "n": 2 })).json();
        assert_eq!(gateway.requests_for("m")[0]["n"], 2);
        let texts: Vec<&str> =
            body["choices"].as_array().unwrap().iter().map(|c| c["text"].as_str().unwrap()).collect();
        assert_eq!(texts, ["answer 0", "answer 1"], "{profile}");
    }
}

//! Which models there are, when the backend is asked.

use crate::backend_streams::Spoken;
use crate::gateway_fixture::Rig;
use crate::received::{Dialect, Form, Told};
use crate::support::{Answer, Refusing, Request, Server, serve, within};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const LIST: &str = r#"{"object":"list","data":[{"id":"large","object":"model"},{"id":"small/2:b","object":"model"},{"id":"large"},{"name":"no id"},{"id":7}]}"#;

fn listed(server: &Server) -> Vec<String> {
    let reply = server.ask(Request::get("/v1/models"));
    assert_eq!(reply.status(), 200);
    let body = reply.json();
    assert_eq!(body["object"], "list");
    let models = body["data"].as_array().unwrap();
    for model in models {
        assert_eq!(keys(model), ["id", "object", "created", "owned_by"]);
        assert_eq!(model["object"], "model");
        assert!(model["created"].as_u64().is_some_and(|seconds| seconds > 1_700_000_000), "{model}");
    }
    models.iter().map(|model| model["id"].as_str().unwrap().to_owned()).collect()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_models_are_those_that_the_backend_lists() {
    for name in ["openai-chat", "openai-responses"] {
        let rig = Rig::launched(name, |launch| launch.env("REFRAME_BACKEND_KEY", "sk-key"));
        rig.will(Answer::json(200, LIST));
        assert_eq!(listed(&rig.server), ["large", "small/2:b"]);
        let seen = rig.last();
        assert_eq!((seen.method.as_str(), seen.path.as_str()), ("GET", "/v1/models"));
        assert_eq!(seen.header("authorization"), Some("Bearer sk-key"));
        assert_eq!(seen.body, b"");
        // What it said stands for a while.
        rig.will(Answer::new(500));
        assert_eq!(listed(&rig.server), ["large", "small/2:b"]);
        assert_eq!(rig.backend.seen().len(), 1);
    }
}

#[test]
fn a_backend_that_lists_nothing_has_the_model_default() {
    let rig = Rig::own("openai-chat");
    for answer in [
        Answer::new(404),
        Answer::new(500),
        Answer::json(401, "{}"),
        Answer::json(200, "{"),
        Answer::json(200, "<html>"),
        Answer::json(200, LIST).wrong_length(10),
        Answer::json(200, LIST).chunked().cut(),
        Answer::new(302).header("location", "http://127.0.0.1:1/"),
        Answer::garbage("what?\r\n\r\n"),
        Answer::raw(),
        Answer::json(200, "").endless(" ".repeat(64 * 1024)),
    ] {
        rig.will(answer);
        assert_eq!(listed(&rig.server), ["default"]);
    }
    // None of that was kept.
    rig.will(Answer::json(200, LIST).gzip());
    assert_eq!(listed(&rig.server), ["large", "small/2:b"]);
    for empty in ["null", r#"{"data":{"id":"x"}}"#] {
        let rig = Rig::own("openai-chat");
        rig.will(Answer::json(200, empty));
        assert_eq!(listed(&rig.server), ["default"], "{empty}");
    }
    let refusing = Refusing::start();
    let server = serve().arg("--backend").arg(format!("openai-chat={}", refusing.url())).start();
    assert_eq!(listed(&server), ["default"]);
}

#[test]
fn a_backend_that_does_not_answer_for_its_models_is_not_waited_for() {
    let rig = Rig::own("openai-chat");
    rig.will(Answer::hang());
    let begun = Instant::now();
    assert_eq!(listed(&rig.server), ["default"]);
    within("a list that never comes", begun.elapsed(), Duration::from_secs(6));
    assert!(begun.elapsed() > Duration::from_secs(1), "it was not asked");
}

#[test]
fn any_model_is_accepted_and_has_a_page() {
    let rig = Rig::of("openai-chat");
    rig.will(Answer::new(500));
    for id in ["anything", "gpt-4.1", "org/name:tag", "default"] {
        let reply = rig.ask(Request::get(&format!("/v1/models/{id}")));
        assert_eq!(reply.status(), 200, "{id}: {}", reply.text());
        let page = reply.json();
        assert_eq!((keys(&page), &page["id"]), (vec!["id", "object", "created", "owned_by"], &json!(id)));
        rig.will(Spoken::by("openai-chat").json());
        let reply = rig.ask(Dialect::Chat.request_with(Form::Json, json!({ "model": id })));
        assert_eq!(Dialect::Chat.read(Form::Json, &reply), Told::Whole("Hello".to_owned()));
        assert_eq!(rig.last().json()["model"], id);
    }
}

//! The model list of an HTTP backend.

use super::backend_streams::HelloStream;
use super::gateway_fixture::GatewayFixture;
use super::received::{Dialect, Form, Received};
use crate::support::{MockResponse, RefusingPort, Request, Server, eventually, serve};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const LIST: &str = r#"{"object":"list","data":[{"id":"large","object":"model"},{"id":"small/2:b","object":"model"},{"id":"large"},{"name":"no id"},{"id":7}]}"#;

fn list_models(server: &Server) -> Vec<String> {
    let reply = server.fetch(Request::get("/v1/models"));
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
fn the_models_are_those_of_the_backend() {
    for name in ["openai-chat", "openai-responses"] {
        let fixture = GatewayFixture::launched(name, |launch| launch.env("REFRAME_BACKEND_KEY", "sk-key"));
        fixture.set_response(MockResponse::json(200, LIST));
        assert_eq!(list_models(&fixture.server), ["large", "small/2:b"]);
        let request = fixture.last();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/v1/models"));
        assert_eq!(request.header("authorization"), Some("Bearer sk-key"));
        assert_eq!(request.body, b"");
        // The list is cached for a while.
        fixture.set_response(MockResponse::new(500));
        assert_eq!(list_models(&fixture.server), ["large", "small/2:b"]);
        assert_eq!(fixture.backend.request_count(), 1);
    }
}

#[test]
fn a_backend_without_a_model_list_has_the_model_default() {
    let fixture = GatewayFixture::own("openai-chat");
    for answer in [
        MockResponse::new(404),
        MockResponse::new(500),
        MockResponse::json(401, "{}"),
        MockResponse::json(200, "{"),
        MockResponse::json(200, "<html>"),
        MockResponse::json(200, LIST).wrong_length(10),
        MockResponse::json(200, LIST).chunked().disconnect(),
        MockResponse::new(302).header("location", "http://127.0.0.1:1/"),
        MockResponse::garbage("what?\r\n\r\n"),
        MockResponse::raw(),
        MockResponse::json(200, "").endless(" ".repeat(64 * 1024)),
    ] {
        fixture.set_response(answer);
        assert_eq!(list_models(&fixture.server), ["default"]);
    }
    // Failures are not cached: a cached one would last 30 seconds. On a busy machine, the list may take too long once more.
    let started = Instant::now();
    fixture.set_response(MockResponse::json(200, LIST).gzip());
    eventually("the list of the backend", || (list_models(&fixture.server) == ["large", "small/2:b"]).then_some(()));
    assert!(started.elapsed() < Duration::from_secs(25), "the failure was cached");
    for empty in ["null", r#"{"data":{"id":"x"}}"#] {
        let fixture = GatewayFixture::own("openai-chat");
        fixture.set_response(MockResponse::json(200, empty));
        assert_eq!(list_models(&fixture.server), ["default"], "{empty}");
    }
    let refusing = RefusingPort::start();
    let server = serve().arg("--backend").arg(format!("openai-chat={}", refusing.url())).start();
    assert_eq!(list_models(&server), ["default"]);
}

#[test]
fn a_slow_model_list_times_out() {
    let fixture = GatewayFixture::own("openai-chat");
    fixture.set_response(MockResponse::hang());
    let started = Instant::now();
    assert_eq!(list_models(&fixture.server), ["default"]);
    assert!(started.elapsed() > Duration::from_secs(1), "the backend received no request");
}

#[test]
fn any_model_is_accepted_and_described() {
    let fixture = GatewayFixture::of("openai-chat");
    fixture.set_response(MockResponse::new(500));
    for id in ["anything", "gpt-4.1", "org/name:tag", "default"] {
        let reply = fixture.fetch(Request::get(&format!("/v1/models/{id}")));
        assert_eq!(reply.status(), 200, "{id}: {}", reply.text());
        let page = reply.json();
        assert_eq!((keys(&page), &page["id"]), (vec!["id", "object", "created", "owned_by"], &json!(id)));
        fixture.set_response(HelloStream::of("openai-chat").json());
        let reply = fixture.fetch(Dialect::Chat.request_with(Form::Json, json!({ "model": id })));
        assert_eq!(Dialect::Chat.read(Form::Json, &reply), Received::Complete("Hello".to_owned()));
        assert_eq!(fixture.last().json()["model"], id);
    }
}

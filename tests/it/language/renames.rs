//! A renamed field is one line of a profile: it applies to frames, bodies, schemas, the published documents and
//! `validate`.

use crate::support::{Request, TestDir, edited, repo, serve};
use reframe::testing::capture::{read, validate};
use reframe::testing::diagnostics::render_all;
use reframe::testing::mapping::{SourceFile, load};
use reframe::testing::reload::embedded;
use reframe::testing::verify::verify;
use serde_json::{Value, json};

const PROFILE: &str = "profile: mine\nrename_fields: { chat: { model: model_name, message: reason } }\n";

/// The embedded set, of which the route of the dialect `chat` has the profile.
fn set() -> Vec<SourceFile> {
    let mut files = embedded::files();
    for file in files.iter_mut().filter(|file| file.name == "gateway.yaml") {
        file.text = file.text.replace("dialect: chat, profile: openai", "dialect: chat, profile: mine").into();
    }
    let name = "profiles/mine.yaml".to_owned();
    files.push(SourceFile { shown: name.clone(), name, layer: 0, text: PROFILE.into() });
    files
}

#[test]
fn b03_a_required_field_is_renamed_in_one_line() {
    let loaded = load(&set());
    let plan = loaded.plan.unwrap_or_else(|| panic!("{}", render_all(&loaded.diagnostics, &loaded.sources, false)));
    let found = verify(&plan).found;
    assert!(found.is_empty(), "{}", render_all(&found, &plan.sources, false));
    // Other profiles keep the old names.
    let schema = |profile| &plan.dialect("chat", Some(profile)).unwrap().body.schema.as_ref().unwrap().name;
    assert_eq!(schema("mine"), "chat@mine.chat/body.json");
    assert_eq!(schema("openai"), "chat/body.json");
    // A frame with the old name is refused, and so is one without a name.
    let mine = plan.dialect("chat", Some("mine")).unwrap();
    let findings = |text: &str| -> Vec<String> {
        validate(mine, &read(text).unwrap()).findings.into_iter().map(|finding| finding.text).collect()
    };
    let chunk = |model: &str, delta: Value, finish: Value| {
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish });
        let mut chunk = json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "system_fingerprint": null, "choices": [choice] });
        chunk[model] = json!("m");
        format!("data: {chunk}\n\n")
    };
    let role = json!({ "role": "assistant", "content": "" });
    let stream = |model: &str| {
        chunk(model, role.clone(), Value::Null) + &chunk(model, json!({}), json!("stop")) + "data: [DONE]\n\n"
    };
    assert_eq!(findings(&stream("model_name")), [""; 0]);
    assert!(!findings(&stream("model")).is_empty());
    // The rules of `capture:` read the dialect's own names: the model must not change.
    let changed = stream("model_name").replacen("\"model_name\":\"m\"", "\"model_name\":\"other\"", 1);
    assert!(findings(&changed).iter().any(|text| text.contains("model")), "{:?}", findings(&changed));
}

#[test]
fn b03_the_published_documents_have_the_new_name() {
    let dir = TestDir::empty();
    dir.write("layer/profiles/mine.yaml", PROFILE);
    let gateway =
        edited(&repo("mappings/gateway.yaml"), "dialect: chat, profile: openai", "dialect: chat, profile: mine");
    dir.write("layer/gateway.yaml", &gateway);
    let server = serve().add(dir).start();
    let request = json!({ "model": "demo", "messages": [{ "role": "user", "content": "Hello!" }] });
    let post = |body: &Value| {
        let request = Request::post(body.to_string()).at("/v1/chat/completions");
        server.fetch(request.header("content-type", "application/json"))
    };
    let body = post(&request).json();
    assert_eq!((&body["model_name"], &body["model"]), (&json!("demo"), &Value::Null), "{body}");
    assert_eq!(body["choices"][0]["reason"]["role"], "assistant", "{body}");
    // An error has its schema in the shared folder.
    let error = post(&json!({ "model": "demo" }));
    assert_eq!(error.status(), 400);
    assert!(error.json()["error"]["reason"].is_string(), "{}", error.text());
    let schema = server.fetch(Request::get("/schemas/chat@mine.chat/body.json"));
    assert_eq!(schema.status(), 200, "{}", schema.text());
    let properties = &schema.json()["properties"];
    assert!(properties["model_name"].is_object() && properties["model"].is_null(), "{properties}");
    let document = server.fetch(Request::get("/openapi.json")).json();
    let route = &document["paths"]["/v1/chat/completions"]["post"]["responses"]["200"]["content"]["application/json"];
    let name = route["schema"]["$ref"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let component = &document["components"]["schemas"][&name];
    assert!(component["properties"]["model_name"].is_object(), "{name}: {component}");
    // The request keeps its names.
    let request = document["paths"]["/v1/chat/completions"]["post"]["requestBody"].to_string();
    assert!(!request.contains("model_name"), "{request}");
}

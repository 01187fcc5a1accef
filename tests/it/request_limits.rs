//! Limits on what a request costs: the number of its values and items, and that reading stops for a client that is gone.

use crate::support::replay::LoadedSet;
use crate::support::{Request, TestDir, edited, repo, serve_with};
use reframe::testing::domain::{Fault, FaultKind, Tree};
use reframe::testing::engine::emission_budget::{Cancelled, EmissionBudget};
use reframe::testing::engine::request::{RequestLimits, read_within};
use reframe::testing::engine::unread::ReadRecord;

/// Reads a request that may have this many items.
fn read(dialect: &str, items: usize, body: &str) -> Result<(), Fault> {
    let plan = LoadedSet::embedded().plan.dialect(dialect, Some("openai")).unwrap();
    let limits = RequestLimits { items, ..RequestLimits::NONE };
    read_within(&plan.request, body.as_bytes(), &limits).map(drop)
}

#[test]
fn the_first_item_beyond_the_limit_is_named() {
    // A message with a text is a message and a content part.
    let cases = [
        ("chat", r#"{"model":"m","messages":[M,M,M]}"#, 6, "messages[2]"),
        ("chat", r#"{"model":"m","messages":[{"role":"user","content":[T,T,T]}]}"#, 4, "messages[0]"),
        (
            "chat",
            r#"{"model":"m","messages":[{"role":"assistant","tool_calls":[C,C]}]}"#,
            2,
            "messages[0].tool_calls[1]",
        ),
        ("chat", r#"{"model":"m","messages":[M],"tools":[F,F]}"#, 4, "tools[1]"),
        ("responses", r#"{"model":"m","input":[M,O,O]}"#, 4, "input[2]"),
        ("completions", r#"{"model":"m","prompt":["a"]}"#, 1, "prompt[0]"),
    ];
    let elements = [
        ("M", r#"{"role":"user","content":"a"}"#),
        ("T", r#"{"type":"text","text":"a"}"#),
        ("C", r#"{"id":"c","type":"function","function":{"name":"f"}}"#),
        ("F", r#"{"type":"function","function":{"name":"f"}}"#),
        ("O", r#"{"type":"other"}"#),
    ];
    for (dialect, body, items, param) in cases {
        let body = elements.iter().fold(body.to_owned(), |body, (short, element)| {
            body.replace(&format!("[{short}"), &format!("[{element}"))
                .replace(&format!(",{short}"), &format!(",{element}"))
        });
        assert_eq!(read(dialect, items, &body), Ok(()), "{body}");
        let fault = read(dialect, items - 1, &body).unwrap_err();
        assert_eq!((fault.kind, fault.param.as_deref()), (FaultKind::Invalid, Some(param)), "{body}");
    }
}

#[test]
fn a_request_with_too_many_values_is_too_large() {
    let plan = LoadedSet::embedded().plan.dialect("completions", Some("openai")).unwrap();
    let read = |values, body: &str| {
        read_within(&plan.request, body.as_bytes(), &RequestLimits { values, ..RequestLimits::NONE })
    };
    // The object, and its four values.
    let body = r#"{"model":"m","prompt":"a","x":[1]}"#;
    assert!(read(5, body).is_ok());
    let fault = read(4, body).unwrap_err();
    assert_eq!((fault.kind, &*fault.message), (FaultKind::TooLarge, "the body has more than 4 values"));
}

#[test]
fn rules_stop_for_a_client_that_is_gone() {
    let plan = &LoadedSet::embedded().plan.dialect("chat", Some("openai")).unwrap().request;
    let body = r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}"#;
    let tree = Tree::parse(body.as_bytes()).unwrap();
    let cancelled = Cancelled::default();
    let emitted = |cancelled: &Cancelled| {
        let budget = EmissionBudget::new(9, Some(cancelled.clone()));
        plan.items.apply_recorded(&tree, budget, &mut ReadRecord::default()).emissions.len()
    };
    assert_eq!(emitted(&cancelled), 2);
    cancelled.set();
    assert_eq!(emitted(&cancelled), 0);
    let limits = RequestLimits { cancelled: Some(cancelled), ..RequestLimits::NONE };
    assert!(read_within(plan, body.as_bytes(), &limits).is_err());
}

#[test]
fn the_limits_of_the_gateway_apply() {
    let dir = TestDir::empty();
    let limits = "  body_bytes: 16MiB\n  request_values: 12\n  request_items: 4";
    dir.write("layer/gateway.yaml", &edited(&repo("mappings/gateway.yaml"), "  body_bytes: 16MiB", limits));
    let server = serve_with(dir);
    let post = |messages: usize| {
        let messages = vec![r#"{"role":"user","content":"a"}"#; messages].join(",");
        let body = format!(r#"{{"model":"demo","messages":[{messages}]}}"#);
        server.fetch(Request::post(body).header("content-type", "application/json"))
    };
    assert_eq!(post(2).head.status, 200);
    let reply = post(3);
    assert_eq!((reply.head.status, reply.json()["error"]["param"].as_str()), (400, Some("messages[2].content")));
    assert_eq!(post(4).head.status, 413);
}

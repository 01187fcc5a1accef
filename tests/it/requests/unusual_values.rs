//! Values that are unusual, or that only the backend knows: words of other servers, whole floats, null, stored prompts.

use super::{HI, prepared_request, with};
use reframe::testing::domain::Tree;

/// The backend's request for a Responses request with these members, or the fault.
fn responses(backend: &str, members: &str) -> Tree {
    let body = format!(r#"{{"model":"m",{members}}}"#);
    prepared_request(backend, "responses", &Tree::parse(body.as_bytes()).unwrap())
}

fn body(prepared: &Tree) -> &Tree {
    prepared.get("body").unwrap_or_else(|| panic!("{prepared}"))
}

fn fault(param: &str, message: &str) -> String {
    format!(r#"{{"status":400,"param":"{param}","message":"{message}"}}"#)
}

/// As the client sent them, to a backend of the same dialect.
#[test]
fn words_of_other_servers_are_forwarded() {
    for member in [
        r#""reasoning_effort":"max""#,
        r#""service_tier":"batch""#,
        r#""tool_choice":"sometimes""#,
        r#""response_format":{"type":"regex","regex":"a+"}"#,
    ] {
        let expected = (format!("{HI},{member}}}"), "[]".to_owned());
        assert_eq!(with("openai-chat", &format!(",{member}")), expected);
    }
    for member in [
        r#""reasoning":{"effort":"ultra","summary":"all"}"#,
        r#""truncation":"middle""#,
        r#""tool_choice":"sometimes""#,
        r#""text":{"format":{"type":"regex","regex":"a+"},"verbosity":"tiny"}"#,
    ] {
        let prepared = responses("openai-responses", &format!(r#""input":"a",{member}"#));
        let (name, _) = member.split_once(':').unwrap();
        let sent = body(&prepared).get(name.trim_matches('"')).map(Tree::to_json).unwrap_or_default();
        assert_eq!(format!("{name}:{sent}"), member);
        assert_eq!(prepared.get("dropped").map(Tree::to_json).unwrap(), "[]");
    }
}

#[test]
fn unknown_words_are_rejected_with_their_value() {
    let effort = fault(
        "reasoning_effort",
        "`reasoning_effort` must be one of none, minimal, low, medium, high or xhigh, not `max`",
    );
    let format = fault(
        "response_format.type",
        "`response_format.type` must be one of text, json_object or json_schema, not `regex`",
    );
    for backend in ["rejects-values", "anthropic-messages", "gemini-generate"] {
        assert_eq!(with(backend, r#","reasoning_effort":"max""#).0, effort);
        assert_eq!(with(backend, r#","response_format":{"type":"regex"}"#).0, format);
    }
}

/// A word that the backend would not get is rejected, not dropped.
#[test]
fn unknown_words_that_are_not_sent_are_rejected() {
    let prepared = responses("openai-chat", r#""input":"a","truncation":"middle""#);
    let message = "`truncation` must be one of auto or disabled, not `middle`";
    assert_eq!(prepared.get("fault").unwrap().to_json(), fault("truncation", message));
}

#[test]
fn any_is_another_word_for_required() {
    let tool = r#","tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"any""#;
    assert!(with("openai-chat", tool).0.contains(r#""tool_choice":"required""#));
    assert!(with("anthropic-messages", tool).0.contains(r#""tool_choice":{"type":"any"}"#));
}

#[test]
fn whole_floats_are_integers() {
    for number in ["100.0", "1e2", "100", "1000e-1"] {
        let expected = format!(r#"{HI},"max_completion_tokens":100}}"#);
        assert_eq!(with("openai-chat", &format!(r#","max_tokens":{number}"#)).0, expected);
    }
}

#[test]
fn a_number_that_does_not_fit_is_named() {
    for (member, param, message) in [
        (r#""n":1.5"#, "n", "`n` must be an integer between 1 and 128, not 1.5"),
        (r#""max_tokens":-1"#, "max_tokens", "`max_tokens` must be at least 1, not -1"),
        (r#""seed":1e30"#, "seed", "`seed` must be an integer of at most 64 bits, not 1e30"),
        (r#""temperature":1e999"#, "temperature", "`temperature` must be a number, not 1e999"),
        (r#""top_logprobs":0.5"#, "top_logprobs", "`top_logprobs` must be an integer, not 0.5"),
        (r#""n":"2""#, "n", "`n` must be an integer between 1 and 128, not a string"),
    ] {
        assert_eq!(with("openai-chat", &format!(",{member}")).0, fault(param, message));
    }
}

#[test]
fn null_next_to_another_type_is_absent() {
    let (body, _) = with("openai-chat", r#","response_format":{"type":"json_object","json_schema":null}"#);
    assert_eq!(body, format!(r#"{HI},"response_format":{{"type":"json_object"}}}}"#));
}

#[test]
fn a_stored_prompt_is_sent_only_to_a_backend_that_stores_prompts() {
    let prompt = r#""prompt":{"id":"pmpt_1","variables":{"city":"Paris"}}"#;
    let prepared = responses("openai-responses", prompt);
    assert_eq!(body(&prepared).to_json(), format!(r#"{{"model":"m",{prompt},"store":false}}"#));
    let message = "this backend does not support `prompt`";
    assert_eq!(responses("openai-chat", prompt).get("fault").unwrap().to_json(), fault("prompt", message));
    let message = "`input` is required";
    assert_eq!(responses("openai-responses", r#""user":"u""#).get("fault").unwrap().to_json(), fault("input", message));
}

#[test]
fn an_empty_tool_choice_is_rejected() {
    let (answer, _) = with("openai-chat", r#","tool_choice":"""#);
    assert!(answer.contains(r#""status":400,"param":"tool_choice""#), "{answer}");
    let prepared = responses("openai-responses", r#""input":"a","tool_choice":"""#).to_json();
    assert!(prepared.contains(r#""status":400,"param":"tool_choice""#), "{prepared}");
}

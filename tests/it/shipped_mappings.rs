//! The mapping tests of the shipped set test only behaviour that clients rely on: edits that users are encouraged to
//! make pass, edits that break a client fail.

use crate::support::{in_parallel, suites};
use reframe::testing::diagnostics::render_all;
use reframe::testing::domain::policy::BUILT_IN;
use reframe::testing::mapping::{Overrides, Plan, SourceFile, load, load_with};
use reframe::testing::reload::embedded;
use std::sync::OnceLock;

/// File, old text, new text.
pub type Edit = (&'static str, &'static str, &'static str);
/// Name, values.
type Policy = (&'static str, &'static [&'static str]);

/// Edits that the README and the comments in the files suggest.
const HARMLESS_EDITS: &[Edit] = &[
    ("dialects/chat.yaml", "prefix('chatcmpl-')", "prefix('acme-')"),
    ("dialects/completions.yaml", "prefix('cmpl-')", "prefix('acme-')"),
    ("dialects/responses.yaml", "prefix('resp_')", "prefix('acme_')"),
    ("dialects/responses.yaml", "prefix('msg_')", "prefix('note_')"),
    ("dialects/chat.yaml", "    length: length\n", "    length: stop\n"),
    ("dialects/chat.yaml", "    tool_calls: tool_calls\n", "    tool_calls: stop\n"),
    ("dialects/chat.yaml", "    stop: stop\n", "    stop: length\n"),
    ("dialects/responses.yaml", "incomplete: { length: max_output_tokens", "incomplete: { length: content_filter"),
    ("backends/gemini-generate.yaml", "STOP: stop", "STOP: length"),
    ("backends/anthropic-messages.yaml", "end_turn: stop", "end_turn: length"),
    ("backends/anthropic-messages.yaml", "overloaded_error: 529", "overloaded_error: 503"),
    ("backends/codex-app-server.yaml", "default: 502", "default: 500"),
    ("shared.yaml", "invalid: invalid_value", "invalid: nonsense"),
    ("shared.yaml", "else 'server_error'", "else 'api_error'"),
    ("dialects/responses.yaml", "this gateway does not store responses;", "we keep nothing;"),
    ("dialects/responses.yaml", "code: previous_response_not_found", "code: gone"),
    ("dialects/chat.yaml", "text: \"[DONE]\"", "text: \"[OVER]\""),
    ("gateway.yaml", "every: 15s\n  comment: \"keepalive {now_ms}\"", "every: 5s\n  comment: still here"),
    ("gateway.yaml", "/v1/chat/completions", "/chat"),
    ("gateway.yaml", "{ id: demo, backend: demo }", "{ id: acme-1, backend: demo }"),
    ("gateway.yaml", "profile: openai", "profile: codex-proxy"),
    ("scripts/demo.yaml", "pace: { fixed: 5 }", "pace: none"),
    ("scripts/demo.yaml", "{ play: greeting }", "{ play: thoughtful }"),
    ("scripts/demo.yaml", "play: story }", "play: greeting }"),
    ("scripts/demo.yaml", "message: \"the demo supports", "message: \"sorry, the demo supports"),
    ("profiles/codex-proxy.yaml", "code: stream_adapter_error", "code: broken"),
];

/// Edits that break a client.
pub const BREAKING_EDITS: &[Edit] = &[
    (
        "dialects/chat.yaml",
        "tool_calls: [ { index: \"{{ item.ordinal }}\"",
        "tool_calls: [ { index: \"{{ item.index }}\"",
    ),
    ("dialects/chat.yaml", "delta: { content: \"{{ text }}\" }", "delta: { content: \"{{ choice.text }}\" }"),
    (
        "dialects/chat.yaml",
        "empty_string: { name: \"{{ item.name }}\", arguments: \"\" }",
        "empty_string: { name: \"{{ item.call_id }}\", arguments: \"\" }",
    ),
    ("dialects/chat.yaml", "then: \"{{ choice.text }}\"", "then: \"{{ choice.refusal }}\""),
    ("dialects/chat.yaml", "[ $.max_completion_tokens, $.max_tokens ]", "[ $.max_tokens, $.max_completion_tokens ]"),
    (
        "dialects/chat.yaml",
        "    delta: {}\n    logprobs: null\n    finish_reason: \"{{ choice.finish | table('finish') }}\"\n",
        "    delta: {}\n    logprobs: null\n    finish_reason: null\n",
    ),
    ("dialects/responses.yaml", "sequence_number: \"{{ seq }}\"", "sequence_number: \"{{ seq + 1 }}\""),
    ("dialects/responses.yaml", "output_index: \"{{ item.index }}\"", "output_index: \"{{ item.ordinal }}\""),
    ("dialects/responses.yaml", "arguments: \"{{ item.arguments }}\"\n", "arguments: \"\"\n"),
    ("dialects/completions.yaml", "\"{{ choice.content | default('') }}\"", "\"{{ choice.refusal | default('') }}\""),
    (
        "backends/openai-chat.yaml",
        "key: \"@.index\"\n            id: \"@.id\"\n            name: \"@.function.name\"\n",
        "key: \"^.index\"\n            id: \"@.id\"\n            name: \"@.function.name\"\n",
    ),
    (
        "backends/openai-chat.yaml",
        "text: { choice: \"@.index\", whole: \"@.message.content\" }",
        "text: { choice: \"@.index\", whole: \"@.message.refusal\" }",
    ),
    (
        "backends/openai-responses.yaml",
        "emit: [ text: { item: $.item_id, part: $.content_index, whole: $.text } ]",
        "emit: [ text: { item: $.item_id, part: $.content_index, delta: $.text } ]",
    ),
    ("backends/anthropic-messages.yaml", "                - $.message.usage.cache_read_input_tokens\n", ""),
    (
        "backends/anthropic-messages.yaml",
        "tool: { key: $.index, delta: $.delta.partial_json }",
        "text: { delta: $.delta.partial_json }",
    ),
    ("backends/gemini-generate.yaml", "            name: \"@.functionCall.name\"\n", ""),
    (
        "backends/gemini-generate.yaml",
        "[ $.usageMetadata.candidatesTokenCount, $.usageMetadata.thoughtsTokenCount ]",
        "[ $.usageMetadata.candidatesTokenCount ]",
    ),
    (
        "backends/codex-app-server.yaml",
        "message: $.params.error.message, final: false",
        "message: $.params.error.message",
    ),
    (
        "backends/codex-app-server.yaml",
        "input: $.params.tokenUsage.total.inputTokens",
        "input: $.params.tokenUsage.last.inputTokens",
    ),
    ("profiles/codex-proxy.yaml", "sequence_number: \"{{ seq + 1 }}\"", "sequence_number: \"{{ seq }}\""),
    ("scripts/demo.yaml", "request.n > 2", "request.n > 3"),
    ("scripts/demo.yaml", "'weather' in request.last_user_text", "'rain' in request.last_user_text"),
];

/// A client of the dialect cannot distinguish two items at one index, so these tests fail rightly.
const INVALID_VALUES: &[(&str, &str, &str)] = &[("dialects/responses.yaml", "output_index", "choice")];

fn shipped() -> &'static (Vec<SourceFile>, Plan) {
    static SHIPPED: OnceLock<(Vec<SourceFile>, Plan)> = OnceLock::new();
    SHIPPED.get_or_init(|| {
        let files = embedded::files();
        let plan = load(&files).plan.expect("the shipped set loads");
        (files, plan)
    })
}

/// The shipped set with one file changed, or the diagnostics if it does not load.
fn changed(file: &str, change: impl Fn(&str) -> String) -> Result<Plan, String> {
    let (files, earlier) = shipped();
    let mut files = files.clone();
    let found = files.iter_mut().find(|f| f.name == file).unwrap_or_else(|| panic!("no {file}"));
    let text = change(&found.text);
    assert_ne!(text, *found.text, "{file} stays as it is");
    found.text = text.into();
    let loaded = load_with(&files, Some(earlier), &Overrides::default());
    loaded.plan.ok_or_else(|| render_all(&loaded.diagnostics, &loaded.sources, false))
}

fn edited((file, from, to): &Edit) -> Plan {
    let plan = changed(file, |text| {
        assert!(text.contains(from), "{file} does not contain `{from}`");
        text.replace(from, to)
    });
    plan.unwrap_or_else(|diagnostics| panic!("{file}: {from} → {to}\n{diagnostics}"))
}

fn failures(plan: &Plan) -> Vec<String> {
    suites::run_all(plan).into_iter().flat_map(|r| r.failures).collect()
}

#[test]
fn every_shipped_mapping_has_tests() {
    let (files, plan) = shipped();
    // replay.yaml has no rules: a transcript names the backend that decodes it.
    let mappings = files.iter().filter(|f| f.name != "backends/replay.yaml" && !f.name.ends_with(".test.yaml"));
    let mappings = mappings.filter(|f| f.name.ends_with(".yaml") && f.name.contains('/'));
    let untested: Vec<&str> = mappings
        .map(|f| f.name.trim_end_matches(".yaml"))
        .filter(|stem| !plan.tests.iter().any(|t| t.name.trim_end_matches(".test.yaml") == *stem))
        .collect();
    assert!(untested.is_empty(), "no tests for {}", untested.join(", "));
    assert_eq!(failures(plan), Vec::<String>::new());
    let passed: usize = suites::run_all(plan).iter().map(|report| report.passed).sum();
    assert!(passed > 50, "only {passed} tests of the shipped set ran");
}

/// Applies all edits at once; if that fails, each alone, to find the cause.
#[test]
fn harmless_edits_pass_the_shipped_tests() {
    let (files, earlier) = shipped();
    let mut files = files.clone();
    for (file, from, to) in HARMLESS_EDITS {
        let found = files.iter_mut().find(|f| f.name == *file).unwrap_or_else(|| panic!("no {file}"));
        assert!(found.text.contains(from), "{file} does not contain `{from}`");
        found.text = found.text.replace(from, to).into();
    }
    let loaded = load_with(&files, Some(earlier), &Overrides::default());
    let plan = loaded.plan.unwrap_or_else(|| panic!("{}", render_all(&loaded.diagnostics, &loaded.sources, false)));
    let failed = failures(&plan);
    if failed.is_empty() {
        return;
    }
    let alone = in_parallel(HARMLESS_EDITS, |edit| {
        let failed = failures(&edited(edit));
        (!failed.is_empty()).then(|| format!("{}: {} → {}\n  {}", edit.0, edit.1, edit.2, failed.join("\n  ")))
    });
    panic!("{}\nthe edits alone:\n{}", failed.join("\n"), alone.join("\n"));
}

/// What clients do not rely on, and other sets choose otherwise.
const FREE_CHOICES: &[Edit] = &[
    // A backend that stores responses.
    (
        "dialects/responses.yaml",
        "    previous_response_id:\n      message: \"this gateway does not store responses; send the full conversation as \
         `input`\"\n      code: previous_response_not_found\n",
        "",
    ),
    // It is echoed.
    (
        "dialects/responses.yaml",
        "previous_response_id: null",
        "previous_response_id: \"{{ request.raw.previous_response_id }}\"",
    ),
    // Clients that ignore the index.
    ("dialects/responses.yaml", "index: position ", "index: none "),
];

#[test]
fn c23_shipped_tests_hold_no_value_that_is_free_to_choose() {
    let wrong = in_parallel(FREE_CHOICES, |edit| {
        let failures = failures(&edited(edit));
        (!failures.is_empty()).then(|| format!("{edit:?}\n{}", failures.join("\n")))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn edits_that_break_a_client_fail_the_shipped_tests() {
    let wrong = in_parallel(BREAKING_EDITS, |edit| {
        failures(&edited(edit)).is_empty().then(|| format!("no test fails for {}: {} → {}", edit.0, edit.1, edit.2))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// In rounds, each with one value of every policy: loading a set per value would take minutes.
#[test]
fn every_policy_value_can_be_set_in_every_place() {
    let built_in: Vec<Policy> = BUILT_IN.iter().filter(|p| !p.list).map(|p| (p.name, p.values)).collect();
    let files: &[(&str, &[Policy])] = &[
        ("profiles/openai.yaml", &[]),
        ("profiles/codex-proxy.yaml", &[]),
        (
            "dialects/chat.yaml",
            &[
                ("role_content", &["empty_string", "null_value", "omitted"]),
                ("message_content", &["concat", "last"]),
                ("reasoning_form", &["reasoning_content", "reasoning"]),
            ],
        ),
        ("dialects/responses.yaml", &[("reasoning_form", &["events", "summary_events", "text_events"])]),
        ("dialects/completions.yaml", &[]),
    ];
    let rounds = built_in.iter().map(|(_, values)| values.len()).max().unwrap();
    let mut cases: Vec<(&str, Vec<(&str, &str)>)> = Vec::new();
    for (file, own) in files {
        for round in 0..rounds {
            let all = built_in.iter().chain(own.iter());
            let chosen = all.map(|(name, values)| (*name, values[round % values.len()]));
            let free = |(name, value): &(&str, &str)| !INVALID_VALUES.contains(&(file, name, value));
            cases.push((file, chosen.filter(free).collect()));
        }
    }
    assert_eq!(cases.len(), files.len() * rounds);
    let wrong = in_parallel(&cases, |(file, policies)| {
        let set = |text: &str| policies.iter().fold(text.to_owned(), |t, (n, v)| with_policy(&t, n, v));
        // Some values break the index law together with others, which is refused. Alone they can be set.
        let by_position = |text: &str| with_policy(&set(text), "output_index", "position");
        let loaded = match changed(file, set) {
            Err(diagnostics) if diagnostics.contains("RF138") => changed(file, by_position),
            loaded => loaded,
        };
        let failed = match loaded {
            Ok(plan) => failures(&plan),
            Err(diagnostics) => vec![diagnostics],
        };
        (!failed.is_empty()).then(|| format!("{file}: {policies:?}\n  {}", failed.join("\n  ")))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Replaces or adds the line of the policy. The comment ensures that the text changes.
fn with_policy(text: &str, name: &str, value: &str) -> String {
    let line = format!("  {name}: {value:?}   # tried\n");
    let own = format!("  {name}: ");
    let mut out = String::new();
    let (mut inside, mut done) = (false, false);
    for old in text.split_inclusive('\n') {
        inside = if old.starts_with("policies:") { true } else { inside && (old.starts_with(' ') || old == "\n") };
        if inside && old.starts_with(&own) {
            continue;
        }
        out.push_str(old);
        if old.starts_with("policies:") {
            out.push_str(&line);
            done = true;
        }
    }
    if done { out } else { format!("{out}\npolicies:\n{line}") }
}

//! Witness values: what a frame can get is tried before a set is used.

use reframe::testing::diagnostics::render_all;
use reframe::testing::mapping::load;
use reframe::testing::reload::embedded;
use reframe::testing::verify::verify;

/// What `check` reports about the embedded set after an edit of one dialect.
fn report(dialect: &str, old: &str, new: &str) -> String {
    let mut files = embedded::files();
    // Only witness values may find it.
    files.retain(|file| !file.name.ends_with(".test.yaml") && !file.name.starts_with("transcripts/"));
    files.retain(|file| !file.name.starts_with("scripts/"));
    let name = format!("dialects/{dialect}.yaml");
    for file in &mut files {
        if file.name == "gateway.yaml" {
            let text =
                file.text.replace("{ use: replay, script: demo }", "{ use: openai-chat, url: http://127.0.0.1:9 }");
            file.text = text.into();
        }
        if file.name == name {
            assert!(file.text.contains(old), "{old} is not in {name}");
            file.text = file.text.replace(old, new).into();
        }
    }
    let loaded = load(&files);
    let mut diagnostics = loaded.diagnostics;
    diagnostics.extend(loaded.plan.iter().flat_map(|plan| verify(plan).found));
    render_all(&diagnostics, &loaded.sources, false)
}

#[test]
fn b02_the_set_without_its_tests_has_no_findings() {
    let printed = report("chat", "content_filter: content_filter", "content_filter: content_filter");
    assert!(!printed.contains("error"), "{printed}");
}

#[test]
fn b02_every_row_of_a_table_is_tried() {
    let printed = report("chat", "content_filter: content_filter", "content_filter: filtered");
    assert!(printed.contains("RF142") && printed.contains("with the finish `content_filter`"), "{printed}");
    assert!(printed.contains("content_filter: filtered"), "the row is not shown: {printed}");
    let printed = report("responses", "failed: incomplete }", "failed: broken }");
    assert!(printed.contains("RF142") && printed.contains("with the finish `cancelled`"), "{printed}");
    // A word of the client's body.
    let printed = report("responses", "scale: scale", "scale: scaled");
    assert!(printed.contains("RF142") && printed.contains("with `service_tier: scale` in the request"), "{printed}");
}

#[test]
fn b02_every_branch_and_arm_is_tried() {
    let printed = report("responses", "refusal: { type: refusal, refusal:", "refusal: { type: refused, refusal:");
    assert!(printed.contains("RF142") && printed.contains("refusal"), "{printed}");
    let printed = report("chat", "then: { content: { $each: logprobs,", "then: { contents: { $each: logprobs,");
    assert!(printed.contains("RF142") && printed.contains("with log-probabilities"), "{printed}");
    let printed =
        report("responses", "then: { reason: \"{{ turn.finish | table('incomplete') }}\" }", "then: { reason: 5 }");
    assert!(printed.contains("RF142"), "{printed}");
}

#[test]
fn b02_optional_values_are_tried_absent_and_present() {
    let printed =
        report("chat", "title: \"{{ annotation.title | default('') }}\"", "title: \"{{ annotation.title }}\"");
    assert!(printed.contains("RF142") && printed.contains("with citations without a title"), "{printed}");
    let printed = report("responses", "bytes: \"{{ u.bytes | default([]) }}\"", "bytes: \"{{ u.bytes }}\"");
    assert!(!printed.contains("panicked"), "{printed}");
    let printed =
        report("chat", "cached_tokens: \"{{ usage.cached | default(0) }}\"", "cached_tokens: \"{{ usage.cached }}\"");
    assert!(printed.contains("RF142") && printed.contains("with one token count"), "{printed}");
    let printed = report(
        "responses",
        "temperature: \"{{ request.temperature | default(1) }}\"",
        "temperature: 1\n    seed: \"{{? request.seed }}\"",
    );
    assert!(printed.contains("RF142") && printed.contains("with all settings in the request"), "{printed}");
}

#[test]
fn b02_an_expression_that_fails_for_an_absent_value_is_found() {
    let sum = "then: { cached_tokens: \"{{ usage.cached + usage.cache_write }}\" }";
    let printed = report("chat", "then: { cached_tokens: \"{{ usage.cached | default(0) }}\" }", sum);
    assert!(printed.contains("RF142") && printed.contains("could not be rendered"), "{printed}");
    assert!(printed.contains("usage.cached + usage.cache_write"), "{printed}");
}

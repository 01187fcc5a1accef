//! A load after a set without findings does not check what is as it was, and finds every mistake that a full load finds.

use crate::shipped_mappings::{BREAKING_EDITS, Edit};
use crate::support::in_parallel;
use reframe::testing::diagnostics::render_all;
use reframe::testing::domain::WorkBudget;
use reframe::testing::mapping::{Before, CheckedSet, Overrides, Plan, SourceFile, load_after};
use reframe::testing::reload::embedded;
use reframe::testing::verify::verify;

/// The verified plan, or what was found. `checked`: the files of a set without findings.
fn build(files: &[SourceFile], checked: &[SourceFile]) -> Result<Plan, String> {
    build_after(files, &Before { plan: None, checked: vec![CheckedSet::of_files(checked)] })
}

fn build_after(files: &[SourceFile], before: &Before) -> Result<Plan, String> {
    let loaded = load_after(files, before, &Overrides::default(), &WorkBudget::default());
    let Some(plan) = loaded.plan else { return Err(render_all(&loaded.diagnostics, &loaded.sources, false)) };
    let found = verify(&plan).found;
    if found.is_empty() { Ok(plan) } else { Err(render_all(&found, &loaded.sources, false)) }
}

fn edited((file, from, to): &Edit) -> Vec<SourceFile> {
    let mut files = embedded::files();
    let found = files.iter_mut().find(|f| f.name == *file).unwrap();
    assert!(found.text.contains(from), "{file} does not contain `{from}`");
    found.text = found.text.replace(from, to).into();
    files
}

fn labels(plan: &Plan) -> Vec<String> {
    let label = |profile: Option<&str>| profile.map_or(String::new(), |profile| format!("@{profile}"));
    plan.dialects().map(|dialect| format!("{}{}", dialect.name, label(dialect.profile.as_deref()))).collect()
}

#[test]
fn a_set_that_was_checked_is_compiled_only_for_its_routes() {
    let files = embedded::files();
    let plan = build(&files, &files).unwrap();
    let served = ["chat", "chat@openai", "completions", "completions@openai", "responses", "responses@openai"];
    assert_eq!(labels(&plan), served);
    assert!(plan.tests.is_empty(), "no test runs again");
    let all = build(&files, &[]).unwrap();
    assert!(all.dialects().count() > 25 && !all.tests.is_empty(), "a full load compiles all: {:?}", labels(&all));
}

#[test]
fn a_set_that_names_its_schemas_for_editors_in_another_place_was_checked() {
    let mut files = embedded::files();
    let mut edited = 0;
    for file in &mut files {
        let text = file.text.replace("# yaml-language-server: $schema=../", "# yaml-language-server: $schema=");
        edited += usize::from(*text != *file.text);
        file.text = text.into();
    }
    assert!(edited > 30, "{edited} files name their schema");
    let plan = build(&files, &embedded::files()).unwrap();
    assert_eq!((plan.dialects().count(), plan.tests.len()), (6, 0), "{:?}", labels(&plan));
}

/// File, old text, new text; what is compiled besides what the routes use; and which tests run.
const CHANGES: &[(Edit, &[&str], &[&str])] = &[
    (("gateway.yaml", "every: 15s", "every: 5s"), &[], &[]),
    (("gateway.yaml", "{ id: demo, backend: demo }", "{ id: acme, backend: demo }"), &[], SENDING_TESTS),
    (
        ("backends/deepseek.yaml", "backend: deepseek", "backend: deepseek  # edited"),
        &[],
        &["backends/deepseek.test.yaml"],
    ),
    (
        ("profiles/codex-cli.yaml", "profile: codex-cli", "profile: codex-cli  # edited"),
        &["@codex-cli"],
        &["profiles/codex-cli.test.yaml"],
    ),
    (
        ("profiles/codex-cli.test.yaml", "tests:", "tests:  # edited"),
        &["@codex-cli"],
        &["profiles/codex-cli.test.yaml"],
    ),
];

/// Their tests build requests to backends, which depend on the models of the gateway.
const SENDING_TESTS: &[&str] = &[
    "backends/anthropic-messages.test.yaml",
    "backends/azure-openai.test.yaml",
    "backends/codex-app-server.test.yaml",
    "backends/codex-legacy.test.yaml",
    "backends/deepseek.test.yaml",
    "backends/gemini-generate.test.yaml",
    "backends/openai-chat.test.yaml",
    "backends/openai-responses.test.yaml",
    "dialects/chat.test.yaml",
    "dialects/completions.test.yaml",
    "dialects/responses.test.yaml",
    "scripts/demo.test.yaml",
];

#[test]
fn what_has_changed_is_compiled_and_tested_again() {
    let earlier = build(&embedded::files(), &[]).unwrap();
    let before = Before { plan: Some(&earlier), checked: vec![CheckedSet::of_plan(&earlier)] };
    for (edit, compiled, tests) in CHANGES {
        let plan = build_after(&edited(edit), &before).unwrap();
        let mut other = labels(&plan);
        other.retain(|label| label.contains('@') && !label.contains("@openai"));
        assert_eq!(other.is_empty(), compiled.is_empty(), "{}: {other:?}", edit.0);
        assert!(other.iter().all(|label| compiled.iter().any(|of| label.ends_with(of))), "{}: {other:?}", edit.0);
        let run: Vec<&str> = plan.tests.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(run, *tests, "{}", edit.0);
    }
}

#[test]
fn a_change_of_a_dialect_is_checked_with_every_profile() {
    let edit = ("dialects/completions.yaml", "dialect: completions", "dialect: completions  # edited");
    let plan = build(&edited(&edit), &embedded::files()).unwrap();
    let of = |dialect: &str| labels(&plan).iter().filter(|label| label.starts_with(dialect)).count();
    assert_eq!(of("completions"), plan.profiles.len() + 1, "{:?}", labels(&plan));
    assert!(of("responses") < plan.profiles.len(), "{:?}", labels(&plan));
}

#[test]
fn every_edit_that_breaks_a_client_is_found() {
    let checked = embedded::files();
    let missed = in_parallel(BREAKING_EDITS, |edit| {
        let is_found = build(&edited(edit), &checked).is_err();
        (!is_found).then(|| format!("{}: {} → {}", edit.0, edit.1, edit.2))
    });
    assert!(missed.is_empty(), "not found: {}", missed.join("\n"));
}

/// Every line of the mapping files can be lost in an edit. REFRAME_LOST_LINES=1 tries all of them, in an hour.
#[test]
fn a_lost_line_is_found_if_a_full_load_finds_it() {
    let every = std::env::var("REFRAME_LOST_LINES").ok().and_then(|step| step.parse().ok()).unwrap_or(173_usize);
    let checked = embedded::files();
    let mappings = checked.iter().filter(|file| file.name.ends_with(".yaml"));
    let lines: Vec<(&SourceFile, usize)> =
        mappings.flat_map(|file| (0..file.text.lines().count()).map(move |line| (file, line))).step_by(every).collect();
    let differences = in_parallel(&lines, |(file, lost)| {
        let rest: Vec<&str> =
            file.text.lines().enumerate().filter(|(at, _)| at != lost).map(|(_, line)| line).collect();
        let mut files = checked.clone();
        files.iter_mut().find(|f| f.name == file.name).unwrap().text = format!("{}\n", rest.join("\n")).into();
        let (full, partial) = (build(&files, &[]).err(), build(&files, &checked).err());
        let is_same = full.is_some() == partial.is_some();
        (!is_same).then(|| format!("{}:{}: full {full:?}, partial {partial:?}", file.name, lost + 1))
    });
    assert!(lines.len() > 20 && differences.is_empty(), "{} lines: {}", lines.len(), differences.join("\n"));
}

//! Members of a dialect's request schema that nothing reads.

use reframe::testing::diagnostics::{Code, Diagnostic};
use reframe::testing::mapping::load;
use reframe::testing::reload::embedded;

/// The findings about the embedded set after edits (file, old, new).
fn findings(edits: &[(&str, &str, &str)]) -> Vec<String> {
    let mut files = embedded::files();
    files.retain(|file| !file.name.ends_with(".test.yaml"));
    for (name, old, new) in edits {
        let file = files.iter_mut().find(|file| file.name == *name).unwrap_or_else(|| panic!("{name}"));
        assert!(file.text.contains(old), "{old} is not in {name}");
        file.text = file.text.replacen(old, new, 1).into();
    }
    let loaded = load(&files);
    assert!(loaded.plan.is_some());
    let place = |found: &Diagnostic| format!("{} at {}", found.message, loaded.sources.show(found.span));
    loaded.diagnostics.iter().filter(|found| found.code == Code::UnreadMember).map(place).collect()
}

const SCHEMA: &str = "schemas/chat/request.json";
const MODEL: &str = "\"properties\": {";

#[test]
fn the_shipped_dialects_read_all_that_they_declare() {
    assert_eq!(findings(&[]), [""; 0]);
}

#[test]
fn a_member_that_nothing_reads_is_found_with_its_place() {
    let mood = format!("{MODEL} \"mood\": {{ \"type\": \"string\" }},");
    let found = findings(&[(SCHEMA, MODEL, &mood)]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("nothing reads the request member `mood` at "), "{found:?}");
    assert!(found[0].contains("schemas/chat/request.json:"), "{found:?}");
    // It is read by an expression, by a selector, or ignored.
    for (file, old, new) in [
        ("backends/openai-chat.yaml", "user: \"{{? request.user }}\"", "user: \"{{? request.extra.mood }}\""),
        ("dialects/chat.yaml", "  user: $.user\n", "  user: { from: [ $.user, $.mood ] }\n"),
        ("dialects/chat.yaml", "    - $.messages[*].annotations\n", "    - $.messages[*].annotations\n    - $.mood\n"),
    ] {
        assert_eq!(findings(&[(SCHEMA, MODEL, &mood), (file, old, new)]), [""; 0], "{new}");
    }
}

#[test]
fn members_of_elements_are_found_too() {
    let annotations = "    - $.messages[*].annotations\n";
    let found = findings(&[("dialects/chat.yaml", annotations, "")]);
    assert!(found.iter().all(|text| text.contains("`messages[].annotations`")), "{found:?}");
    let parameters = "            parameters: \"@.parameters\"\n";
    let found = findings(&[("dialects/chat.yaml", parameters, "")]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("nothing reads the request member `functions[].parameters` at "), "{found:?}");
}

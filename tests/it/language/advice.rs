//! The advice about output that its schema does not allow is followed literally, for every fixture, until the set loads.

use reframe::testing::diagnostics::render_all;
use reframe::testing::mapping::load;
use reframe::testing::reload::{Base, Layers, read_set};
use reframe::testing::verify::verify;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics")
}

/// What `check` reports about the fixture with this layer on top.
fn report(case: &Path, layer: &Path) -> String {
    let add = vec![case.to_owned(), layer.to_owned()];
    let files = read_set(&Layers { base: Base::Folder(fixtures().join("mappings")), add }).unwrap();
    let loaded = load(&files);
    let mut diagnostics = loaded.diagnostics;
    diagnostics.extend(loaded.plan.iter().flat_map(|plan| verify(plan).found));
    render_all(&diagnostics, &loaded.sources, false)
}

/// The text between two words.
fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    text.split_once(before)?.1.split_once(after).map(|(found, _)| found)
}

/// Applies the edit of a help line to the schema in the layer. Returns false if the help has no edit.
fn follow(help: &str, case: &Path, layer: &Path) -> bool {
    let shown = help.rsplit(" in ").next().unwrap();
    let Some(name) = between(shown, "schemas/", ".json:") else { return false };
    let name = format!("schemas/{name}.json");
    let line = shown.split(".json:").nth(1).and_then(|at| at.split(':').next()).unwrap().parse::<usize>().unwrap();
    assert!(line > 0, "{help}");
    let current = [layer, case, &fixtures().join("mappings")].map(|folder| folder.join(&name));
    let current = current.iter().find(|path| path.exists()).unwrap_or_else(|| panic!("no file {name}: {help}"));
    let mut schema: Value = serde_json::from_str(&fs::read_to_string(current).unwrap()).unwrap();
    let pointer = |text: &str| if text == "the root" { String::new() } else { text.trim_matches('`').to_owned() };
    if let Some((line, place)) = help.split_once("add `").and_then(|(_, rest)| rest.split_once("` to ")) {
        let target = schema.pointer_mut(&pointer(place.split(" in ").next().unwrap())).unwrap();
        match target {
            Value::Object(members) => {
                let line: Value = serde_json::from_str(&format!("{{ {line} }}")).unwrap();
                members.extend(line.as_object().unwrap().clone());
            }
            Value::Array(values) => values.push(serde_json::from_str(line).unwrap()),
            other => panic!("{help}: {other}"),
        }
    } else if let Some((name, place)) = help.split_once("remove `").and_then(|(_, rest)| rest.split_once("` from ")) {
        let name: Value = serde_json::from_str(name).unwrap();
        let target = schema.pointer_mut(&pointer(place.split(" in ").next().unwrap())).unwrap();
        match target {
            Value::Array(values) => values.retain(|known| *known != name),
            Value::Object(members) => drop(members.remove(name.as_str().unwrap())),
            other => panic!("{help}: {other}"),
        }
    } else if let (Some(place), Some(value)) = (between(help, "set ", " in "), between(help, " to `", "`")) {
        *schema.pointer_mut(&pointer(place)).unwrap() = serde_json::from_str(value).unwrap();
    } else if let (Some(place), Some(line)) = (between(help, "replace ", " in "), between(help, " by `", "`")) {
        let place = pointer(place);
        let (object, keyword) = place.rsplit_once('/').unwrap();
        let members = schema.pointer_mut(object).unwrap().as_object_mut().unwrap();
        members.remove(keyword);
        members.extend(serde_json::from_str::<Value>(&format!("{{ {line} }}")).unwrap().as_object().unwrap().clone());
    } else {
        return false;
    }
    fs::create_dir_all(layer.join(&name).parent().unwrap()).unwrap();
    fs::write(layer.join(&name), schema.to_string()).unwrap();
    true
}

fn is_about_schema(report: &str) -> bool {
    report.contains("[RF141]") || report.contains("[RF142]")
}

#[test]
fn b04_the_advice_about_a_schema_works_when_it_is_followed() {
    let (mut followed, mut wrong) = (0, Vec::new());
    for entry in fs::read_dir(fixtures()).unwrap() {
        let case = entry.unwrap().path();
        let expected = fs::read_to_string(case.join("expected.txt")).unwrap_or_default();
        // A set with other arguments, and an order, which has no schema.
        if !is_about_schema(&expected)
            || case.join("arguments.txt").exists()
            || case.ends_with("an-order-that-a-transcript-violates")
        {
            continue;
        }
        let layer = tempfile::tempdir().unwrap();
        let mut last = report(&case, layer.path());
        for _ in 0..8 {
            if !is_about_schema(&last) {
                break;
            }
            let help = last.lines().find_map(|line| line.trim_start().strip_prefix("= help: ")).unwrap_or_default();
            let help = help.split("; the same in").next().unwrap();
            if !follow(help, &case, layer.path()) {
                break;
            }
            followed += 1;
            last = report(&case, layer.path());
        }
        if is_about_schema(&last) {
            wrong.push(format!("{}\n{last}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{followed} edits");
    assert!(followed >= 12, "only {followed} edits");
}

#[test]
fn b04_the_line_is_that_of_the_document_behind_a_reference() {
    let layer = tempfile::tempdir().unwrap();
    fs::create_dir_all(layer.path().join("schemas/chat")).unwrap();
    let chunk = r##"{ "type": "object", "properties": { "id": { "type": "string" }, "text": { "type": "string" }, "finish": { "$ref": "words.json#/$defs/finish" } }, "required": ["id"], "additionalProperties": false }"##;
    let words = "{\n  \"$defs\": {\n    \"finish\": { \"enum\": [\"end\"] }\n  }\n}";
    fs::write(layer.path().join("schemas/chat/chunk.json"), chunk).unwrap();
    fs::write(layer.path().join("schemas/chat/words.json"), words).unwrap();
    let empty = tempfile::tempdir().unwrap();
    let printed = report(empty.path(), layer.path());
    let advice = "= help: to allow it, add `\"stop\"` to `/$defs/finish/enum` in ";
    let help = printed.lines().find_map(|line| line.trim_start().strip_prefix(advice));
    assert!(help.is_some_and(|place| place.contains("schemas/chat/words.json:3:17")), "{printed}");
}

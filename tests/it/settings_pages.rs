//! docs/policies.md and docs/environment.md: generated from the policies, the dialects and the profiles. UPDATE_GOLDEN=1
//! writes them.

use crate::parity::{assert_current, parsed, text};
use reframe::testing::domain::policy::{ALIASES, BUILT_IN};
use reframe::testing::mapping::source::yaml::Node;
use std::fs;
use std::path::Path;

const DIALECTS: [&str; 3] = ["chat", "responses", "completions"];

/// The profiles of the embedded set, by name.
fn profiles() -> Vec<Node> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/profiles");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| !name.ends_with(".test.yaml")).collect();
    names.sort();
    names.iter().map(|name| parsed(&format!("mappings/profiles/{name}"))).collect()
}

fn shown(value: &str) -> String {
    if value.is_empty() { "`\"\"`".to_owned() } else { format!("`{value}`") }
}

/// The profiles that set a policy, with the value.
fn set_by(policy: &str, profiles: &[Node]) -> String {
    let value = |node: &Node| match node.as_map() {
        Some(entries) => {
            entries.iter().map(|e| format!("{} {}", e.key, plain(&e.value))).collect::<Vec<_>>().join(", ")
        }
        None => plain(node),
    };
    let of = |profile: &Node| {
        let entry = profile.get("policies")?.as_map()?.iter().find(|e| e.key == policy)?.value.clone();
        Some(format!("{}: {}", text(profile, "profile"), value(&entry)))
    };
    profiles.iter().filter_map(of).collect::<Vec<_>>().join("; ")
}

fn plain(node: &Node) -> String {
    match (node.as_text(), node.as_list()) {
        (Some(text), _) => shown(text),
        (None, Some(items)) => items.iter().map(plain).collect::<Vec<_>>().join(" "),
        (None, None) => "…".to_owned(),
    }
}

#[test]
fn the_policies_page_is_current() {
    let profiles = profiles();
    let mut page = "# Policies by name\n\nEvery policy with its values and the profiles that set it. This page is generated; \
                    what a value does is in\n[mappings/policies.md](mappings/policies.md). The first value is OpenAI's \
                    behaviour, and all others deviate from it.\n\n| policy | values | set by profiles |\n|---|---|---|\n"
        .to_owned();
    let mut rows = 0;
    for spec in BUILT_IN {
        let alias = |value: &str| ALIASES.iter().find(|(p, _, v)| *p == spec.name && *v == value).map(|(_, a, _)| *a);
        let value = |value: &&str| match alias(value) {
            Some(alias) => format!("{} ({alias})", shown(value)),
            None => shown(value),
        };
        let values = spec.values.iter().map(value).collect::<Vec<_>>().join(", ");
        let values = if spec.list { format!("a list of {values}") } else { values };
        page += &format!("| `{}` | {values} | {} |\n", spec.name, set_by(spec.name, &profiles));
        rows += 1;
    }
    page += "\n## Policies of one dialect\n\n| dialect | policy | values | set by profiles |\n|---|---|---|---|\n";
    for name in DIALECTS {
        let dialect = parsed(&format!("mappings/dialects/{name}.yaml"));
        for entry in dialect.get("custom_policies").and_then(Node::as_map).unwrap_or_default() {
            let values = entry.value.as_list().unwrap_or_default().iter().map(plain).collect::<Vec<_>>().join(", ");
            page += &format!("| {name} | `{}` | {values} | {} |\n", entry.key, set_by(&entry.key, &profiles));
            rows += 1;
        }
    }
    page += "\nUnder `usage: as_reported` (A) a client that requests usage gets none if the backend reports none; `zeros` (B) \
             is a\ndeviation from OpenAI.\n\n## Deliberately absent values\n\n";
    for absent in parsed("tests/parity.yaml").get("absent_values").and_then(Node::as_list).unwrap() {
        page += &format!("- `{}`: {}\n", text(absent, "value"), text(absent, "because"));
    }
    assert!(rows > 25, "only {rows} policies");
    assert_current("docs/policies.md", &page);
}

#[test]
fn the_environment_page_is_current() {
    let mut page = "# Environment variables\n\nThe variables that the shipped profiles read, at startup. This page is \
                    generated from `environment:` of the\nprofiles; a profile that extends another one reads its variables \
                    too. A variable that begins with a prefix of a\nprofile and that no profile names causes a warning. \
                    Settings of the gateway are set only if the profile is chosen by\n`--profile`. `reframe explain \
                    --policies` shows what a variable has set.\n"
        .to_owned();
    let mut rows = 0;
    for profile in profiles() {
        let Some(variables) = profile.get("environment").and_then(Node::as_map) else { continue };
        page += &format!("\n## {}\n\n| variable | sets | values |\n|---|---|---|\n", text(&profile, "profile"));
        for variable in variables {
            let value = &variable.value;
            let list =
                |node: &Node| node.as_list_or_one().iter().filter_map(Node::as_text).map(shown).collect::<Vec<_>>();
            let sets = match (value.as_text(), value.get("policy"), value.get("gateway"), value.get("ignored")) {
                (Some(policy), ..) => format!("policy `{policy}`"),
                (_, Some(policy), ..) => format!("policy {}", plain(policy)),
                (_, _, Some(paths), _) => format!("gateway {}", list(paths).join(", ")),
                (_, _, _, Some(reason)) => format!("nothing: {}", reason.as_text().unwrap_or_default()),
                (None, None, None, None) => String::new(),
            };
            let mut values = Vec::new();
            for word in value.get("words").and_then(Node::as_map).unwrap_or_default() {
                values.push(format!("{} → {}", shown(&word.key), plain(&word.value)));
            }
            if value.get("if_true").is_some() {
                values.push("`1`, `true`, `yes`, `on`, or anything else".to_owned());
            }
            let unit = |unit| if unit == "/" { "a folder".to_owned() } else { format!("a number of {unit}") };
            values.extend(value.get("unit").and_then(Node::as_text).map(unit));
            values.extend(value.get("list").map(|_| "a list with commas".to_owned()));
            page += &format!("| `{}` | {sets} | {} |\n", variable.key, values.join("; "));
            rows += 1;
        }
    }
    assert!(rows > 10, "only {rows} variables");
    assert_current("docs/environment.md", &page);
}

//! The commands that write a set and show what it consists of, and advice that works when it is followed.

use crate::support::{Exit, Launch, TestDir, serve};
use reframe::testing::diagnostics::{Code, Phase, render_all};
use reframe::testing::domain::MomentKind;
use reframe::testing::domain::emit::EVENTS;
use reframe::testing::domain::policy::BUILT_IN;
use reframe::testing::mapping::language::field::Conversion;
use reframe::testing::mapping::{SourceFile, load};
use reframe::testing::reload::embedded;
use serde_json::Value;
use std::fs;

fn reframe<const N: usize>(arguments: [&str; N]) -> Exit {
    Launch::new().args(arguments).run()
}

// ---- explain --policies, list

#[test]
fn b06_explain_shows_the_other_values_of_every_policy() {
    let explained = reframe(["explain", "--policies", "--route", "/v1/chat/completions"]).stdout;
    let header = explained.lines().find(|line| line.starts_with("policy ")).unwrap();
    assert!(header.contains("other values"), "{header}");
    // A long list takes several lines: the column is compared as one text.
    let column = |line: &str, name: &str, next: &str| {
        let (from, to) = (header.find(name).unwrap(), header.find(next).unwrap());
        line.chars().skip(from).take(to - from).collect::<String>().trim().to_owned()
    };
    let mut others: Vec<(String, String)> = Vec::new();
    for line in explained.lines().skip_while(|line| *line != header).skip(1).take_while(|line| !line.is_empty()) {
        let (name, cell) = (column(line, "policy", "value"), column(line, "other values", "set by"));
        match others.last_mut().filter(|_| name.is_empty()) {
            Some((_, values)) => *values += &format!(" {cell}"),
            None => others.push((name, cell)),
        }
    }
    let of = |name: &str| others.iter().find(|(policy, _)| policy == name).map(|(_, values)| values.trim().to_owned());
    assert_eq!(of("usage").as_deref(), Some("zeros (B), estimate"));
    assert_eq!(of("empty_arguments").as_deref(), Some("\"\""));
    assert_eq!(of("message_content").as_deref(), Some("last"), "a custom policy");
    let compared = BUILT_IN.iter().filter(|policy| !policy.list).filter(|policy| {
        let shown = of(policy.name).unwrap_or_else(|| panic!("{} is not listed", policy.name));
        assert_eq!(shown.split(", ").count(), policy.values.len() - 1, "{}: {shown}", policy.name);
        true
    });
    assert!(compared.count() > 15);
}

#[test]
fn list_shows_every_word_of_the_language() {
    let text = |subject: &str| {
        let listed = reframe(["list", subject]);
        assert_eq!(listed.code, Some(0), "{}{}", listed.stdout, listed.stderr);
        listed.stdout
    };
    let assert_lists = |subject: &str, names: &mut dyn Iterator<Item = &str>| {
        let text = text(subject);
        let rows: Vec<&str> = text.lines().filter_map(|line| line.split([' ', ':']).next()).collect();
        let mut count = 0;
        for name in names {
            assert!(rows.contains(&name), "`list {subject}` lacks {name}:\n{text}");
            count += 1;
        }
        assert!(count > 0, "{subject}");
        // A row without a meaning ends after its name.
        assert!(
            !text.lines().any(|line| !line.is_empty() && rows.contains(&line)),
            "`list {subject}` has a row without a meaning:\n{text}"
        );
    };
    assert_lists("variables", &mut ["turn", "item", "seq", "fault", "request", "models"].into_iter());
    assert_lists("events", &mut EVENTS.names());
    assert_lists("moments", &mut MomentKind::NAMES.iter().copied());
    assert_lists("conversions", &mut Conversion::NAMES.iter().copied());
    assert_lists("policies", &mut BUILT_IN.iter().map(|policy| policy.name));
    let lints = Code::ALL.iter().filter(|code| code.phase() == Phase::Lint).map(|code| code.as_str());
    assert_lists("lints", &mut lints.into_iter());
    assert_lists("filters", &mut ["default", "table", "json", "none"].into_iter());
    assert_lists("backends", &mut ["openai-chat", "deepseek", "replay"].into_iter());
    assert_lists("dialects", &mut ["chat", "responses", "completions"].into_iter());
    assert_lists("profiles", &mut ["openai", "codex-proxy"].into_iter());
    for subject in reframe(["list"]).stdout.lines().filter_map(|line| line.split(' ').next()) {
        text(subject);
    }
}

#[test]
fn list_policies_shows_who_reads_a_policy_and_who_changes_it() {
    let dir = TestDir::empty();
    dir.write("layer/profiles/ours.yaml", "profile: ours\npolicies: { usage: zeros }\n");
    let listed = Launch::new().args(["list", "policies"]).add(dir).run().stdout;
    let entry = |name: &str| {
        let begin = listed.find(&format!("\n{name}: ")).unwrap_or_else(|| panic!("no {name}:\n{listed}"));
        listed[begin + 1..].split("\n\n").next().unwrap().to_owned()
    };
    let usage = entry("usage");
    assert!(usage.starts_with("usage: as_reported (A) | zeros (B) | estimate\n"), "{usage}");
    assert!(usage.contains("\n    affects: the variables usage, turn.usage\n"), "{usage}");
    assert!(usage.contains("zeros in chat@ours, "), "{usage}");
    assert!(entry("usage_stream").contains("\n    read by: chat"), "{}", entry("usage_stream"));
    assert!(entry("role_content").contains("A custom policy of chat."), "{}", entry("role_content"));
}

// ---- init

/// Every file of a folder with its text, by path.
fn files(folder: &std::path::Path, inside: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{inside}{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            found.extend(files(&entry.path(), &format!("{name}/")));
        } else {
            found.push((name, fs::read_to_string(entry.path()).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn init_writes_a_set_that_is_the_embedded_one() {
    let dir = TestDir::empty();
    let set = dir.path("own");
    let init = || Launch::new().arg("init").arg(&set).run();
    assert_eq!(init().code, Some(0));
    let written = files(&set, "");
    let mut compared = 0;
    for file in embedded::files() {
        let own = written.iter().find(|(name, _)| *name == file.name).unwrap_or_else(|| panic!("no {}", file.name));
        let below_the_first_line = |text: &str| text.split_once('\n').unwrap().1.to_owned();
        assert_eq!(below_the_first_line(&own.1), below_the_first_line(&file.text), "{}", file.name);
        // The schema that an editor reads is where the first line points.
        if let Some(path) = own.1.strip_prefix("# yaml-language-server: $schema=").and_then(|rest| rest.lines().next())
        {
            let folder = set.join(&file.name).parent().unwrap().to_owned();
            assert!(folder.join(path).is_file(), "{}: {path}", file.name);
            compared += 1;
        }
    }
    assert!(compared > 20, "only {compared} files name a schema");
    let check = Launch::new().arg("check").arg("--mappings").arg(&set).run();
    assert_eq!(check.code, Some(0), "{}", check.stdout);
    let again = init();
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("would be overwritten"), "{}", again.stderr);
    assert_eq!(Launch::new().args(["init", "--force"]).arg(&set).run().code, Some(0));
}

#[test]
fn init_can_write_one_mapping_to_edit_in_a_layer() {
    let dir = TestDir::empty();
    let layer = dir.path("layer");
    let only = |names: &[&str]| {
        let mut launch = Launch::new().arg("init").arg(&layer);
        for name in names {
            launch = launch.arg("--only").arg(name);
        }
        launch.run()
    };
    assert_eq!(only(&["dialects/chat"]).code, Some(0));
    let names: Vec<String> = files(&layer, "").into_iter().map(|(name, _)| name).collect();
    let expected =
        ["dialects/chat.test.yaml", "dialects/chat.yaml", "schemas/mapping/dialect.json", "schemas/mapping/test.json"];
    assert_eq!(names, expected);
    dir.edit("layer/dialects/chat.yaml", "\nschemas: chat\n", "\nschemas: chat # edited\n");
    let check = Launch::new().args(["check", "--format", "json"]).add(dir).run();
    assert_eq!(check.code, Some(0), "{}", check.stdout);
    let check: Value = serde_json::from_str(&check.stdout).unwrap();
    assert_eq!(check["overrides"].as_array().unwrap().len(), 2, "{}", check["overrides"]);

    let dir = TestDir::empty();
    let unknown = Launch::new().arg("init").arg(dir.path("x")).args(["--only", "dialects/chatt"]).run();
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("did you mean `dialects/chat`?"), "{}", unknown.stderr);
}

#[test]
fn init_with_a_gateway_uses_the_embedded_schemas() {
    let dir = TestDir::empty();
    let set = dir.path("own");
    for name in ["gateway.yaml", "shared.yaml", "backends", "dialects", "profiles", "scripts", "transcripts"] {
        let init = Launch::new().args(["init", "--force", "--only", name]).arg(&set).run();
        assert_eq!(init.code, Some(0), "{}", init.stderr);
    }
    let check = Launch::new().arg("check").arg("--mappings").arg(&set).run();
    assert_eq!(check.code, Some(0), "{}", check.stdout);
}

// ---- small mistakes

/// The findings of the embedded set with these files, the schemas of the docs left out.
/// What is found in the embedded set with these files, apart from the note that one of its profiles states another law.
fn findings(files: &[(&str, &str)]) -> String {
    let mut set = embedded::files();
    for (name, text) in files {
        set.retain(|known| known.name != *name);
        let name = (*name).to_owned();
        set.push(SourceFile { shown: name.clone(), name, layer: 0, text: (*text).into() });
    }
    set.sort_by(|a, b| a.name.cmp(&b.name));
    let loaded = load(&set);
    let others: Vec<_> = loaded.diagnostics.into_iter().filter(|d| d.code != Code::ChangedIndexLaw).collect();
    render_all(&others, &loaded.sources, false)
}

fn embedded_text(name: &str) -> String {
    embedded::files().into_iter().find(|file| file.name == name).unwrap().text.to_string()
}

#[test]
fn c19_the_banner_names_v1_only_if_a_route_is_below_it() {
    let banner = |gateway: &str| {
        let dir = TestDir::empty();
        dir.write("layer/gateway.yaml", gateway);
        let mut server = serve().add(dir).start();
        server.terminate();
        server.wait();
        server.banner().lines().find(|line| line.starts_with("listening on ")).unwrap().to_owned()
    };
    assert!(banner("{ limits: { streams: 9 } }\n").ends_with("/v1"));
    let elsewhere = "routes: { $replace: [ { endpoint: POST /talk, dialect: chat } ] }\nexample: $remove\n";
    let line = banner(elsewhere);
    assert!(line.rsplit(':').next().unwrap().parse::<u16>().is_ok(), "{line}");
}

/// A dialect of one frame.
const PIGEON: &str = "dialect: pigeon\nrequest: { model: $.model }\nstream:\n  framing: { data: json }\n  frames:\n    \
    text.delta: { coo: { data: { coo: \"{{ text }}\" } } }\n    turn.fail: { ow: { data: { ow: \"{{ fault.message }}\" } } }\n  \
    order: { item: text.delta* }\nbody: { coo: \"{{ turn.id }}\" }\nerrors: { ow: \"{{ fault.message }}\" }\n";

#[test]
fn c19_a_dialect_without_a_route_or_without_schemas_is_a_finding() {
    let found = findings(&[("dialects/pigeon.yaml", PIGEON)]);
    assert!(found.contains("note[RF208]: no route serves the dialect `pigeon`"), "{found}");
    let route = "\n  - { endpoint: POST /pigeon, dialect: pigeon }\napi_keys:";
    let gateway = embedded_text("gateway.yaml").replace("\napi_keys:", route);
    let found = findings(&[("dialects/pigeon.yaml", PIGEON), ("gateway.yaml", &gateway)]);
    assert!(found.contains("warning[RF209]: the dialect `pigeon` has no schemas"), "{found}");
    assert_eq!(found.matches("warning[").count(), 1, "{found}");
    let gateway = gateway.replace("dialect: pigeon }", "dialect: pigeon, validation: off }");
    assert_eq!(findings(&[("dialects/pigeon.yaml", PIGEON), ("gateway.yaml", &gateway)]), "");
}

#[test]
fn c19_a_reference_to_a_closed_schema_may_have_properties_next_to_it() {
    let schema = |kept: &str| {
        format!(
            "{{ \"$ref\": \"#/$defs/error\", \"properties\": {{ \"error\": true }}, \"$defs\": {{ \"error\": \
             {{ \"type\": \"object\", \"properties\": {{ \"error\": true }}{kept} }} }} }}"
        )
    };
    let found = |kept: &str| findings(&[("schemas/chat/error.json", &schema(kept))]);
    assert_eq!(found(", \"additionalProperties\": false"), "");
    // The schema that the reference leads to is still looked at.
    let open = found("");
    assert!(open.matches("RF131").count() == 1 && open.contains("#/$defs/error"), "{open}");
}

#[test]
fn c19_unused_templates_of_a_lower_layer_are_no_findings() {
    // Without these, nothing uses the fragment `model` of the shared.yaml below.
    let layer = "static_routes: { $replace: [] }\n";
    let mut set = embedded::files();
    set.push(SourceFile { name: "gateway.yaml".into(), shown: "gateway.yaml".into(), layer: 1, text: layer.into() });
    let loaded = load(&set);
    assert_eq!(render_all(&loaded.diagnostics, &loaded.sources, false), "");
    // In the same layer, they are.
    let shared = embedded_text("shared.yaml").replace("\n  model: {", "\n  unused: { id: 1 }\n  model: {");
    let found = findings(&[("shared.yaml", &shared)]);
    assert!(found.contains("warning[RF204]: the fragment `unused` is never used"), "{found}");
}

/// The compiled chat dialect with a changed text, or the findings.
fn chat_with(old: &str, new: &str) -> String {
    let text = embedded_text("dialects/chat.yaml");
    assert_eq!(text.matches(old).count(), 1, "{old}");
    findings(&[("dialects/chat.yaml", &text.replace(old, new))])
}

#[test]
fn c20_no_advice_leads_to_the_next_error() {
    let list = "    refusal: { $each: turn.choices[0].calls, as: c, do: 1 }\n";
    let found = chat_with("    refusal: \"{{ choice.refusal }}\"\n", list);
    // Either the advice is to quote the text, and that works, or it is another one.
    let quoted = list.replace("turn.choices[0].calls", "\"turn.choices[0].calls\"");
    let follow = chat_with("    refusal: \"{{ choice.refusal }}\"\n", &quoted);
    assert!(!found.contains("write \"") || !follow.contains("RF109"), "{found}\n{follow}");
    assert!(found.contains("error[RF002]"), "{found}");
}

#[test]
fn c20_keys_next_to_a_fragment_are_one_finding() {
    let found = chat_with(
        "    refusal: \"{{ choice.refusal }}\"\n",
        "    refusal: { $use: call, a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7 }\n",
    );
    assert_eq!(found.matches("error[").count(), 1, "{found}");
    assert!(found.contains("a fragment is not merged with other keys"), "{found}");
    let found =
        chat_with("    refusal: \"{{ choice.refusal }}\"\n", "    refusal: { $use: call, wiht: { c: turn.id } }\n");
    assert!(found.contains("did you mean `with`?"), "{found}");
}

#[test]
fn c20_a_field_is_not_suggested_because_its_variable_has_a_long_name() {
    let found = chat_with("    refusal: \"{{ choice.refusal }}\"\n", "    refusal: \"{{ choice.amount }}\"\n");
    assert!(found.contains("error[RF104]") && !found.contains("did you mean"), "{found}");
    let found = chat_with("    refusal: \"{{ choice.refusal }}\"\n", "    refusal: \"{{ choice.refusl }}\"\n");
    assert!(found.contains("did you mean `choice.refusal`?"), "{found}");
    let found = chat_with("    refusal: \"{{ choice.refusal }}\"\n", "    refusal: \"{{ chioce.refusal }}\"\n");
    assert!(found.contains("did you mean `choice`?") || found.contains("did you mean `choice.refusal`?"), "{found}");
}

#[test]
fn c20_merge_keys_are_an_error() {
    let found = findings(&[("shared.yaml", "tables: &t { a: { x: 1 } }\nfragments: { <<: *t }\n")]);
    assert!(found.contains("error[RF002]: `<<` merges maps silently, and is not supported"), "{found}");
    assert!(found.contains("--> shared.yaml:2:14"), "{found}");
}

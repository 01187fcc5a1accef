//! Damaged sets for the law of the loader: copies of a set in which values are replaced by deep, wide, long or
//! expensive ones.

use proptest::prelude::*;
use reframe::testing::mapping::SourceFile;
use serde_json::{Value, json};

/// What to put in place of which value of which file, by numbers that are taken modulo what there is.
#[derive(Clone, Debug)]
pub struct Damage {
    file: usize,
    value: usize,
    by: Hostile,
}

/// A kind of hostile value, and its size.
#[derive(Clone, Copy, Debug)]
pub struct Hostile {
    kind: HostileKind,
    size: usize,
}

#[derive(Clone, Copy, Debug)]
enum HostileKind {
    DeepList,
    DeepMap,
    WideList,
    WideMap,
    LongText,
    Operators,
    Brackets,
    Filters,
    Path,
    Order,
    ExpensiveOrder,
    Steps,
    Descendants,
    NestedFilters,
    Pattern,
    Fragment,
    Loops,
    Switches,
    Doubled,
    SelfReference,
    Number,
}

const KINDS: &[HostileKind] = &[
    HostileKind::DeepList,
    HostileKind::DeepMap,
    HostileKind::WideList,
    HostileKind::WideMap,
    HostileKind::LongText,
    HostileKind::Operators,
    HostileKind::Brackets,
    HostileKind::Filters,
    HostileKind::Path,
    HostileKind::Order,
    HostileKind::ExpensiveOrder,
    HostileKind::Steps,
    HostileKind::Descendants,
    HostileKind::NestedFilters,
    HostileKind::Pattern,
    HostileKind::Fragment,
    HostileKind::Loops,
    HostileKind::Switches,
    HostileKind::Doubled,
    HostileKind::SelfReference,
    HostileKind::Number,
];

/// One to three damages. Small sizes are as likely as large ones: a value that passes one check reaches the next.
pub fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let size = prop_oneof![1_usize..8, 8_usize..60, 60_usize..400, 400_usize..20_000];
    let hostile = (prop::sample::select(KINDS), size).prop_map(|(kind, size)| Hostile { kind, size });
    let damage = (any::<u16>(), any::<u16>(), hostile);
    let damage = damage.prop_map(|(file, value, by)| Damage { file: file.into(), value: value.into(), by });
    prop::collection::vec(damage, 1..4)
}

/// The set with the damages.
pub fn damaged(set: &[SourceFile], damages: &[Damage]) -> Vec<SourceFile> {
    let mut files = set.to_vec();
    for damage in damages {
        let at = damage.file % files.len();
        let file = &mut files[at];
        let text = match file.name.rsplit('.').next() {
            Some("json") => in_json(&file.text, damage),
            Some("jsonl") => in_lines(&file.text, damage),
            _ => in_yaml(&file.text, damage),
        };
        file.text = text.into();
    }
    files
}

/// Replaces the value of a key, with everything that is indented below it.
fn in_yaml(text: &str, damage: &Damage) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let keys: Vec<usize> = (0..lines.len()).filter(|at| key_of(lines[*at]).is_some()).collect();
    let Some(at) = keys.get(damage.value % keys.len().max(1)).copied() else { return damage.by.yaml() };
    let Some(key) = key_of(lines[at]) else { return damage.by.yaml() };
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = indent(lines[at]);
    let below = lines[at + 1..].iter().take_while(|line| line.trim().is_empty() || indent(line) > own).count();
    let mut damaged: Vec<String> = lines[..at].iter().map(|line| (*line).to_owned()).collect();
    damaged.push(format!("{key} {}", damage.by.yaml()));
    damaged.extend(lines[at + 1 + below..].iter().map(|line| (*line).to_owned()));
    damaged.join("\n") + "\n"
}

/// `  - each:` of `  - each: $.choices[*]`.
fn key_of(line: &str) -> Option<&str> {
    let end = line.find(": ").or_else(|| line.ends_with(':').then(|| line.len() - 1))?;
    let key = line[..end].trim_start().trim_start_matches("- ");
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_.$".contains(c));
    is_key.then(|| &line[..=end])
}

fn in_json(text: &str, damage: &Damage) -> String {
    let Ok(mut document) = serde_json::from_str::<Value>(text) else { return damage.by.json().to_string() };
    let mut count = 0;
    visit(&mut document, &mut |_| count += 1);
    let (mut at, wanted) = (0, damage.value % count);
    visit(&mut document, &mut |value| {
        if at == wanted {
            *value = damage.by.json();
        }
        at += 1;
    });
    if let (HostileKind::Doubled, Some(members)) = (damage.by.kind, document.as_object_mut()) {
        members.insert("$defs".to_owned(), damage.by.definitions());
    }
    document.to_string()
}

fn visit(value: &mut Value, on: &mut dyn FnMut(&mut Value)) {
    on(value);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, on)),
        Value::Object(members) => members.values_mut().for_each(|member| visit(member, on)),
        _ => {}
    }
}

fn in_lines(text: &str, damage: &Damage) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = damage.value % lines.len().max(1);
    if let Some(line) = lines.get_mut(at) {
        *line = json!({ "raw": damage.by.json() }).to_string();
    }
    lines.join("\n") + "\n"
}

impl Hostile {
    /// The value in YAML, on one line.
    fn yaml(self) -> String {
        let Hostile { kind, size } = self;
        let repeat = |unit: &str| unit.repeat(size);
        let short = |unit: &str| unit.repeat(size.min(64));
        match kind {
            HostileKind::DeepList => format!("{}1{}", repeat("["), repeat("]")),
            HostileKind::DeepMap => format!("{}1{}", repeat("{ a: "), repeat(" }")),
            HostileKind::WideList => format!("[{}]", repeat("a, ")),
            HostileKind::WideMap => {
                let entries: Vec<String> = (0..size).map(|n| format!("key{n}: {n}")).collect();
                format!("{{ {} }}", entries.join(", "))
            }
            HostileKind::LongText => format!("\"{}\"", repeat("long ")),
            HostileKind::Operators => format!("\"{{{{ {}turn.id }}}}\"", repeat("not ")),
            HostileKind::Brackets => format!("\"{{{{ {}turn.id{} }}}}\"", repeat("("), repeat(")")),
            HostileKind::Filters => format!("\"{{{{ turn.id{} }}}}\"", repeat(" | upper")),
            HostileKind::Path => format!("\"{{{{ turn{} }}}}\"", repeat(".id")),
            HostileKind::Order => format!("\"{}text.delta{}\"", repeat("("), repeat(")")),
            HostileKind::ExpensiveOrder => {
                let any = "(text.delta | tool.args)";
                format!("\"{any}* (text.delta {})?\"", short(&format!("{any} ")))
            }
            HostileKind::Steps => format!("\"${}\"", repeat(".a")),
            HostileKind::Descendants => format!("\"${}\"", short("..a")),
            HostileKind::NestedFilters => format!("\"$.a{}{}\"", repeat("[?@.b"), repeat("]")),
            HostileKind::Pattern => format!("\"$.a[?match(@.b, '(a{{1,{size}}}){{1,{size}}}')]\""),
            HostileKind::Fragment => format!("[{}]", repeat("{ $use: choice }, ")),
            HostileKind::Loops => {
                let open = "{ $each: turn.choices, as: choice, do: ";
                format!("{}1{}", short(open), short(" }"))
            }
            HostileKind::Switches => {
                format!("{}1{}", short("{ $if: turn.id, then: 1, else: "), short(" }"))
            }
            HostileKind::Doubled => format!("{}a{}", short("[ &a "), short(", *a ]")),
            HostileKind::SelfReference => "&self [ *self ]".to_owned(),
            HostileKind::Number => format!("1{}", repeat("0")),
        }
    }

    /// The value in JSON: for schemas and raw events.
    fn json(self) -> Value {
        let Hostile { kind, size } = self;
        let nested = |wrap: fn(Value) -> Value| (0..size.min(120)).fold(json!({ "type": "string" }), |v, _| wrap(v));
        match kind {
            HostileKind::DeepList => nested(|inner| json!([inner])),
            HostileKind::DeepMap | HostileKind::Loops => nested(|inner| json!({ "properties": { "a": inner } })),
            HostileKind::WideList | HostileKind::Fragment => {
                json!({ "anyOf": vec![json!({ "minimum": 1 }); size] })
            }
            HostileKind::WideMap => {
                let members = (0..size).map(|n| (format!("key{n}"), json!({ "type": "string" })));
                json!({ "properties": members.collect::<serde_json::Map<_, _>>() })
            }
            HostileKind::LongText | HostileKind::Number => json!("long ".repeat(size)),
            HostileKind::Pattern | HostileKind::Steps => json!({ "pattern": format!("(a{{1,{size}}}){{1,{size}}}") }),
            HostileKind::Brackets | HostileKind::Order => json!({ "pattern": "(".repeat(size) + &")".repeat(size) }),
            HostileKind::Operators | HostileKind::Filters => nested(|inner| json!({ "not": inner })),
            HostileKind::Switches => nested(|inner| json!({ "if": true, "then": inner, "else": false })),
            HostileKind::NestedFilters | HostileKind::Descendants => nested(|inner| json!({ "allOf": [inner, true] })),
            HostileKind::Doubled | HostileKind::ExpensiveOrder => json!({ "$ref": "#/$defs/level0" }),
            HostileKind::SelfReference | HostileKind::Path => json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] }),
        }
    }

    /// Definitions that each refer twice to the next one.
    fn definitions(self) -> Value {
        let levels = self.size.min(500);
        let level = |n: usize| json!({ "$ref": format!("#/$defs/level{n}") });
        let all = (0..levels).map(|n| (format!("level{n}"), json!({ "oneOf": [level(n + 1), level(n + 1)] })));
        let last = (format!("level{levels}"), json!({ "type": "integer" }));
        all.chain([last]).collect::<serde_json::Map<_, _>>().into()
    }
}

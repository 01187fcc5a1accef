//! `reframe list variables`: the variables of expressions with the places that have them, and the fields of records.

use super::aligned;
use crate::domain::MomentKind;
use crate::domain::variables::{self, RecordType, Variable, VariableType, variables_at};

/// Where variables are visible besides frames.
const PLACES: &[(Variable, &str)] = &[
    (variables::TURN, "body:, headers: of a dialect (null in a stream)"),
    (variables::REQUEST, "body:, headers: and status: of a dialect; request: of a backend; steps of a script"),
    (variables::REQUEST_ID, "headers: and status: of a dialect"),
    (variables::FAULT, "errors:, status: and headers: of a dialect"),
    (variables::FRAME, "framing: of a dialect"),
    (variables::DATA, "framing: of a dialect"),
    (variables::MODEL_NAME, "path: of a backend's request"),
    (variables::UPSTREAM, "request: of a backend"),
    (variables::SECRET, "headers: and query: of a backend's request"),
    (variables::BUILD, "headers: and query: of a backend's request"),
    (variables::MODEL, "static routes with {model}"),
    (variables::MODELS, "static routes"),
    (variables::PATH, "static routes"),
    (variables::QUERY, "static routes"),
    (variables::HEADERS, "static routes"),
];

pub fn describe() -> String {
    let mut rows = vec![["variable", "type", "visible in"].map(str::to_owned)];
    let mut records: Vec<RecordType> = Vec::new();
    for (name, kind) in frame_variables() {
        let has = |moment: &&MomentKind| variables_at(**moment).any(|(other, _)| other == name);
        let moments: Vec<&str> = MomentKind::ALL.iter().filter(has).map(|moment| moment.name()).collect();
        let place = match moments.len() == MomentKind::ALL.len() {
            true => "all frames".to_owned(),
            false => format!("frames of {}", moments.join(", ")),
        };
        rows.push([name.to_owned(), type_text(kind), place]);
        add_records(kind, &mut records);
    }
    rows.push([
        "policy".to_owned(),
        "record".to_owned(),
        "all frames; body:, errors:, headers: and status:".to_owned(),
    ]);
    for ((name, kind), place) in PLACES {
        rows.push([(*name).to_owned(), type_text(*kind), (*place).to_owned()]);
        add_records(*kind, &mut records);
    }
    let mut fields = vec![["record", "field", "type"].map(str::to_owned)];
    for record in records {
        for (name, kind) in record.fields().unwrap_or_default() {
            fields.push([record_name(record), (*name).to_owned(), type_text(*kind)]);
        }
    }
    format!("{}\n{}", aligned(&rows, usize::MAX), aligned(&fields, usize::MAX))
}

fn frame_variables() -> Vec<Variable> {
    let mut all: Vec<Variable> = Vec::new();
    for variable in MomentKind::ALL.iter().flat_map(|moment| variables_at(*moment)) {
        if !all.contains(&variable) {
            all.push(variable);
        }
    }
    all
}

/// The records that a value of this type consists of.
fn add_records(kind: VariableType, records: &mut Vec<RecordType>) {
    let (VariableType::Record(record) | VariableType::List(record)) = kind else { return };
    if records.contains(&record) || record.fields().is_none() {
        return;
    }
    records.push(record);
    for (_, kind) in record.fields().unwrap_or_default() {
        add_records(*kind, records);
    }
}

fn type_text(kind: VariableType) -> String {
    match kind {
        VariableType::Text => "text".to_owned(),
        VariableType::Int => "integer".to_owned(),
        VariableType::Number => "number".to_owned(),
        VariableType::Bool => "boolean".to_owned(),
        VariableType::Json => "JSON".to_owned(),
        VariableType::Enum(words) => words.join(" | "),
        VariableType::OpenEnum(words) => format!("{} | …", words.join(" | ")),
        VariableType::Record(record) => record_name(record),
        VariableType::List(record) => format!("list of {}", record_name(record)),
        VariableType::ScalarList => "list of scalars".to_owned(),
    }
}

/// `RequestItem` → `request item`
fn record_name(record: RecordType) -> String {
    if record == RecordType::Untyped {
        return "JSON".to_owned();
    }
    let mut name = String::new();
    for c in format!("{record:?}").chars() {
        if c.is_uppercase() && !name.is_empty() {
            name.push(' ');
        }
        name.extend(c.to_lowercase());
    }
    name
}

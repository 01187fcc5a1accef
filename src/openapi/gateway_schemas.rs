//! The schemas of the gateway's own documents: the status and the metrics. The server validates both before it sends
//! them, as it does with everything else.

use reframe_json::{Schema, SchemaSet};
use serde_json::{Value, json};
use std::sync::OnceLock;

/// The schema of `GET /status`.
pub fn status() -> Value {
    let text = || json!({ "type": "string" });
    let count = || json!({ "type": "integer", "minimum": 0 });
    let time = || json!({ "type": "string", "format": "date-time" });
    let nullable = |kind: &str| json!({ "type": [kind, "null"] });
    let diagnostics = || json!({ "type": "array", "maxItems": 100, "items": diagnostic() });
    let mut generation = object(json!({
        "number": count(), "hash": text(), "applied_at": time(), "turns_in_flight": count(), "cause": text(),
        "duration_ms": count(), "files": { "type": "array", "items": text() }, "warnings": diagnostics(),
        "layers": { "type": "array", "items": text(), "description": "The folders of the set, the base first." },
        "routes": definitions(&[]), "models": definitions(&[]), "backends": definitions(&[]),
        "policies": definitions(&["route"]),
    }));
    generation["description"] = "The generation that serves new requests.".into();
    let mut last_rejected = object(json!({
        "rejected_at": time(), "cause": text(), "hash": nullable("string"), "duration_ms": count(), "reason": text(),
        "errors": count(), "diagnostics": diagnostics(), "resolved_at": nullable("string"),
    }));
    last_rejected["description"] = "The last set of files that was rejected.".into();
    last_rejected["type"] = json!(["object", "null"]);
    let restart = json!({ "setting": text(), "location": nullable("string"), "running": {}, "configured": {} });
    let older = object(json!({ "number": count(), "hash": text(), "applied_at": time(), "turns_in_flight": count() }));
    let mut schema = object(json!({
        "version": text(),
        "started_at": time(),
        "config_state": { "description": "Whether the files on disk are in use.", "enum": ["applied", "rejected"] },
        "generation": generation,
        "last_rejected": last_rejected,
        "needs_restart": { "type": "array", "items": object(restart) },
        "turns_in_flight": count(),
        "generations": { "type": "array", "items": older },
        "reloads": object(json!({ "applied": count(), "rejected": count(), "unchanged": count() })),
    }));
    schema["description"] = "The status of the gateway.".into();
    schema
}

/// The schema of `GET /metrics`: lines of the OpenMetrics text format, and its end.
pub fn metrics() -> Value {
    json!({
        "type": "string",
        "pattern": "^(# (HELP|TYPE|UNIT) [^\\n]+\\n|[a-zA-Z_:][a-zA-Z0-9_:]*(\\{[^\\n]*\\})? [^\\n]+\\n)*# EOF\\n$",
    })
}

/// The compiled schema of the status.
pub fn status_validator() -> Option<&'static Schema> {
    static SCHEMA: OnceLock<Option<Schema>> = OnceLock::new();
    SCHEMA.get_or_init(|| compile(status())).as_ref()
}

/// The compiled schema of the metrics.
pub fn metrics_validator() -> Option<&'static Schema> {
    static SCHEMA: OnceLock<Option<Schema>> = OnceLock::new();
    SCHEMA.get_or_init(|| compile(metrics())).as_ref()
}

fn compile(schema: Value) -> Option<Schema> {
    SchemaSet::new([("own.json".to_owned(), schema)]).compile("own.json").ok()
}

/// What a set defines, and where. `more` are further members.
fn definitions(more: &[&str]) -> Value {
    let text = || json!({ "type": "string" });
    let place =
        json!({ "type": ["string", "null"], "description": "File, line and column; null if no file defines it." });
    let mut members = json!({ "name": text(), "value": text(), "layer": text(), "defined_at": place });
    more.iter().for_each(|name| members[*name] = text());
    json!({ "type": "array", "items": object(members) })
}

fn diagnostic() -> Value {
    let number = json!({ "type": ["integer", "null"], "minimum": 1 });
    let text = json!({ "type": ["string", "null"] });
    object(json!({
        "code": { "type": "string" }, "severity": { "enum": ["error", "warning", "note"] }, "message": { "type": "string" },
        "label": text, "help": text, "file": text, "line": number, "column": number, "end_line": number,
        "end_column": number,
    }))
}

/// An object with exactly these members.
fn object(properties: Value) -> Value {
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(|members| members.keys()).collect();
    json!({ "type": "object", "required": required, "additionalProperties": false, "properties": properties })
}

#[cfg(test)]
#[path = "../../tests/unit/openapi_gateway_schemas.rs"]
mod tests;

//! The operations that do not come from mappings: telemetry and the API documentation.

use super::components::Components;
use super::{bundle, gateway_schemas};
use crate::domain::UsageGroup;
use serde_json::{Value, json};

pub fn metrics(components: &mut Components) -> Value {
    let schema = components.fixed("gateway.metrics", &gateway_schemas::metrics());
    let mut operation = operation("metrics", "Metrics for Prometheus", "Counters, gauges and histograms.");
    // Which of them depends on `accept`.
    operation["responses"]["200"]["content"] =
        json!({ "text/plain": { "schema": schema }, "application/openmetrics-text": { "schema": schema } });
    operation
}

pub fn status(components: &mut Components) -> Value {
    let description = "The current generation, the last rejected set, the turns in flight and the number of reloads.";
    let schema = components.fixed("gateway.status", &gateway_schemas::status());
    let operation = operation("status", "Status of the gateway", description);
    with_content(operation, "application/json", schema)
}

/// The query of static routes that read the usage log.
pub fn usage_parameters() -> [Value; 4] {
    let parameter = |name, description, schema| json!({ "name": name, "in": "query", "description": description, "required": false, "schema": schema });
    let time = || json!({ "type": ["integer", "string"] });
    [
        parameter("start", "The begin of the period: a date, or milliseconds since 1970. Default: 1970.", time()),
        parameter("end", "The end of the period. Default: now.", time()),
        parameter("group", "The length of the buckets.", json!({ "type": "string", "enum": UsageGroup::NAMES })),
        parameter("limit", "The number of records, from 1 to 10000. Default: 200.", json!({ "type": "integer" })),
    ]
}

/// The endpoints of the API documentation, by path. They require no API key.
pub fn api_docs(components: &mut Components) -> [(&'static str, Value); 6] {
    let text = || json!({ "type": "string" });
    let object = || json!({ "type": "object" });
    let published = |id, summary, content_type, schema| {
        let mut operation = with_content(operation(id, summary, "OK"), content_type, schema);
        let etag = json!({ "etag": { "schema": text() } });
        operation["responses"]["200"]["headers"] = etag.clone();
        operation["responses"]["304"] =
            json!({ "description": "Not modified: `if-none-match` has its etag", "headers": etag });
        operation
    };
    let json = published("openapi_json", "This document, as JSON", "application/json", object());
    let yaml = published("openapi_yaml", "This document, as YAML", "text/plain", text());
    let index = components.fixed("gateway.schemas", &bundle::index_schema());
    let index = published("schemas", "All JSON schemas", "application/json", index);
    let summary = "A JSON schema that requests or responses are validated against";
    let mut schema = published("schema", summary, "application/json", object());
    schema["description"] = "`body.bundled.json` is `body.json` without references to other files.".into();
    schema["responses"]["404"] = json!({ "description": "Unknown schema" });
    schema["parameters"] = json!([
        { "name": "folder", "in": "path", "description": "The dialect's folder", "required": true, "schema": text() },
        { "name": "file", "in": "path", "description": "For example `body.json`", "required": true, "schema": text() },
    ]);
    let page = operation("docs", "This document as a web page, with a form to send requests", "OK");
    let page = with_content(page, "text/html", text());
    let mut root = operation("root", "Leads browsers to the documentation", "OK");
    root["responses"] = json!({
        "303": { "description": "For clients that accept HTML", "headers": { "location": { "schema": text() } } },
        "404": { "description": "For all others" },
    });
    let mut endpoints = [
        ("/", root),
        ("/openapi.json", json),
        ("/openapi.yaml", yaml),
        ("/schemas/", index),
        ("/schemas/{folder}/{file}", schema),
        ("/docs", page),
    ];
    endpoints.iter_mut().for_each(|(_, operation)| operation["security"] = json!([]));
    endpoints
}

fn operation(id: &str, summary: &str, answer: &str) -> Value {
    json!({
        "operationId": id,
        "summary": summary,
        "tags": ["operations"],
        "responses": { "200": { "description": answer } },
    })
}

fn with_content(mut operation: Value, content_type: &str, schema: Value) -> Value {
    operation["responses"]["200"]["content"] = json!({ content_type: { "schema": schema } });
    operation
}

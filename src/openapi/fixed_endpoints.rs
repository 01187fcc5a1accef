//! The operations that do not come from mappings: telemetry and the API documentation.

use serde_json::{Value, json};

pub fn metrics() -> Value {
    let description = "Counters, gauges and histograms.";
    operation("metrics", "Metrics for Prometheus", description, "application/openmetrics-text", "string")
}

pub fn status() -> Value {
    let description = "The current generation, the last rejected set, the turns in flight and the number of reloads.";
    operation("status", "Status of the gateway", description, "application/json", "object")
}

/// The endpoints of the API documentation, by path. They require no API key.
pub fn api_docs() -> [(&'static str, Value); 4] {
    let text = json!({ "type": "string" });
    let mut json = operation("openapi_json", "This document, as JSON", "OK", "application/json", "object");
    let mut yaml = operation("openapi_yaml", "This document, as YAML", "OK", "application/yaml", "string");
    let summary = "A JSON schema that requests or responses are validated against";
    let mut schema = operation("schema", summary, "OK", "application/json", "object");
    schema["responses"]["404"] = json!({ "description": "Unknown schema" });
    schema["parameters"] = json!([
        { "name": "folder", "in": "path", "description": "The dialect's folder", "required": true, "schema": text },
        { "name": "file", "in": "path", "description": "For example `body.json`", "required": true, "schema": text },
    ]);
    for conditional in [&mut json, &mut yaml, &mut schema] {
        let etag = json!({ "etag": { "schema": text } });
        conditional["responses"]["200"]["headers"] = etag.clone();
        conditional["responses"]["304"] =
            json!({ "description": "Not modified: `if-none-match` has its etag", "headers": etag });
    }
    let summary = "This document as a web page, with a form to send requests";
    let page = operation("docs", summary, "OK", "text/html", "string");
    let mut endpoints =
        [("/openapi.json", json), ("/openapi.yaml", yaml), ("/schemas/{folder}/{file}", schema), ("/docs", page)];
    endpoints.iter_mut().for_each(|(_, operation)| operation["security"] = json!([]));
    endpoints
}

fn operation(id: &str, summary: &str, answer: &str, content_type: &str, kind: &str) -> Value {
    json!({
        "operationId": id,
        "summary": summary,
        "tags": ["operations"],
        "responses": {
            "200": { "description": answer, "content": { content_type: { "schema": { "type": kind } } } },
        },
    })
}

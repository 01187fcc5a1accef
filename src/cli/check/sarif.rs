//! The SARIF 2.1.0 report, for code scanning: the rules that were violated, with their documentation, and the results.

use super::github::full_text;
use super::{CheckReport, EXIT_ERROR, is_embedded};
use crate::diagnostics::{Code, CodePage, Diagnostic, visible_span};
use crate::mapping::source::layout::GATEWAY;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// Characters to escape in the path of a URI.
const PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'\\').add(b'^').add(b'`');

pub fn print(report: &CheckReport) -> String {
    let losses: Vec<Diagnostic> = report.unreported_losses().iter().map(|loss| loss.diagnostic()).collect();
    let results: Vec<&Diagnostic> = report.findings.iter().chain(&losses).collect();
    let mut codes: Vec<Code> = results.iter().map(|finding| finding.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let exit = report.exit();
    let document = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "reframe",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": codes.iter().map(|code| rule(*code)).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "invocations": [{ "executionSuccessful": exit != EXIT_ERROR, "exitCode": exit }],
            "results": results.iter().map(|finding| result(finding, &codes, report)).collect::<Vec<_>>(),
        }],
    });
    format!("{document:#}\n")
}

fn rule(code: Code) -> Value {
    let page = CodePage::of(code);
    json!({
        "id": code.as_str(),
        "name": format!("{code:?}"),
        "shortDescription": { "text": page.sentence() },
        "fullDescription": { "text": page.section("Why").unwrap_or(page.sentence()) },
        "help": { "text": page.text, "markdown": page.text },
        "defaultConfiguration": { "level": code.severity().as_str() },
        "properties": { "phase": code.phase().as_str() },
    })
}

fn result(finding: &Diagnostic, codes: &[Code], report: &CheckReport) -> Value {
    let mut result = json!({
        "ruleId": finding.code.as_str(),
        "ruleIndex": codes.iter().position(|code| *code == finding.code),
        "level": finding.severity().as_str(),
        "message": { "text": full_text(finding, report) },
    });
    if let Some(location) = location(finding, report) {
        result["locations"] = json!([location]);
    }
    result
}

fn location(finding: &Diagnostic, report: &CheckReport) -> Option<Value> {
    let own = report.sources.get(finding.span.file).filter(|source| !is_embedded(source));
    // Code scanning rejects results without a file. Findings in the set as a whole or in an embedded file are therefore
    // located at gateway.yaml.
    let sources = || report.sources.iter().map(|(_, source)| source).filter(|source| !is_embedded(source));
    let source = own.or_else(|| sources().find(|s| s.name == GATEWAY)).or_else(|| sources().next())?;
    let mut place = json!({ "artifactLocation": { "uri": uri(&source.shown) } });
    if let Some(span) = own.and_then(|source| visible_span(source, finding.span)) {
        let (start, end) = (report.sources.location(span), report.sources.end_location(span));
        place["region"] = json!({
            "startLine": start.line, "startColumn": start.column, "endLine": end.line, "endColumn": end.column,
        });
    }
    Some(json!({ "physicalLocation": place }))
}

/// A relative URI for a relative path, a file URI for an absolute one.
fn uri(shown: &str) -> String {
    let path = shown.strip_prefix("./").unwrap_or(shown).replace('\\', "/");
    let path = utf8_percent_encode(&path, PATH).to_string();
    if path.starts_with('/') { format!("file://{path}") } else { path }
}

#[cfg(test)]
#[path = "../../../tests/unit/cli_check_sarif.rs"]
mod tests;

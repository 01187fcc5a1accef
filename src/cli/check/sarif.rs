//! SARIF 2.1.0, for code scanning: the rules that were broken, each with its page, and the results.

use super::github::sentences;
use super::{COULD_NOT_RUN, Outcome, is_embedded};
use crate::diagnostics::{Code, Diagnostic, Page, Severity, visible};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// What cannot stand in the path of a URI.
const PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'\\').add(b'^').add(b'`');

pub fn print(outcome: &Outcome) -> String {
    let losses: Vec<Diagnostic> = outcome.untold().iter().map(|loss| loss.note()).collect();
    let results: Vec<&Diagnostic> = outcome.findings.iter().chain(&losses).collect();
    let mut codes: Vec<Code> = results.iter().map(|finding| finding.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let exit = outcome.exit();
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
            "invocations": [{ "executionSuccessful": exit != COULD_NOT_RUN, "exitCode": exit }],
            "results": results.iter().map(|finding| result(finding, &codes, outcome)).collect::<Vec<_>>(),
        }],
    });
    format!("{document:#}\n")
}

fn rule(code: Code) -> Value {
    let page = Page::of(code);
    json!({
        "id": code.as_str(),
        "name": format!("{code:?}"),
        "shortDescription": { "text": page.sentence() },
        "fullDescription": { "text": page.section("Why").unwrap_or(page.sentence()) },
        "help": { "text": page.text, "markdown": page.text },
        "defaultConfiguration": { "level": level(code.severity()) },
        "properties": { "phase": code.phase().as_str() },
    })
}

fn result(finding: &Diagnostic, codes: &[Code], outcome: &Outcome) -> Value {
    let mut result = json!({
        "ruleId": finding.code.as_str(),
        "ruleIndex": codes.iter().position(|code| *code == finding.code),
        "level": level(finding.severity()),
        "message": { "text": sentences(finding, outcome) },
    });
    if let Some(location) = location(finding, outcome) {
        result["locations"] = json!([location]);
    }
    result
}

fn location(finding: &Diagnostic, outcome: &Outcome) -> Option<Value> {
    let own = outcome.sources.get(finding.span.file).filter(|source| !is_embedded(source));
    // What is wrong with the set as a whole, or in the binary, is shown at the set's gateway: code scanning refuses
    // what has no file.
    let sources = || outcome.sources.iter().map(|(_, source)| source).filter(|source| !is_embedded(source));
    let source = own.or_else(|| sources().find(|s| s.name == "gateway.yaml")).or_else(|| sources().next())?;
    let mut place = json!({ "artifactLocation": { "uri": uri(&source.shown) } });
    if let Some(span) = own.and_then(|source| visible(source, finding.span)) {
        let (start, end) = (outcome.sources.place(span), outcome.sources.end(span));
        place["region"] = json!({
            "startLine": start.line, "startColumn": start.column, "endLine": end.line, "endColumn": end.column,
        });
    }
    Some(json!({ "physicalLocation": place }))
}

/// Relative, as the files are named; an absolute path is a file URI.
fn uri(shown: &str) -> String {
    let path = shown.strip_prefix("./").unwrap_or(shown).replace('\\', "/");
    let path = utf8_percent_encode(&path, PATH).to_string();
    if path.starts_with('/') { format!("file://{path}") } else { path }
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_uri() {
        assert_eq!(uri("./my set/a#1.yaml"), "my%20set/a%231.yaml");
        assert_eq!(uri("/srv/a.yaml"), "file:///srv/a.yaml");
    }
}

//! GitHub workflow commands: the runner turns each line into an annotation of a file.

use super::{CheckReport, human, is_embedded};
use crate::diagnostics::{Diagnostic, Severity, visible_span};

pub fn print(report: &CheckReport) -> String {
    let mut text: String = report.findings.iter().map(|finding| command(finding, report)).collect();
    text.push_str(&human::summary_line(report));
    text
}

/// `::error file=a.yaml,line=1,col=2,endColumn=5,title=RF104::no variable …`
fn command(finding: &Diagnostic, report: &CheckReport) -> String {
    let level = match finding.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let mut properties = Vec::new();
    if let Some(source) = report.sources.get(finding.span.file).filter(|source| !is_embedded(source)) {
        properties.push(format!("file={}", property(&source.shown)));
        if let Some(span) = visible_span(source, finding.span) {
            let (start, end) = (report.sources.location(span), report.sources.end_location(span));
            // GitHub's `endColumn` is inclusive.
            let last = end.column.saturating_sub(1).max(start.column);
            properties.push(format!("line={},col={},endColumn={last}", start.line, start.column));
        }
    }
    properties.push(format!("title={}", finding.code.as_str()));
    format!("::{level} {}::{}\n", properties.join(","), data(&full_text(finding, report)))
}

/// Message, label and help, one per line. The location of an embedded file is added: there is no file to annotate.
pub fn full_text(finding: &Diagnostic, report: &CheckReport) -> String {
    let mut text = finding.message.clone();
    if !finding.label.is_empty() {
        text.push_str(&format!("\n{}", finding.label));
    }
    if let Some(help) = &finding.help {
        text.push_str(&format!("\nhelp: {help}"));
    }
    if report.sources.get(finding.span.file).is_some_and(is_embedded) {
        text.push_str(&format!("\nin {}", report.sources.show(finding.span)));
    }
    text
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
#[path = "../../../tests/unit/cli_check_github.rs"]
mod tests;

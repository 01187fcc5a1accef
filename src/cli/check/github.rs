//! Workflow commands: GitHub's runners turn each line into an annotation of the file it names.

use super::{Outcome, human, is_embedded};
use crate::diagnostics::{Diagnostic, Severity, visible};

pub fn print(outcome: &Outcome) -> String {
    let mut text: String = outcome.findings.iter().map(|finding| command(finding, outcome)).collect();
    text.push_str(&human::sum(outcome));
    text
}

/// `::error file=a.yaml,line=1,col=2,endColumn=5,title=RF104::no variable …`
fn command(finding: &Diagnostic, outcome: &Outcome) -> String {
    let level = match finding.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let mut properties = Vec::new();
    if let Some(source) = outcome.sources.get(finding.span.file).filter(|source| !is_embedded(source)) {
        properties.push(format!("file={}", property(&source.shown)));
        if let Some(span) = visible(source, finding.span) {
            let (start, end) = (outcome.sources.place(span), outcome.sources.end(span));
            // The last column, not the one behind it.
            let last = end.column.saturating_sub(1).max(start.column);
            properties.push(format!("line={},col={},endColumn={last}", start.line, start.column));
        }
    }
    properties.push(format!("title={}", finding.code.as_str()));
    format!("::{level} {}::{}\n", properties.join(","), data(&sentences(finding, outcome)))
}

/// All that is said of a finding, a line each. A place in the binary is said too: there is no file to show it in.
pub fn sentences(finding: &Diagnostic, outcome: &Outcome) -> String {
    let mut text = finding.message.clone();
    if !finding.label.is_empty() {
        text.push_str(&format!("\n{}", finding.label));
    }
    if let Some(help) = &finding.help {
        text.push_str(&format!("\nhelp: {help}"));
    }
    if outcome.sources.get(finding.span.file).is_some_and(is_embedded) {
        text.push_str(&format!("\nin {}", outcome.sources.show(finding.span)));
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
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_in_a_command_is_escaped() {
        assert_eq!(data("100 %: a,\nb\r"), "100 %25: a,%0Ab%0D");
        assert_eq!(property("c:\\a,b 5%\n"), "c%3A\\a%2Cb 5%25%0A");
    }
}

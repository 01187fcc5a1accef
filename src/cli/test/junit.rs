//! The JUnit XML report of the tests, for CI systems.

use super::human::failure_lines;
use super::{FileRun, TestReport, TestRun};
use crate::diagnostics::{Diagnostic, Sources};
use crate::reload::Layers;
use std::time::Duration;

pub fn report(report: &TestReport, layers: &Layers) -> String {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let errors: usize = report.files.iter().map(|f| f.mistakes.len()).sum();
    let (tests, failures) = (report.passed() + report.failed(), report.failed() - errors);
    let counts = counts(tests, failures, errors, report.duration);
    xml.push_str(&format!("<testsuites name=\"reframe\"{counts}>\n"));
    for file in &report.files {
        suite(file, &report.sources, layers, &mut xml);
    }
    xml + "</testsuites>\n"
}

fn suite(file: &FileRun, sources: &Sources, layers: &Layers, xml: &mut String) {
    let errors = file.mistakes.len();
    let counts = counts(file.passed() + file.failed(), file.failed() - errors, errors, file.duration());
    xml.push_str(&format!("  <testsuite name=\"{}\"{counts}>\n", escaped(&file.shown)));
    let class = file.name.trim_end_matches(".test.yaml");
    for mistake in &file.mistakes {
        error(mistake, class, &file.shown, sources, xml);
    }
    for test in &file.tests {
        let lines = failure_lines(test, sources, layers);
        case(test, &lines, class, &file.shown, sources, xml);
    }
    xml.push_str("  </testsuite>\n");
}

fn case(test: &TestRun, lines: &[String], class: &str, file: &str, sources: &Sources, xml: &mut String) {
    let attributes = attributes(&test.name, class, file, sources.location(test.span).line, test.duration);
    let Some(first) = test.differences.first() else {
        xml.push_str(&format!("    <testcase{attributes}/>\n"));
        return;
    };
    let (message, text) = (escaped(&first.brief()), escaped_text(&lines.join("\n")));
    xml.push_str(&format!("    <testcase{attributes}>\n"));
    xml.push_str(&format!("      <failure type=\"difference\" message=\"{message}\">{text}</failure>\n"));
    xml.push_str("    </testcase>\n");
}

/// An error in the test file itself.
fn error(mistake: &Diagnostic, class: &str, file: &str, sources: &Sources, xml: &mut String) {
    let attributes =
        attributes("the test file itself", class, file, sources.location(mistake.span).line, Duration::ZERO);
    let (code, message) = (mistake.code.as_str(), escaped(&mistake.message));
    let text = escaped_text(&format!("{}: {}", sources.show(mistake.span), mistake.message));
    xml.push_str(&format!("    <testcase{attributes}>\n"));
    xml.push_str(&format!("      <error type=\"{code}\" message=\"{message}\">{text}</error>\n"));
    xml.push_str("    </testcase>\n");
}

fn counts(tests: usize, failures: usize, errors: usize, duration: Duration) -> String {
    let time = seconds(duration);
    format!(" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{time}\"")
}

fn attributes(name: &str, class: &str, file: &str, line: usize, duration: Duration) -> String {
    let (name, class, file, time) = (escaped(name), escaped(class), escaped(file), seconds(duration));
    format!(" name=\"{name}\" classname=\"{class}\" file=\"{file}\" line=\"{line}\" time=\"{time}\"")
}

fn seconds(time: Duration) -> String {
    format!("{:.6}", time.as_secs_f64())
}

/// Escapes an attribute value. A raw line break in it would be read as a space.
fn escaped(text: &str) -> String {
    escaped_text(text).replace('\n', "&#10;").replace('\t', "&#9;")
}

/// XML cannot represent most control characters; they become U+FFFD.
fn escaped_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
#[path = "../../../tests/unit/cli_test_junit.rs"]
mod tests;

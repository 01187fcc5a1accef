//! The JUnit XML report of the tests, for CI systems.

use super::human::failure_lines;
use super::{FileRun, TestReport};
use crate::diagnostics::Sources;
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
    // An error in the test file itself.
    for mistake in &file.mistakes {
        let line = sources.location(mistake.span).line;
        let attributes = attributes("the test file itself", class, &file.shown, line, Duration::ZERO);
        let (code, message) = (mistake.code.as_str(), escaped(&mistake.message));
        let text = escaped_text(&format!("{}: {}", sources.show(mistake.span), mistake.message));
        case(&attributes, Some(format!("<error type=\"{code}\" message=\"{message}\">{text}</error>")), xml);
    }
    for test in &file.tests {
        let attributes =
            attributes(&test.case.name, class, &file.shown, sources.location(test.case.span).line, test.duration);
        let failure = test.differences.first().map(|first| {
            let (message, text) = (escaped(&first.brief()), failure_lines(test, sources, layers).join("\n"));
            format!("<failure type=\"difference\" message=\"{message}\">{}</failure>", escaped_text(&text))
        });
        case(&attributes, failure, xml);
    }
    xml.push_str("  </testsuite>\n");
}

/// `problem`: the element for a failure or an error.
fn case(attributes: &str, problem: Option<String>, xml: &mut String) {
    xml.push_str(&match problem {
        None => format!("    <testcase{attributes}/>\n"),
        Some(problem) => format!("    <testcase{attributes}>\n      {problem}\n    </testcase>\n"),
    });
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

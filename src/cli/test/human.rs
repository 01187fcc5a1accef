//! The text report of the tests: each difference, the YAML line that produced it, and a command for details.

use super::{FileRun, TestReport, TestRun, ms};
use crate::cli::use_colour;
use crate::diagnostics::{Sources, render_all};
use crate::reload::{Base, Layers};
use crate::verify::ValueSource;

pub fn report(report: &TestReport, layers: &Layers) -> String {
    if report.files.is_empty() {
        return "no tests: tests of a mapping are in NAME.test.yaml next to it\n".into();
    }
    let width = report.files.iter().map(|f| f.shown.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for file in &report.files {
        let (passed, failed, duration) = (file.passed(), file.failed(), ms(file.duration()));
        text.push_str(&format!("{:<width$}  {passed} passed, {failed} failed ({duration})\n", file.shown));
        text.push_str(&failures(file, &report.sources, layers));
    }
    let (passed, failed) = (report.passed(), report.failed());
    text + &format!("{passed} passed, {failed} failed in {}\n", ms(report.duration))
}

fn failures(file: &FileRun, sources: &Sources, layers: &Layers) -> String {
    let mut text = String::new();
    if !file.mistakes.is_empty() {
        text.push_str(&render_all(&file.mistakes, sources, use_colour()));
        text.push('\n');
    }
    for test in file.tests.iter().filter(|t| !t.differences.is_empty()) {
        text.push_str(&format!("FAILED {}  \"{}\"\n", sources.show(test.case.span), test.case.name));
        for line in failure_lines(test, sources, layers) {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}

/// The differences, the YAML lines that produced them, and a command for details.
pub fn failure_lines(test: &TestRun, sources: &Sources, layers: &Layers) -> Vec<String> {
    let mut lines = Vec::new();
    // The location of a frame follows its last difference.
    for (at, difference) in test.differences.iter().enumerate() {
        lines.extend(difference.lines());
        let place =
            |d: Option<&crate::verify::Difference>| d.and_then(|d| d.source.as_ref()).map(|m| (m.span, m.frame));
        let next = test.differences.get(at + 1);
        if let Some(source) = &difference.source
            && place(next) != place(Some(difference))
        {
            lines.push(made_by(source, sources));
        }
    }
    lines.extend(command(test, sources, layers).map(|command| format!("for details: {command}")));
    lines
}

/// `made by responses.yaml:23 from moment tool.open from event 4 (item/tool/call)`
pub fn made_by(made: &ValueSource, sources: &Sources) -> String {
    let shown = sources.get(made.span.file).map_or("?", |s| &s.shown);
    let mut text = format!("made by {shown}:{}", sources.location(made.span).line);
    if let Some(moment) = made.moment {
        text.push_str(&format!(" from moment {moment}"));
    }
    if let Some((number, name)) = &made.raw {
        text.push_str(&format!(" from event {number} ({name})"));
    }
    text
}

/// The `reframe explain` command for a test, ready to paste; none for a test without a turn or request.
pub fn command(test: &TestRun, sources: &Sources, layers: &Layers) -> Option<String> {
    if test.case.given.is_empty() && test.case.dialect.is_none() {
        return None;
    }
    let source = sources.get(test.case.span.file)?;
    let place = format!("{}:{}", source.shown.trim_start_matches("(embedded) "), sources.location(test.case.span).line);
    let mut words = vec!["reframe".to_owned()];
    if let Base::Folder(folder) = &layers.base
        && folder.as_os_str() != "mappings"
    {
        words.extend(["--mappings".to_owned(), folder.display().to_string()]);
    }
    words.extend(layers.add.iter().flat_map(|folder| ["--add".to_owned(), folder.display().to_string()]));
    words.extend(["explain".to_owned(), place]);
    match test.differences.iter().find_map(|d| d.source.as_ref()?.frame) {
        Some(frame) => words.extend(["--frame".to_owned(), frame.to_string()]),
        None if test.differences.iter().all(|d| d.path.starts_with("body")) => words.push("--body".to_owned()),
        None => {}
    }
    let quoted =
        words.iter().map(|w| if needs_no_quotes(w) { w.clone() } else { format!("'{}'", w.replace('\'', "'\\''")) });
    Some(quoted.collect::<Vec<_>>().join(" "))
}

/// Whether a shell word needs no quoting.
fn needs_no_quotes(word: &str) -> bool {
    word.chars().all(|c| c.is_alphanumeric() || "-_./:@+,=".contains(c))
}

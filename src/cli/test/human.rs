//! The outcome of tests for people: what differs, where it was made, and how to look closer.

use super::{FileRun, Run, TestRun, ms};
use crate::cli::colour;
use crate::diagnostics::{Sources, render_all};
use crate::reload::{Base, Layers};
use crate::verify::Made;

pub fn report(run: &Run, layers: &Layers) -> String {
    if run.files.is_empty() {
        return "no tests: they stand beside a mapping, in NAME.test.yaml\n".into();
    }
    let width = run.files.iter().map(|f| f.shown.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for file in &run.files {
        let (passed, failed, took) = (file.passed(), file.failed(), ms(file.took()));
        text.push_str(&format!("{:<width$}  {passed} passed, {failed} failed ({took})\n", file.shown));
        text.push_str(&failures(file, &run.sources, layers));
    }
    let (passed, failed) = (run.passed(), run.failed());
    text + &format!("{passed} passed, {failed} failed in {}\n", ms(run.took))
}

fn failures(file: &FileRun, sources: &Sources, layers: &Layers) -> String {
    let mut text = String::new();
    if !file.mistakes.is_empty() {
        text.push_str(&render_all(&file.mistakes, sources, colour()));
        text.push('\n');
    }
    for test in file.tests.iter().filter(|t| !t.differences.is_empty()) {
        text.push_str(&format!("FAILED {}  \"{}\"\n", sources.show(test.span), test.name));
        for line in told(test, sources, layers) {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}

/// What differs, where it was made, and the command to look closer.
pub fn told(test: &TestRun, sources: &Sources, layers: &Layers) -> Vec<String> {
    let mut lines = Vec::new();
    // Differences of one frame are told together, and its place once.
    for (at, difference) in test.differences.iter().enumerate() {
        lines.extend(difference.lines());
        let place = |d: Option<&crate::verify::Difference>| d.and_then(|d| d.made.as_ref()).map(|m| (m.span, m.frame));
        let next = test.differences.get(at + 1);
        if let Some(made) = &difference.made
            && place(next) != place(Some(difference))
        {
            lines.push(made_by(made, sources));
        }
    }
    lines.extend(command(test, sources, layers).map(|command| format!("look closer: {command}")));
    lines
}

/// `made by responses.yaml:23 from moment tool.open from event 4 (item/tool/call)`
pub fn made_by(made: &Made, sources: &Sources) -> String {
    let shown = sources.get(made.span.file).map_or("?", |s| &s.shown);
    let mut text = format!("made by {shown}:{}", sources.place(made.span).line);
    if let Some(moment) = made.moment {
        text.push_str(&format!(" from moment {moment}"));
    }
    if let Some((number, name)) = &made.raw {
        text.push_str(&format!(" from event {number} ({name})"));
    }
    text
}

/// Ready to paste; none for a test in which nothing happens.
pub fn command(test: &TestRun, sources: &Sources, layers: &Layers) -> Option<String> {
    if !test.visible {
        return None;
    }
    let source = sources.get(test.span.file)?;
    let place = format!("{}:{}", source.shown.trim_start_matches("(embedded) "), sources.place(test.span).line);
    let mut words = vec!["reframe".to_owned()];
    if let Base::Folder(folder) = &layers.base
        && folder.as_os_str() != "mappings"
    {
        words.extend(["--mappings".to_owned(), folder.display().to_string()]);
    }
    words.extend(layers.add.iter().flat_map(|folder| ["--add".to_owned(), folder.display().to_string()]));
    words.extend(["explain".to_owned(), place]);
    match test.differences.iter().find_map(|d| d.made.as_ref()?.frame) {
        Some(frame) => words.extend(["--frame".to_owned(), frame.to_string()]),
        None if test.differences.iter().all(|d| d.path.starts_with("body")) => words.push("--body".to_owned()),
        None => {}
    }
    let quoted = words.iter().map(|w| if plain(w) { w.clone() } else { format!("'{}'", w.replace('\'', "'\\''")) });
    Some(quoted.collect::<Vec<_>>().join(" "))
}

/// Can a shell read it as it stands?
fn plain(word: &str) -> bool {
    word.chars().all(|c| c.is_alphanumeric() || "-_./:@+,=".contains(c))
}

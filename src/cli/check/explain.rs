//! `reframe check --explain CODE`: the page of a code.

use crate::cli::{COULD_NOT_RUN, FINE, say};
use crate::diagnostics::{Code, Page, did_you_mean};

pub fn run(asked: &str) -> u8 {
    if asked.is_empty() {
        return say(&list(), FINE);
    }
    match find(asked) {
        Some(code) => say(&page(code), FINE),
        None => {
            let known = || Code::ALL.iter().map(|code| code.as_str());
            let meant = did_you_mean(&full(asked), known()).map(|code| format!("did you mean {code}? "));
            let meant = meant.unwrap_or_default();
            eprintln!("error: there is no code `{asked}`; {meant}`reframe check --explain` lists them all");
            COULD_NOT_RUN
        }
    }
}

/// `RF104`, `rf104` or `104`.
fn find(asked: &str) -> Option<Code> {
    Code::ALL.iter().copied().find(|code| code.as_str() == full(asked))
}

fn full(asked: &str) -> String {
    let asked = asked.trim().to_uppercase();
    if asked.starts_with(|c: char| c.is_ascii_digit()) { format!("RF{asked:0>3}") } else { asked }
}

/// `error[RF104] (phase: compile)`, then its page.
fn page(code: Code) -> String {
    let (severity, phase) = (code.severity().as_str(), code.phase().as_str());
    format!("{severity}[{}] (phase: {phase})\n{}\n", code.as_str(), Page::of(code).text)
}

fn list() -> String {
    let line = |code: &Code| {
        let (severity, phase) = (code.severity().as_str(), code.phase().as_str());
        format!("{}  {severity:<7}  {phase:<8}  {}\n", code.as_str(), code.about())
    };
    Code::ALL.iter().map(line).collect()
}

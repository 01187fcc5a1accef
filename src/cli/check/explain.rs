//! `reframe check --explain CODE`: prints the documentation of a diagnostic code.

use crate::cli::{EXIT_OK, error, print_report};
use crate::diagnostics::{Code, CodePage};

pub fn run(code: &str) -> Result<u8, String> {
    if code.is_empty() {
        return print_report(&list(), EXIT_OK);
    }
    let unknown = || error(format!("unknown code `{code}`; `reframe check --explain` lists all codes"));
    print_report(&page(find(code).ok_or_else(unknown)?), EXIT_OK)
}

/// Accepts `RF104`, `rf104` and `104`; leading zeros may be omitted.
fn find(code: &str) -> Option<Code> {
    Code::ALL.iter().copied().find(|known| known.as_str() == full(code))
}

fn full(code: &str) -> String {
    let code = code.trim().to_uppercase();
    let number = code.strip_prefix("RF").unwrap_or(&code);
    format!("RF{number:0>3}")
}

/// `error[RF104] (phase: compile)`, then its page.
fn page(code: Code) -> String {
    let (severity, phase) = (code.severity().as_str(), code.phase().as_str());
    format!("{severity}[{}] (phase: {phase})\n{}\n", code.as_str(), CodePage::of(code).text)
}

fn list() -> String {
    let line = |code: &Code| {
        let (severity, phase) = (code.severity().as_str(), code.phase().as_str());
        format!("{}  {severity:<7}  {phase:<8}  {}\n", code.as_str(), code.about())
    };
    Code::ALL.iter().map(line).collect()
}

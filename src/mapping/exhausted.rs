//! The diagnostic of a load that was stopped because it takes too much work or time.

use crate::diagnostics::{Code, Diagnostic, Sources, Span};
use crate::domain::work_budget::{Exhausted, WorkBudget};

/// Says what the load was doing when its budget was exhausted, at the file that it was doing it for.
pub fn diagnostic(budget: &WorkBudget, sources: &Sources) -> Option<Diagnostic> {
    budget.exhausted().map(|why| describe(why, budget, sources))
}

/// The same for a load that did not stop when its time was over.
pub fn timed_out(budget: &WorkBudget, sources: &Sources) -> Diagnostic {
    describe(budget.exhausted().unwrap_or(Exhausted::Time), budget, sources)
}

/// A load that panicked: a defect of this program that the set brings to light.
pub fn panicked(reason: &str, budget: &WorkBudget, sources: &Sources) -> Diagnostic {
    let message = format!("loading this set failed while {}: {reason}", budget.activity().doing);
    Diagnostic::new(Code::TooMuchWork, place(budget, sources), message)
        .help("this is a defect of reframe: please report it, with this file")
}

fn describe(why: Exhausted, budget: &WorkBudget, sources: &Sources) -> Diagnostic {
    let activity = budget.activity();
    let reason = match why {
        Exhausted::Steps(steps) => format!("takes too much work: after {steps} steps it was"),
        Exhausted::Time => "takes too long: it was still".to_owned(),
    };
    let message = format!("loading this set {reason} {}", activity.doing);
    Diagnostic::new(Code::TooMuchWork, place(budget, sources), message)
}

fn place(budget: &WorkBudget, sources: &Sources) -> Span {
    let name = budget.activity().file;
    let file = sources.iter().find(|(_, source)| source.name == name);
    file.map_or(Span::NOWHERE, |(file, _)| Span::new(file, 0, 0))
}

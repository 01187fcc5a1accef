//! Runs the tests of a set on a second thread, while the first one checks the frames and replays the transcripts. Their
//! results are read in order, so that the diagnostics and the steps of the budget are those of one thread.

use super::{failure, suite};
use crate::diagnostics::{Diagnostic, Span};
use crate::domain::WorkBudget;
use crate::mapping::{LOAD_STACK_BYTES, Plan};
use std::sync::mpsc::{self, Receiver, SendError, Sender};
use std::{panic, thread};

/// What happens on the thread.
pub(super) enum TestStep {
    /// What follows: whoever reads the steps records it.
    Begin { file: String, doing: String },
    /// A file was parsed, which took some steps of the budget.
    Parsed { mistakes: Vec<Diagnostic>, steps: u64 },
    /// A test with some events follows.
    Run { events: usize },
    /// It passed, or it failed at a place that violates a schema or an order.
    Ran(Option<(Diagnostic, Option<Span>)>),
}

/// Checks something, with the steps of the tests. They end early if nobody reads them.
pub(super) fn with<T>(plan: &Plan, budget: &WorkBudget, check: impl FnOnce(mpsc::IntoIter<TestStep>) -> T) -> T {
    let (sender, steps): (Sender<TestStep>, Receiver<TestStep>) = mpsc::channel();
    if plan.tests.is_empty() {
        drop(sender);
        return check(steps.into_iter());
    }
    thread::scope(|scope| {
        let second = sender.clone();
        let run = move || drop(run(plan, budget, &second));
        let second =
            thread::Builder::new().name("test".to_owned()).stack_size(LOAD_STACK_BYTES).spawn_scoped(scope, run);
        let Ok(second) = second else {
            // Without a second thread, the tests run first.
            drop(self::run(plan, budget, &sender));
            drop(sender);
            return check(steps.into_iter());
        };
        drop(sender);
        let checked = check(steps.into_iter());
        second.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
        checked
    })
}

fn run(plan: &Plan, budget: &WorkBudget, steps: &Sender<TestStep>) -> Result<(), SendError<TestStep>> {
    for file in &plan.tests {
        let begin = |doing: String| steps.send(TestStep::Begin { file: file.name.clone(), doing });
        begin("parsing these tests".to_owned())?;
        let spent = WorkBudget::new(budget.left());
        let suite = suite(file, plan, &spent);
        steps.send(TestStep::Parsed { mistakes: suite.mistakes, steps: spent.spent() })?;
        for case in &suite.cases {
            // It may be given up, while nobody reads the steps yet.
            if budget.exhausted().is_some() {
                return Ok(());
            }
            begin(format!("running the test \"{}\"", case.name))?;
            steps.send(TestStep::Run { events: case.given.len() })?;
            steps.send(TestStep::Ran(failure(case, plan)))?;
        }
    }
    Ok(())
}

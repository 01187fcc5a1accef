//! `reframe test`: the tests that stand beside the mappings.

use super::{COULD_NOT_RUN, FINDINGS, FINE, colour};
use crate::diag::render_all;
use crate::mapping::load;
use crate::reload::{Layers, read};
use crate::trial;

pub fn run(layers: &Layers) -> u8 {
    let files = match read(layers) {
        Ok(files) => files,
        Err(refusal) => {
            eprint!("{}", refusal.render(colour()));
            return COULD_NOT_RUN;
        }
    };
    let loaded = load(&files);
    let Some(plan) = loaded.plan else {
        eprintln!("{}", render_all(&loaded.diagnostics, &loaded.sources, colour()));
        eprintln!("the mappings do not load, so there is nothing to test");
        return COULD_NOT_RUN;
    };
    let reports = trial::run_all(&plan);
    let (mut passed, mut failed) = (0, 0);
    for report in &reports {
        passed += report.passed;
        failed += report.failures.len();
        println!("{:<50} {} passed, {} failed", report.file, report.passed, report.failures.len());
        for failure in &report.failures {
            println!("FAILED {}  \"{}\"", plan.sources.show(failure.span), failure.name);
            for line in &failure.lines {
                println!("  {line}");
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed > 0 { FINDINGS } else { FINE }
}

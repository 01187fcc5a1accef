//! Runs the `*.test.yaml` files of a set.

use reframe::testing::mapping::Plan;
use reframe::testing::verify;

/// The outcome of one test file.
pub struct SuiteReport {
    pub file: String,
    pub passed: usize,
    pub failures: Vec<String>,
}

pub fn run_all(plan: &Plan) -> Vec<SuiteReport> {
    let report = |suite: &verify::TestSuite| {
        let mut failures: Vec<String> = suite.mistakes.iter().map(|mistake| mistake.message.clone()).collect();
        let mut passed = 0;
        for case in &suite.cases {
            match verify::run(case, plan).first() {
                None => passed += 1,
                Some(difference) => failures.push(format!("the test \"{}\" failed: {}", case.name, difference.brief())),
            }
        }
        SuiteReport { file: suite.file.clone(), passed, failures }
    };
    verify::suites(plan).iter().map(report).collect()
}

//! The budget of a load: a set that takes too much work is refused, and the refusal names what it was doing.

use reframe::testing::domain::WorkBudget;
use reframe::testing::mapping::{Overrides, load_within};
use reframe::testing::reload::embedded;
use reframe::testing::verify::verify_within;

#[test]
fn the_embedded_set_spends_a_small_part_of_the_budget() {
    let budget = WorkBudget::default();
    let plan = load_within(&embedded::files(), None, &Overrides::default(), &budget).plan.unwrap();
    let compiled = budget.spent();
    let verification = verify_within(&plan, &budget);
    assert!(verification.found.is_empty(), "{:?}", verification.found);
    println!("{compiled} steps to compile, {} to verify", budget.spent() - compiled);
    assert!(compiled > 1_000 && budget.spent() > compiled, "steps are not counted");
    assert!(budget.spent() < 20_000_000 / 20, "{} steps", budget.spent());
}

#[test]
fn a_set_that_exceeds_its_budget_reports_only_that_at_a_file() {
    let files = embedded::files();
    // A step of the budget for every eight bytes.
    let parsed: u64 = files.iter().map(|file| file.text.len() as u64 / 8).sum();
    // Enough to parse some files; then all of them, but to compile only a few.
    for (steps, doing) in [(3_000, "parsing"), (parsed + 5_000, "compiling")] {
        let loaded = load_within(&files, None, &Overrides::default(), &WorkBudget::new(steps));
        let [only] = loaded.diagnostics.as_slice() else { panic!("{:?}", loaded.diagnostics) };
        let wanted = format!("loading this set takes too much work: after {steps} steps it was {doing} this file");
        assert_eq!((only.code.as_str(), &only.message), ("RF134", &wanted));
        assert!(loaded.plan.is_none() && loaded.sources.get(only.span.file).is_some(), "{only:?}");
    }
    let plan = load_within(&files, None, &Overrides::default(), &WorkBudget::default()).plan.unwrap();
    for (steps, doing) in
        [(2_000, "rendering the frames of"), (150_000, "replaying this transcript"), (300_000, "running the test")]
    {
        let verification = verify_within(&plan, &WorkBudget::new(steps));
        let [only] = verification.found.as_slice() else { panic!("{:?}", verification.found) };
        assert!(only.message.contains(doing), "{}", only.message);
        assert!(plan.sources.get(only.span.file).is_some(), "{only:?}");
    }
}

/// Nothing is spent on suggestions that a report does not show.
#[test]
fn a_set_with_thousands_of_mistakes_is_refused_soon() {
    let good = embedded::files();
    let mut bad = good.clone();
    let mistakes: String = (0..5_000).map(|at| format!("x{at}: 1\n")).collect();
    for at in 0..4 {
        let mut file = good.iter().find(|file| file.name == "dialects/chat.yaml").unwrap().clone();
        file.name = format!("dialects/bad{at}.yaml");
        file.text = format!("dialect: bad{at}\n{mistakes}").into();
        bad.push(file);
    }
    let steps_of = |files: &[_]| {
        let budget = WorkBudget::default();
        let loaded = load_within(files, None, &Overrides::default(), &budget);
        (budget.spent(), loaded.diagnostics.len())
    };
    let ((of_good, _), (of_bad, found)) = (steps_of(&good), steps_of(&bad));
    println!("{of_good} steps for the set, {of_bad} with {found} mistakes");
    assert!(found > 1_000, "{found} mistakes");
    assert!(of_bad < of_good, "{of_bad} steps with mistakes, {of_good} without");
}

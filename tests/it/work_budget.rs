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
    // Enough to parse some files; then some dialects; then to compile but not to verify.
    for (steps, doing) in [(1_000, "parsing"), (40_000, "compiling")] {
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

//! What witness values cost: `check` renders every frame with them at each reload.

use reframe::testing::domain::WorkBudget;
use reframe::testing::mapping::load;
use reframe::testing::reload::embedded;
use reframe::testing::verify::{check_witnesses, verify};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;

/// The shortest of several rounds: whatever else the machine does only makes a round longer.
fn shortest(mut round: impl FnMut()) -> Duration {
    let times = (0..ROUNDS).map(|_| {
        let began = Instant::now();
        round();
        began.elapsed()
    });
    times.min().unwrap_or_default()
}

/// Both are measured in the same build, so that the share is also that of other builds, more or less.
#[test]
fn witness_values_cost_at_most_a_fifth_of_a_reload() {
    let files = embedded::files();
    let plan = load(&files).plan.expect("the embedded set loads");
    let reload = shortest(|| {
        let loaded = load(&files);
        assert!(loaded.plan.is_some_and(|plan| verify(&plan).found.is_empty()));
    });
    let witnesses = shortest(|| assert!(check_witnesses(&plan, &WorkBudget::default()).found.is_empty()));
    let share = witnesses.as_secs_f64() / reload.as_secs_f64();
    println!("witness values: {witnesses:?} of {reload:?}, {:.0} %", share * 100.0);
    assert!(share <= 0.2, "{witnesses:?} of {reload:?}");
}

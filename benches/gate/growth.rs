//! Cost must not grow with the length of a turn, nor with the size of a set.

use super::budget::Costs;
use crate::end_to_end::{Case, PLAN, Way, file, files};
use reframe::testing::mapping::{Plan, SourceFile, load};
use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Added to the name of a case in a set with ten times the rules, profiles and routes.
pub const LARGE_SET: &str = " in a set ten times as large";
/// Rules that select by the name of the event, and rules that do not.
pub const CASES: [Case; 2] = [
    Case { way: Way::TextDelta, backend: "openai-chat", dialect: "chat" },
    Case { way: Way::TextDelta, backend: "openai-responses", dialect: "responses" },
];
const MAX_SET_GROWTH: f64 = 1.05;
/// What the allocator takes for one allocation and its release; valgrind does not count it (instructions.rs).
const ALLOCATION_INSTRUCTIONS: f64 = 150.0;

/// A turn of this many deltas.
const DELTAS: usize = 100_000;
/// The fastest of many short intervals: other load on the machine slows some of them, never all.
const INTERVAL: usize = 250;
const MAX_TURN_GROWTH: f64 = 1.5;
const ATTEMPTS: usize = 4;

pub static LARGE_PLAN: LazyLock<Plan> = LazyLock::new(|| {
    let loaded = load(&large_set());
    loaded.plan.unwrap_or_else(|| panic!("the large set does not load: {:?}", loaded.diagnostics))
});

/// The shipped set with nine more rules for each one of the two backends, and with ten routes and ten more profiles.
fn large_set() -> Vec<SourceFile> {
    let mut set = files(10);
    for source in &mut set {
        if CASES.iter().any(|case| source.name == format!("backends/{}.yaml", case.backend)) {
            let text = with_more_rules(&source.text);
            *source = file(&source.name.clone(), &text);
        }
    }
    let profile = set.iter().find(|f| f.name == "profiles/openai.yaml").expect("the profile").text.to_string();
    for number in 0..10 {
        set.push(file(
            &format!("profiles/openai{number}.yaml"),
            &profile.replace("profile: openai", &format!("profile: openai{number}")),
        ));
    }
    set
}

/// Nine more rules for each one of the file, for members and event names that no event has. They come before the others,
/// in the groups of the rules that match.
fn with_more_rules(text: &str) -> String {
    let (head, rules) = text.split_once("\n  rules:\n").expect("rules");
    let count = 9 * rules.lines().filter(|line| line.starts_with("    - ")).count();
    let mut out = format!("{head}\n  rules:\n");
    for line in rules.lines() {
        if line == "    - name: deltas of a choice" {
            for number in 0..count / 2 {
                let rule = format!(
                    "    - each: $.choices[*]\n      where: {{ \"@.delta.other{number}\": string }}\n      \
                     emit: [ text: {{ choice: \"@.index\", delta: \"@.delta.other{number}\" }} ]\n"
                );
                out.push_str(&rule);
            }
        }
        if line == "    - event: response.created" || line == "    - name: response id and model" {
            for number in 0..count / 2 {
                let rule = match line.contains("event") {
                    true => format!(
                        "    - event: response.other{number}.delta\n      emit: [ text: {{ delta: $.delta }} ]\n"
                    ),
                    false => format!(
                        "    - where: {{ $.other{number}: string }}\n      emit: [ text: {{ delta: $.other{number} }} ]\n"
                    ),
                };
                out.push_str(&rule);
            }
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// The cost of the last deltas of a long turn, compared with the first. A turn that seems to grow is measured again: other
/// programs may have slowed all of its last intervals.
pub fn turn_failures() -> Vec<String> {
    let mut failures = Vec::new();
    let ways = [Way::TextDelta, Way::ArgumentDelta, Way::WrappedDelta];
    for case in ways.into_iter().flat_map(crate::end_to_end::cases) {
        let factor = (0..ATTEMPTS).map(|_| turn_growth(case)).find(|factor| *factor <= MAX_TURN_GROWTH);
        if factor.is_none() {
            failures.push(format!(
                "{case}: after {DELTAS} deltas a delta costs more than {MAX_TURN_GROWTH} times as much as at the start"
            ));
        }
    }
    println!("turns of {DELTAS} deltas are compared with their start");
    failures
}

fn turn_growth(case: Case) -> f64 {
    let mut repetition = case.repetition(&PLAN);
    let mut times = Vec::with_capacity(DELTAS / INTERVAL);
    for _ in 0..DELTAS / INTERVAL {
        let began = Instant::now();
        (0..INTERVAL).for_each(|_| repetition());
        times.push(began.elapsed());
    }
    let fastest = |times: &[Duration]| times.iter().min().copied().unwrap_or_default().as_secs_f64();
    let (first, last) = (fastest(&times[4..44]), fastest(&times[times.len() - 40..]));
    last / first
}

pub fn set_failures(costs: &Costs) -> Vec<String> {
    let Some(instructions) = &costs.instructions else { return Vec::new() };
    let allocations: HashMap<&str, f64> =
        costs.allocations.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    let cost = |name: String| instructions[&name] as f64 + allocations[name.as_str()] * ALLOCATION_INSTRUCTIONS;
    let mut failures = Vec::new();
    for case in CASES {
        let factor = cost(format!("{case}{LARGE_SET}")) / cost(case.to_string());
        println!("{case}: {factor:.3} times the cost in a set ten times as large");
        if factor > MAX_SET_GROWTH {
            failures.push(format!("{case}: {factor:.3} times the cost in a set ten times as large"));
        }
    }
    failures
}

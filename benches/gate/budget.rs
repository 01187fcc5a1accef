//! The budget file: what each subject may cost.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;

const HEADER: &str = "\
# What the whole ways may cost: allocations and instructions of one repetition (benches/end_to_end/mod.rs).
# `tests/all.d/cost-gate` fails if one is exceeded by 3 %, and asks for an update if all that changed is lower.
# Update: cargo bench --bench cost_gate -- update
";

/// Above and below the budget, what counts as a change.
const TOLERANCE: f64 = 0.03;

pub struct Costs {
    /// In the order of the file.
    pub allocations: Vec<(String, f64)>,
    /// `None` if they cannot be counted here.
    pub instructions: Option<HashMap<String, u64>>,
}

pub struct Budget {
    pub rustc: String,
    pub costs: Costs,
}

impl Budget {
    fn path() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/budget.txt")
    }

    pub fn write(&self) {
        let instructions = self.costs.instructions.as_ref().expect("an update needs valgrind");
        let mut text = format!("{HEADER}compiler: {}\n\n", self.rustc);
        let width = self.costs.allocations.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        for (name, allocations) in &self.costs.allocations {
            let count = instructions[name];
            writeln!(text, "{name:width$}  allocations {allocations:8.2}  instructions {count:9}").expect("it is text");
        }
        std::fs::write(Budget::path(), text).expect("the budget is written");
    }

    pub fn read() -> Budget {
        let text = std::fs::read_to_string(Budget::path()).expect("benches/budget.txt");
        let mut budget = Budget {
            rustc: String::new(),
            costs: Costs { allocations: Vec::new(), instructions: Some(HashMap::new()) },
        };
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            if let Some(rustc) = line.strip_prefix("compiler: ") {
                budget.rustc = rustc.to_owned();
                continue;
            }
            let (name, counts) = line.split_once("  allocations").unwrap_or_else(|| panic!("cannot read: {line}"));
            let (allocations, count) = counts.split_once("instructions").expect("instructions");
            let name = name.trim_end().to_owned();
            budget.costs.allocations.push((name.clone(), allocations.trim().parse().expect("a number")));
            if let Some(counts) = &mut budget.costs.instructions {
                counts.insert(name, count.trim().parse().expect("a number"));
            }
        }
        budget
    }

    /// Prints what is compared; returns what exceeds the budget.
    pub fn compare(&self, measured: &Costs, rustc: &str) -> Vec<String> {
        let mut comparison = Comparison::default();
        let allocations: HashMap<&str, f64> = measured.allocations.iter().map(|(n, a)| (n.as_str(), *a)).collect();
        for (name, budget) in &self.costs.allocations {
            match allocations.get(name.as_str()) {
                Some(found) => comparison.add(name, "allocations", *found, *budget),
                None => comparison.failures.push(format!("{name}: in benches/budget.txt, but not measured")),
            }
        }
        for (name, _) in &measured.allocations {
            if !self.costs.allocations.iter().any(|(known, _)| known == name) {
                comparison.failures.push(format!("{name}: not in benches/budget.txt; run the update"));
            }
        }
        match (&measured.instructions, &self.costs.instructions) {
            (None, _) => println!("instructions: left out, because valgrind is not installed"),
            (Some(_), _) if rustc != self.rustc => {
                println!("instructions: left out, because the budget is for {}, and this is {rustc}", self.rustc);
            }
            (Some(found), Some(budget)) => {
                for (name, _) in &self.costs.allocations {
                    if let (Some(found), Some(budget)) = (found.get(name), budget.get(name)) {
                        comparison.add(name, "instructions", *found as f64, *budget as f64);
                    }
                }
            }
            (Some(_), None) => {}
        }
        println!("{} counts are compared with benches/budget.txt", comparison.compared);
        if comparison.lower > 0 && comparison.failures.is_empty() {
            println!(
                "{} counts are lower: lower the budget with `cargo bench --bench cost_gate -- update`",
                comparison.lower
            );
        }
        comparison.failures
    }
}

#[derive(Default)]
struct Comparison {
    compared: usize,
    lower: usize,
    failures: Vec<String>,
}

impl Comparison {
    fn add(&mut self, name: &str, what: &str, found: f64, budget: f64) {
        self.compared += 1;
        // A budget of zero allocations allows none; half an allocation is the noise of buffers that double.
        let limit = if what == "allocations" {
            (budget * (1.0 + TOLERANCE)).max(budget + 0.5)
        } else {
            budget * (1.0 + TOLERANCE)
        };
        if found > limit {
            let percent = (found / budget - 1.0) * 100.0;
            self.failures.push(format!("{name}: {found:.1} {what}, {percent:.1} % above the budget of {budget:.1}"));
        } else if found < budget * (1.0 - TOLERANCE) {
            self.lower += 1;
            println!("{name}: {found:.1} {what}, below the budget of {budget:.1}");
        }
    }
}

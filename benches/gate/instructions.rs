//! Instructions of each subject, counted by valgrind. The same binary gives the same counts on every machine.
//!
//! Those of the allocator are left out: they depend on the layout of the heap, by 3 % of a delta. Allocations are counted
//! on their own.

use super::Subject;
use std::collections::HashMap;
use std::process::Command;

const COUNTED: &str = "cost_gate::gate::instructions::counted";
const ALLOCATOR: &[&str] = &["malloc", "calloc", "realloc", "free"];

/// What happened on other threads since the last file, such as a load, belongs to none of the subjects.
pub fn discard_other_threads() {
    counted(&mut || ());
}

/// Valgrind counts within this function, and writes one file each time it returns.
#[inline(never)]
pub fn counted(repetitions: &mut dyn FnMut()) {
    repetitions();
    // Not the last expression, so that the call above is not a tail call.
    std::hint::black_box(());
}

/// Instructions of one repetition of each subject; `None` if valgrind is not installed.
pub fn count(subjects: &[Subject], repetitions: usize) -> Option<HashMap<String, u64>> {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("counts");
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--collect-atstart=no"])
        .args([format!("--zero-before={COUNTED}"), format!("--dump-after={COUNTED}")])
        // Each of these turns the counting on or off: the allocator turns it off within `counted`, and on elsewhere.
        .args([COUNTED].iter().chain(ALLOCATOR).map(|function| format!("--toggle-collect={function}")))
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe().expect("this binary"))
        .arg("repeat")
        .output()
        .ok()?;
    assert!(run.status.success(), "valgrind failed:\n{}", String::from_utf8_lossy(&run.stderr));
    let counts: Vec<u64> = (1..)
        .map_while(|number| std::fs::read_to_string(format!("{}.{number}", out.display())).ok())
        .map(|text| {
            let totals = text.lines().find_map(|line| line.strip_prefix("totals: ")).expect("totals");
            totals.trim().parse().expect("a number")
        })
        .collect();
    assert_eq!(counts.len(), 2 * subjects.len(), "valgrind wrote another number of counts");
    let counts = counts.iter().skip(1).step_by(2).map(|count| count / repetitions as u64);
    Some(subjects.iter().map(Subject::name).zip(counts).collect())
}

/// Instruction counts belong to a compiler.
pub fn rustc_version() -> String {
    let output = Command::new("rustc").arg("--version").output().expect("rustc");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

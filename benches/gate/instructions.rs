//! Instructions of each subject, counted by valgrind. The same binary gives the same counts on every machine.
//!
//! Those of the allocator are left out: they depend on the layout of the heap, by 3 % of a delta. Allocations are counted
//! on their own.

use super::Subject;
use std::collections::HashMap;
use std::process::Command;

const COUNTED: &str = "cost_gate::gate::instructions::counted";
/// The functions of glibc's allocator, by the beginnings of their names.
const ALLOCATOR: &[&str] = &["malloc", "calloc", "realloc", "free", "_int_", "unlink_chunk", "sysmalloc", "systrim"];

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
        .args([format!("--toggle-collect={COUNTED}"), format!("--dump-after={COUNTED}")])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe().expect("this binary"))
        .arg("repeat")
        .output()
        .ok()?;
    assert!(run.status.success(), "valgrind failed:\n{}", String::from_utf8_lossy(&run.stderr));
    let counts: Vec<u64> = (1..)
        .map_while(|number| std::fs::read_to_string(format!("{}.{number}", out.display())).ok())
        .map(|text| instructions(&text))
        .filter(|count| *count > 0)
        .collect();
    assert_eq!(counts.len(), subjects.len(), "valgrind wrote another number of counts");
    Some(subjects.iter().map(Subject::name).zip(counts.iter().map(|count| count / repetitions as u64)).collect())
}

/// The sum of a file: `fn=(ID) NAME` begins the lines of a function (later `fn=(ID)`), each line is a position and a
/// count. The line after `calls=` is the count of a function that was called, which has lines of its own.
fn instructions(text: &str) -> u64 {
    let mut names = HashMap::new();
    let (mut is_allocator, mut is_call, mut sum) = (false, false, 0);
    for line in text.lines() {
        if let Some(function) = line.strip_prefix("fn=").or(line.strip_prefix("cfn=")) {
            let (id, name) = function.split_once(' ').unwrap_or((function, ""));
            if !name.is_empty() {
                names.insert(id, ALLOCATOR.iter().any(|prefix| name.starts_with(prefix)));
            }
            if line.starts_with("fn=") {
                is_allocator = names[id];
            }
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '*')) {
            let count: u64 = line.split_once(' ').map_or(0, |(_, count)| count.trim().parse().expect("a count"));
            sum += if is_call || is_allocator { 0 } else { count };
            is_call = false;
        }
    }
    sum
}

/// Instruction counts belong to a compiler.
pub fn rustc_version() -> String {
    let output = Command::new("rustc").arg("--version").output().expect("rustc");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

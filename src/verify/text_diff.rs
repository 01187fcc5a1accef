//! A line diff of two texts, with a few lines of context.

use similar::{ChangeTag, TextDiff};

/// How many equal lines are shown before and after a difference.
const CONTEXT_LINES: usize = 2;

/// `- ` marks a line that is expected and missing, `+ ` one that is unexpected; `…` replaces equal lines.
pub fn unified(expected: &str, got: &str) -> Vec<String> {
    let expected: Vec<&str> = expected.lines().collect();
    let got: Vec<&str> = got.lines().collect();
    let diff = TextDiff::from_slices(&expected, &got);
    let lines: Vec<(ChangeTag, &str)> = diff.iter_all_changes().map(|change| (change.tag(), change.value())).collect();
    let near = |at: usize| {
        let from = at.saturating_sub(CONTEXT_LINES);
        lines[from..lines.len().min(at + CONTEXT_LINES + 1)].iter().any(|(tag, _)| *tag != ChangeTag::Equal)
    };
    let far: Vec<bool> = (0..lines.len()).map(|at| !near(at)).collect();
    let mut out: Vec<String> = Vec::new();
    for (at, (tag, line)) in lines.iter().enumerate() {
        let before = at > 0 && far[at - 1];
        // A single equal line is printed: `…` would not be shorter.
        if far[at] && (before || far.get(at + 1) == Some(&true)) {
            if !before {
                out.push("  …".to_owned());
            }
            continue;
        }
        out.push(match tag {
            ChangeTag::Equal => format!("  {line}"),
            ChangeTag::Delete => format!("- {line}"),
            ChangeTag::Insert => format!("+ {line}"),
        });
    }
    out
}

#[cfg(test)]
#[path = "../../tests/unit/verify_text_diff.rs"]
mod tests;

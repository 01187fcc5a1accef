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
mod tests {
    use super::unified;

    #[test]
    fn only_differences_and_their_context_are_shown() {
        let expected = "a\nb\nc\nd\ne\nf\ng";
        let got = "a\nb\nc\nd\nE\nf\ng";
        assert_eq!(unified(expected, got), ["  …", "  c", "  d", "- e", "+ E", "  f", "  g"]);
        assert_eq!(unified("a\nb\nc\nd", "a\nb\nc\nD"), ["  a", "  b", "  c", "- d", "+ D"]);
    }

    #[test]
    fn lines_missing_at_the_end_are_marked() {
        assert_eq!(unified("a\nb\nc", "a"), ["  a", "- b", "- c"]);
        assert_eq!(unified("a", "a\nb"), ["  a", "+ b"]);
        assert_eq!(unified("", "a"), ["+ a"]);
    }

    #[test]
    fn equal_texts_are_collapsed() {
        assert_eq!(unified("a\nb", "a\nb"), ["  …"]);
    }
}

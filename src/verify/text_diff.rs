//! A line diff of two texts, with a few lines of context.

/// How many equal lines are shown before and after a difference.
const CONTEXT_LINES: usize = 2;
/// Longer texts are shown without aligning their common lines: the table would be too large.
const MAX_LINES: usize = 800;

#[derive(Clone, Copy, PartialEq)]
enum LineOrigin {
    Both,
    Expected,
    Got,
}

/// `- ` marks a line that is expected and missing, `+ ` one that is unexpected; `…` replaces equal lines.
pub fn unified(expected: &str, got: &str) -> Vec<String> {
    let expected: Vec<&str> = expected.lines().collect();
    let got: Vec<&str> = got.lines().collect();
    let lines = aligned(&expected, &got);
    let near = |at: usize| {
        let from = at.saturating_sub(CONTEXT_LINES);
        lines[from..lines.len().min(at + CONTEXT_LINES + 1)].iter().any(|(side, _)| *side != LineOrigin::Both)
    };
    let far: Vec<bool> = (0..lines.len()).map(|at| !near(at)).collect();
    let mut out: Vec<String> = Vec::new();
    for (at, (side, line)) in lines.iter().enumerate() {
        let before = at > 0 && far[at - 1];
        // A single equal line is printed: `…` would not be shorter.
        if far[at] && (before || far.get(at + 1) == Some(&true)) {
            if !before {
                out.push("  …".to_owned());
            }
            continue;
        }
        out.push(match side {
            LineOrigin::Both => format!("  {line}"),
            LineOrigin::Expected => format!("- {line}"),
            LineOrigin::Got => format!("+ {line}"),
        });
    }
    out
}

/// All lines of both, in order, by their longest common subsequence.
fn aligned<'t>(a: &[&'t str], b: &[&'t str]) -> Vec<(LineOrigin, &'t str)> {
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let rest = a.len().min(b.len()) - head;
    let tail = a.iter().rev().zip(b.iter().rev()).take(rest).take_while(|(x, y)| x == y).count();
    let (middle_a, middle_b) = (&a[head..a.len() - tail], &b[head..b.len() - tail]);
    let mut out: Vec<(LineOrigin, &str)> = a[..head].iter().map(|l| (LineOrigin::Both, *l)).collect();
    if middle_a.len().max(middle_b.len()) > MAX_LINES {
        out.extend(middle_a.iter().map(|l| (LineOrigin::Expected, *l)));
        out.extend(middle_b.iter().map(|l| (LineOrigin::Got, *l)));
    } else {
        out.extend(by_common_lines(middle_a, middle_b));
    }
    out.extend(a[a.len() - tail..].iter().map(|l| (LineOrigin::Both, *l)));
    out
}

fn by_common_lines<'t>(a: &[&'t str], b: &[&'t str]) -> Vec<(LineOrigin, &'t str)> {
    // common[i][j]: the length of the longest common subsequence of a[i..] and b[j..].
    let mut common = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i][j] = if a[i] == b[j] { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut out = Vec::new();
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            out.push((LineOrigin::Both, a[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < a.len() && (j == b.len() || common[i + 1][j] >= common[i][j + 1]) {
            out.push((LineOrigin::Expected, a[i]));
            i += 1;
        } else {
            out.push((LineOrigin::Got, b[j]));
            j += 1;
        }
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

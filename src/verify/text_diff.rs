//! Two texts, line by line: what is gone, what is new, and a little of what stands around it.

/// How many equal lines stand before and after a difference.
const AROUND: usize = 2;
/// Longer texts are compared without looking for what they have in common: the table would be too large.
const MAX_LINES: usize = 800;

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Both,
    Gone,
    New,
}

/// `- ` is expected and not there, `+ ` is there and not expected; `…` stands for equal lines.
pub fn unified(expected: &str, got: &str) -> Vec<String> {
    let expected: Vec<&str> = expected.lines().collect();
    let got: Vec<&str> = got.lines().collect();
    let lines = aligned(&expected, &got);
    let near = |at: usize| {
        let from = at.saturating_sub(AROUND);
        lines[from..lines.len().min(at + AROUND + 1)].iter().any(|(side, _)| *side != Side::Both)
    };
    let far: Vec<bool> = (0..lines.len()).map(|at| !near(at)).collect();
    let mut out: Vec<String> = Vec::new();
    for (at, (side, line)) in lines.iter().enumerate() {
        let before = at > 0 && far[at - 1];
        // A single line is as short as its mark.
        if far[at] && (before || far.get(at + 1) == Some(&true)) {
            if !before {
                out.push("  …".to_owned());
            }
            continue;
        }
        out.push(match side {
            Side::Both => format!("  {line}"),
            Side::Gone => format!("- {line}"),
            Side::New => format!("+ {line}"),
        });
    }
    out
}

/// All lines of both, in order, by their longest common subsequence.
fn aligned<'t>(a: &[&'t str], b: &[&'t str]) -> Vec<(Side, &'t str)> {
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let rest = a.len().min(b.len()) - head;
    let tail = a.iter().rev().zip(b.iter().rev()).take(rest).take_while(|(x, y)| x == y).count();
    let (middle_a, middle_b) = (&a[head..a.len() - tail], &b[head..b.len() - tail]);
    let mut out: Vec<(Side, &str)> = a[..head].iter().map(|l| (Side::Both, *l)).collect();
    if middle_a.len().max(middle_b.len()) > MAX_LINES {
        out.extend(middle_a.iter().map(|l| (Side::Gone, *l)));
        out.extend(middle_b.iter().map(|l| (Side::New, *l)));
    } else {
        out.extend(by_common_lines(middle_a, middle_b));
    }
    out.extend(a[a.len() - tail..].iter().map(|l| (Side::Both, *l)));
    out
}

fn by_common_lines<'t>(a: &[&'t str], b: &[&'t str]) -> Vec<(Side, &'t str)> {
    // common[i][j]: how many lines a[i..] and b[j..] have in common.
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
            out.push((Side::Both, a[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < a.len() && (j == b.len() || common[i + 1][j] >= common[i][j + 1]) {
            out.push((Side::Gone, a[i]));
            i += 1;
        } else {
            out.push((Side::New, b[j]));
            j += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn only_what_differs_and_its_surroundings_are_shown() {
        let expected = "a\nb\nc\nd\ne\nf\ng";
        let got = "a\nb\nc\nd\nE\nf\ng";
        assert_eq!(unified(expected, got), ["  …", "  c", "  d", "- e", "+ E", "  f", "  g"]);
        assert_eq!(unified("a\nb\nc\nd", "a\nb\nc\nD"), ["  a", "  b", "  c", "- d", "+ D"]);
    }

    #[test]
    fn what_is_missing_at_the_end_is_gone() {
        assert_eq!(unified("a\nb\nc", "a"), ["  a", "- b", "- c"]);
        assert_eq!(unified("a", "a\nb"), ["  a", "+ b"]);
        assert_eq!(unified("", "a"), ["+ a"]);
    }

    #[test]
    fn equal_texts_have_nothing_to_show() {
        assert_eq!(unified("a\nb", "a\nb"), ["  …"]);
    }
}

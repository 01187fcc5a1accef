//! Differences between the expected and the actual output of a test, and how they are displayed.

use super::text_diff::unified;
use crate::diagnostics::Span;
use crate::domain::Tree;

/// The text output is truncated; `--format json` prints the values in full.
const MAX_LINE_CHARS: usize = 240;
const MAX_LINES: usize = 80;

#[derive(Debug)]
pub struct Difference {
    /// ``frame 2 `tool` $.index``, `body.choices[0]`.
    pub path: String,
    pub kind: DifferenceKind,
    pub source: Option<ValueSource>,
}

#[derive(Debug)]
pub enum DifferenceKind {
    Value {
        expected: Tree,
        got: Option<Tree>,
        /// The actual value to use in a diff, without members that would hide the difference.
        diff_view: Option<Tree>,
    },
    Kind {
        expected: &'static str,
        got: Option<Tree>,
    },
    /// A member that the expectation does not contain.
    Unexpected(Tree),
    /// The names of frames or events, in order.
    Names {
        expected: Vec<String>,
        got: Vec<String>,
    },
    Message(String),
}

/// The line of the mapping that produced a value.
#[derive(Clone, Debug)]
pub struct ValueSource {
    /// The frame, the rule or the body in the mapping.
    pub span: Span,
    /// The number of the frame among the data frames.
    pub frame: Option<usize>,
    /// The moment of the frame.
    pub moment: Option<&'static str>,
    /// The raw event that caused it: its number, counted from 1, and its name.
    pub raw: Option<(usize, String)>,
}

impl Difference {
    fn new(path: &str, kind: DifferenceKind) -> Difference {
        Difference { path: path.to_owned(), kind, source: None }
    }

    pub fn value(path: &str, expected: Tree, got: Option<Tree>) -> Difference {
        Difference::new(path, DifferenceKind::Value { expected, got, diff_view: None })
    }

    /// Sets the actual value to use in a diff.
    pub fn with_diff_view(mut self, tree: Option<Tree>) -> Difference {
        if let DifferenceKind::Value { diff_view, .. } = &mut self.kind {
            *diff_view = tree;
        }
        self
    }

    pub fn kind(path: &str, expected: &'static str, got: Option<Tree>) -> Difference {
        Difference::new(path, DifferenceKind::Kind { expected, got })
    }

    pub fn unexpected(path: &str, got: Tree) -> Difference {
        Difference::new(path, DifferenceKind::Unexpected(got))
    }

    pub fn names(path: &str, expected: Vec<String>, got: Vec<String>) -> Difference {
        Difference::new(path, DifferenceKind::Names { expected, got })
    }

    pub fn message(path: &str, message: impl Into<String>) -> Difference {
        Difference::new(path, DifferenceKind::Message(message.into()))
    }

    pub fn with_source(mut self, source: ValueSource) -> Difference {
        self.source = Some(source);
        self
    }

    /// In one line: `body.index: expected 1, got 0`.
    pub fn brief(&self) -> String {
        let path = &self.path;
        let shown = |tree: &Option<Tree>| tree.as_ref().map_or("nothing".to_owned(), one_line);
        match &self.kind {
            DifferenceKind::Value { expected, got, .. } => {
                format!("{path}: expected {}, got {}", one_line(expected), shown(got))
            }
            DifferenceKind::Kind { expected, got } => {
                format!("{path}: expected {}, got {}", kind_noun(expected), shown(got))
            }
            DifferenceKind::Unexpected(got) => format!("{path}: expected nothing, got {}", one_line(got)),
            DifferenceKind::Names { expected, got } => {
                let same = expected.iter().zip(got).take_while(|(e, g)| e == g).count();
                let at = |list: &[String]| list.get(same).map_or("nothing".to_owned(), |n| format!("`{n}`"));
                format!("{path}: at {same} expected {}, got {}", at(expected), at(got))
            }
            DifferenceKind::Message(message) if path.is_empty() => message.clone(),
            DifferenceKind::Message(message) => format!("{path}: {message}"),
        }
    }

    /// One line for simple values; otherwise the sentence and a diff of the two values.
    pub fn lines(&self) -> Vec<String> {
        let is_composite = |t: &Tree| matches!(t, Tree::Map(_) | Tree::List(_));
        match &self.kind {
            DifferenceKind::Value { expected, got: Some(got), diff_view }
                if is_composite(expected) || is_composite(got) =>
            {
                let below = unified(&pretty_lines(expected), &pretty_lines(diff_view.as_ref().unwrap_or(got)));
                let mut lines = vec![format!("{}   - expected   + got", self.path)];
                let more = below.len().saturating_sub(MAX_LINES);
                lines.extend(below.into_iter().take(MAX_LINES).map(|l| format!("  {}", truncate(&l))));
                lines.extend((more > 0).then(|| format!("  … and {more} more lines")));
                lines
            }
            DifferenceKind::Names { expected, got } => {
                let mut lines = vec![format!("{}   - expected   + got", self.brief())];
                let below = unified(&expected.join("\n"), &got.join("\n"));
                lines.extend(below.into_iter().map(|l| format!("  {l}")));
                lines
            }
            DifferenceKind::Value { .. }
            | DifferenceKind::Kind { .. }
            | DifferenceKind::Unexpected(_)
            | DifferenceKind::Message(_) => vec![self.brief()],
        }
    }
}

fn one_line(tree: &Tree) -> String {
    truncate(&tree.to_json())
}

fn truncate(line: &str) -> String {
    if line.chars().count() <= MAX_LINE_CHARS {
        line.to_owned()
    } else {
        line.chars().take(MAX_LINE_CHARS).chain(['…']).collect()
    }
}

/// Without trailing commas: whether another line follows is not a difference of this line.
fn pretty_lines(tree: &Tree) -> String {
    let pretty = tree.to_json_pretty();
    let lines: Vec<&str> = pretty.lines().map(|l| l.strip_suffix(',').unwrap_or(l)).collect();
    lines.join("\n")
}

fn kind_noun(word: &str) -> String {
    match word {
        "exists" => "something".to_owned(),
        "absent" | "null" => "nothing".to_owned(),
        "object" | "array" => format!("an {word}"),
        word => format!("a {word}"),
    }
}

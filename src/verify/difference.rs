//! What differs between what a test expects and what came, and how a person is told.

use super::text_diff::unified;
use crate::diagnostics::Span;
use crate::domain::Tree;

/// More is cut: whoever needs all of it asks for JSON.
const WIDEST: usize = 240;
const MOST_LINES: usize = 80;

#[derive(Debug)]
pub struct Difference {
    /// ``frame 2 `tool` $.index``, `body.choices[0]`.
    pub path: String,
    pub what: What,
    pub made: Option<Made>,
}

#[derive(Debug)]
pub enum What {
    Value {
        expected: Tree,
        got: Option<Tree>,
        /// What came, as it is best read beside what was expected.
        beside: Option<Tree>,
    },
    Kind {
        expected: &'static str,
        got: Option<Tree>,
    },
    /// It is there, and nothing was expected.
    Unexpected(Tree),
    /// Names in order: of frames, of events.
    Names {
        expected: Vec<String>,
        got: Vec<String>,
    },
    Said(String),
}

/// Where a value that differs was made.
#[derive(Clone, Debug)]
pub struct Made {
    /// The frame or the body in the mapping.
    pub span: Span,
    /// Of a frame: its number among the data frames.
    pub frame: Option<usize>,
    /// The moment that told it, and the raw event that led there: its number from 1, and its name.
    pub moment: Option<&'static str>,
    pub raw: Option<(usize, String)>,
}

impl Difference {
    fn new(path: &str, what: What) -> Difference {
        Difference { path: path.to_owned(), what, made: None }
    }

    pub fn value(path: &str, expected: Tree, got: Option<Tree>) -> Difference {
        Difference::new(path, What::Value { expected, got, beside: None })
    }

    /// For a diff: what came, without what would hide the difference.
    pub fn beside(mut self, tree: Option<Tree>) -> Difference {
        if let What::Value { beside, .. } = &mut self.what {
            *beside = tree;
        }
        self
    }

    pub fn kind(path: &str, expected: &'static str, got: Option<Tree>) -> Difference {
        Difference::new(path, What::Kind { expected, got })
    }

    pub fn unexpected(path: &str, got: Tree) -> Difference {
        Difference::new(path, What::Unexpected(got))
    }

    pub fn names(path: &str, expected: Vec<String>, got: Vec<String>) -> Difference {
        Difference::new(path, What::Names { expected, got })
    }

    pub fn said(path: &str, what: impl Into<String>) -> Difference {
        Difference::new(path, What::Said(what.into()))
    }

    pub fn made(mut self, made: Made) -> Difference {
        self.made = Some(made);
        self
    }

    /// In one line: `body.index: expected 1, got 0`.
    pub fn brief(&self) -> String {
        let path = &self.path;
        let shown = |tree: &Option<Tree>| tree.as_ref().map_or("nothing".to_owned(), in_short);
        match &self.what {
            What::Value { expected, got, .. } => {
                format!("{path}: expected {}, got {}", in_short(expected), shown(got))
            }
            What::Kind { expected, got } => format!("{path}: expected {}, got {}", a_kind(expected), shown(got)),
            What::Unexpected(got) => format!("{path}: expected nothing, got {}", in_short(got)),
            What::Names { expected, got } => {
                let same = expected.iter().zip(got).take_while(|(e, g)| e == g).count();
                let at = |list: &[String]| list.get(same).map_or("nothing".to_owned(), |n| format!("`{n}`"));
                format!("{path}: at {same} expected {}, got {}", at(expected), at(got))
            }
            What::Said(what) if path.is_empty() => what.clone(),
            What::Said(what) => format!("{path}: {what}"),
        }
    }

    /// A line where that says it all; else the sentence, and a diff of the two values below it.
    pub fn lines(&self) -> Vec<String> {
        let composite = |t: &Tree| matches!(t, Tree::Map(_) | Tree::List(_));
        match &self.what {
            What::Value { expected, got: Some(got), beside } if composite(expected) || composite(got) => {
                let below = unified(&in_lines(expected), &in_lines(beside.as_ref().unwrap_or(got)));
                let mut lines = vec![format!("{}   - expected   + got", self.path)];
                let more = below.len().saturating_sub(MOST_LINES);
                lines.extend(below.into_iter().take(MOST_LINES).map(|l| format!("  {}", cut(&l))));
                lines.extend((more > 0).then(|| format!("  … and {more} lines more")));
                lines
            }
            What::Names { expected, got } => {
                let mut lines = vec![format!("{}   - expected   + got", self.brief())];
                let below = unified(&expected.join("\n"), &got.join("\n"));
                lines.extend(below.into_iter().map(|l| format!("  {l}")));
                lines
            }
            What::Value { .. } | What::Kind { .. } | What::Unexpected(_) | What::Said(_) => vec![self.brief()],
        }
    }
}

fn in_short(tree: &Tree) -> String {
    cut(&tree.to_json())
}

fn cut(line: &str) -> String {
    if line.chars().count() <= WIDEST { line.to_owned() } else { line.chars().take(WIDEST).chain(['…']).collect() }
}

/// Without the commas: whether another line follows is no difference of this one.
fn in_lines(tree: &Tree) -> String {
    let pretty = tree.to_json_pretty();
    let lines: Vec<&str> = pretty.lines().map(|l| l.strip_suffix(',').unwrap_or(l)).collect();
    lines.join("\n")
}

fn a_kind(word: &str) -> String {
    match word {
        "exists" => "something".to_owned(),
        "absent" | "null" => "nothing".to_owned(),
        "object" | "array" => format!("an {word}"),
        word => format!("a {word}"),
    }
}

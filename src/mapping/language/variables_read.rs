//! Which variables a skeleton reads.

use super::expression::{Expr, Path};
use super::skeleton::{Skeleton, TextSegment};

/// Dotted paths: `item.index`.
#[derive(Debug, Default)]
pub struct Reads {
    /// Of the variables that the skeleton is given.
    pub given: Vec<String>,
    /// Of elements that it walks: `item.index` below `$each: turn.items`.
    pub walked: Vec<String>,
}

impl Reads {
    pub fn of(when: Option<&Expr>, skeleton: &Skeleton) -> Reads {
        let mut reads = Reads::default();
        if let Some(when) = when {
            reads.expr(when, &[]);
        }
        reads.skeleton(skeleton, &[]);
        reads
    }

    /// Of an expression alone.
    pub fn of_expr(expr: &Expr) -> Vec<String> {
        let mut reads = Reads::default();
        reads.expr(expr, &[]);
        reads.given
    }

    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.given.iter().chain(&self.walked).map(String::as_str)
    }

    fn skeleton(&mut self, node: &Skeleton, bound: &[Bound]) {
        match node {
            Skeleton::Constant(_) => {}
            Skeleton::Hole { expr, .. } => self.expr(expr, bound),
            Skeleton::Text(segments) => {
                for segment in segments {
                    match segment {
                        TextSegment::Text(_) => {}
                        TextSegment::Hole(expr) => self.expr(expr, bound),
                    }
                }
            }
            Skeleton::List(items) => items.iter().for_each(|s| self.skeleton(s, bound)),
            Skeleton::Map(entries) => entries.iter().for_each(|(_, s)| self.skeleton(s, bound)),
            Skeleton::Each { list, name, filter, body } => {
                self.expr(list, bound);
                let inner = with(bound, Bound { name: name.to_string(), stands_for: None });
                if let Some(filter) = filter {
                    self.expr(filter, &inner);
                }
                self.skeleton(body, &inner);
            }
            Skeleton::Switch { on, cases, default } => {
                self.expr(on, bound);
                cases.iter().for_each(|(_, s)| self.skeleton(s, bound));
                default.iter().for_each(|s| self.skeleton(s, bound));
            }
            Skeleton::With { name, value, body } => {
                let stands_for = match value {
                    Expr::Variable(path) => Some(path.0.join(".")),
                    Expr::Chain { .. } | Expr::Engine { .. } => None,
                };
                self.expr(value, bound);
                self.skeleton(body, &with(bound, Bound { name: name.to_string(), stands_for }));
            }
            Skeleton::If { condition, then, otherwise } => {
                self.expr(condition, bound);
                self.skeleton(then, bound);
                otherwise.iter().for_each(|s| self.skeleton(s, bound));
            }
        }
    }

    fn expr(&mut self, expr: &Expr, bound: &[Bound]) {
        match expr {
            Expr::Variable(path) | Expr::Chain { path, .. } => self.path(path, bound),
            Expr::Engine { reads, .. } => reads.iter().for_each(|path| self.path(path, bound)),
        }
    }

    fn path(&mut self, path: &Path, bound: &[Bound]) {
        let Some((root, fields)) = path.0.split_first() else { return };
        let text = path.0.join(".");
        let (list, text) = match bound.iter().rev().find(|b| *b.name == **root) {
            None => (&mut self.given, text),
            Some(Bound { stands_for: None, .. }) => (&mut self.walked, text),
            // A part that was given `turn.usage` as `usage` reads the former.
            Some(Bound { stands_for: Some(other), .. }) => (
                &mut self.given,
                [other.as_str()].into_iter().chain(fields.iter().map(|f| &**f)).collect::<Vec<_>>().join("."),
            ),
        };
        if !list.contains(&text) {
            list.push(text);
        }
    }
}

/// A name that a directive gives, and the variable that it is another name of.
#[derive(Clone)]
struct Bound {
    name: String,
    stands_for: Option<String>,
}

fn with(bound: &[Bound], one: Bound) -> Vec<Bound> {
    bound.iter().cloned().chain([one]).collect()
}

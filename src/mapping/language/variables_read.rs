//! Which variables a skeleton reads.

use super::expression::{Expression, VariablePath};
use super::skeleton::{Skeleton, TextSegment};

/// The variables that a skeleton reads, as dotted paths: `item.index`.
#[derive(Debug, Default)]
pub struct VariablesRead {
    /// Paths of variables in scope.
    pub given: Vec<String>,
    /// Paths of elements of `$each`: `item.index` below `$each: turn.items`.
    pub elements: Vec<String>,
}

impl VariablesRead {
    pub fn of(when: Option<&Expression>, skeleton: &Skeleton) -> VariablesRead {
        let mut reads = VariablesRead::default();
        if let Some(when) = when {
            reads.expression(when, &[]);
        }
        reads.skeleton(skeleton, &[]);
        reads
    }

    /// The variables that an expression reads.
    pub fn of_expression(expression: &Expression) -> Vec<String> {
        let mut reads = VariablesRead::default();
        reads.expression(expression, &[]);
        reads.given
    }

    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.given.iter().chain(&self.elements).map(String::as_str)
    }

    fn skeleton(&mut self, node: &Skeleton, bound: &[Binding]) {
        match node {
            Skeleton::Constant(_) => {}
            Skeleton::Placeholder { expression, .. } => self.expression(expression, bound),
            Skeleton::Text(segments) => {
                for segment in segments {
                    match segment {
                        TextSegment::Text(_) => {}
                        TextSegment::Placeholder(expression) => self.expression(expression, bound),
                    }
                }
            }
            Skeleton::List(items) => items.iter().for_each(|s| self.skeleton(s, bound)),
            Skeleton::Map(entries) => entries.iter().for_each(|(_, s)| self.skeleton(s, bound)),
            Skeleton::Each { list, name, filter, body } => {
                self.expression(list, bound);
                let inner = with(bound, Binding { name: name.to_string(), alias_of: None });
                if let Some(filter) = filter {
                    self.expression(filter, &inner);
                }
                self.skeleton(body, &inner);
            }
            Skeleton::Switch { on, cases, default } => {
                self.expression(on, bound);
                cases.iter().for_each(|(_, s)| self.skeleton(s, bound));
                default.iter().for_each(|s| self.skeleton(s, bound));
            }
            Skeleton::With { name, value, body } => {
                let alias_of = match value {
                    Expression::Variable(path) => Some(path.0.join(".")),
                    Expression::Chain { .. } | Expression::Jinja { .. } => None,
                };
                self.expression(value, bound);
                self.skeleton(body, &with(bound, Binding { name: name.to_string(), alias_of }));
            }
            Skeleton::If { condition, then, otherwise } => {
                self.expression(condition, bound);
                self.skeleton(then, bound);
                otherwise.iter().for_each(|s| self.skeleton(s, bound));
            }
        }
    }

    fn expression(&mut self, expression: &Expression, bound: &[Binding]) {
        match expression {
            Expression::Variable(path) | Expression::Chain { path, .. } => self.path(path, bound),
            Expression::Jinja { variables, .. } => variables.iter().for_each(|path| self.path(path, bound)),
        }
    }

    fn path(&mut self, path: &VariablePath, bound: &[Binding]) {
        let Some((root, fields)) = path.0.split_first() else { return };
        let text = path.0.join(".");
        let (list, text) = match bound.iter().rev().find(|b| *b.name == **root) {
            None => (&mut self.given, text),
            Some(Binding { alias_of: None, .. }) => (&mut self.elements, text),
            // A fragment with `with: { usage: turn.usage }` reads `turn.usage`.
            Some(Binding { alias_of: Some(other), .. }) => (
                &mut self.given,
                [other.as_str()].into_iter().chain(fields.iter().map(|f| &**f)).collect::<Vec<_>>().join("."),
            ),
        };
        if !list.contains(&text) {
            list.push(text);
        }
    }
}

/// A name that a directive defines, and the variable of which it is an alias.
#[derive(Clone)]
struct Binding {
    name: String,
    alias_of: Option<String>,
}

fn with(bound: &[Binding], one: Binding) -> Vec<Binding> {
    bound.iter().cloned().chain([one]).collect()
}

//! Which variables a skeleton reads.

use super::expression::{Expression, VariablePath};
use super::skeleton::Skeleton;
use super::visitor::Binding;

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
        when.into_iter().flat_map(Expression::variables).for_each(|path| reads.add(path, &[]));
        skeleton.visit(&mut |visited| {
            visited.expression.variables().iter().for_each(|path| reads.add(path, visited.bound));
        });
        reads
    }

    /// The variables that an expression reads.
    pub fn of_expression(expression: &Expression) -> Vec<String> {
        let mut reads = VariablesRead::default();
        expression.variables().iter().for_each(|path| reads.add(path, &[]));
        reads.given
    }

    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.given.iter().chain(&self.elements).map(String::as_str)
    }

    fn add(&mut self, path: &VariablePath, bound: &[Binding]) {
        let Some((root, fields)) = path.0.split_first() else { return };
        let list = match bound.iter().rposition(|b| *b.name == **root).map(|at| (at, bound[at].alias_of)) {
            // A fragment with `with: { usage: turn.usage }` reads `turn.usage`.
            Some((at, Some(other))) => {
                return self.add(&VariablePath(other.0.iter().chain(fields).cloned().collect()), &bound[..at]);
            }
            Some((_, None)) => &mut self.elements,
            None => &mut self.given,
        };
        let text = path.0.join(".");
        if !list.contains(&text) {
            list.push(text);
        }
    }
}

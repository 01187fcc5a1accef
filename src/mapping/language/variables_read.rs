//! Which variables a skeleton reads.

use super::expression::{Expression, VariablePath};
use super::skeleton::Skeleton;
use super::visitor::Binding;
use std::borrow::Cow;

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
        let (list, text) = match ResolvedPath::of(path, bound) {
            ResolvedPath::Given(path) => (&mut self.given, path.0.join(".")),
            ResolvedPath::Element(path) => (&mut self.elements, path.0.join(".")),
        };
        if !list.contains(&text) {
            list.push(text);
        }
    }
}

/// A path without aliases: a fragment with `with: { usage: turn.usage }` reads `turn.usage`.
pub enum ResolvedPath<'p> {
    /// It begins with a variable in scope.
    Given(Cow<'p, VariablePath>),
    /// It begins with an element of `$each`, or with a computed value.
    Element(Cow<'p, VariablePath>),
}

impl<'p> ResolvedPath<'p> {
    pub fn of(path: &'p VariablePath, bound: &[Binding]) -> ResolvedPath<'p> {
        let mut path = Cow::Borrowed(path);
        let mut bound = bound;
        loop {
            let Some((root, fields)) = path.0.split_first() else { return ResolvedPath::Given(path) };
            let Some(at) = bound.iter().rposition(|b| *b.name == **root) else { return ResolvedPath::Given(path) };
            let Some(other) = bound[at].alias_of else { return ResolvedPath::Element(path) };
            path = Cow::Owned(VariablePath::new(other.0.iter().chain(fields).cloned().collect()));
            bound = &bound[..at];
        }
    }
}

//! Visits the expressions of a skeleton, with the names that the directives around them define.

use super::expression::{Expression, VariablePath};
use super::skeleton::{Skeleton, TextSegment};

/// One expression of a skeleton.
pub struct VisitedExpression<'s, 'b> {
    pub expression: &'s Expression,
    /// The result is the value itself: not part of a text, not left out when it is null, no condition.
    pub is_value: bool,
    /// The result is written: not a condition, and not the list of `$each`.
    pub is_written: bool,
    /// Inner names last.
    pub bound: &'b [Binding<'s>],
}

/// A name that a directive defines.
pub struct Binding<'s> {
    pub name: &'s str,
    /// The variable that a fragment uses under this name; `None` for the elements of `$each`.
    pub alias_of: Option<&'s VariablePath>,
    /// The list of which `$each` gives the elements this name.
    pub element_of: Option<&'s VariablePath>,
}

impl Skeleton {
    /// Visits all expressions in the order of the text.
    pub fn visit<'s>(&'s self, visit: &mut dyn FnMut(VisitedExpression<'s, '_>)) {
        Visitor { visit, bound: Vec::new() }.skeleton(self);
    }
}

struct Visitor<'s, 'v> {
    visit: &'v mut dyn FnMut(VisitedExpression<'s, '_>),
    bound: Vec<Binding<'s>>,
}

impl<'s> Visitor<'s, '_> {
    fn skeleton(&mut self, node: &'s Skeleton) {
        match node {
            Skeleton::Constant(_) => {}
            Skeleton::Placeholder { expression, optional } => {
                (self.visit)(VisitedExpression {
                    expression,
                    is_value: !optional,
                    is_written: true,
                    bound: &self.bound,
                });
            }
            Skeleton::Text(segments) => segments.iter().for_each(|segment| match segment {
                TextSegment::Text(_) => {}
                TextSegment::Placeholder(expression) => self.expression(expression, true),
            }),
            Skeleton::List(items) | Skeleton::Merge(items) => items.iter().for_each(|item| self.skeleton(item)),
            Skeleton::Map(entries) => entries.iter().for_each(|(_, value)| self.skeleton(value)),
            Skeleton::Each { list, name, filter, body } => {
                self.expression(list, false);
                self.bound.push(Binding { name, alias_of: None, element_of: variable(list) });
                filter.iter().for_each(|filter| self.expression(filter, false));
                self.skeleton(body);
                self.bound.pop();
            }
            Skeleton::Switch { on, cases, default } => {
                self.expression(on, false);
                cases.iter().for_each(|(_, case)| self.skeleton(case));
                default.iter().for_each(|case| self.skeleton(case));
            }
            Skeleton::With { name, value, body } => {
                let alias_of = variable(value);
                // An alias is read where it is used; any other value is read here.
                self.expression(value, alias_of.is_none());
                self.bound.push(Binding { name, alias_of, element_of: None });
                self.skeleton(body);
                self.bound.pop();
            }
            Skeleton::Reject { message, param } => {
                self.skeleton(message);
                param.iter().for_each(|param| self.skeleton(param));
            }
            Skeleton::If { condition, then, otherwise } => {
                self.expression(condition, false);
                self.skeleton(then);
                otherwise.iter().for_each(|other| self.skeleton(other));
            }
        }
    }

    fn expression(&mut self, expression: &'s Expression, is_written: bool) {
        (self.visit)(VisitedExpression { expression, is_value: false, is_written, bound: &self.bound });
    }
}

fn variable(expression: &Expression) -> Option<&VariablePath> {
    match expression {
        Expression::Variable(path) => Some(path),
        Expression::Chain { .. } | Expression::Jinja { .. } => None,
    }
}

//! Evaluates conditions, and choices by conditions, without the template engine where that has the same result.

use super::interpreter::{RenderError, filtered, run};
use super::{Scope, Value};
use crate::domain::Draft;
use crate::mapping::language::expression::{Expression, ExpressionPool};
use crate::mapping::language::plain_condition::{PlainChoice, PlainCondition, PlainValue};
use std::cmp::Ordering;

/// Evaluates a condition.
pub fn is_true(expression: &Expression, scope: &Scope, pool: &ExpressionPool) -> Result<bool, RenderError> {
    match expression {
        Expression::Variable(path) => Ok(scope.get(path).is_truthy()),
        Expression::Chain { path, filters, .. } => Ok(is_truthy(filtered(path, filters, scope))),
        Expression::Jinja { condition, .. } => match condition.as_ref().and_then(|plain| is_met(plain, scope)) {
            Some(is_met) => Ok(is_met),
            None => run(expression, scope, pool).map(|value| value.is_true()),
        },
    }
}

/// `None`: only the template engine can compare the values.
pub(super) fn is_met(condition: &PlainCondition, scope: &Scope) -> Option<bool> {
    match condition {
        PlainCondition::IsTrue(path) => Some(scope.get(path).is_truthy()),
        PlainCondition::IsElementTrue { list, at, field } => {
            let list = scope.get(list);
            // What is no list, or has no such element, is left to the template engine.
            (*at < list.len()).then(|| match (list.element(*at), field) {
                (element, Some((name, field))) => element.named_field(name, *field).is_truthy(),
                (element, None) => element.is_truthy(),
            })
        }
        PlainCondition::IsNone(path) => Some(scope.get(path).is_null()),
        PlainCondition::HasText(path, text) => scope.get(path).has_text(text),
        PlainCondition::Compares(path, orderings, number) => {
            let value = scope.get(path);
            // For the template engine, null is less than every number.
            let ordering = match value.is_null() {
                true => Some(Ordering::Less),
                false => value.as_int().map(|int| int.cmp(number)),
            };
            ordering.map(|ordering| orderings.contains(&ordering))
        }
        PlainCondition::Not(inner) => is_met(inner, scope).map(|is_met| !is_met),
        PlainCondition::And(left, right) => {
            if is_met(left, scope)? {
                is_met(right, scope)
            } else {
                Some(false)
            }
        }
        PlainCondition::Or(left, right) => {
            if is_met(left, scope)? {
                Some(true)
            } else {
                is_met(right, scope)
            }
        }
    }
}

/// The value of a choice; `None`: only the template engine can evaluate its condition.
pub(super) fn chosen<'a>(choice: &'a PlainChoice, scope: &Scope<'a>) -> Option<Draft<'a>> {
    let value = if is_met(&choice.condition, scope)? { &choice.then } else { &choice.otherwise };
    Some(match value {
        PlainValue::Variable(path) => scope.get(path).into_draft(),
        PlainValue::Constant(tree) => Draft::Tree(tree),
    })
}

/// As in Jinja.
fn is_truthy(value: Draft) -> bool {
    Value::Tree(&value.into_tree()).is_truthy()
}

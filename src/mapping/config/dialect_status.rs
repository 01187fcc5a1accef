//! The HTTP statuses of a dialect's errors (`status:`, and in `faults:`): constants and tables of others than 400 to 599
//! are errors.

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::Tree;
use crate::mapping::language::expression::{Expression, Filter};
use crate::mapping::language::skeleton::Skeleton;
use crate::mapping::source::field_reader::{LoadContext, constant};
use crate::mapping::source::yaml::{Node, YamlKind};

/// The statuses that an error can have.
pub const ERROR_STATUSES: std::ops::RangeInclusive<i64> = 400..=599;

/// Checks `faults:`: what its members `status` can be.
pub fn check_faults(node: &Node, skeleton: &Skeleton, cx: LoadContext) {
    node.visit("", &mut |key, value| {
        if key == "status" {
            check_constant(value, cx);
        }
    });
    check_member(skeleton, cx);
}

/// Checks `status:`: every value that it can have.
pub fn check_status(node: &Node, skeleton: &Skeleton, cx: LoadContext) {
    node.visit("", &mut |_, value| check_constant(value, cx));
    check_tables(skeleton, cx);
}

fn check_constant(node: &Node, cx: LoadContext) {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_constant = match &node.kind {
        YamlKind::Int(_) | YamlKind::Float(_) => true,
        YamlKind::Text(text) => is_number(text),
        YamlKind::Null | YamlKind::Bool(_) | YamlKind::List(_) | YamlKind::Map(_) => false,
    };
    if is_constant {
        check(&constant(node), node.span, cx);
    }
}

/// The member `status` of each map that the skeleton can be.
fn check_member(skeleton: &Skeleton, cx: LoadContext) {
    match skeleton {
        Skeleton::Map(members) => {
            members.iter().filter(|(name, _)| &**name == "status").for_each(|(_, value)| check_tables(value, cx));
        }
        Skeleton::Switch { cases, default, .. } => {
            let cases = cases.iter().map(|(_, case)| case).chain(default.as_deref());
            cases.for_each(|case| check_member(case, cx));
        }
        Skeleton::With { body, .. } => check_member(body, cx),
        Skeleton::Merge(maps) => maps.iter().for_each(|map| check_member(map, cx)),
        Skeleton::If { then, otherwise, .. } => {
            [Some(then), otherwise.as_ref()].into_iter().flatten().for_each(|branch| check_member(branch, cx));
        }
        Skeleton::Constant(_) | Skeleton::Placeholder { .. } | Skeleton::Text(_) | Skeleton::List(_) => {}
        Skeleton::Each { .. } | Skeleton::Reject { .. } => {}
    }
}

/// The tables of which the skeleton can be a value.
fn check_tables(skeleton: &Skeleton, cx: LoadContext) {
    skeleton.visit(&mut |visited| {
        let Expression::Chain { filters, .. } = visited.expression else { return };
        for filter in filters {
            if let (Filter::Table(table), true) = (filter, visited.is_value) {
                table.values().for_each(|(value, span)| check(value, span, cx));
            }
        }
    });
}

fn check(value: &Tree, span: Span, cx: LoadContext) {
    let status = value.as_i64().or_else(|| value.as_str()?.parse().ok());
    let is_number = matches!(value, Tree::Num(_));
    if status.is_some_and(|status| !ERROR_STATUSES.contains(&status)) || status.is_none() && is_number {
        let message = format!("{} is no HTTP status of an error", value.to_json().trim_matches('"'));
        let help = "an error has a status from 400 to 599";
        cx.add(Diagnostic::new(Code::UnknownValue, span, message).help(help));
    }
}

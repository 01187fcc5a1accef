//! The requirements of a condition on a node: the types and values that it may have.

use crate::diagnostics::Span;
use crate::domain::Tree;
use crate::mapping::language::condition::{Condition, ConditionTest};
use crate::mapping::language::field::scalar_text;
use crate::mapping::language::selector::{Selector, SelectorStart};
use std::fmt;

/// One requirement, and its text for messages.
#[derive(Clone, Debug)]
pub(super) struct Requirement {
    target: Target,
    allowed: ValueSet,
    /// `$.type = a`
    text: String,
    pub span: Span,
}

/// The node of a condition: the number of enclosing `each:` loops and the steps from there, or the text of a path that
/// is not that simple.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Steps { depth: usize, steps: Vec<String> },
    Other { depth: usize, text: String },
}

#[derive(Clone, Debug)]
struct ValueSet {
    types: Vec<&'static str>,
    /// `None`: every value of these types.
    values: Option<Vec<Tree>>,
}

/// The type of a node that does not exist.
const MISSING: &str = "nothing";
const PRESENT_TYPES: &[&str] = &["string", "number", "boolean", "object", "array"];

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Requirement {
    /// `event: [ a, b ]`: the event name is one of these.
    pub fn of_event(key: &Selector, names: &[String], span: Span) -> Option<Requirement> {
        // An event without a name has the empty name.
        if names.is_empty() || names.iter().any(String::is_empty) {
            return None;
        }
        // A number or a boolean can also be a name.
        let bare = names.iter().filter_map(|name| Tree::parse(name.as_bytes()).ok());
        let bare = bare.filter(|value| matches!(value.type_name(), "number" | "boolean"));
        let values: Vec<Tree> = names.iter().map(|name| Tree::from(name.as_str())).chain(bare).collect();
        let text = format!("{} = {}", key.text, names.join(" or "));
        let target = target(key, 0);
        let allowed = ValueSet { types: vec!["string", "number", "boolean"], values: Some(values) };
        Some(Requirement { target, allowed, text, span })
    }
}

impl ValueSet {
    fn of(test: &ConditionTest) -> ValueSet {
        match test {
            ConditionTest::Exists => ValueSet { types: PRESENT_TYPES.to_vec(), values: None },
            ConditionTest::Absent => ValueSet { types: vec![MISSING, "null"], values: None },
            ConditionTest::Type(name) => ValueSet { types: vec![*name], values: None },
            ConditionTest::OneOf(values) => {
                let mut types: Vec<&'static str> = values.iter().map(Tree::type_name).collect();
                types.dedup();
                ValueSet { types, values: Some(values.clone()) }
            }
        }
    }

    fn has_type(&self, value: &Tree) -> bool {
        self.types.contains(&value.type_name())
    }

    /// Whether any value is in both sets.
    fn intersects(&self, other: &ValueSet) -> bool {
        let has = |allowed: &ValueSet, value: &Tree| match &allowed.values {
            Some(values) => values.iter().any(|v| v == value || scalar_text(v) == scalar_text(value)),
            None => allowed.has_type(value),
        };
        match (&self.values, &other.values) {
            (Some(values), _) => values.iter().any(|value| has(other, value)),
            (None, Some(values)) => values.iter().any(|value| has(self, value)),
            (None, None) => self.types.iter().any(|t| other.types.contains(t)),
        }
    }

    /// Whether every value of this set is in the other.
    fn is_subset_of(&self, other: &ValueSet) -> bool {
        match (&self.values, &other.values) {
            (Some(values), None) => values.iter().all(|value| other.has_type(value)),
            (Some(values), Some(others)) => values.iter().all(|value| others.contains(value)),
            (None, None) => self.types.iter().all(|t| other.types.contains(t)),
            (None, Some(_)) => false,
        }
    }

    fn is_present(&self) -> bool {
        !self.types.contains(&MISSING)
    }
}

/// `depth`: how many `each:` loops contain the conditions.
pub(super) fn requirements(conditions: &[Condition], depth: usize) -> Vec<Requirement> {
    conditions
        .iter()
        .map(|condition| Requirement {
            target: target(&condition.selector, depth),
            allowed: ValueSet::of(&condition.test),
            text: text(&condition.selector.text, &condition.test),
            span: condition.span,
        })
        .collect()
}

/// Two requirements that no value can satisfy together, or one that no value can satisfy.
pub(super) fn contradiction(all: &[Requirement]) -> Option<(&Requirement, &Requirement)> {
    for (at, one) in all.iter().enumerate() {
        if one.allowed.values.as_ref().is_some_and(Vec::is_empty) {
            return Some((one, one));
        }
        for other in &all[at + 1..] {
            if !compatible(one, other) || !compatible(other, one) {
                return Some((one, other));
            }
        }
    }
    None
}

fn compatible(one: &Requirement, other: &Requirement) -> bool {
    if one.target == other.target {
        return one.allowed.intersects(&other.allowed);
    }
    match required_container(one, other) {
        // A node with a member is an object; a node with an element is an array.
        Some(needed) if other.allowed.is_present() => {
            one.allowed.intersects(&ValueSet { types: vec![needed], values: None })
        }
        Some(_) | None => true,
    }
}

/// The type that the outer node must have to contain the inner one.
fn required_container(outer: &Requirement, inner: &Requirement) -> Option<&'static str> {
    match (&outer.target, &inner.target) {
        (Target::Steps { depth: a, steps: outer }, Target::Steps { depth: b, steps: inner }) if a == b => {
            let next = inner.strip_prefix(outer.as_slice())?.first()?;
            Some(if next.starts_with('[') { "array" } else { "object" })
        }
        _ => None,
    }
}

/// Whether the requirement is satisfied whenever all of these are.
pub(super) fn implied(requirement: &Requirement, by: &[Requirement]) -> bool {
    by.iter().any(|known| {
        if known.target == requirement.target {
            return known.allowed.is_subset_of(&requirement.allowed);
        }
        let held = ValueSet { types: required_container(requirement, known).into_iter().collect(), values: None };
        !held.types.is_empty() && known.allowed.is_present() && held.is_subset_of(&requirement.allowed)
    })
}

fn target(at: &Selector, depth: usize) -> Target {
    let depth = match at.start {
        SelectorStart::Root | SelectorStart::Head => 0,
        SelectorStart::Current => depth,
        SelectorStart::Parent => depth.saturating_sub(1),
        SelectorStart::Outer(around) => depth.saturating_sub(around),
    };
    match at.steps().filter(|_| at.start != SelectorStart::Head) {
        Some(steps) => Target::Steps { depth, steps },
        None => Target::Other { depth, text: at.text.clone() },
    }
}

fn text(at: &str, test: &ConditionTest) -> String {
    match test {
        ConditionTest::Exists => format!("{at} to exist"),
        ConditionTest::Absent => format!("{at} to be absent"),
        ConditionTest::Type(name) if name.starts_with(['o', 'a']) => format!("{at} to be an {name}"),
        ConditionTest::Type("null") => format!("{at} to be null"),
        ConditionTest::Type(name) => format!("{at} to be a {name}"),
        ConditionTest::OneOf(values) if values.is_empty() => format!("{at} to have a value of an empty list"),
        ConditionTest::OneOf(values) => {
            let dialect_label = values.iter().map(|v| scalar_text(v).unwrap_or_else(|| v.to_json()));
            format!("{at} = {}", dialect_label.collect::<Vec<_>>().join(" or "))
        }
    }
}

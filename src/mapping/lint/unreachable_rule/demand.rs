//! What a condition asks of a node: which types it may have, and which values.

use crate::diagnostics::Span;
use crate::domain::Tree;
use crate::mapping::language::condition::{Condition, Test};
use crate::mapping::language::field::scalar_text;
use crate::mapping::language::selector::{From, Selector};
use std::fmt;

/// One demand, and the words in which it was written.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    place: Place,
    allows: Allows,
    /// `$.type = a`
    words: String,
    pub span: Span,
}

/// A node: so many lists deep, and the steps from there; or a path that is not that simple, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Steps { depth: usize, steps: Vec<String> },
    Written { depth: usize, text: String },
}

#[derive(Clone, Debug)]
struct Allows {
    types: Vec<&'static str>,
    /// None: every value of these types.
    values: Option<Vec<Tree>>,
}

/// A node that is not there has this type here.
const NOTHING: &str = "nothing";
const PRESENT: &[&str] = &["string", "number", "boolean", "object", "array"];

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl Demand {
    /// `event: [ a, b ]`: the key is the text of one of these.
    pub fn of_event(key: &Selector, names: &[String], span: Span) -> Option<Demand> {
        // The empty name is also the name of an event without one.
        if names.is_empty() || names.iter().any(String::is_empty) {
            return None;
        }
        // A number or a boolean is a name, too.
        let bare = names.iter().filter_map(|name| Tree::parse(name.as_bytes()).ok());
        let bare = bare.filter(|value| matches!(value.type_name(), "number" | "boolean"));
        let values: Vec<Tree> = names.iter().map(|name| Tree::from(name.as_str())).chain(bare).collect();
        let words = format!("{} = {}", key.text, names.join(" or "));
        let place = place(key, 0);
        let allows = Allows { types: vec!["string", "number", "boolean"], values: Some(values) };
        Some(Demand { place, allows, words, span })
    }
}

impl Allows {
    fn of(test: &Test) -> Allows {
        match test {
            Test::Exists => Allows { types: PRESENT.to_vec(), values: None },
            Test::Absent => Allows { types: vec![NOTHING, "null"], values: None },
            Test::Type(name) => Allows { types: vec![*name], values: None },
            Test::OneOf(values) => {
                let mut types: Vec<&'static str> = values.iter().map(Tree::type_name).collect();
                types.dedup();
                Allows { types, values: Some(values.clone()) }
            }
        }
    }

    fn has_type(&self, value: &Tree) -> bool {
        self.types.contains(&value.type_name())
    }

    /// Is there anything that both allow?
    fn meets(&self, other: &Allows) -> bool {
        let has = |allows: &Allows, value: &Tree| match &allows.values {
            Some(values) => values.iter().any(|v| v == value || scalar_text(v) == scalar_text(value)),
            None => allows.has_type(value),
        };
        match (&self.values, &other.values) {
            (Some(values), _) => values.iter().any(|value| has(other, value)),
            (None, Some(values)) => values.iter().any(|value| has(self, value)),
            (None, None) => self.types.iter().any(|t| other.types.contains(t)),
        }
    }

    /// Does what this allows satisfy the other in every case?
    fn within(&self, other: &Allows) -> bool {
        match (&self.values, &other.values) {
            (Some(values), None) => values.iter().all(|value| other.has_type(value)),
            (Some(values), Some(others)) => values.iter().all(|value| others.contains(value)),
            (None, None) => self.types.iter().all(|t| other.types.contains(t)),
            (None, Some(_)) => false,
        }
    }

    fn is_there(&self) -> bool {
        !self.types.contains(&NOTHING)
    }
}

/// `depth`: how many lists the conditions stand in.
pub(super) fn demands(conditions: &[Condition], depth: usize) -> Vec<Demand> {
    conditions
        .iter()
        .map(|condition| Demand {
            place: place(&condition.at, depth),
            allows: Allows::of(&condition.test),
            words: words(&condition.at.text, &condition.test),
            span: condition.span,
        })
        .collect()
}

/// Two demands that nothing can satisfy, or one.
pub(super) fn contradiction(all: &[Demand]) -> Option<(&Demand, &Demand)> {
    for (at, one) in all.iter().enumerate() {
        if one.allows.values.as_ref().is_some_and(Vec::is_empty) {
            return Some((one, one));
        }
        for other in &all[at + 1..] {
            if !agree(one, other) || !agree(other, one) {
                return Some((one, other));
            }
        }
    }
    None
}

fn agree(one: &Demand, other: &Demand) -> bool {
    if one.place == other.place {
        return one.allows.meets(&other.allows);
    }
    match holder(one, other) {
        // What has a member is a map; what has an element is a list.
        Some(needed) if other.allows.is_there() => one.allows.meets(&Allows { types: vec![needed], values: None }),
        Some(_) | None => true,
    }
}

/// The type that the first place must have so that the second can lie within it.
fn holder(outer: &Demand, inner: &Demand) -> Option<&'static str> {
    match (&outer.place, &inner.place) {
        (Place::Steps { depth: a, steps: outer }, Place::Steps { depth: b, steps: inner }) if a == b => {
            let next = inner.strip_prefix(outer.as_slice())?.first()?;
            Some(if next.starts_with('[') { "array" } else { "object" })
        }
        _ => None,
    }
}

/// Does it hold wherever all of these hold?
pub(super) fn implied(demand: &Demand, by: &[Demand]) -> bool {
    by.iter().any(|known| {
        if known.place == demand.place {
            return known.allows.within(&demand.allows);
        }
        let held = Allows { types: holder(demand, known).into_iter().collect(), values: None };
        !held.types.is_empty() && known.allows.is_there() && held.within(&demand.allows)
    })
}

fn place(at: &Selector, depth: usize) -> Place {
    let depth = match at.from {
        From::Root => 0,
        From::Here => depth,
        From::Around => depth.saturating_sub(1),
    };
    match at.steps() {
        Some(steps) => Place::Steps { depth, steps },
        None => Place::Written { depth, text: at.text.clone() },
    }
}

fn words(at: &str, test: &Test) -> String {
    match test {
        Test::Exists => format!("{at} to be there"),
        Test::Absent => format!("{at} to be absent"),
        Test::Type(name) if name.starts_with(['o', 'a']) => format!("{at} to be an {name}"),
        Test::Type("null") => format!("{at} to be null"),
        Test::Type(name) => format!("{at} to be a {name}"),
        Test::OneOf(values) if values.is_empty() => format!("{at} to be one of nothing"),
        Test::OneOf(values) => {
            let shown = values.iter().map(|v| scalar_text(v).unwrap_or_else(|| v.to_json()));
            format!("{at} = {}", shown.collect::<Vec<_>>().join(" or "))
        }
    }
}

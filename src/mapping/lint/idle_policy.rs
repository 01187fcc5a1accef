//! A policy that changes nothing in this dialect.
//!
//! ## Why
//!
//! It looks as if it did something, and a client that needs it is not served. A policy shows where an expression reads
//! `policy.NAME`, in the variables that it fills, or in the moments that it brings; a dialect that has none of these cannot
//! tell its values apart. Saying the value that a policy has anyway is no mistake.
//!
//! ## Example
//!
//! ```yaml
//! profile: quiet
//! policies:
//!   empty_message_item: { chat: always }
//! ```
//!
//! ```text
//! warning[RF206]: `empty_message_item` changes nothing in `chat`
//! ```
//!
//! ## Mend
//!
//! Take it out, or set it for the dialect that was meant. A policy that a dialect declares itself (`own_policies:`) is read as
//! `policy.NAME` by its frames; one that nothing reads can go.

use super::texts::{paths, walk};
use super::{Set, Variant};
use crate::canon::Policies;
use crate::canon::policy::{BUILT_IN, Shows};
use crate::diag::{Code, Diagnostic, Span};
use crate::mapping::dialect::DialectPlan;
use crate::mapping::yaml::{Entry, Kind, Node};
use std::collections::HashSet;

/// What a dialect can show, as its own texts say.
struct Sight<'s> {
    dialect: &'s DialectPlan,
    /// Every dotted name that stands in it, with the items of a list under the name `item`.
    paths: HashSet<String>,
}

/// Where the items of an answer are listed or numbered.
const ITEMS: &[&str] = &["turn.items", "choice.items", "item.index"];

pub(super) fn check(set: &Set) {
    for node in &set.files.dialects {
        let Some(name) = node.get("dialect").and_then(Node::as_text) else { continue };
        let sights: Vec<Sight> = sights(set, |v| v.dialect == name);
        for entry in node.get("policies").and_then(Node::as_map).unwrap_or(&[]) {
            if !is_default(&entry.key, &entry.value, &sights) && !sights.iter().any(|s| s.shows(&entry.key)) {
                say(set, entry.key_span, &entry.key, &format!("in `{name}`"));
            }
        }
    }
    for profile in set.profiles {
        for entry in profile.policies {
            match &entry.value.kind {
                Kind::Map(by_dialect) => by_dialect.iter().for_each(|one| for_one(set, profile.name, &entry.key, one)),
                _ => for_all(set, profile.name, entry),
            }
        }
    }
}

/// `role_content: { chat: absent }`
fn for_one(set: &Set, profile: &str, policy: &str, one: &Entry) {
    let sights = sights(set, |v| v.dialect == one.key && v.profile == Some(profile));
    if sights.iter().any(|s| s.differs(set, policy)) && !sights.iter().any(|s| s.shows(policy)) {
        say(set, one.key_span, policy, &format!("in `{}`", one.key));
    }
}

/// `usage: zeros`
fn for_all(set: &Set, profile: &str, entry: &Entry) {
    let sights = sights(set, |v| v.profile == Some(profile));
    if sights.iter().any(|s| s.differs(set, &entry.key)) && !sights.iter().any(|s| s.shows(&entry.key)) {
        say(set, entry.key_span, &entry.key, "in any dialect");
    }
}

fn say(set: &Set, span: Span, policy: &str, wherever: &str) {
    let message = format!("`{policy}` changes nothing {wherever}");
    let spec = BUILT_IN.iter().find(|p| p.name == policy);
    let help = match spec.map(|spec| spec.shows) {
        None | Some(Shows::WhereRead) => format!("it shows only where an expression reads `policy.{policy}`"),
        Some(Shows::In(variables)) => format!("it shows in {}, which nothing reads", variables.join(", ")),
        Some(Shows::At(moments)) => {
            let words: Vec<&str> = moments.iter().map(|m| m.word()).collect();
            format!("it shows at {}, which no frame tells", words.join(", "))
        }
        Some(Shows::Anywhere) => return,
    };
    set.cx.add(Diagnostic::new(Code::IdlePolicy, span, message).help(help));
}

fn sights<'s>(set: &'s Set, of: impl Fn(&Variant) -> bool) -> Vec<Sight<'s>> {
    let variants = set.variants.iter().filter(|v| of(v));
    variants.filter_map(|v| Some(Sight::of(set.plan.dialect(v.dialect, v.profile)?, v, set))).collect()
}

/// The first of the values is what nobody has to set.
fn is_default(policy: &str, value: &Node, sights: &[Sight]) -> bool {
    let own = sights.iter().flat_map(|s| &s.dialect.resolved.own).find(|p| p.name == policy);
    let first = match own {
        Some(own) => own.values.first().map(String::as_str),
        None => BUILT_IN.iter().find(|p| p.name == policy && !p.list).and_then(|p| p.values.first().copied()),
    };
    first.is_some() && first == value.as_text()
}

impl<'s> Sight<'s> {
    fn of(dialect: &'s DialectPlan, variant: &Variant, set: &Set) -> Sight<'s> {
        let mut sight = Sight { dialect, paths: HashSet::new() };
        // The names under which the items of a list are seen: `$each: turn.items, as: i`.
        let mut items: HashSet<String> = HashSet::from(["item".to_owned()]);
        let parts = set.files.shared.as_ref().and_then(|n| n.get("parts"));
        let sections = ["parts", "stream", "body", "errors"].iter().filter_map(|key| variant.node.get(key));
        let nodes: Vec<&Node> = sections.chain(parts).collect();
        for node in &nodes {
            aliases(node, &mut items);
        }
        for node in &nodes {
            walk(node, "", &mut |_, text| {
                for path in paths(text) {
                    let (root, rest) = path.split_once('.').unwrap_or((path, ""));
                    if items.contains(root) && !rest.is_empty() {
                        sight.paths.insert(format!("item.{rest}"));
                    }
                    sight.paths.insert(path.to_owned());
                }
            });
        }
        sight
    }

    fn shows(&self, policy: &str) -> bool {
        let reads = |name: &str| {
            self.paths.iter().any(|p| p.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
        };
        let shows = BUILT_IN.iter().find(|p| p.name == policy).map_or(Shows::WhereRead, |p| p.shows);
        reads(&format!("policy.{policy}"))
            || match shows {
                Shows::WhereRead => false,
                Shows::In(variables) => variables.iter().any(|v| reads(v)),
                // Which items there are, and when, also shows where they are listed.
                Shows::At(moments) => {
                    moments.iter().any(|m| !self.dialect.frames(*m).is_empty()) || ITEMS.iter().any(|v| reads(v))
                }
                Shows::Anywhere => true,
            }
    }

    /// Is the value another one than without the profile?
    fn differs(&self, set: &Set, policy: &str) -> bool {
        let Some(plain) = set.plan.dialect(&self.dialect.name, None) else { return true };
        let (plain, now): (&Policies, &Policies) = (&plain.resolved.policies, &self.dialect.resolved.policies);
        match BUILT_IN.iter().find(|p| p.name == policy) {
            Some(spec) if spec.list => plain.finish_precedence != now.finish_precedence,
            Some(_) | None => plain.word(policy) != now.word(policy),
        }
    }
}

fn aliases(node: &Node, items: &mut HashSet<String>) {
    let walks_items = node.get("$each").and_then(Node::as_text).is_some_and(|list| {
        let last = list.rsplit('.').next().unwrap_or(list);
        matches!(last, "items" | "calls") && !list.starts_with("request.")
    });
    if walks_items && let Some(name) = node.get("as").and_then(Node::as_text) {
        items.insert(name.to_owned());
    }
    for entry in node.get("with").and_then(Node::as_map).unwrap_or(&[]) {
        if entry.value.as_text().is_some_and(|value| items.contains(value)) {
            items.insert(entry.key.clone());
        }
    }
    match &node.kind {
        Kind::List(list) => list.iter().for_each(|n| aliases(n, items)),
        Kind::Map(entries) => entries.iter().for_each(|e| aliases(&e.value, items)),
        Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) => {}
    }
}

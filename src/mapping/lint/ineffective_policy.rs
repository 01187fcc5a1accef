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

use super::Set;
use super::template_texts::{paths, walk};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::Policies;
use crate::domain::policy::{BUILT_IN, Shows};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::policy::variants::Group;
use crate::mapping::source::yaml::{Entry, Kind, Node};
use std::collections::HashSet;
use std::rc::Rc;

/// What a dialect can show under one profile, as its own texts say.
struct Sight<'s> {
    dialect: &'s DialectPlan,
    /// Every dotted name that stands in it, with the items of a list under the name `item`.
    paths: Rc<HashSet<String>>,
}

/// Where the items of an answer are listed or numbered.
const ITEMS: &[&str] = &["turn.items", "choice.items", "item.index"];

pub(super) fn check(set: &Set) {
    let sights = sights(set);
    for node in &set.files.dialects {
        let Some(name) = node.get("dialect").and_then(Node::as_text) else { continue };
        let shows = |policy: &str| sights.iter().any(|s| s.dialect.name == name && s.shows(policy));
        let own = node.get("own_policies").and_then(Node::as_map).unwrap_or(&[]);
        for entry in own.iter().filter(|entry| !shows(&entry.key)) {
            say(set, entry.key_span, &entry.key, &format!("in `{name}`"));
        }
        for entry in node.get("policies").and_then(Node::as_map).unwrap_or(&[]) {
            // Of one that nobody reads it is said where it is declared.
            let declared = own.iter().any(|o| o.key == entry.key);
            if !declared && !is_default(&entry.key, &entry.value) && !shows(&entry.key) {
                say(set, entry.key_span, &entry.key, &format!("in `{name}`"));
            }
        }
    }
    by_clients(set, &sights);
    for profile in set.profiles {
        let spoken: Vec<&Sight> =
            sights.iter().filter(|s| s.dialect.profile.as_deref() == Some(profile.name)).collect();
        let plain = |s: &Sight| set.plan.dialect(&s.dialect.name, None).map(|d| &**d);
        idle(set, profile.policies, &spoken, &plain, "in any dialect");
    }
}

/// Those that a route sets, or a rule by user agent, in what their clients get.
fn by_clients(set: &Set, sights: &[Sight]) {
    let gateway = &set.plan.gateway;
    // Without what is laid over a dialect and its profile.
    let files = |s: &Sight| set.plan.dialect(&s.dialect.name, s.dialect.profile.as_deref()).map(|d| &**d);
    for route in &gateway.routes {
        let own: Vec<Sight> = route.variants.0.iter().flat_map(|g| laid(g, sights)).collect();
        idle(set, &route.policies, &own.iter().collect::<Vec<_>>(), &files, &format!("in `{}`", route.dialect));
    }
    let groups = || gateway.routes.iter().flat_map(|r| &r.variants.0);
    for (at, rule) in gateway.by_user_agent.iter().enumerate() {
        let is_its = |g: &&Group| g.agent.as_ref().is_some_and(|agent| agent.rule == at);
        let its: Vec<Sight> = groups().filter(is_its).flat_map(|g| laid(g, sights)).collect();
        idle(set, &rule.policies, &its.iter().collect::<Vec<_>>(), &files, "at any route");
    }
}

/// What the clients of a group get.
fn laid<'s>(group: &'s Group, sights: &[Sight]) -> impl Iterator<Item = Sight<'s>> {
    group.variants.iter().filter_map(|variant| {
        let dialect = &*variant.plan;
        let of = |s: &&Sight| (&s.dialect.name, &s.dialect.profile) == (&dialect.name, &dialect.profile);
        sights.iter().find(of).map(|s| Sight { dialect, paths: s.paths.clone() })
    })
}

/// Says which of these change something, and nothing that is shown. `before`: without them.
fn idle<'s>(
    set: &'s Set,
    policies: &[Entry],
    spoken: &[&Sight<'s>],
    before: &dyn Fn(&Sight<'s>) -> Option<&'s DialectPlan>,
    wherever: &str,
) {
    for entry in policies {
        let policy = entry.key.as_str();
        let is_idle = |sights: &[&Sight<'s>]| {
            // Of one that nobody reads it is said where it is declared.
            let set_here = |s: &&Sight<'s>| !s.declares(policy) && s.differs(before(s), policy);
            sights.iter().any(set_here) && !sights.iter().any(|s| s.shows(policy))
        };
        match &entry.value.kind {
            // `role_content: { chat: absent }`
            Kind::Map(by_dialect) => {
                for one in by_dialect {
                    let of = |s: &&&Sight| s.dialect.name == one.key;
                    if is_idle(&spoken.iter().filter(of).copied().collect::<Vec<_>>()) {
                        say(set, one.key_span, policy, &format!("in `{}`", one.key));
                    }
                }
            }
            _ if is_idle(spoken) => say(set, entry.key_span, policy, wherever),
            _ => {}
        }
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

fn sights<'s>(set: &'s Set) -> Vec<Sight<'s>> {
    // Most profiles leave most dialects as they are: what stands in those is looked for once.
    let mut known: Vec<(&Node, Rc<HashSet<String>>)> = Vec::new();
    let mut sights = Vec::new();
    for variant in &set.variants {
        let Some(dialect) = set.plan.dialect(variant.dialect, variant.profile) else { continue };
        let node: &Node = &variant.node;
        let paths = match known.iter().find(|(n, _)| std::ptr::eq(*n, node)) {
            Some((_, paths)) => paths.clone(),
            None => {
                let paths = Rc::new(read_by(node, set));
                known.push((node, paths.clone()));
                paths
            }
        };
        sights.push(Sight { dialect, paths });
    }
    sights
}

/// The first of the values is what nobody has to set.
fn is_default(policy: &str, value: &Node) -> bool {
    let first = BUILT_IN.iter().find(|p| p.name == policy && !p.list).and_then(|p| p.values.first().copied());
    first.is_some() && first == value.as_text()
}

impl Sight<'_> {
    fn declares(&self, policy: &str) -> bool {
        self.dialect.resolved.own.iter().any(|own| own.name == policy)
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

    /// Is the value another one than before?
    fn differs(&self, before: Option<&DialectPlan>, policy: &str) -> bool {
        let Some(plain) = before else { return true };
        let (plain, now): (&Policies, &Policies) = (&plain.resolved.policies, &self.dialect.resolved.policies);
        match BUILT_IN.iter().find(|p| p.name == policy) {
            Some(spec) if spec.list => plain.finish_precedence != now.finish_precedence,
            Some(_) | None => plain.word(policy) != now.word(policy),
        }
    }
}

/// Every name that a dialect reads, in its own parts and in those that it shares.
fn read_by(node: &Node, set: &Set) -> HashSet<String> {
    // The names under which the items of a list are seen: `$each: turn.items, as: i`.
    let mut items: HashSet<String> = HashSet::from(["item".to_owned()]);
    let parts = set.files.shared.as_ref().and_then(|n| n.get("parts"));
    let sections = ["parts", "stream", "body", "errors"].iter().filter_map(|key| node.get(key));
    let nodes: Vec<&Node> = sections.chain(parts).collect();
    for node in &nodes {
        aliases(node, &mut items);
    }
    let mut read = HashSet::new();
    for node in &nodes {
        walk(node, "", &mut |_, text| {
            for path in paths(text) {
                if let Some((root, rest)) = path.split_once('.').filter(|(root, _)| items.contains(*root))
                    && root != "item"
                {
                    read.insert(format!("item.{rest}"));
                }
                if !read.contains(path) {
                    read.insert(path.to_owned());
                }
            }
        });
    }
    read
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

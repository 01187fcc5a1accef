//! The dialects of a set, as profiles and rules by user agent name them: what they are called, and which policies each
//! has of its own.

use super::resolve::Resolved;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::source::field_reader::Cx;
use crate::mapping::source::yaml::{Entry, Kind, Node};

pub struct Dialects<'d> {
    /// Also of those that have errors.
    pub names: Vec<&'d str>,
    own: Vec<Own<'d>>,
}

struct Own<'d> {
    dialect: &'d str,
    policy: &'d str,
    values: &'d Node,
}

impl<'d> Dialects<'d> {
    pub fn new(names: Vec<&'d str>, nodes: &'d [Node]) -> Dialects<'d> {
        let mut own = Vec::new();
        for node in nodes {
            let Some(dialect) = node.get("dialect").and_then(Node::as_text) else { continue };
            let entries = node.get("own_policies").and_then(Node::as_map).unwrap_or(&[]);
            own.extend(entries.iter().map(|e| Own { dialect, policy: &e.key, values: &e.value }));
        }
        Dialects { names, own }
    }

    /// Is the key the name of one? Says so if not.
    pub fn knows(&self, entry: &Entry, cx: Cx) -> bool {
        let known = self.names.contains(&entry.key.as_str());
        if !known {
            let message = format!("no dialect is called `{}`", entry.key);
            cx.unknown(Code::UnknownReference, entry.key_span, message, &entry.key, self.names.iter().copied());
        }
        known
    }

    /// A profile sets `reasoning: drop` for all dialects, and this one has no such policy.
    pub fn not_in_all(&self, policy: &str, said: Option<&str>, span: Span, base: &Resolved, cx: Cx) {
        let takes = |own: &&Own| said.is_some_and(|said| own.takes(said));
        let owners = self.owners(policy);
        let mut meant: Vec<&str> = owners.iter().copied().filter(takes).map(|own| own.dialect).collect();
        if meant.is_empty() {
            meant = owners.iter().map(|own| own.dialect).collect();
        }
        let each: Vec<String> = meant.iter().map(|dialect| format!("{dialect}: {}", said.unwrap_or("…"))).collect();
        let write = format!("`{policy}: {{ {} }}`", each.join(", "));
        self.say(policy, span, base, format!("not every dialect has a policy `{policy}`"), &write, cx);
    }

    /// The same for a variable, which names its dialect behind a dot.
    pub fn not_for_a_variable(&self, policy: &str, span: Span, base: &Resolved, cx: Cx) {
        let dotted: Vec<String> = self.owners(policy).iter().map(|own| format!("`{policy}.{}`", own.dialect)).collect();
        let write = dotted.join(" or ");
        // Another sentence than above: those that are the same are said once, with one help.
        let message = format!("not every dialect has a policy `{policy}` that a variable could set");
        self.say(policy, span, base, message, &write, cx);
    }

    /// A dialect is named, and another one has that policy.
    pub fn not_in(&self, dialect: &str, policy: &str, span: Span, base: &Resolved, cx: Cx) {
        self.say(policy, span, base, format!("`{dialect}` has no policy `{policy}`"), "", cx);
    }

    fn say(&self, policy: &str, span: Span, base: &Resolved, message: String, write: &str, cx: Cx) {
        let owners: Vec<String> = self.owners(policy).iter().map(|own| format!("`{}`", own.dialect)).collect();
        if owners.is_empty() {
            base.unknown(policy, span, cx);
            return;
        }
        let write = if write.is_empty() { String::new() } else { format!(": write {write}") };
        let help = format!("it belongs to {}{write}", owners.join(" and "));
        cx.add(Diagnostic::new(Code::UnknownPolicy, span, message).help(help));
    }

    fn owners(&self, policy: &str) -> Vec<&Own<'d>> {
        self.own.iter().filter(|own| own.policy == policy).collect()
    }
}

impl Own<'_> {
    fn takes(&self, value: &str) -> bool {
        matches!(&self.values.kind, Kind::List(list) if list.iter().any(|v| v.as_text() == Some(value)))
    }
}

//! The dialects of a set by name, with the custom policies that each declares: to check the policies of profiles and of
//! user-agent rules, which may apply to several dialects.

use super::resolve::ResolvedPolicies;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::yaml::{Entry, Node};
use std::sync::Arc;

pub struct DialectIndex<'d> {
    /// Includes dialects with errors.
    pub names: Vec<&'d str>,
    declarations: Vec<Declaration<'d>>,
}

/// A custom policy of a dialect.
struct Declaration<'d> {
    dialect: &'d str,
    policy: &'d str,
    values: &'d Node,
}

impl<'d> DialectIndex<'d> {
    pub fn new(names: Vec<&'d str>, nodes: impl Iterator<Item = &'d Arc<Node>>) -> DialectIndex<'d> {
        let mut declarations = Vec::new();
        for node in nodes {
            let Some(dialect) = node.get("dialect").and_then(Node::as_text) else { continue };
            let entries = node.get("custom_policies").and_then(Node::as_map).unwrap_or(&[]);
            declarations.extend(entries.iter().map(|e| Declaration { dialect, policy: &e.key, values: &e.value }));
        }
        DialectIndex { names, declarations }
    }

    /// Whether the key is the name of a dialect; reports it if not.
    pub fn check_dialect_name(&self, entry: &Entry, cx: LoadContext) -> bool {
        let known = self.names.contains(&entry.key.as_str());
        if !known {
            let message = format!("unknown dialect `{}`", entry.key);
            cx.unknown(Code::UnknownReference, entry.key_span, message, &entry.key, self.names.iter().copied());
        }
        known
    }

    /// Reports a setting for all dialects (`reasoning: drop`) of a policy that only some of them declare.
    pub fn report_not_in_all(
        &self,
        policy: &str,
        value: Option<&str>,
        span: Span,
        base: &ResolvedPolicies,
        cx: LoadContext,
    ) {
        let has_value = |d: &&Declaration| value.is_some_and(|value| d.has_value(value));
        let owners = self.owners(policy);
        let mut meant: Vec<&str> = owners.iter().copied().filter(has_value).map(|d| d.dialect).collect();
        if meant.is_empty() {
            meant = owners.iter().map(|d| d.dialect).collect();
        }
        let each: Vec<String> = meant.iter().map(|dialect| format!("{dialect}: {}", value.unwrap_or("…"))).collect();
        let write = format!("`{policy}: {{ {} }}`", each.join(", "));
        self.report_unknown(policy, span, base, format!("not every dialect has the policy `{policy}`"), &write, cx);
    }

    /// The same for an environment variable, which names its dialect after a dot.
    pub fn report_not_for_variable(&self, policy: &str, span: Span, base: &ResolvedPolicies, cx: LoadContext) {
        let dotted: Vec<String> = self.owners(policy).iter().map(|d| format!("`{policy}.{}`", d.dialect)).collect();
        let write = dotted.join(" or ");
        // Differs from the message above because equal messages are deduplicated and would share one help line.
        let message = format!("not every dialect has the policy `{policy}`, so a variable must name the dialect");
        self.report_unknown(policy, span, base, message, &write, cx);
    }

    /// Reports a setting for one dialect of a policy that only other dialects declare.
    pub fn report_not_in(&self, dialect: &str, policy: &str, span: Span, base: &ResolvedPolicies, cx: LoadContext) {
        self.report_unknown(policy, span, base, format!("the dialect `{dialect}` has no policy `{policy}`"), "", cx);
    }

    fn report_unknown(
        &self,
        policy: &str,
        span: Span,
        base: &ResolvedPolicies,
        message: String,
        write: &str,
        cx: LoadContext,
    ) {
        let owners: Vec<String> = self.owners(policy).iter().map(|d| format!("`{}`", d.dialect)).collect();
        if owners.is_empty() {
            base.unknown(policy, span, cx);
            return;
        }
        let write = if write.is_empty() { String::new() } else { format!(": write {write}") };
        let help = format!("it belongs to {}{write}", owners.join(" and "));
        cx.add(Diagnostic::new(Code::UnknownPolicy, span, message).help(help));
    }

    fn owners(&self, policy: &str) -> Vec<&Declaration<'d>> {
        self.declarations.iter().filter(|d| d.policy == policy).collect()
    }
}

impl Declaration<'_> {
    fn has_value(&self, value: &str) -> bool {
        self.values.as_list().is_some_and(|list| list.iter().any(|v| v.as_text() == Some(value)))
    }
}

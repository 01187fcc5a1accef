//! A policy that has no effect in this dialect.
//!
//! ## Why
//!
//! It looks as if it had an effect, and a client that needs it does not get it. A policy has an effect where an
//! expression reads `policy.NAME`, through the variables that it determines, or through the moments that it causes. A
//! dialect that uses none of these produces the same output for all values of the policy. Setting a policy to its
//! default is not reported.
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
//! warning[RF206]: `empty_message_item` has no effect in `chat`
//! ```
//!
//! ## Fix
//!
//! Remove it, or set it for the dialect that was meant. The frames of a dialect read a custom policy
//! (`custom_policies:`) as `policy.NAME`; one that nothing reads can be removed.

use super::LintContext;
use super::template_texts::{paths, texts};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::policy::{PolicyEffect, PolicySpec};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::policy::variants::VariantGroup;
use crate::mapping::source::layout::SetFile;
use crate::mapping::source::yaml::{Entry, Node, YamlKind};
use std::collections::HashSet;
use std::rc::Rc;

/// The variables that a dialect reads with one profile.
struct DialectReads<'s> {
    dialect: &'s DialectPlan,
    /// All dotted names in its expressions. Loop variables over items are listed as `item`.
    paths: Rc<HashSet<String>>,
}

/// Variables that list or number the items of a response.
const ITEMS: &[&str] = &["turn.items", "choice.items", "item.index"];

pub(super) fn check(context: &LintContext) {
    let all_reads = all_reads(context);
    for node in context.files.of(SetFile::Dialect) {
        let Some(name) = node.get("dialect").and_then(Node::as_text) else { continue };
        // A profile of which nothing has changed may be the one that reads the policy.
        let may_be_read = context.skipped.iter().any(|skipped| skipped.dialect == name);
        let is_read = |policy: &str| all_reads.iter().any(|s| s.dialect.name == name && s.has_effect(policy));
        let has_effect = |policy: &str| may_be_read || is_read(policy);
        let custom = node.get("custom_policies").and_then(Node::as_map).unwrap_or(&[]);
        for entry in custom.iter().filter(|entry| !has_effect(&entry.key)) {
            report(context, entry.key_span, &entry.key, &format!("in `{name}`"));
        }
        for entry in node.get("policies").and_then(Node::as_map).unwrap_or(&[]) {
            // An unused custom policy is reported where it is declared.
            let declared = custom.iter().any(|o| o.key == entry.key);
            let value = PolicySpec::find(&entry.key).zip(entry.value.as_text());
            let is_default = value.is_some_and(|(spec, value)| spec.is_default(value));
            if !declared && !is_default && !has_effect(&entry.key) {
                report(context, entry.key_span, &entry.key, &format!("in `{name}`"));
            }
        }
    }
    check_client_policies(context, &all_reads);
    for profile in context.profiles {
        let candidates: Vec<&DialectReads> =
            all_reads.iter().filter(|s| s.dialect.profile.as_deref() == Some(profile.name)).collect();
        let plain = |s: &DialectReads| context.plan.dialect(&s.dialect.name, None).map(|d| &**d);
        // Nor is a dialect compiled of which nothing has changed: the policy may have its effect there.
        if !context.skipped.iter().any(|skipped| skipped.profile.as_deref() == Some(profile.name)) {
            check_policies(context, &profile.policies, &candidates, &plain, "in any dialect");
        }
    }
}

/// Checks the policies of routes and user-agent rules, in the dialects that their clients get.
fn check_client_policies(context: &LintContext, all_reads: &[DialectReads]) {
    let gateway = &context.plan.gateway;
    // The dialect and profile without policies of the gateway.
    let files = |s: &DialectReads| context.plan.dialect(&s.dialect.name, s.dialect.profile.as_deref()).map(|d| &**d);
    for route in &gateway.routes {
        let own: Vec<DialectReads> = route.variants.0.iter().flat_map(|g| reads_of_group(g, all_reads)).collect();
        check_policies(
            context,
            &route.policies,
            &own.iter().collect::<Vec<_>>(),
            &files,
            &format!("in `{}`", route.dialect),
        );
    }
    let groups = || gateway.routes.iter().flat_map(|r| &r.variants.0);
    for (at, rule) in gateway.by_user_agent.iter().enumerate() {
        let of_rule = |g: &&VariantGroup| g.agent.as_ref().is_some_and(|agent| agent.rule == at);
        let reads: Vec<DialectReads> = groups().filter(of_rule).flat_map(|g| reads_of_group(g, all_reads)).collect();
        check_policies(context, &rule.policies, &reads.iter().collect::<Vec<_>>(), &files, "at any route");
    }
}

/// The dialects that the clients of a group get.
fn reads_of_group<'s>(group: &'s VariantGroup, all_reads: &[DialectReads]) -> impl Iterator<Item = DialectReads<'s>> {
    group.variants.iter().filter_map(|variant| {
        let dialect = &*variant.plan;
        let of = |s: &&DialectReads| (&s.dialect.name, &s.dialect.profile) == (&dialect.name, &dialect.profile);
        all_reads.iter().find(of).map(|s| DialectReads { dialect, paths: s.paths.clone() })
    })
}

/// Reports the policies that change a value without a visible effect. `before`: the dialect without these policies.
fn check_policies<'s>(
    context: &'s LintContext,
    policies: &[Entry],
    candidates: &[&DialectReads<'s>],
    before: &dyn Fn(&DialectReads<'s>) -> Option<&'s DialectPlan>,
    scope: &str,
) {
    for entry in policies {
        let policy = entry.key.as_str();
        let is_ineffective = |all_reads: &[&DialectReads<'s>]| {
            // An unused custom policy is reported where it is declared.
            let set_here = |s: &&DialectReads<'s>| !s.declares(policy) && s.changes(before(s), policy);
            all_reads.iter().any(set_here) && !all_reads.iter().any(|s| s.has_effect(policy))
        };
        match &entry.value.kind {
            // `role_content: { chat: absent }`
            YamlKind::Map(by_dialect) => {
                for one in by_dialect {
                    let of = |s: &&&DialectReads| s.dialect.name == one.key;
                    if is_ineffective(&candidates.iter().filter(of).copied().collect::<Vec<_>>()) {
                        report(context, one.key_span, policy, &format!("in `{}`", one.key));
                    }
                }
            }
            _ if is_ineffective(candidates) => report(context, entry.key_span, policy, scope),
            _ => {}
        }
    }
}

fn report(context: &LintContext, span: Span, policy: &str, scope: &str) {
    let message = format!("`{policy}` has no effect {scope}");
    let spec = PolicySpec::find(policy);
    let help = match spec.map(|spec| spec.effect) {
        None | Some(PolicyEffect::Expressions) => {
            format!("it has an effect only where an expression reads `policy.{policy}`")
        }
        Some(PolicyEffect::Variables(variables)) => {
            format!("it affects {}, which no expression reads", variables.join(", "))
        }
        Some(PolicyEffect::Moments(moments)) => {
            let words: Vec<&str> = moments.iter().map(|m| m.name()).collect();
            format!("it affects {}, which have no frame", words.join(", "))
        }
        Some(PolicyEffect::Anywhere) => return,
    };
    context.cx.add(Diagnostic::new(Code::IneffectivePolicy, span, message).help(help));
}

fn all_reads<'s>(context: &'s LintContext) -> Vec<DialectReads<'s>> {
    // Most profiles do not patch most dialects: the names in an unpatched file are collected once.
    let mut known: Vec<(&Node, Rc<HashSet<String>>)> = Vec::new();
    let mut all_reads = Vec::new();
    for patched_dialect in context.patched_dialects {
        let Some(dialect) = context.plan.dialect(&patched_dialect.dialect, patched_dialect.profile.as_deref()) else {
            continue;
        };
        let node: &Node = &patched_dialect.node;
        let paths = match known.iter().find(|(n, _)| std::ptr::eq(*n, node)) {
            Some((_, paths)) => paths.clone(),
            None => {
                let paths = Rc::new(names_read_by(node, context));
                known.push((node, paths.clone()));
                paths
            }
        };
        all_reads.push(DialectReads { dialect, paths });
    }
    all_reads
}

impl DialectReads<'_> {
    fn declares(&self, policy: &str) -> bool {
        self.dialect.resolved.custom.iter().any(|own| own.name == policy)
    }

    fn has_effect(&self, policy: &str) -> bool {
        let reads = |name: &str| {
            self.paths.iter().any(|p| p.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
        };
        let effect = PolicySpec::find(policy).map_or(PolicyEffect::Expressions, |p| p.effect);
        reads(&format!("policy.{policy}"))
            || match effect {
                PolicyEffect::Expressions => false,
                PolicyEffect::Variables(variables) => variables.iter().any(|v| reads(v)),
                // A policy that changes which items exist also affects lists of items.
                PolicyEffect::Moments(moments) => {
                    moments.iter().any(|m| !self.dialect.frames(*m).is_empty()) || ITEMS.iter().any(|v| reads(v))
                }
                PolicyEffect::Anywhere => true,
            }
    }

    /// Whether the value differs from the one before.
    fn changes(&self, before: Option<&DialectPlan>, policy: &str) -> bool {
        let text = |dialect: &DialectPlan| dialect.resolved.policies.text(policy);
        before.is_none_or(|before| text(before) != text(self.dialect))
    }
}

/// All names that a dialect reads, in its file and in the shared fragments.
fn names_read_by(node: &Node, context: &LintContext) -> HashSet<String> {
    // The names of loop variables over items: `$each: turn.items, as: i`.
    let mut items: HashSet<String> = HashSet::from(["item".to_owned()]);
    let fragments = context.files.shared().and_then(|n| n.get("fragments"));
    let sections = [
        "fragments",
        "stream",
        "body",
        "errors",
        "faults",
        "headers",
        "status",
        "inline",
        "call_blocks",
        "metadata_lines",
    ]
    .iter()
    .filter_map(|key| node.get(key));
    let nodes: Vec<&Node> = sections.chain(fragments).collect();
    for node in &nodes {
        node.visit("", &mut |_, inner| items.extend(item_names(inner, &items)));
    }
    let mut read = HashSet::new();
    for text in nodes.iter().flat_map(|node| texts(node)) {
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
    }
    read
}

/// The names that a directive gives to items.
fn item_names(node: &Node, known: &HashSet<String>) -> Vec<String> {
    let walks_items = node.get("$each").and_then(Node::as_text).is_some_and(|list| {
        let last = list.rsplit('.').next().unwrap_or(list);
        matches!(last, "items" | "calls") && !list.starts_with("request.")
    });
    let element = node.get("as").and_then(Node::as_text).filter(|_| walks_items);
    let with = node.get("with").and_then(Node::as_map).unwrap_or(&[]).iter();
    let aliases = with.filter(|e| e.value.as_text().is_some_and(|value| known.contains(value)));
    element.into_iter().chain(aliases.map(|e| e.key.as_str())).map(str::to_owned).collect()
}

//! A rule that can never match.
//!
//! ## Why
//!
//! It has no effect, although it looks as if it had one. Either its conditions contradict each other, or another rule
//! matches everything that this one matches: `drop:` and `fail:` apply only if no other rule matches, `otherwise: true`
//! only if no earlier rule of its group matches. Of models, script steps and user-agent rules, the first match is used.
//!
//! ## Example
//!
//! ```yaml
//! event_name: $.type
//! rules:
//!   - event: ping
//!     where: { $.type: pong }
//!     drop: not of interest
//! ```
//!
//! ```text
//! warning[RF201]: this rule can never match: line 3 requires $.type = ping, line 4 requires $.type = pong
//! ```
//!
//! ## Fix
//!
//! Remove the condition that is too much, or split the rule in two. If another rule covers this one, narrow that rule
//! or remove this one. In a list in which the first match is used, put special cases before general ones.

mod first_match;
mod requirement;

use super::LintContext;
use crate::diagnostics::{Code, Diagnostic, Sources, Span};
use crate::mapping::language::emit_entry::{EmitContent, EmitEntry};
use crate::mapping::language::field::FieldMapping;
use crate::mapping::language::rule::{Rule, RuleAction, RuleGroup, RuleSet};
use requirement::{Requirement, contradiction, implied, requirements};

pub(super) fn check(context: &LintContext) {
    for backend in &context.plan.backends {
        rules(&backend.rules, 0, context);
    }
    for dialect in context.plan.dialects() {
        rules(&dialect.request.items, 0, context);
        rules(&dialect.request.tools, 0, context);
        rules(&dialect.capture.rules, 0, context);
    }
    first_match::check(context);
}

/// The depth of rules for content parts: deeper than any selector of other rules can reach.
const NESTED_DEPTH: usize = 16;

/// `depth`: how many `each:` loops contain these rules.
fn rules(all: &RuleSet, depth: usize, context: &LintContext) {
    let count: usize = all.groups.iter().map(|group| group.rules.len()).sum();
    for (at, group) in all.groups.iter().enumerate() {
        let inside = depth + usize::from(group.each.is_some());
        for (which, rule) in group.rules.iter().enumerate() {
            // Each rule is compared with all others.
            if !context.cx.budget.spend(count as u64) {
                return;
            }
            let required = rule_requirements(all, rule, inside);
            if let Some((a, b)) = contradiction(&required) {
                report(
                    context,
                    later_span(a, b),
                    format!("this rule can never match: {}", describe_conflict(a, b, context.cx.sources)),
                );
                continue;
            }
            if let Some(other) = covering(all, at, which, &required, inside) {
                let line = context.cx.sources.location(other).line;
                report(
                    context,
                    rule.span,
                    format!("this rule is never used: the rule in line {line} matches everything that it matches"),
                );
            }
            emits(rule, &required, inside, context);
        }
    }
    for parts in all.emits().flat_map(|e| &e.fields).filter_map(FieldMapping::rules) {
        rules(parts, NESTED_DEPTH, context);
    }
}

fn rule_requirements(all: &RuleSet, rule: &Rule, depth: usize) -> Vec<Requirement> {
    let mut required = requirements(&rule.conditions, depth);
    required
        .extend(all.event_name.as_ref().and_then(|key| Requirement::of_event(key, &rule.event_names, rule.event_span)));
    required
}

/// Checks the conditions of each entry of `emit:`, together with those of its rule.
fn emits(rule: &Rule, required: &[Requirement], depth: usize, context: &LintContext) {
    if let RuleAction::Emit(entries) = &rule.action {
        entries.iter().for_each(|entry| entry_conditions(entry, required, depth, context));
    }
}

fn entry_conditions(entry: &EmitEntry, required: &[Requirement], depth: usize, context: &LintContext) {
    let depth = depth + usize::from(entry.each.is_some());
    let own = requirements(&entry.conditions, depth);
    let all: Vec<Requirement> = own.into_iter().chain(required.iter().cloned()).collect();
    if let Some((a, b)) = contradiction(&all) {
        let what = match &entry.content {
            EmitContent::One(emit) => format!("this `{}` is never emitted", emit.kind.name),
            EmitContent::Inner(_) => "this `emit:` never applies".to_owned(),
        };
        let message = format!("{what}: {}", describe_conflict(a, b, context.cx.sources));
        report(context, later_span(a, b), message);
    } else if let EmitContent::Inner(entries) = &entry.content {
        entries.iter().for_each(|entry| entry_conditions(entry, &all, depth, context));
    }
}

/// The rule that matches everything this one matches and takes precedence, if there is one.
fn covering(all: &RuleSet, at: usize, which: usize, required: &[Requirement], depth: usize) -> Option<Span> {
    let group = &all.groups[at];
    let rule = &group.rules[which];
    let covers = |other: &&Rule| {
        let keys = other.event_names.is_empty()
            || (!rule.event_names.is_empty() && rule.event_names.iter().all(|k| other.event_names.contains(k)));
        keys && requirements(&other.conditions, depth).iter().all(|requirement| implied(requirement, required))
    };
    let is_emit = |rule: &Rule| matches!(rule.action, RuleAction::Emit(_));
    let earlier = group.rules[..which].iter();
    if group.each.is_some() {
        // Inside `each:` the first rule that matches takes precedence over `otherwise`, `drop` and `fail`.
        let gives_way = rule.otherwise || !is_emit(rule);
        return earlier.filter(|_| gives_way).find(covers).map(|other| other.span);
    }
    if is_emit(rule) {
        return earlier.filter(|other| rule.otherwise && is_emit(other)).find(covers).map(|other| other.span);
    }
    // `drop` and `fail` apply only if no other rule matches, so any rule of the set takes precedence.
    let single = || all.groups.iter().filter(|g: &&RuleGroup| g.each.is_none()).flat_map(|g| &g.rules);
    let before = single().take_while(|other| !std::ptr::eq(*other, rule)).filter(|other| !is_emit(other));
    single().filter(|other| is_emit(other)).chain(before).find(covers).map(|other| other.span)
}

fn describe_conflict(a: &Requirement, b: &Requirement, sources: &Sources) -> String {
    let (first, second) = if a.span.start <= b.span.start { (a, b) } else { (b, a) };
    let line = |requirement: &Requirement| sources.location(requirement.span).line;
    match (line(first), line(second)) {
        _ if std::ptr::eq(a, b) => format!("line {} requires {first}", line(first)),
        (one, other) if one == other => format!("line {one} requires {first} and {second}"),
        (one, other) => format!("line {one} requires {first}, line {other} requires {second}"),
    }
}

/// The second of two conflicting conditions is reported, as it contradicts what was read before.
fn later_span(a: &Requirement, b: &Requirement) -> Span {
    if a.span.start <= b.span.start { b.span } else { a.span }
}

fn report(context: &LintContext, span: Span, message: String) {
    context.cx.add(Diagnostic::new(Code::UnreachableRule, span, message));
}

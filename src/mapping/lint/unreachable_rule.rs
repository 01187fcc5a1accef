//! A rule that can never hold.
//!
//! ## Why
//!
//! It looks as if it did something. Either it asks for two things that cannot both be, or another rule takes all that it
//! would: `drop:` and `fail:` are looked at only when nothing else held, `otherwise: true` only when no earlier rule of its
//! group did; of models, of the steps of a script and of rules by user agent the first that matches is taken.
//!
//! ## Example
//!
//! ```yaml
//! key: $.type
//! rules:
//!   - event: ping
//!     where: { $.type: pong }
//!     drop: not of interest
//! ```
//!
//! ```text
//! warning[RF201]: this rule can never match: line 3 asks for $.type = ping, line 4 for $.type = pong
//! ```
//!
//! ## Mend
//!
//! Take out the condition that is too much, or make two rules of it. Where another rule covers this one, narrow that one, or
//! remove this one. In a list of which the first match counts, what is special stands before what is general.

mod demand;
mod first_match;

use super::Set;
use crate::diagnostics::{Code, Diagnostic, Sources, Span};
use crate::mapping::language::field::Read;
use crate::mapping::language::rule::{Action, Emit, Group, Rule, RuleSet};
use demand::{Demand, contradiction, demands, implied};

pub(super) fn check(set: &Set) {
    for backend in &set.plan.backends {
        rules(&backend.rules, 0, set);
    }
    for dialect in set.plan.dialects() {
        rules(&dialect.request.items, 0, set);
        rules(&dialect.request.tools, 0, set);
        rules(&dialect.capture.rules, 0, set);
    }
    first_match::check(set);
}

/// Rules for the parts of a message stand somewhere within it: deeper than anything that other rules can name.
const WITHIN: usize = 16;

/// `depth`: how many nodes these rules stand in.
fn rules(all: &RuleSet, depth: usize, set: &Set) {
    for (at, group) in all.groups.iter().enumerate() {
        let inside = depth + usize::from(group.each.is_some());
        for (which, rule) in group.rules.iter().enumerate() {
            let asked = of_rule(all, rule, inside);
            if let Some((a, b)) = contradiction(&asked) {
                say(set, later(a, b), format!("this rule can never match: {}", both(a, b, set.cx.sources)));
                continue;
            }
            if let Some(other) = covering(all, at, which, &asked, inside) {
                let line = set.cx.sources.place(other).line;
                say(set, rule.span, format!("this rule is never used: the one in line {line} takes all that it would"));
            }
            emits(rule, &asked, inside, set);
        }
    }
    for parts in all.emits().flat_map(|e| &e.reads).filter_map(Read::rules) {
        rules(parts, WITHIN, set);
    }
}

fn of_rule(all: &RuleSet, rule: &Rule, depth: usize) -> Vec<Demand> {
    let mut asked = demands(&rule.conditions, depth);
    asked.extend(all.key.as_ref().and_then(|key| Demand::of_event(key, &rule.keys, rule.event)));
    asked
}

/// Conditions of a single entry of `emit:`, beside those of its rule.
fn emits(rule: &Rule, asked: &[Demand], depth: usize, set: &Set) {
    let list: &[Emit] = match &rule.action {
        Action::Emit(emits) => emits,
        Action::Drop(_) | Action::Fail(_) => &[],
    };
    for emit in list {
        let own = demands(&emit.conditions, depth + usize::from(emit.each.is_some()));
        let all: Vec<Demand> = own.into_iter().chain(asked.iter().cloned()).collect();
        if let Some((a, b)) = contradiction(&all) {
            let message = format!("this `{}` is never said: {}", emit.word.name, both(a, b, set.cx.sources));
            say(set, later(a, b), message);
        }
    }
}

/// The rule that leaves nothing for this one, if there is one.
fn covering(all: &RuleSet, at: usize, which: usize, asked: &[Demand], depth: usize) -> Option<Span> {
    let group = &all.groups[at];
    let rule = &group.rules[which];
    let covers = |other: &&Rule| {
        let keys = other.keys.is_empty() || (!rule.keys.is_empty() && rule.keys.iter().all(|k| other.keys.contains(k)));
        keys && demands(&other.conditions, depth).iter().all(|demand| implied(demand, asked))
    };
    let is_emit = |rule: &Rule| matches!(rule.action, Action::Emit(_));
    let earlier = group.rules[..which].iter();
    if group.each.is_some() {
        // Inside a list the first that holds leaves nothing for `otherwise`, `drop` and `fail`.
        let gives_way = rule.otherwise || !is_emit(rule);
        return earlier.filter(|_| gives_way).find(covers).map(|other| other.span);
    }
    if is_emit(rule) {
        return earlier.filter(|other| rule.otherwise && is_emit(other)).find(covers).map(|other| other.span);
    }
    // The last resort of the whole set: whatever holds elsewhere comes first, wherever it stands.
    let single = || all.groups.iter().filter(|g: &&Group| g.each.is_none()).flat_map(|g| &g.rules);
    let before = single().take_while(|other| !std::ptr::eq(*other, rule)).filter(|other| !is_emit(other));
    single().filter(|other| is_emit(other)).chain(before).find(covers).map(|other| other.span)
}

fn both(a: &Demand, b: &Demand, sources: &Sources) -> String {
    let (first, second) = if a.span.start <= b.span.start { (a, b) } else { (b, a) };
    let line = |demand: &Demand| sources.place(demand.span).line;
    match (line(first), line(second)) {
        _ if std::ptr::eq(a, b) => format!("line {} asks for {first}", line(first)),
        (one, other) if one == other => format!("line {one} asks for {first} and for {second}"),
        (one, other) => format!("line {one} asks for {first}, line {other} for {second}"),
    }
}

/// Whoever reads on comes to the second of them, and stumbles.
fn later(a: &Demand, b: &Demand) -> Span {
    if a.span.start <= b.span.start { b.span } else { a.span }
}

fn say(set: &Set, span: Span, message: String) {
    set.cx.add(Diagnostic::new(Code::UnreachableRule, span, message));
}

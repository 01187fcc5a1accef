//! Lists of which the first that matches is taken: the models of the gateway, the steps of a script.

use super::{Set, say};
use crate::diagnostics::Span;
use crate::mapping::config::gateway::{Match, Model};
use crate::mapping::source::yaml::{Kind, Node};

pub(super) fn check(set: &Set) {
    let models = &set.plan.gateway.models;
    for (at, model) in models.iter().enumerate() {
        if let Some(earlier) = models[..at].iter().find(|earlier| takes_all_of(earlier, model)) {
            let line = set.cx.sources.place(earlier.span).line;
            say(set, model.span, format!("this model is never chosen: the one in line {line} takes all that it would"));
        }
    }
    for script in &set.files.scripts {
        let Some(Kind::List(nodes)) = script.get("steps").map(|n| &n.kind) else { continue };
        steps(nodes, set);
    }
}

fn takes_all_of(earlier: &Model, model: &Model) -> bool {
    match (&earlier.matches, &model.matches) {
        (Match::Prefix(prefix), Match::Id(name) | Match::Prefix(name)) => name.starts_with(prefix.as_str()),
        // Two of one name are an error.
        (Match::Id(_), Match::Id(_) | Match::Prefix(_)) => false,
    }
}

fn steps(nodes: &[Node], set: &Set) {
    for (at, step) in nodes.iter().enumerate() {
        let asked = condition(step).map(|(text, _)| text);
        let earlier = nodes[..at].iter().find(|earlier| {
            let earlier = condition(earlier).map(|(text, _)| text);
            earlier.is_none() || earlier == asked
        });
        if let Some(earlier) = earlier {
            let line = set.cx.sources.place(earlier.span).line;
            let span = condition(step).map_or(step.span, |(_, span)| span);
            say(set, span, format!("this step is never played: the one in line {line} takes all that it would"));
        }
    }
}

fn condition(step: &Node) -> Option<(&str, Span)> {
    let when = step.get("when")?;
    Some((when.as_text()?.trim(), when.span))
}

//! Lists in which the first match is used: the models of the gateway, the steps of a script.

use super::{LintContext, report};
use crate::diagnostics::Span;
use crate::mapping::config::models::{Model, ModelMatch};
use crate::mapping::source::layout::SetFile;
use crate::mapping::source::yaml::Node;

pub(super) fn check(context: &LintContext) {
    let models = &context.plan.gateway.models;
    for (at, model) in models.iter().enumerate() {
        if let Some(earlier) = models[..at].iter().find(|earlier| covers(earlier, model)) {
            // A layer that takes all models over is meant to.
            if context.cx.sources.layer(model.span) < context.cx.sources.layer(earlier.span) {
                continue;
            }
            let line = context.cx.sources.location(earlier.span).line;
            report(
                context,
                model.span,
                format!("this model is never used: the model in line {line} matches everything that it matches"),
            );
        }
    }
    for script in context.files.of(SetFile::Script) {
        steps(script.get("steps").and_then(|n| n.as_list()).unwrap_or_default(), context);
    }
}

fn covers(earlier: &Model, model: &Model) -> bool {
    match (&earlier.matches, &model.matches) {
        (ModelMatch::Prefix(prefix), ModelMatch::Id(name) | ModelMatch::Prefix(name)) => {
            match earlier.ignore_case {
                true => name.to_ascii_lowercase().starts_with(&prefix.to_ascii_lowercase()),
                // In another case, the name does not match the earlier prefix.
                false => name.starts_with(prefix.as_str()) && (!model.ignore_case || prefix.is_empty()),
            }
        }
        // A duplicate name is an error.
        (ModelMatch::Id(_), ModelMatch::Id(_) | ModelMatch::Prefix(_)) => false,
    }
}

fn steps(nodes: &[Node], context: &LintContext) {
    for (at, step) in nodes.iter().enumerate() {
        let when = condition(step).map(|(text, _)| text);
        let earlier = nodes[..at].iter().find(|earlier| {
            let earlier = condition(earlier).map(|(text, _)| text);
            earlier.is_none() || earlier == when
        });
        if let Some(earlier) = earlier {
            let line = context.cx.sources.location(earlier.span).line;
            let span = condition(step).map_or(step.span, |(_, span)| span);
            report(
                context,
                span,
                format!("this step is never used: the step in line {line} matches everything that it matches"),
            );
        }
    }
}

fn condition(step: &Node) -> Option<(&str, Span)> {
    let when = step.get("when")?;
    Some((when.as_text()?.trim(), when.span))
}

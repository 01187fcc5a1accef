//! Metrics under other names (`metric_aliases:`), and metrics as JSON for static routes: both are made from the text of
//! a scrape, so that turns and requests do nothing for them.

use crate::domain::variables::{self, Record};
use crate::domain::{Health, Tree};
use crate::engine::render::{RenderError, Scope, is_true, render, render_if_complete};
use crate::mapping::config::metric_aliases::{AliasSource, MetricAlias, MetricAliases};
use crate::mapping::language::field::scalar_text;
use std::collections::HashMap;

/// One line of the OpenMetrics text with a value.
struct Sample<'t> {
    name: &'t str,
    labels: Vec<(&'t str, String)>,
    value: f64,
}

const END: &str = "# EOF\n";
/// The label with the bound of a bucket.
const BOUND: &str = "le";

/// The OpenMetrics text with the aliases at its end.
pub fn with_aliases(text: String, aliases: &MetricAliases, health: &Health) -> String {
    if aliases.aliases.is_empty() {
        return text;
    }
    let body = text.strip_suffix(END).unwrap_or(&text);
    let samples: Vec<Sample> = body.lines().filter_map(sample).collect();
    let mut added = String::new();
    for alias in &aliases.aliases {
        match lines(alias, aliases, &samples, health) {
            Ok(lines) => added.push_str(&lines),
            Err(error) => tracing::warn!(alias = alias.name, %error, "a metric alias cannot be rendered"),
        }
    }
    format!("{body}{added}{END}")
}

/// All samples by name, each with its labels and its value.
pub fn as_tree(text: &str) -> Tree {
    let mut by_name: Vec<(&str, Vec<Tree>)> = Vec::new();
    for Sample { name, labels, value } in text.lines().filter_map(sample) {
        let labels = Tree::map(labels.into_iter().map(|(label, value)| (label, Tree::from(value.as_str()))));
        let value = Tree::parse(shown(value).as_bytes()).unwrap_or_default();
        let sample = Tree::map([("labels", labels), ("value", value)]);
        match by_name.last_mut().filter(|(last, _)| *last == name) {
            Some((_, samples)) => samples.push(sample),
            None => by_name.push((name, vec![sample])),
        }
    }
    Tree::map(by_name.into_iter().map(|(name, samples)| (name, Tree::from(samples))))
}

fn lines(
    alias: &MetricAlias,
    aliases: &MetricAliases,
    samples: &[Sample],
    health: &Health,
) -> Result<String, RenderError> {
    let (kind, values) = match &alias.source {
        AliasSource::Metric { metric, scale } => {
            (metric.kind(), repeated(alias, aliases, samples, (metric.name(), *scale))?)
        }
        AliasSource::Value(skeleton) => {
            let scope = Scope::default().set(variables::HEALTH, Record::Health(health));
            let value = render(skeleton, &scope, &aliases.pool)?.and_then(|value| number(&value));
            ("gauge", value.map(|value| (String::new(), value)).into_iter().collect())
        }
    };
    // The samples of a counter end in `_total`.
    let (family, kind) = match (kind, alias.name.strip_suffix("_total")) {
        ("counter", Some(family)) => (family, kind),
        ("counter" | "info", _) => (alias.name.as_str(), "gauge"),
        _ => (alias.name.as_str(), kind),
    };
    let mut text = format!("# HELP {family} {}\n# TYPE {family} {kind}\n", alias.help.replace('\n', " "));
    for (rest, value) in values {
        text.push_str(&format!("{}{rest} {}\n", alias.name, shown(value)));
    }
    Ok(text)
}

/// What follows the name of each sample (`_sum{route="/v1"}`), with its value.
fn repeated(
    alias: &MetricAlias,
    aliases: &MetricAliases,
    samples: &[Sample],
    (name, scale): (&str, f64),
) -> Result<Vec<(String, f64)>, RenderError> {
    let mut values: Vec<(String, f64)> = Vec::new();
    let mut positions: HashMap<String, usize> = HashMap::new();
    for sample in samples {
        let Some(part) = sample.name.strip_prefix(name) else { continue };
        if !matches!(part, "" | "_bucket" | "_sum" | "_count") {
            continue;
        }
        let labels = sample.labels.iter().filter(|(label, _)| *label != BOUND);
        let tree = Tree::map(labels.clone().map(|(label, value)| (*label, Tree::from(value.as_str()))));
        let scope = Scope::default().set(variables::LABELS, &tree);
        if let Some(when) = &alias.when
            && !is_true(when, &scope, &aliases.pool)?
        {
            continue;
        }
        let mut shown_labels = match &alias.labels {
            None => labels.map(|(label, value)| label_text(label, value)).collect(),
            Some(own) => {
                let mut shown = Vec::new();
                for (label, skeleton) in own {
                    let value = render_if_complete(skeleton, &scope, &aliases.pool)?;
                    shown.extend(value.as_ref().and_then(scalar_text).map(|value| label_text(label, &escaped(&value))));
                }
                shown
            }
        };
        if let Some((_, bound)) = sample.labels.iter().find(|(label, _)| *label == BOUND) {
            let scaled = bound.parse::<f64>().ok().filter(|bound| bound.is_finite()).map(|bound| shown(bound * scale));
            shown_labels.push(label_text(BOUND, &scaled.unwrap_or_else(|| bound.clone())));
        }
        let rest = match shown_labels.is_empty() {
            true => part.to_owned(),
            false => format!("{part}{{{}}}", shown_labels.join(",")),
        };
        let value = if matches!(part, "_bucket" | "_count") { sample.value } else { sample.value * scale };
        match positions.get(&rest) {
            Some(at) => values[*at].1 += value,
            None => {
                positions.insert(rest.clone(), values.len());
                values.push((rest, value));
            }
        }
    }
    Ok(values)
}

/// Reads a line; `None` for comments. Label values keep their escapes.
fn sample(line: &str) -> Option<Sample<'_>> {
    if line.starts_with('#') {
        return None;
    }
    let Some((name, mut rest)) = line.split_once('{') else {
        let (name, value) = line.split_once(' ')?;
        return Some(Sample { name, labels: Vec::new(), value: value.trim().parse().ok()? });
    };
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(value) = rest.strip_prefix('}') {
            return Some(Sample { name, labels, value: value.trim().parse().ok()? });
        }
        let (label, after) = rest.split_once("=\"")?;
        let end = quote_end(after)?;
        labels.push((label, after[..end].to_owned()));
        rest = &after[end + 1..];
    }
}

/// The position of the quote that is not escaped.
fn quote_end(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

fn label_text(label: &str, value: &str) -> String {
    format!("{label}=\"{value}\"")
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn shown(value: f64) -> String {
    // Without the last digits that a multiplication adds.
    let rounded = (value * 1e6).round() / 1e6;
    if value.abs() < 1e9 && rounded != 0.0 { rounded.to_string() } else { value.to_string() }
}

fn number(value: &Tree) -> Option<f64> {
    match value {
        Tree::Bool(bool) => Some(f64::from(u8::from(*bool))),
        _ => scalar_text(value)?.parse().ok(),
    }
}

#[cfg(test)]
#[path = "../../tests/unit/server_metric_aliases.rs"]
mod tests;

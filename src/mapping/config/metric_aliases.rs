//! `metric_aliases:` of gateway.yaml: metrics of the gateway under other names, and gauges with values of the set.

use super::gateway::KnownNames;
use super::rename_fields::RenameFields;
use super::request_values::NamedValues;
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::MetricName;
use crate::domain::variables;
use crate::mapping::grammar::collections::{Entries, Map};
use crate::mapping::grammar::notation::{NameOf, PositiveCount};
use crate::mapping::grammar::section;
use crate::mapping::grammar::unparsed::ExpressionNode;
use crate::mapping::language::directives::SkeletonNode;
use crate::mapping::language::expression::{Expression, ExpressionPool, ExpressionPoolBuilder};
use crate::mapping::language::scope::VariableScope;
use crate::mapping::language::skeleton::Skeleton;
use crate::mapping::language::skeleton_compiler::SkeletonCompiler;
use crate::mapping::language::skeleton_fragments::Fragments;
use crate::mapping::source::field_reader::LoadContext;

section! {
    /// A metric under another name, or a gauge: exactly one of `of` and `value`.
    #[subject = "a metric alias"]
    #[title = "metric alias"]
    #[exactly_one("of", "value")]
    pub struct MetricAliasEntry<'n> {
        /// The metric that it repeats.
        of: Option<NameOf<MetricName>>,
        /// The value of a gauge: a number, or true for 1. It sees `health`.
        value: Option<SkeletonNode<'n>>,
        /// The factor of its values and of the bounds of a histogram: 1000 turns seconds into milliseconds.
        scale: PositiveCount = PositiveCount(1),
        /// Its labels, in this order. They see `labels`, the labels of the metric by name. Samples with the same labels are
        /// added. Default: the labels of the metric.
        labels: Option<Entries<'n, Map<SkeletonNode<'n>>>>,
        /// A condition on `labels`; other samples are left out.
        when: Option<ExpressionNode<'n>>,
        /// Its description. Default: the name of the metric that it repeats.
        help: Option<String>,
    }
}

/// A compiled alias.
#[derive(Debug)]
pub struct MetricAlias {
    pub name: String,
    pub source: AliasSource,
    /// `None`: those of the metric.
    pub labels: Option<NamedValues>,
    pub when: Option<Expression>,
    pub help: String,
}

#[derive(Debug)]
pub enum AliasSource {
    Metric { metric: MetricName, scale: f64 },
    Value(Box<Skeleton>),
}

#[derive(Debug)]
pub struct MetricAliases {
    pub aliases: Vec<MetricAlias>,
    pub pool: ExpressionPool,
}

impl MetricAliases {
    pub(super) fn compile(entries: &Map<MetricAliasEntry>, known: &KnownNames, cx: LoadContext) -> MetricAliases {
        let mut fragments = Fragments::default();
        fragments.add(known.fragments);
        let pool = ExpressionPoolBuilder::new(known.tables.clone());
        let compiler =
            SkeletonCompiler { cx, pool: &pool, fragments: &fragments, rename_fields: &RenameFields::default() };
        let mut aliases = Vec::new();
        for entry in entries.iter() {
            let (name, alias) = (&entry.key, &entry.value);
            let is_own = MetricName::NAMES.contains(&name.as_str()) || name.starts_with("reframe_");
            if is_own {
                let message = format!("`{name}` is the name of a metric of the gateway");
                let help = "no name of an alias begins with `reframe_`";
                cx.add(Diagnostic::new(Code::DuplicateName, entry.key_span, message).help(help));
                continue;
            }
            if !is_name(name) {
                let message = format!("`{name}` is not the name of a metric");
                cx.add(Diagnostic::new(Code::UnsafeText, entry.key_span, message).help(ALLOWED));
                continue;
            }
            let of_metric = VariableScope::new("a metric alias", [variables::LABELS]);
            let source = match (&alias.of, &alias.value) {
                (Some(metric), _) => Some(AliasSource::Metric { metric: metric.0, scale: alias.scale.0 as f64 }),
                (None, Some(value)) => {
                    let scope = VariableScope::new("the value of a metric alias", [variables::HEALTH]);
                    compiler.compile(value.0, &scope).map(|value| AliasSource::Value(Box::new(value)))
                }
                (None, None) => None,
            };
            let labels = alias.labels.as_ref().map(|labels| label_values(labels, &compiler, &of_metric));
            let when = alias.when.map(|when| compiler.condition(when.0, &of_metric));
            let (Some(source), None | Some(Some(_))) = (source, &when) else { continue };
            let help = alias.help.clone().unwrap_or_else(|| match &source {
                AliasSource::Metric { metric, .. } => format!("Another name of {}", metric.name()),
                AliasSource::Value(_) => "A value of the configuration".to_owned(),
            });
            aliases.push(MetricAlias { name: name.clone(), source, labels, when: when.flatten(), help });
        }
        MetricAliases { aliases, pool: pool.build() }
    }
}

fn label_values(
    labels: &Entries<Map<SkeletonNode>>,
    compiler: &SkeletonCompiler,
    scope: &VariableScope,
) -> NamedValues {
    let mut values = Vec::new();
    for entry in labels.iter() {
        // `le` has the bounds of a histogram.
        if !is_name(&entry.key) || entry.key == "le" {
            let message = format!("`{}` is not the name of a label", entry.key);
            compiler.cx.add(Diagnostic::new(Code::UnsafeText, entry.key_span, message).help(ALLOWED));
            continue;
        }
        values.extend(compiler.compile(&entry.value, scope).map(|value| (entry.key.clone(), value)));
    }
    values
}

const ALLOWED: &str = "use letters, digits and `_`";

fn is_name(text: &str) -> bool {
    let is_word = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_word && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

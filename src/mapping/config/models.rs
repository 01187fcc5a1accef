//! `models:` of gateway.yaml: the model names that clients may request, and the backend of each.

use super::gateway::{Backend, GatewayPlan};
use crate::diagnostics::{Code, Span};
use crate::mapping::grammar::notation::{Spanned, notation_schema, text_notation};
use crate::mapping::grammar::section;
use crate::mapping::source::field_reader::LoadContext;

section! {
    /// A model, by its `id` or by a pattern, and the backend that serves it.
    #[subject = "a model"]
    #[title = "model"]
    #[exactly_one("id", "match")]
    pub struct ModelEntry {
        /// The name of the model.
        id: Option<Spanned<String>>,
        /// A prefix before the only `*`; `"*"` matches every model.
        pattern as "match": Option<Spanned<ModelPattern>>,
        /// The name of one of `backends:`.
        backend: Spanned<String>,
    }
}

text_notation! {
    /// A prefix before `*`.
    ModelPattern(String), |text, node, at| {
        let prefix = text.strip_suffix('*').filter(|prefix| !prefix.contains('*'));
        if prefix.is_none() {
            let message = "a pattern must end in its only `*`: \"gpt-*\", or \"*\"";
            at.cx.error(Code::UnknownValue, node.span, message);
        }
        prefix.map(str::to_owned)
    }
}
notation_schema!(ModelPattern, { "type": "string", "pattern": "^[^*]*\\*$" });

#[derive(Debug)]
pub struct Model {
    pub matches: ModelMatch,
    /// Position in `GatewayPlan::backends`.
    pub backend: usize,
    /// Span of its name or pattern.
    pub span: Span,
}

#[derive(Debug)]
pub enum ModelMatch {
    Id(String),
    Prefix(String),
}

impl GatewayPlan {
    /// The first model that matches.
    pub fn model(&self, name: &str) -> Option<&Model> {
        self.models.iter().find(|m| match &m.matches {
            ModelMatch::Id(id) => id == name,
            ModelMatch::Prefix(prefix) => name.starts_with(prefix.as_str()),
        })
    }
}

impl Model {
    /// `named`: the names of all backends, also of those with errors.
    pub(super) fn new(entry: ModelEntry, named: &[&str], backends: &[Backend], cx: LoadContext) -> Option<Model> {
        let (matches, span) = match (entry.id, entry.pattern) {
            (Some(id), _) => (ModelMatch::Id(id.value), id.span),
            (None, pattern) => pattern.map(|p| (ModelMatch::Prefix(p.value.0), p.span))?,
        };
        let name = entry.backend.as_str();
        let found = backends.iter().position(|b| b.name == name);
        // Without `backends:` the missing key is reported instead.
        if found.is_none() && !named.is_empty() && !named.contains(&name) {
            let message = format!("unknown backend `{name}`");
            cx.unknown(Code::UnknownReference, entry.backend.span, message, name, named.iter().copied());
        }
        Some(Model { matches, backend: found?, span })
    }
}

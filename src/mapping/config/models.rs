//! `models:` of gateway.yaml: the model names that clients may request, and the backend of each.

use super::gateway::{Backend, GatewayPlan};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::source::field_reader::{FieldReader, LoadContext, text_of};
use crate::mapping::source::yaml::Node;

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
    /// A prefix before `*`.
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

pub(super) fn parse_model(node: &Node, named: Vec<&str>, backends: &[Backend], cx: LoadContext) -> Option<Model> {
    let fields = FieldReader::of(node, "a model", cx)?;
    let (id, pattern) = (fields.text("id"), fields.get("match"));
    let matches = match (id, pattern) {
        (Some(id), None) => ModelMatch::Id(id.to_owned()),
        (None, Some(pattern)) => {
            let text = text_of(pattern, cx)?;
            match text.strip_suffix('*') {
                Some(prefix) if !prefix.contains('*') => ModelMatch::Prefix(prefix.to_owned()),
                _ => {
                    cx.error(
                        Code::UnknownValue,
                        pattern.span,
                        "a pattern must end in its only `*`: \"gpt-*\", or \"*\"",
                    );
                    return None;
                }
            }
        }
        _ => {
            let message = "a model must have exactly one of `id:` and `match:`";
            fields.get("backend");
            fields.not_exactly_one(&["id", "match"], Diagnostic::new(Code::MissingKey, node.span, message));
            fields.finish();
            return None;
        }
    };
    let backend = fields.required("backend")?;
    let text = text_of(backend, cx)?;
    fields.finish();
    let found = backends.iter().position(|b| b.name == text);
    // Without `backends:` the missing key is reported instead.
    if found.is_none() && !named.is_empty() && !named.contains(&text) {
        let message = format!("unknown backend `{text}`");
        cx.unknown(Code::UnknownReference, backend.span, message, text, named);
    }
    let span = node.get("id").or(pattern).map_or(node.span, |n| n.span);
    Some(Model { matches, backend: found?, span })
}

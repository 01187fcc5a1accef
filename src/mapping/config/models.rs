//! `models:` of gateway.yaml: the model names that clients may request, the backend of each, and its name there.

use super::gateway::GatewayPlan;
use super::gateway_backends::Backend;
use super::scalar_constants::ScalarConstants;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::TurnRequest;
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
        /// The name of the model that the backend gets, if it is another one. After `match:`, `*` in it is what the `*`
        /// of the pattern matched.
        upstream_model: Option<Spanned<UpstreamName>>,
        /// Whether the list of models has it.
        listed: bool = true,
        /// Whether upper and lower case make no difference in the name.
        ignore_case: bool = false,
        /// Values of request fields that the client did not set: `{ reasoning_effort: high }`.
        implied: ScalarConstants = ScalarConstants::default(),
    }
}

/// Fields that decide how a request is served before its model is known.
const NOT_IMPLIED: &[&str] = &["model", "stream", "n"];

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

text_notation! {
    /// The name of a model at its backend.
    UpstreamName(String), |text, _node, _at| Some(text.to_owned())
}
notation_schema!(UpstreamName, { "type": "string", "pattern": "^[^*]*\\*?[^*]*$" });

#[derive(Debug)]
pub struct Model {
    pub matches: ModelMatch,
    pub ignore_case: bool,
    pub listed: bool,
    /// Position in `GatewayPlan::backends`.
    pub backend: usize,
    pub upstream_model: Option<UpstreamModel>,
    pub implied: ScalarConstants,
    /// Span of its name or pattern.
    pub span: Span,
}

#[derive(Debug)]
pub enum ModelMatch {
    Id(String),
    Prefix(String),
}

/// The name of a model at its backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamModel {
    Name(String),
    /// The texts before and after what the `*` of the pattern matched.
    Around(String, String),
}

impl GatewayPlan {
    /// The first model that matches.
    pub fn model(&self, name: &str) -> Option<&Model> {
        self.models.iter().find(|model| model.rest_of(name).is_some())
    }

    /// The first model that matches the request. The request gets the name of the model at its backend, and the values
    /// that the model implies.
    pub fn resolve_model(&self, request: &mut TurnRequest) -> Option<&Model> {
        let model = self.model(&request.model)?;
        request.upstream_model = model.upstream_name(&request.model);
        request.imply(&model.implied.0);
        Some(model)
    }
}

impl Model {
    /// Its name in gateway.yaml: the id, or the pattern.
    pub fn name(&self) -> String {
        match &self.matches {
            ModelMatch::Id(id) => id.clone(),
            ModelMatch::Prefix(prefix) => format!("{prefix}*"),
        }
    }

    /// Every model, for a single backend.
    pub fn any(backend: usize) -> Model {
        Model {
            matches: ModelMatch::Prefix(String::new()),
            ignore_case: false,
            listed: true,
            backend,
            upstream_model: None,
            implied: ScalarConstants::default(),
            span: Span::NOWHERE,
        }
    }

    /// `named`: the names of all backends, also of those with errors.
    pub(super) fn new(entry: ModelEntry, named: &[&str], backends: &[Backend], cx: LoadContext) -> Option<Model> {
        let (matches, span) = match (entry.id, entry.pattern) {
            (Some(id), _) => (ModelMatch::Id(id.value), id.span),
            (None, pattern) => pattern.map(|p| (ModelMatch::Prefix(p.value.0), p.span))?,
        };
        let upstream_model = match &entry.upstream_model {
            Some(name) => Some(UpstreamModel::new(name, &matches, cx)?),
            None => None,
        };
        if let Some((field, _)) = entry.implied.0.iter().find(|(field, _)| NOT_IMPLIED.contains(field)) {
            let message = format!("a model cannot imply `{field}`");
            cx.add(Diagnostic::new(Code::UnknownValue, span, message).help("`set:` of a route can set it"));
        }
        let name = entry.backend.as_str();
        let found = backends.iter().position(|b| b.name == name);
        // Without `backends:` the missing key is reported instead.
        if found.is_none() && !named.is_empty() && !named.contains(&name) {
            let message = format!("unknown backend `{name}`");
            cx.unknown(Code::UnknownReference, entry.backend.span, message, name, named.iter().copied());
        }
        Some(Model {
            matches,
            ignore_case: entry.ignore_case,
            listed: entry.listed,
            backend: found?,
            upstream_model,
            implied: entry.implied,
            span,
        })
    }

    /// What follows the prefix, or nothing for a whole name; `None` if the name does not match.
    fn rest_of<'m>(&self, name: &'m str) -> Option<&'m str> {
        let (ModelMatch::Id(text) | ModelMatch::Prefix(text)) = &self.matches;
        let (start, rest) = name.split_at_checked(text.len())?;
        let is_same = if self.ignore_case { start.eq_ignore_ascii_case(text) } else { start == text };
        let is_whole = rest.is_empty() || matches!(self.matches, ModelMatch::Prefix(_));
        (is_same && is_whole).then_some(rest)
    }

    fn upstream_name(&self, name: &str) -> Option<String> {
        match self.upstream_model.as_ref()? {
            UpstreamModel::Name(name) => Some(name.clone()),
            UpstreamModel::Around(before, after) => Some(format!("{before}{}{after}", self.rest_of(name)?)),
        }
    }

    /// The name under which clients see a model that the backend lists; `None` if they cannot request it.
    pub fn listed_name(&self, upstream: &str) -> Option<String> {
        let ModelMatch::Prefix(prefix) = &self.matches else { return None };
        match &self.upstream_model {
            None => self.rest_of(upstream).map(|_| upstream.to_owned()),
            Some(UpstreamModel::Name(_)) => None,
            Some(UpstreamModel::Around(before, after)) => {
                let rest = upstream.strip_prefix(before.as_str())?.strip_suffix(after.as_str())?;
                Some(format!("{prefix}{rest}"))
            }
        }
    }
}

impl UpstreamModel {
    /// `None` if the name is wrong, which is reported.
    fn new(name: &Spanned<UpstreamName>, matches: &ModelMatch, cx: LoadContext) -> Option<UpstreamModel> {
        let UpstreamName(text) = &name.value;
        let Some((before, after)) = text.split_once('*') else { return Some(UpstreamModel::Name(text.clone())) };
        let (message, help) = match matches {
            ModelMatch::Id(_) => ("`*` has no meaning here: the model has an `id:`", "use `match:` with a `*`"),
            ModelMatch::Prefix(_) if after.contains('*') => ("a name can have only one `*`", "remove the other ones"),
            ModelMatch::Prefix(_) => return Some(UpstreamModel::Around(before.to_owned(), after.to_owned())),
        };
        cx.add(Diagnostic::new(Code::UnknownValue, name.span, message).help(help));
        None
    }
}

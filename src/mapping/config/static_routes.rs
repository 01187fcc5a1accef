//! Static routes: responses that need no backend, such as the list of models.

use super::dialect::NamedSchema;
use super::gateway::KnownNames;
use super::path_template::PathMatcher;
use super::rename_fields::RenameFields;
use super::request_values::{self, NamedValues, RequestHeaders};
use super::route::Endpoint;
use crate::diagnostics::Span;
use crate::domain::ResettableMetric;
use crate::domain::variables::{self, Variable};
use crate::mapping::grammar::collections::{Entries, List};
use crate::mapping::grammar::notation::{NameOf, Spanned};
use crate::mapping::grammar::section;
use crate::mapping::language::directives::SkeletonNode;
use crate::mapping::language::expression::{ExpressionPool, ExpressionPoolBuilder};
use crate::mapping::language::scope::VariableScope;
use crate::mapping::language::skeleton::Skeleton;
use crate::mapping::language::skeleton_compiler::SkeletonCompiler;
use crate::mapping::language::skeleton_fragments::Fragments;
use crate::mapping::language::variables_read::VariablesRead;
use crate::mapping::source::field_reader::LoadContext;

section! {
    /// A response that needs no backend.
    #[subject = "a static route"]
    #[title = "static route"]
    pub struct StaticRouteEntry<'n> {
        /// Method and path; a last segment `{model}` matches the rest of the path.
        endpoint: Endpoint,
        /// The response body. It sees `models`, `health`, `usage_log`, `metrics`, `build.version` and, if the path ends in `{model}`,
        /// `model`; of the request `path`, `query` and `headers`, each by name. A route that reads `usage_log` is served
        /// only if the gateway has one.
        body: SkeletonNode<'n>,
        /// Whether it needs no API key.
        open: bool = false,
        /// The HTTP status. It sees what the body sees. Default: 200.
        status: Option<SkeletonNode<'n>>,
        /// Response headers, by name. They see what the body sees; one with a null value is not sent.
        headers: Entries<'n, RequestHeaders> = Entries::default(),
        /// Counters that each request to it sets to zero.
        resets: List<NameOf<ResettableMetric>> = List::default(),
        /// The schema of the body: `models/list` is `schemas/models/list.json`. The body is validated like a frame, and
        /// the OpenAPI document refers to the schema. Default: any body.
        schema: Option<Spanned<String>>,
    }
}

/// A response rendered from the gateway's own data: the list of models, one model.
#[derive(Debug)]
pub struct StaticRoute {
    pub method: String,
    /// `/v1/models/{model}`: a last segment in braces matches the rest of the path.
    pub path: String,
    /// Reads the parameters of the path; `None` if it has none.
    pub path_matcher: Option<PathMatcher>,
    pub body: Skeleton,
    pub open: bool,
    /// Whether its body reads the models of the gateway.
    pub reads_models: bool,
    /// Whether its body reads the usage log.
    pub reads_usage_log: bool,
    /// Whether its body reads the metrics.
    pub reads_metrics: bool,
    /// The counters that it sets to zero.
    pub resets: Vec<ResettableMetric>,
    pub status: Option<Skeleton>,
    pub headers: NamedValues,
    pub pool: ExpressionPool,
    pub schema: Option<NamedSchema>,
    /// Of the body.
    pub span: Span,
}

impl StaticRoute {
    /// The path before `{model}`, if this route is about one model.
    pub fn prefix(&self) -> Option<&str> {
        self.path.strip_suffix("{model}")
    }

    pub fn new(entry: &StaticRouteEntry, known: &KnownNames, cx: LoadContext) -> Option<StaticRoute> {
        let mut fragments = Fragments::default();
        fragments.add(known.fragments);
        let pool = ExpressionPoolBuilder::new(known.tables.clone());
        let compiler =
            SkeletonCompiler { cx, pool: &pool, fragments: &fragments, rename_fields: &RenameFields::default() };
        let Endpoint { method, path } = entry.endpoint.clone();
        let of_request = [variables::PATH, variables::QUERY, variables::HEADERS];
        let variables =
            [variables::MODELS, variables::HEALTH, variables::USAGE_LOG, variables::METRICS, variables::BUILD]
                .into_iter()
                .chain(of_request);
        let one_model = path.ends_with("{model}").then_some(variables::MODEL);
        let scope = VariableScope::new("a static route", variables.chain(one_model));
        let body = compiler.compile(entry.body.0, &scope)?;
        let status = match &entry.status {
            Some(status) => Some(compiler.compile(status.0, &scope)?),
            None => None,
        };
        let headers = request_values::headers(&entry.headers, &compiler, &scope);
        let schema = entry.schema.as_ref().and_then(|name| {
            let file = format!("{}.json", name.value);
            let schema = known.schemas.get_for_output(&file, name.span, cx)?;
            Some(NamedSchema { name: file, schema })
        });
        let path_matcher = PathMatcher::new(&path);
        Some(StaticRoute {
            method,
            path,
            path_matcher,
            open: entry.open,
            reads_models: reads(&body, &[variables::MODELS, variables::MODEL]),
            reads_usage_log: reads(&body, &[variables::USAGE_LOG]),
            reads_metrics: reads(&body, &[variables::METRICS]),
            resets: entry.resets.iter().map(|metric| metric.0).collect(),
            body,
            status,
            headers,
            pool: pool.build(),
            schema,
            span: entry.body.0.span,
        })
    }
}

fn reads(body: &Skeleton, variables: &[Variable]) -> bool {
    let read = VariablesRead::of(None, body);
    let first = |path: &String| path.split('.').next().map(str::to_owned);
    read.given.iter().filter_map(first).any(|name| variables.iter().any(|variable| variable.0 == name))
}

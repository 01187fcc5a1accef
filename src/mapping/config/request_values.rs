//! `headers:` and `query:` of a backend's request: names with skeletons, in the backend file and in its entry of
//! gateway.yaml.

use super::gateway::KnownNames;
use super::rename_fields::RenameFields;
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::variables;
use crate::mapping::grammar::notation::{HeaderName, LINE_BREAKS, is_token, notation_schema};
use crate::mapping::language::directives::SkeletonNode;
use crate::mapping::language::expression::{ExpressionPool, ExpressionPoolBuilder};
use crate::mapping::language::scope::VariableScope;
use crate::mapping::language::skeleton::Skeleton;
use crate::mapping::language::skeleton_compiler::SkeletonCompiler;
use crate::mapping::language::skeleton_fragments::Fragments;
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::yaml::Entry;
use schemars::json_schema;

/// Headers of the request, by name.
#[derive(Clone, Copy, Debug)]
pub struct RequestHeaders;

notation_schema!(RequestHeaders, |generator| {
    let (name, value) = (generator.subschema_for::<HeaderName>(), generator.subschema_for::<SkeletonNode>());
    json_schema!({ "type": ["null", "object"], "propertyNames": name, "additionalProperties": value })
});

/// Parameters of the query, by name.
#[derive(Clone, Copy, Debug)]
pub struct RequestQuery;

notation_schema!(RequestQuery, |generator| {
    let value = generator.subschema_for::<SkeletonNode>();
    json_schema!({ "type": ["null", "object"], "additionalProperties": value })
});

/// Names with the skeletons of their values.
pub type NamedValues = Vec<(String, Skeleton)>;

/// The headers and the query of one entry of gateway.yaml, in addition to those of the backend file, or in their place.
#[derive(Debug)]
pub struct EntryValues {
    pub headers: NamedValues,
    pub query: NamedValues,
    pub pool: ExpressionPool,
}

impl EntryValues {
    /// `None` if there are none, or a mistake, which is reported.
    pub fn new(headers: &[Entry], query: &[Entry], known: &KnownNames, cx: LoadContext) -> Option<EntryValues> {
        if headers.is_empty() && query.is_empty() {
            return None;
        }
        let mut fragments = Fragments::default();
        fragments.add(known.fragments);
        let pool = ExpressionPoolBuilder::new(known.tables.clone());
        let compiler =
            SkeletonCompiler { cx, pool: &pool, fragments: &fragments, rename_fields: &RenameFields::default() };
        // Not `request`: which fields of a request are sent is known from the backend file alone.
        let scope = |place| VariableScope::new(place, [variables::UPSTREAM, variables::SECRET, variables::BUILD]);
        let headers = self::headers(headers, &compiler, &scope("a header of a backend"));
        let query = self::query(query, &compiler, &scope("the query of a backend"));
        Some(EntryValues { headers, query, pool: pool.build() })
    }
}

/// The headers, with their names in lower case.
pub fn headers(entries: &[Entry], compiler: &SkeletonCompiler, scope: &VariableScope) -> NamedValues {
    let cx = compiler.cx;
    let mut headers = Vec::new();
    for entry in entries {
        if !is_token(&entry.key) {
            cx.error(Code::UnsafeText, entry.key_span, format!("`{}` is not a valid header name", entry.key));
            continue;
        }
        if entry.value.as_text().is_some_and(|t| t.contains(LINE_BREAKS)) {
            cx.add(
                Diagnostic::new(Code::UnsafeText, entry.value.span, "a line break in a header")
                    .help("it would end the header and start another one"),
            );
            continue;
        }
        headers.extend(compiler.compile(&entry.value, scope).map(|s| (entry.key.to_ascii_lowercase(), s)));
    }
    headers
}

pub fn query(entries: &[Entry], compiler: &SkeletonCompiler, scope: &VariableScope) -> NamedValues {
    let compiled = entries.iter().filter_map(|entry| Some((entry.key.clone(), compiler.compile(&entry.value, scope)?)));
    compiled.collect()
}

//! Static routes: responses that need no backend, such as the list of models.

use super::gateway::{KnownNames, endpoint};
use super::rename_fields::RenameFields;
use crate::domain::variables;
use crate::mapping::language::expression::{ExpressionPool, ExpressionPoolBuilder};
use crate::mapping::language::scope::VariableScope;
use crate::mapping::language::skeleton::{Fragments, Skeleton, SkeletonCompiler};
use crate::mapping::source::field_reader::{FieldReader, LoadContext};
use crate::mapping::source::yaml::Node;

/// A response rendered from the gateway's own data: the list of models, one model.
#[derive(Debug)]
pub struct StaticRoute {
    pub method: String,
    /// `/v1/models/{model}`: a last segment in braces matches the rest of the path.
    pub path: String,
    pub body: Skeleton,
    pub pool: ExpressionPool,
}

impl StaticRoute {
    /// The path before `{model}`, if this route is about one model.
    pub fn prefix(&self) -> Option<&str> {
        self.path.strip_suffix("{model}")
    }

    pub fn parse(node: &Node, known: &KnownNames, cx: LoadContext) -> Option<StaticRoute> {
        let fields = FieldReader::of(node, "a static route", cx)?;
        let endpoint = fields.required("endpoint").and_then(|n| endpoint(n, cx));
        let body = fields.required("body")?;
        fields.finish();
        let mut fragments = Fragments::default();
        fragments.add(known.fragments);
        let pool = ExpressionPoolBuilder::new(known.tables.clone());
        let compiler =
            SkeletonCompiler { cx, pool: &pool, fragments: &fragments, rename_fields: &RenameFields::default() };
        let (method, path) = endpoint?;
        let variables = [variables::MODELS, variables::BUILD].into_iter();
        let one_model = path.ends_with("{model}").then_some(variables::MODEL);
        let scope = VariableScope::new("a static route", variables.chain(one_model));
        let body = compiler.compile(body, &scope)?;
        Some(StaticRoute { method, path, body, pool: pool.build()? })
    }
}

//! Pages: answers that need no backend, such as the list of models.

use super::gateway::{Known, endpoint};
use super::rename_fields::Names;
use crate::domain::variables::{Shape, Type};
use crate::mapping::language::expression::{Pool, PoolBuilder};
use crate::mapping::language::scope::Env;
use crate::mapping::language::skeleton::{Parts, Skeleton, SkeletonCx};
use crate::mapping::source::field_reader::{Cx, Fields};
use crate::mapping::source::yaml::Node;

/// A fixed answer made from what the gateway knows: the list of models, one model.
#[derive(Debug)]
pub struct Page {
    pub method: String,
    /// `/v1/models/{model}`: a last segment in braces takes the rest of the path.
    pub path: String,
    pub body: Skeleton,
    pub pool: Pool,
}

impl Page {
    /// The path before `{model}`, when this page is about one model.
    pub fn prefix(&self) -> Option<&str> {
        self.path.strip_suffix("{model}")
    }

    pub fn parse(node: &Node, known: &Known, cx: Cx) -> Option<Page> {
        let fields = Fields::of(node, "a page", cx)?;
        let endpoint = fields.required("endpoint").and_then(|n| endpoint(n, cx));
        let body = fields.required("body")?;
        fields.done();
        let mut parts = Parts::default();
        parts.add(known.parts);
        let pool = PoolBuilder::new(known.tables.clone());
        let scx = SkeletonCx { cx, pool: &pool, parts: &parts, names: &Names::default() };
        let (method, path) = endpoint?;
        let mut env = Env::new("a page", [("models", Type::List(Shape::Model)), ("build", Type::Record(Shape::Build))]);
        if path.ends_with("{model}") {
            env = env.with("model", Type::Record(Shape::Model));
        }
        let body = scx.compile(body, &env)?;
        Some(Page { method, path, body, pool: pool.build()? })
    }
}

//! Compiles a dialect file with the patches and policies of a profile: request rules, frames by moment, body, errors,
//! order.

use super::dialect_capture::CapturePlan;
use super::dialect_request::RequestPlan;
use super::profile::Profile;
use super::profile_patch::PatchedDialect;
use super::rename_fields::RenameFields;
use super::schemas::SchemaCache;
use crate::diagnostics::Span;
use crate::domain::variables::{self, Variable};
use crate::domain::{MomentKind, StreamFormat};
use crate::mapping::language::expression::{Expression, ExpressionPool, ExpressionPoolBuilder};
use crate::mapping::language::scope::VariableScope;
use crate::mapping::language::skeleton::{Fragments, Skeleton, SkeletonCompiler};
use crate::mapping::language::table::Tables;
use crate::mapping::policy::owners::DialectIndex;
use crate::mapping::policy::resolve::{ResolvedPolicies, SetBy};
use crate::mapping::source::field_reader::{FieldReader, LoadContext};
use crate::mapping::source::yaml::{Entry, Node};
use crate::order::Orders;
use reframe_json::Schema;
use std::sync::Arc;

#[derive(Debug)]
pub struct DialectPlan {
    pub name: String,
    pub profile: Option<String>,
    pub resolved: ResolvedPolicies,
    pub request: RequestPlan,
    pub encoding: StreamEncoding,
    frames: Vec<Vec<FramePlan>>,
    pub disabled_frames: Vec<DisabledFrame>,
    pub orders: Orders,
    pub body: ValidatedSkeleton,
    pub errors: ValidatedSkeleton,
    pub capture: CapturePlan,
    pub pool: ExpressionPool,
}

/// A skeleton and the schema of its output.
#[derive(Debug)]
pub struct ValidatedSkeleton {
    pub span: Span,
    pub skeleton: Skeleton,
    pub schema: Option<NamedSchema>,
    /// File and line, for the log.
    pub location: Arc<str>,
}

/// A schema and its path below `schemas/`.
#[derive(Clone, Debug)]
pub struct NamedSchema {
    pub name: String,
    pub schema: Arc<Schema>,
}

/// How frames are written to the stream.
#[derive(Debug)]
pub struct StreamEncoding {
    pub format: StreamFormat,
    pub content_type: String,
    /// The SSE event name of a data frame; reads `data` and `frame`.
    pub event: Option<Skeleton>,
}

#[derive(Debug)]
pub struct FramePlan {
    pub name: Arc<str>,
    pub span: Span,
    pub when: Option<Expression>,
    pub event: Option<String>,
    pub content: FrameContent,
    pub schema: Option<NamedSchema>,
    /// The policies that its expressions read, also those that were evaluated at load.
    pub policies: Vec<String>,
    /// From one delta to the next only the delta changes: the frame is rendered once, then reused from the frame cache.
    pub cacheable: bool,
    /// Its index among all frames of the dialect.
    pub ordinal: usize,
}

/// A frame that policies disable. It is not part of the plan; `explain` shows why it is not sent.
#[derive(Debug)]
pub struct DisabledFrame {
    pub moment: MomentKind,
    pub span: Span,
    pub policies: Vec<String>,
}

#[derive(Debug)]
pub enum FrameContent {
    Data(Skeleton),
    Text(Skeleton),
    Comment(Skeleton),
}

impl DialectPlan {
    /// Number of frames over all moments.
    pub fn frame_count(&self) -> usize {
        self.frames.iter().map(Vec::len).sum()
    }

    pub fn frames(&self, moment: MomentKind) -> &[FramePlan] {
        self.frames.get(moment as usize).map_or(&[], Vec::as_slice)
    }
}

/// What the compiler of a dialect needs besides the file.
pub struct DialectContext<'c> {
    pub cx: LoadContext<'c>,
    pub shared_tables: &'c Tables,
    pub shared_fragments: &'c [Entry],
    pub schemas: &'c SchemaCache<'c>,
    /// All dialects of the set, for profiles that refer to them.
    pub dialects: &'c DialectIndex<'c>,
}

/// `policies`: the resolved policies, if more layers than the profile apply. Else they are resolved here.
pub fn compile(
    source: &PatchedDialect,
    profile: Option<Profile>,
    policies: Option<&ResolvedPolicies>,
    context: &DialectContext,
) -> Option<DialectPlan> {
    let cx = context.cx;
    let (name, node) = (source.dialect.clone(), &*source.node);
    let own_schemas = source.base.get("schemas").and_then(Node::as_text);
    let mut rename_fields = RenameFields::default();
    if let Some(profile) = profile {
        for entry in profile.patch.iter().chain(profile.rename_fields) {
            context.dialects.check_dialect_name(entry, cx);
        }
        rename_fields = profile.renames(&name, cx);
    }
    let fields = FieldReader::of(node, "a dialect", cx)?;
    fields.get("dialect");
    let tables = Tables::parse(fields.map("tables"), cx).with_shared(context.shared_tables);
    let mut fragments = Fragments::default();
    fragments.add(fields.map("fragments"));
    fragments.add(context.shared_fragments);
    let (custom, settings) = (fields.map("custom_policies"), fields.map("policies"));
    let resolved = match policies {
        Some(policies) => policies.clone(),
        None => {
            let base = ResolvedPolicies::dialect(custom, settings, cx);
            let entries = profile.map_or(&[] as &[Entry], |p| p.policies);
            let of_profile = base.read_per_dialect(&name, context.dialects, entries, &SetBy::Profile, cx);
            base.with_settings([base.settings.clone(), of_profile].concat())
        }
    };
    let schemas = fields.get("schemas").and_then(|n| context.schemas.folder(n, cx));
    let request = fields.required("request").and_then(|n| RequestPlan::parse(n, &tables, cx));
    let pool = ExpressionPoolBuilder::new(tables.clone()).policies(&resolved.policies.values);
    let compiler = Compiler {
        skeletons: SkeletonCompiler { cx, pool: &pool, fragments: &fragments, rename_fields: &rename_fields },
        context,
        schemas,
        policies: resolved.words(),
    };
    let request = request.map(|plan| RequestPlan { schema: compiler.request_schema(own_schemas, node.span), ..plan });
    let stream = fields.required("stream").and_then(|n| compiler.stream(n));
    let body_scope = compiler.scope("the body", [variables::TURN, variables::REQUEST]);
    let body = fields.required("body").and_then(|n| compiler.validated(n, "body", &body_scope));
    let error_scope = compiler.scope("an error", [variables::FAULT]);
    let errors = fields.required("errors").and_then(|n| compiler.validated(n, "error", &error_scope));
    let frame_schema = |node: &Node, frame: &str| compiler.schema(frame, SchemaOf::Frame, node.span);
    let capture = CapturePlan::parse(fields.get("capture"), &tables, frame_schema, cx);
    fields.finish();
    let stream = stream?;
    let plan = DialectPlan {
        name,
        profile: profile.map(|p| p.name.to_owned()),
        resolved,
        request: request?,
        encoding: stream.encoding,
        frames: stream.frames,
        disabled_frames: stream.disabled_frames,
        orders: stream.orders,
        body: body?,
        errors: errors?,
        capture: capture?,
        pool: pool.build()?,
    };
    rename_fields.report_unused(&plan.name, cx);
    Some(plan)
}

/// What a schema is looked up for.
#[derive(Clone, Copy)]
pub(super) enum SchemaOf {
    Frame,
    Body,
}

pub(super) struct Compiler<'c, 'n> {
    pub(super) skeletons: SkeletonCompiler<'c, 'n>,
    pub(super) context: &'c DialectContext<'c>,
    /// The folder of this dialect's schemas.
    schemas: Option<&'c str>,
    pub(super) policies: Vec<(String, Vec<String>)>,
}

impl Compiler<'_, '_> {
    pub(super) fn scope<const N: usize>(&self, description: &str, variables: [Variable; N]) -> VariableScope {
        VariableScope::new(description, variables).policies(self.policies.clone())
    }

    /// A body or an error: a skeleton with the schema `schemas/DIALECT/NAME.json`.
    fn validated(&self, node: &Node, schema: &str, scope: &VariableScope) -> Option<ValidatedSkeleton> {
        let skeleton = self.skeletons.compile(node, scope)?;
        let location = Arc::from(self.context.cx.sources.show(node.span));
        let schema = self.schema(schema, SchemaOf::Body, node.span);
        Some(ValidatedSkeleton { span: node.span, skeleton, schema, location })
    }

    /// `chunk` is `schemas/chat/chunk.json`, else the definition `chunk` in the dialect's `events.json`, else
    /// `schemas/shared/chunk.json`.
    pub(super) fn schema(&self, name: &str, kind: SchemaOf, span: Span) -> Option<NamedSchema> {
        let folder = self.schemas?;
        let own = format!("{folder}/{name}.json");
        let shared = format!("shared/{name}.json");
        let event = format!("{folder}/events.json#/$defs/{name}");
        // A body is never one of the stream's events, whatever its name.
        let candidates = match kind {
            SchemaOf::Frame => vec![own.clone(), event, shared],
            SchemaOf::Body => vec![own.clone(), shared],
        };
        let found = candidates.into_iter().find(|p| self.context.schemas.contains(p));
        let name = found.unwrap_or(own);
        let schema = self.context.schemas.get_for_output(&name, span, self.context.cx)?;
        Some(NamedSchema { name, schema })
    }

    /// The schema of the request body. Without one, the dialect checks only what it reads.
    fn request_schema(&self, own: Option<&str>, span: Span) -> Option<NamedSchema> {
        // A profile with other output schemas need not repeat the request schema.
        let folders = [self.schemas, own].into_iter().flatten();
        let name = folders.map(|f| format!("{f}/request.json")).find(|name| self.context.schemas.contains(name))?;
        let schema = self.context.schemas.get(&name, span, self.context.cx)?;
        Some(NamedSchema { name, schema })
    }
}

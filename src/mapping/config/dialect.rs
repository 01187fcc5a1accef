//! Compiles a dialect file with the patches and policies of a profile: request rules, frames by moment, body, errors,
//! order.

use super::call_blocks::CallBlocksSection;
use super::dialect_capture::{CapturePlan, CaptureSection};
pub use super::dialect_plan::{
    CompiledDialect, DialectPlan, DisabledFrame, FrameContent, FramePlan, NamedSchema, StreamEncoding,
    ValidatedSkeleton,
};
use super::dialect_request::{RequestPlan, RequestSection};
use super::dialect_status;
use super::dialect_stream::StreamSection;
use super::inline::{CallId, DialectInlineSection, InlinePlan};
use super::metadata_lines::MetadataLinesSection;
use super::profile::Profile;
use super::profile_patch::PatchedDialect;
use super::request_values::RequestHeaders;
use super::schemas::SchemaCache;
use crate::diagnostics::{Code, Span};
use crate::domain::variables::{self, Variable};
use crate::domain::{IndexLaw, Policies, Text, Tree};
use crate::mapping::grammar::collections::{Entries, Map};
use crate::mapping::grammar::notation::{NameOf, Spanned};
use crate::mapping::grammar::policies::{CustomPolicies, DialectPolicies, custom_policies_are_declared};
use crate::mapping::grammar::unparsed::Unparsed;
use crate::mapping::grammar::{FromNode, Required, section};
use crate::mapping::language::directives::SkeletonNode;
use crate::mapping::language::expression::ExpressionPoolBuilder;
use crate::mapping::language::parsed_expressions::ParsedExpressions;
use crate::mapping::language::scope::{PolicyWords, VariableScope};
use crate::mapping::language::skeleton::Skeleton;
use crate::mapping::language::skeleton_compiler::SkeletonCompiler;
use crate::mapping::language::skeleton_fragments::Fragments;
use crate::mapping::language::state_read::StateRead;
use crate::mapping::language::table::{TableNode, Tables};
use crate::mapping::policy::owners::DialectIndex;
use crate::mapping::policy::resolve::{ResolvedPolicies, SetBy};
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::renamed_schemas;
use crate::mapping::source::yaml::{Entry, Node};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

section! {
    /// One client API: how a request is read, which frames a stream consists of, and what the JSON body and the errors
    /// look like.
    #[subject = "a dialect"]
    #[title = "a dialect"]
    #[transform = custom_policies_are_declared]
    pub struct DialectFile<'n> {
        /// Its name.
        dialect: String,
        /// The folder below `schemas/` with the schemas of its frames, body and errors; without it output is not
        /// checked.
        schemas: Option<Spanned<String>>,
        /// What `item.index` means to clients. The policies must fit to it: see [policies](policies.md#the-index-law).
        index: NameOf<IndexLaw> = NameOf(IndexLaw::Position),
        /// How a client's body is read.
        request: Required<Option<RequestSection<'n>>>,
        /// The policies of this dialect. Those of a profile take precedence.
        policies: Entries<'n, DialectPolicies> = Entries::default(),
        /// Policies that this dialect declares: a name and its values, the default first. Expressions read them as
        /// `policy.NAME`.
        custom_policies: Entries<'n, CustomPolicies> = Entries::default(),
        /// Tables, by name. They take precedence over those of shared.yaml.
        tables: Entries<'n, Map<TableNode>> = Entries::default(),
        /// Fragments, by name: skeletons for `$use`. They take precedence over those of shared.yaml.
        fragments: Entries<'n, Map<SkeletonNode<'n>>> = Entries::default(),
        /// The frames of a stream.
        stream: Required<Option<Unparsed<'n, StreamSection<'n>>>>,
        /// Blocks in the text of every model that are reasoning or tool calls, by name: for clients that ask a model
        /// for calls in its text.
        inline: Map<DialectInlineSection<'n>> = Map::default(),
        /// The id of a call to which the backend gives none. Default: `call_` and a random text.
        call_id: Option<CallId>,
        /// How tool calls are written into the text of a response.
        call_blocks: Option<CallBlocksSection<'n>>,
        /// Lines of a model's text that are removed.
        metadata_lines: Option<MetadataLinesSection<'n>>,
        /// How `reframe validate` reads this dialect's own frames.
        capture: Option<CaptureSection<'n>>,
        /// The whole response, for clients that do not stream. It sees `turn`, `request` and `policy`.
        body: Required<Option<SkeletonNode<'n>>>,
        /// The response to a fault before the first frame. It sees `fault` and `policy`.
        errors: Required<Option<SkeletonNode<'n>>>,
        /// The schema of `errors`, if it is not called `error`.
        error_schema: String = "error".to_owned(),
        /// How faults are reported: a map with any of `status`, `type`, `code`, `param`, `message` and `retryable`, which replace
        /// those of the fault, in `errors` and in frames. It sees `fault` and `policy`. Default: as they are.
        faults: Option<SkeletonNode<'n>>,
        /// Headers of every response, by name. They see `request`, `request_id`, `policy`, in a JSON response `turn`, and in
        /// an error `fault`. A header with a null value is not sent.
        headers: Entries<'n, RequestHeaders> = Entries::default(),
        /// The HTTP status of an error, from 400 to 599. It sees `fault`, `request`, `request_id` and `policy`. Null or any
        /// other value: `fault.status`.
        status: Option<SkeletonNode<'n>>,
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
    /// The expressions so far.
    pub expressions: Rc<ParsedExpressions>,
    /// What was compiled so far: most profiles change nothing of most dialects.
    pub shared: RefCell<Vec<SharedDialect>>,
}

/// A compiled dialect, and what it was compiled from.
pub struct SharedDialect {
    source: Arc<Node>,
    policies: Policies,
    compiled: Arc<CompiledDialect>,
}

/// The policies to compile with.
#[derive(Clone, Copy)]
pub struct GivenPolicies<'p> {
    pub resolved: &'p ResolvedPolicies,
    /// Those that are not constant.
    pub open: &'p [String],
}

/// `profiles`: the profile after those that it extends.
pub fn compile(
    source: &PatchedDialect,
    profiles: &[&Profile],
    given: GivenPolicies,
    context: &DialectContext,
) -> Option<DialectPlan> {
    let cx = context.cx;
    let (name, node) = (source.dialect.clone(), &*source.node);
    let own_schemas = source.base.get("schemas").and_then(Node::as_text);
    for entry in profiles.iter().flat_map(|profile| profile.patch.iter().chain(profile.rename_fields.items)) {
        context.dialects.check_dialect_name(entry, cx);
    }
    let rename_fields = Profile::renames(profiles, &name, cx);
    let profile = profiles.last();
    suppress_consequences(node, cx);
    let file = DialectFile::from_file(node, cx)?;
    let tables = Tables::parse(&file.tables, cx).with_shared(context.shared_tables, cx);
    let mut fragments = Fragments::default();
    fragments.add(file.fragments.items);
    fragments.add(context.shared_fragments);
    let (resolved, open_policies) = (given.resolved.clone(), given.open.to_vec());
    if rename_fields.is_empty()
        && let Some(compiled) = context.shared_dialect(source, &resolved, &open_policies)
    {
        return Some(DialectPlan { profile: profile.map(|p| p.name.to_owned()), resolved, compiled });
    }
    let schemas = file.schemas.as_ref().and_then(|folder| context.schemas.folder(folder, cx));
    let request = file.request.0.map(|section| RequestPlan::new(section, &tables, cx));
    let is_constant = |(name, _): &&(Text, Tree)| !open_policies.iter().any(|open| **open == **name);
    let constants: Vec<_> = resolved.policies.values.iter().filter(is_constant).cloned().collect();
    let pool = ExpressionPoolBuilder::new(tables.clone()).parsed(&context.expressions).policies(&constants);
    let compiler = Compiler {
        skeletons: SkeletonCompiler { cx, pool: &pool, fragments: &fragments, rename_fields: &rename_fields },
        context,
        schemas,
        own_schemas,
        renamed: profile.map_or(String::new(), |profile| renamed_schemas::suffix(profile.name, &name)),
        policies: resolved.words(),
    };
    let request = request.map(|plan| RequestPlan { schema: compiler.request_schema(own_schemas, node.span), ..plan });
    let stream = file.stream.0.and_then(|stream| compiler.stream(stream.node));
    let body_scope = compiler.scope("the body", [variables::TURN, variables::REQUEST]);
    let body = file.body.0.and_then(|body| compiler.validated(body.0, "body", &body_scope));
    let error_scope = compiler.scope("an error", [variables::FAULT]);
    let errors = file.errors.0.and_then(|errors| compiler.validated(errors.0, &file.error_schema, &error_scope));
    let faults = file.faults.as_ref().and_then(|faults| compiler.faults(faults.0));
    let head = compiler.head(&file.headers, file.status.as_ref());
    let frame_schema = |frame: &str, span: Span| compiler.schema(frame, SchemaOf::Frame, span);
    let capture = CapturePlan::new(file.capture, &tables, frame_schema, cx);
    let inline = InlinePlan::of_dialect(file.inline, &compiler);
    let call_blocks = compiler.call_blocks(file.call_blocks);
    let metadata_lines = compiler.metadata_lines(file.metadata_lines);
    let stream = stream?;
    let stream_reads = stream.reads();
    let body = body?;
    let body_reads = StateRead::of(None, &body.skeleton);
    let sent = stream.items_sent(&body.skeleton);
    let compiled = CompiledDialect {
        name,
        open_policies,
        request: request?,
        encoding: stream.encoding,
        frames: stream.frames,
        disabled_frames: stream.disabled_frames,
        orders: stream.orders,
        body,
        errors: errors?,
        faults,
        head,
        index: file.index.0,
        renames: rename_fields.pairs(),
        sent,
        capture,
        inline,
        call_id: file.call_id.map(|id| Arc::new(id.0)),
        call_blocks,
        metadata_lines,
        pool: pool.build(),
        stream_reads,
        body_reads,
    };
    rename_fields.report_unused(&compiled.name, cx);
    let compiled = Arc::new(compiled);
    context.shared.borrow_mut().push(SharedDialect {
        source: source.node.clone(),
        policies: resolved.policies.clone(),
        compiled: compiled.clone(),
    });
    Some(DialectPlan { profile: profile.map(|p| p.name.to_owned()), resolved, compiled })
}

/// A misspelled key is one mistake, not one for each name that is missing because of it.
fn suppress_consequences(node: &Node, cx: LoadContext) {
    if node.get("request").is_some_and(|request| request.misspells("rules")) {
        cx.findings.suppress(&[Code::UnknownReference]);
    }
    if node.get("stream").is_some_and(|stream| stream.misspells("schema")) {
        cx.findings.suppress(&[Code::BadSchema]);
    }
}

/// The policies of a dialect, with those that its profiles set.
pub fn resolve(source: &PatchedDialect, profiles: &[&Profile], context: &DialectContext) -> ResolvedPolicies {
    let entries = |key: &str| source.node.get(key).and_then(Node::as_map).unwrap_or_default();
    let base = ResolvedPolicies::dialect(entries("custom_policies"), entries("policies"), context.cx);
    let of_profiles = profiles.iter().flat_map(|profile| {
        let entries = profile.policies.items;
        base.read_per_dialect(&source.dialect, context.dialects, entries, &SetBy::Profile, context.cx)
    });
    base.with_settings(base.settings.iter().cloned().chain(of_profiles).collect())
}

impl DialectContext<'_> {
    /// A dialect without renamed fields that was compiled from the same files with the same policies.
    fn shared_dialect(
        &self,
        source: &PatchedDialect,
        resolved: &ResolvedPolicies,
        open_policies: &[String],
    ) -> Option<Arc<CompiledDialect>> {
        let shared = self.shared.borrow();
        let known = shared.iter().find(|known| {
            Arc::ptr_eq(&known.source, &source.node)
                && known.policies == resolved.policies
                && known.compiled.open_policies == open_policies
                && known.compiled.renames.is_empty()
        });
        known.map(|known| known.compiled.clone())
    }
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
    /// The folder without the profile: for what the profile's folder does not have.
    own_schemas: Option<&'c str>,
    /// What the folders of their copies with renamed fields end with, if there are any.
    renamed: String,
    pub(super) policies: PolicyWords,
}

impl Compiler<'_, '_> {
    pub(super) fn scope<const N: usize>(&self, description: &str, variables: [Variable; N]) -> VariableScope {
        VariableScope::new(description, variables).policies(self.policies.clone())
    }

    fn faults(&self, node: &Node) -> Option<Skeleton> {
        let scope = self.scope("`faults:`", [variables::FAULT]);
        let skeleton = self.skeletons.compile(node, &scope)?;
        dialect_status::check_faults(node, &skeleton, self.context.cx);
        Some(skeleton)
    }

    /// A body or an error: a skeleton with the schema `schemas/DIALECT/NAME.json`.
    fn validated(&self, node: &Node, schema: &str, scope: &VariableScope) -> Option<ValidatedSkeleton> {
        let skeleton = self.skeletons.compile(node, scope)?;
        let location = Arc::from(self.context.cx.sources.show(node.span));
        let schema = self.schema(schema, SchemaOf::Body, node.span);
        Some(ValidatedSkeleton { span: node.span, skeleton, schema, location })
    }

    /// `chunk` is `schemas/chat/chunk.json`, else the definition `chunk` in the dialect's `events.json`, else
    /// `schemas/shared/chunk.json`. If a profile has a folder of its own, that comes first.
    pub(super) fn schema(&self, name: &str, kind: SchemaOf, span: Span) -> Option<NamedSchema> {
        let folder = self.output_folder(self.schemas?);
        let own = format!("{folder}/{name}.json");
        let shared = format!("{}/{name}.json", self.output_folder("shared"));
        let event = format!("{folder}/events.json#/$defs/{name}");
        // A body is never one of the stream's events, whatever its name.
        let of_dialect = self.own_schemas.map(|folder| self.output_folder(folder)).filter(|own| *own != folder);
        let of_dialect = of_dialect.map(|f| (format!("{f}/{name}.json"), format!("{f}/events.json#/$defs/{name}")));
        let (file, definition) = of_dialect.unzip();
        let candidates = match kind {
            SchemaOf::Frame => vec![Some(own.clone()), Some(event), file, definition, Some(shared)],
            SchemaOf::Body => vec![Some(own.clone()), file, Some(shared)],
        };
        let found = candidates.into_iter().flatten().find(|p| self.context.schemas.contains(p));
        let name = found.unwrap_or(own);
        let schema = self.context.schemas.get_for_output(&name, span, self.context.cx)?;
        Some(NamedSchema { name, schema })
    }

    /// The folder of the schemas of output: the renamed ones, if the profile renames fields.
    fn output_folder(&self, folder: &str) -> String {
        let renamed = format!("{folder}{}", self.renamed);
        if self.context.schemas.has_folder(&renamed) { renamed } else { folder.to_owned() }
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

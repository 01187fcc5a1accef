//! Compiles a dialect file with the patches and policies of a profile: request rules, frames by moment, body, errors,
//! order.

use super::dialect_capture::{CapturePlan, CaptureSection};
use super::dialect_head::ResponseHead;
use super::dialect_request::{RequestPlan, RequestSection};
use super::dialect_stream::StreamSection;
use super::inline::{InlinePlan, InlineSection};
use super::profile::Profile;
use super::profile_patch::PatchedDialect;
use super::rename_fields::RenameFields;
use super::request_values::RequestHeaders;
use super::schemas::SchemaCache;
use crate::diagnostics::{Code, Span};
use crate::domain::variables::{self, Variable};
use crate::domain::{IndexLaw, MomentKind, SentItems, StreamFormat};
use crate::mapping::grammar::collections::{Entries, Map};
use crate::mapping::grammar::notation::{NameOf, Spanned};
use crate::mapping::grammar::policies::{CustomPolicies, DialectPolicies, custom_policies_are_declared};
use crate::mapping::grammar::unparsed::Unparsed;
use crate::mapping::grammar::{FromNode, Required, section};
use crate::mapping::language::directives::SkeletonNode;
use crate::mapping::language::expression::{Expression, ExpressionPool, ExpressionPoolBuilder};
use crate::mapping::language::scope::VariableScope;
use crate::mapping::language::skeleton::Skeleton;
use crate::mapping::language::skeleton_compiler::{Fragments, SkeletonCompiler};
use crate::mapping::language::state_read::StateRead;
use crate::mapping::language::table::{TableNode, Tables};
use crate::mapping::policy::owners::DialectIndex;
use crate::mapping::policy::resolve::{ResolvedPolicies, SetBy};
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::renamed_schemas;
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
    pub head: ResponseHead,
    pub index: IndexLaw,
    /// Old and new names of `rename_fields:`.
    pub renames: Vec<(String, String)>,
    /// The kinds of items that it sends.
    pub sent: SentItems,
    pub capture: CapturePlan,
    /// Blocks in the text of every backend.
    pub inline: InlinePlan,
    pub pool: ExpressionPool,
    /// What its frames read of the state of a turn.
    pub stream_reads: StateRead,
    /// What its body reads.
    pub body_reads: StateRead,
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

impl FrameContent {
    pub fn skeleton(&self) -> &Skeleton {
        let (FrameContent::Data(skeleton) | FrameContent::Text(skeleton) | FrameContent::Comment(skeleton)) = self;
        skeleton
    }
}

impl DialectPlan {
    /// Number of frames over all moments.
    pub fn frame_count(&self) -> usize {
        self.frames.iter().map(Vec::len).sum()
    }

    /// The skeletons of all frames, and of the body.
    pub fn outputs(&self) -> impl Iterator<Item = &Skeleton> {
        let frames = self.frames.iter().flatten().map(|frame| frame.content.skeleton());
        frames.chain([&self.body.skeleton])
    }

    pub fn frames(&self, moment: MomentKind) -> &[FramePlan] {
        self.frames.get(moment as usize).map_or(&[], Vec::as_slice)
    }
}

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
        inline: Map<InlineSection> = Map::default(),
        /// How `reframe validate` reads this dialect's own frames.
        capture: Option<CaptureSection<'n>>,
        /// The whole response, for clients that do not stream. It sees `turn`, `request` and `policy`.
        body: Required<Option<SkeletonNode<'n>>>,
        /// The response to a fault before the first frame. It sees `fault` and `policy`.
        errors: Required<Option<SkeletonNode<'n>>>,
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
}

/// `policies`: the resolved policies, if more layers than the profile apply. Else they are resolved here.
pub fn compile(
    source: &PatchedDialect,
    profile: Option<&Profile>,
    policies: Option<&ResolvedPolicies>,
    context: &DialectContext,
) -> Option<DialectPlan> {
    let cx = context.cx;
    let (name, node) = (source.dialect.clone(), &*source.node);
    let own_schemas = source.base.get("schemas").and_then(Node::as_text);
    let mut rename_fields = RenameFields::default();
    if let Some(profile) = profile {
        for entry in profile.patch.iter().chain(profile.rename_fields.items) {
            context.dialects.check_dialect_name(entry, cx);
        }
        rename_fields = profile.renames(&name, cx);
    }
    if node.get("request").is_some_and(|request| request.misspells("rules")) {
        cx.findings.suppress(&[Code::UnknownReference]);
    }
    if node.get("stream").is_some_and(|stream| stream.misspells("schema")) {
        cx.findings.suppress(&[Code::BadSchema]);
    }
    let file = DialectFile::from_file(node, cx)?;
    let tables = Tables::parse(&file.tables, cx).with_shared(context.shared_tables);
    let mut fragments = Fragments::default();
    fragments.add(file.fragments.items);
    fragments.add(context.shared_fragments);
    let resolved = match policies {
        Some(policies) => policies.clone(),
        None => {
            let base = ResolvedPolicies::dialect(&file.custom_policies, &file.policies, cx);
            let entries = profile.map_or(&[] as &[Entry], |p| p.policies.items);
            let of_profile = base.read_per_dialect(&name, context.dialects, entries, &SetBy::Profile, cx);
            base.with_settings([base.settings.clone(), of_profile].concat())
        }
    };
    let schemas = file.schemas.as_ref().and_then(|folder| context.schemas.folder(folder, cx));
    let request = file.request.0.map(|section| RequestPlan::new(section, &tables, cx));
    let pool = ExpressionPoolBuilder::new(tables.clone()).policies(&resolved.policies.values);
    let compiler = Compiler {
        skeletons: SkeletonCompiler { cx, pool: &pool, fragments: &fragments, rename_fields: &rename_fields },
        context,
        schemas,
        renamed: profile.map_or(String::new(), |profile| renamed_schemas::suffix(profile.name, &name)),
        policies: resolved.words(),
    };
    let request = request.map(|plan| RequestPlan { schema: compiler.request_schema(own_schemas, node.span), ..plan });
    let stream = file.stream.0.and_then(|stream| compiler.stream(stream.node));
    let body_scope = compiler.scope("the body", [variables::TURN, variables::REQUEST]);
    let body = file.body.0.and_then(|body| compiler.validated(body.0, "body", &body_scope));
    let error_scope = compiler.scope("an error", [variables::FAULT]);
    let errors = file.errors.0.and_then(|errors| compiler.validated(errors.0, "error", &error_scope));
    let head = compiler.head(&file.headers, file.status.as_ref());
    let frame_schema = |frame: &str, span: Span| compiler.schema(frame, SchemaOf::Frame, span);
    let capture = CapturePlan::new(file.capture, &tables, frame_schema, cx);
    let inline = InlinePlan::new(file.inline, cx);
    let stream = stream?;
    let stream_reads = stream.reads();
    let body = body?;
    let body_reads = StateRead::of(None, &body.skeleton);
    let sent = stream.items_sent(&body.skeleton);
    let plan = DialectPlan {
        name,
        profile: profile.map(|p| p.name.to_owned()),
        resolved,
        request: request?,
        encoding: stream.encoding,
        frames: stream.frames,
        disabled_frames: stream.disabled_frames,
        orders: stream.orders,
        body,
        errors: errors?,
        head,
        index: file.index.0,
        renames: rename_fields.pairs(),
        sent,
        capture,
        inline,
        pool: pool.build()?,
        stream_reads,
        body_reads,
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
    /// What the folders of their copies with renamed fields end with, if there are any.
    renamed: String,
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
        let folder = self.output_folder(self.schemas?);
        let own = format!("{folder}/{name}.json");
        let shared = format!("{}/{name}.json", self.output_folder("shared"));
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

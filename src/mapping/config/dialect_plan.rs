//! A compiled dialect: what the engine runs.

use super::call_blocks::CallBlocksPlan;
use super::dialect_capture::CapturePlan;
use super::dialect_head::ResponseHead;
use super::dialect_request::RequestPlan;
use super::event_name::EventName;
use super::inline::InlinePlan;
use super::metadata_lines::MetadataLinesPlan;
use crate::diagnostics::Span;
use crate::domain::call_id::CallIdFormat;
use crate::domain::{IndexLaw, MomentKind, SentItems, StreamFormat};
use crate::mapping::language::expression::{Expression, ExpressionPool};
use crate::mapping::language::skeleton::Skeleton;
use crate::mapping::language::state_read::StateRead;
use crate::mapping::policy::resolve::ResolvedPolicies;
use crate::order::Orders;
use reframe_json::Schema;
use std::ops::Deref;
use std::sync::Arc;

/// A compiled dialect with the policies of one kind of client.
#[derive(Debug)]
pub struct DialectPlan {
    pub profile: Option<String>,
    pub resolved: ResolvedPolicies,
    pub(super) compiled: Arc<CompiledDialect>,
}

/// A compiled dialect. Policies are constants in it, except for the open ones.
#[derive(Debug)]
pub struct CompiledDialect {
    pub name: String,
    /// Policies that expressions look up in each turn. Clients with different values of them share this plan.
    pub open_policies: Vec<String>,
    pub request: RequestPlan,
    pub encoding: StreamEncoding,
    pub(super) frames: Vec<Vec<FramePlan>>,
    pub disabled_frames: Vec<DisabledFrame>,
    pub orders: Orders,
    pub body: ValidatedSkeleton,
    pub errors: ValidatedSkeleton,
    /// How faults are reported: a map with `status`, `type`, `code`, `param`, `message` and `retryable`.
    pub faults: Option<Skeleton>,
    pub head: ResponseHead,
    pub index: IndexLaw,
    /// Old and new names of `rename_fields:`.
    pub renames: Vec<(String, String)>,
    /// The kinds of items that it sends.
    pub sent: SentItems,
    pub capture: CapturePlan,
    /// Blocks in the text of every backend.
    pub inline: InlinePlan,
    /// The ids of calls to which the backend gives none.
    pub call_id: Option<Arc<CallIdFormat>>,
    /// How calls are written as text.
    pub call_blocks: Option<CallBlocksPlan>,
    /// Lines of text that are removed.
    pub metadata_lines: Option<MetadataLinesPlan>,
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
    /// Further headers of the stream.
    pub headers: Vec<(String, String)>,
    /// The SSE event name of a data frame; reads `data` and `frame`.
    pub event: Option<Skeleton>,
}

#[derive(Debug)]
pub struct FramePlan {
    pub name: Arc<str>,
    pub span: Span,
    pub when: Option<Expression>,
    pub event: Option<String>,
    pub event_name: EventName,
    pub content: FrameContent,
    pub schema: Option<NamedSchema>,
    /// The policies that its expressions read, also those that were evaluated at load.
    pub policies: Vec<String>,
    /// From one delta to the next only the delta changes: the frame is rendered once, then reused from the frame cache.
    pub cacheable: bool,
    /// Its index among all frames of the dialect.
    pub ordinal: usize,
    /// Whether `seq` counts it. A keepalive counts only if it shows its number.
    pub is_counted: bool,
    /// A keepalive that is also sent before the first frame.
    pub before_open: bool,
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

impl Deref for DialectPlan {
    type Target = CompiledDialect;

    fn deref(&self) -> &CompiledDialect {
        &self.compiled
    }
}

impl DialectPlan {
    /// The same dialect for clients with other values of the open policies.
    pub fn with_policies(&self, resolved: ResolvedPolicies) -> DialectPlan {
        DialectPlan { profile: self.profile.clone(), resolved, compiled: self.compiled.clone() }
    }

    /// Whether they differ in open policies at most.
    pub fn shares_compiled(&self, other: &DialectPlan) -> bool {
        Arc::ptr_eq(&self.compiled, &other.compiled)
    }
}

impl CompiledDialect {
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

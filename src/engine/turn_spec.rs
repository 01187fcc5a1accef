//! The inputs of a turn, and the pipeline that is built from them.

use super::frames::{FrameOutput, FrameProducer};
use super::inline::{InlineStage, metadata_lines, policies_allow};
use super::observer::Observer;
use super::pipeline::Pipeline;
use super::unread_answer::UnreadAnswer;
use crate::domain::{Redactor, ToolAliases, Tree, TurnRequest};
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::Validation;
use crate::order::OrderCheck;
use crate::turn::{Ids, Turn};
use std::sync::Arc;

/// The inputs of a pipeline.
pub struct TurnSpec {
    pub backend: Arc<BackendPlan>,
    pub dialect: Arc<DialectPlan>,
    pub request: Arc<TurnRequest>,
    pub validation: Validation,
    pub response_mode: ResponseMode,
    pub tool_aliases: ToolAliases,
    /// Removes the backend's API key from messages.
    pub redactor: Option<Redactor>,
    pub ids: Ids,
    /// Milliseconds since 1970.
    pub now_ms: u64,
}

/// How frames are rendered. Both modes give the same bytes; the golden tests compare them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenderMode {
    /// Cacheable frames are rendered once per cache key; later ones reuse the bytes.
    Cached,
    /// Every frame is interpreted.
    Interpreted,
}

/// The form of the response that the client requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseMode {
    Stream,
    Body,
}

impl Pipeline {
    pub fn new(spec: TurnSpec) -> Pipeline {
        let policies = spec.dialect.resolved.policies.clone();
        let (inline, lines) = (InlineStage::of_turn(&spec), metadata_lines(&spec));
        let request = &spec.request;
        let created = (spec.now_ms / 1000) as i64;
        let reads = match spec.response_mode {
            ResponseMode::Stream => spec.dialect.stream_reads,
            ResponseMode::Body => spec.dialect.body_reads,
        };
        let call_blocks = spec.dialect.call_blocks.as_ref();
        let call_blocks = call_blocks.filter(|blocks| policies_allow(blocks.when.as_ref(), &spec.dialect));
        let call_blocks = call_blocks.map(|blocks| blocks.format.clone());
        let turn = Turn::new(policies, spec.ids, &request.model, request.n, created)
            .request_chars(request_chars(request))
            .keep_logprobs(reads.logprobs)
            .represents_calls(reads.calls || call_blocks.is_some())
            .call_blocks(call_blocks)
            .call_ids(spec.dialect.call_id.clone())
            .opens_with_arguments(spec.dialect.stream_reads.args)
            .parse_inputs(reads.inputs)
            .sends(spec.dialect.sent)
            .reports_faults(spec.dialect.clone())
            .tool_aliases(spec.tool_aliases)
            .single_body(spec.response_mode == ResponseMode::Body);
        let producer = FrameProducer {
            dialect: spec.dialect,
            request: spec.request,
            validation: spec.validation,
            response_mode: spec.response_mode,
            order: OrderCheck::default(),
            seq: 0,
            output: FrameOutput::Frames(Vec::new()),
            cache: Vec::new(),
            counts: Vec::new(),
            render_mode: RenderMode::Cached,
            is_terminated: false,
            is_before_open: false,
            failure: None,
            violations: Vec::new(),
            observer: None,
        };
        Pipeline {
            backend: spec.backend,
            inline,
            metadata_lines: lines,
            turn,
            producer,
            has_started: false,
            unread_answer: UnreadAnswer::default(),
            truncated_by: None,
            redactor: spec.redactor,
            began_ms: spec.now_ms,
            response_head: Tree::Null,
        }
    }

    /// Limits the arguments of one call, in bytes.
    pub fn with_argument_limit(mut self, bytes: usize) -> Pipeline {
        self.turn.set_argument_limit(bytes);
        self
    }

    /// Limits the number of calls of a choice, which finishes after the last one.
    pub fn with_call_limit(mut self, calls: Option<usize>) -> Pipeline {
        self.turn.set_max_calls(calls.unwrap_or(usize::MAX));
        self
    }

    /// Writes frames as bytes, to be taken with [`Pipeline::drain`]; outputs then contain no frames.
    pub fn with_byte_output(mut self) -> Pipeline {
        self.producer.output = FrameOutput::Bytes(Vec::new());
        self
    }

    pub fn with_render_mode(mut self, mode: RenderMode) -> Pipeline {
        self.producer.render_mode = mode;
        self
    }

    pub fn with_observer(mut self, observer: Box<dyn Observer>) -> Pipeline {
        self.producer.observer = Some(observer);
        self
    }
}

/// The length of the request's text, from which usage is estimated.
pub fn request_chars(request: &TurnRequest) -> usize {
    let contents = request.content.items().iter().filter_map(|item| item.content());
    contents.map(|content| content.text().chars().count()).sum()
}

//! What a turn is set up with: its policies, its limits, and what the client's dialect reads and sends.

use super::choice_state::PendingLogprobs;
use super::{Ids, Limits, Turn};
use crate::domain::call_block::CallBlockFormat;
use crate::domain::call_id::CallIdFormat;
use crate::domain::policy::{ModelEcho, ToolFirstArguments};
use crate::domain::{FaultReporter, Policies, SentItems, ToolAliases, TurnState, Usage};
use std::sync::Arc;

impl Turn {
    pub fn new(policies: Policies, mut ids: Ids, model: &str, requested_choices: usize, created: i64) -> Turn {
        let model = match policies.model_echo {
            ModelEcho::Effective | ModelEcho::Requested => model.to_owned(),
            ModelEcho::RequestedLower => model.to_lowercase(),
        };
        let state = TurnState { id: ids.next(), created, model, ..TurnState::default() };
        Turn {
            state,
            policies,
            ids,
            choices: Vec::new(),
            requested_choices,
            request_chars: 0,
            usage: Usage::default(),
            first_logprobs: PendingLogprobs::default(),
            keep_logprobs: true,
            tool_aliases: ToolAliases::default(),
            represents_calls: true,
            parse_inputs: true,
            sent: SentItems::ALL,
            sent_items: 0,
            blocks: 0,
            single_body: false,
            aggregated: false,
            headers_sent: false,
            opened: false,
            truncating: false,
            ended: false,
            late_events: 0,
            discarded: Vec::new(),
            has_unread: false,
            opens_with_arguments: false,
            call_ids: None,
            call_blocks: None,
            max_calls: usize::MAX,
            chunk: 0,
            hints: Vec::new(),
            call_events: 0,
            reporter: None,
            bytes: 0,
            limits: Limits::default(),
        }
    }

    /// Sets the size of the request for `usage: estimate`.
    pub fn request_chars(mut self, chars: usize) -> Turn {
        self.request_chars = chars;
        self
    }

    /// Sets whether log-probabilities are kept after the frame of their text.
    pub fn keep_logprobs(mut self, keep: bool) -> Turn {
        self.keep_logprobs = keep;
        self
    }

    /// Sets whether the client's dialect can represent tool calls.
    pub fn represents_calls(mut self, represents_calls: bool) -> Turn {
        self.represents_calls = represents_calls;
        self
    }

    /// Sets whether the arguments of calls are also kept as JSON.
    pub fn parse_inputs(mut self, parse: bool) -> Turn {
        self.parse_inputs = parse;
        self
    }

    /// Sets the kinds of items that the client's dialect sends: only these are counted.
    pub fn sends(mut self, sent: SentItems) -> Turn {
        self.sent = sent;
        self
    }

    pub fn set_memory_limit(&mut self, bytes: usize) {
        self.limits.bytes = bytes;
    }

    /// Sets the tools that were sent to the backend in another form; their calls are converted back.
    pub fn tool_aliases(mut self, tool_aliases: ToolAliases) -> Turn {
        self.tool_aliases = tool_aliases;
        self
    }

    /// Sets whether the dialect reads the first arguments of a call when it opens.
    pub fn opens_with_arguments(mut self, reads: bool) -> Turn {
        self.opens_with_arguments = reads && self.policies.tool_first_delta_args == ToolFirstArguments::Value;
        self
    }

    /// Sets how the dialect reports faults: also those that the turn itself finds.
    pub fn reports_faults(mut self, reporter: Arc<dyn FaultReporter>) -> Turn {
        self.reporter = Some(reporter);
        self
    }

    /// Sets the ids of calls to which the backend gives none.
    pub fn call_ids(mut self, format: Option<Arc<CallIdFormat>>) -> Turn {
        self.call_ids = format;
        self
    }

    /// Sets how calls are written as text.
    pub fn call_blocks(mut self, format: Option<Arc<CallBlockFormat>>) -> Turn {
        self.call_blocks = format;
        self
    }

    /// Sets how many calls a choice may make. It finishes after the last one.
    pub fn set_max_calls(&mut self, calls: usize) {
        self.max_calls = calls;
    }

    /// Sets whether the client gets one JSON body instead of a stream.
    pub fn single_body(mut self, single_body: bool) -> Turn {
        self.single_body = single_body;
        self
    }
}

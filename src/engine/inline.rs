//! The inline blocks of a turn: those of its backend and of its dialect, searched for between decoding and the turn.

use super::observer::TraceEvent;
use super::pipeline::{Pipeline, TurnSpec};
use crate::diagnostics::Span;
use crate::domain::Event;
use crate::domain::inline::InlineBlock;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;
use crate::turn::inline::{CallableTools, InlineEvent, InlinePass};
use std::sync::Arc;

/// Decoded events on their way to the turn.
pub struct InlineStage {
    pub(super) pass: InlinePass,
    /// The place of each block in its file.
    spans: Vec<Span>,
    /// Reused for every event.
    output: Vec<InlineEvent>,
}

impl InlineStage {
    /// `None` if the turn can have no inline blocks. Of two blocks with the same tag, the backend's is found.
    pub fn new(backend: &BackendPlan, dialect: Option<&DialectPlan>, tools: CallableTools) -> Option<InlineStage> {
        let of_dialect = dialect.map_or(&[] as &[_], |dialect| &dialect.inline.0);
        if backend.inline.is_empty() && of_dialect.is_empty() {
            return None;
        }
        let is_other = |block: &InlineBlock| backend.inline.0.iter().all(|(known, _)| known.open != block.open);
        let others = of_dialect.iter().filter(|(block, _)| is_other(block));
        let (blocks, spans): (Vec<Arc<InlineBlock>>, Vec<Span>) =
            backend.inline.0.iter().chain(others).cloned().unzip();
        let pass = InlinePass::new(&blocks, tools, backend.has_text_snapshots())?;
        Some(InlineStage { pass, spans, output: Vec::new() })
    }

    pub(super) fn of_turn(spec: &TurnSpec) -> Option<InlineStage> {
        if spec.backend.inline.is_empty() && spec.dialect.inline.is_empty() {
            return None;
        }
        let tools = CallableTools::of(&spec.request, &spec.tool_aliases);
        InlineStage::new(&spec.backend, Some(&spec.dialect), tools)
    }

    /// What an event becomes, each with the rule or the block that it was read by.
    pub fn push(&mut self, event: Event, rule: Span) -> Vec<(Event, Span)> {
        self.pass.push(event, &mut self.output);
        self.take(rule)
    }

    /// What was held back, at the end of the turn. Text has no rule then.
    pub fn flush(&mut self, end: Span) -> Vec<(Event, Span)> {
        self.pass.flush(&mut self.output);
        self.take(end)
    }

    fn take(&mut self, rule: Span) -> Vec<(Event, Span)> {
        let span = |block: Option<usize>| block.and_then(|block| self.spans.get(block)).copied().unwrap_or(rule);
        self.output.drain(..).map(|(event, block)| (event, span(block))).collect()
    }
}

impl Pipeline {
    /// Processes an event that the rules emitted.
    pub(super) fn push_decoded(&mut self, event: Event, rule: Span, now_ms: u64) {
        let Some(inline) = &mut self.inline else {
            self.advance_traced(event, rule, now_ms);
            return;
        };
        let held = inline.pass.held_bytes();
        let events = inline.push(event, rule);
        let now_held = inline.pass.held_bytes();
        for (event, rule) in events {
            self.advance_traced(event, rule, now_ms);
        }
        if now_held > held {
            self.producer.trace(TraceEvent::Held(now_held));
        }
    }

    /// Processes the text that is held back, because nothing follows it.
    pub(super) fn flush_inline(&mut self, now_ms: u64) {
        let Some(inline) = &mut self.inline else { return };
        for (event, rule) in inline.flush(self.backend.span) {
            self.advance_traced(event, rule, now_ms);
        }
    }

    fn advance_traced(&mut self, event: Event, rule: Span, now_ms: u64) {
        self.producer.trace(TraceEvent::Event(&event, rule));
        self.advance(event, now_ms);
    }
}

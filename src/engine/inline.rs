//! The inline blocks of a turn: those of its backend and of its dialect, searched for between decoding and the turn.

use super::observer::TraceEvent;
use super::pipeline::{Pipeline, TurnSpec};
use super::render::{Scope, is_true};
use crate::diagnostics::Span;
use crate::domain::Event;
use crate::domain::inline::InlineBlock;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::inline::InlineEntry;
use crate::mapping::language::expression::Expression;
use crate::turn::inline::{CallableTools, InlineEvent, InlinePass, MetadataLines};
use std::sync::Arc;

/// Decoded events on their way to the turn.
pub struct InlineStage {
    pub(super) pass: InlinePass,
    /// The place of each block in its file.
    spans: Vec<Span>,
    /// Reused for every event.
    output: Vec<InlineEvent>,
    /// The calls that were found in text.
    pub(super) calls: usize,
    /// The choice of a block of reasoning that was the last event.
    reasoning_in: Option<usize>,
}

impl InlineStage {
    /// `None` if the turn can have no inline blocks. Of two blocks with the same tag, the backend's is found.
    pub fn new(backend: &BackendPlan, dialect: Option<&DialectPlan>, tools: CallableTools) -> Option<InlineStage> {
        let of_dialect = dialect.map_or(&[] as &[_], |dialect| &dialect.inline.0);
        if backend.inline.is_empty() && of_dialect.is_empty() {
            return None;
        }
        let is_on = |entry: &&InlineEntry| dialect.is_none_or(|dialect| policies_allow(entry.when.as_ref(), dialect));
        let is_other = |entry: &&InlineEntry| backend.inline.0.iter().all(|known| known.block.open != entry.block.open);
        let others = of_dialect.iter().filter(is_other).filter(is_on);
        let (blocks, spans): (Vec<Arc<InlineBlock>>, Vec<Span>) =
            backend.inline.0.iter().chain(others).map(|entry| (entry.block.clone(), entry.span)).unzip();
        let pass = InlinePass::new(&blocks, tools, backend.has_text_snapshots())?;
        Some(InlineStage { pass, spans, output: Vec::new(), calls: 0, reasoning_in: None })
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
        let is_call = |(event, block): &&InlineEvent| block.is_some() && matches!(event, Event::Tool { .. });
        self.calls += self.output.iter().filter(is_call).count();
        let span = |block: Option<usize>| block.and_then(|block| self.spans.get(block)).copied().unwrap_or(rule);
        self.output.drain(..).map(|(event, block)| (event, span(block))).collect()
    }
}

/// Removes metadata lines, if the dialect does that under its policies.
pub(super) fn metadata_lines(spec: &TurnSpec) -> Option<MetadataLines> {
    let plan = spec.dialect.metadata_lines.as_ref()?;
    policies_allow(plan.when.as_ref(), &spec.dialect)
        .then(|| MetadataLines::new(plan.keys.clone(), plan.json_lines, spec.backend.has_text_snapshots()))
}

/// Whether a condition on policies is true.
pub(super) fn policies_allow(when: Option<&Expression>, dialect: &DialectPlan) -> bool {
    let is_met = |when| is_true(when, &Scope::default().with_policies(dialect), &dialect.pool).unwrap_or(false);
    when.is_none_or(is_met)
}

impl Pipeline {
    /// Limits the memory of what the turn keeps, in bytes.
    pub fn with_memory_limit(mut self, bytes: usize) -> Pipeline {
        self.turn.set_memory_limit(bytes);
        if let Some(inline) = &mut self.inline {
            inline.pass.set_memory_limit(bytes);
        }
        if let Some(lines) = &mut self.metadata_lines {
            lines.set_memory_limit(bytes);
        }
        self
    }

    /// Processes an event that the rules emitted.
    pub(super) fn push_decoded(&mut self, event: Event, rule: Span, now_ms: u64) {
        let Some(lines) = &mut self.metadata_lines else {
            self.push_inline(event, rule, now_ms);
            return;
        };
        let mut events = Vec::new();
        lines.push(event, &mut events);
        for event in events {
            self.push_inline(event, rule, now_ms);
        }
    }

    fn push_inline(&mut self, event: Event, rule: Span, now_ms: u64) {
        let Some(inline) = &mut self.inline else {
            self.advance_traced(event, rule, now_ms);
            return;
        };
        let held = inline.pass.held_bytes();
        let events = inline.push(event, rule);
        let now_held = inline.pass.held_bytes();
        for (event, found_by) in events {
            self.trace_inline_block(&event, found_by != rule);
            self.advance_traced(event, found_by, now_ms);
        }
        if now_held > held {
            self.producer.trace(TraceEvent::Held(now_held));
        }
    }

    /// Processes the text that is held back, because nothing follows it.
    pub(super) fn flush_inline(&mut self, now_ms: u64) {
        let mut events = Vec::new();
        if let Some(lines) = &mut self.metadata_lines {
            lines.flush(&mut events);
        }
        for event in events {
            self.push_inline(event, self.backend.span, now_ms);
        }
        let Some(inline) = &mut self.inline else { return };
        let end = self.backend.span;
        for (event, found_by) in inline.flush(end) {
            self.trace_inline_block(&event, found_by != end);
            self.advance_traced(event, found_by, now_ms);
        }
    }

    fn trace_inline_block(&mut self, event: &Event, is_block: bool) {
        let Some(inline) = &mut self.inline else { return };
        match event {
            Event::Tool { name: Some(name), .. } if is_block => {
                inline.reasoning_in = None;
                self.producer.trace(TraceEvent::InlineCall("found", name));
            }
            // A block of reasoning is sent as it arrives: it is reported with its first event.
            Event::Reasoning { choice, .. } if is_block => {
                let is_first = inline.reasoning_in.replace(*choice) != Some(*choice);
                if is_first {
                    self.producer.trace(TraceEvent::InlineReasoning);
                }
            }
            // Other output ends it; what only describes the turn does not.
            Event::Text { .. } | Event::Refusal { .. } | Event::Tool { .. } => inline.reasoning_in = None,
            _ => {}
        }
    }

    fn advance_traced(&mut self, event: Event, rule: Span, now_ms: u64) {
        self.producer.trace(TraceEvent::Event(&event, rule));
        self.advance(event, now_ms);
    }
}

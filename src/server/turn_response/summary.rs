//! The summary of a turn: one log line, its metrics, and its record in the usage log.

use super::TurnStream;
use crate::domain::policy::FinishDebug;
use crate::domain::{ItemKind, MomentKind, Usage};
use crate::server::access_line::CallerLabels;
use crate::server::usage_report;
use crate::telemetry::{EndedTurn, OperationLabels, TurnLabels, UsageLog};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// What the summary needs to know of a turn besides its state.
pub struct TurnAbout {
    pub caller: CallerLabels,
    /// The model as gateway.yaml names it, and as the client requested it.
    pub model: String,
    pub requested: String,
    pub provider: String,
}

/// The status of a turn that its client did not wait for.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// What was counted of a turn that ended.
struct TurnSummary<'t> {
    turn: &'t TurnStream,
    status: u16,
    outcome: &'static str,
    error: Option<&'static str>,
    finish: Option<&'static str>,
    output_mode: Option<&'t str>,
    usage: Usage,
    /// The usage is an estimate.
    estimated: bool,
    tool_calls: usize,
    tool_source: Option<&'static str>,
    duration: Duration,
}

impl TurnStream {
    pub(super) fn summarize(&self) {
        let summary = TurnSummary::new(self);
        self.admission.charge(summary.usage.total());
        summary.log();
        if let Some(log) = &self.generation.plan.gateway.usage_log {
            UsageLog::shared().write(usage_report::file_of(log), &summary.usage_record());
        }
        summary.observe();
    }
}

impl<'t> TurnSummary<'t> {
    fn new(turn: &'t TurnStream) -> TurnSummary<'t> {
        let state = turn.pipeline.state();
        let fault = turn.pipeline.fault();
        let status = match fault {
            Some(fault) if !turn.pipeline.is_open() || !turn.stream => fault.status(),
            None if !turn.is_over || !turn.has_client => CLIENT_CLOSED_REQUEST,
            Some(_) | None => 200,
        };
        let (usage, estimated) = turn.pipeline.counted_usage();
        let calls = state.items.iter().filter(|item| matches!(item.kind, ItemKind::Function | ItemKind::Custom));
        let tool_calls = calls.count();
        let tool_source = match turn.pipeline.textual_calls() {
            0 => (tool_calls > 0).then_some("structured"),
            _ => Some("textual"),
        };
        TurnSummary {
            turn,
            status,
            outcome: turn.outcome(),
            error: fault.map(|fault| fault.kind.name()),
            finish: state.finish.map(|finish| finish.name()),
            output_mode: turn.dialect.resolved.policies.value("output_mode").and_then(|mode| mode.as_str()),
            usage,
            estimated,
            tool_calls,
            tool_source,
            duration: turn.deadlines.elapsed(),
        }
    }

    fn first_frame_ms(&self) -> Option<u64> {
        self.turn.first_frame.map(|first| first.as_millis() as u64)
    }

    fn log(&self) {
        let (turn, state) = (self.turn, self.turn.pipeline.state());
        let (id, caller) = (&turn.id, &turn.about.caller);
        if turn.dialect.resolved.policies.finish_debug == FinishDebug::Log {
            let reasons: Vec<&str> =
                state.choices.iter().map(|choice| choice.finish.map_or("none", |finish| finish.name())).collect();
            let reasons = reasons.join(",");
            tracing::info!(id, route = caller.route, reasons, tool_calls = self.tool_calls, "finish reason");
        }
        tracing::info!(
            id,
            route = caller.route,
            dialect = turn.dialect.name,
            backend = turn.backend,
            model = turn.about.model,
            client = caller.client,
            stream = turn.stream,
            status = self.status,
            outcome = self.outcome,
            output_mode = self.output_mode,
            tool_source = self.tool_source,
            finish = self.finish,
            input_tokens = self.usage.input,
            output_tokens = self.usage.output,
            estimated = self.estimated,
            choices = state.choices.len(),
            tool_calls = self.tool_calls,
            frames = turn.pipeline.frame_counts().iter().sum::<u64>(),
            first_frame_ms = self.first_frame_ms(),
            duration_ms = self.duration.as_millis() as u64,
            "turn ended"
        );
    }

    fn usage_record(&self) -> Value {
        let (turn, state, now) = (self.turn, self.turn.pipeline.state(), Timestamp::now());
        let caller = &turn.about.caller;
        json!({
            "ts": format!("{now:.3}"),
            "ts_ms": now.as_millisecond(),
            "phase": "usage_summary",
            "req_id": turn.id,
            "method": caller.method.as_str(),
            "route": caller.route,
            "mode": format!("{}_{}", turn.dialect.name, if turn.stream { "stream" } else { "nonstream" }),
            "dialect": turn.dialect.name,
            "backend": turn.backend,
            "requested_model": turn.about.requested,
            "model": state.model,
            "client": caller.client,
            "key": caller.key.as_deref(),
            "stream": turn.stream,
            "status_code": self.status,
            "outcome": self.outcome,
            "error": self.error,
            "finish": self.finish,
            "output_mode": self.output_mode,
            "input_tokens": self.usage.input,
            "output_tokens": self.usage.output,
            "total_tokens": self.usage.total(),
            "cached_tokens": self.usage.cached,
            "reasoning_tokens": self.usage.reasoning,
            "estimated": self.estimated,
            "choices": state.choices.len(),
            "tool_calls": self.tool_calls,
            "tool_source": self.tool_source,
            "first_frame_ms": self.first_frame_ms(),
            "duration_ms": self.duration.as_millis() as u64,
        })
    }

    fn observe(&self) {
        let turn = self.turn;
        let TurnAbout { caller, model, provider, .. } = &turn.about;
        let counts = turn.pipeline.frame_counts();
        let plans = MomentKind::ALL.iter().flat_map(|moment| turn.dialect.frames(*moment));
        let mut frames = plans.filter_map(|plan| {
            let count = counts.get(plan.ordinal).copied().filter(|count| *count > 0)?;
            Some((&*plan.name, count))
        });
        turn.metrics.turns.observe_turn(EndedTurn {
            labels: TurnLabels {
                route: caller.route.clone(),
                dialect: turn.dialect.name.clone(),
                backend: turn.backend.clone(),
                status: self.status,
                client: caller.client.clone(),
            },
            operation: OperationLabels {
                gen_ai_operation_name: "chat",
                gen_ai_provider_name: provider.clone(),
                gen_ai_request_model: model.clone(),
                error_type: self.error.unwrap_or_default(),
            },
            duration: self.duration,
            first_frame: turn.first_frame,
            input_tokens: self.usage.input.filter(|_| !self.estimated),
            output_tokens: self.usage.output.filter(|_| !self.estimated),
            frames: &mut frames,
        });
    }
}

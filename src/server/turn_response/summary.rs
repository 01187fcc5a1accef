//! The summary of a turn: one log line, its metrics, its record in the usage log, and the lines of `logs:` about its end.

use super::TurnStream;
use super::frame_lines::SentData;
use crate::domain::policy::FinishDebug;
use crate::domain::variables::{self, Record};
use crate::domain::{HttpExchange, ItemKind, LogMoment, MomentKind, Tree, TurnRequest, TurnSummary};
use crate::engine::pipeline::lock;
use crate::engine::render::Scope;
use crate::server::access_line::CallerLabels;
use crate::server::log_lines::{self, TurnLines};
use crate::server::usage_report;
use crate::telemetry::{EndedTurn, FileLog, OperationLabels, TurnLabels};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::mem;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the summary needs to know of a turn besides its state.
pub struct TurnAbout {
    pub caller: CallerLabels,
    /// The model as gateway.yaml names it, and as the client requested it.
    pub model: String,
    pub requested: String,
    pub provider: String,
    /// As the client sent it.
    pub request: Arc<TurnRequest>,
    /// What was sent, if lines of `logs:` read it.
    pub sent: Option<Arc<Mutex<SentData>>>,
}

/// The status of a turn that its client did not wait for.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// A turn that has ended.
struct EndedTurnLog<'t> {
    turn: &'t TurnStream,
    output_mode: Option<&'t str>,
    summary: TurnSummary,
    duration: Duration,
}

impl TurnStream {
    pub(super) fn summarize(&mut self) {
        let ended = EndedTurnLog::new(self);
        self.admission.charge(ended.summary.total_tokens);
        ended.log();
        let gateway = &self.generation.plan.gateway;
        if gateway.usage_log.is_some() || !gateway.logs.at(LogMoment::Turn).is_empty() {
            let http = HttpExchange { status: ended.summary.status, ..self.about.caller.exchange() };
            let sent = self.about.sent.as_ref().map_or(Tree::Null, |sent| lock(sent).to_tree());
            if let Some(log) = &gateway.usage_log {
                let members = log_lines::usage_members(&gateway.logs, || ended.scope(&http, &sent));
                FileLog::usage().write(usage_report::file_of(log), ended.usage_record(members));
            }
            log_lines::write(&gateway.logs, LogMoment::Turn, || ended.scope(&http, &sent));
        }
        let EndedTurnLog { summary, duration, .. } = ended;
        self.observe(&summary, duration);
    }

    /// Counts the self. The texts of its labels are not needed any more.
    fn observe(&mut self, summary: &TurnSummary, duration: Duration) {
        let blocks = self.pipeline.block_counts();
        self.metrics.count_inline_blocks("opened", blocks.opened);
        self.metrics.count_inline_blocks("read", blocks.read);
        self.metrics.count_inline_blocks("kept_as_text", blocks.kept_as_text);
        let TurnAbout { caller, model, provider, .. } = &mut self.about;
        let counts = self.pipeline.frame_counts();
        let plans = MomentKind::ALL.iter().flat_map(|moment| self.dialect.frames(*moment));
        let mut frames = plans.filter_map(|plan| {
            let count = counts.get(plan.ordinal).copied().filter(|count| *count > 0)?;
            Some((&*plan.name, count))
        });
        self.metrics.turns.observe_turn(EndedTurn {
            labels: TurnLabels {
                route: mem::take(&mut caller.route),
                dialect: self.dialect.name.clone(),
                backend: self.backend.clone(),
                status: summary.status,
                client: mem::take(&mut caller.client),
            },
            operation: OperationLabels {
                gen_ai_operation_name: "chat",
                gen_ai_provider_name: mem::take(provider),
                gen_ai_request_model: mem::take(model),
                error_type: summary.error.unwrap_or_default(),
            },
            duration,
            first_frame: self.first_frame,
            input_tokens: summary.input_tokens.filter(|_| !summary.estimated),
            output_tokens: summary.output_tokens.filter(|_| !summary.estimated),
            frames: &mut frames,
        });
    }
}

impl<'t> EndedTurnLog<'t> {
    fn new(turn: &'t TurnStream) -> EndedTurnLog<'t> {
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
        let duration = turn.deadlines.elapsed();
        let summary = TurnSummary {
            status,
            outcome: turn.outcome(),
            error: fault.map(|fault| fault.kind.name()),
            finish: state.finish.map(|finish| finish.name()),
            input_tokens: usage.input,
            output_tokens: usage.output,
            total_tokens: usage.total(),
            cached_tokens: usage.cached,
            reasoning_tokens: usage.reasoning,
            estimated,
            choices: state.choices.len(),
            tool_calls,
            tool_source,
            tool_call_limit: turn.generation.plan.gateway.limits.tool_calls.map(|calls| calls.0),
            frames: turn.pipeline.frame_counts().iter().sum(),
            first_frame_ms: turn.first_frame.map(|first| first.as_millis() as u64),
            duration_ms: duration.as_millis() as u64,
            metadata: turn.pipeline.removed_metadata(),
        };
        let output_mode = turn.dialect.resolved.policies.value("output_mode").and_then(|mode| mode.as_str());
        EndedTurnLog { turn, output_mode, summary, duration }
    }

    /// What lines of `logs:` see.
    fn scope<'s>(&'s self, http: &'s HttpExchange, sent: &'s Tree) -> Scope<'s> {
        let TurnStream { id, dialect, backend, about, pipeline, .. } = self.turn;
        let lines = TurnLines { request_id: id, http, request: &about.request, dialect, backend };
        lines
            .scope()
            .set(variables::TURN, Record::Turn(pipeline.state()))
            .set(variables::SUMMARY, Record::Summary(&self.summary))
            .set(variables::SENT, sent)
    }

    fn log(&self) {
        let (turn, state, summary) = (self.turn, self.turn.pipeline.state(), &self.summary);
        let (id, caller) = (&turn.id, &turn.about.caller);
        if turn.dialect.resolved.policies.finish_debug == FinishDebug::Log {
            let reasons: Vec<&str> =
                state.choices.iter().map(|choice| choice.finish.map_or("none", |finish| finish.name())).collect();
            let reasons = reasons.join(",");
            tracing::info!(id, route = caller.route, reasons, tool_calls = summary.tool_calls, "finish reason");
        }
        tracing::info!(
            id,
            route = caller.route,
            dialect = turn.dialect.name,
            backend = turn.backend,
            model = turn.about.model,
            client = caller.client,
            stream = turn.stream,
            status = summary.status,
            outcome = summary.outcome,
            output_mode = self.output_mode,
            tool_source = summary.tool_source,
            finish = summary.finish,
            input_tokens = summary.input_tokens,
            output_tokens = summary.output_tokens,
            estimated = summary.estimated,
            choices = summary.choices,
            tool_calls = summary.tool_calls,
            frames = summary.frames,
            first_frame_ms = summary.first_frame_ms,
            duration_ms = summary.duration_ms,
            "turn ended"
        );
    }

    /// `members`: those that gateway.yaml adds, which take precedence.
    fn usage_record(&self, members: Vec<(String, Tree)>) -> String {
        let (turn, state, now, summary) = (self.turn, self.turn.pipeline.state(), Timestamp::now(), &self.summary);
        let caller = &turn.about.caller;
        let mut record = json!({
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
            "status_code": summary.status,
            "outcome": summary.outcome,
            "error": summary.error,
            "finish": summary.finish,
            "output_mode": self.output_mode,
            "input_tokens": summary.input_tokens,
            "output_tokens": summary.output_tokens,
            "total_tokens": summary.total_tokens,
            "cached_tokens": summary.cached_tokens,
            "reasoning_tokens": summary.reasoning_tokens,
            "estimated": summary.estimated,
            "choices": summary.choices,
            "tool_calls": summary.tool_calls,
            "tool_source": summary.tool_source,
            "first_frame_ms": summary.first_frame_ms,
            "duration_ms": summary.duration_ms,
        });
        for (name, value) in members {
            record[name] = serde_json::from_str(&value.to_json()).unwrap_or(Value::Null);
        }
        record.to_string()
    }
}

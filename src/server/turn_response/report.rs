//! What is logged and counted of a turn: while it runs, and when it is dropped.

use super::TurnStream;
use crate::domain::{FaultKind, MalformedExtra, Tree};
use crate::engine::decode;
use crate::engine::pipeline::Violation;
use crate::telemetry::Direction;

impl TurnStream {
    /// Members of events that no rule reads, each counted and logged once per path and generation.
    pub(super) fn report_unread_members(&self, raw: &Tree) {
        let Some(rules) = &self.examined_by else { return };
        for path in decode::unread_members(rules, raw) {
            let detail = format!("`{path}` is not read");
            if self.reports.is_first(self.generation.number, &self.backend, &detail) {
                self.metrics.count_unread_member(&self.backend);
                let (id, backend) = (&self.id, &self.backend);
                tracing::info!(id, backend, path, "a member of upstream events that no rule reads; logged once");
            }
        }
    }

    /// Counted each time, logged once per backend and kind: a backend that sends one sends it in every event.
    pub(super) fn report_malformed_extra(&self, extra: &MalformedExtra) {
        let kind = extra.kind.name();
        if self.metrics.count_malformed_extra(&self.backend, kind) == 0 {
            let (id, backend, detail) = (&self.id, &self.backend, &extra.detail);
            tracing::warn!(id, backend, kind, detail, "malformed extra dropped; more of this kind are only counted");
        }
    }

    /// The client has disconnected, and the response is read to its end without it.
    pub(super) fn leave_client(&mut self) {
        self.has_client = false;
        self.slot = None;
        self.deadlines.stop_keepalives();
        self.metrics.count_disconnect();
        tracing::info!(id = self.id, backend = self.backend, "client disconnected, reading the response to its end");
    }

    /// The conversion of this turn, if the upstream response does not have the form that the client requested.
    fn conversion(&self) -> Option<Direction> {
        let stats = self.source.stats()?;
        match (self.stream, stats.streamed) {
            (false, true) => Some(Direction::StreamToJson),
            // An empty response counts as an empty stream, to which the same policies apply.
            (false, false) if self.is_empty() => Some(Direction::StreamToJson),
            (true, false) if stats.bytes > 0 && !self.is_empty() => Some(Direction::JsonToStream),
            (true, _) | (false, false) => None,
        }
    }

    /// The backend ended its response without an event, and no other fault occurred.
    fn is_empty(&self) -> bool {
        let has_no_events = self.source.stats().is_some_and(|t| t.events == 0);
        self.is_over && has_no_events && self.pipeline.fault().is_none_or(|f| f.kind == FaultKind::Empty)
    }

    pub(super) fn outcome(&self) -> &'static str {
        match self.pipeline.fault() {
            None if !self.is_over || !self.has_client => "disconnected",
            None if self.pipeline.truncated_by().is_some() => "partial",
            None if self.is_empty() => "empty",
            None => "completed",
            Some(fault) if fault.kind == FaultKind::Empty => "empty",
            Some(fault) if fault.kind == FaultKind::Timeout => "timeout",
            Some(fault) if fault.is_partial() && self.pipeline.is_open() => "partial",
            Some(_) => "failed",
        }
    }
}

impl Drop for TurnStream {
    /// Logs and counts the turn, however it ended.
    fn drop(&mut self) {
        self.summarize();
        let duration = self.deadlines.elapsed();
        let event = if self.pipeline.fault().is_some() { "a turn failed" } else { "a turn was truncated" };
        if let Some(fault) = self.pipeline.fault().or(self.pipeline.truncated_by()) {
            self.metrics.count_fault(&self.backend, fault.kind.name());
            let (kind, status) = (fault.kind.name(), fault.status());
            tracing::warn!(
                id = self.id,
                backend = self.backend,
                kind,
                status,
                reason = fault.full_message(),
                "{event}"
            );
        }
        if !self.is_over && self.pipeline.fault().is_none() {
            let (id, backend, stream) = (&self.id, &self.backend, self.stream);
            let duration_ms = duration.as_millis() as u64;
            // A client that stopped reading is counted where that was noticed.
            if self.response_watch.as_ref().is_some_and(|watch| watch.has_expired()) {
                tracing::warn!(id, backend, stream, duration_ms, "client stopped reading");
            } else {
                self.metrics.count_disconnect();
                tracing::info!(id, backend, stream, duration_ms, "client disconnected");
            }
        }
        for violation in self.pipeline.violations() {
            let (pointer, keyword) = (violation.pointer(), violation.keyword());
            let Violation { frame, reported, .. } = violation;
            let location = violation.template().map_or(String::new(), |span| self.generation.plan.sources.show(span));
            self.metrics.count_violation(&self.dialect.name, frame, keyword);
            let generation = self.generation.number;
            tracing::error!(id = self.id, frame, pointer, keyword, location, reported, generation, "frame violation");
        }
        self.metrics.count_late_events(self.pipeline.late_events());
        if let (Some(direction), Some(stats)) = (self.conversion(), self.source.stats()) {
            let outcome = self.outcome();
            self.metrics.count_conversion(direction, outcome, duration);
            let (id, backend, direction) = (&self.id, &self.backend, direction.name());
            let (events, skipped, bytes) = (stats.events, stats.skipped, stats.bytes);
            let duration_ms = duration.as_millis() as u64;
            tracing::info!(id, backend, direction, outcome, events, skipped, bytes, duration_ms, "response converted");
        }
    }
}

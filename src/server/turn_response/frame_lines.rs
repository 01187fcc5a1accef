//! The lines of `logs:` about the frames and the body of a turn.

use super::frame_log::{self, FrameLog};
use crate::domain::variables;
use crate::domain::{Frame, FrameBody, HttpExchange, LogMoment, Tree, TurnRequest};
use crate::engine::pipeline::{Observer, TraceEvent, lock};
use crate::engine::render::Scope;
use crate::mapping::config::dialect::DialectPlan;
use crate::reload::Generation;
use crate::server::log_lines::{self, TurnLines};
use std::sync::{Arc, Mutex};

/// Writes a line for each frame and for the body.
pub struct FrameLines {
    pub id: String,
    pub http: HttpExchange,
    pub request: Arc<TurnRequest>,
    pub dialect: Arc<DialectPlan>,
    pub backend: String,
    pub generation: Arc<Generation>,
    pub seq: u64,
    /// Keeps what is sent, if lines about the end of the turn read it.
    pub sent: Option<Arc<Mutex<SentData>>>,
}

/// What a turn sent, for lines about its end.
#[derive(Debug, Default)]
pub struct SentData {
    frames: Vec<Tree>,
    bytes: usize,
    /// Of a longer response, only the beginning is kept.
    is_cut: bool,
}

/// The bytes that are kept of one turn.
const MAX_SENT: usize = 1 << 20;

impl SentData {
    fn push(&mut self, data: &Tree, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.is_cut |= self.bytes > MAX_SENT;
        if !self.is_cut {
            self.frames.push(data.clone());
        }
    }

    /// As lines see it.
    pub fn to_tree(&self) -> Tree {
        Tree::map([("frames", Tree::from(self.frames.clone())), ("complete", Tree::from(!self.is_cut))])
    }
}

/// The observer of a turn, if its frames are logged. Without one, frames are not built a second time.
pub fn observer(lines: impl FnOnce() -> FrameLines, generation: &Generation) -> Option<Box<dyn Observer>> {
    let logs = &generation.plan.gateway.logs;
    let has_lines = [LogMoment::Frame, LogMoment::Body].iter().any(|moment| !logs.at(*moment).is_empty());
    let has_lines = has_lines || logs.reads_sent;
    match (has_lines, frame_log::is_enabled()) {
        (false, false) => None,
        (true, is_logged) => {
            let lines = lines();
            let frame_log = is_logged.then(|| FrameLog::new(&lines.id));
            Some(Box::new(LoggedFrames { lines: Some(lines), frame_log }))
        }
        (false, true) => {
            let frame_log = Some(FrameLog::new(&lines().id));
            Some(Box::new(LoggedFrames { lines: None, frame_log }))
        }
    }
}

struct LoggedFrames {
    lines: Option<FrameLines>,
    frame_log: Option<FrameLog>,
}

impl Observer for LoggedFrames {
    fn on(&mut self, event: TraceEvent) {
        if let Some(lines) = &mut self.lines {
            match &event {
                TraceEvent::Frame(frame, _) => lines.frame(frame),
                TraceEvent::Body(body, _) => lines.body(body),
                _ => {}
            }
        }
        if let Some(log) = &mut self.frame_log {
            log.on(event);
        }
    }
}

impl FrameLines {
    fn frame(&mut self, frame: &Frame) {
        let (data, bytes) = match &frame.body {
            FrameBody::Data(data) => (Some(data), data.to_json().len()),
            FrameBody::Text(text) | FrameBody::Comment(text) => (None, text.len()),
        };
        let seq = self.seq;
        self.seq += 1;
        self.keep(data, bytes);
        log_lines::write(&self.generation.plan.gateway.logs, LogMoment::Frame, || {
            self.scope()
                .set(variables::FRAME, &*frame.name)
                .set(variables::EVENT, frame.event.as_deref())
                .set(variables::DATA, data)
                .set(variables::BYTES, bytes)
                .set(variables::SEQ, seq)
        });
    }

    fn body(&self, body: &Tree) {
        let bytes = body.to_json().len();
        self.keep(Some(body), bytes);
        log_lines::write(&self.generation.plan.gateway.logs, LogMoment::Body, || {
            self.scope().set(variables::DATA, body).set(variables::BYTES, bytes)
        });
    }

    fn keep(&self, data: Option<&Tree>, bytes: usize) {
        if let (Some(sent), Some(data)) = (&self.sent, data) {
            lock(sent).push(data, bytes);
        }
    }

    fn scope(&self) -> Scope<'_> {
        let FrameLines { id, http, request, dialect, backend, .. } = self;
        TurnLines { request_id: id, http, request, dialect, backend }.scope()
    }
}

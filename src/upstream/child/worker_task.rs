//! The task of a worker, which talks to one child process: it sends the calls of many turns, gives each message to its
//! turn, answers the requests of the process, and cancels and closes turns that no client reads any more.

use super::call_writer::CallWriter;
use super::process::{ChildProcess, ProcessSettings};
use super::turn_entry::{HeldMessages, Pending, TurnEntry};
use super::turn_queue::TurnMessage;
use super::worker::{ReadyReport, TurnId, WorkerCommand, WorkerStatus};
use crate::domain::{Fault, FaultKind, Tree};
use crate::engine::conversation::{self, CallList, OutgoingCall, SessionValues};
use crate::engine::lines::LineSplitter;
use crate::mapping::config::backend::BackendPlan;
use reframe_json::Limits;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::process::ChildStdout;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::MissedTickBehavior;

/// How long output is read after the end of the process.
const LAST_OUTPUT: Duration = Duration::from_millis(50);
const TICK: Duration = Duration::from_secs(1);

pub struct WorkerTask {
    plan: Arc<BackendPlan>,
    settings: Arc<ProcessSettings>,
    pub(super) status: Arc<WorkerStatus>,
    pub(super) values: SessionValues,
    pub(super) writer: CallWriter,
    pub(super) turns: HashMap<TurnId, TurnEntry>,
    /// The turn of each value of `route_by:`.
    pub(super) routes: HashMap<String, TurnId>,
    /// What the calls of the session have kept so far.
    session: Tree,
    ready: Option<ReadyReport>,
    /// When the process last wrote something.
    last_output: Instant,
    is_retiring: bool,
}

/// Why a worker stops talking to its process.
enum Ended {
    /// The process closed its output, or has ended.
    Exited(String),
    /// It must be stopped.
    Stop(String),
}

/// Runs the task of a worker until its process has ended. Returns how it ended.
pub async fn run(
    mut process: ChildProcess,
    plan: Arc<BackendPlan>,
    settings: Arc<ProcessSettings>,
    status: Arc<WorkerStatus>,
    values: SessionValues,
    commands: UnboundedReceiver<WorkerCommand>,
    ready: ReadyReport,
) -> String {
    let (Some(stdin), Some(stdout)) = (process.child.stdin.take(), process.child.stdout.take()) else {
        return "the process has no standard streams".to_owned();
    };
    let writer = CallWriter::start(stdin, plan.clone());
    let mut task = WorkerTask {
        plan,
        settings: settings.clone(),
        status: status.clone(),
        values,
        writer,
        turns: HashMap::new(),
        routes: HashMap::new(),
        session: Tree::Map(Vec::new()),
        ready: Some(ready),
        last_output: Instant::now(),
        is_retiring: false,
    };
    let ended = task.converse(&mut process, stdout, commands).await;
    let how = match ended {
        Ended::Exited(how) => how,
        Ended::Stop(why) => {
            if !why.is_empty() {
                status.set_exit(&why);
                task.turns.clear();
            }
            process.terminate();
            if tokio::time::timeout(settings.stop_timeout, process.child.wait()).await.is_err() {
                process.kill();
            }
            let how = process.wait().await;
            if why.is_empty() { how } else { format!("{why}; {how}") }
        }
    };
    status.set_exit(&how);
    // Every turn in flight fails now: its queue has no sender any more. The sender of commands is closed already, so no
    // turn is given to this worker after that.
    drop(task);
    how
}

impl WorkerTask {
    async fn converse(
        &mut self,
        process: &mut ChildProcess,
        mut stdout: ChildStdout,
        mut commands: UnboundedReceiver<WorkerCommand>,
    ) -> Ended {
        let mut lines = LineSplitter::new(self.settings.line_bytes);
        let mut chunk = vec![0; 64 * 1024];
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.next_session_call(0);
        loop {
            // The count includes turns that were given to this worker and are not opened yet.
            if self.is_retiring && self.status.turns.load(Ordering::Relaxed) == 0 {
                return Ended::Stop(String::new());
            }
            tokio::select! {
                read = stdout.read(&mut chunk) => match read {
                    Ok(read @ 1..) => {
                        self.last_output = Instant::now();
                        if !self.on_bytes(&mut lines, &chunk[..read]) {
                            let limit = self.settings.line_bytes;
                            return Ended::Stop(format!("a message of the worker is larger than {limit} bytes"));
                        }
                    }
                    Ok(0) | Err(_) => {
                        // It closed its output without ending: nothing can be received from it.
                        let ended = tokio::time::timeout(LAST_OUTPUT, process.wait()).await;
                        return ended.map_or_else(|_| Ended::Stop("it closed its output".to_owned()), Ended::Exited);
                    }
                },
                how = process.wait() => {
                    while let Ok(Ok(read @ 1..)) = tokio::time::timeout(LAST_OUTPUT, stdout.read(&mut chunk)).await {
                        self.on_bytes(&mut lines, &chunk[..read]);
                    }
                    return Ended::Exited(how);
                }
                command = commands.recv() => match command {
                    Some(WorkerCommand::Stop) | None => return Ended::Stop(String::new()),
                    Some(command) => self.on_command(command),
                },
                _ = tick.tick() => {
                    self.inquire_about_turns();
                    self.close_late_turns();
                    if let Some(why) = self.stall() {
                        return Ended::Stop(why);
                    }
                }
            }
        }
    }

    /// Why the process counts as stalled.
    fn stall(&self) -> Option<String> {
        if self.writer.is_closed() {
            return Some("it closed its input".to_owned());
        }
        let limit = self.settings.read_timeout;
        if self.writer.unread_for() > limit {
            return Some(format!("it has read nothing for {} s", limit.as_secs()));
        }
        let limit = self.settings.answer_timeout?;
        (self.writer.unanswered_for(self.last_output) > limit)
            .then(|| format!("it has written nothing for {} s although a call waits for its answer", limit.as_secs()))
    }

    /// Sends a call of a turn, unless too much waits for the process already.
    fn call(&mut self, turn: TurnId, call: OutgoingCall) {
        let Some(entry) = self.turns.get_mut(&turn) else { return };
        let limit = self.settings.queue_bytes;
        if self.writer.queued_bytes() > limit {
            let message = format!("the worker reads too slowly: more than {limit} bytes are waiting for it");
            let code = Some("worker_busy".to_owned());
            let fault = Fault { code, retry_after: Some(1), ..Fault::new(FaultKind::Overloaded, message) };
            entry.send(TurnMessage::Failed(fault), 0);
            return;
        }
        let step = call.step;
        let id = self.writer.call(call, Pending::Turn { turn, step });
        entry.in_flight = id.is_some();
    }

    fn on_command(&mut self, command: WorkerCommand) {
        match command {
            WorkerCommand::Open { turn, plan, messages, closing } => {
                self.turns.insert(turn, TurnEntry::new(plan, messages, closing));
            }
            WorkerCommand::Call { turn, call } => self.call(turn, call),
            WorkerCommand::Finish(turn) => {
                if let Some(entry) = self.turns.get_mut(&turn) {
                    entry.is_cancelled = true;
                }
                self.settle(turn);
            }
            WorkerCommand::Close(turn) => {
                self.close(turn);
            }
            WorkerCommand::Retire => self.is_retiring = true,
            WorkerCommand::Stop => {}
        }
    }

    /// False if a line is too long.
    fn on_bytes(&mut self, lines: &mut LineSplitter, bytes: &[u8]) -> bool {
        let mut messages = Vec::new();
        let mut garbage = 0;
        let pushed = lines.push(bytes, &mut |line| {
            let limits = Limits { max_bytes: line.len(), ..Limits::default() };
            match Tree::parse_with(line, &limits) {
                _ if line.trim_ascii().is_empty() => {}
                Ok(message @ Tree::Map(_)) => messages.push((message, line.len())),
                Ok(_) | Err(_) => garbage += 1,
            }
            Ok(())
        });
        self.status.garbage_lines.fetch_add(garbage, Ordering::Relaxed);
        for (message, length) in messages {
            self.on_message(message, length);
        }
        pushed.is_ok()
    }

    fn on_message(&mut self, message: Tree, bytes: usize) {
        match (message.get("method").and_then(Tree::as_str), message.get("id")) {
            (Some(method), Some(id)) => {
                let (method, id) = (method.to_owned(), id.clone());
                self.answer(&method, id, &message);
                self.route(message, bytes);
            }
            (Some(_), None) => self.route(message, bytes),
            (None, Some(id)) if message.get("result").is_some() || message.get("error").is_some() => {
                if let Some(pending) = self.writer.take(id) {
                    self.on_answer(pending, message, bytes);
                }
            }
            (None, _) => {
                self.status.garbage_lines.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn on_answer(&mut self, pending: Pending, message: Tree, bytes: usize) {
        match pending {
            Pending::Session { step } => self.on_session_answer(step, &message),
            Pending::Turn { turn, step } => {
                let Some(entry) = self.turns.get_mut(&turn) else { return };
                entry.in_flight = false;
                if let Some(route) = entry.keep(step, &message) {
                    self.routes.insert(route, turn);
                }
                let answer = TurnMessage::Answer { step, kept: entry.kept.clone(), message };
                entry.send(answer, bytes);
                self.settle(turn);
            }
            Pending::Inquiry { turn, list, step } => self.on_inquiry_answer(turn, list, step, message, bytes),
            Pending::Closing { turn } => {
                let error = message.get("error");
                if let Some(entry) = self.turns.get_mut(&turn) {
                    entry.in_flight = false;
                    if error.is_some() {
                        entry.on_rejected_closing();
                    }
                }
                if let Some(error) = error {
                    tracing::debug!(error = error.to_json(), "the worker rejected a call that ends a turn");
                }
                self.settle(turn);
            }
        }
    }

    /// Gives a message to its turn.
    fn route(&mut self, message: Tree, bytes: usize) {
        let Some(conversation) = &self.plan.conversation else { return };
        let turn = conversation::route_of(conversation, &message).and_then(|route| self.routes.get(route)).copied();
        let Some((turn, entry)) = turn.and_then(|turn| Some((turn, self.turns.get_mut(&turn)?))) else { return };
        entry.on_message();
        let was_ended = entry.is_ended;
        entry.is_ended |= entry.ends_with(&message);
        let is_due = (entry.is_ended && !was_ended) || entry.take_cancel_again();
        if let Some(held) = &mut entry.held {
            held.messages.push((message, bytes));
            if held.is_overdue() {
                self.release(turn);
            }
        } else if conversation::reports_fault(conversation, &message) {
            entry.held = Some(HeldMessages::new(message, bytes));
            self.inquire(turn, CallList::Fault, 0);
        } else {
            self.deliver(turn, message, bytes);
        }
        if is_due {
            self.settle(turn);
        }
    }

    pub(super) fn deliver(&mut self, turn: TurnId, message: Tree, bytes: usize) {
        let Some(entry) = self.turns.get_mut(&turn) else { return };
        if !entry.send(TurnMessage::Event(message), bytes) {
            self.close(turn);
        }
    }

    /// Answers a request of the process.
    fn answer(&mut self, method: &str, id: Tree, message: &Tree) {
        let Some(conversation) = &self.plan.conversation else { return };
        if let Some((member, value)) = conversation::answer(conversation, method, message) {
            self.writer.send([("id", id), (member, value)]);
        }
    }

    fn next_session_call(&mut self, mut from: usize) {
        let plan = self.plan.clone();
        let Some(conversation) = &plan.conversation else { return };
        loop {
            let values = SessionValues { session: Arc::new(self.session.clone()), ..self.values.clone() };
            match conversation::next_of(conversation, CallList::Session, from, &Tree::Null, &values) {
                Ok(Some(call)) => {
                    let step = call.step;
                    from = step + 1;
                    if self.writer.call(call, Pending::Session { step }).is_some() {
                        return;
                    }
                }
                Ok(None) => {
                    self.values = values;
                    return self.report_ready(Ok(self.session.clone()));
                }
                Err(fault) => return self.report_ready(Err(fault.message)),
            }
        }
    }

    fn on_session_answer(&mut self, step: usize, message: &Tree) {
        if let Some(error) = message.get("error") {
            let text = error.get("message").and_then(Tree::as_str).map_or_else(|| error.to_json(), str::to_owned);
            return self.report_ready(Err(format!("the worker rejected the session: {text}")));
        }
        let plan = self.plan.clone();
        if let Some(call) = plan.conversation.as_ref().and_then(|conversation| conversation.session.get(step)) {
            conversation::keep(call, message, &mut self.session);
        }
        self.next_session_call(step + 1);
    }

    fn report_ready(&mut self, result: Result<Tree, String>) {
        if let Some(ready) = self.ready.take() {
            let _ = ready.send(result);
        }
    }
}

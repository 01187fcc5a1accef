//! The workers of one backend: gives each turn to the least busy one, and knows whether one is ready.

use super::process::{ProcessSettings, Spawner};
use super::readiness::{Readiness, ReadinessReason};
use super::stderr::StderrReader;
use super::turn_queue::{TurnReceiver, turn_queue};
use super::worker::{ClosingMark, TurnId, Worker, WorkerCommand, WorkerStatus};
use crate::domain::{Fault, FaultKind, Redactor, Tree};
use crate::engine::conversation::OutgoingCall;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::child_process::WhileStarting;
use arc_swap::ArcSwap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};

pub struct ChildPool {
    pub(super) backend: String,
    pub(super) settings: Arc<ProcessSettings>,
    pub(super) spawner: Arc<Spawner>,
    /// The mapping of the newest turn, for the sessions of processes that are started later.
    pub(super) plan: ArcSwap<BackendPlan>,
    pub(super) env: Arc<Tree>,
    /// Removes secrets that neither the log nor a client may see.
    pub redactor: Redactor,
    pub(super) stderr_reader: Option<StderrReader>,
    slots: Mutex<Vec<Slot>>,
    next_turn: AtomicU64,
    /// Changed whenever a worker becomes ready, ends, or has closed a turn.
    pub(super) changes: watch::Sender<u64>,
    pub(super) is_stopping: watch::Sender<bool>,
}

/// The place of one worker.
pub(super) struct Slot {
    pub(super) worker: Option<Arc<Worker>>,
    /// Every process of this place that has not ended.
    pub(super) running: Vec<Arc<WorkerStatus>>,
    pub(super) state: Readiness,
    pub(super) recycle: Arc<Notify>,
}

impl Slot {
    /// The end of a worker is known to its turns before its slot is cleared.
    fn serves(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| !worker.commands.is_closed())
    }
}

/// How many turns a process may be closing. It may close them more slowly than it serves turns: then new turns wait.
const MOST_CLOSING: usize = 32;

/// Where a turn can be served.
enum Place {
    On(Arc<Worker>),
    /// Soon, when a worker has closed turns that no client reads any more.
    Closing,
    NotReady,
}

fn busy(message: String) -> Fault {
    let code = Some("worker_busy".to_owned());
    Fault { code, retry_after: Some(1), ..Fault::new(FaultKind::Overloaded, message) }
}

/// A turn on a worker. Dropping it cancels and closes the turn.
pub struct Lease {
    pub worker: Arc<Worker>,
    turn: TurnId,
    closing: ClosingMark,
    is_finished: bool,
}

impl Lease {
    pub fn call(&self, call: OutgoingCall) {
        // It fails if the worker has ended; then the queue of the turn ends too.
        let _ = self.worker.commands.send(WorkerCommand::Call { turn: self.turn, call });
    }

    /// The client's turn is finished, whether or not the process has ended it.
    pub fn finish(&mut self) {
        if !std::mem::replace(&mut self.is_finished, true) {
            let _ = self.worker.commands.send(WorkerCommand::Finish(self.turn));
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.closing.set(&self.worker.status);
        let _ = self.worker.commands.send(WorkerCommand::Close(self.turn));
    }
}

impl ChildPool {
    /// Starts the workers in the background.
    pub fn start(
        backend: String,
        settings: ProcessSettings,
        spawner: Arc<Spawner>,
        plan: Arc<BackendPlan>,
        env: Arc<Tree>,
        redactor: Redactor,
        stderr_reader: Option<StderrReader>,
    ) -> Arc<ChildPool> {
        let mut state = Readiness::starting();
        if !settings.is_enabled {
            state.set(ReadinessReason::Disabled, Some("it is disabled".to_owned()));
        }
        let slot = || Slot { worker: None, running: Vec::new(), state: state.clone(), recycle: Arc::default() };
        let slots = (0..settings.workers).map(|_| slot()).collect();
        let pool = Arc::new(ChildPool {
            backend,
            settings: Arc::new(settings),
            spawner,
            plan: ArcSwap::new(plan),
            env,
            redactor,
            stderr_reader,
            slots: Mutex::new(slots),
            next_turn: AtomicU64::new(1),
            changes: watch::Sender::new(0),
            is_stopping: watch::Sender::new(false),
        });
        if pool.settings.is_enabled {
            for index in 0..pool.settings.workers {
                tokio::spawn(pool.clone().supervise(index));
            }
        }
        pool
    }

    /// A place for a turn on the least busy worker.
    pub async fn acquire(&self, plan: Arc<BackendPlan>, queue_bytes: usize) -> Result<(Lease, TurnReceiver), Fault> {
        if !Arc::ptr_eq(&self.plan.load(), &plan) {
            self.plan.store(plan.clone());
        }
        let mut changes = self.changes.subscribe();
        let deadline = tokio::time::Instant::now() + self.settings.start_timeout;
        loop {
            let wait = match self.least_busy()? {
                Place::On(worker) => {
                    let turn = self.next_turn.fetch_add(1, Ordering::Relaxed);
                    let (messages, receiver) = turn_queue(queue_bytes);
                    let closing = ClosingMark::default();
                    let open = WorkerCommand::Open { turn, plan: plan.clone(), messages, closing: closing.clone() };
                    if worker.commands.send(open).is_ok() {
                        return Ok((Lease { worker, turn, closing, is_finished: false }, receiver));
                    }
                    // It has just ended.
                    continue;
                }
                Place::NotReady if !self.waits() => return Err(self.not_ready()),
                wait => wait,
            };
            if tokio::time::timeout_at(deadline, changes.changed()).await.is_err() {
                return Err(match wait {
                    Place::Closing => busy("the workers are still closing earlier turns".to_owned()),
                    _ => self.not_ready(),
                });
            }
        }
    }

    fn least_busy(&self) -> Result<Place, Fault> {
        let slots = self.slots();
        let ready = slots.iter().filter(|slot| slot.serves()).filter_map(|slot| Some((slot.worker.as_ref()?, slot)));
        let is_closing = |worker: &Worker| worker.status.closing.load(Ordering::Relaxed) >= MOST_CLOSING;
        let order = |worker: &Worker| (is_closing(worker), worker.status.active());
        let Some((worker, slot)) = ready.min_by_key(|(worker, _)| order(worker)) else { return Ok(Place::NotReady) };
        let limit = self.settings.turns_per_worker;
        if worker.status.active() >= limit {
            return Err(busy(format!("concurrency limit of the backend reached ({limit} turns on each worker)")));
        }
        if is_closing(worker) {
            return Ok(Place::Closing);
        }
        worker.status.turns.fetch_add(1, Ordering::Relaxed);
        let served = worker.status.served.fetch_add(1, Ordering::Relaxed) + 1;
        // Once: while the next worker starts, this one goes on serving turns.
        if self.settings.recycle_turns == Some(served) {
            slot.recycle.notify_one();
        }
        Ok(Place::On(worker.clone()))
    }

    /// The fault of a turn, if no worker is ready and turns do not wait for one.
    pub fn check_ready(&self) -> Result<(), Fault> {
        let is_ready = self.slots().iter().any(Slot::serves);
        if is_ready || self.waits() { Ok(()) } else { Err(self.not_ready()) }
    }

    /// Whether turns wait until a worker is ready.
    fn waits(&self) -> bool {
        self.settings.while_starting == WhileStarting::Wait && self.may_become_ready()
    }

    fn may_become_ready(&self) -> bool {
        let is_over = |reason| matches!(reason, ReadinessReason::RestartLimit | ReadinessReason::Disabled);
        !*self.is_stopping.borrow() && self.slots().iter().any(|slot| !is_over(slot.state.reason))
    }

    fn not_ready(&self) -> Fault {
        let readiness = self.readiness();
        let why = readiness.detail.map_or(String::new(), |detail| format!(": {detail}"));
        let message = format!("the backend `{}` is not ready{why}", self.backend);
        let code = match readiness.reason {
            ReadinessReason::Disabled => "worker_disabled",
            _ => "worker_not_ready",
        };
        let code = Some(code.to_owned());
        Fault { code, status: Some(503), retry_after: Some(1), ..Fault::new(FaultKind::Unreachable, message) }
    }

    /// The state of the first worker that is ready, else of the first one.
    pub fn readiness(&self) -> Readiness {
        let slots = self.slots();
        let best = slots.iter().find(|slot| slot.serves()).or(slots.first());
        let mut readiness = best.map_or_else(Readiness::starting, |slot| slot.state.clone());
        if let Some(worker) =
            best.filter(|slot| !slot.serves() && slot.state.is_ready()).and_then(|s| s.worker.as_ref())
        {
            readiness.set(ReadinessReason::WorkerExit, Some(worker.exit_reason()));
        }
        let statuses = slots.iter().flat_map(|slot| &slot.running);
        readiness.pids = statuses.clone().filter_map(|status| status.pid.get().copied()).collect();
        readiness.garbage_lines = statuses.map(|status| status.garbage_lines.load(Ordering::Relaxed)).sum();
        readiness.restarts = slots.iter().map(|slot| slot.state.restarts).sum();
        readiness
    }

    /// Stops all processes, and waits until they have ended.
    pub async fn stop(&self) {
        self.is_stopping.send_replace(true);
        for worker in self.slots().iter().filter_map(|slot| slot.worker.as_ref()) {
            let _ = worker.commands.send(WorkerCommand::Stop);
        }
        let mut changes = self.changes.subscribe();
        let limit = tokio::time::Instant::now() + self.settings.stop_timeout + Duration::from_secs(1);
        while self.slots().iter().any(|slot| !slot.running.is_empty()) {
            if tokio::time::timeout_at(limit, changes.changed()).await.is_err() {
                return;
            }
        }
    }

    pub(super) fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn update(&self, index: usize, change: impl FnOnce(&mut Slot)) {
        if let Some(slot) = self.slots().get_mut(index) {
            change(slot);
        }
        self.changes.send_modify(|count| *count += 1);
    }
}

//! Whether a child process can serve turns, and why not: for the readiness endpoint, the status and the log.

use crate::domain::{WorkerHealth, named_enum};
use std::time::{Duration, SystemTime};

named_enum! {
    /// The state of a worker.
    pub enum ReadinessReason {
        /// The process is being started.
        Starting = "worker_launching",
        /// The process runs, and its session is being established.
        HandshakePending = "handshake_pending",
        Ready = "handshake_complete",
        /// The session was not established.
        HandshakeFailed = "handshake_failed",
        /// The process has ended; it is started again after a pause.
        WorkerExit = "worker_exit",
        /// The backend has no process, by its settings.
        Disabled = "disabled",
        /// It failed too often, so restarts are paused.
        RestartLimit = "restart_limit_exceeded",
    }
}

/// The readiness of one backend.
#[derive(Clone, Debug)]
pub struct Readiness {
    pub reason: ReadinessReason,
    /// What happened, if it is not ready.
    pub detail: Option<String>,
    pub since: SystemTime,
    /// How often processes of this backend have failed, and how often in a row.
    pub restarts: u64,
    pub failures: usize,
    pub next_restart: Option<Duration>,
    /// How the last process ended.
    pub last_exit: Option<(SystemTime, String)>,
    pub last_ready: Option<SystemTime>,
    /// From the start of the last process to its last answer of `session:`.
    pub startup_ms: Option<u64>,
    pub pids: Vec<u32>,
    /// Lines that are no messages of JSON-RPC, of the running processes.
    pub garbage_lines: u64,
}

impl Readiness {
    pub fn starting() -> Readiness {
        Readiness {
            reason: ReadinessReason::Starting,
            detail: None,
            since: SystemTime::now(),
            restarts: 0,
            failures: 0,
            next_restart: None,
            last_exit: None,
            last_ready: None,
            startup_ms: None,
            pids: Vec::new(),
            garbage_lines: 0,
        }
    }

    pub fn is_ready(&self) -> bool {
        self.reason == ReadinessReason::Ready
    }

    /// For the endpoints that report it.
    pub fn health(&self) -> WorkerHealth {
        let millis = |time: &SystemTime| {
            time.duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |since| since.as_millis().try_into().unwrap_or(i64::MAX))
        };
        WorkerHealth {
            pid: self.pids.first().map(|pid| i64::from(*pid)),
            restarts: self.restarts.cast_signed(),
            failures: self.failures.cast_signed() as i64,
            next_restart_ms: self.next_restart.map(|pause| pause.as_millis().try_into().unwrap_or(i64::MAX)),
            since: millis(&self.since),
            detail: self.detail.clone(),
            last_exit: self.last_exit.as_ref().map(|(_, how)| how.clone()),
            last_exit_at: self.last_exit.as_ref().map(|(at, _)| millis(at)),
            last_ready_at: self.last_ready.as_ref().map(millis),
            startup_ms: self.startup_ms.map(u64::cast_signed),
        }
    }

    pub fn set(&mut self, reason: ReadinessReason, detail: Option<String>) {
        let now = SystemTime::now();
        if self.reason != reason {
            self.since = now;
        }
        match reason {
            ReadinessReason::Ready => {
                self.last_ready = Some(now);
                self.failures = 0;
                self.next_restart = None;
            }
            ReadinessReason::WorkerExit | ReadinessReason::RestartLimit => {
                self.last_exit = Some((now, detail.clone().unwrap_or_default()));
            }
            ReadinessReason::Starting
            | ReadinessReason::HandshakePending
            | ReadinessReason::HandshakeFailed
            | ReadinessReason::Disabled => {}
        }
        self.reason = reason;
        self.detail = detail;
    }

    /// A replacement is started while the old worker is ready, or after a failure; the reason of the failure
    /// remains visible until the new process is ready.
    pub fn set_unless_ready(&mut self, reason: ReadinessReason) {
        if !self.is_ready() && self.failures == 0 {
            self.set(reason, None);
        }
        if !self.is_ready() {
            self.next_restart = None;
        }
    }
}

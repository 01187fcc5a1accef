//! The health of the gateway, for the endpoints that report it.

/// Whether the gateway accepts requests, and which of its backends can serve them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The gateway is shutting down: requests in flight are finished, and no new ones should be sent.
    pub draining: bool,
    pub backends: Vec<BackendHealth>,
    /// Turns in flight.
    pub turns: i64,
}

/// Whether a backend can serve requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendHealth {
    pub name: String,
    pub ready: bool,
    /// The state of its process, if it is one.
    pub reason: Option<String>,
    pub worker: Option<WorkerHealth>,
}

/// The process of a backend. Times are milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerHealth {
    /// Of the first process that runs.
    pub pid: Option<i64>,
    /// How often a process has failed, and how often in a row.
    pub restarts: i64,
    pub failures: i64,
    /// The pause before the next start, while it lasts.
    pub next_restart_ms: Option<i64>,
    pub since: i64,
    /// What happened, if it is not ready.
    pub detail: Option<String>,
    pub last_exit: Option<String>,
    pub last_exit_at: Option<i64>,
    pub last_ready_at: Option<i64>,
    pub startup_ms: Option<i64>,
}

impl BackendHealth {
    /// A backend that has nothing to wait for.
    pub fn always_ready(name: String) -> BackendHealth {
        BackendHealth { name, ready: true, reason: None, worker: None }
    }
}

impl Health {
    /// Ready for requests: not draining, and with all backends.
    pub fn is_ready(&self) -> bool {
        !self.draining && self.backends.iter().all(|backend| backend.ready)
    }
}

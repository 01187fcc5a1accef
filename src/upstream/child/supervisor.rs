//! Keeps the workers of a pool running: starts their processes, restarts those that end, and replaces old ones.

use super::pool::ChildPool;
use super::readiness::ReadinessReason;
use super::stderr;
use super::worker::{Worker, WorkerCommand, WorkerStatus};
use super::worker_task;
use crate::domain::Tree;
use crate::engine::conversation::SessionValues;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// A process that has just become ready.
struct Started {
    worker: Arc<Worker>,
    ended: JoinHandle<String>,
}

impl ChildPool {
    /// Keeps one worker running, until the pool is stopped.
    pub(super) async fn supervise(self: Arc<ChildPool>, index: usize) {
        let mut stopping = self.is_stopping.subscribe();
        let mut failures = 0;
        let recycle = self.slots().get(index).map(|slot| slot.recycle.clone()).unwrap_or_default();
        let mut next = None;
        while !*stopping.borrow() {
            let started = match next.take() {
                Some(started) => Ok(started),
                None => self.launch(index).await,
            };
            let began = Instant::now();
            let why = match started {
                Ok(Started { worker, mut ended }) => {
                    self.update(index, |slot| {
                        slot.worker = Some(worker.clone());
                        slot.state.set(ReadinessReason::Ready, None);
                    });
                    // It became ready while the pool was being stopped.
                    if *stopping.borrow() {
                        let _ = worker.commands.send(WorkerCommand::Stop);
                    }
                    tracing::info!(backend = self.backend, pid = worker.status.pid.get(), "worker ready");
                    tokio::select! {
                        how = &mut ended => {
                            let how = how.unwrap_or_else(|error| error.to_string());
                            self.update(index, |slot| slot.worker = None);
                            (ReadinessReason::WorkerExit, format!("the worker process has ended ({how})"))
                        }
                        () = self.recycle_due(&recycle) => {
                            // The old worker serves turns until the new one is ready, and ends with its last turn.
                            match self.launch(index).await {
                                Ok(fresh) => {
                                    self.update(index, |slot| slot.worker = Some(fresh.worker.clone()));
                                    let _ = worker.commands.send(WorkerCommand::Retire);
                                    next = Some(fresh);
                                    continue;
                                }
                                Err(failure) => {
                                    self.update(index, |slot| slot.worker = None);
                                    let _ = worker.commands.send(WorkerCommand::Retire);
                                    failure
                                }
                            }
                        }
                    }
                }
                Err(failure) => failure,
            };
            if *stopping.borrow() {
                break;
            }
            failures = if began.elapsed() > self.settings.restart_longest { 1 } else { failures + 1 };
            let pause = self.pause_after(index, failures, why);
            let Some(pause) = pause else {
                let _ = stopping.changed().await;
                break;
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stopping.changed() => {}
            }
        }
    }

    /// Records a failure. Returns the pause before the next start; `None`: there is none.
    fn pause_after(
        &self,
        index: usize,
        failures: usize,
        (reason, detail): (ReadinessReason, String),
    ) -> Option<Duration> {
        let settings = &self.settings;
        let is_limit = failures > settings.restart_limit;
        let doubled = settings.restart_first.saturating_mul(1 << (failures - 1).min(20));
        let pause = match is_limit {
            true => settings.restart_cooldown,
            false => Some(doubled.min(settings.restart_longest)),
        };
        let backend = &self.backend;
        match is_limit {
            false => tracing::warn!(
                backend,
                failures,
                reason = detail,
                pause_ms = pause.map(|p| p.as_millis() as u64),
                "worker failed; it is restarted"
            ),
            true => tracing::error!(backend, failures, reason = detail, "worker failed too often; restarts are paused"),
        }
        self.update(index, |slot| {
            slot.worker = None;
            slot.state.set(if is_limit { ReadinessReason::RestartLimit } else { reason }, Some(detail));
            slot.state.restarts += 1;
            slot.state.failures = failures;
            slot.state.next_restart = pause;
        });
        pause
    }

    async fn recycle_due(&self, turns: &Notify) {
        let age = async {
            match self.settings.recycle_after {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! { () = age => {}, () = turns.notified() => {} }
    }

    /// Starts a process and establishes its session.
    async fn launch(self: &Arc<ChildPool>, index: usize) -> Result<Started, (ReadinessReason, String)> {
        let began = Instant::now();
        self.update(index, |slot| slot.state.set_unless_ready(ReadinessReason::Starting));
        let spawned = self.spawner.spawn(&self.settings).await;
        let mut process = spawned.map_err(|error| {
            (ReadinessReason::WorkerExit, format!("cannot start `{}`: {error}", self.settings.command))
        })?;
        let status = Arc::new(WorkerStatus::new(self.changes.clone()));
        if let Some(pid) = process.pid {
            let _ = status.pid.set(pid);
        }
        if let Some(output) = process.child.stderr.take() {
            let (backend, redactor, reader) = (self.backend.clone(), self.redactor.clone(), self.stderr_reader.clone());
            tokio::spawn(stderr::relay(output, backend, process.pid.unwrap_or_default(), redactor, reader));
        }
        self.update(index, |slot| {
            slot.running.push(status.clone());
            slot.state.set_unless_ready(ReadinessReason::HandshakePending);
        });
        let (commands, received) = unbounded_channel();
        let (ready, established) = oneshot::channel();
        let values = SessionValues { env: self.env.clone(), session: Arc::new(Tree::Map(Vec::new())) };
        let plan = self.plan.load_full();
        let (pool, of_task, settings, initial) = (self.clone(), status.clone(), self.settings.clone(), values.clone());
        let ended = tokio::spawn(async move {
            let how = worker_task::run(process, plan, settings, of_task.clone(), initial, received, ready).await;
            pool.update(index, |slot| slot.running.retain(|known| !Arc::ptr_eq(known, &of_task)));
            how
        });
        let mut stopping = self.is_stopping.subscribe();
        let established = tokio::select! {
            established = tokio::time::timeout(self.settings.start_timeout, established) => established,
            _ = stopping.wait_for(|is_stopping| *is_stopping) => {
                let _ = commands.send(WorkerCommand::Stop);
                return Err((ReadinessReason::WorkerExit, "the gateway is stopping".to_owned()));
            }
        };
        let session = match established {
            Ok(Ok(Ok(session))) => session,
            Ok(Ok(Err(why))) => {
                let _ = commands.send(WorkerCommand::Stop);
                return Err((ReadinessReason::HandshakeFailed, why));
            }
            // The task has ended, and so has the process.
            Ok(Err(_)) => {
                let how = ended.await.unwrap_or_else(|error| error.to_string());
                return Err((ReadinessReason::WorkerExit, format!("the worker process has ended ({how})")));
            }
            Err(_) => {
                let _ = commands.send(WorkerCommand::Stop);
                let limit = self.settings.start_timeout.as_millis();
                return Err((ReadinessReason::HandshakeFailed, format!("no session within {limit} ms")));
            }
        };
        self.update(index, |slot| slot.state.startup_ms = Some(began.elapsed().as_millis() as u64));
        let values = SessionValues { session: Arc::new(session), ..values };
        Ok(Started { worker: Arc::new(Worker { commands, values, status }), ended })
    }
}

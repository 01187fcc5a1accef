//! The signals of the server: SIGHUP reloads the mappings, SIGINT and SIGTERM stop it.

use crate::reload::{Cause, Reloader};
use std::sync::Arc;
#[cfg(unix)]
use std::{future::Future, io};

/// Reloads on SIGHUP, as other servers do.
#[cfg(unix)]
pub(super) struct HangupSignals(io::Result<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl HangupSignals {
    pub fn subscribe() -> HangupSignals {
        use tokio::signal::unix::{SignalKind, signal};
        HangupSignals(signal(SignalKind::hangup()))
    }

    pub async fn reload(self, reloader: Arc<Reloader>) {
        let Ok(mut signals) = self.0 else {
            tracing::warn!("cannot handle SIGHUP");
            return;
        };
        while signals.recv().await.is_some() {
            let reloader = reloader.clone();
            // The reloader logs the outcome.
            let reload = tokio::task::spawn_blocking(move || drop(reloader.reload(Cause::Signal)));
            if reload.await.is_err() {
                tracing::error!("a reload panicked");
            }
        }
    }
}

#[cfg(not(unix))]
pub(super) struct HangupSignals;

#[cfg(not(unix))]
impl HangupSignals {
    pub fn subscribe() -> HangupSignals {
        HangupSignals
    }

    pub async fn reload(self, _reloader: Arc<Reloader>) {}
}

/// Resolves after the given number of SIGINT or SIGTERM signals. The handlers are installed by the call, not by the
/// first poll: a signal in between would kill the process.
#[cfg(unix)]
pub(super) fn stop_signal(times: usize) -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let interrupt = signal(SignalKind::interrupt());
    let terminate = signal(SignalKind::terminate());
    async move {
        let (Ok(mut interrupt), Ok(mut terminate)) = (interrupt, terminate) else {
            tracing::warn!("cannot handle SIGINT and SIGTERM; only SIGKILL stops the server");
            return std::future::pending().await;
        };
        for _ in 0..times {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        }
    }
}

#[cfg(not(unix))]
pub(super) async fn stop_signal(times: usize) {
    for _ in 0..times {
        let _ = tokio::signal::ctrl_c().await;
    }
}

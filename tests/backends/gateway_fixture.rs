//! A gateway with one backend behind it, whose next answer the test chooses.

use crate::support::{Answer, Backend, Launch, Reply, Request, Seen, Server, serve};
use std::collections::HashMap;
use std::process::Child;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

pub struct Rig {
    pub server: Server,
    pub backend: Backend,
    next: Arc<Mutex<Answer>>,
}

/// A rig that outlives its test.
type Shared = (&'static Mutex<Rig>, Child);

impl Rig {
    /// What `--backend NAME=URL` alone makes.
    pub fn of(name: &str) -> MutexGuard<'static, Rig> {
        Rig::shared(name, || Rig::own(name))
    }

    /// It takes a while to start, so all tests share what has this name, one after the other.
    pub fn shared(name: &str, start: impl FnOnce() -> Rig) -> MutexGuard<'static, Rig> {
        static ALL: LazyLock<Mutex<HashMap<String, Shared>>> = LazyLock::new(Mutex::default);
        let rig = {
            let mut all = lock(&ALL);
            let shared = all.entry(name.to_owned()).or_insert_with(|| {
                let rig = start();
                let undertaker = rig.server.undertaker();
                (Box::leak(Box::new(Mutex::new(rig))), undertaker)
            });
            shared.0
        };
        lock(rig)
    }

    /// The same as `of`, for one test.
    pub fn own(name: &str) -> Rig {
        Rig::launched(name, |launch| launch)
    }

    pub fn launched(name: &str, with: impl FnOnce(Launch) -> Launch) -> Rig {
        let next = Arc::new(Mutex::new(Answer::new(500)));
        let backend = Backend::start({
            let next = Arc::clone(&next);
            move |_| lock(&next).clone()
        });
        let server = with(serve().arg("--backend").arg(format!("{name}={}", backend.url()))).start();
        Rig { server, backend, next }
    }

    /// From now on the backend answers this.
    pub fn will(&self, answer: Answer) -> &Rig {
        *lock(&self.next) = answer;
        self
    }

    pub fn ask(&self, request: impl Into<Request>) -> Reply {
        self.server.ask(request)
    }

    /// The request that came last.
    pub fn last(&self) -> Seen {
        self.backend.seen().pop().expect("the backend was never asked")
    }
}

/// A test that failed has poisoned it; the next one sets all that it needs.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! A gateway with one backend behind it, whose next answer the test chooses.

use crate::support::{Answer, Backend, Launch, Reply, Request, Seen, Server, serve};
use std::sync::{Arc, Mutex, PoisonError};

pub struct Rig {
    pub server: Server,
    pub backend: Backend,
    next: Arc<Mutex<Answer>>,
}

impl Rig {
    /// What `--backend NAME=URL` alone makes.
    pub fn of(name: &str) -> Rig {
        Rig::launched(name, |launch| launch)
    }

    pub fn launched(name: &str, with: impl FnOnce(Launch) -> Launch) -> Rig {
        let next = Arc::new(Mutex::new(Answer::new(500)));
        let backend = Backend::start({
            let next = Arc::clone(&next);
            move |_| next.lock().unwrap_or_else(PoisonError::into_inner).clone()
        });
        let server = with(serve().arg("--backend").arg(format!("{name}={}", backend.url()))).start();
        Rig { server, backend, next }
    }

    /// From now on the backend answers this.
    pub fn will(&self, answer: Answer) -> &Rig {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = answer;
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

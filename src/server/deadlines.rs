//! The one timer of a turn: when the client wants a sign of life, and when the backend has had its time.

use crate::domain::{Fault, FaultKind};
use crate::mapping::config::timeouts::Timeouts;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

pub struct Clock {
    began: Instant,
    /// Something came from the backend.
    heard: Instant,
    /// Bytes that had come by then.
    bytes: u64,
    /// Something went to the client.
    told: Instant,
    keepalive: Option<Duration>,
    first_event: Option<Duration>,
    idle: Option<Duration>,
    overall: Option<Duration>,
    /// Moved only when a deadline comes nearer than it is set: it may fire for nothing, but costs nothing per frame.
    timer: Option<Pin<Box<Sleep>>>,
}

pub enum Due {
    Keepalive,
    /// The backend fell silent.
    Silent(Fault),
    Late(Fault),
}

/// What the clock has to know about the turn.
#[derive(Clone, Copy)]
pub struct Standing {
    /// Has the backend begun to answer?
    pub open: bool,
    /// All is said but for the count.
    pub finished: bool,
    /// What the backend has sent so far.
    pub bytes: u64,
}

/// How long a backend may keep a finished answer open before its end is taken for granted.
const AFTER_FINISH: Duration = Duration::from_secs(5);

impl Clock {
    pub fn new(timeouts: &Timeouts, stream: bool, keepalive: Option<Duration>) -> Clock {
        let now = Instant::now();
        Clock {
            began: now,
            heard: now,
            bytes: 0,
            told: now,
            keepalive,
            first_event: timeouts.first_event,
            idle: timeouts.idle,
            overall: if stream { timeouts.stream } else { timeouts.overall },
            timer: None,
        }
    }

    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn heard(&mut self) {
        self.heard = Instant::now();
    }

    pub fn told(&mut self) {
        self.told = Instant::now();
    }

    /// Ready when something is due.
    pub fn poll(&mut self, cx: &mut Context<'_>, standing: Standing) -> Poll<Due> {
        if standing.bytes > self.bytes {
            self.bytes = standing.bytes;
            self.heard();
        }
        loop {
            let Some(next) = self.next(standing) else { return Poll::Pending };
            let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(next)));
            if timer.deadline() > next || timer.is_elapsed() {
                timer.as_mut().reset(next);
            }
            ready!(timer.as_mut().poll(cx));
            if let Some(due) = self.due(standing, Instant::now()) {
                return Poll::Ready(due);
            }
        }
    }

    fn deadlines(&self, standing: Standing) -> [Option<Instant>; 4] {
        let after = |from: Instant, limit: Option<Duration>| limit.and_then(|l| from.checked_add(l));
        [
            after(self.began, self.overall),
            after(self.began, self.first_event).filter(|_| !standing.open),
            after(self.heard, self.patience(standing)).filter(|_| standing.open),
            after(self.told, self.keepalive),
        ]
    }

    fn patience(&self, standing: Standing) -> Option<Duration> {
        match standing.finished {
            true => Some(self.idle.unwrap_or(AFTER_FINISH).min(AFTER_FINISH)),
            false => self.idle,
        }
    }

    fn next(&self, standing: Standing) -> Option<Instant> {
        self.deadlines(standing).into_iter().flatten().min()
    }

    fn due(&mut self, standing: Standing, now: Instant) -> Option<Due> {
        let [overall, first, idle, keepalive] = self.deadlines(standing).map(|d| d.is_some_and(|d| d <= now));
        let fault = |what: &str, limit: Option<Duration>| {
            Fault::new(FaultKind::Timeout, format!("{what} in {:?}", limit.unwrap_or_default()))
        };
        if overall {
            return Some(Due::Late(fault("the backend did not finish its answer", self.overall)));
        }
        if first {
            return Some(Due::Silent(fault("the backend did not begin its answer", self.first_event)));
        }
        if idle {
            return Some(Due::Silent(fault("the backend sent nothing more", self.idle)));
        }
        if keepalive {
            self.told = now;
            return Some(Due::Keepalive);
        }
        None
    }
}

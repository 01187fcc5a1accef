//! The timer of a turn: keepalives for the client, and the timeouts of the backend.

use crate::domain::Fault;
use crate::mapping::config::timeouts::{Comments, Timeouts};
use crate::mapping::grammar::notation::TimeLimit;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

pub struct Deadlines {
    started: Instant,
    /// When the backend sent something last.
    last_received: Instant,
    /// The clock was read for it since the turn waited last: what arrives together has one time.
    is_current: bool,
    /// Bytes received by then, of those that count.
    bytes: u64,
    comments: Comments,
    /// When something was sent to the client last.
    last_sent: Instant,
    keepalive: Option<Duration>,
    first_event: Option<Duration>,
    idle: Option<Duration>,
    overall: Option<Duration>,
    /// Its name in `timeouts:`.
    overall_name: &'static str,
    after_tools: Duration,
    /// The burst of calls that may end the turn (its number), and when its last event arrived.
    burst: Option<(u64, Instant)>,
    /// Reset only if a deadline is earlier than the timer: it may fire without need, but costs nothing per frame.
    timer: Option<Pin<Box<Sleep>>>,
    /// The task that the timer wakes.
    task: Option<Waker>,
}

pub enum Expired {
    Keepalive,
    /// The backend sent nothing for too long.
    Idle(Fault),
    /// The whole turn took too long.
    Overall(Fault),
    /// No other tool call followed.
    Burst,
}

/// The state of the turn, on which the deadlines depend.
#[derive(Clone, Copy)]
pub struct Progress {
    /// The backend has sent part of its response.
    pub has_output: bool,
    /// Every choice is finished; only usage and the end of the stream may follow.
    pub is_finished: bool,
    /// [`Pipeline::burst`](crate::engine::pipeline::Pipeline::burst).
    pub burst: Option<u64>,
    /// Bytes that the backend has sent so far.
    pub bytes: u64,
    /// Those of its data, without comments.
    pub data_bytes: u64,
}

/// How long a backend may keep a finished response open before its end is assumed.
const FINISHED_TIMEOUT: Duration = Duration::from_secs(5);

impl Deadlines {
    pub fn new(timeouts: &Timeouts, stream: bool, keepalive: Option<Duration>) -> Deadlines {
        let now = Instant::now();
        Deadlines {
            started: now,
            last_received: now,
            is_current: false,
            bytes: 0,
            comments: timeouts.comments.map_or(Comments::Ignore, |comments| comments.0),
            last_sent: now,
            keepalive,
            first_event: TimeLimit::of(timeouts.first_event),
            idle: TimeLimit::of(if stream { timeouts.idle } else { timeouts.idle_json.or(timeouts.idle) }),
            overall: TimeLimit::of(if stream { timeouts.stream } else { timeouts.overall }),
            overall_name: if stream { "stream" } else { "overall" },
            after_tools: TimeLimit::of(timeouts.after_tools).unwrap_or_default(),
            burst: None,
            timer: None,
            task: None,
        }
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub fn record_received(&mut self) {
        if !self.is_current {
            self.last_received = Instant::now();
            self.is_current = true;
        }
    }

    /// Nothing is sent any more.
    pub fn stop_keepalives(&mut self) {
        self.keepalive = None;
    }

    /// Returns the time since something was received.
    pub fn record_sent(&mut self) -> Duration {
        self.last_sent = Instant::now();
        self.is_current = false;
        self.last_sent.saturating_duration_since(self.last_received)
    }

    /// Ready when a deadline has expired.
    pub fn poll(&mut self, cx: &mut Context<'_>, progress: Progress) -> Poll<Expired> {
        // Nothing but data keeps a finished response open.
        let bytes = match self.comments {
            Comments::Count if !progress.is_finished => progress.bytes,
            Comments::Count | Comments::Ignore => progress.data_bytes,
        };
        if bytes > self.bytes {
            self.bytes = bytes;
            self.record_received();
        }
        let is_same = |burst: u64| self.burst.is_some_and(|(known, _)| known == burst);
        match progress.burst {
            Some(burst) if is_same(burst) => {}
            other => self.burst = other.map(|burst| (burst, Instant::now())),
        }
        let just_received = std::mem::take(&mut self.is_current);
        loop {
            let Some(next) = self.next_deadline(progress) else { return Poll::Pending };
            if just_received && self.is_waiting_until(next, cx) {
                return Poll::Pending;
            }
            let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(next)));
            if timer.deadline() > next || timer.is_elapsed() {
                timer.as_mut().reset(next);
            }
            if !self.task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
                self.task = Some(cx.waker().clone());
            }
            ready!(timer.as_mut().poll(cx));
            if let Some(expired) = self.expired(progress, Instant::now()) {
                return Poll::Ready(expired);
            }
        }
    }

    /// Whether the timer was running when something was received just now, and wakes this task in time: then it need not be
    /// polled, which costs more than everything else here.
    fn is_waiting_until(&self, next: Instant, cx: &Context<'_>) -> bool {
        let wakes_task = self.task.as_ref().is_some_and(|task| task.will_wake(cx.waker()));
        let deadline = self.timer.as_ref().map(|timer| timer.deadline());
        wakes_task && deadline.is_some_and(|deadline| self.last_received < deadline && deadline <= next)
    }

    fn deadlines(&self, progress: Progress) -> [Option<Instant>; 5] {
        let after = |from: Instant, limit: Option<Duration>| limit.and_then(|l| from.checked_add(l));
        [
            after(self.started, self.overall),
            after(self.started, self.first_event).filter(|_| !progress.has_output),
            after(self.last_received, self.idle_limit(progress)).filter(|_| progress.has_output),
            after(self.last_sent, self.keepalive),
            self.burst.and_then(|(_, last)| last.checked_add(self.after_tools)),
        ]
    }

    fn idle_limit(&self, progress: Progress) -> Option<Duration> {
        match progress.is_finished {
            true => Some(self.idle.unwrap_or(FINISHED_TIMEOUT).min(FINISHED_TIMEOUT)),
            false => self.idle,
        }
    }

    fn next_deadline(&self, progress: Progress) -> Option<Instant> {
        self.deadlines(progress).into_iter().flatten().min()
    }

    fn expired(&mut self, progress: Progress, now: Instant) -> Option<Expired> {
        let [overall, first, idle, keepalive, burst] = self.deadlines(progress).map(|d| d.is_some_and(|d| d <= now));
        let fault = |name: &'static str, what: &str, limit: Option<Duration>| {
            Fault::timeout(name, format!("{what} {:?}", limit.unwrap_or_default()))
        };
        if overall {
            return Some(Expired::Overall(fault(
                self.overall_name,
                "the backend did not finish its response within",
                self.overall,
            )));
        }
        if first {
            return Some(Expired::Idle(fault(
                "first_event",
                "the backend did not start its response within",
                self.first_event,
            )));
        }
        if burst {
            self.burst = None;
            return Some(Expired::Burst);
        }
        if idle {
            return Some(Expired::Idle(fault("idle", "the backend sent no data for", self.idle)));
        }
        if keepalive {
            self.last_sent = now;
            return Some(Expired::Keepalive);
        }
        None
    }
}

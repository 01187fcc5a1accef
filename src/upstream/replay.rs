//! A recorded transcript as a backend: no keys, no network.

use super::Arrived;
use crate::domain::Ended;
use crate::mapping::config::script::Pace;
use crate::mapping::config::transcript::{Arrival, Transcript};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

pub struct Replay {
    transcript: Arc<Transcript>,
    pace: Pace,
    next: usize,
    began: Instant,
    /// Runs while the next line is not due.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Replay {
    pub fn new(transcript: Arc<Transcript>, pace: Pace) -> Replay {
        Replay { transcript, pace, next: 0, began: Instant::now(), timer: None }
    }

    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Arrived> {
        let Some(line) = self.transcript.lines.get(self.next) else {
            return Poll::Ready(Arrived::Ended(Ended::Eof));
        };
        let due = match self.pace {
            Pace::None => None,
            Pace::Fixed(ms) => Some(Duration::from_millis(ms.saturating_mul(self.next as u64))),
            Pace::Recorded => Some(Duration::from_millis(line.at_ms)),
        };
        if let Some(due) = due.map(|after| self.began + after)
            && due > Instant::now()
        {
            let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
            timer.as_mut().reset(due);
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        self.next += 1;
        Poll::Ready(match &line.what {
            Arrival::Raw(raw) => Arrived::Raw(raw.clone()),
            Arrival::End => Arrived::Ended(Ended::Marker),
            Arrival::Cut(why) => Arrived::Ended(Ended::Cut(why.clone())),
        })
    }
}

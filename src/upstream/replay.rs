//! A recorded transcript as an upstream response: no API keys, no network.

use super::UpstreamEvent;
use crate::domain::StreamEnd;
use crate::mapping::config::script::ReplayPace;
use crate::mapping::config::transcript::{RecordedEvent, Transcript};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

pub struct ReplaySource {
    transcript: Arc<Transcript>,
    pace: ReplayPace,
    next: usize,
    began: Instant,
    /// Runs while the next line is not due.
    timer: Option<Pin<Box<Sleep>>>,
}

impl ReplaySource {
    pub fn new(transcript: Arc<Transcript>, pace: ReplayPace) -> ReplaySource {
        ReplaySource { transcript, pace, next: 0, began: Instant::now(), timer: None }
    }

    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<UpstreamEvent> {
        let Some(line) = self.transcript.lines.get(self.next) else {
            return Poll::Ready(UpstreamEvent::Ended(StreamEnd::Eof));
        };
        let due = match self.pace {
            ReplayPace::None => None,
            ReplayPace::Fixed(ms) => Some(Duration::from_millis(ms.saturating_mul(self.next as u64))),
            ReplayPace::Recorded => Some(Duration::from_millis(line.at_ms)),
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
        Poll::Ready(match &line.event {
            // Keepalives are due by the clock of the server.
            RecordedEvent::Idle => return self.poll_next(cx),
            RecordedEvent::Raw(raw) => UpstreamEvent::Raw(raw.clone()),
            RecordedEvent::End => UpstreamEvent::Ended(StreamEnd::Marker),
            RecordedEvent::Disconnect(why) => UpstreamEvent::Ended(StreamEnd::Disconnected(why.clone())),
        })
    }
}

//! A line at `debug` for every frame and body that is sent, and for every inline block that is found. No content.

use crate::domain::{Frame, FrameBody, Tree};
use crate::engine::pipeline::{Observer, TraceEvent};
use tracing::{Level, debug};

/// Bytes that a dialect writes before an id.
const MAX_PREFIX: usize = 32;

/// Whether the lines are logged. Asked once per turn: without them a turn has no observer.
pub fn is_enabled() -> bool {
    tracing::enabled!(Level::DEBUG)
}

pub struct FrameLog {
    id: String,
    seq: u64,
    /// Of the item that the frames of the current moment are about.
    output_index: Option<usize>,
    /// The id of the turn as the client sees it: with the prefix of its dialect, once a frame contains it.
    response_id: String,
}

impl FrameLog {
    pub fn new(id: &str) -> FrameLog {
        FrameLog { id: id.to_owned(), seq: 0, output_index: None, response_id: String::new() }
    }

    fn find_response_id(&mut self, data: &Tree) {
        if let Some(found) = text_with_ending(data, &self.response_id).filter(|found| *found != self.response_id) {
            self.response_id = found.to_owned();
        }
    }

    fn frame(&mut self, frame: &Frame) {
        let payload_size = match &frame.body {
            FrameBody::Data(data) => {
                self.find_response_id(data);
                data.to_json().len()
            }
            FrameBody::Text(text) | FrameBody::Comment(text) => text.len(),
        };
        let event = frame.event.as_deref().unwrap_or(&frame.name);
        let (id, response_id, output_index, seq) = (&self.id, &self.response_id, self.output_index, self.seq);
        debug!(id, event, payload_size, output_index, response_id, seq, "frame");
        self.seq += 1;
    }
}

impl Observer for FrameLog {
    fn on(&mut self, event: TraceEvent) {
        match event {
            TraceEvent::Moment(moment, state) => {
                self.output_index = moment.item.and_then(|at| state.items.get(at)).map(|item| item.index);
                if !self.response_id.ends_with(&state.id) || state.id.is_empty() {
                    self.response_id.clone_from(&state.id);
                }
            }
            TraceEvent::Frame(frame, _) => self.frame(frame),
            TraceEvent::Body(body, _) => {
                self.find_response_id(body);
                let (id, response_id, payload_size) = (&self.id, &self.response_id, body.to_json().len());
                debug!(id, event = "body", payload_size, response_id, seq = self.seq, "body");
            }
            TraceEvent::InlineCall(action, tool) => debug!(id = self.id, action, tool, "inline call"),
            TraceEvent::InlineReasoning => debug!(id = self.id, action = "found", "inline reasoning"),
            TraceEvent::Raw(_)
            | TraceEvent::Event(..)
            | TraceEvent::Dropped(..)
            | TraceEvent::NotUnderstood(_)
            | TraceEvent::Held(_)
            | TraceEvent::Late
            | TraceEvent::NotRendered(..)
            | TraceEvent::Violation(_) => {}
        }
    }
}

/// The first text in `data` that ends with `ending`, and has at most a prefix before it.
fn text_with_ending<'d>(data: &'d Tree, ending: &str) -> Option<&'d str> {
    let is_id = |text: &&str| !ending.is_empty() && text.len() <= ending.len() + MAX_PREFIX && text.ends_with(ending);
    match data {
        Tree::Str(text) => Some(&**text).filter(is_id),
        Tree::List(list) => list.iter().find_map(|element| text_with_ending(element, ending)),
        Tree::Map(members) => members.iter().find_map(|(_, member)| text_with_ending(member, ending)),
        Tree::Null | Tree::Bool(_) | Tree::Num(_) | Tree::SurrogateString(_) => None,
    }
}

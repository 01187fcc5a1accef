//! Answers that no rule reads: what a backend's mapping does not know may be the content of its response.

use super::decode::{self, DecodedEvent};
use crate::domain::{Event, Fault, FaultKind, Tree};
use crate::mapping::config::backend::BackendPlan;

/// How many raw events without output are kept, and the memory of one of them.
const MAX_WITHOUT_OUTPUT: usize = 8;
const MAX_KEPT_BYTES: usize = 16 * 1024;

/// What the rules have read of the raw events of a turn.
pub(super) struct UnreadAnswer {
    /// The backend sent raw events, and the rules read nothing of any of them.
    is_unread: bool,
    /// No raw event with content has arrived.
    is_first: bool,
    /// Raw events before the first output, which gave none: the answer may be in what no rule reads of them.
    without_output: Vec<Tree>,
    /// The backend has sent output, or something that no rule knows, which is reported as such.
    is_known: bool,
}

impl Default for UnreadAnswer {
    fn default() -> Self {
        UnreadAnswer { is_unread: false, is_first: true, without_output: Vec::new(), is_known: false }
    }
}

impl UnreadAnswer {
    /// Records a raw event. Returns the fault of an answer of which only the finish is read.
    pub fn record(&mut self, raw: &Tree, decoded: &DecodedEvent, backend: &BackendPlan) -> Option<Fault> {
        if !is_empty(raw) {
            self.is_unread = decoded.is_unread(backend) && (self.is_unread || self.is_first);
            self.is_first = false;
        }
        self.is_known |= decoded.not_understood.is_some();
        if self.is_known {
            return None;
        }
        let events = || decoded.events.iter().map(|(event, _)| event);
        if events().any(is_output) {
            self.is_known = true;
            self.without_output = Vec::new();
            return None;
        }
        if !events().any(|event| matches!(event, Event::Finish { .. })) {
            if self.without_output.len() < MAX_WITHOUT_OUTPUT && raw.heap_bytes() <= MAX_KEPT_BYTES {
                self.without_output.push(raw.clone());
            }
            return None;
        }
        let raws = std::mem::take(&mut self.without_output);
        let unread = raws.iter().chain([raw]).find_map(|raw| decode::unread_text(backend, raw))?;
        let message =
            format!("the backend's response has no content but `{unread}`, which no rule of its mapping reads");
        Some(Fault::new(FaultKind::Malformed, message))
    }

    /// The backend sent raw events, and the rules read nothing of any of them.
    pub fn is_unread(&self) -> bool {
        self.is_unread
    }
}

fn is_output(event: &Event) -> bool {
    match event {
        Event::Start { .. } | Event::Usage { .. } | Event::Extra { .. } | Event::Finish { .. } => false,
        Event::Close { .. } | Event::Batch { .. } | Event::Logprobs { .. } | Event::End => false,
        Event::FinishHint { .. } | Event::MetadataKeys { .. } => false,
        Event::Text { .. } | Event::Refusal { .. } | Event::Reasoning { .. } | Event::Annotation { .. } => true,
        // A fault is reported as such.
        Event::Tool { .. } | Event::AwaitResults { .. } | Event::Fault { .. } => true,
    }
}

/// A document without content.
fn is_empty(raw: &Tree) -> bool {
    match raw {
        Tree::Null => true,
        Tree::List(items) => items.is_empty(),
        Tree::Map(members) => members.is_empty(),
        Tree::Bool(_) | Tree::Num(_) | Tree::Str(_) | Tree::SurrogateString(_) => false,
    }
}

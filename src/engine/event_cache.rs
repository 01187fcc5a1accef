//! Delta events of one shape: most events of a stream differ from the one before only in the text of their delta. They
//! are read without a tree and without rules.
//!
//! An event is learned after the rules have read it. Its text becomes a shape: constant except for the delta and for
//! values that no rule looks at (`mapping/language/value_reads`). An event of that shape gives the same events, with
//! another delta. See docs/design/0014-event-cache.md.

use super::decode::{DecodedEvent, decode_event};
use crate::diagnostics::Span;
use crate::domain::{Delta, Event, Tree};
use crate::mapping::config::backend::BackendPlan;
use reframe_json::{Gap, Shape, ShapeStep};
use std::collections::VecDeque;
use std::sync::Arc;

/// The shapes of one backend response.
#[derive(Debug)]
pub struct EventCache {
    backend: Arc<BackendPlan>,
    /// The last one that was found is the first.
    known: VecDeque<Arc<DeltaShape>>,
    /// Events that were not found since one was found.
    misses: u32,
}

/// What events of one shape become.
#[derive(Debug, PartialEq)]
pub struct DeltaShape {
    /// The `event:` field of a server-sent event.
    name: Box<str>,
    shape: Shape,
    /// Events that only count before the turn is open.
    starts: Vec<Emitted>,
    /// With an empty delta.
    event: Event,
    rule: Span,
}

/// An event with the rule that emitted it.
type Emitted = (Event, Span);

/// An event of a known shape.
#[derive(Debug, PartialEq)]
pub struct DeltaEvent {
    pub of: Arc<DeltaShape>,
    pub delta: Delta,
}

/// Interleaved calls, and text with reasoning.
const MAX_SHAPES: usize = 4;
/// To learn an event costs as much as to read seven. So those of a short response are not learned, and no more after many
/// that differ.
const MIN_MISSES: u32 = 10;
const MAX_MISSES: u32 = 24;
/// A larger event is no delta of a live stream.
const MAX_LEARNED_BYTES: usize = 4 * 1024;

/// A text that no backend sends.
const MARKER: &str = "\u{f8ff}delta\u{f8ff}";

impl EventCache {
    /// `None` if the rules read more than the event.
    pub fn new(backend: &Arc<BackendPlan>) -> Option<EventCache> {
        let reads_head = backend.response_headers.is_some();
        (!reads_head).then(|| EventCache { backend: backend.clone(), known: VecDeque::new(), misses: 0 })
    }

    /// The delta of an event, if it has a known shape. `name`: its `event:` field.
    pub fn find(&mut self, name: &str, data: &[u8]) -> Option<DeltaEvent> {
        if self.known.is_empty() {
            return None;
        }
        let text = std::str::from_utf8(data).ok()?;
        let find = |known: &Arc<DeltaShape>| if &*known.name == name { known.shape.read(text) } else { None };
        let (at, value) = self.known.iter().enumerate().find_map(|(at, known)| Some((at, find(known)?)))?;
        let delta = to_delta(value)?;
        self.misses = 0;
        self.known.swap(0, at);
        let of = self.known.front()?.clone();
        Some(DeltaEvent { of, delta })
    }

    /// Learns the shape of an event that was not found, if it is a delta. `raw`: what the rules read.
    pub fn learn(&mut self, name: &str, data: &[u8], raw: &Tree) {
        self.misses = self.misses.saturating_add(1);
        let may_be_delta = data.len() <= MAX_LEARNED_BYTES;
        if !may_be_delta || !(MIN_MISSES..=MAX_MISSES).contains(&self.misses) {
            return;
        }
        let Some(learned) = DeltaShape::of(&self.backend, name, data, raw) else { return };
        self.known.truncate(MAX_SHAPES - 1);
        self.known.push_front(Arc::new(learned));
    }
}

impl DeltaShape {
    fn of(backend: &BackendPlan, name: &str, data: &[u8], raw: &Tree) -> Option<DeltaShape> {
        let (starts, mut event, rule) = only_delta(decode_event(backend, raw, &Tree::Null))?;
        let delta = std::mem::take(append_of(&mut event)?);
        let reads = backend.value_reads();
        let mut path: Vec<ShapeStep> = Vec::new();
        let shape = Shape::of(std::str::from_utf8(data).ok()?, &mut |at, value| {
            if reads.fixed.reads(at) {
                return None;
            }
            match (reads.deltas.reads(at), value) {
                (true, Tree::Str(text)) if *text == delta => {
                    path = at.to_vec();
                    Some(Gap::Wanted)
                }
                // Its presence decides what is emitted.
                (true, _) => None,
                (false, Tree::Num(_)) => Some(Gap::Number),
                (false, _) => Some(Gap::String),
            }
        })?;
        // The rules agree: another text gives the same events with that text.
        let mut marked = raw.clone();
        *node_at(&mut marked, &path)? = Tree::from(MARKER);
        let (marked_starts, mut marked_event, marked_rule) = only_delta(decode_event(backend, &marked, &Tree::Null))?;
        let is_marked = std::mem::take(append_of(&mut marked_event)?) == MARKER;
        let is_same = (&marked_starts, &marked_event, marked_rule) == (&starts, &event, rule);
        (is_marked && is_same).then(|| DeltaShape { name: name.into(), shape, starts, event, rule })
    }

    /// What such an event becomes before the turn is open, each with its rule.
    pub fn starts(&self) -> impl Iterator<Item = Emitted> {
        self.starts.iter().cloned()
    }
}

impl DeltaEvent {
    /// The event, and its rule.
    pub fn into_event(self) -> Emitted {
        let mut event = self.of.event.clone();
        if let Some(delta) = delta_of(&mut event) {
            *delta = self.delta;
        }
        (event, self.of.rule)
    }
}

/// Exactly one delta, and nothing else that has an effect.
fn only_delta(decoded: DecodedEvent) -> Option<(Vec<Emitted>, Event, Span)> {
    let DecodedEvent { mut events, dropped, not_understood, malformed_extras } = decoded;
    let (mut event, rule) = events.pop()?;
    let is_clean = dropped.is_none() && not_understood.is_none() && malformed_extras.is_empty();
    let is_start = |(event, _): &Emitted| only_counts_before_the_turn(event);
    (is_clean && append_of(&mut event).is_some() && events.iter().all(is_start)).then_some((events, event, rule))
}

/// Whether an event has no effect once the turn is open.
fn only_counts_before_the_turn(event: &Event) -> bool {
    // Some backends send an empty list with each delta.
    let has_no_tokens = matches!(event, Event::Logprobs { logprobs, .. } if logprobs.is_empty());
    has_no_tokens || matches!(event, Event::Start { .. })
}

/// The new text of a delta.
fn append_of(event: &mut Event) -> Option<&mut String> {
    match delta_of(event)? {
        Delta::Append(text) => Some(text),
        Delta::AppendSurrogates(_) | Delta::Snapshot(_) => None,
    }
}

fn delta_of(event: &mut Event) -> Option<&mut Delta> {
    match event {
        Event::Text { delta, .. } | Event::Refusal { delta, .. } => Some(delta),
        Event::Reasoning { delta, encrypted: None, .. } | Event::Tool { delta, .. } => delta.as_mut(),
        Event::Start { .. } | Event::Reasoning { .. } | Event::Annotation { .. } | Event::Logprobs { .. } => None,
        Event::Batch { .. } | Event::AwaitResults { .. } | Event::Close { .. } | Event::Usage { .. } => None,
        Event::MetadataKeys { .. } | Event::Extra { .. } | Event::Finish { .. } | Event::FinishHint { .. } => None,
        Event::Fault { .. } | Event::End => None,
    }
}

/// `None` for an empty text, which is no delta.
fn to_delta(value: Tree) -> Option<Delta> {
    match value {
        Tree::Str(text) if !text.is_empty() => Some(Delta::Append(text.into_string())),
        Tree::SurrogateString(text) => Some(Delta::AppendSurrogates(*text)),
        Tree::Str(_) | Tree::Null | Tree::Bool(_) | Tree::Num(_) | Tree::List(_) | Tree::Map(_) => None,
    }
}

fn node_at<'t>(tree: &'t mut Tree, path: &[ShapeStep]) -> Option<&'t mut Tree> {
    path.iter().try_fold(tree, |node, step| match (node, step) {
        (Tree::Map(members), ShapeStep::Member(wanted)) => {
            members.iter_mut().find(|(name, _)| name == wanted).map(|(_, member)| member)
        }
        (Tree::List(elements), ShapeStep::Element(at)) => elements.get_mut(*at),
        _ => None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#[path = "../../tests/unit/engine_event_cache.rs"]
mod tests;

//! Delta events of one shape: most events of a stream differ from the one before only in the text of their delta. They
//! are read without a tree and without rules.
//!
//! An event is learned after the rules have read it. Its text becomes a shape: constant except for the delta and for
//! values that no rule looks at (`mapping/language/value_reads`). An event of that shape gives the same events, with
//! another delta. Shapes of one response are constant in what starts a turn, such as the id of the response; those that
//! a backend's responses share are not, and are for events after the turn is open. See docs/design/0014-event-cache.md.

use super::decode::{DecodedEvent, decode_event};
use crate::diagnostics::Span;
use crate::domain::{Delta, Event, Tree};
use crate::mapping::config::backend::BackendPlan;
use arc_swap::ArcSwap;
use reframe_json::{Gap, Shape, ShapeStep};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The shapes of one backend response.
#[derive(Debug)]
pub struct EventCache {
    backend: Arc<BackendPlan>,
    shared: Arc<SharedShapes>,
    /// The last one that was found is the first.
    known: VecDeque<Arc<DeltaShape>>,
    /// Events that were not found since one was found.
    misses: u32,
    /// What starts a turn has no effect any more.
    is_turn_open: bool,
    /// How many events of this response were learned for other responses, or could not be.
    shared_attempts: u32,
}

/// The shapes that the responses of a backend share.
#[derive(Debug, Default)]
pub struct SharedShapes {
    shapes: ArcSwap<Vec<Arc<SharedShape>>>,
}

#[derive(Debug)]
struct SharedShape {
    shape: DeltaShape,
    /// Another response had an event of this shape.
    is_used: AtomicBool,
}

impl SharedShapes {
    /// A copy, so that the responses on all processors need not count the references to one shape.
    fn find(&self, name: &str, text: &str) -> Option<(Arc<DeltaShape>, Tree)> {
        let shapes = self.shapes.load();
        let (known, value) = shapes.iter().find_map(|known| Some((known, known.shape.read(name, text)?)))?;
        if !known.is_used.load(Ordering::Relaxed) {
            known.is_used.store(true, Ordering::Relaxed);
        }
        Some((Arc::new(known.shape.clone()), value))
    }

    /// Whether another shape may be of use: if none of many was, the responses of this backend have nothing to share.
    fn accepts(&self) -> bool {
        let shapes = self.shapes.load();
        shapes.len() < MAX_SHARED_SHAPES || shapes.iter().any(|known| known.is_used.load(Ordering::Relaxed))
    }

    /// Of many shapes, one that was not used makes room.
    fn add(&self, shape: &DeltaShape) {
        self.shapes.rcu(|shapes| {
            let mut shapes: Vec<Arc<SharedShape>> = shapes.to_vec();
            if shapes.len() >= MAX_SHARED_SHAPES {
                let unused = shapes.iter().position(|known| !known.is_used.load(Ordering::Relaxed));
                shapes.remove(unused.unwrap_or(0));
            }
            shapes.push(Arc::new(SharedShape { shape: shape.clone(), is_used: AtomicBool::new(false) }));
            shapes
        });
    }
}

/// What events of one shape become.
#[derive(Clone, Debug, PartialEq)]
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
/// The same in several models, and in several forms of one backend.
const MAX_SHARED_SHAPES: usize = 12;
const MAX_SHARED_ATTEMPTS: u32 = 2;
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
    pub fn new(backend: &Arc<BackendPlan>, shared: &Arc<SharedShapes>) -> Option<EventCache> {
        let reads_head = backend.response_headers.is_some();
        (!reads_head).then(|| EventCache {
            backend: backend.clone(),
            shared: shared.clone(),
            known: VecDeque::new(),
            misses: 0,
            is_turn_open: false,
            shared_attempts: 0,
        })
    }

    /// The events so far have opened the turn.
    pub fn mark_turn_open(&mut self) {
        self.is_turn_open = true;
    }

    /// The delta of an event, if it has a known shape. `name`: its `event:` field.
    pub fn find(&mut self, name: &str, data: &[u8]) -> Option<DeltaEvent> {
        if self.known.is_empty() && !self.is_turn_open {
            return None;
        }
        let text = std::str::from_utf8(data).ok()?;
        let found = self.known.iter().enumerate().find_map(|(at, known)| Some((at, known.read(name, text)?)));
        let delta = match found {
            Some((at, value)) => {
                let delta = to_delta(value)?;
                self.known.swap(0, at);
                delta
            }
            None if self.is_turn_open => {
                let (shape, value) = self.shared.find(name, text)?;
                let delta = to_delta(value)?;
                self.remember(shape);
                delta
            }
            None => return None,
        };
        self.misses = 0;
        let of = self.known.front()?.clone();
        Some(DeltaEvent { of, delta })
    }

    /// Learns the shape of an event that was not found, if it is a delta. `raw`: what the rules read.
    pub fn learn(&mut self, name: &str, data: &[u8], raw: &Tree) {
        self.misses = self.misses.saturating_add(1);
        if data.len() > MAX_LEARNED_BYTES {
            return;
        }
        if self.is_turn_open && self.shared_attempts < MAX_SHARED_ATTEMPTS && self.shared.accepts() {
            self.shared_attempts += 1;
            if let Some(learned) = DeltaShape::of(&self.backend, Scope::Backend, name, data, raw) {
                self.shared.add(&learned);
                return self.remember(Arc::new(learned));
            }
        }
        if (MIN_MISSES..=MAX_MISSES).contains(&self.misses)
            && let Some(learned) = DeltaShape::of(&self.backend, Scope::Response, name, data, raw)
        {
            self.remember(Arc::new(learned));
        }
    }

    /// As the last one that was found.
    fn remember(&mut self, shape: Arc<DeltaShape>) {
        self.known.truncate(MAX_SHAPES - 1);
        self.known.push_front(shape);
    }
}

/// The events that a shape is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Of one response.
    Response,
    /// Of all responses of a backend, each after its turn is open.
    Backend,
}

impl DeltaShape {
    fn of(backend: &BackendPlan, scope: Scope, name: &str, data: &[u8], raw: &Tree) -> Option<DeltaShape> {
        let (starts, mut event, rule) = only_delta(decode_event(backend, raw, &Tree::Null))?;
        let delta = std::mem::take(append_of(&mut event)?);
        let reads = backend.value_reads();
        let mut path: Vec<ShapeStep> = Vec::new();
        let shape = Shape::of(std::str::from_utf8(data).ok()?, &mut |at, value| {
            if reads.fixed.reads(at) {
                return None;
            }
            if reads.starts.reads(at) {
                return match value {
                    // A delta is read there, too.
                    _ if scope == Scope::Response || reads.deltas.reads(at) => None,
                    Tree::Num(_) => Some(Gap::Count),
                    _ => Some(Gap::String),
                };
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
        let starts = if scope == Scope::Response { starts } else { Vec::new() };
        (is_marked && is_same).then(|| DeltaShape { name: name.into(), shape, starts, event, rule })
    }

    /// The delta of an event of this shape.
    fn read(&self, name: &str, text: &str) -> Option<Tree> {
        if &*self.name == name { self.shape.read(text) } else { None }
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

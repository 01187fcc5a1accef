//! A turn as it went by, kept: what `test` says of a frame that differs, and what `explain` shows.

use super::violation::Wrong;
use crate::diagnostics::Span;
use crate::domain::{Frame, FrameBody, Moment, Tree, TurnState};
use crate::engine::pipeline::{Observer, Sight};
use crate::mapping::config::backend::BackendPlan;
use std::sync::{Arc, Mutex};

/// What was seen, in order.
#[derive(Debug)]
pub enum Seen {
    Raw(Raw),
    /// As a line of text, and the rule that made it.
    Event(String, Span),
    /// Why, and what says so.
    Dropped(String, Span),
    Puzzling(String),
    Late,
    Moment(Moment, Option<Box<TurnState>>),
    Frame(Frame, Span),
    Breach(Wrong),
}

#[derive(Clone, Debug)]
pub struct Raw {
    /// From 1.
    pub number: usize,
    /// What a person recognises it by.
    pub name: String,
    /// Only when states are kept.
    pub data: Option<Tree>,
}

/// A data frame, and how it came about.
pub struct Told<'s> {
    pub frame: &'s Frame,
    pub data: &'s Tree,
    /// The frame in the mapping.
    pub made: Span,
    pub moment: Option<(&'s Moment, Option<&'s TurnState>)>,
    pub event: Option<(&'s str, Span)>,
    pub raw: Option<&'s Raw>,
}

/// How much is kept of what goes by.
#[derive(Clone, Copy, PartialEq)]
pub enum Keep {
    /// Enough to say where a frame came from.
    Places,
    /// Also the events themselves, and the turn at each moment.
    States,
}

pub struct Recorder {
    backend: Arc<BackendPlan>,
    keep: Keep,
    count: usize,
    seen: Shared,
}

pub type Shared = Arc<Mutex<Vec<Seen>>>;

impl Recorder {
    pub fn new(backend: Arc<BackendPlan>, keep: Keep) -> (Recorder, Shared) {
        let seen = Shared::default();
        (Recorder { backend, keep, count: 0, seen: seen.clone() }, seen)
    }
}

impl Observer for Recorder {
    fn see(&mut self, sight: Sight) {
        let states = self.keep == Keep::States;
        let seen = match sight {
            Sight::Raw(raw) => {
                self.count += 1;
                let name = name_of(&self.backend, raw);
                Seen::Raw(Raw { number: self.count, name, data: states.then(|| raw.clone()) })
            }
            Sight::Event(event, span) => Seen::Event(event.brief(), span),
            Sight::Dropped(why, rule) => Seen::Dropped(why.to_owned(), rule),
            Sight::Puzzling(what) => Seen::Puzzling(what.to_owned()),
            Sight::Late => Seen::Late,
            Sight::Moment(moment, state) => Seen::Moment(moment.clone(), states.then(|| Box::new(state.clone()))),
            Sight::Frame(frame, span) => Seen::Frame(frame.clone(), span),
            Sight::Breach(..) | Sight::OutOfOrder(..) => match Wrong::seen(&sight) {
                Some(wrong) => Seen::Breach(wrong),
                None => return,
            },
            Sight::Body(..) => return,
        };
        self.seen.lock().unwrap_or_else(|e| e.into_inner()).push(seen);
    }
}

/// What was recorded, once the turn is over.
pub fn taken(shared: &Shared) -> Vec<Seen> {
    std::mem::take(&mut *shared.lock().unwrap_or_else(|e| e.into_inner()))
}

/// The data frames in order, each with what led to it.
pub fn told(seen: &[Seen]) -> Vec<Told<'_>> {
    let (mut raw, mut event, mut moment) = (None, None, None);
    let mut frames = Vec::new();
    for one in seen {
        match one {
            Seen::Raw(r) => (raw, event, moment) = (Some(r), None, None),
            Seen::Event(brief, span) => (event, moment) = (Some((brief.as_str(), *span)), None),
            Seen::Moment(m, state) => moment = Some((m, state.as_deref())),
            Seen::Frame(frame, made) => {
                if let FrameBody::Data(data) = &frame.body {
                    frames.push(Told { frame, data, made: *made, moment, event, raw });
                }
            }
            Seen::Dropped(..) | Seen::Puzzling(_) | Seen::Late | Seen::Breach(_) => {}
        }
    }
    frames
}

/// What a person recognises a raw event by: where the backend's rules look for its name, its type or method, else its
/// first keys.
pub fn name_of(backend: &BackendPlan, raw: &Tree) -> String {
    let named = || ["type", "method", "event", "object"].iter().find_map(|k| raw.get(k).and_then(Tree::as_str));
    match (backend.rules.key_of(raw), raw.as_map()) {
        (Some(name), _) => name,
        (None, Some(members)) => named().map_or_else(
            || {
                let keys: Vec<&str> = members.iter().take(3).map(|(k, _)| &**k).collect();
                format!("{{{}}}", keys.join(", "))
            },
            str::to_owned,
        ),
        (None, None) => raw.type_name().to_owned(),
    }
}

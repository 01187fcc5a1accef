//! Where what differs was made: the frame, the rule or the body in the mapping.

use super::difference::{Difference, Made};
use super::matcher::Want;
use super::runner::Played;
use super::trace::{Raw, Seen, Told};
use super::violation::Wrong;
use crate::diagnostics::Span;
use crate::domain::{Fault, Tree};
use crate::engine::select::Cursor;

impl Made {
    pub fn frame(at: usize, told: &Told) -> Made {
        Made {
            span: told.made,
            frame: Some(at),
            moment: Some(told.frame.moment.word()),
            raw: told.raw.map(|raw| (raw.number, raw.name.clone())),
        }
    }

    /// A rule of the backend, and the raw event that it read.
    pub fn rule(span: Span, raw: Option<&Raw>) -> Made {
        Made { span, frame: None, moment: None, raw: raw.map(|raw| (raw.number, raw.name.clone())) }
    }

    pub fn body(span: Span) -> Made {
        Made { span, frame: None, moment: None, raw: None }
    }

    /// What ended the turn: the rule that told of the fault, or what broke its contract.
    fn fault(seen: &[Seen]) -> Option<Made> {
        if let Some(breach) = breach(seen) {
            return Some(breach.made()).filter(|made| *made != Span::NOWHERE).map(Made::body);
        }
        let (mut raw, mut found) = (None, None);
        for one in seen {
            match one {
                Seen::Raw(r) => raw = Some(r),
                Seen::Event(brief, rule) if brief.starts_with("fault") => found = Some(Made::rule(*rule, raw)),
                Seen::Event(..) | Seen::Dropped(..) | Seen::Puzzling(_) | Seen::Late => {}
                Seen::Moment(..) | Seen::Frame(..) | Seen::Breach(_) => {}
            }
        }
        found
    }
}

impl Difference {
    fn or_made(&mut self, made: Option<Made>) {
        self.made = self.made.take().or(made);
    }
}

/// The events differ: at the first that does, the rule that said it.
pub fn of_events(difference: Difference, expected: &[String], played: &Played) -> Difference {
    let same = expected.iter().zip(&played.events).take_while(|(e, said)| **e == said.brief).count();
    // Where one is missing, the rule that said the last one is the nearest.
    match played.events.get(same).or(played.events.last()) {
        Some(said) => difference.made(Made::rule(said.rule, Some(&said.raw))),
        None => difference,
    }
}

/// `stream[3].a` was made by frame 3, and what a path finds by the frame that it finds it in; a list of another length
/// differs from its first element that does.
pub fn of_stream(differences: &mut [Difference], want: &Want, told: &[Told]) {
    let all = Tree::from(told.iter().map(|t| t.data.clone()).collect::<Vec<_>>());
    for difference in differences {
        let at = frame_of(difference.path.strip_prefix("stream").unwrap_or_default(), want, &all);
        difference.or_made(at.and_then(|at| told.get(at).map(|one| Made::frame(at, one))));
    }
}

fn frame_of(path: &str, want: &Want, all: &Tree) -> Option<usize> {
    let Some(path) = path.strip_prefix(' ') else {
        return index(path).or_else(|| want.first_that_differs(all.as_list()?));
    };
    let Want::Map(_, paths) = want else { return None };
    let (rest, selector, want) = paths.iter().find_map(|(s, w)| Some((path.strip_prefix(&*s.text)?, s, w)))?;
    let (values, places): (Vec<Tree>, Vec<String>) =
        selector.many(&Cursor::new(all)).into_iter().map(|(value, place)| (value.clone(), place)).unzip();
    let found = index(rest).or_else(|| want.first_that_differs(&values)).unwrap_or(0);
    index(places.get(found)?)
}

/// `[3].a` → 3
fn index(path: &str) -> Option<usize> {
    path.strip_prefix('[')?.split(']').next()?.parse().ok()
}

pub fn of_fault(differences: &mut [Difference], seen: &[Seen]) {
    differences.iter_mut().for_each(|d| d.or_made(Made::fault(seen)));
}

/// The turn failed, and nobody expected it; with the line that did it.
pub fn failed(fault: &Fault, seen: &[Seen]) -> Difference {
    let mut said = Difference::said("", format!("the turn failed: {}", in_words(fault, seen)));
    of_fault(std::slice::from_mut(&mut said), seen);
    said
}

/// There is no body, but a fault.
pub fn no_body(fault: &Fault, seen: &[Seen]) -> Difference {
    let mut said = Difference::said("body", format!("there is none, but a fault: {}", in_words(fault, seen)));
    of_fault(std::slice::from_mut(&mut said), seen);
    said
}

/// With what the schema says.
pub fn in_words(fault: &Fault, seen: &[Seen]) -> String {
    breach(seen).map_or_else(|| fault.message.clone(), Wrong::says)
}

/// What broke its contract first.
pub fn breach(seen: &[Seen]) -> Option<&Wrong> {
    seen.iter().find_map(|s| match s {
        Seen::Breach(breach) => Some(breach),
        Seen::Raw(_) | Seen::Event(..) | Seen::Dropped(..) | Seen::Puzzling(_) | Seen::Late => None,
        Seen::Moment(..) | Seen::Frame(..) => None,
    })
}

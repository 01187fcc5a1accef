//! Locates the source of a difference in the mapping: the frame, the rule or the body. Depends on the trace of the turn
//! and on matchers, so it is here and not in `mapping::provenance`, which locates YAML lines only.

use super::difference::{Difference, ValueSource};
use super::matcher::Matcher;
use super::runner::{BodyOutcome, TestOutcome};
use super::test_case::TestCase;
use super::trace::{FrameTrace, RawEvent, TraceEntry};
use crate::diagnostics::Span;
use crate::domain::{Fault, Tree};
use crate::engine::pipeline::Violation;
use crate::engine::selector::Cursor;
use crate::mapping::Plan;

impl ValueSource {
    pub fn frame(at: usize, frame: &FrameTrace) -> ValueSource {
        ValueSource {
            span: frame.span,
            frame: Some(at),
            moment: Some(frame.frame.moment.name()),
            raw: frame.raw.map(|raw| (raw.number, raw.name.clone())),
        }
    }

    /// A rule of the backend, and the raw event that it read.
    pub fn rule(span: Span, raw: Option<&RawEvent>) -> ValueSource {
        ValueSource { span, frame: None, moment: None, raw: raw.map(|raw| (raw.number, raw.name.clone())) }
    }

    pub fn body(span: Span) -> ValueSource {
        ValueSource { span, frame: None, moment: None, raw: None }
    }

    /// What ended the turn: the frame or body that violated its schema, or the rule that emitted the fault.
    fn fault(trace: &[TraceEntry]) -> Option<ValueSource> {
        if let Some(violation) = first_violation(trace) {
            return violation.template().map(ValueSource::body);
        }
        let (mut raw, mut found) = (None, None);
        for entry in trace {
            match entry {
                TraceEntry::Raw(r) => raw = Some(r),
                TraceEntry::Event(brief, rule) if brief.starts_with("fault") => {
                    found = Some(ValueSource::rule(*rule, raw));
                }
                TraceEntry::Event(..) | TraceEntry::Dropped(..) | TraceEntry::NotUnderstood(_) | TraceEntry::Late => {}
                TraceEntry::Held(_) | TraceEntry::Moment(..) | TraceEntry::Frame(..) | TraceEntry::Violation(_) => {}
            }
        }
        found
    }
}

impl Difference {
    fn set_source_if_none(&mut self, source: Option<ValueSource>) {
        self.source = self.source.take().or(source);
    }
}

/// A difference in the list of events: the rule that emitted the first event that differs.
pub fn locate_events(difference: Difference, expected: &[String], outcome: &TestOutcome) -> Difference {
    let same = expected.iter().zip(&outcome.events).take_while(|(e, event)| **e == event.brief).count();
    // If an event is missing at the end, the rule of the last event is the nearest.
    match outcome.events.get(same).or(outcome.events.last()) {
        Some(event) => difference.with_source(ValueSource::rule(event.rule, Some(&event.raw))),
        None => difference,
    }
}

/// Differences in `stream:`. The source of `stream[3].a` is frame 3, and that of the result of a path the frame that
/// contains it. A list of another length is located at its first element that differs.
pub fn locate_stream(differences: &mut [Difference], matcher: &Matcher, frames: &[FrameTrace]) {
    let all = Tree::from(frames.iter().map(|f| f.data.clone()).collect::<Vec<_>>());
    for difference in differences {
        let at = frame_index(difference.path.strip_prefix("stream").unwrap_or_default(), matcher, &all);
        difference.set_source_if_none(at.and_then(|at| frames.get(at).map(|frame| ValueSource::frame(at, frame))));
    }
}

fn frame_index(path: &str, matcher: &Matcher, all: &Tree) -> Option<usize> {
    let Some(path) = path.strip_prefix(' ') else {
        return leading_index(path).or_else(|| matcher.first_mismatch(all.as_list()?));
    };
    let Matcher::Map(_, paths) = matcher else { return None };
    let (rest, selector, matcher) = paths.iter().find_map(|(s, m)| Some((path.strip_prefix(&*s.text)?, s, m)))?;
    let cursor = Cursor::new(all);
    let found = selector.many(&cursor).map(|(value, path)| (value.clone(), cursor.text_of(&path).into_string()));
    let (values, value_paths): (Vec<Tree>, Vec<String>) = found.unzip();
    let found = leading_index(rest).or_else(|| matcher.first_mismatch(&values)).unwrap_or(0);
    leading_index(value_paths.get(found)?)
}

/// `[3].a` → 3
fn leading_index(path: &str) -> Option<usize> {
    path.strip_prefix('[')?.split(']').next()?.parse().ok()
}

pub fn locate_fault(differences: &mut [Difference], trace: &[TraceEntry]) {
    differences.iter_mut().for_each(|d| d.set_source_if_none(ValueSource::fault(trace)));
}

/// Narrows differences of the body from the body as a whole to the line of the member, where it can be found.
pub fn locate_body_members(case: &TestCase, outcome: &TestOutcome, differences: &mut [Difference], plan: &Plan) {
    let Some(locator) = case.dialect.as_ref().and_then(|dialect| plan.dialect_sources.of(dialect)) else { return };
    let Some(BodyOutcome { result: Ok(body), span, .. }) = &outcome.body else { return };
    for difference in differences {
        let Some(path) = difference.path.strip_prefix("body") else { continue };
        if let (Some(source), Some(found)) = (&mut difference.source, locator.locate_body_member(*span, body, path)) {
            source.span = found;
        }
    }
}

/// The turn failed although no fault is expected. `effect`: what the failure causes at `path`.
pub fn failed_turn(path: &str, effect: &str, fault: &Fault, trace: &[TraceEntry]) -> Difference {
    let message = format!("{effect}the turn failed: {}", fault_message(fault, trace));
    Difference { source: ValueSource::fault(trace), ..Difference::message(path, message) }
}

/// The message of a fault; for a violation, with its details.
pub fn fault_message(fault: &Fault, trace: &[TraceEntry]) -> String {
    first_violation(trace).map_or_else(|| fault.full_message(), Violation::message)
}

/// The first violation of a schema or an order.
pub fn first_violation(trace: &[TraceEntry]) -> Option<&Violation> {
    trace.iter().find_map(|entry| match entry {
        TraceEntry::Violation(violation) => Some(violation),
        TraceEntry::Raw(_) | TraceEntry::Event(..) | TraceEntry::Dropped(..) | TraceEntry::Held(_) => None,
        TraceEntry::NotUnderstood(_) | TraceEntry::Late | TraceEntry::Moment(..) | TraceEntry::Frame(..) => None,
    })
}

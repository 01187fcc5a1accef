//! Rules between the frames of a stream, for any dialect: ids do not change, sequence numbers have no gap, a choice is
//! finished once, nothing follows the end. The `capture:` rules of a dialect classify its frames; a rule about an
//! observation that they never emit does not apply.

use super::FindingList;
use super::facts::Facts;
use super::items::{Items, PartFraming};
use crate::domain::emit::{ItemRef, Observation, ObservationKind};
use crate::domain::{IndexLaw, MomentKind, Text, Tree};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::dialect_capture::CapturePlan;
use crate::mapping::config::rename_fields::restore;
use std::borrow::Cow;
use std::collections::BTreeMap;

pub struct StreamRules<'p> {
    plan: &'p CapturePlan,
    /// What the index of an item means.
    index: IndexLaw,
    /// The rules read the dialect's own names.
    renames: &'p [(String, String)],
    /// The observations that the dialect's rules can emit.
    emitted: Vec<ObservationKind>,
    facts: Facts,
    last_sequence: Option<i64>,
    choices: BTreeMap<i64, Choice>,
    items: Items,
    usage: Option<usize>,
    end: Option<(usize, StreamOutcome)>,
    terminator: Option<usize>,
}

#[derive(Debug, Default)]
struct Choice {
    started_at: Option<usize>,
    finished_at: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamOutcome {
    Completed,
    Failed,
}

impl<'p> StreamRules<'p> {
    pub fn new(dialect: &'p DialectPlan) -> StreamRules<'p> {
        let plan = &dialect.capture;
        StreamRules {
            plan,
            index: dialect.index,
            renames: &dialect.renames,
            emitted: plan.rules.emits().filter_map(|emit| ObservationKind::from_name(emit.kind.name)).collect(),
            facts: Facts::default(),
            last_sequence: None,
            choices: BTreeMap::new(),
            items: Items::new(dialect.resolved.policies.tool_arguments),
            usage: None,
            end: None,
            terminator: None,
        }
    }

    /// One frame of a stream.
    pub fn frame(&mut self, data: &Tree, findings: &mut FindingList) {
        let late = match (self.terminator, self.end) {
            (Some(at), _) => Some(format!("a frame comes after the terminator on line {at}")),
            (None, Some((at, _))) => Some(format!("a frame comes after the end on line {at}")),
            (None, None) => None,
        };
        if let Some(late) = late {
            return findings.add(late);
        }
        for observation in observations(self.plan, &restore(data, self.renames)) {
            self.observe(observation, findings);
        }
    }

    /// The terminator frame, such as `[DONE]`.
    pub fn terminator(&mut self, findings: &mut FindingList) {
        if let Some(first) = self.terminator {
            findings.add(format!("there is a second terminator (the first is on line {first})"));
        }
        self.terminator.get_or_insert(findings.line);
    }

    /// A body instead of a stream.
    pub fn body(&mut self, data: &Tree, findings: &mut FindingList) {
        for observation in observations(self.plan, &restore(data, self.renames)) {
            match observation {
                Observation::Item { item } => self.items.list(item.item, findings),
                Observation::Finish { .. } | Observation::Invalid { .. } => self.observe(observation, findings),
                // The rest is about the frames of a stream.
                _ => {}
            }
        }
    }

    /// The end of the capture.
    pub fn finish<'t>(&self, terminator: impl Fn(MomentKind) -> Option<&'t str>, findings: &mut FindingList) {
        let outcome = self.end.map(|(_, outcome)| outcome);
        if outcome.is_none() && self.emits(ObservationKind::End) {
            findings.add("the stream stops before the frame that ends the response");
        }
        if outcome != Some(StreamOutcome::Failed) {
            let open = self.choices.iter().filter(|(_, c)| c.finished_at.is_none());
            if self.emits(ObservationKind::Finish) {
                open.for_each(|(choice, _)| findings.add(format!("choice {choice} is never finished")));
                if self.choices.is_empty() {
                    findings.add("no choice is ever finished");
                }
            }
        }
        if outcome == Some(StreamOutcome::Completed) && self.emits(ObservationKind::Close) {
            self.items.never_closed(findings);
        }
        let moment = if outcome == Some(StreamOutcome::Failed) { MomentKind::TurnFail } else { MomentKind::TurnEnd };
        if let (None, Some(text)) = (self.terminator, terminator(moment)) {
            findings.add(format!("the stream stops without its terminator, `{text}`"));
        }
    }

    fn emits(&self, kind: ObservationKind) -> bool {
        self.emitted.contains(&kind)
    }

    fn observe(&mut self, mut observation: Observation, findings: &mut FindingList) {
        // The index of an item in a final list is its position there.
        let is_listed = matches!(observation, Observation::Item { .. });
        if let Some(item) = observation.item_ref() {
            self.apply_index_law(item, is_listed, findings);
        }
        let has_part_frames = self.emits(ObservationKind::OpenPart);
        let part_framing = if has_part_frames { PartFraming::Explicit } else { PartFraming::Implicit };
        match observation {
            Observation::Turn { id, model, created } => {
                let facts = [("id", id), ("model", model), ("created", created.map(|at| at.to_string()))];
                self.facts.check("the response", facts, findings);
            }
            Observation::Sequence { value } => self.check_sequence(value, findings),
            Observation::Start { choice } => {
                let subject = self.subject(choice);
                let started_at = &mut self.choices.entry(choice).or_default().started_at;
                findings.add_once(started_at, || format!("{subject} starts"));
            }
            Observation::Open { item } => {
                self.check_choice_is_open(item.item.choice, "an item", findings);
                self.items.open(item, findings);
            }
            Observation::OpenPart { part } => self.items.open_part(part, findings),
            Observation::Delta { part, text } => {
                let what = format!("a delta of {}", part.delta_kind().name());
                self.check_choice_is_open(part.item.choice, &what, findings);
                self.items.delta(part, text, part_framing, findings);
            }
            Observation::Whole { part, text } => self.items.whole(part, text, findings),
            Observation::ClosePart { part } => self.items.close_part(part, findings),
            Observation::Close { item } => self.items.close(item, part_framing, findings),
            Observation::Item { item } => self.items.repeat(item, findings),
            Observation::Finish { choice, .. } => {
                let finished_at = &mut self.choices.entry(choice).or_default().finished_at;
                findings.add_once(finished_at, || format!("choice {choice} is finished"));
            }
            Observation::Usage { .. } => {
                findings.add_once(&mut self.usage, || "the usage is reported".to_owned());
            }
            Observation::End { items } => {
                self.end = Some((findings.line, StreamOutcome::Completed));
                if items.is_some() {
                    self.items.missing_from_the_end(findings);
                }
            }
            Observation::Fail => self.end = Some((findings.line, StreamOutcome::Failed)),
            Observation::Invalid { message } => findings.add(message),
        }
    }

    /// Only under `position` does an index identify an item.
    fn apply_index_law(&self, item: &mut ItemRef, is_listed: bool, findings: &mut FindingList) {
        match (self.index, item.index) {
            (IndexLaw::Position, _) | (_, None) => return,
            (IndexLaw::Choice, Some(index)) if index != item.choice && !is_listed => {
                findings.add(format!("an item of choice {} has the index {index}", item.choice));
            }
            (IndexLaw::Choice | IndexLaw::None, Some(_)) => {}
        }
        if item.id.is_some() {
            item.index = None;
        }
    }

    fn check_sequence(&mut self, value: i64, findings: &mut FindingList) {
        match (self.last_sequence, self.plan.first_sequence) {
            (Some(before), _) if value != before + 1 => {
                findings.add(format!("this frame has the sequence number {value}, but the previous one has {before}"));
            }
            (None, Some(first)) if value != first => {
                findings.add(format!("the first frame has the sequence number {value}, not {first}"));
            }
            (Some(_) | None, _) => {}
        }
        self.last_sequence = Some(value);
    }

    /// Content of a choice requires that it has started and is not finished.
    fn check_choice_is_open(&mut self, choice: i64, what: &str, findings: &mut FindingList) {
        let has_start = self.emits(ObservationKind::Start);
        let subject = self.subject(choice);
        let known = self.choices.entry(choice).or_default();
        if let Some(finished_at) = known.finished_at {
            findings.add(format!("{what} comes after choice {choice} was finished on line {finished_at}"));
        } else if has_start && known.started_at.is_none() {
            findings.add(format!("{what} comes before {subject} has started"));
            known.started_at = Some(findings.line);
        }
    }

    /// A dialect that never finishes choices has only one, the response.
    fn subject(&self, choice: i64) -> String {
        if self.emits(ObservationKind::Finish) { format!("choice {choice}") } else { "the response".to_owned() }
    }
}

impl StreamRules<'_> {
    /// The data with the name of its SSE event as a member, if the rules read it there.
    pub fn with_event<'t>(&self, data: &'t Tree, event: Option<&str>) -> Cow<'t, Tree> {
        let named = self.plan.event.as_deref().zip(event);
        let (Some((member, event)), Some(members)) = (named, data.as_map()) else { return Cow::Borrowed(data) };
        if data.get(member).is_some() {
            return Cow::Borrowed(data);
        }
        Cow::Owned(Tree::Map(members.iter().cloned().chain([(Text::from(member), Tree::from(event))]).collect()))
    }
}

fn observations(plan: &CapturePlan, data: &Tree) -> impl Iterator<Item = Observation> {
    plan.rules.apply(data).emissions.into_iter().filter_map(|e| Observation::from_emission(e.name, e.fields))
}

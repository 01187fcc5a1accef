//! Rules between the frames of a stream, for any dialect: ids do not change, sequence numbers have no gap, a choice is
//! finished once, nothing follows the end. The `capture:` rules of a dialect classify its frames; a rule about an
//! observation that they never emit does not apply.

use super::items::{Items, PartFraming};
use super::{Facts, FindingList};
use crate::domain::{MomentKind, Tree};
use crate::engine::rules::Emission;
use crate::mapping::config::dialect_capture::CapturePlan;
use std::collections::BTreeMap;

pub struct StreamRules<'p> {
    plan: &'p CapturePlan,
    /// The observations that the dialect's rules can emit.
    emitted: Vec<&'static str>,
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
    pub fn new(plan: &'p CapturePlan) -> StreamRules<'p> {
        StreamRules {
            plan,
            emitted: plan.rules.emitted_kinds(),
            facts: Facts::default(),
            last_sequence: None,
            choices: BTreeMap::new(),
            items: Items::default(),
            usage: None,
            end: None,
            terminator: None,
        }
    }

    /// One frame of a stream.
    pub fn frame(&mut self, data: &Tree, line: usize, findings: &mut FindingList) {
        let late = match (self.terminator, self.end) {
            (Some(at), _) => Some(format!("a frame comes after the terminator on line {at}")),
            (None, Some((at, _))) => Some(format!("a frame comes after the end on line {at}")),
            (None, None) => None,
        };
        if let Some(late) = late {
            return findings.add(line, late);
        }
        for e in self.plan.rules.apply(data).emissions {
            self.observe(e, line, findings);
        }
    }

    /// The terminator frame, such as `[DONE]`.
    pub fn terminator(&mut self, line: usize, findings: &mut FindingList) {
        if let Some(first) = self.terminator {
            findings.add(line, format!("there is a second terminator (the first is on line {first})"));
        }
        self.terminator.get_or_insert(line);
    }

    /// A body instead of a stream.
    pub fn body(&mut self, data: &Tree, line: usize, findings: &mut FindingList) {
        for e in self.plan.rules.apply(data).emissions {
            match e.name {
                "item" => self.items.list(e, line, findings),
                "finish" | "invalid" => self.observe(e, line, findings),
                _ => {}
            }
        }
    }

    /// The end of the capture.
    pub fn finish<'t>(
        &self,
        last: usize,
        terminator: impl Fn(MomentKind) -> Option<&'t str>,
        findings: &mut FindingList,
    ) {
        let outcome = self.end.map(|(_, outcome)| outcome);
        if outcome.is_none() && self.emits("end") {
            findings.add(last, "the stream stops before the frame that ends the response");
        }
        if outcome != Some(StreamOutcome::Failed) {
            let open = self.choices.iter().filter(|(_, c)| c.finished_at.is_none());
            if self.emits("finish") {
                open.for_each(|(choice, _)| findings.add(last, format!("choice {choice} is never finished")));
                if self.choices.is_empty() {
                    findings.add(last, "no choice is ever finished");
                }
            }
        }
        if outcome == Some(StreamOutcome::Completed) && self.emits("close") {
            self.items.never_closed(findings);
        }
        let moment = if outcome == Some(StreamOutcome::Failed) { MomentKind::TurnFail } else { MomentKind::TurnEnd };
        if let (None, Some(text)) = (self.terminator, terminator(moment)) {
            findings.add(last, format!("the stream stops without its terminator, `{text}`"));
        }
    }

    fn emits(&self, word: &str) -> bool {
        self.emitted.contains(&word)
    }

    fn observe(&mut self, mut e: Emission, line: usize, findings: &mut FindingList) {
        let choice = e.fields.iter().find(|(n, _)| *n == "choice").and_then(|(_, v)| v.as_i64()).unwrap_or(0);
        let part_framing = if self.emits("open_part") { PartFraming::Explicit } else { PartFraming::Implicit };
        match e.name {
            "turn" => self.facts.check("the response", e, line, findings),
            "sequence" => self.check_sequence(e.take("value").and_then(|v| v.as_i64()), line, findings),
            "start" => {
                let subject = self.subject(choice);
                let started_at = &mut self.choices.entry(choice).or_default().started_at;
                findings.add_once(line, started_at, || format!("{subject} starts"));
            }
            "open" => {
                self.check_choice_is_open(choice, "an item", line, findings);
                self.items.open(e, line, findings);
            }
            "open_part" => self.items.open_part(e, line, findings),
            "delta" => {
                let kind = e.fields.iter().find(|(n, _)| *n == "kind").and_then(|(_, v)| v.as_str());
                let what = format!("a delta of {}", kind.unwrap_or("text"));
                self.check_choice_is_open(choice, &what, line, findings);
                self.items.delta(e, line, part_framing, findings);
            }
            "whole" => self.items.whole(e, line, findings),
            "close_part" => self.items.close_part(e, line, findings),
            "close" => self.items.close(e, line, part_framing, findings),
            "item" => self.items.repeat(e, line, findings),
            "finish" => {
                let finished_at = &mut self.choices.entry(choice).or_default().finished_at;
                findings.add_once(line, finished_at, || format!("choice {choice} is finished"));
            }
            "usage" => findings.add_once(line, &mut self.usage, || "the usage is reported".to_owned()),
            "end" => {
                self.end = Some((line, StreamOutcome::Completed));
                if e.take("items").is_some() {
                    self.items.missing_from_the_end(line, findings);
                }
            }
            "fail" => self.end = Some((line, StreamOutcome::Failed)),
            "invalid" => findings.add(line, e.text("message").unwrap_or_default()),
            _ => {}
        }
    }

    fn check_sequence(&mut self, value: Option<i64>, line: usize, findings: &mut FindingList) {
        let Some(value) = value else { return };
        match (self.last_sequence, self.plan.first_sequence) {
            (Some(before), _) if value != before + 1 => {
                findings.add(
                    line,
                    format!("this frame has the sequence number {value}, but the previous one has {before}"),
                );
            }
            (None, Some(first)) if value != first => {
                findings.add(line, format!("the first frame has the sequence number {value}, not {first}"));
            }
            (Some(_) | None, _) => {}
        }
        self.last_sequence = Some(value);
    }

    /// Content of a choice requires that it has started and is not finished.
    fn check_choice_is_open(&mut self, choice: i64, what: &str, line: usize, findings: &mut FindingList) {
        let has_start = self.emits("start");
        let subject = self.subject(choice);
        let known = self.choices.entry(choice).or_default();
        if let Some(finished_at) = known.finished_at {
            findings.add(line, format!("{what} comes after choice {choice} was finished on line {finished_at}"));
        } else if has_start && known.started_at.is_none() {
            findings.add(line, format!("{what} comes before {subject} has started"));
            known.started_at = Some(line);
        }
    }

    /// A dialect that never finishes choices has only one, the response.
    fn subject(&self, choice: i64) -> String {
        if self.emits("finish") { format!("choice {choice}") } else { "the response".to_owned() }
    }
}

//! Rules between the frames of a stream, for any dialect: ids do not change, sequence numbers have no gap, a choice is
//! finished once, nothing follows the end. The `capture:` rules of a dialect classify its frames; a rule about an
//! observation that they never emit does not apply.

use super::FindingList;
use super::items::{Items, PartFraming};
use crate::domain::{MomentKind, Tree};
use crate::engine::rules::Emission;
use crate::mapping::config::dialect_capture::CapturePlan;
use crate::mapping::language::field::scalar_text;
use std::collections::BTreeMap;

pub struct StreamRules<'p> {
    plan: &'p CapturePlan,
    /// The observations that the dialect's rules can emit.
    emitted: Vec<&'static str>,
    facts: Vec<(&'static str, String, usize)>,
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
            facts: Vec::new(),
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
            "turn" => self.turn(e, line, findings),
            "sequence" => self.check_sequence(e.take("value").and_then(|v| v.as_i64()), line, findings),
            "start" => {
                let known = self.choices.entry(choice).or_default();
                if let Some(first) = known.started_at {
                    findings
                        .add(line, format!("{} starts a second time (first on line {first})", self.subject(choice)));
                } else {
                    known.started_at = Some(line);
                }
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
                let known = self.choices.entry(choice).or_default();
                if let Some(first) = known.finished_at {
                    findings.add(line, format!("choice {choice} is finished a second time (first on line {first})"));
                }
                known.finished_at.get_or_insert(line);
            }
            "usage" => {
                if let Some(first) = self.usage {
                    findings.add(line, format!("the usage is reported a second time (first on line {first})"));
                }
                self.usage.get_or_insert(line);
            }
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

    fn turn(&mut self, e: Emission, line: usize, findings: &mut FindingList) {
        for (name, value) in e.fields {
            let value = scalar_text(&value).unwrap_or_default();
            match self.facts.iter().find(|(n, ..)| *n == name) {
                Some((_, known, first_line)) if *known != value => {
                    findings.add(
                        line,
                        format!("the {name} of the response is `{value}` here, but was `{known}` on line {first_line}"),
                    );
                }
                Some(_) => {}
                None => self.facts.push((name, value, line)),
            }
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

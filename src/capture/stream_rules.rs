//! What must hold between the frames of a stream, whichever dialect it is: ids stay, numbers have no gap, a choice is
//! finished once, nothing comes after the end. A dialect's rules say what its frames are; a law about a word that they
//! never say does not concern it.

use super::Notes;
use super::items::{Items, Parts};
use crate::domain::{MomentKind, Tree};
use crate::engine::rules::Emission;
use crate::mapping::config::dialect_capture::CapturePlan;
use crate::mapping::language::field::scalar_text;
use std::collections::BTreeMap;

pub struct Laws<'p> {
    plan: &'p CapturePlan,
    /// The words that the dialect's rules can say.
    words: Vec<&'static str>,
    facts: Vec<(&'static str, String, usize)>,
    number: Option<i64>,
    choices: BTreeMap<i64, Choice>,
    items: Items,
    usage: Option<usize>,
    over: Option<(usize, Ending)>,
    terminator: Option<usize>,
}

#[derive(Debug, Default)]
struct Choice {
    begun: Option<usize>,
    finished: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Good,
    Failed,
}

impl<'p> Laws<'p> {
    pub fn new(plan: &'p CapturePlan) -> Laws<'p> {
        Laws {
            plan,
            words: plan.rules.says(),
            facts: Vec::new(),
            number: None,
            choices: BTreeMap::new(),
            items: Items::default(),
            usage: None,
            over: None,
            terminator: None,
        }
    }

    /// One frame of a stream.
    pub fn frame(&mut self, data: &Tree, line: usize, notes: &mut Notes) {
        let late = match (self.terminator, self.over) {
            (Some(at), _) => Some(format!("a frame comes after the terminator on line {at}")),
            (None, Some((at, _))) => Some(format!("a frame comes after the end on line {at}")),
            (None, None) => None,
        };
        if let Some(late) = late {
            return notes.add(line, late);
        }
        for e in self.plan.rules.apply(data).emissions {
            self.observe(e, line, notes);
        }
    }

    /// The frame that says nothing but that it is the last.
    pub fn terminator(&mut self, line: usize, notes: &mut Notes) {
        if let Some(first) = self.terminator {
            notes.add(line, format!("there is a second terminator (the first is on line {first})"));
        }
        self.terminator.get_or_insert(line);
    }

    /// A body says everything at once.
    pub fn body(&mut self, data: &Tree, line: usize, notes: &mut Notes) {
        for e in self.plan.rules.apply(data).emissions {
            match e.word {
                "item" => self.items.list(e, line, notes),
                "finish" | "wrong" => self.observe(e, line, notes),
                _ => {}
            }
        }
    }

    /// The text is over.
    pub fn done<'t>(&self, last: usize, terminator: impl Fn(MomentKind) -> Option<&'t str>, notes: &mut Notes) {
        let ending = self.over.map(|(_, ending)| ending);
        if ending.is_none() && self.says("end") {
            notes.add(last, "the stream stops before the frame that ends the answer");
        }
        if ending != Some(Ending::Failed) {
            let open = self.choices.iter().filter(|(_, c)| c.finished.is_none());
            if self.says("finish") {
                open.for_each(|(choice, _)| notes.add(last, format!("choice {choice} is never finished")));
                if self.choices.is_empty() {
                    notes.add(last, "no choice is ever finished");
                }
            }
        }
        if ending == Some(Ending::Good) && self.says("close") {
            self.items.never_closed(notes);
        }
        let moment = if ending == Some(Ending::Failed) { MomentKind::TurnFail } else { MomentKind::TurnEnd };
        if let (None, Some(text)) = (self.terminator, terminator(moment)) {
            notes.add(last, format!("the stream stops without its terminator, `{text}`"));
        }
    }

    fn says(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn observe(&mut self, mut e: Emission, line: usize, notes: &mut Notes) {
        let choice = e.fields.iter().find(|(n, _)| *n == "choice").and_then(|(_, v)| v.as_i64()).unwrap_or(0);
        let parts = if self.says("open_part") { Parts::AreOpened } else { Parts::AreNot };
        match e.word {
            "turn" => self.turn(e, line, notes),
            "number" => self.count(e.take("value").and_then(|v| v.as_i64()), line, notes),
            "begin" => {
                let known = self.choices.entry(choice).or_default();
                if let Some(first) = known.begun {
                    notes.add(line, format!("{} begins a second time (first on line {first})", self.whose(choice)));
                } else {
                    known.begun = Some(line);
                }
            }
            "open" => {
                self.goes_on(choice, "an item", line, notes);
                self.items.open(e, line, notes);
            }
            "open_part" => self.items.open_part(e, line, notes),
            "piece" => {
                let kind = e.fields.iter().find(|(n, _)| *n == "kind").and_then(|(_, v)| v.as_str());
                let what = format!("a piece of {}", kind.unwrap_or("text"));
                self.goes_on(choice, &what, line, notes);
                self.items.piece(e, line, parts, notes);
            }
            "whole" => self.items.whole(e, line, notes),
            "close_part" => self.items.close_part(e, line, notes),
            "close" => self.items.close(e, line, parts, notes),
            "item" => self.items.retell(e, line, notes),
            "finish" => {
                let known = self.choices.entry(choice).or_default();
                if let Some(first) = known.finished {
                    notes.add(line, format!("choice {choice} is finished a second time (first on line {first})"));
                }
                known.finished.get_or_insert(line);
            }
            "usage" => {
                if let Some(first) = self.usage {
                    notes.add(line, format!("the usage is told a second time (first on line {first})"));
                }
                self.usage.get_or_insert(line);
            }
            "end" => {
                self.over = Some((line, Ending::Good));
                if e.take("items").is_some() {
                    self.items.missing_from_the_end(line, notes);
                }
            }
            "fail" => self.over = Some((line, Ending::Failed)),
            "wrong" => notes.add(line, e.text("message").unwrap_or_default()),
            _ => {}
        }
    }

    fn turn(&mut self, e: Emission, line: usize, notes: &mut Notes) {
        for (name, value) in e.fields {
            let value = scalar_text(&value).unwrap_or_default();
            match self.facts.iter().find(|(n, ..)| *n == name) {
                Some((_, known, told)) if *known != value => {
                    notes.add(
                        line,
                        format!("the {name} of the answer is `{value}` here, and was `{known}` on line {told}"),
                    );
                }
                Some(_) => {}
                None => self.facts.push((name, value, line)),
            }
        }
    }

    fn count(&mut self, value: Option<i64>, line: usize, notes: &mut Notes) {
        let Some(value) = value else { return };
        match (self.number, self.plan.first) {
            (Some(before), _) if value != before + 1 => {
                notes.add(line, format!("this frame has the number {value}, and the one before it has {before}"));
            }
            (None, Some(first)) if value != first => {
                notes.add(line, format!("the first frame has the number {value}, and not {first}"));
            }
            (Some(_) | None, _) => {}
        }
        self.number = Some(value);
    }

    /// Something is said in a choice: it has begun, and is not finished.
    fn goes_on(&mut self, choice: i64, what: &str, line: usize, notes: &mut Notes) {
        let begins = self.says("begin");
        let whose = self.whose(choice);
        let known = self.choices.entry(choice).or_default();
        if let Some(finished) = known.finished {
            notes.add(line, format!("{what} comes after choice {choice} was finished on line {finished}"));
        } else if begins && known.begun.is_none() {
            notes.add(line, format!("{what} comes before {whose} has begun"));
            known.begun = Some(line);
        }
    }

    /// Where choices are never finished there is only the answer.
    fn whose(&self, choice: i64) -> String {
        if self.says("finish") { format!("choice {choice}") } else { "the answer".to_owned() }
    }
}

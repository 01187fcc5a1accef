//! Tracks the items of a captured stream: opening, deltas, and closing.

use super::FindingList;
use super::facts::Facts;
use crate::diagnostics::count_noun;
use crate::domain::emit::{DeltaKind, ItemFacts, ItemRef, ObservedItem, ObservedPart, ObservedText};
use crate::domain::policy::ToolArguments;

#[derive(Debug)]
pub struct Items {
    all: Vec<Item>,
    accumulators: Vec<TextAccumulator>,
    /// Whether a delta of arguments has only the new text.
    tool_arguments: ToolArguments,
}

#[derive(Debug)]
struct Item {
    choice: i64,
    id: Option<String>,
    index: Option<i64>,
    facts: Facts,
    line: usize,
    /// Referred to before it was opened; already reported.
    implicit: bool,
    closed: Option<usize>,
    /// The last frame of the stream contains it.
    in_final_list: bool,
}

/// Text that arrives as deltas: of an item, of a part of it, or of a choice without items.
#[derive(Debug)]
struct TextAccumulator {
    owner: Owner,
    kind: DeltaKind,
    part: Option<i64>,
    opened: Option<usize>,
    /// A delta arrived before it was opened; already reported.
    implicit: bool,
    text: String,
    /// A delta contains half a surrogate pair, so the whole text is not known exactly.
    has_partial_char: bool,
    whole: Option<usize>,
    closed: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Choice(i64),
    Item(usize),
}

impl ItemRef {
    fn is_empty(&self) -> bool {
        self.id.is_none() && self.index.is_none()
    }

    fn show(&self) -> String {
        show(self.id.as_deref(), self.index)
    }
}

impl ObservedPart {
    pub fn delta_kind(&self) -> DeltaKind {
        self.kind.unwrap_or(DeltaKind::Text)
    }
}

fn show(id: Option<&str>, index: Option<i64>) -> String {
    match (id, index) {
        (Some(id), _) => format!("`{id}`"),
        (None, Some(index)) => format!("item {index}"),
        (None, None) => "this item".to_owned(),
    }
}

impl Item {
    fn show(&self) -> String {
        show(self.id.as_deref(), self.index)
    }
}

impl Items {
    pub fn new(tool_arguments: ToolArguments) -> Items {
        Items { all: Vec::new(), accumulators: Vec::new(), tool_arguments }
    }

    pub fn open(&mut self, observed: ObservedItem, findings: &mut FindingList) {
        let ObservedItem { item: item_ref, facts } = observed;
        let before = self.all.iter().filter(|i| i.choice == item_ref.choice).count() as i64;
        match self.lookup(&item_ref) {
            Some(at) if self.all[at].implicit => {
                self.all[at].implicit = false;
                self.all[at].id = item_ref.id.or(self.all[at].id.take());
                self.check_facts(at, facts, findings);
            }
            Some(at) => {
                let (item, first_line) = (self.all[at].show(), self.all[at].line);
                let same = item_ref.id.is_none() || item_ref.id == self.all[at].id;
                findings.add(match same {
                    true => format!("{item} is opened a second time (first on line {first_line})"),
                    false => format!(
                        "{} is opened at the index of {item}, which was opened on line {first_line}",
                        item_ref.show()
                    ),
                });
                if !same {
                    self.add(ItemRef { index: None, ..item_ref }, findings.line);
                }
            }
            None => {
                if let Some(index) = item_ref.index.filter(|i| *i != before) {
                    let item = item_ref.show();
                    findings.add(format!("{item} is opened at index {index}, but the next free index is {before}"));
                }
                let at = self.add(item_ref, findings.line);
                self.check_facts(at, facts, findings);
            }
        }
    }

    pub fn open_part(&mut self, part: ObservedPart, findings: &mut FindingList) {
        let Some((at, accumulator)) = self.accumulator(part, "a part", findings) else { return };
        let accumulator = &mut self.accumulators[accumulator];
        if let Some(first) = accumulator.opened.filter(|_| !accumulator.implicit) {
            let (item, what) = (self.all[at].show(), describe_part(accumulator));
            findings.add(format!("{what} of {item} is opened a second time (first on line {first})"));
        }
        accumulator.opened = Some(findings.line);
        accumulator.implicit = false;
    }

    /// The caller checks the choice of the delta.
    pub fn delta(
        &mut self,
        part: ObservedPart,
        text: ObservedText,
        part_framing: PartFraming,
        findings: &mut FindingList,
    ) {
        let what = format!("a delta of {}", part.delta_kind().name());
        let Some((owner, at)) = self.find_owner(part, &what, findings) else { return };
        let accumulator = &mut self.accumulators[at];
        if let Owner::Item(item) = owner {
            let item = &self.all[item];
            let of = format!("{} of {}", describe_part(accumulator), item.show());
            if let Some(closed) = item.closed {
                findings.add(format!("a delta of {of} comes after the item was closed on line {closed}"));
            } else if let Some(first_line) = accumulator.whole.or(accumulator.closed) {
                findings.add(format!("a delta of {of} comes after the complete value on line {first_line}"));
            } else if accumulator.part.is_some()
                && accumulator.opened.is_none()
                && part_framing == PartFraming::Explicit
                && item.line != findings.line
            {
                findings.add(format!("a delta of {of} comes before the part is opened"));
            }
            if accumulator.opened.is_none() {
                accumulator.opened = Some(findings.line);
                accumulator.implicit = true;
            }
        } else if let Some(first_line) = accumulator.whole {
            findings.add(format!("{what} comes after the complete value on line {first_line}"));
        }
        let is_cumulative =
            accumulator.kind == DeltaKind::Arguments && self.tool_arguments == ToolArguments::Cumulative;
        match text.0 {
            None => accumulator.has_partial_char = true,
            Some(text) if !is_cumulative => accumulator.text.push_str(&text),
            Some(text) => {
                if !text.starts_with(&accumulator.text) {
                    findings.add(format!(
                        "{what} does not begin with the arguments so far (policy `tool_arguments: cumulative`)"
                    ));
                }
                accumulator.text = text;
            }
        }
    }

    pub fn whole(&mut self, part: ObservedPart, text: Option<ObservedText>, findings: &mut FindingList) {
        // Text of a kind that the mapping does not know is not tracked.
        let Some(text) = text.filter(|_| part.kind.is_some()) else { return };
        let Some((owner, at)) = self.find_owner(part, "the complete value", findings) else { return };
        let accumulator = &mut self.accumulators[at];
        let of = match owner {
            Owner::Item(item) => self.all[item].show(),
            Owner::Choice(choice) => format!("choice {choice}"),
        };
        let whole = text.0.filter(|whole| !accumulator.has_partial_char && *whole != accumulator.text);
        if let Some(whole) = whole {
            findings.add(format!(
                "the complete value of {} of {of} {}",
                describe_part(accumulator),
                difference(&whole, &accumulator.text)
            ));
        }
        accumulator.whole.get_or_insert(findings.line);
    }

    pub fn close_part(&mut self, part: ObservedPart, findings: &mut FindingList) {
        let Some((at, accumulator)) = self.accumulator(part, "the end of a part", findings) else { return };
        let accumulator = &mut self.accumulators[accumulator];
        let (item, what) = (self.all[at].show(), describe_part(accumulator));
        match (accumulator.opened, accumulator.closed) {
            (None, _) => findings.add(format!("{what} of {item} is closed but was never opened")),
            (_, Some(first)) => {
                findings.add(format!("{what} of {item} is closed a second time (first on line {first})"));
            }
            (Some(_), None) => {}
        }
        accumulator.opened.get_or_insert(findings.line);
        accumulator.closed.get_or_insert(findings.line);
    }

    pub fn close(&mut self, observed: ObservedItem, part_framing: PartFraming, findings: &mut FindingList) {
        let at = self.find(observed.item, "the end", findings);
        let item = self.all[at].show();
        match self.all[at].closed {
            Some(first) => findings.add(format!("{item} is closed a second time (first on line {first})")),
            None => {
                let is_open = |a: &&TextAccumulator| {
                    a.owner == Owner::Item(at) && a.part.is_some() && a.closed.is_none() && !a.implicit
                };
                if part_framing == PartFraming::Explicit {
                    for accumulator in self.accumulators.iter().filter(is_open) {
                        let since = accumulator.opened.unwrap_or(findings.line);
                        let what = describe_part(accumulator);
                        findings.add(format!("{item} is closed, but {what} (opened on line {since}) is not"));
                    }
                }
                self.all[at].closed = Some(findings.line);
            }
        }
        self.check_facts(at, observed.facts, findings);
    }

    /// An item as the last frame of the stream repeats it.
    pub fn repeat(&mut self, observed: ObservedItem, findings: &mut FindingList) {
        let ObservedItem { item: item_ref, facts } = observed;
        let at = match self.lookup(&item_ref) {
            Some(_) => self.find(item_ref, "the end", findings),
            None => {
                findings.add(format!("{} is listed here but was never opened", item_ref.show()));
                let at = self.add(item_ref, findings.line);
                self.all[at].closed = Some(findings.line);
                // An item that was never opened has no deltas either; one finding is enough.
                self.all[at].implicit = true;
                at
            }
        };
        self.all[at].in_final_list = true;
        self.check_facts(at, facts, findings);
    }

    /// An item of a body, where items are not opened.
    pub fn list(&mut self, item_ref: ItemRef, findings: &mut FindingList) {
        if item_ref.id.is_some() && self.all.iter().any(|i| i.id == item_ref.id) {
            findings.add(format!("two items have the id {}", item_ref.show()));
        }
        self.add(item_ref, findings.line);
    }

    pub fn missing_from_the_end(&self, findings: &mut FindingList) {
        for item in self.all.iter().filter(|i| !i.in_final_list) {
            let text = format!("{}, opened on line {}, is missing from the final frame", item.show(), item.line);
            findings.add(text);
        }
    }

    pub fn never_closed(&self, findings: &mut FindingList) {
        for item in self.all.iter().filter(|i| i.closed.is_none()) {
            findings.add_at(item.line, format!("{} is opened here and never closed", item.show()));
        }
    }

    fn add(&mut self, item_ref: ItemRef, line: usize) -> usize {
        let ItemRef { choice, id, index } = item_ref;
        let facts = Facts::default();
        self.all.push(Item { choice, id, index, facts, line, implicit: false, closed: None, in_final_list: false });
        self.all.len() - 1
    }

    fn lookup(&self, item_ref: &ItemRef) -> Option<usize> {
        let by_id = || self.all.iter().position(|i| item_ref.id.is_some() && i.id == item_ref.id);
        let by_index = || {
            self.all
                .iter()
                .position(|i| item_ref.index.is_some() && i.index == item_ref.index && i.choice == item_ref.choice)
        };
        by_id().or_else(by_index)
    }

    /// Finds the item and reports contradictions. An item that was not opened counts as opened from here on.
    fn find(&mut self, item_ref: ItemRef, what: &str, findings: &mut FindingList) -> usize {
        let Some(at) = self.lookup(&item_ref) else {
            findings.add(format!("{what} of {} comes before it is opened", item_ref.show()));
            let at = self.add(item_ref, findings.line);
            self.all[at].implicit = true;
            return at;
        };
        let item = &mut self.all[at];
        match (&item_ref.id, &item.id) {
            (Some(id), Some(known)) if id != known => {
                let index = item_ref.index.unwrap_or_default();
                let first_line = item.line;
                findings
                    .add(format!("the id is `{id}` here, but item {index} is `{known}` (opened on line {first_line})"));
            }
            (Some(id), None) => item.id = Some(id.clone()),
            (Some(_) | None, _) => {}
        }
        match (item_ref.index, item.index) {
            (Some(index), Some(known)) if index != known => {
                let text = format!("{} is at index {index} here, but was opened at index {known}", item.show());
                findings.add(format!("{text} on line {}", item.line));
            }
            (Some(index), None) => item.index = Some(index),
            (Some(_) | None, _) => {}
        }
        at
    }

    fn check_facts(&mut self, at: usize, facts: ItemFacts, findings: &mut FindingList) {
        let item = &mut self.all[at];
        let ItemFacts { kind, call, name } = facts;
        item.facts.check(&item.show(), [("kind", kind), ("call", call), ("name", name)], findings);
    }

    /// The accumulator of an item.
    fn accumulator(&mut self, part: ObservedPart, what: &str, findings: &mut FindingList) -> Option<(usize, usize)> {
        match self.find_owner(part, what, findings)? {
            (Owner::Item(item), accumulator) => Some((item, accumulator)),
            (Owner::Choice(_), _) => None,
        }
    }

    fn find_owner(&mut self, observed: ObservedPart, what: &str, findings: &mut FindingList) -> Option<(Owner, usize)> {
        let (kind, part, item_ref) = (observed.delta_kind(), observed.part, observed.item);
        let owner = match item_ref.is_empty() {
            true => Owner::Choice(item_ref.choice),
            false => Owner::Item(self.find(item_ref, what, findings)),
        };
        let known = self.accumulators.iter().position(|a| a.owner == owner && a.kind == kind && a.part == part);
        let at = known.unwrap_or_else(|| {
            let accumulator = TextAccumulator {
                owner,
                kind,
                part,
                opened: None,
                implicit: false,
                text: String::new(),
                has_partial_char: false,
                whole: None,
                closed: None,
            };
            self.accumulators.push(accumulator);
            self.accumulators.len() - 1
        });
        // An item that only the last frame contains is already reported.
        let is_reported = matches!(owner, Owner::Item(item) if self.all[item].implicit && self.all[item].in_final_list);
        (!is_reported).then_some((owner, at))
    }
}

/// Whether a dialect has frames that open and close the parts of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartFraming {
    Explicit,
    Implicit,
}

fn describe_part(accumulator: &TextAccumulator) -> String {
    match accumulator.part {
        Some(part) => format!("part {part} ({})", accumulator.kind.name()),
        None => format!("the {}", accumulator.kind.name()),
    }
}

fn difference(whole: &str, deltas: &str) -> String {
    let same = whole.chars().zip(deltas.chars()).take_while(|(a, b)| a == b).count();
    let (whole_chars, delta_chars) = (whole.chars().count(), deltas.chars().count());
    match (same == whole_chars, same == delta_chars) {
        (_, true) => format!("has {} more than its deltas", count_noun(whole_chars - delta_chars, "character")),
        (true, false) => format!("has {} fewer than its deltas", count_noun(delta_chars - whole_chars, "character")),
        (false, false) => format!("differs from its deltas from character {} on", same + 1),
    }
}

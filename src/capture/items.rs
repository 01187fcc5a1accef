//! What a stream has opened, said piece by piece, and closed again.

use super::Notes;
use crate::domain::Tree;
use crate::engine::rules::Emission;
use crate::mapping::language::field::scalar_text;

#[derive(Debug, Default)]
pub struct Items {
    all: Vec<Item>,
    strands: Vec<Strand>,
}

#[derive(Debug)]
struct Item {
    choice: i64,
    id: Option<String>,
    index: Option<i64>,
    /// What was said of it and must stay so.
    facts: Vec<(&'static str, String, usize)>,
    line: usize,
    /// Spoken of before it was opened; that was said.
    early: bool,
    closed: Option<usize>,
    /// It stands in the end as well.
    retold: bool,
}

/// Text that arrives in pieces: of an item, of a part of it, or of a choice that has no items.
#[derive(Debug)]
struct Strand {
    of: Owner,
    kind: String,
    part: Option<i64>,
    opened: Option<usize>,
    /// A piece came before it was opened; that was said.
    early: bool,
    text: String,
    /// A piece is half a character: what the pieces make is not known exactly.
    torn: bool,
    whole: Option<usize>,
    closed: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Choice(i64),
    Item(usize),
}

/// How an observation names its item.
struct Named {
    choice: i64,
    id: Option<String>,
    index: Option<i64>,
}

impl Named {
    fn take(e: &mut Emission) -> Named {
        let int = |t: Option<Tree>| t.and_then(|t| t.as_i64());
        Named { choice: int(e.take("choice")).unwrap_or(0), id: e.text("id"), index: int(e.take("index")) }
    }

    fn nothing(&self) -> bool {
        self.id.is_none() && self.index.is_none()
    }

    fn show(&self) -> String {
        show(self.id.as_deref(), self.index)
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
    pub fn open(&mut self, mut e: Emission, line: usize, notes: &mut Notes) {
        let named = Named::take(&mut e);
        let before = self.all.iter().filter(|i| i.choice == named.choice).count() as i64;
        match self.lookup(&named) {
            Some(at) if self.all[at].early => {
                self.all[at].early = false;
                self.all[at].id = named.id.or(self.all[at].id.take());
                self.facts(at, e, line, notes);
            }
            Some(at) => {
                let (item, told) = (self.all[at].show(), self.all[at].line);
                let same = named.id.is_none() || named.id == self.all[at].id;
                notes.add(
                    line,
                    match same {
                        true => format!("{item} is opened a second time (first on line {told})"),
                        false => format!(
                            "{} is opened at the index of {item}, which was opened on line {told}",
                            named.show()
                        ),
                    },
                );
                if !same {
                    self.add(Named { index: None, ..named }, line);
                }
            }
            None => {
                if let Some(index) = named.index.filter(|i| *i != before) {
                    let item = named.show();
                    notes.add(line, format!("{item} is opened at index {index}, and the next free one is {before}"));
                }
                let at = self.add(named, line);
                self.facts(at, e, line, notes);
            }
        }
    }

    pub fn open_part(&mut self, mut e: Emission, line: usize, notes: &mut Notes) {
        let Some((at, strand)) = self.strand(&mut e, line, "a part", notes) else { return };
        let strand = &mut self.strands[strand];
        if let Some(first) = strand.opened.filter(|_| !strand.early) {
            let (item, what) = (self.all[at].show(), what(strand));
            notes.add(line, format!("{what} of {item} is opened a second time (first on line {first})"));
        }
        strand.opened = Some(line);
        strand.early = false;
    }

    /// The choice that the piece belongs to is the caller's business.
    pub fn piece(&mut self, mut e: Emission, line: usize, parts: Parts, notes: &mut Notes) {
        let piece = e.take("text");
        let kind =
            e.fields.iter().find(|(n, _)| *n == "kind").and_then(|(_, v)| v.as_str()).unwrap_or("text").to_owned();
        let Some((owner, at)) = self.owned(&mut e, line, &format!("a piece of {kind}"), notes) else { return };
        let strand = &mut self.strands[at];
        if let Owner::Item(item) = owner {
            let item = &self.all[item];
            let of = format!("{} of {}", what(strand), item.show());
            if let Some(closed) = item.closed {
                notes.add(line, format!("a piece of {of} comes after the item was closed on line {closed}"));
            } else if let Some(told) = strand.whole.or(strand.closed) {
                notes.add(line, format!("a piece of {of} comes after the whole was told on line {told}"));
            } else if strand.part.is_some() && strand.opened.is_none() && parts == Parts::AreOpened && item.line != line
            {
                notes.add(line, format!("a piece of {of} comes before the part is opened"));
            }
            if strand.opened.is_none() {
                strand.opened = Some(line);
                strand.early = true;
            }
        } else if let Some(told) = strand.whole {
            notes.add(line, format!("a piece of {kind} comes after the whole was told on line {told}"));
        }
        match piece {
            Some(Tree::Torn(_)) => strand.torn = true,
            Some(text) => strand.text.push_str(text.as_str().unwrap_or_default()),
            None => {}
        }
    }

    pub fn whole(&mut self, mut e: Emission, line: usize, notes: &mut Notes) {
        // A strand of a kind that the mapping does not know is not one of ours.
        let is_strand = e.fields.iter().any(|(name, _)| *name == "kind");
        let Some(text) = e.take("text").filter(|_| is_strand) else { return };
        let Some((owner, at)) = self.owned(&mut e, line, "a whole", notes) else { return };
        let strand = &mut self.strands[at];
        let of = match owner {
            Owner::Item(item) => self.all[item].show(),
            Owner::Choice(choice) => format!("choice {choice}"),
        };
        let whole = text.as_str().filter(|w| !strand.torn && *w != strand.text);
        if let Some(whole) = whole {
            notes.add(line, format!("the whole of {} of {of} {}", what(strand), difference(whole, &strand.text)));
        }
        strand.whole.get_or_insert(line);
    }

    pub fn close_part(&mut self, mut e: Emission, line: usize, notes: &mut Notes) {
        let Some((at, strand)) = self.strand(&mut e, line, "the end of a part", notes) else { return };
        let strand = &mut self.strands[strand];
        let (item, what) = (self.all[at].show(), what(strand));
        match (strand.opened, strand.closed) {
            (None, _) => notes.add(line, format!("{what} of {item} is closed, and was never opened")),
            (_, Some(first)) => {
                notes.add(line, format!("{what} of {item} is closed a second time (first on line {first})"));
            }
            (Some(_), None) => {}
        }
        strand.opened.get_or_insert(line);
        strand.closed.get_or_insert(line);
    }

    pub fn close(&mut self, mut e: Emission, line: usize, parts: Parts, notes: &mut Notes) {
        let named = Named::take(&mut e);
        let at = self.find(named, line, "the end", notes);
        let item = self.all[at].show();
        match self.all[at].closed {
            Some(first) => notes.add(line, format!("{item} is closed a second time (first on line {first})")),
            None => {
                let open = |s: &&Strand| s.of == Owner::Item(at) && s.part.is_some() && s.closed.is_none() && !s.early;
                if parts == Parts::AreOpened {
                    for strand in self.strands.iter().filter(open) {
                        let since = strand.opened.unwrap_or(line);
                        let what = what(strand);
                        notes.add(line, format!("{item} is closed, and {what} (opened on line {since}) is not"));
                    }
                }
                self.all[at].closed = Some(line);
            }
        }
        self.facts(at, e, line, notes);
    }

    /// An item as the end of a stream tells it again.
    pub fn retell(&mut self, mut e: Emission, line: usize, notes: &mut Notes) {
        let named = Named::take(&mut e);
        let at = match self.lookup(&named) {
            Some(_) => self.find(named, line, "the end", notes),
            None => {
                notes.add(line, format!("{} is told here, and was never opened", named.show()));
                let at = self.add(named, line);
                self.all[at].closed = Some(line);
                // Of what was never opened no piece was told either; one finding is enough.
                self.all[at].early = true;
                at
            }
        };
        self.all[at].retold = true;
        self.facts(at, e, line, notes);
    }

    /// In a body items are only told, never opened.
    pub fn list(&mut self, mut e: Emission, line: usize, notes: &mut Notes) {
        let named = Named::take(&mut e);
        if named.id.is_some() && self.all.iter().any(|i| i.id == named.id) {
            notes.add(line, format!("two items are called {}", named.show()));
        }
        self.add(named, line);
    }

    pub fn missing_from_the_end(&self, line: usize, notes: &mut Notes) {
        for item in self.all.iter().filter(|i| !i.retold) {
            let text = format!("{}, opened on line {}, is missing from the end", item.show(), item.line);
            notes.add(line, text);
        }
    }

    pub fn never_closed(&self, notes: &mut Notes) {
        for item in self.all.iter().filter(|i| i.closed.is_none()) {
            notes.add(item.line, format!("{} is opened here and never closed", item.show()));
        }
    }

    fn add(&mut self, named: Named, line: usize) -> usize {
        let Named { choice, id, index } = named;
        let facts = Vec::new();
        self.all.push(Item { choice, id, index, facts, line, early: false, closed: None, retold: false });
        self.all.len() - 1
    }

    fn lookup(&self, named: &Named) -> Option<usize> {
        let by_id = || self.all.iter().position(|i| named.id.is_some() && i.id == named.id);
        let by_index = || {
            self.all.iter().position(|i| named.index.is_some() && i.index == named.index && i.choice == named.choice)
        };
        by_id().or_else(by_index)
    }

    /// The item that is meant. What does not agree is said; one that nobody opened counts as opened from here on.
    fn find(&mut self, named: Named, line: usize, what: &str, notes: &mut Notes) -> usize {
        let Some(at) = self.lookup(&named) else {
            notes.add(line, format!("{what} of {} comes before it is opened", named.show()));
            let at = self.add(named, line);
            self.all[at].early = true;
            return at;
        };
        let item = &mut self.all[at];
        match (&named.id, &item.id) {
            (Some(id), Some(known)) if id != known => {
                let index = named.index.unwrap_or_default();
                let told = item.line;
                notes.add(line, format!("`{id}` is named here, and item {index} is `{known}` (opened on line {told})"));
            }
            (Some(id), None) => item.id = Some(id.clone()),
            (Some(_) | None, _) => {}
        }
        match (named.index, item.index) {
            (Some(index), Some(known)) if index != known => {
                let text = format!("{} is at index {index} here, and was opened at index {known}", item.show());
                notes.add(line, format!("{text} on line {}", item.line));
            }
            (Some(index), None) => item.index = Some(index),
            (Some(_) | None, _) => {}
        }
        at
    }

    fn facts(&mut self, at: usize, e: Emission, line: usize, notes: &mut Notes) {
        let item = &mut self.all[at];
        let shown = item.show();
        for (name, value) in e.fields {
            let value = scalar_text(&value).unwrap_or_default();
            match item.facts.iter().find(|(n, ..)| *n == name) {
                Some((_, known, told)) if *known != value => {
                    let text = format!("the {name} of {shown} is `{value}` here, and was `{known}` on line {told}");
                    notes.add(line, text);
                }
                Some(_) => {}
                None => item.facts.push((name, value, line)),
            }
        }
    }

    /// A strand of an item.
    fn strand(&mut self, e: &mut Emission, line: usize, what: &str, notes: &mut Notes) -> Option<(usize, usize)> {
        match self.owned(e, line, what, notes)? {
            (Owner::Item(item), strand) => Some((item, strand)),
            (Owner::Choice(_), _) => None,
        }
    }

    fn owned(&mut self, e: &mut Emission, line: usize, what: &str, notes: &mut Notes) -> Option<(Owner, usize)> {
        let named = Named::take(e);
        let owner = match named.nothing() {
            true => Owner::Choice(named.choice),
            false => Owner::Item(self.find(named, line, what, notes)),
        };
        let kind = e.text("kind").unwrap_or_else(|| "text".to_owned());
        let part = e.take("part").and_then(|p| p.as_i64());
        let known = self.strands.iter().position(|s| s.of == owner && s.kind == kind && s.part == part);
        let at = known.unwrap_or_else(|| {
            let strand = Strand {
                of: owner,
                kind,
                part,
                opened: None,
                early: false,
                text: String::new(),
                torn: false,
                whole: None,
                closed: None,
            };
            self.strands.push(strand);
            self.strands.len() - 1
        });
        // What came too early was said once, by the item.
        let early = matches!(owner, Owner::Item(item) if self.all[item].early && self.all[item].retold);
        (!early).then_some((owner, at))
    }
}

/// Whether the parts of an item are opened and closed in frames of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    AreOpened,
    AreNot,
}

fn what(strand: &Strand) -> String {
    match strand.part {
        Some(part) => format!("part {part} ({})", strand.kind),
        None => format!("the {}", strand.kind),
    }
}

fn difference(whole: &str, pieces: &str) -> String {
    let same = whole.chars().zip(pieces.chars()).take_while(|(a, b)| a == b).count();
    let (told, came) = (whole.chars().count(), pieces.chars().count());
    match (same == told, same == came) {
        (_, true) => format!("has {} more than its pieces", characters(told - came)),
        (true, false) => format!("has {} fewer than its pieces", characters(came - told)),
        (false, false) => format!("differs from its pieces from character {} on", same + 1),
    }
}

fn characters(n: usize) -> String {
    if n == 1 { "1 character".to_owned() } else { format!("{n} characters") }
}

//! Rules: `each` / `where` / `emit`, the same for a backend's events and for a client's request.
//!
//! All rules that hold fire, in file order, and emit in list order. Rules that stand together and walk the same
//! `each` walk it once, element by element, so that what comes out keeps the order of what came in. `drop:` and
//! `fail:` are looked at only when nothing else held; `otherwise: true` only when no earlier rule of its group did.

use super::book::RuleBook;
use super::condition::{self, Condition};
use super::fields::{Cx, Fields, text_of};
use super::read::{Mismatch, Read, ReadCx, scalar_text};
use super::select::{Cursor, Selector};
use super::table::Tables;
use super::yaml::{Kind as Yaml, Node};
use crate::canon::Tree;
use crate::canon::vocabulary::{PARTS, Vocabulary, Word};
use crate::diag::{Code, Diagnostic, Span};
use std::sync::Arc;

#[derive(Debug)]
pub struct RuleSet {
    vocabulary: &'static Vocabulary,
    /// Where the name of an event stands, for rules with `event:`.
    pub(super) key: Option<Selector>,
    pub(super) groups: Vec<Group>,
}

#[derive(Debug)]
pub(super) struct Group {
    pub each: Option<Selector>,
    pub rules: Vec<Rule>,
}

#[derive(Debug)]
pub(super) struct Rule {
    pub span: Span,
    pub keys: Vec<String>,
    /// Where `event:` stands.
    pub event: Span,
    pub conditions: Vec<Condition>,
    pub otherwise: bool,
    pub action: Action,
}

#[derive(Debug)]
pub(super) enum Action {
    Emit(Vec<Emit>),
    Drop(String),
    Fail(String),
}

#[derive(Debug)]
pub(super) struct Emit {
    pub each: Option<Selector>,
    pub conditions: Vec<Condition>,
    pub word: &'static Word,
    pub reads: Vec<Read>,
}

/// One word that a rule said, with its fields; absent ones are not listed.
#[derive(Clone, Debug, PartialEq)]
pub struct Emission {
    pub word: &'static str,
    pub fields: Vec<(&'static str, Tree)>,
    /// The rule that said it.
    pub rule: Span,
}

impl Emission {
    pub fn take(&mut self, name: &str) -> Option<Tree> {
        let at = self.fields.iter().position(|(n, _)| *n == name)?;
        Some(self.fields.swap_remove(at).1)
    }

    pub fn text(&mut self, name: &str) -> Option<String> {
        self.take(name).and_then(|t| scalar_text(&t))
    }
}

/// What became of one raw event (or of one element of a request).
#[derive(Debug, Default)]
pub struct Said {
    pub emissions: Vec<Emission>,
    /// At least one rule held, be it to drop.
    pub matched: bool,
    /// Why, and the rule that says so.
    pub dropped: Option<(String, Span)>,
    pub failed: Option<(String, Span)>,
    /// Fields that could not be filled.
    pub mismatches: Vec<Mismatch>,
    /// Elements of a list that no rule of their group knew.
    pub unknown: Vec<String>,
}

impl RuleSet {
    pub fn parse(
        vocabulary: &'static Vocabulary,
        key: Option<Selector>,
        nodes: &[Node],
        tables: &Tables,
        book: &RuleBook,
        cx: Cx,
    ) -> RuleSet {
        let rcx = ReadCx { cx, tables, book, lenient: vocabulary.empty_is_nothing };
        let mut groups: Vec<Group> = Vec::new();
        for node in nodes {
            let Some((each, rule)) = Rule::parse(vocabulary, key.is_some(), node, &rcx) else { continue };
            let same = |group: &Group| match (&group.each, &each) {
                (Some(a), Some(b)) => a.text == b.text,
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            match groups.last_mut() {
                Some(group) if same(group) => group.rules.push(rule),
                _ => groups.push(Group { each, rules: vec![rule] }),
            }
        }
        RuleSet { vocabulary, key, groups }
    }

    /// The name of an event, where the rules go by one.
    pub fn key_of(&self, raw: &Tree) -> Option<String> {
        self.key.as_ref()?.one(&Cursor::new(raw)).and_then(scalar_text)
    }

    /// Members of the body that the rules read: everything else is `request.extra`.
    pub fn first_keys(&self) -> Vec<&str> {
        let mut keys = Vec::new();
        for group in &self.groups {
            keys.extend(group.each.iter().filter_map(Selector::first_key));
            for rule in &group.rules {
                keys.extend(rule.conditions.iter().filter_map(|c| c.at.first_key()));
                if let Action::Emit(emits) = &rule.action {
                    for emit in emits {
                        keys.extend(emit.each.iter().filter_map(Selector::first_key));
                        keys.extend(emit.conditions.iter().filter_map(|c| c.at.first_key()));
                        keys.extend(emit.reads.iter().flat_map(Read::selectors).filter_map(Selector::first_key));
                    }
                }
            }
        }
        keys
    }

    pub(super) fn emits(&self) -> impl Iterator<Item = &Emit> {
        self.groups.iter().flat_map(|g| &g.rules).flat_map(|rule| match &rule.action {
            Action::Emit(emits) => emits.as_slice(),
            Action::Drop(_) | Action::Fail(_) => &[],
        })
    }

    /// The words that these rules can say; `reasoning` is told apart by its kind.
    pub fn says(&self) -> Vec<&'static str> {
        self.emits().flat_map(Emit::says).collect()
    }

    pub fn apply(&self, raw: &Tree) -> Said {
        let mut said = Said::default();
        self.run(&mut Cursor::new(raw), &mut said);
        said
    }

    pub fn run(&self, cursor: &mut Cursor, said: &mut Said) {
        let key = self.key.as_ref().map(|k| k.one(cursor).and_then(scalar_text).unwrap_or_default());
        for group in &self.groups {
            match &group.each {
                None => {
                    group.run(self.vocabulary, key.as_deref(), cursor, said);
                }
                Some(each) => {
                    for (node, path) in each.many(cursor) {
                        cursor.enter(node, path.clone());
                        if !group.run(self.vocabulary, key.as_deref(), cursor, said) {
                            said.unknown.push(path);
                        }
                        cursor.leave();
                    }
                }
            }
        }
        if !said.matched {
            self.last_resort(key.as_deref(), cursor, said);
        }
    }

    /// `drop:` and `fail:` rules, looked at only when no other rule held.
    fn last_resort(&self, key: Option<&str>, cursor: &mut Cursor, said: &mut Said) {
        for rule in self.groups.iter().filter(|g| g.each.is_none()).flat_map(|g| &g.rules) {
            if !rule.holds(key, cursor) {
                continue;
            }
            match &rule.action {
                Action::Emit(_) => continue,
                Action::Drop(why) => said.dropped = Some((why.clone(), rule.span)),
                Action::Fail(why) => said.failed = Some((why.clone(), rule.span)),
            }
            said.matched = true;
            return;
        }
    }

    /// Content parts, as a list of `{ type, … }`.
    pub fn parts(&self, from: &Selector, cursor: &mut Cursor) -> Result<Tree, Mismatch> {
        let Some(node) = from.one(cursor).filter(|n| !n.is_null()) else { return Ok(Tree::Null) };
        let path = from.param(cursor);
        let mut said = Said::default();
        cursor.enter(node, path.clone());
        self.run(cursor, &mut said);
        cursor.leave();
        if let Some(mismatch) = said.mismatches.into_iter().next() {
            return Err(mismatch);
        }
        if let Some((message, _)) = said.failed {
            return Err(Mismatch { param: path, message });
        }
        if let Some(unknown) = said.unknown.into_iter().next() {
            return Err(Mismatch { param: unknown, message: "is of a kind that is not supported here".into() });
        }
        if !said.matched && node.as_list().is_none_or(|l| !l.is_empty()) {
            let found = node.type_name();
            return Err(Mismatch { param: path, message: format!("cannot be read: no rule takes this {found}") });
        }
        let parts = said.emissions.into_iter().map(|e| {
            let fields = e.fields.into_iter().map(|(k, v)| (Arc::from(k), v));
            Tree::Map([(Arc::from("type"), Tree::from(e.word))].into_iter().chain(fields).collect())
        });
        Ok(Tree::from(parts.collect::<Vec<_>>()))
    }
}

impl Group {
    /// True when some rule knew the node at hand.
    fn run(&self, vocabulary: &Vocabulary, key: Option<&str>, cursor: &mut Cursor, said: &mut Said) -> bool {
        // A list that no rule reads in events of this name is not this group's business.
        let mut held = !self.rules.iter().any(|r| r.is_about(key));
        for rule in &self.rules {
            if (rule.otherwise && held) || !rule.holds(key, cursor) {
                continue;
            }
            match &rule.action {
                Action::Emit(emits) => {
                    held = true;
                    said.matched = true;
                    for emit in emits {
                        emit.run(vocabulary, rule.span, cursor, said);
                    }
                }
                // For a single event these are the last resort of the whole set; inside a list, of the element.
                Action::Drop(why) if self.each.is_some() && !held => {
                    held = true;
                    said.matched = true;
                    said.dropped = Some((why.clone(), rule.span));
                }
                Action::Fail(why) if self.each.is_some() && !held => {
                    held = true;
                    said.matched = true;
                    said.failed = Some((why.clone(), rule.span));
                }
                Action::Drop(_) | Action::Fail(_) => {}
            }
        }
        held
    }
}

impl Rule {
    fn parse(
        vocabulary: &'static Vocabulary,
        keyed: bool,
        node: &Node,
        rcx: &ReadCx,
    ) -> Option<(Option<Selector>, Rule)> {
        let cx = rcx.cx;
        let fields = Fields::of(node, "a rule", cx)?;
        fields.text("name");
        let each = parse_each(&fields, cx);
        let mut keys = Vec::new();
        if keyed {
            keys.extend(fields.list("event").iter().filter_map(|n| text_of(n, cx)).map(str::to_owned));
        } else if let Some(entry) = fields.entry("event") {
            cx.add(
                Diagnostic::new(
                    Code::UnknownKey,
                    entry.key_span,
                    "`event:` needs `key:`, the selector of an event's name",
                )
                .help("write `key: $.type` (or where the name stands) beside `rules:`"),
            );
        }
        let event = fields.entry("event").map_or(node.span, |entry| entry.key_span);
        let conditions = condition::parse(&fields, cx);
        let otherwise = fields.flag("otherwise").unwrap_or(false);
        let emit = fields.get("emit");
        let drop = fields.text("drop");
        let fail = fields.text("fail");
        let action = match (emit, drop, fail) {
            (Some(list), None, None) => {
                let nodes = match &list.kind {
                    Yaml::List(nodes) => nodes.as_slice(),
                    _ => std::slice::from_ref(list),
                };
                Action::Emit(nodes.iter().filter_map(|n| Emit::parse(vocabulary, n, rcx)).collect())
            }
            (None, Some(why), None) => Action::Drop(why.to_owned()),
            (None, None, Some(why)) => Action::Fail(why.to_owned()),
            _ => {
                let message = "a rule says exactly one of `emit:`, `drop:` (why) and `fail:` (the message)";
                let keys = ["emit", "drop", "fail"];
                fields.not_one_of(&keys, Diagnostic::new(Code::MissingKey, node.span, message));
                fields.done();
                return None;
            }
        };
        fields.done();
        Some((each, Rule { span: node.span, keys, event, conditions, otherwise, action }))
    }

    fn is_about(&self, key: Option<&str>) -> bool {
        self.keys.is_empty() || key.is_some_and(|k| self.keys.iter().any(|n| n == k))
    }

    fn holds(&self, key: Option<&str>, cursor: &Cursor) -> bool {
        self.is_about(key) && self.conditions.iter().all(|c| c.holds(cursor))
    }
}

impl Emit {
    fn parse(vocabulary: &'static Vocabulary, node: &Node, rcx: &ReadCx) -> Option<Emit> {
        let cx = rcx.cx;
        let fields = Fields::of(node, format!("an emitted {}", vocabulary.noun), cx)?;
        let each = parse_each(&fields, cx);
        let conditions = condition::parse(&fields, cx);
        let mut said = fields.rest();
        // `ech` beside a word that exists is no second word but a slip in the first.
        let is_word = |e: &&super::yaml::Entry| vocabulary.find(&e.key).is_some();
        if said.len() > 1 && said.iter().filter(|e| is_word(e)).count() == 1 {
            for slip in said.iter().filter(|e| !is_word(e)) {
                let message = format!("unknown key `{}` in an emitted {}", slip.key, vocabulary.noun);
                cx.unknown(Code::UnknownKey, slip.key_span, message, &slip.key, ["each", "where"]);
            }
            said.retain(is_word);
        }
        let [entry] = said.as_slice() else {
            let noun = vocabulary.noun;
            let (span, message) = match said.get(1) {
                Some(second) => (second.key_span, format!("a second {noun} in one entry of `emit:`")),
                None => (node.span, format!("this entry of `emit:` says no {noun}")),
            };
            cx.add(
                Diagnostic::new(Code::UnknownWord, span, message)
                    .help(format!("`emit:` is a list, one {noun} an entry: `- {}: {{ … }}`", example(vocabulary))),
            );
            return None;
        };
        let Some(word) = vocabulary.find(&entry.key) else {
            let message = format!("no {} is called `{}`", vocabulary.noun, entry.key);
            cx.unknown(Code::UnknownWord, entry.key_span, message, &entry.key, vocabulary.names());
            return None;
        };
        let mut reads = Vec::new();
        let given: &[super::yaml::Entry] = match &entry.value.kind {
            Yaml::Map(entries) => entries,
            Yaml::Null => &[],
            _ => {
                cx.wrong_type(&entry.value, &format!("the fields of `{}`", word.name));
                return None;
            }
        };
        for given in given {
            match word.fields.iter().find(|f| f.name == given.key) {
                Some(field) => reads.extend(Read::parse(field, &given.value, rcx)),
                None => {
                    let message = format!("`{}` has no field `{}`", word.name, given.key);
                    let known = word.fields.iter().map(|f| f.name);
                    cx.unknown(Code::UnknownField, given.key_span, message, &given.key, known);
                }
            }
        }
        Some(Emit { each, conditions, word, reads })
    }

    fn says(&self) -> Vec<&'static str> {
        if self.word.name != "reasoning" {
            return vec![self.word.name];
        }
        let read = |name: &str| self.reads.iter().find(|r| r.field.name == name);
        let kinds: &[&str] = match read("kind").map(Read::constant) {
            // Whatever the backend says it is.
            Some(None) => &["reasoning.summary", "reasoning.raw"],
            Some(Some(word)) if word.as_str() == Some("summary") => &["reasoning.summary"],
            Some(Some(_)) | None => &["reasoning.raw"],
        };
        let text = read("delta").or(read("whole")).is_some();
        let sealed = read("encrypted").map(|_| "reasoning.sealed");
        kinds.iter().copied().filter(|_| text).chain(sealed).collect()
    }

    fn run(&self, vocabulary: &Vocabulary, rule: Span, cursor: &mut Cursor, said: &mut Said) {
        match &self.each {
            None => self.say(vocabulary, rule, cursor, said),
            Some(each) => {
                for (node, path) in each.many(cursor) {
                    cursor.enter(node, path);
                    self.say(vocabulary, rule, cursor, said);
                    cursor.leave();
                }
            }
        }
    }

    fn say(&self, vocabulary: &Vocabulary, rule: Span, cursor: &mut Cursor, said: &mut Said) {
        if !self.conditions.iter().all(|c| c.holds(cursor)) {
            return;
        }
        let mut fields = Vec::with_capacity(self.reads.len());
        for read in &self.reads {
            match read.value(cursor) {
                Ok(Tree::Null) => {}
                Ok(value) => fields.push((read.field.name, value)),
                Err(mismatch) => said.mismatches.push(mismatch),
            }
        }
        let says = |name: &&str| {
            fields
                .iter()
                .any(|(n, v)| n == name && !(vocabulary.empty_is_nothing && v.as_str().is_some_and(str::is_empty)))
        };
        if self.word.payload.is_empty() || self.word.payload.iter().any(says) {
            said.emissions.push(Emission { word: self.word.name, fields, rule });
        }
    }
}

fn parse_each(fields: &Fields, cx: Cx) -> Option<Selector> {
    let node = fields.get("each")?;
    Selector::parse(text_of(node, cx)?, node.span, cx)
}

fn example(vocabulary: &Vocabulary) -> &'static str {
    vocabulary.names().next().unwrap_or("word")
}

/// Rules that make content parts.
pub fn parse_parts(nodes: &[Node], tables: &Tables, cx: Cx) -> RuleSet {
    RuleSet::parse(&PARTS, None, nodes, tables, &RuleBook::default(), cx)
}

//! Rules: `each` / `where` / `emit`, the same for a backend's events and for a client's request.
//!
//! All rules that hold fire, in file order, and emit in list order. Rules that stand together and walk the same
//! `each` walk it once, element by element, so that what comes out keeps the order of what came in. `drop:` and
//! `fail:` are looked at only when nothing else held; `otherwise: true` only when no earlier rule of its group did.

use super::condition;
use super::condition::Condition;
use super::field::{Read, ReadCx};
use super::named_rules::RuleBook;
use super::selector::Selector;
use super::table::Tables;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::emit::{PARTS, Vocabulary, Word};
use crate::mapping::source::field_reader::{Cx, Fields, text_of};
use crate::mapping::source::yaml::{Kind as Yaml, Node};

#[derive(Debug)]
pub struct RuleSet {
    pub(crate) vocabulary: &'static Vocabulary,
    /// Where the name of an event stands, for rules with `event:`.
    pub(crate) key: Option<Selector>,
    pub(crate) groups: Vec<Group>,
}

#[derive(Debug)]
pub(crate) struct Group {
    pub each: Option<Selector>,
    pub rules: Vec<Rule>,
}

#[derive(Debug)]
pub(crate) struct Rule {
    pub span: Span,
    pub keys: Vec<String>,
    /// Where `event:` stands.
    pub event: Span,
    pub conditions: Vec<Condition>,
    pub otherwise: bool,
    pub action: Action,
}

#[derive(Debug)]
pub(crate) enum Action {
    Emit(Vec<Emit>),
    Drop(String),
    Fail(String),
}

#[derive(Debug)]
pub(crate) struct Emit {
    pub each: Option<Selector>,
    pub conditions: Vec<Condition>,
    pub word: &'static Word,
    pub reads: Vec<Read>,
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

    pub(crate) fn emits(&self) -> impl Iterator<Item = &Emit> {
        self.groups.iter().flat_map(|g| &g.rules).flat_map(|rule| match &rule.action {
            Action::Emit(emits) => emits.as_slice(),
            Action::Drop(_) | Action::Fail(_) => &[],
        })
    }

    /// The words that these rules can say; `reasoning` is told apart by its kind.
    pub fn says(&self) -> Vec<&'static str> {
        self.emits().flat_map(Emit::says).collect()
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
}

impl Emit {
    fn parse(vocabulary: &'static Vocabulary, node: &Node, rcx: &ReadCx) -> Option<Emit> {
        let cx = rcx.cx;
        let fields = Fields::of(node, format!("an emitted {}", vocabulary.noun), cx)?;
        let each = parse_each(&fields, cx);
        let conditions = condition::parse(&fields, cx);
        let mut said = fields.rest();
        // `ech` beside a word that exists is no second word but a slip in the first.
        let is_word = |e: &&crate::mapping::source::yaml::Entry| vocabulary.find(&e.key).is_some();
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
        let given: &[crate::mapping::source::yaml::Entry] = match &entry.value.kind {
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

//! Entries of `emit:`: what a rule emits, for every element of a list or once, with its fields.

use super::condition::{Condition, Conditions};
use super::field::{FieldContext, FieldMapping};
use super::selector::{LoopName, Selector};
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::emit::{EmitGrammar, EmitKind};
use crate::mapping::grammar::collections::OneOrMore;
use crate::mapping::grammar::notation::Spanned;
use crate::mapping::grammar::unparsed::AnyNode;
use crate::mapping::source::field_reader::{FieldReader, LoadContext, SelectorScope};
use crate::mapping::source::yaml::{Entry, Node, YamlKind};

/// An entry of `emit:`.
#[derive(Debug)]
pub(crate) struct EmitEntry {
    pub each: Option<Selector>,
    /// As in a group.
    pub requires_list: bool,
    pub conditions: Vec<Condition>,
    pub content: EmitContent,
}

#[derive(Debug)]
pub(crate) enum EmitContent {
    One(Emit),
    /// `emit:` inside an entry: once for every element of its list.
    Inner(Vec<EmitEntry>),
}

/// One emitted word.
#[derive(Debug)]
pub(crate) struct Emit {
    pub kind: &'static EmitKind,
    pub fields: Vec<FieldMapping>,
    /// The positions of the fields without which nothing is emitted, if the absence of all of them is no mistake.
    pub payload: Vec<usize>,
}

/// How many lists inside each other an entry of `emit:` may have.
const MAX_DEPTH: usize = 4;

impl EmitEntry {
    pub(super) fn add_emits<'e>(&'e self, around: &[&'e Condition], emits: &mut Vec<(Vec<&'e Condition>, &'e Emit)>) {
        let conditions: Vec<&Condition> = around.iter().copied().chain(&self.conditions).collect();
        match &self.content {
            EmitContent::One(emit) => emits.push((conditions, emit)),
            EmitContent::Inner(entries) => entries.iter().for_each(|entry| entry.add_emits(&conditions, emits)),
        }
    }

    pub(super) fn add_selectors<'e>(&'e self, selectors: &mut Vec<&'e Selector>) {
        selectors.extend(&self.each);
        selectors.extend(self.conditions.iter().map(|condition| &condition.selector));
        match &self.content {
            EmitContent::One(emit) => selectors.extend(emit.fields.iter().flat_map(FieldMapping::selectors)),
            EmitContent::Inner(entries) => entries.iter().for_each(|entry| entry.add_selectors(selectors)),
        }
    }
}

impl EmitEntry {
    /// `loops`: the lists around the entries, outermost first, with the names of their elements.
    pub(super) fn parse_all(
        grammar: &'static EmitGrammar,
        entries: &OneOrMore<AnyNode>,
        loops: &[Option<String>],
        context: &FieldContext,
    ) -> Vec<EmitEntry> {
        let selectors = SelectorScope { loops, ..context.cx.selectors };
        let context = FieldContext { cx: LoadContext { selectors, ..context.cx }, ..*context };
        entries.iter().filter_map(|AnyNode(node)| EmitEntry::parse(grammar, node, &context)).collect()
    }

    fn parse(grammar: &'static EmitGrammar, node: &Node, outer: &FieldContext) -> Option<EmitEntry> {
        let subject = || format!("an emitted {}", grammar.noun);
        let fields = FieldReader::of(node, subject(), outer.cx)?;
        let each: Option<Selector> = fields.value("each");
        let name = loop_name(fields.value("as"), each.is_some(), outer.cx);
        let mut loops = outer.cx.selectors.loops.to_vec();
        loops.extend(each.iter().map(|_| name.clone()));
        // The rest is inside the list.
        let selectors = SelectorScope { loops: &loops, ..outer.cx.selectors };
        let cx = LoadContext { selectors, ..outer.cx };
        let inside = FieldContext { cx, ..*outer };
        let fields = FieldReader::of(node, subject(), cx)?;
        let _known = (fields.get("each"), fields.get("as"));
        let conditions = fields.value("where").unwrap_or_else(Conditions::default).0;
        let entries: Option<OneOrMore<AnyNode>> = fields.value("emit");
        let kinds = fields.unread();
        let content = match (entries, kinds.first()) {
            (Some(_), Some(kind)) => {
                let message = format!("an entry with `emit:` has no {} of its own", grammar.noun);
                cx.add(
                    Diagnostic::new(Code::UnknownEmit, kind.key_span, message)
                        .help("write it as another entry, before or inside this one"),
                );
                return None;
            }
            (Some(_), None) if loops.len() > MAX_DEPTH => {
                let message = format!("more than {MAX_DEPTH} lists inside each other");
                cx.error(Code::LimitExceeded, node.span, message);
                return None;
            }
            (Some(entries), None) => EmitContent::Inner(EmitEntry::parse_all(grammar, &entries, &loops, &inside)),
            (None, _) => EmitContent::One(Emit::parse(grammar, node, kinds, &inside)?),
        };
        Some(EmitEntry { each, requires_list: false, conditions, content })
    }
}

impl Emit {
    /// `kinds`: the keys of the entry that name what it emits.
    fn parse(
        grammar: &'static EmitGrammar,
        node: &Node,
        mut kinds: Vec<&Entry>,
        context: &FieldContext,
    ) -> Option<Emit> {
        let cx = context.cx;
        // `ech` next to a valid kind is not a second kind but a typo in `each`.
        let is_kind = |e: &&Entry| grammar.find(&e.key).is_some();
        if kinds.len() > 1 && kinds.iter().filter(|e| is_kind(e)).count() == 1 {
            for typo in kinds.iter().filter(|e| !is_kind(e)) {
                let message = format!("unknown key `{}` in an emitted {}", typo.key, grammar.noun);
                cx.unknown(Code::UnknownKey, typo.key_span, message, &typo.key, ["each", "as", "where", "emit"]);
            }
            kinds.retain(is_kind);
        }
        let [entry] = kinds.as_slice() else {
            let noun = grammar.noun;
            let (span, message) = match kinds.get(1) {
                Some(second) => (second.key_span, format!("a second {noun} in one entry of `emit:`")),
                None => (node.span, format!("this entry of `emit:` has no {noun}")),
            };
            cx.add(
                Diagnostic::new(Code::UnknownEmit, span, message)
                    .help(format!("`emit:` is a list with one {noun} per entry: `- {}: {{ … }}`", example(grammar))),
            );
            return None;
        };
        let Some(kind) = grammar.find(&entry.key) else {
            let message = format!("unknown {} `{}`", grammar.noun, entry.key);
            cx.unknown(Code::UnknownEmit, entry.key_span, message, &entry.key, grammar.names());
            return None;
        };
        let mut fields = Vec::new();
        let given: &[Entry] = match &entry.value.kind {
            YamlKind::Map(entries) => entries,
            YamlKind::Null => &[],
            _ => {
                cx.wrong_type(&entry.value, &format!("the fields of `{}`", kind.name));
                return None;
            }
        };
        for given in given {
            match kind.fields.iter().find(|f| f.name == given.key) {
                Some(field) => fields.extend(FieldMapping::parse(field, &given.value, context)),
                None => {
                    let message = format!("`{}` has no field `{}`", kind.name, given.key);
                    let known = kind.fields.iter().map(|f| f.name);
                    cx.unknown(Code::UnknownField, given.key_span, message, &given.key, known);
                }
            }
        }
        let is_payload = |field: &FieldMapping| grammar.skip_empty && kind.payload.contains(&field.field.name);
        let payload = (0..fields.len()).filter(|at| is_payload(&fields[*at])).collect();
        Some(Emit { kind, fields, payload })
    }
}

fn example(grammar: &EmitGrammar) -> &'static str {
    grammar.names().next().unwrap_or("word")
}

/// The name that `as:` gives to the element of a list.
pub(super) fn loop_name(name: Option<Spanned<LoopName>>, has_list: bool, cx: LoadContext) -> Option<String> {
    let name = name?;
    if !has_list {
        let message = "`as:` names the element of a list, and there is no `each:` here";
        cx.error(Code::MissingKey, name.key_span, message);
    }
    Some(name.value.0)
}

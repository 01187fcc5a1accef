//! `environment:` of a profile: environment variables that set policies, or settings of the gateway.

use crate::diagnostics::{Code, Span};
use crate::mapping::grammar::collections::{Entries, Map, OneOrMore};
use crate::mapping::grammar::notation::{AnyValue, Spanned, notation_schema};
use crate::mapping::grammar::unparsed::AnyNode;
use crate::mapping::grammar::{At, FromNode, section};
use crate::mapping::source::field_reader::{LoadContext, text_of};
use crate::mapping::source::yaml::{Entry, Node, YamlKind};
use schemars::json_schema;

section! {
    /// What a variable sets: exactly one of `policy`, `gateway` and `ignored`.
    #[subject = "an environment variable"]
    #[title = "environment variable"]
    #[exactly_one("policy", "gateway", "ignored")]
    pub struct VariableDetails<'n> {
        /// A policy, or `POLICY.DIALECT` for one dialect, or several of them.
        policy: Option<OneOrMore<Spanned<String>>>,
        /// A setting of gateway.yaml, or several, by their keys: `keepalive.every`. `.`: values are maps of settings. It is
        /// set only if the profile was chosen by `--profile`.
        gateway: Option<OneOrMore<String>>,
        /// The variable has no effect, for this reason. It is known, and causes no warning.
        ignored: Option<String>,
        /// Words of the variable with their values. Upper and lower case make no difference.
        words: Entries<'n, Map<AnyValue>> = Entries::default(),
        /// The value for `1`, `true`, `yes` and `on`.
        if_true: Option<AnyNode<'n>>,
        /// The value for every other word.
        if_false: Option<AnyNode<'n>>,
        /// What follows the text of the variable: `ms` after a number, `/` after a folder.
        unit: Option<String>,
        /// Whether the variable is a list with commas.
        list: bool = false,
        /// Another variable: this one has an effect only if that one is `1`, `true`, `yes` or `on`.
        only_with: Option<String>,
    }
}

/// The policy that a variable sets, or what it sets in detail.
#[derive(Clone, Copy, Debug)]
pub struct VariableEntry;

notation_schema!(VariableEntry, |generator| {
    let details = generator.subschema_for::<VariableDetails>();
    json_schema!({
        "title": "policy, or a map",
        "if": { "type": "object" }, "then": details, "else": { "type": "string" },
    })
});

/// A variable that a profile names.
#[derive(Clone, Debug)]
pub struct Variable<'n> {
    pub name: &'n str,
    pub span: Span,
    pub target: VariableTarget,
    words: &'n [Entry],
    if_true: Option<&'n Node>,
    if_false: Option<&'n Node>,
    unit: String,
    pub list: bool,
    only_with: Option<String>,
}

#[derive(Clone, Debug)]
pub enum VariableTarget {
    /// `usage`, or `usage.DIALECT`, each.
    Policy(Vec<Spanned<String>>),
    /// The keys of each setting, with dots between them.
    Gateway(Vec<String>),
    Ignored,
}

/// The value that a variable has.
#[derive(Clone, Debug)]
pub enum VariableValue<'n> {
    /// The profile has it, for a word of the variable.
    OfProfile(&'n Node),
    /// The text of the variable, with its unit.
    Text(String),
}

const TRUE_WORDS: &[&str] = &["1", "true", "yes", "on"];

fn is_true_word(text: &str) -> bool {
    TRUE_WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

impl<'n> Variable<'n> {
    /// `None`: it is wrong, and was reported.
    pub fn read(entry: &'n Entry, cx: LoadContext) -> Option<Variable<'n>> {
        let (name, span) = (entry.key.as_str(), entry.key_span);
        let plain = |target| {
            let (words, if_true, if_false) = (&[][..], None, None);
            let (unit, list, only_with) = (String::new(), false, None);
            Variable { name, span, target, words, if_true, if_false, unit, list, only_with }
        };
        if !matches!(entry.value.kind, YamlKind::Map(_)) {
            let value = text_of(&entry.value, cx)?.to_owned();
            return Some(plain(VariableTarget::Policy(vec![Spanned {
                value,
                span: entry.value.span,
                key_span: span,
            }])));
        }
        let details = VariableDetails::from_node(&entry.value, At { key: name, key_span: span, cx })?;
        let target = match (details.policy, details.gateway) {
            (Some(policies), _) => VariableTarget::Policy(policies.0),
            (None, Some(paths)) => VariableTarget::Gateway(paths.0),
            (None, None) => VariableTarget::Ignored,
        };
        if details.if_true.is_some() != details.if_false.is_some() {
            cx.error(Code::MissingKey, span, "`if_true:` and `if_false:` belong together");
        }
        Some(Variable {
            words: details.words.items,
            if_true: details.if_true.map(|node| node.0),
            if_false: details.if_false.map(|node| node.0),
            unit: details.unit.unwrap_or_default(),
            list: details.list,
            only_with: details.only_with,
            ..plain(target)
        })
    }

    /// The text of the variable, if it is set and has an effect. `get`: the text of any variable.
    pub fn text<'e>(&self, get: impl Fn(&str) -> Option<&'e str>) -> Option<&'e str> {
        let is_on = |name: &String| get(name).is_some_and(|text| is_true_word(text.trim()));
        get(self.name).filter(|_| self.only_with.as_ref().is_none_or(is_on))
    }

    pub fn value(&self, text: &str) -> VariableValue<'n> {
        let text = text.trim();
        if let Some(word) = self.words.iter().find(|word| word.key.eq_ignore_ascii_case(text)) {
            return VariableValue::OfProfile(&word.value);
        }
        match if is_true_word(text) { self.if_true } else { self.if_false } {
            Some(value) => VariableValue::OfProfile(value),
            None => VariableValue::Text(format!("{text}{}", self.unit)),
        }
    }

    /// The values that the profile has for words.
    pub fn values_of_profile(&self) -> impl Iterator<Item = &'n Node> {
        self.words.iter().map(|word| &word.value).chain(self.if_true).chain(self.if_false)
    }
}

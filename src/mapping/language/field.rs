//! How a rule sets a field: a constant, a selector, or `{ from, as, table, default, use }`.

use super::rule::{NamedRules, RuleSet};
use super::selector::{FieldSelector, Selector, SelectorStart};
use super::table::{Table, Tables};
use crate::diagnostics::{Code, Diagnostic, Span, schema_message::one_of};
use crate::domain::emit::{FieldSpec, FieldType};
pub use crate::domain::emit::{scalar_str, scalar_text};
use crate::domain::{Tree, named_enum};
use crate::mapping::grammar::collections::OneOrMore;
use crate::mapping::grammar::notation::{NameOf, Spanned};
use crate::mapping::grammar::unparsed::AnyNode;
use crate::mapping::grammar::{Named, Section, section};
use crate::mapping::source::field_reader::{LoadContext, MessageHead, constant, text_of};
use crate::mapping::source::yaml::{Node, YamlKind};
use std::{slice, sync::Arc};

named_enum! {
    /// How `as:` converts a value.
    pub enum Conversion {
        /// To compact JSON text. A string is kept as it is.
        JsonText = "json_text",
        /// Parses text that contains JSON.
        Json = "json",
        /// True for false, null and an absent value; false for true.
        Not = "not",
        /// To lower case.
        Lower = "lower",
        /// The number that a text contains. Anything else is kept as it is.
        Number = "number",
        /// The texts of an array as one text, with line breaks between them.
        Lines = "lines",
        /// The names of the members of an object, as a list.
        Keys = "keys",
        /// The number of members of an object or elements of an array.
        Count = "count",
        /// The index of the node in its array, from 0.
        Position = "position",
        /// The sum of all values that `from` selects.
        Sum = "sum",
        /// All texts that `from` selects, in order, as one text.
        Concat = "concat",
    }
}

section! {
    /// How a rule reads a field.
    #[subject = Named("the field")]
    pub struct FieldEntry<'n> {
        /// The selector of the value; of several selectors, the first that finds a value that is not null.
        from: OneOrMore<FieldSelector>,
        /// A conversion.
        convert as "as": Option<NameOf<Conversion>>,
        /// The name of a table, or a table in place: word to value.
        table: Option<AnyNode<'n>>,
        /// The value if the result is null or missing.
        default: Option<AnyNode<'n>>,
        /// The name of the rules, below `request.rules`, that emit the content parts.
        rules as "use": Option<Spanned<String>>,
    }
}

/// A field and where its value comes from.
#[derive(Clone, Debug)]
pub struct FieldMapping {
    pub field: &'static FieldSpec,
    /// Accept numbers as text. Backends send ids and indices as numbers; for clients that is an error.
    pub(crate) lenient: bool,
    pub(crate) source: FieldSource,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum FieldSource {
    Constant(Tree),
    Select {
        /// The first result that is present and not null is used.
        from: Vec<Selector>,
        convert: Option<Conversion>,
        table: Option<Arc<Table>>,
        default: Tree,
    },
    /// `use:`: named rules applied to the result of the selector.
    ContentParts {
        from: Selector,
        rules: Arc<RuleSet>,
    },
}

/// Context for parsing field mappings.
pub struct FieldContext<'c> {
    pub cx: LoadContext<'c>,
    pub tables: &'c Tables,
    pub named_rules: &'c NamedRules,
    pub lenient: bool,
}

impl FieldMapping {
    pub fn parse(field: &'static FieldSpec, node: &Node, context: &FieldContext) -> Option<FieldMapping> {
        let cx = context.cx;
        let source = match &node.kind {
            YamlKind::Text(text) if Selector::is_meant(text, cx) => {
                let selector = Selector::parse(text, node.span, cx)?;
                match field.field_type {
                    FieldType::ContentParts => {
                        cx.add(
                            Diagnostic::new(Code::WrongType, node.span, format!("`{}` needs rules", field.name))
                                .help("write `{ from: \"@.content\", use: NAME }`, and define NAME under `rules:`"),
                        );
                        return None;
                    }
                    _ => FieldSource::Select { from: vec![selector], convert: None, table: None, default: Tree::Null },
                }
            }
            YamlKind::Map(_) => Self::parse_map(field, node, context)?,
            _ => FieldSource::Constant(checked_constant(field, &constant(node), node, cx)?),
        };
        Some(FieldMapping { field, lenient: context.lenient, source, span: node.span })
    }

    fn parse_map(field: &'static FieldSpec, node: &Node, context: &FieldContext) -> Option<FieldSource> {
        let cx = context.cx;
        let fields = FieldEntry::open(node, field.name, cx)?;
        if let Some(value) = fields.get("value") {
            let source = FieldSource::Constant(coerced_constant(field, &constant(value), value, cx)?);
            fields.finish();
            return Some(source);
        }
        let entry = FieldEntry::read_fields(&fields)?;
        let mut from: Vec<Selector> = entry.from.into_iter().map(|selector| selector.0).collect();
        let readable = cx.selectors.head;
        let is_unreadable = |selector: &&Selector| match readable {
            MessageHead::None => selector.start == SelectorStart::Head,
            MessageHead::Request => selector.response_part().is_some(),
            MessageHead::Response => selector.head_parameter().is_some(),
        };
        if let Some(head) = from.iter().find(is_unreadable) {
            let reader = match head.response_part() {
                Some(_) => "the rules of a backend's `events:`",
                None => "the scalars of a dialect's `request:`",
            };
            let message = format!("`{}` can only be read by {reader}", head.text);
            cx.error(Code::BadSelector, fields.get("from").map_or(node.span, |from| from.span), message);
            return None;
        }
        let rules = match entry.rules {
            Some(name) => {
                let found = context.named_rules.get(&name);
                if found.is_none() {
                    let message = format!("unknown rules `{}`", name.value);
                    cx.unknown(Code::UnknownReference, name.span, message, &name, context.named_rules.names());
                }
                Some(found?)
            }
            None => None,
        };
        let table = match entry.table {
            None => None,
            Some(AnyNode(name)) => match &name.kind {
                YamlKind::Map(_) => Table::parse(field.name, name.span, name, cx),
                _ => {
                    let text = text_of(name, cx)?;
                    let found = context.tables.get(text).cloned();
                    if found.is_none() {
                        let message = format!("unknown table `{text}`");
                        cx.unknown(Code::UnknownTable, name.span, message, text, context.tables.names());
                    }
                    found
                }
            },
        };
        if let (Some(table), FieldType::Enum(words)) = (&table, field.field_type) {
            check_table_values(table, words, field, cx);
        }
        let default = match entry.default {
            Some(AnyNode(node)) => checked_constant(field, &constant(node), node, cx)?,
            None => Tree::Null,
        };
        fields.finish();
        match (rules, field.field_type) {
            (Some(rules), FieldType::ContentParts) => {
                from.truncate(1);
                from.pop().map(|from| FieldSource::ContentParts { from, rules })
            }
            (None, FieldType::ContentParts) | (Some(_), _) => {
                if node.misspells("use") {
                    return None;
                }
                let message = if field.field_type == FieldType::ContentParts {
                    format!("`{}` needs `use:` with the rules that produce its content parts", field.name)
                } else {
                    format!("`use:` produces content parts, which `{}` does not have", field.name)
                };
                cx.error(Code::WrongType, node.span, message);
                None
            }
            (None, _) => {
                let convert = entry.convert.map(|conversion| conversion.0);
                Some(FieldSource::Select { from, convert, table, default })
            }
        }
    }

    /// The value, if it is constant.
    pub fn constant(&self) -> Option<&Tree> {
        match &self.source {
            FieldSource::Constant(value) => Some(value),
            FieldSource::Select { .. } | FieldSource::ContentParts { .. } => None,
        }
    }

    pub fn table(&self) -> Option<&Arc<Table>> {
        match &self.source {
            FieldSource::Select { table, .. } => table.as_ref(),
            FieldSource::Constant(_) | FieldSource::ContentParts { .. } => None,
        }
    }

    /// The selector, if its value is used as it is, and the place of the field.
    pub fn unconverted(&self) -> Option<(&Selector, Span)> {
        match &self.source {
            FieldSource::Select { from, convert: None, table: None, .. } => Some((from.first()?, self.span)),
            FieldSource::Select { .. } | FieldSource::Constant(_) | FieldSource::ContentParts { .. } => None,
        }
    }

    /// The rules that produce its content parts.
    pub fn rules(&self) -> Option<&RuleSet> {
        match &self.source {
            FieldSource::ContentParts { rules, .. } => Some(rules),
            FieldSource::Constant(_) | FieldSource::Select { .. } => None,
        }
    }

    pub fn selectors(&self) -> &[Selector] {
        match &self.source {
            FieldSource::Constant(_) => &[],
            FieldSource::Select { from, .. } => from,
            FieldSource::ContentParts { from, .. } => slice::from_ref(from),
        }
    }
}

/// Converts a value to the type of its field, or returns a description of the expected type.
pub fn coerce(field: &FieldSpec, value: Tree) -> Result<Tree, String> {
    match field.field_type {
        FieldType::Json | FieldType::ContentParts => Ok(value),
        FieldType::Text => match value {
            Tree::Str(_) | Tree::SurrogateString(_) => Ok(value),
            other => scalar_text(&other).map(Tree::from).ok_or_else(|| "a string".to_owned()),
        },
        FieldType::Int => match value.as_whole() {
            Some(i) => Ok(Tree::from(i)),
            None if value.is_whole() => Err("an integer of at most 64 bits".to_owned()),
            None => Err("an integer".to_owned()),
        },
        FieldType::Number => {
            if value.as_f64().is_some() {
                Ok(value)
            } else {
                Err("a number".to_owned())
            }
        }
        FieldType::Bool => {
            if value.as_bool().is_some() {
                Ok(value)
            } else {
                Err("a boolean".to_owned())
            }
        }
        FieldType::Enum(words) => match value.as_str() {
            Some(word) if words.contains(&word) => Ok(value),
            _ => Err(one_of(words.iter().copied())),
        },
        FieldType::TextOrList => match value {
            Tree::Str(_) => Ok(Tree::from(vec![value])),
            Tree::List(ref items) if items.iter().all(|i| i.as_str().is_some()) => Ok(value),
            _ => Err("a string or an array of strings".to_owned()),
        },
    }
}

fn checked_constant(field: &FieldSpec, value: &Tree, node: &Node, cx: LoadContext) -> Option<Tree> {
    match node.as_text() {
        Some(text) if !is_plain_text(text, node, cx) => None,
        _ => coerced_constant(field, value, node, cx),
    }
}

pub(crate) fn coerced_constant(field: &FieldSpec, value: &Tree, node: &Node, cx: LoadContext) -> Option<Tree> {
    if value.is_null() {
        return Some(Tree::Null);
    }
    match (coerce(field, value.clone()), field.field_type) {
        (Ok(value), _) => Some(value),
        (Err(_), FieldType::Enum(words)) => {
            let text = node.as_text().unwrap_or_default();
            let message = format!("`{}` cannot be `{}`", field.name, value.to_json().trim_matches('"'));
            cx.unknown(Code::UnknownValue, node.span, message, text, words.iter().copied());
            None
        }
        (Err(expected), _) => {
            cx.wrong_type(node, &format!("{expected} for `{}`", field.name));
            None
        }
    }
}

/// Reports text that looks like a placeholder or a selector with a mistake.
fn is_plain_text(text: &str, node: &Node, cx: LoadContext) -> bool {
    if text.contains("{{") {
        let span = cx.sources.within(node.span, "{{");
        cx.add(
            Diagnostic::new(Code::BadPlaceholder, span, "placeholders are not supported in rules")
                .help("rules read values with selectors: `$.name`"),
        );
        return false;
    }
    let signs = text.len() - text.trim_start_matches(['$', '@', '^']).len();
    if signs > 1 && text[signs..].starts_with(['.', '[']) {
        let (message, last) = (format!("`{text}` is not a selector"), &text[signs - 1..]);
        cx.add(
            Diagnostic::new(Code::BadSelector, node.span, message)
                .label(format!("did you mean `{last}`?"))
                .help("a selector begins with one `$`, `@` or `^`; to use it as plain text, write `{ value: … }`"),
        );
        return false;
    }
    let name = text.strip_prefix(['$', '@', '^']).filter(|n| n.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    if let Some(name) = name {
        let sign = &text[..1];
        cx.add(
            Diagnostic::new(Code::BadSelector, node.span, format!("`{text}` is not a selector"))
                .label(format!("did you mean `{sign}.{name}`?"))
                .help("to use it as plain text, write `{ value: … }`"),
        );
        return false;
    }
    true
}

/// Checks that the results of a table are values of the field. `none` means no value.
fn check_table_values(table: &Table, words: &'static [&'static str], field: &FieldSpec, cx: LoadContext) {
    for (value, span) in table.values() {
        let word = scalar_text(value).unwrap_or_default();
        if !value.is_null() && word != "none" && !words.contains(&word.as_str()) {
            let message = format!("the table `{}` returns `{word}`, which is not a valid `{}`", table.name, field.name);
            let known = words.iter().copied().chain(["none"]);
            cx.unknown(Code::UnknownValue, span, message, &word, known);
        }
    }
}

//! `metadata_lines:` of a dialect: lines of a model's text that repeat metadata, and are removed.

use super::dialect::Compiler;
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::metadata_key::normal_key;
use crate::mapping::grammar::collections::List;
use crate::mapping::grammar::notation::{notation_schema, text_notation};
use crate::mapping::grammar::section;
use crate::mapping::grammar::unparsed::ExpressionNode;
use crate::mapping::language::expression::Expression;
use std::sync::Arc;

section! {
    /// Lines of a model's text that repeat metadata are removed: those that begin with a known key and `:` or `=`, and
    /// `metadata:` with a JSON object, of which the keys are known from then on. Inside a line, it is removed from the
    /// key on. Backends add keys with the event `metadata_keys`.
    #[subject = "`metadata_lines:`"]
    #[title = "metadata lines"]
    pub struct MetadataLinesSection<'n> {
        /// A condition on policies; lines are removed only if it is true.
        when: Option<ExpressionNode<'n>>,
        /// The known keys. Upper and lower case, and what is no letter or digit, make no difference.
        keys: List<MetadataKey> = List::default(),
        /// Every line that is one JSON object is removed too, and its keys are known from then on. This also removes
        /// answers in JSON.
        json_lines: bool = false,
    }
}

text_notation! {
    /// A key of metadata, in normal form.
    MetadataKey(String), |text, node, at| {
        let key = normal_key(text);
        if key.is_empty() {
            let message = format!("`{text}` is no key: it has no letter and no digit");
            at.cx.add(Diagnostic::new(Code::UnknownValue, node.span, message).help("write it as in `session_id: 7`"));
        }
        Some(key).filter(|key| !key.is_empty())
    }
}
notation_schema!(MetadataKey, { "type": "string", "pattern": "[\\p{L}\\p{N}]" });

/// The known keys, and the policies under which lines are removed.
#[derive(Debug)]
pub struct MetadataLinesPlan {
    pub when: Option<Expression>,
    /// In normal form.
    pub keys: Arc<[String]>,
    /// Every line that is a JSON object is removed too.
    pub json_lines: bool,
}

impl Compiler<'_, '_> {
    /// `None` also if the policies turn it off.
    pub(super) fn metadata_lines(&self, section: Option<MetadataLinesSection>) -> Option<MetadataLinesPlan> {
        let section = section?;
        let when = self.policy_condition(section.when.as_ref(), "`metadata_lines:`")?;
        let keys = section.keys.iter().map(|MetadataKey(key)| key.clone()).collect();
        Some(MetadataLinesPlan { when, keys, json_lines: section.json_lines })
    }
}

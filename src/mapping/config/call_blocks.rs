//! `call_blocks:` of a dialect: how tool calls are written into the text of a response.

use super::dialect::Compiler;
use super::inline::Tag;
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::call_block::CallBlockFormat;
use crate::mapping::grammar::collections::{List, Map};
use crate::mapping::grammar::notation::{notation_schema, text_notation};
use crate::mapping::grammar::section;
use crate::mapping::grammar::unparsed::ExpressionNode;
use crate::mapping::language::expression::Expression;
use reframe_json::Tree;
use std::sync::Arc;

section! {
    /// Tool calls are also written into the text of a response: for clients that find calls in text. A call is written
    /// as soon as its arguments are complete, one element for each argument. Values are escaped as in XML.
    #[subject = "`call_blocks:`"]
    #[title = "call blocks"]
    pub struct CallBlocksSection<'n> {
        /// A condition on policies; calls are written only if it is true.
        when: Option<ExpressionNode<'n>>,
        /// The line before the elements.
        open: Tag,
        /// The line after the elements.
        close: Tag,
        /// The element with the name of the tool.
        name: ElementName = ElementName("name".to_owned()),
        /// The element with all arguments as they are: if they are no JSON object, an empty one, or have names that are
        /// no element names.
        arguments: ElementName = ElementName("arguments".to_owned()),
        /// The text before each element.
        indent: String = "  ".to_owned(),
        /// The text between two blocks.
        delimiter: String = String::new(),
        /// The arguments of a tool in the order in which they are written, by the name of the tool. Other arguments
        /// follow, sorted by name.
        parameters: Map<List<String>> = Map::default(),
    }
}

text_notation! {
    /// The name of an element.
    ElementName(String), |text, node, at| {
        let is_name = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_:-.".contains(c));
        if !is_name {
            let message = "the name of an element has only letters, digits and `_`, `:`, `-`, `.`";
            at.cx.add(Diagnostic::new(Code::WrongType, node.span, message).help("for example `name: tool`"));
        }
        is_name.then(|| text.to_owned())
    }
}
notation_schema! {
    /// The name of an element.
    ElementName, "element_name", { "type": "string", "pattern": "^[A-Za-z0-9_:.-]+$" }
}

/// Calls as text, and the policies under which they are written.
#[derive(Debug)]
pub struct CallBlocksPlan {
    pub when: Option<Expression>,
    pub format: Arc<CallBlockFormat>,
}

impl Compiler<'_, '_> {
    /// `None` also if the policies turn it off.
    pub(super) fn call_blocks(&self, section: Option<CallBlocksSection>) -> Option<CallBlocksPlan> {
        let section = section?;
        let when = self.policy_condition(section.when.as_ref(), "`call_blocks:`")?;
        let format = CallBlockFormat {
            open: section.open.0,
            close: section.close.0,
            indent: section.indent,
            name: section.name.0,
            arguments: section.arguments.0,
            delimiter: section.delimiter,
            parameters: section.parameters.0.into_iter().map(|entry| (entry.key, entry.value.0)).collect(),
        };
        Some(CallBlocksPlan { when, format: Arc::new(format) })
    }

    /// A condition that only policies decide. The outer `None`: it is false under the policies of this plan, or wrong.
    #[allow(clippy::option_option)]
    pub(super) fn policy_condition(&self, when: Option<&ExpressionNode>, place: &str) -> Option<Option<Expression>> {
        let Some(ExpressionNode(node)) = when else { return Some(None) };
        let when = self.skeletons.condition(node, &self.scope(place, []))?;
        match self.skeletons.pool.constant_value(&when) {
            Some(Tree::Bool(false)) => None,
            Some(Tree::Bool(true)) => Some(None),
            _ => Some(Some(when)),
        }
    }
}

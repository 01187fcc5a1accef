//! `inline:` of a backend's `events:` and of a dialect: blocks in the text of a model that are reasoning or tool calls.

use super::dialect::Compiler;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::call_id::CallIdFormat;
use crate::domain::inline::{
    BlockContent, BlockPosition, BlockTools, CallBlock, CallFormat, InlineBlock, StrictCalls, UnclosedBlock,
};
use crate::mapping::grammar::collections::Map;
use crate::mapping::grammar::notation::{Bytes, NameOf, Spanned, notation_schema, text_notation};
use crate::mapping::grammar::unparsed::ExpressionNode;
use crate::mapping::grammar::{Named, Quoted, section};
use crate::mapping::language::expression::Expression;
use crate::mapping::language::selector::Selector;
use crate::mapping::source::field_reader::LoadContext;
use std::sync::Arc;

/// The blocks, each with its place in the file and the policies under which it is searched for.
#[derive(Debug, Default)]
pub struct InlinePlan(pub Vec<InlineEntry>);

#[derive(Debug)]
pub struct InlineEntry {
    pub block: Arc<InlineBlock>,
    pub span: Span,
    pub when: Option<Expression>,
}

/// A tag is compared with the text at every position.
const MAX_TAG_BYTES: usize = 100;
/// Every block is searched for at every position.
const MAX_BLOCKS: usize = 16;

section! {
    /// A block in the text of a model: its tags, and what is between them.
    #[subject = Named("the inline block")]
    #[title = "inline block"]
    #[exactly_one("reasoning", "tool")]
    pub struct InlineSection {
        /// The text that begins the block, exactly as the model writes it. It is not sent to clients.
        open: Spanned<Tag>,
        /// The text that ends the block.
        close: Tag,
        /// Where in the text of a choice the block can begin.
        position: NameOf<BlockPosition> = NameOf(BlockPosition::Anywhere),
        /// The content is reasoning.
        reasoning: Option<InlineReasoning>,
        /// The content is a tool call. A block that cannot be read, or that calls another tool than `tools` allows, is
        /// text.
        tool: Option<InlineTool>,
    }
}

section! {
    /// A block in the text of every model, for the clients of a dialect.
    #[subject = Named("the inline block")]
    #[title = "inline block of a dialect"]
    pub struct DialectInlineSection<'n> {
        /// A condition on policies; the block is searched for only if it is true.
        when: Option<ExpressionNode<'n>>,
        ..block: InlineSection,
    }
}

section! {
    /// A block that contains reasoning.
    #[subject = Quoted]
    #[title = "inline reasoning"]
    pub struct InlineReasoning: Default {
        /// The text of a choice begins inside the block: for models that send only the closing tag.
        starts_open: bool = false,
    }
}

section! {
    /// A block that contains a tool call, as JSON or as elements.
    #[subject = Quoted]
    #[title = "inline tool call"]
    #[exactly_one("json", "xml")]
    pub struct InlineTool {
        /// The content is a JSON object, or a list of such objects. A `close` inside of a JSON string is content.
        json: Option<InlineJson>,
        /// The content is a list of elements without attributes: one with the name of the tool, and one for each
        /// argument.
        xml: Option<InlineXml>,
        /// The id of the call, with `{choice}` and `{ordinal}` (counted from 0). Without it the gateway generates one.
        id: Option<CallId>,
        /// Which tools a block may call.
        tools: NameOf<BlockTools> = NameOf(BlockTools::Offered),
        /// A block with more content is text.
        max_bytes: Bytes = Bytes(1 << 20),
        /// Whether a call without the required arguments of its tool fails the turn.
        strict: NameOf<StrictCalls> = NameOf(StrictCalls::Off),
        /// Whether broken JSON is repaired: a comma before a closing brace, one brace too many, a `>` at the end.
        repair: bool = false,
        /// What a block is that is not closed at the end of the text.
        unclosed: NameOf<UnclosedBlock> = NameOf(UnclosedBlock::Call),
    }
}

section! {
    /// The members of a call in JSON: selectors of members, from `$`.
    #[subject = Quoted]
    #[title = "inline JSON call"]
    pub struct InlineJson: Default {
        /// Where the id of the call is.
        id: Option<Spanned<Selector>>,
        /// Where the name of the tool is. Default: `$.name`.
        name: Option<Spanned<Selector>>,
        /// Where the arguments are: JSON, or a text with JSON. Default: `$.arguments`.
        arguments: Option<Spanned<Selector>>,
    }
}

section! {
    /// The elements of a call.
    #[subject = Quoted]
    #[title = "inline XML call"]
    pub struct InlineXml: Default {
        /// The element with the name of the tool. If `open` does not end with `>`, this may also be an attribute of
        /// that tag.
        name: String = "name".to_owned(),
        /// The element with all arguments as one JSON text.
        arguments: Option<String>,
        /// Whether the arguments that are sent have a space after each `:` and `,` between them.
        spaced: bool = false,
    }
}

text_notation! {
    /// The id of a call, with `{choice}` and `{ordinal}`, which count from 0.
    CallId(CallIdFormat), |text, node, at| {
        let format = CallIdFormat::new(text);
        if format.is_none() {
            let message = "an id contains `{ordinal}`, so that calls have different ids, and perhaps `{choice}`";
            let help = "for example `id: \"call_{choice}_{ordinal}\"`";
            at.cx.add(Diagnostic::new(Code::BadPlaceholder, node.span, message).help(help));
        }
        format
    }
}
notation_schema! {
    /// The id of a call, with `{choice}` and `{ordinal}`, which count from 0.
    CallId, "call id", { "type": "string", "pattern": "\\{ordinal\\}" }
}

text_notation! {
    /// The text that begins or ends a block.
    Tag(String), |text, node, at| {
        let is_tag = !text.trim().is_empty() && text.len() <= MAX_TAG_BYTES;
        if !is_tag {
            let message = format!("a tag has 1 to {MAX_TAG_BYTES} bytes, and is not only white space");
            let help = "for example `open: \"<think>\"`";
            at.cx.add(Diagnostic::new(Code::WrongType, node.span, message).help(help));
        }
        is_tag.then(|| text.to_owned())
    }
}
notation_schema! {
    /// The text that begins or ends a block.
    Tag, "tag", { "type": "string", "pattern": "\\S", "maxLength": MAX_TAG_BYTES }
}

impl InlinePlan {
    /// The blocks of a backend.
    pub fn new(section: Map<InlineSection>, cx: LoadContext) -> InlinePlan {
        let sections = section.0.into_iter().map(|entry| (entry.key, entry.key_span, None, entry.value)).collect();
        InlinePlan::compile(sections, cx)
    }

    /// The blocks of a dialect, without those that its policies turn off.
    pub(super) fn of_dialect(section: Map<DialectInlineSection>, compiler: &Compiler) -> InlinePlan {
        let sections = section.0.into_iter().filter_map(|entry| {
            let when = compiler.policy_condition(entry.value.when.as_ref(), "an inline block")?;
            Some((entry.key, entry.key_span, when, entry.value.block))
        });
        InlinePlan::compile(sections.collect(), compiler.context.cx)
    }

    fn compile(sections: Vec<(String, Span, Option<Expression>, InlineSection)>, cx: LoadContext) -> InlinePlan {
        if let Some((_, key_span, ..)) = sections.get(MAX_BLOCKS) {
            cx.error(Code::LimitExceeded, *key_span, format!("more than {MAX_BLOCKS} inline blocks"));
        }
        report_duplicates(&sections, cx);
        let blocks = sections.into_iter().filter_map(|(name, span, when, section)| {
            Some(InlineEntry { block: Arc::new(block(name, section, cx)?), span, when })
        });
        InlinePlan(blocks.collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has_reasoning(&self) -> bool {
        self.0.iter().any(|entry| matches!(entry.block.content, BlockContent::Reasoning { .. }))
    }

    pub fn has_calls(&self) -> bool {
        self.0.iter().any(|entry| matches!(entry.block.content, BlockContent::Call(_)))
    }
}

fn block(name: String, section: InlineSection, cx: LoadContext) -> Option<InlineBlock> {
    let content = match (section.reasoning, section.tool) {
        (Some(reasoning), _) => Some(BlockContent::Reasoning { starts_open: reasoning.starts_open }),
        (None, Some(tool)) => call(tool, cx).map(BlockContent::Call),
        (None, None) => None,
    };
    let (open, close) = (section.open.value.0, section.close.0);
    Some(InlineBlock { name, open, close, position: section.position.0, content: content? })
}

fn call(tool: InlineTool, cx: LoadContext) -> Option<CallBlock> {
    let format = match (tool.json, tool.xml) {
        (Some(json), _) => {
            let path = |selector: &Spanned<Selector>| member_path(selector, cx);
            let id = json.id.as_ref().map(path);
            let name = json.name.as_ref().map_or_else(|| Some(vec!["name".to_owned()]), path);
            let arguments = json.arguments.as_ref().map_or_else(|| Some(vec!["arguments".to_owned()]), path);
            let id = match id {
                Some(id) => Some(id?),
                None => None,
            };
            CallFormat::Json { id, name: name?, arguments: arguments? }
        }
        (None, Some(xml)) => CallFormat::Xml { name: xml.name, arguments: xml.arguments, spaced: xml.spaced },
        (None, None) => return None,
    };
    Some(CallBlock {
        format,
        id: tool.id.map(|id| id.0),
        tools: tool.tools.0,
        max_bytes: tool.max_bytes.0,
        strict: tool.strict.0,
        repair: tool.repair,
        unclosed: tool.unclosed.0,
    })
}

fn member_path(selector: &Spanned<Selector>, cx: LoadContext) -> Option<Vec<String>> {
    let path = selector.members();
    if path.is_none() {
        let span = selector.span;
        let message = format!("`{}` is not a path of members", selector.text);
        cx.add(Diagnostic::new(Code::BadSelector, span, message).help("for example `$.function.name`"));
    }
    path
}

/// Two blocks with the same tag, or two in which a text begins: only one of them could ever be found.
fn report_duplicates(sections: &[(String, Span, Option<Expression>, InlineSection)], cx: LoadContext) {
    let starts_open = |section: &InlineSection| section.reasoning.as_ref().is_some_and(|r| r.starts_open);
    for (at, (name, span, when, section)) in sections.iter().enumerate() {
        // Two blocks with conditions may exclude each other.
        let mut earlier = sections.iter().take(at).filter(|(_, _, other, _)| when.is_none() || other.is_none());
        if let Some((first, _, _, other)) = earlier.clone().find(|(.., other)| *other.open == *section.open) {
            let message = format!("the inline blocks `{first}` and `{name}` begin with the same text");
            cx.duplicate(section.open.span, message, other.open.span);
        } else if let Some((first, first_span, ..)) =
            earlier.find(|(.., other)| starts_open(section) && starts_open(other))
        {
            let message = format!("a text cannot begin inside of both `{first}` and `{name}`");
            cx.duplicate(*span, message, *first_span);
        }
    }
}

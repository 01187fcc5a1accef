//! `inline:` of a backend's `events:` and of a dialect: blocks in the text of a model that are reasoning or tool calls.

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::inline::{BlockContent, BlockPosition, CallBlock, CallFormat, InlineBlock};
use crate::mapping::grammar::collections::{Map, MapEntry};
use crate::mapping::grammar::notation::{Bytes, NameOf, Spanned, notation_schema, text_notation};
use crate::mapping::grammar::{Named, Quoted, section};
use crate::mapping::language::selector::Selector;
use crate::mapping::source::field_reader::LoadContext;
use std::sync::Arc;

/// The blocks, each with its place in the file.
#[derive(Clone, Debug, Default)]
pub struct InlinePlan(pub Vec<(Arc<InlineBlock>, Span)>);

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
        /// The content is a tool call. A block that cannot be read, or that calls a tool which the client does not
        /// offer, is text.
        tool: Option<InlineTool>,
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
        id: Option<Spanned<String>>,
        /// A block with more content is text.
        max_bytes: Bytes = Bytes(1 << 20),
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
    }
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
    pub fn new(section: Map<InlineSection>, cx: LoadContext) -> InlinePlan {
        if let Some(MapEntry { key_span, .. }) = section.0.get(MAX_BLOCKS) {
            cx.error(Code::LimitExceeded, *key_span, format!("more than {MAX_BLOCKS} inline blocks"));
        }
        report_duplicates(&section, cx);
        let blocks = section.0.into_iter().filter_map(|entry| {
            let span = entry.key_span;
            block(entry.key, entry.value, cx).map(|block| (Arc::new(block), span))
        });
        InlinePlan(blocks.collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has_reasoning(&self) -> bool {
        self.0.iter().any(|(block, _)| matches!(block.content, BlockContent::Reasoning { .. }))
    }

    pub fn has_calls(&self) -> bool {
        self.0.iter().any(|(block, _)| matches!(block.content, BlockContent::Call(_)))
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
    let id = match tool.id {
        Some(id) => Some(call_id(id, cx)?),
        None => None,
    };
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
        (None, Some(xml)) => CallFormat::Xml { name: xml.name, arguments: xml.arguments },
        (None, None) => return None,
    };
    Some(CallBlock { format, id, max_bytes: tool.max_bytes.0 })
}

fn call_id(id: Spanned<String>, cx: LoadContext) -> Option<String> {
    let literal = id.replace("{choice}", "").replace("{ordinal}", "");
    if literal.contains(['{', '}']) || !id.contains("{ordinal}") {
        let message = "an id contains `{ordinal}`, so that calls have different ids, and perhaps `{choice}`";
        let help = "for example `id: \"call_{choice}_{ordinal}\"`";
        cx.add(Diagnostic::new(Code::BadPlaceholder, id.span, message).help(help));
        return None;
    }
    Some(id.value)
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
fn report_duplicates(section: &Map<InlineSection>, cx: LoadContext) {
    let starts_open = |entry: &MapEntry<InlineSection>| entry.value.reasoning.as_ref().is_some_and(|r| r.starts_open);
    for (at, entry) in section.iter().enumerate() {
        let mut earlier = section.iter().take(at);
        if let Some(first) = earlier.clone().find(|other| *other.value.open == *entry.value.open) {
            let message = format!("the inline blocks `{}` and `{}` begin with the same text", first.key, entry.key);
            cx.duplicate(entry.value.open.span, message, first.value.open.span);
        } else if let Some(first) = earlier.find(|other| starts_open(entry) && starts_open(other)) {
            let message = format!("a text cannot begin inside of both `{}` and `{}`", first.key, entry.key);
            cx.duplicate(entry.key_span, message, first.key_span);
        }
    }
}

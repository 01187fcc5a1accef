//! What a dialect's rules read from a client's request: messages, tool calls and their results, and the tools that it
//! offers.

use super::emit::{EmitField, EmitSpec, EmittedFields, FieldSpec, FieldType, emissions, emit_group};
use super::{CallKind, Tree, named_enum};
use std::borrow::Cow;
use std::sync::OnceLock;

emissions! {
    /// An element of the conversation.
    #[derive(Clone, Debug)]
    pub enum RequestItem, RequestItemType, ITEMS {
        noun: "request item",
        skip_empty: false,

        /// A message, with `text` or `parts`.
        Message = "message" { role: Option<String>, content: Content } if text | parts;

        /// A tool call that the model made earlier.
        Call = "call" { call: RequestCall } if id | name | arguments;

        /// The result of a tool call.
        Result = "result" {
            call_id: Option<String>, content: Content, failed: Option<bool>, tool: Derived<CalledTool>,
        };

        /// Reasoning of an earlier turn, sent back by the client. It belongs to the assistant's message or calls after it.
        Reasoning = "reasoning" { reasoning: RequestReasoning } if id | text | summaries | signature | encrypted;

        /// An item of a kind that only backends of the same dialect support.
        Other = "other" { kind: Option<String>, raw: Tree } if raw;
    }
}

emissions! {
    /// A part of a message or result.
    #[derive(Clone, Debug, PartialEq)]
    pub enum ContentPart, ContentPartType, PARTS {
        noun: "content part",
        skip_empty: false,

        /// A text part.
        Text = "text" { text: String } if text;

        /// An image part.
        Image = "image" { url: Option<String>, media: Media, detail: Option<String> } if url | base64;

        /// A file part.
        File = "file" {
            id: Option<String>, name: Option<String>, data: Option<String>, url: Option<String>, media: Media,
        } if id | data | url | base64;

        /// An audio part.
        Audio = "audio" { data: Option<String>, format: Option<String>, media: Media } if data | base64;

        /// A refusal part.
        Refusal = "refusal" { text: String } if text;
    }
}

emit_group! {
    /// Reasoning of an earlier turn.
    #[derive(Clone, Debug, Default)]
    pub struct RequestReasoning {
        id: Option<String>,
        // The reasoning itself, as opposed to its summaries.
        text: Option<String>,
        summaries: Option<Vec<String>>,
        // By which the backend recognizes its own text.
        signature: Option<String>,
        // The reasoning in a form that only the backend can read.
        encrypted: Option<String>,
    }
}

emit_group! {
    /// The bytes of a content part, if the client sent them with their type instead of a `data:` URL.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Media {
        media_type: Option<String>,
        base64: Option<String>,
    }
}

emit_group! {
    #[derive(Clone, Debug)]
    pub struct RequestCall {
        id: Option<String>,
        tool: CalledTool,
        arguments: Option<String>,
        input: Derived<OnceLock<Tree>>,
    }
}

emit_group! {
    /// The tool of a call and of its result.
    #[derive(Clone, Debug, Default)]
    pub struct CalledTool {
        name: Option<String>,
        kind: Option<CallKind>,
    }
}

/// The content of a message or a result.
#[derive(Clone, Debug)]
pub struct Content {
    pub parts: Vec<ContentPart>,
    /// The text, if it is not the concatenated text of the parts.
    pub merged_text: Option<String>,
}

named_enum! {
    pub enum ToolKind {
        Function = "function",
        Custom = "custom",
        /// A tool of the client's API, such as web search.
        Other = "other",
    }
}

emit_group! {
    /// A tool that the model can call.
    #[derive(Clone, Debug, Default)]
    pub struct Tool {
        kind: Option<ToolKind>,
        client_type as "type": Option<String>,
        name: Option<String>,
        description: Option<String>,
        parameters: Option<Tree>,
        strict: Option<bool>,
        raw: Option<Tree>,
    }
}

named_enum! {
    pub enum ChoiceMode {
        Auto = "auto",
        None = "none",
        Required = "required",
        Named = "named",
    }
}

emit_group! {
    /// Which tools the model may or must call.
    #[derive(Clone, Debug)]
    pub struct ToolChoice {
        mode: Option<ChoiceMode>,
        name: Option<String>,
        // The names of the tools that the mode is about. Without them it is about all tools.
        allowed: Option<Vec<String>>,
        // The choice as the client sent it, if its dialect does not define it.
        unknown: Derived<Option<Tree>>,
    }
}

impl ToolChoice {
    /// Whether the model may call this tool. Tools without a name cannot be excluded by name.
    pub fn allows(&self, tool: &Tool) -> bool {
        match (&self.allowed, &tool.name) {
            (Some(allowed), Some(name)) => allowed.contains(name),
            (None, _) | (_, None) => true,
        }
    }
}

named_enum! {
    pub enum FormatKind {
        Text = "text",
        JsonObject = "json_object",
        JsonSchema = "json_schema",
    }
}

emit_group! {
    /// The format of the response.
    #[derive(Clone, Debug)]
    pub struct Format {
        kind: Option<FormatKind>,
        name: Option<String>,
        schema: Option<Tree>,
        strict: Option<bool>,
        description: Option<String>,
        // The format as the client sent it, if its dialect does not define its kind.
        unknown: Derived<Option<Tree>>,
    }
}

/// A field that rules do not set: it is derived from others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Derived<T>(pub T);

impl<T: Default> EmitField for Derived<T> {
    const SPEC: EmitSpec = EmitSpec::Group(&[]);

    fn take(_: &str, _: &mut EmittedFields) -> Option<Derived<T>> {
        Some(Derived::default())
    }
}

impl EmitField for Content {
    const SPEC: EmitSpec = EmitSpec::Group(&[
        FieldSpec { name: "text", field_type: FieldType::Text },
        FieldSpec { name: "parts", field_type: FieldType::ContentParts },
    ]);

    /// Only the text: parts are emissions of their own.
    fn take(_: &str, fields: &mut EmittedFields) -> Option<Content> {
        let text = String::take("text", fields).map(|text| ContentPart::Text { text });
        Some(Content { parts: text.into_iter().collect(), merged_text: None })
    }
}

/// The only argument of a custom tool that is sent as a function.
pub const WRAPPED_INPUT: &str = "input";

impl RequestItem {
    /// Of a message or a result.
    pub fn content(&self) -> Option<&Content> {
        match self {
            RequestItem::Message { content, .. } | RequestItem::Result { content, .. } => Some(content),
            RequestItem::Call { .. } | RequestItem::Reasoning { .. } | RequestItem::Other { .. } => None,
        }
    }

    pub fn content_mut(&mut self) -> Option<&mut Content> {
        match self {
            RequestItem::Message { content, .. } | RequestItem::Result { content, .. } => Some(content),
            RequestItem::Call { .. } | RequestItem::Reasoning { .. } | RequestItem::Other { .. } => None,
        }
    }

    pub fn reasoning(&self) -> Option<&RequestReasoning> {
        match self {
            RequestItem::Reasoning { reasoning } => Some(reasoning),
            _ => None,
        }
    }

    pub fn call(&self) -> Option<&RequestCall> {
        match self {
            RequestItem::Call { call } => Some(call),
            _ => None,
        }
    }

    pub fn tool(&self) -> Option<&CalledTool> {
        match self {
            RequestItem::Call { call } => Some(&call.tool),
            RequestItem::Result { tool, .. } => Some(&tool.0),
            RequestItem::Message { .. } | RequestItem::Reasoning { .. } | RequestItem::Other { .. } => None,
        }
    }

    /// The role of the message that the item becomes; `None` if it becomes none.
    pub fn message_role(&self) -> Option<&str> {
        match self {
            RequestItem::Message { role, .. } => Some(role.as_deref().unwrap_or_default()),
            RequestItem::Call { .. } => Some("assistant"),
            RequestItem::Result { .. } => Some("tool"),
            RequestItem::Reasoning { .. } | RequestItem::Other { .. } => None,
        }
    }

    pub fn is_user_message(&self) -> bool {
        self.message_role() == Some("user")
    }

    /// True for system and developer messages. Those at the start of the conversation are its instructions.
    pub fn is_instruction(&self) -> bool {
        matches!(self.message_role(), Some("system" | "developer"))
    }
}

impl RequestCall {
    /// The arguments as a JSON object, parsed when they are first read. Those that are none become its only member.
    pub fn input(&self) -> &Tree {
        self.input.0.get_or_init(|| {
            let text = self.arguments.as_deref().unwrap_or_default().trim();
            let parsed = match text {
                "" => Some(Tree::Map(Vec::new())),
                _ => Tree::parse(text.as_bytes()).ok().filter(|tree| tree.as_map().is_some()),
            };
            parsed.unwrap_or_else(|| Tree::map([(WRAPPED_INPUT, Tree::from(text))]))
        })
    }
}

impl From<String> for Content {
    fn from(text: String) -> Content {
        Content { parts: vec![ContentPart::Text { text }], merged_text: None }
    }
}

impl Content {
    pub fn text(&self) -> Cow<'_, str> {
        match &self.merged_text {
            Some(text) => Cow::Borrowed(text),
            None => {
                let texts = self.parts.iter().filter_map(ContentPart::text).map(Cow::Borrowed);
                texts.reduce(|text, more| text + more).unwrap_or_default()
            }
        }
    }

    /// Several texts are paragraphs: without a blank line between them, the last word of one would run into the next.
    pub fn separate_paragraphs(&mut self) {
        let texts = || self.parts.iter().filter_map(ContentPart::text).filter(|text| !text.is_empty());
        self.merged_text = (texts().nth(1).is_some()).then(|| texts().collect::<Vec<&str>>().join("\n\n"));
    }

    /// Whether it contains only text parts.
    pub fn is_plain(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, ContentPart::Text { .. }))
    }
}

impl ContentPart {
    pub fn text(&self) -> Option<&str> {
        match self {
            ContentPart::Text { text } | ContentPart::Refusal { text } => Some(text),
            ContentPart::Image { .. } | ContentPart::File { .. } | ContentPart::Audio { .. } => None,
        }
    }
}

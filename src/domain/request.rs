//! The client's request in normalized form: its scalar fields, and the content that is sent to a backend.

use super::emit::EmittedFields;
use super::request_item::{Content, ContentPart, Format, RequestItem, Tool, ToolChoice};
use super::{Fault, FaultKind, RequestHead, Text, Tree};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A normalized request. It is read once; what expressions read of it is borrowed, or built when it is first read.
#[derive(Clone, Debug, Default)]
pub struct TurnRequest {
    pub model: String,
    /// The name of the model at its backend, if it is another one.
    pub upstream_model: Option<String>,
    pub stream: bool,
    pub n: usize,
    /// All scalar fields that have a value (`emit::SCALARS`), those above included.
    scalars: EmittedFields,
    pub content: RequestContent,
    /// Words that the dialect does not define. The backend may know them.
    pub unknown_values: Vec<UnknownValue>,
    /// The top-level members that the dialect does not know.
    pub extra: Tree,
    /// The client's body as sent.
    pub raw: Tree,
    /// The paths of what the dialect does not read in the body: `messages[2].cache_control`.
    pub unread: Vec<String>,
    /// The paths of the items in the body, in their order.
    pub item_paths: Vec<Text>,
    /// The paths of the tools in the body, in their order.
    pub tool_paths: Vec<Text>,
    pub head: RequestHead,
}

/// A word that the client's dialect does not define.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownValue {
    pub param: String,
    /// The error, if the backend does not know it either.
    pub message: String,
}

/// What is adapted to a backend's capabilities. Items and tools that stay the same are shared.
#[derive(Clone, Debug, Default)]
pub struct RequestContent {
    items: Vec<Arc<RequestItem>>,
    pub tools: Vec<Arc<Tool>>,
    pub tool_choice: Option<ToolChoice>,
    pub format: Option<Format>,
    /// Scalars with another value for the backend than for the client; null: none.
    pub scalars: EmittedFields,
    pub views: RequestViews,
}

/// What is derived from the items, built when it is first read.
#[derive(Clone, Debug, Default)]
pub struct RequestViews {
    /// The range of items of each message.
    pub messages: OnceLock<Vec<Range<usize>>>,
    /// Of several leading system messages: their texts, joined.
    pub instructions: OnceLock<String>,
}

/// The backend's names of roles; a role without an entry keeps the client's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleNames(pub Vec<(String, String)>);

/// Tools that were sent to the backend in another form. Calls of them are converted back for the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolAliases {
    /// Custom tools that were sent as functions.
    pub custom: Vec<String>,
    /// The tool that replaces a response format; the arguments of its calls are the content of the response.
    pub answer: Option<String>,
}

impl TurnRequest {
    pub fn new(scalars: EmittedFields) -> TurnRequest {
        let mut request = TurnRequest { n: 1, extra: Tree::Map(Vec::new()), ..TurnRequest::default() };
        for (name, value) in &scalars {
            match *name {
                "model" => request.model = value.as_str().unwrap_or_default().to_owned(),
                "stream" => request.stream = value.as_bool().unwrap_or(false),
                "n" => request.n = value.as_u64().unwrap_or(1).max(1) as usize,
                _ => {}
            }
        }
        TurnRequest { scalars, ..request }
    }

    /// A request without content: the default of `test` and `explain`.
    pub fn minimal(model: &str, stream: bool) -> TurnRequest {
        TurnRequest::new(vec![("model", model.into()), ("stream", stream.into()), ("n", 1i64.into())])
    }

    /// A request without content, with the scalars that decide how many frames there are.
    pub fn synthetic(model: &str, stream: bool, usage: bool, n: usize) -> TurnRequest {
        let n = Tree::from(n as i64);
        TurnRequest::new(vec![("model", model.into()), ("stream", stream.into()), ("usage", usage.into()), ("n", n)])
    }

    /// The same request for the other form of response.
    pub fn set_stream(&mut self, stream: bool) {
        self.stream = stream;
        self.scalars.retain(|(name, _)| *name != "stream");
        self.scalars.push(("stream", stream.into()));
    }

    /// Sets the values that the client did not set.
    pub fn imply(&mut self, implied: &[(&'static str, Tree)]) {
        let absent = implied.iter().filter(|(name, _)| self.scalar(name).is_none()).cloned().collect::<Vec<_>>();
        self.scalars.extend(absent);
    }

    pub fn scalar(&self, name: &str) -> Option<&Tree> {
        self.scalars.iter().find(|(scalar, _)| *scalar == name).map(|(_, value)| value)
    }
}

impl UnknownValue {
    pub fn fault(&self) -> Fault {
        Fault::new(FaultKind::Invalid, self.message.as_str()).param(self.param.as_str())
    }
}

impl RequestContent {
    pub fn new(
        items: Vec<Arc<RequestItem>>,
        tools: Vec<Arc<Tool>>,
        tool_choice: Option<ToolChoice>,
        format: Option<Format>,
    ) -> RequestContent {
        RequestContent { items, tools, tool_choice, format, ..RequestContent::default() }
    }

    /// A scalar of the request, as this content has it.
    pub fn scalar<'r>(&'r self, request: &'r TurnRequest, name: &str) -> Option<&'r Tree> {
        let own = self.scalars.iter().find(|(scalar, _)| *scalar == name).map(|(_, value)| value);
        own.or_else(|| request.scalar(name))
    }

    pub fn items(&self) -> &[Arc<RequestItem>] {
        &self.items
    }

    /// The items before a last user message; all of them if the last item is not one.
    pub fn history(&self) -> &[Arc<RequestItem>] {
        match self.items.split_last() {
            Some((last, before)) if last.is_user_message() => before,
            _ => &self.items,
        }
    }

    /// The history without the system and developer messages that lead it.
    pub fn earlier_items(&self) -> &[Arc<RequestItem>] {
        let history = self.history();
        &history[self.leading_instructions().min(history.len())..]
    }

    /// The parts of the last item, if it is a user message.
    pub fn last_user_parts(&self) -> &[ContentPart] {
        let last = self.items.last().filter(|item| item.is_user_message());
        last.and_then(|item| item.content()).map_or(&[], |content| &content.parts)
    }

    /// The text of the last user message, which other items may follow.
    pub fn last_user_text(&self) -> Option<Cow<'_, str>> {
        let last = self.items.iter().rfind(|item| item.is_user_message())?;
        last.content().map(Content::text)
    }

    /// The number of system and developer messages that lead the conversation.
    pub fn leading_instructions(&self) -> usize {
        self.items.iter().take_while(|item| item.is_instruction()).count()
    }

    /// The texts of the system and developer messages that lead the conversation.
    pub fn instructions(&self) -> Option<Cow<'_, str>> {
        let leading = &self.items[..self.leading_instructions()];
        let mut texts = leading.iter().filter_map(|item| item.content()).map(Content::text);
        match leading.len() {
            0 | 1 => texts.next(),
            _ => Some(Cow::Borrowed(self.views.instructions.get_or_init(|| texts.collect::<Vec<_>>().join("\n\n")))),
        }
    }

    /// The items as messages, each a range of items. Adjacent calls and the text around them are one assistant message;
    /// results follow it. Reasoning belongs to the assistant's message or call after it, or else to the one before it.
    pub fn messages(&self) -> &[Range<usize>] {
        self.views.messages.get_or_init(|| self.message_ranges())
    }

    /// The messages after the leading instructions, of which each is a message.
    pub fn conversation(&self) -> &[Range<usize>] {
        self.messages().get(self.leading_instructions()..).unwrap_or_default()
    }

    fn message_ranges(&self) -> Vec<Range<usize>> {
        let mut messages: Vec<Range<usize>> = Vec::new();
        // Of the last message: whether it is the assistant's, and whether it has calls.
        let (mut is_assistant, mut has_calls) = (false, false);
        // Reasoning that waits for its message.
        let mut reasoning: Option<Range<usize>> = None;
        for (at, item) in self.items.iter().enumerate() {
            if item.reasoning().is_some() {
                reasoning = Some(reasoning.map_or(at, |waiting| waiting.start)..at + 1);
                continue;
            }
            let Some(role) = item.message_role() else { continue };
            let (assistant, call) = (role == "assistant", item.call().is_some());
            // No message is allowed between calls and their results.
            let continues = is_assistant && assistant && (call || has_calls);
            let waiting = reasoning.take();
            if let Some(waiting) = waiting.as_ref().filter(|_| is_assistant && !assistant) {
                extend_last(&mut messages, waiting.end);
            }
            match continues {
                true => extend_last(&mut messages, at + 1),
                false => messages.push(waiting.filter(|_| assistant).map_or(at, |waiting| waiting.start)..at + 1),
            }
            (is_assistant, has_calls) = (assistant, call || continues && has_calls);
        }
        if let Some(waiting) = reasoning.filter(|_| is_assistant) {
            extend_last(&mut messages, waiting.end);
        }
        messages
    }
}

fn extend_last(messages: &mut [Range<usize>], end: usize) {
    if let Some(last) = messages.last_mut() {
        last.end = end;
    }
}

impl RoleNames {
    /// Every role keeps the client's name.
    pub const IDENTITY: &'static RoleNames = &RoleNames(Vec::new());

    pub fn map<'r>(&'r self, role: &'r str) -> &'r str {
        self.0.iter().find(|(from, _)| from == role).map_or(role, |(_, to)| to)
    }
}

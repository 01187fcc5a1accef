//! Adapts the items of a request to the capabilities of a backend: content parts, reasoning, system messages, and calls
//! of custom tools.

use super::adapt::RequestAdapter;
use crate::domain::request_item::{
    Content, ContentPart, ContentPartType, Derived, RequestItem, RequestReasoning, Tool, ToolKind, WRAPPED_INPUT,
};
use crate::domain::{CallKind, Fault, Text, Tree};
use crate::mapping::config::capabilities::{OnReasoning, OnUnsupported, SystemParts};
use std::sync::Arc;

impl RequestAdapter<'_> {
    pub(super) fn items(&mut self) -> Result<Vec<Arc<RequestItem>>, Fault> {
        let content = &self.request.content;
        let leading = content.leading_instructions();
        // A backend that does not support custom tools does not support calls of them either.
        let wraps_calls = self.capabilities.on_tool(ToolKind::Custom, None) != OnUnsupported::Forward;
        let mut kept = Vec::with_capacity(content.items().len());
        for (at, item) in content.items().iter().enumerate() {
            let unsupported = match &**item {
                RequestItem::Reasoning { reasoning } => {
                    self.on_reasoning(reasoning).map(|action| ("reasoning", action))
                }
                RequestItem::Other { kind, .. } if !self.reads.items() => {
                    Some((kind.as_deref().unwrap_or("reasoning"), OnUnsupported::Drop))
                }
                RequestItem::Other { .. } => None,
                RequestItem::Message { .. } | RequestItem::Call { .. } | RequestItem::Result { .. } => None,
            };
            if let Some((kind, action)) = unsupported {
                self.drop_or_reject(action, format!("items.{kind}"), "reasoning of earlier turns")?;
                continue;
            }
            if let RequestItem::Result { failed: Some(true), .. } = &**item
                && !self.reads.element_field("failed")
            {
                let path = self.request.item_paths.get(at).map_or("items", Text::as_str);
                self.drop_or_reject(OnUnsupported::Drop, format!("{path}.failed"), "")?;
            }
            let mut item = item.clone();
            if wraps_calls && item.tool().is_some_and(|tool| tool.kind == Some(CallKind::Custom)) {
                wrap_call(Arc::make_mut(&mut item));
            }
            let text_only = at < leading && self.reads.instructions_as_text()
                || self
                    .capabilities
                    .text_only_roles
                    .iter()
                    .flat_map(|roles| roles.iter())
                    .any(|role| item.message_role() == Some(role));
            if let Some(content) = item.content()
                && let Some(supported) = self.supported_content(content, text_only)?
                && let Some(content) = Arc::make_mut(&mut item).content_mut()
            {
                *content = supported;
            }
            if item.is_instruction() && item.content().is_some_and(|content| content.parts.len() > 1) {
                self.join_system_parts(Arc::make_mut(&mut item));
            }
            kept.push(item);
        }
        Ok(kept)
    }

    /// The text of a system message with several parts.
    fn join_system_parts(&self, item: &mut RequestItem) {
        let Some(content) = item.content_mut() else { return };
        match self.capabilities.system_parts() {
            SystemParts::Paragraphs => content.separate_paragraphs(),
            SystemParts::Concat => content.merged_text = None,
        }
    }

    /// `None` if the reasoning is sent.
    fn on_reasoning(&self, reasoning: &RequestReasoning) -> Option<OnUnsupported> {
        let is_signed = reasoning.signature.is_some() || reasoning.encrypted.is_some();
        match self.capabilities.on_reasoning() {
            OnReasoning::Reject => Some(OnUnsupported::Reject),
            _ if !self.reads.reasoning() => Some(OnUnsupported::Drop),
            OnReasoning::Drop => Some(OnUnsupported::Drop),
            OnReasoning::Identified if reasoning.id.is_some() => None,
            OnReasoning::Identified | OnReasoning::Signed => (!is_signed).then_some(OnUnsupported::Drop),
            OnReasoning::Forward => None,
        }
    }

    /// The content without the parts that the backend does not support; `None` if it supports all of them.
    fn supported_content(&mut self, content: &Content, text_only: bool) -> Result<Option<Content>, Fault> {
        let mut unsupported: Vec<usize> = Vec::new();
        for (at, part) in content.parts.iter().enumerate() {
            let kind = part.kind().name();
            let action = match self.capabilities.on_content_part(kind) {
                OnUnsupported::Forward if text_only && part.kind() != ContentPartType::Text => OnUnsupported::Drop,
                action => action,
            };
            if action != OnUnsupported::Forward {
                let what = format!("content parts of the type `{kind}`");
                let content = self.client.content_param().filter(|_| action == OnUnsupported::Reject);
                self.drop_or_reject(action, content.unwrap_or_else(|| format!("parts.{kind}")), &what)?;
                unsupported.push(at);
                continue;
            }
            if matches!(part, ContentPart::Image { detail: Some(detail), .. } if !matches!(&**detail, "" | "auto"))
                && !self.reads.element_field("detail")
            {
                self.drop_or_reject(OnUnsupported::Drop, format!("parts.{kind}.detail"), "")?;
            }
        }
        if unsupported.is_empty() {
            return Ok(None);
        }
        let parts = content.parts.iter().enumerate().filter(|(at, _)| unsupported.binary_search(at).is_err());
        Ok(Some(Content { parts: parts.map(|(_, part)| part.clone()).collect(), merged_text: None }))
    }
}

/// Merges the leading system and developer messages into one.
pub(super) fn merge_system_messages(items: &mut Vec<Arc<RequestItem>>) {
    let leading = items.iter().take_while(|item| item.is_instruction()).count();
    if leading < 2 {
        return;
    }
    let contents: Vec<&Content> = items[..leading].iter().filter_map(|item| item.content()).collect();
    let text = contents.iter().map(|content| content.text()).collect::<Vec<_>>().join("\n\n");
    let content = match contents.iter().all(|content| content.is_plain()) {
        true => Content::from(text),
        false => Content {
            parts: contents.iter().flat_map(|content| &content.parts).cloned().collect(),
            merged_text: Some(text),
        },
    };
    items.drain(1..leading);
    let role = items[0].message_role().map(str::to_owned);
    items[0] = Arc::new(RequestItem::Message { role, content });
}

/// A custom tool as a function with one string parameter.
pub(super) fn wrap_tool(tool: &Tool) -> Tool {
    let text = Tree::map([("type", Tree::from("string"))]);
    let parameters = Tree::map([
        ("type", Tree::from("object")),
        ("properties", Tree::map([(WRAPPED_INPUT, text)])),
        ("required", Tree::from(vec![Tree::from(WRAPPED_INPUT)])),
        ("additionalProperties", Tree::from(false)),
    ]);
    Tool { kind: Some(ToolKind::Function), parameters: Some(parameters), ..tool.clone() }
}

/// Makes a call of a custom tool, or its result, one of such a function.
fn wrap_call(item: &mut RequestItem) {
    match item {
        RequestItem::Call { call } => {
            let arguments = call.arguments.take().unwrap_or_default();
            call.arguments = Some(Tree::map([(WRAPPED_INPUT, Tree::from(arguments))]).to_json());
            (call.tool.kind, call.input) = (Some(CallKind::Function), Derived::default());
        }
        RequestItem::Result { tool, .. } => tool.0.kind = Some(CallKind::Function),
        RequestItem::Message { .. } | RequestItem::Reasoning { .. } | RequestItem::Other { .. } => {}
    }
}

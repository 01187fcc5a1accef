//! Adapts a request to the capabilities of a backend: maps roles, converts tools and content parts. Unsupported fields
//! are rejected, or dropped and listed: nothing is lost silently.

use super::adapt_items::{merge_system_messages, wrap_tool};
use super::unknown_values;
use crate::domain::emit::{EmittedFields, scalar_text};
use crate::domain::request_item::{ChoiceMode, Derived, Format, FormatKind, Tool, ToolChoice, ToolKind};
use crate::domain::{Fault, FaultKind, RequestContent, Text, ToolAliases, Tree, TurnRequest};
use crate::engine::selector::Cursor;
use crate::mapping::config::backend_request::RequestFieldsRead;
use crate::mapping::config::capabilities::{
    Capabilities, FORMAT_MEMBERS, OPTIONAL_FIELDS, OnUnsupported, SystemMessages,
};
use crate::mapping::config::dialect_request::RequestPlan;
use crate::mapping::grammar::notation::NameOf;
use crate::mapping::language::field::FieldMapping;
use std::collections::HashSet;
use std::sync::Arc;

#[derive(Debug)]
pub struct AdaptedRequest<'r> {
    pub content: RequestContent,
    /// Unknown members that are forwarded as they are.
    pub forwarded: Vec<(&'r Text, &'r Tree)>,
    /// Fields that were dropped, by the client's names.
    pub dropped: Vec<String>,
    pub tool_aliases: ToolAliases,
}

pub fn adapt<'r>(
    request: &'r TurnRequest,
    reads: &'r RequestFieldsRead,
    capabilities: &'r Capabilities,
    client: &'r RequestPlan,
) -> Result<AdaptedRequest<'r>, Fault> {
    unknown_values::check(request, reads, capabilities, client)?;
    let mut adapter = RequestAdapter {
        request,
        capabilities,
        reads,
        client,
        dropped: DroppedFields::default(),
        tool_aliases: ToolAliases::default(),
    };
    let mut tools = adapter.tools()?;
    let mut tool_choice = adapter.tool_choice(&tools)?;
    let mut format = request.content.format.clone();
    if let Some(answer_tool) = adapter.answer_tool(&tools)? {
        let name = answer_tool.name.clone();
        let mode = Some(ChoiceMode::Named);
        tool_choice = Some(ToolChoice { mode, name: name.clone(), allowed: None, unknown: Derived(None) });
        tools.push(Arc::new(answer_tool));
        format = None;
        adapter.tool_aliases.answer = name;
    }
    let mut items = adapter.items()?;
    if capabilities.system_messages == Some(NameOf(SystemMessages::Merge)) {
        merge_system_messages(&mut items);
    }
    let unsupported = adapter.unsupported_values(&mut tool_choice, &mut format)?;
    let mut content = RequestContent::new(items, tools, tool_choice, format);
    content.scalars = unsupported;
    content.scalars.extend(request.upstream_model.as_deref().map(|name| ("model", Tree::from(name))));
    adapter.scalars(&content)?;
    adapter.format_members(&content)?;
    let forwarded = adapter.members()?;
    adapter.inner_members()?;
    Ok(AdaptedRequest { content, forwarded, dropped: adapter.dropped.names, tool_aliases: adapter.tool_aliases })
}

pub(super) struct RequestAdapter<'a> {
    pub(super) request: &'a TurnRequest,
    pub(super) capabilities: &'a Capabilities,
    pub(super) reads: &'a RequestFieldsRead,
    pub(super) client: &'a RequestPlan,
    dropped: DroppedFields,
    tool_aliases: ToolAliases,
}

/// The fields that were dropped, each once. A client can send many thousands of them.
#[derive(Default)]
struct DroppedFields {
    names: Vec<String>,
    seen: HashSet<String>,
}

impl<'a> RequestAdapter<'a> {
    /// Applies the action for an unsupported field: drops it, or rejects the request. `param` is the client's name.
    pub(super) fn drop_or_reject(&mut self, action: OnUnsupported, param: String, what: &str) -> Result<(), Fault> {
        if action == OnUnsupported::Reject {
            let message = format!("this backend does not support {what}");
            return Err(Fault::new(FaultKind::Unsupported, message).param(param));
        }
        if !self.dropped.seen.contains(&param) {
            self.dropped.seen.insert(param.clone());
            self.dropped.names.push(param);
        }
        Ok(())
    }

    fn tools(&mut self) -> Result<Vec<Arc<Tool>>, Fault> {
        let mut kept = Vec::with_capacity(self.request.content.tools.len());
        // A backend that does not know which of the tools are allowed gets only these.
        let choice = self.request.content.tool_choice.as_ref().filter(|_| !self.reads.allowed_tools());
        for (at, tool) in self.request.content.tools.iter().enumerate() {
            if choice.is_some_and(|choice| !choice.allows(tool)) {
                continue;
            }
            let Some(kind @ (ToolKind::Custom | ToolKind::Other)) = tool.kind else {
                if tool.strict == Some(true) && !self.reads.element_field("strict") {
                    self.drop_or_reject(OnUnsupported::Drop, format!("{}.strict", self.tool_path(at)), "")?;
                }
                kept.push(tool.clone());
                continue;
            };
            let client_type = tool.client_type.as_deref();
            match self.capabilities.on_tool(kind, client_type) {
                OnUnsupported::Forward => kept.push(tool.clone()),
                OnUnsupported::Wrap if kind == ToolKind::Custom => {
                    self.tool_aliases.custom.push(tool.name.clone().unwrap_or_default());
                    kept.push(Arc::new(wrap_tool(tool)));
                }
                action => {
                    let what = format!("tools of the type `{}`", client_type.unwrap_or(kind.name()));
                    self.drop_or_reject(action, self.tool_path(at), &what)?;
                }
            }
        }
        Ok(kept)
    }

    /// The path of a tool as the client sent it.
    fn tool_path(&self, at: usize) -> String {
        self.request.tool_paths.get(at).map_or_else(|| format!("tools[{at}]"), Text::to_string)
    }

    /// For a backend that supports tools but no response formats: a tool that it must call, with the format as its
    /// parameters.
    fn answer_tool(&self, tools: &[Arc<Tool>]) -> Result<Option<Tool>, Fault> {
        let by_tool =
            self.capabilities.on_unsupported_field("format") == OnUnsupported::AsTool && !self.reads.scalar("format");
        let Some(format) = self.request.content.format.as_ref().filter(|_| by_tool) else { return Ok(None) };
        if !has_effect("format", self.request, &self.request.content) {
            return Ok(None);
        }
        if !tools.is_empty() {
            // The forced call would keep the model from calling the client's tools.
            let param = self.format_param();
            let message = format!("this backend does not support `{param}` together with tools");
            return Err(Fault::new(FaultKind::Unsupported, message).param(param));
        }
        let any_object = || Tree::map([("type", Tree::from("object"))]);
        Ok(Some(Tool {
            kind: Some(ToolKind::Function),
            name: Some(format.name.as_deref().unwrap_or(DEFAULT_ANSWER_TOOL).to_owned()),
            description: format.description.clone(),
            parameters: Some(format.schema.clone().unwrap_or_else(any_object)),
            ..Tool::default()
        }))
    }

    /// The tool choice, unless it refers to tools that were dropped. A choice that the dialect could not read is dropped
    /// too, unless the backend reads it from the raw request.
    fn tool_choice(&mut self, kept: &[Arc<Tool>]) -> Result<Option<ToolChoice>, Fault> {
        let choice = self.request.content.tool_choice.as_ref();
        if choice.is_some_and(|choice| choice.unknown.0.is_some()) {
            return Ok(choice.cloned());
        }
        let Some(mode) = choice.and_then(|choice| choice.mode) else {
            if let Some(param) = self.client.param_in("tool_choice", &self.request.raw) {
                let sent = self.request.raw.get(&param).and_then(Tree::as_map).unwrap_or(&[]);
                if !sent.iter().any(|(name, _)| self.reads.nested(&param, name)) {
                    self.drop_or_reject_choice()?;
                }
            }
            return Ok(choice.cloned());
        };
        let offered = !self.request.content.tools.is_empty();
        let name = choice.and_then(|choice| choice.name.as_ref());
        let is_absent = match mode {
            ChoiceMode::Auto | ChoiceMode::None => kept.is_empty(),
            ChoiceMode::Required => offered && kept.is_empty(),
            ChoiceMode::Named => offered && !kept.iter().any(|tool| tool.name.as_ref() == name),
        };
        if !is_absent {
            return Ok(choice.cloned());
        }
        if matches!(mode, ChoiceMode::Required | ChoiceMode::Named) {
            self.drop_or_reject_choice()?;
        }
        Ok(None)
    }

    fn drop_or_reject_choice(&mut self) -> Result<(), Fault> {
        let param = self.param("tool_choice");
        let what = format!("this `{param}`");
        self.drop_or_reject(self.capabilities.on_unsupported_field("tool_choice"), param, &what)
    }

    /// Drops or rejects values that the backend does not support, of fields that it does. Returns the scalars without a
    /// value.
    fn unsupported_values(
        &mut self,
        tool_choice: &mut Option<ToolChoice>,
        format: &mut Option<Format>,
    ) -> Result<EmittedFields, Fault> {
        let mut dropped = EmittedFields::new();
        for (field, values) in self.capabilities.unsupported_values() {
            let scalar = OPTIONAL_FIELDS.iter().find(|scalar| **scalar == field);
            let sent = match field {
                "tool_choice" => tool_choice.as_ref().and_then(|choice| choice.mode).map(|mode| mode.name().to_owned()),
                "format" => format.as_ref().and_then(|format| format.kind).map(|kind| kind.name().to_owned()),
                field => self.request.scalar(field).and_then(scalar_text),
            };
            let found = values.iter().find(|(value, _)| sent.as_ref() == Some(value));
            let (Some((value, action)), Some(scalar)) = (found, scalar) else { continue };
            let param = if field == "format" { self.format_param() } else { self.param(field) };
            let what = self.client.sent_value(field, &self.request.raw);
            let what = what.unwrap_or_else(|| format!("`{param}` with the value `{value}`"));
            self.drop_or_reject(*action, param, &what)?;
            match field {
                "tool_choice" => *tool_choice = None,
                "format" => *format = None,
                _ => dropped.push((*scalar, Tree::Null)),
            }
        }
        Ok(dropped)
    }

    /// The fields that the template does not read.
    fn scalars(&mut self, content: &RequestContent) -> Result<(), Fault> {
        for scalar in OPTIONAL_FIELDS {
            if self.reads.scalar(scalar) || !has_effect(scalar, self.request, content) {
                continue;
            }
            let param = match *scalar {
                "format" => self.format_param(),
                _ => self.param(scalar),
            };
            let what = format!("`{param}`");
            self.drop_or_reject(self.capabilities.on_unsupported_field(scalar), param, &what)?;
        }
        Ok(())
    }

    /// The members of a format that the template does not read. A backend that does not read `strict` always is.
    fn format_members(&mut self, content: &RequestContent) -> Result<(), Fault> {
        let has_schema = |format: &&Format| format.kind == Some(FormatKind::JsonSchema) && self.reads.scalar("format");
        let Some(format) = content.format.as_ref().filter(has_schema) else { return Ok(()) };
        let requested = [format.name.is_some(), format.description.is_some(), format.strict == Some(false)].into_iter();
        for ((member, _), _) in FORMAT_MEMBERS.iter().zip(requested).filter(|(_, is_requested)| *is_requested) {
            let cursor = Cursor::new(&self.request.raw);
            let reads = self.client.format.iter().filter(|read| read.field.name == *member);
            let sent = reads.flat_map(FieldMapping::selectors).find(|selector| selector.one(&cursor).is_some());
            if let Some(selector) = sent.filter(|selector| !self.reads.sends_format_member(member, selector)) {
                self.drop_or_reject(OnUnsupported::Drop, selector.param(&cursor), "")?;
            }
        }
        Ok(())
    }

    fn param(&self, scalar: &str) -> String {
        self.client.param_in(scalar, &self.request.raw).unwrap_or_else(|| scalar.to_owned())
    }

    /// The request field that contains the format: the parent of its first member.
    fn format_param(&self) -> String {
        let cursor = Cursor::new(&self.request.raw);
        let mut selectors = self.client.format.iter().flat_map(FieldMapping::selectors);
        let sent = selectors.find(|s| s.one(&cursor).is_some()).map(|s| s.param(&cursor));
        let parent = sent.as_deref().and_then(|param| param.rsplit_once('.'));
        parent.map_or("format", |(parent, _)| parent).to_owned()
    }

    /// Top-level members that the client's dialect does not know. Returns those to forward.
    fn members(&mut self) -> Result<Vec<(&'a Text, &'a Tree)>, Fault> {
        let mut forwarded = Vec::new();
        let request = self.request;
        for (name, value) in request.extra.as_map().unwrap_or(&[]) {
            if value.is_null() || self.reads.member(name) {
                continue;
            }
            match self.capabilities.on_unknown_field() {
                OnUnsupported::Forward => forwarded.push((name, value)),
                action => self.drop_or_reject(action, name.to_string(), &format!("`{name}`"))?,
            }
        }
        Ok(forwarded)
    }

    /// What the dialect does not read inside the members that it knows.
    fn inner_members(&mut self) -> Result<(), Fault> {
        for path in &self.request.unread {
            let Some(at) = path.find(['.', '[']) else { continue };
            let (member, rest) = path.split_at(at);
            let name = rest.strip_prefix('.').map(|rest| rest.split(['.', '[']).next().unwrap_or_default());
            let is_sent = self.reads.member(member)
                || name.is_some_and(|name| self.reads.nested(member, name))
                || self.is_handled_whole(path);
            if is_sent {
                continue;
            }
            // A nested field cannot be forwarded without its object.
            let action = match self.capabilities.on_unknown_field() {
                OnUnsupported::Reject => OnUnsupported::Reject,
                OnUnsupported::Forward | OnUnsupported::Drop | OnUnsupported::Wrap | OnUnsupported::AsTool => {
                    OnUnsupported::Drop
                }
            };
            self.drop_or_reject(action, path.clone(), &format!("`{path}`"))?;
        }
        Ok(())
    }

    /// Whether the path is inside something that was forwarded, dropped or rejected as a whole: a format or tool choice
    /// that the dialect does not define, or a tool.
    fn is_handled_whole(&self, path: &str) -> bool {
        let content = &self.request.content;
        let is_in = |param: &str| path.strip_prefix(param).is_some_and(|rest| rest.starts_with(['.', '[']));
        let has_unknown_format = content.format.as_ref().is_some_and(|format| format.unknown.0.is_some());
        let has_known_choice = content.tool_choice.as_ref().is_some_and(|choice| choice.mode.is_some());
        has_unknown_format && is_in(&self.format_param())
            || !has_known_choice && is_in(&self.param("tool_choice"))
            || path.match_indices(']').any(|(end, _)| self.dropped.seen.contains(&path[..=end]))
    }
}

/// The name of the answer tool if the client's format has none.
const DEFAULT_ANSWER_TOOL: &str = "answer";

/// Whether a field requests anything that differs from the default.
fn has_effect(field: &str, request: &TurnRequest, content: &RequestContent) -> bool {
    match field {
        "n" => request.n > 1,
        "parallel_tool_calls" => request.scalar(field).and_then(Tree::as_bool) == Some(false),
        "tools" => !content.tools.is_empty(),
        "tool_choice" => {
            let mode = content.tool_choice.as_ref().and_then(|choice| choice.mode);
            mode.is_some_and(|mode| mode != ChoiceMode::Auto)
        }
        "format" => {
            let kind = content.format.as_ref().and_then(|format| format.kind);
            kind.is_some_and(|kind| kind != FormatKind::Text)
        }
        _ => match request.scalar(field) {
            None | Some(Tree::Null) => false,
            Some(Tree::List(items)) => !items.is_empty(),
            Some(Tree::Map(members)) => !members.is_empty(),
            Some(_) => true,
        },
    }
}

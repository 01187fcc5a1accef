//! Reads the tool calls of a block, as JSON or from elements.

use super::xml;
use crate::domain::inline::{CallBlock, CallFormat, InlineBlock};
use crate::domain::request_item::{ChoiceMode, Tool, ToolKind};
use crate::domain::{ToolAliases, Tree, TurnRequest};
use std::sync::Arc;

/// The tools that a block can call. A call of another tool is text: the client could do nothing with it.
#[derive(Clone, Debug)]
pub enum CallableTools {
    /// For tests of a backend without a client.
    Any,
    Only {
        tools: Vec<Arc<Tool>>,
        /// The tool that replaces a response format.
        answer: Option<String>,
    },
}

pub(super) struct ReadCall {
    pub id: Option<String>,
    pub name: String,
    pub arguments: Option<String>,
}

impl CallableTools {
    pub fn of(request: &TurnRequest, aliases: &ToolAliases) -> CallableTools {
        let choice = request.content.tool_choice.as_ref();
        let is_allowed = |name: &str| match choice.and_then(|choice| choice.mode) {
            Some(ChoiceMode::None) => false,
            Some(ChoiceMode::Named) => choice.and_then(|choice| choice.name.as_deref()).is_none_or(|only| only == name),
            Some(ChoiceMode::Auto | ChoiceMode::Required) | None => true,
        };
        let is_callable = |tool: &&Arc<Tool>| {
            let Some(name) = &tool.name else { return false };
            let is_function = match tool.kind {
                Some(ToolKind::Function) | None => true,
                Some(ToolKind::Custom) => aliases.custom.contains(name),
                Some(ToolKind::Other) => false,
            };
            is_function && is_allowed(name)
        };
        let tools = request.content.tools.iter().filter(is_callable).cloned().collect();
        CallableTools::Only { tools, answer: aliases.answer.clone() }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            CallableTools::Any => false,
            CallableTools::Only { tools, answer } => tools.is_empty() && answer.is_none(),
        }
    }

    /// The parameters of a tool, if it declares any. `None`: it cannot be called.
    fn find(&self, name: &str) -> Option<Option<&Tree>> {
        match self {
            CallableTools::Any => Some(None),
            CallableTools::Only { tools, answer } => {
                let tool = tools.iter().find(|tool| tool.name.as_deref() == Some(name));
                match tool {
                    Some(tool) => Some(tool.parameters.as_ref()),
                    None => (answer.as_deref() == Some(name)).then_some(None),
                }
            }
        }
    }
}

/// The calls of a block. `None`: it cannot be read, or calls a tool that the client does not have.
pub(super) fn read_calls(
    content: &str,
    block: &InlineBlock,
    call: &CallBlock,
    tools: &CallableTools,
) -> Option<Vec<ReadCall>> {
    match &call.format {
        CallFormat::Json { id, name, arguments } => {
            let parsed = Tree::parse(content.trim().as_bytes()).ok()?;
            let known = [Some(name), Some(arguments), id.as_ref()];
            let has_other_members = |node: &Tree| {
                let is_known =
                    |member: &str| known.iter().flatten().any(|path| path.first().is_some_and(|p| p == member));
                node.as_map().is_some_and(|members| members.iter().any(|(member, _)| !is_known(member)))
            };
            let read = |node: &Tree| {
                let name = member(node, name)?.as_str().filter(|name| tools.find(name).is_some())?;
                let id = id.as_ref().and_then(|id| member(node, id)?.as_str()).filter(|id| !id.is_empty());
                let arguments = match member(node, arguments).filter(|arguments| !arguments.is_null()) {
                    Some(arguments) => Some(object_text(arguments)?),
                    // Members of another name could be the arguments: they are not lost.
                    None if has_other_members(node) => return None,
                    None => None,
                };
                Some(ReadCall { id: id.map(str::to_owned), name: name.to_owned(), arguments })
            };
            match &parsed {
                Tree::List(calls) if calls.is_empty() => None,
                Tree::List(calls) => calls.iter().map(read).collect(),
                call => read(call).map(|call| vec![call]),
            }
        }
        CallFormat::Xml { name, arguments } => {
            let mut elements = xml::elements(content, block, name)?;
            let called = elements.remove(name)?;
            let parameters = tools.find(&called)?;
            let whole = arguments.as_ref().and_then(|arguments| elements.remove(arguments));
            let arguments = match whole {
                Some(whole) if elements.is_empty() => whole,
                Some(_) => return None,
                None => elements.into_json(parameters),
            };
            Some(vec![ReadCall { id: None, name: called, arguments: Some(arguments) }])
        }
    }
}

/// The arguments as JSON text: an object, or the text of one. `None`: they are none.
fn object_text(arguments: &Tree) -> Option<String> {
    match arguments.as_str() {
        Some(text) => matches!(Tree::parse(text.as_bytes()), Ok(Tree::Map(_))).then(|| text.to_owned()),
        None => matches!(arguments, Tree::Map(_)).then(|| arguments.to_json()),
    }
}

fn member<'t>(node: &'t Tree, path: &[String]) -> Option<&'t Tree> {
    path.iter().try_fold(node, |node, name| node.get(name))
}

//! Reads the tool calls of a block, as JSON or from elements.

use super::repair::repaired;
use super::xml;
use crate::domain::inline::{BlockTools, CallBlock, CallFormat, InlineBlock};
use crate::domain::request_item::{ChoiceMode, Tool, ToolKind};
use crate::domain::{ToolAliases, Tree, TurnRequest};
use std::sync::Arc;

/// The tools that the client offers. With `tools: offered`, a call of another tool is text: the client could do nothing
/// with it.
#[derive(Clone, Debug)]
pub enum CallableTools {
    /// For tests of a backend without a client.
    Any,
    Only {
        tools: Vec<Arc<Tool>>,
        /// The tool that replaces a response format.
        answer: Option<String>,
        /// The client wants no calls.
        no_calls: bool,
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
            is_function && is_allowed(name) && choice.is_none_or(|choice| choice.allows(tool))
        };
        let tools = request.content.tools.iter().filter(is_callable).cloned().collect();
        let no_calls = choice.and_then(|choice| choice.mode) == Some(ChoiceMode::None);
        CallableTools::Only { tools, answer: aliases.answer.clone(), no_calls }
    }

    /// Whether a block can be a call at all.
    pub(super) fn allows(&self, block: &CallBlock) -> bool {
        match self {
            CallableTools::Any => true,
            CallableTools::Only { tools, answer, .. } => {
                !tools.is_empty() || answer.is_some() || self.has_others(block)
            }
        }
    }

    /// Whether a block may call tools that the client does not offer.
    fn has_others(&self, block: &CallBlock) -> bool {
        match self {
            CallableTools::Any => true,
            CallableTools::Only { no_calls, .. } => block.tools == BlockTools::Any && !no_calls,
        }
    }

    /// The parameters of a tool, if it declares any. `None`: it cannot be called.
    fn find(&self, name: &str, block: &CallBlock) -> Option<Option<&Tree>> {
        if let Some(tool) = self.tool(name) {
            return Some(tool.parameters.as_ref());
        }
        let is_answer = matches!(self, CallableTools::Only { answer: Some(answer), .. } if answer == name);
        (is_answer || (!name.is_empty() && self.has_others(block))).then_some(None)
    }

    fn tool(&self, name: &str) -> Option<&Tool> {
        match self {
            CallableTools::Any => None,
            CallableTools::Only { tools, .. } => {
                tools.iter().find(|tool| tool.name.as_deref() == Some(name)).map(Arc::as_ref)
            }
        }
    }

    /// A required argument that a call of a strict tool does not have.
    pub(super) fn missing_argument(&self, call: &ReadCall) -> Option<String> {
        let tool = self.tool(&call.name).filter(|tool| tool.strict == Some(true))?;
        let required = tool.parameters.as_ref()?.get("required")?.as_list()?;
        let arguments = call.arguments.as_ref().and_then(|text| Tree::parse(text.as_bytes()).ok());
        let has = |name: &str| arguments.as_ref().is_some_and(|arguments| arguments.get(name).is_some());
        required.iter().filter_map(Tree::as_str).find(|name| !has(name)).map(str::to_owned)
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
            let parsed = Tree::parse(content.trim().as_bytes()).ok();
            let parsed = parsed.or_else(|| call.repair.then(|| repaired(content.trim()))?)?;
            let known = [Some(name), Some(arguments), id.as_ref()];
            let has_other_members = |node: &Tree| {
                let is_known =
                    |member: &str| known.iter().flatten().any(|path| path.first().is_some_and(|p| p == member));
                node.as_map().is_some_and(|members| members.iter().any(|(member, _)| !is_known(member)))
            };
            let read = |node: &Tree| {
                let name = member(node, name)?.as_str().filter(|name| tools.find(name, call).is_some())?;
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
        CallFormat::Xml { name, arguments, spaced } => {
            let mut elements = xml::elements(content, block, name)?;
            let called = elements.remove(name)?;
            let parameters = tools.find(&called, call)?;
            let whole = arguments.as_ref().and_then(|arguments| elements.remove(arguments));
            let arguments = match whole {
                Some(whole) if elements.is_empty() => whole,
                Some(_) => return None,
                None => elements.into_json(parameters, *spaced),
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

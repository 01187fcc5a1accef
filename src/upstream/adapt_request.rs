//! Adapts a request to the capabilities of a backend: maps roles, converts tools and content parts. Unsupported fields
//! are rejected, or dropped and listed: nothing is lost silently.

use crate::domain::request::{WRAPPED_INPUT, is_leading_instruction};
use crate::domain::{Fault, FaultKind, Tree, TurnRequest};
use crate::engine::selector::Cursor;
use crate::mapping::config::backend_request::RequestTemplate;
use crate::mapping::config::capabilities::{Capabilities, OPTIONAL_FIELDS, OnUnsupported, SystemMessages};
use crate::mapping::config::dialect_request::RequestPlan;
use crate::mapping::language::field::FieldMapping;

#[derive(Debug)]
pub struct AdaptedRequest {
    pub request: TurnRequest,
    /// Fields that were dropped, by the client's names.
    pub dropped: Vec<String>,
    /// Names of custom tools that are sent as functions: a call of one is a custom call.
    pub wrapped_tools: Vec<String>,
    /// The tool that carries the response format: the arguments of its call are the response.
    pub answer_tool: Option<String>,
}

pub fn adapt(
    request: &TurnRequest,
    template: &RequestTemplate,
    capabilities: &Capabilities,
    client: &RequestPlan,
) -> Result<AdaptedRequest, Fault> {
    let mut adapter = RequestAdapter {
        capabilities,
        template,
        client,
        raw: request.view.get("raw"),
        dropped: Vec::new(),
        wrapped_tools: Vec::new(),
    };
    let mut view = request.view.clone();
    let tools = adapter.tools(list(&view, "tools"))?;
    adapter.choice(&mut view, &tools)?;
    view.insert("tools", Tree::from(tools));
    let answer_tool = adapter.answer_tool(&mut view)?;
    let mut items = adapter.items(list(&view, "items"))?;
    if capabilities.system_messages == SystemMessages::Merge {
        merge_system_messages(&mut items);
    }
    view.insert("items", Tree::from(items));
    adapter.scalars(&mut view)?;
    adapter.members(&mut view)?;
    adapter.inner_members()?;
    let mut request = TurnRequest::new(view);
    for views in ["items", "messages", "conversation", "history"] {
        map_roles(&mut request.view, views, capabilities);
    }
    Ok(AdaptedRequest { request, dropped: adapter.dropped, wrapped_tools: adapter.wrapped_tools, answer_tool })
}

struct RequestAdapter<'a> {
    capabilities: &'a Capabilities,
    template: &'a RequestTemplate,
    client: &'a RequestPlan,
    raw: Option<&'a Tree>,
    dropped: Vec<String>,
    wrapped_tools: Vec<String>,
}

impl RequestAdapter<'_> {
    /// Applies the action for an unsupported field: drops it, or rejects the request. `param` is the client's name.
    fn drop_or_reject(&mut self, action: OnUnsupported, param: String, what: &str) -> Result<(), Fault> {
        if action == OnUnsupported::Reject {
            let message = format!("this backend does not support {what}");
            return Err(Fault::new(FaultKind::Unsupported, message).param(param));
        }
        if !self.dropped.contains(&param) {
            self.dropped.push(param);
        }
        Ok(())
    }

    fn tools(&mut self, tools: &[Tree]) -> Result<Vec<Tree>, Fault> {
        let mut kept = Vec::new();
        for (at, tool) in tools.iter().enumerate() {
            let kind = text_field(tool, "kind");
            if !matches!(kind, "custom" | "other") {
                if tool.get("strict").and_then(Tree::as_bool) == Some(true)
                    && !self.template.reads.element_field("strict")
                {
                    self.drop_or_reject(OnUnsupported::Drop, format!("tools[{at}].strict"), "")?;
                }
                kept.push(tool.clone());
                continue;
            }
            let tool_type = tool.get("type").and_then(Tree::as_str);
            match self.capabilities.on_tool(kind, tool_type) {
                OnUnsupported::Forward => kept.push(tool.clone()),
                OnUnsupported::Wrap if kind == "custom" => {
                    self.wrapped_tools.push(text_field(tool, "name").to_owned());
                    kept.push(wrap_tool(tool));
                }
                action => {
                    let what = format!("tools of the type `{}`", tool_type.unwrap_or(kind));
                    self.drop_or_reject(action, format!("tools[{at}]"), &what)?;
                }
            }
        }
        Ok(kept)
    }

    /// For a backend that supports tools but no response formats: a tool that it must call, with the format as its
    /// parameters.
    fn answer_tool(&mut self, view: &mut Tree) -> Result<Option<String>, Fault> {
        let format = view.get("format").cloned().unwrap_or_default();
        let by_tool = self.capabilities.on_unsupported_field("format") == OnUnsupported::AsTool
            && !self.template.reads.scalar("format");
        if !by_tool || !has_effect("format", &format) {
            return Ok(None);
        }
        let mut tools = list(view, "tools").to_vec();
        if !tools.is_empty() {
            // The forced call would keep the model from calling the client's tools.
            let param = self.format_param();
            let message = format!("this backend does not support `{param}` together with tools");
            return Err(Fault::new(FaultKind::Unsupported, message).param(param));
        }
        let name = format.get("name").and_then(Tree::as_str).unwrap_or(DEFAULT_ANSWER_TOOL).to_owned();
        let any = || Tree::map([("type", Tree::from("object"))]);
        tools.push(Tree::map([
            ("kind", Tree::from("function")),
            ("name", Tree::from(name.as_str())),
            ("description", format.get("description").cloned().unwrap_or_default()),
            ("parameters", format.get("schema").filter(|s| !s.is_null()).cloned().unwrap_or_else(any)),
        ]));
        view.insert("tools", Tree::from(tools));
        view.insert("tool_choice", Tree::map([("mode", Tree::from("named")), ("name", Tree::from(name.as_str()))]));
        view.insert("format", Tree::Null);
        Ok(Some(name))
    }

    /// Removes a tool choice that refers to tools that were dropped. A choice that the dialect could not read is
    /// dropped too, unless the backend reads it from the raw request.
    fn choice(&mut self, view: &mut Tree, kept: &[Tree]) -> Result<(), Fault> {
        let param = self.client.param_in("tool_choice", self.raw);
        let mode = view.get("tool_choice").map(|c| text_field(c, "mode")).unwrap_or_default().to_owned();
        let name = view.get("tool_choice").map(|c| text_field(c, "name")).unwrap_or_default().to_owned();
        if mode.is_empty() && self.sent_choice().is_some() {
            let sent = self.raw.and_then(|r| r.get(&param)).and_then(Tree::as_map).unwrap_or(&[]);
            if !sent.iter().any(|(name, _)| self.template.reads.nested(&param, name)) {
                self.drop_or_reject_choice(&param)?;
            }
            return Ok(());
        }
        let offered = !list(view, "tools").is_empty();
        let absent = match mode.as_str() {
            "auto" | "none" => kept.is_empty(),
            "required" => offered && kept.is_empty(),
            "named" => offered && !kept.iter().any(|t| text_field(t, "name") == name),
            _ => false,
        };
        if absent {
            view.insert("tool_choice", Tree::Null);
            if matches!(mode.as_str(), "required" | "named") {
                self.drop_or_reject_choice(&param)?;
            }
        }
        Ok(())
    }

    fn drop_or_reject_choice(&mut self, param: &str) -> Result<(), Fault> {
        let what = format!("this `{param}`");
        self.drop_or_reject(self.capabilities.on_unsupported_field("tool_choice"), param.to_owned(), &what)
    }

    fn sent_choice(&self) -> Option<&Tree> {
        let cursor = Cursor::new(self.raw?);
        let selectors = self.client.tool_choice.iter().flat_map(FieldMapping::selectors);
        selectors.filter_map(|s| s.one(&cursor)).find(|v| !v.is_null())
    }

    fn items(&mut self, items: &[Tree]) -> Result<Vec<Tree>, Fault> {
        let leading = items.iter().take_while(|i| is_leading_instruction(i)).count();
        let mut kept = Vec::new();
        for (at, item) in items.iter().enumerate() {
            match text_field(item, "type") {
                "reasoning" | "other" if !self.template.reads.items() => {
                    let kind = item.get("kind").and_then(Tree::as_str).unwrap_or("reasoning").to_owned();
                    self.drop_or_reject(OnUnsupported::Drop, format!("items.{kind}"), "")?;
                }
                // A backend that does not support custom tools does not support calls of them either.
                "call"
                    if text_field(item, "kind") == "custom"
                        && self.capabilities.on_tool("custom", None) != OnUnsupported::Forward =>
                {
                    let mut call = item.clone();
                    let input = Tree::map([(WRAPPED_INPUT, Tree::from(text_field(item, "arguments")))]);
                    call.insert("kind", Tree::from("function"));
                    call.insert("arguments", Tree::from(input.to_json()));
                    kept.push(call);
                }
                _ => {
                    let role = if text_field(item, "type") == "result" { "tool" } else { text_field(item, "role") };
                    let text_only = at < leading && self.template.reads.instructions_as_text()
                        || self.capabilities.text_only_roles.iter().any(|r| r == role);
                    kept.push(self.parts(item, text_only)?);
                }
            }
        }
        Ok(kept)
    }

    fn parts(&mut self, item: &Tree, text_only: bool) -> Result<Tree, Fault> {
        let parts = list(item, "parts");
        let mut kept = Vec::new();
        for part in parts {
            let kind = text_field(part, "type");
            let action = match self.capabilities.on_content_part(kind) {
                OnUnsupported::Forward if text_only && kind != "text" => OnUnsupported::Drop,
                action => action,
            };
            if action != OnUnsupported::Forward {
                self.drop_or_reject(action, format!("parts.{kind}"), &format!("content parts of the type `{kind}`"))?;
                continue;
            }
            if !matches!(text_field(part, "detail"), "" | "auto") && !self.template.reads.element_field("detail") {
                self.drop_or_reject(OnUnsupported::Drop, format!("parts.{kind}.detail"), "")?;
            }
            kept.push(part.clone());
        }
        let mut item = item.clone();
        if kept.len() < parts.len() {
            let text: String = kept.iter().map(|p| text_field(p, "text")).collect();
            item.insert("text", Tree::from(text));
            item.insert("parts", Tree::from(kept));
        }
        Ok(item)
    }

    fn scalars(&mut self, view: &mut Tree) -> Result<(), Fault> {
        for scalar in OPTIONAL_FIELDS {
            if self.template.reads.scalar(scalar) || !view.get(scalar).is_some_and(|v| has_effect(scalar, v)) {
                continue;
            }
            let param = match *scalar {
                "format" => self.format_param(),
                _ => self.client.param_in(scalar, self.raw),
            };
            let what = format!("`{param}`");
            self.drop_or_reject(self.capabilities.on_unsupported_field(scalar), param, &what)?;
        }
        Ok(())
    }

    /// The request field that contains the format: the parent of its first member.
    fn format_param(&self) -> String {
        let cursor = self.raw.map(Cursor::new);
        let selectors = self.client.format.iter().flat_map(FieldMapping::selectors);
        let sent = cursor.and_then(|c| selectors.filter(|s| s.one(&c).is_some()).map(|s| s.param(&c)).next());
        let parent = sent.as_deref().and_then(|param| param.rsplit_once('.'));
        parent.map_or("format", |(parent, _)| parent).to_owned()
    }

    /// Top-level fields that the client's dialect does not know.
    fn members(&mut self, view: &mut Tree) -> Result<(), Fault> {
        let extra = view.get("extra").and_then(Tree::as_map).unwrap_or(&[]).to_vec();
        let mut forwarded = Vec::new();
        for (name, value) in extra {
            if value.is_null() || self.template.reads.member(&name) {
                continue;
            }
            match self.capabilities.unknown_fields {
                OnUnsupported::Forward => forwarded.push((name, value)),
                action => self.drop_or_reject(action, name.to_string(), &format!("`{name}`"))?,
            }
        }
        view.insert("forwarded", Tree::Map(forwarded));
        Ok(())
    }

    /// Unknown nested fields of objects that the dialect reads in part.
    fn inner_members(&mut self) -> Result<(), Fault> {
        let null = Tree::Null;
        let cursor = Cursor::new(&null);
        let scalars = self.client.scalars.iter().filter(|r| OPTIONAL_FIELDS.contains(&r.field.name));
        let selectors = scalars.chain(&self.client.format).flat_map(FieldMapping::selectors);
        let read: Vec<Vec<String>> =
            selectors.map(|s| s.param(&cursor).split('.').map(str::to_owned).collect()).collect();
        for (member, value) in self.raw.and_then(Tree::as_map).unwrap_or(&[]) {
            let here: Vec<&[String]> = read.iter().filter(|p| p[0] == **member).map(Vec::as_slice).collect();
            if here.is_empty() || here.iter().any(|path| path.len() == 1) {
                continue;
            }
            for (name, value) in value.as_map().unwrap_or(&[]) {
                let known = here.iter().any(|path| path[1] == **name) || self.template.reads.nested(member, name);
                if !value.is_null() && !known {
                    // A nested field cannot be forwarded without its object.
                    let action = if self.capabilities.unknown_fields == OnUnsupported::Reject {
                        OnUnsupported::Reject
                    } else {
                        OnUnsupported::Drop
                    };
                    self.drop_or_reject(action, format!("{member}.{name}"), &format!("`{member}.{name}`"))?;
                }
            }
        }
        Ok(())
    }
}

/// The name of the answer tool if the client's format has none.
const DEFAULT_ANSWER_TOOL: &str = "answer";

/// Whether a value requests anything that differs from the default.
fn has_effect(scalar: &str, value: &Tree) -> bool {
    match scalar {
        "n" => value.as_u64().is_some_and(|n| n > 1),
        "parallel_tool_calls" => value.as_bool() == Some(false),
        "tool_choice" => !matches!(text_field(value, "mode"), "" | "auto"),
        "format" => !matches!(text_field(value, "kind"), "" | "text"),
        _ => match value {
            Tree::Null => false,
            Tree::List(items) => !items.is_empty(),
            Tree::Map(members) => !members.is_empty(),
            _ => true,
        },
    }
}

/// Merges the leading system and developer messages into one.
fn merge_system_messages(items: &mut Vec<Tree>) {
    let leading = items.iter().take_while(|i| is_leading_instruction(i)).count();
    if leading < 2 {
        return;
    }
    let text = items[..leading].iter().map(|i| text_field(i, "text")).collect::<Vec<_>>().join("\n\n");
    let all: Vec<Tree> = items[..leading].iter().flat_map(|i| list(i, "parts")).cloned().collect();
    let parts = match all.iter().all(|p| text_field(p, "type") == "text") {
        true => vec![Tree::map([("type", Tree::from("text")), ("text", Tree::from(text.as_str()))])],
        false => all,
    };
    let mut merged = items[0].clone();
    merged.insert("text", Tree::from(text));
    merged.insert("parts", Tree::from(parts));
    items.splice(..leading, [merged]);
}

/// A custom tool as a function with one string parameter.
fn wrap_tool(tool: &Tree) -> Tree {
    let text = Tree::map([("type", Tree::from("string"))]);
    let parameters = Tree::map([
        ("type", Tree::from("object")),
        ("properties", Tree::map([(WRAPPED_INPUT, text)])),
        ("required", Tree::from(vec![Tree::from(WRAPPED_INPUT)])),
        ("additionalProperties", Tree::from(false)),
    ]);
    let mut tool = tool.clone();
    tool.insert("kind", Tree::from("function"));
    tool.insert("parameters", parameters);
    tool
}

fn map_roles(view: &mut Tree, name: &str, capabilities: &Capabilities) {
    let Tree::Map(fields) = view else { return };
    let Some((_, Tree::List(messages))) = fields.iter_mut().find(|(k, _)| &**k == name) else { return };
    for message in messages {
        let role = text_field(message, "role");
        let mapped = capabilities.role(role);
        if mapped != role {
            let mapped = Tree::from(mapped);
            message.insert("role", mapped);
        }
    }
}

fn list<'t>(tree: &'t Tree, key: &str) -> &'t [Tree] {
    tree.get(key).and_then(Tree::as_list).unwrap_or(&[])
}

fn text_field<'t>(tree: &'t Tree, key: &str) -> &'t str {
    tree.get(key).and_then(Tree::as_str).unwrap_or_default()
}

//! A request as this backend can take it: roles mapped, tools and parts sorted out. What does not fit is refused, or
//! dropped and named: nothing is lost silently.

use crate::domain::request::{WRAPPED_INPUT, leads};
use crate::domain::{Fault, FaultKind, Tree, TurnRequest};
use crate::engine::select::Cursor;
use crate::mapping::config::backend_request::AskPlan;
use crate::mapping::config::capabilities::{Fate, Instructions, Manners, OPTIONAL};
use crate::mapping::config::dialect_request::RequestPlan;
use crate::mapping::language::field::Read;

#[derive(Debug)]
pub struct Prepared {
    pub request: TurnRequest,
    /// In the client's words.
    pub dropped: Vec<String>,
    /// Names of custom tools that travel as functions: a call of one is a custom call.
    pub wrapped: Vec<String>,
    /// The tool whose call is the answer.
    pub answer_tool: Option<String>,
}

pub fn prepare(
    request: &TurnRequest,
    ask: &AskPlan,
    manners: &Manners,
    client: &RequestPlan,
) -> Result<Prepared, Fault> {
    let mut way = Way { manners, ask, client, raw: request.view.get("raw"), dropped: Vec::new(), wrapped: Vec::new() };
    let mut view = request.view.clone();
    let tools = way.tools(list(&view, "tools"))?;
    way.choice(&mut view, &tools)?;
    view.insert("tools", Tree::from(tools));
    let answer_tool = way.answer_tool(&mut view)?;
    let mut items = way.items(list(&view, "items"))?;
    if manners.instructions == Instructions::Merged {
        merge(&mut items);
    }
    view.insert("items", Tree::from(items));
    way.scalars(&mut view)?;
    way.members(&mut view)?;
    way.inner_members()?;
    let mut request = TurnRequest::new(view);
    for views in ["items", "messages", "conversation", "history"] {
        map_roles(&mut request.view, views, manners);
    }
    Ok(Prepared { request, dropped: way.dropped, wrapped: way.wrapped, answer_tool })
}

struct Way<'a> {
    manners: &'a Manners,
    ask: &'a AskPlan,
    client: &'a RequestPlan,
    raw: Option<&'a Tree>,
    dropped: Vec<String>,
    wrapped: Vec<String>,
}

impl Way<'_> {
    /// Dropped, or refused: the client's word for it either way.
    fn lose(&mut self, fate: Fate, param: String, what: &str) -> Result<(), Fault> {
        if fate == Fate::Reject {
            let message = format!("this backend does not take {what}");
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
            let kind = word(tool, "kind");
            if !matches!(kind, "custom" | "other") {
                if tool.get("strict").and_then(Tree::as_bool) == Some(true) && !self.ask.reads.leaf("strict") {
                    self.lose(Fate::Drop, format!("tools[{at}].strict"), "")?;
                }
                kept.push(tool.clone());
                continue;
            }
            let own = tool.get("type").and_then(Tree::as_str);
            match self.manners.tool(kind, own) {
                Fate::Forward => kept.push(tool.clone()),
                Fate::Wrap if kind == "custom" => {
                    self.wrapped.push(word(tool, "name").to_owned());
                    kept.push(wrapped(tool));
                }
                fate => {
                    let what = format!("tools of the type `{}`", own.unwrap_or(kind));
                    self.lose(fate, format!("tools[{at}]"), &what)?;
                }
            }
        }
        Ok(kept)
    }

    /// A backend that knows no formats but knows tools gets the format as the arguments of one that it must call.
    fn answer_tool(&mut self, view: &mut Tree) -> Result<Option<String>, Fault> {
        let format = view.get("format").cloned().unwrap_or_default();
        let by_tool = self.manners.unsupported("format") == Fate::AsTool && !self.ask.reads.scalar("format");
        if !by_tool || !asks("format", &format) {
            return Ok(None);
        }
        let mut tools = list(view, "tools").to_vec();
        if !tools.is_empty() {
            // The model could not choose between the client's tools and the answer.
            let param = self.format_param();
            let message = format!("this backend does not take `{param}` together with tools");
            return Err(Fault::new(FaultKind::Unsupported, message).param(param));
        }
        let name = format.get("name").and_then(Tree::as_str).unwrap_or(ANSWER).to_owned();
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

    /// A choice is about tools that are there. What the dialect could not read of it is lost, unless the backend
    /// reads it as it was sent.
    fn choice(&mut self, view: &mut Tree, kept: &[Tree]) -> Result<(), Fault> {
        let param = self.client.param_in("tool_choice", self.raw);
        let mode = view.get("tool_choice").map(|c| word(c, "mode")).unwrap_or_default().to_owned();
        let name = view.get("tool_choice").map(|c| word(c, "name")).unwrap_or_default().to_owned();
        if mode.is_empty() && self.said_choice().is_some() {
            let sent = self.raw.and_then(|r| r.get(&param)).and_then(Tree::as_map).unwrap_or(&[]);
            if !sent.iter().any(|(name, _)| self.ask.reads.inner(&param, name)) {
                self.lose_choice(&param)?;
            }
            return Ok(());
        }
        let offered = !list(view, "tools").is_empty();
        let absent = match mode.as_str() {
            "auto" | "none" => kept.is_empty(),
            "required" => offered && kept.is_empty(),
            "named" => offered && !kept.iter().any(|t| word(t, "name") == name),
            _ => false,
        };
        if absent {
            view.insert("tool_choice", Tree::Null);
            if matches!(mode.as_str(), "required" | "named") {
                self.lose_choice(&param)?;
            }
        }
        Ok(())
    }

    fn lose_choice(&mut self, param: &str) -> Result<(), Fault> {
        let what = format!("this `{param}`");
        self.lose(self.manners.unsupported("tool_choice"), param.to_owned(), &what)
    }

    fn said_choice(&self) -> Option<&Tree> {
        let cursor = Cursor::new(self.raw?);
        let selectors = self.client.tool_choice.iter().flat_map(Read::selectors);
        selectors.filter_map(|s| s.one(&cursor)).find(|v| !v.is_null())
    }

    fn items(&mut self, items: &[Tree]) -> Result<Vec<Tree>, Fault> {
        let lead = items.iter().take_while(|i| leads(i)).count();
        let mut kept = Vec::new();
        for (at, item) in items.iter().enumerate() {
            match word(item, "type") {
                "reasoning" | "other" if !self.ask.reads.items() => {
                    let kind = item.get("kind").and_then(Tree::as_str).unwrap_or("reasoning").to_owned();
                    self.lose(Fate::Drop, format!("items.{kind}"), "")?;
                }
                // A backend that does not take custom tools takes no calls of them either.
                "call" if word(item, "kind") == "custom" && self.manners.tool("custom", None) != Fate::Forward => {
                    let mut call = item.clone();
                    let input = Tree::map([(WRAPPED_INPUT, Tree::from(word(item, "arguments")))]);
                    call.insert("kind", Tree::from("function"));
                    call.insert("arguments", Tree::from(input.to_json()));
                    kept.push(call);
                }
                _ => {
                    let role = if word(item, "type") == "result" { "tool" } else { word(item, "role") };
                    let text_only =
                        at < lead && self.ask.reads.leads_as_text() || self.manners.text_only.iter().any(|r| r == role);
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
            let kind = word(part, "type");
            let fate = match self.manners.part(kind) {
                Fate::Forward if text_only && kind != "text" => Fate::Drop,
                fate => fate,
            };
            if fate != Fate::Forward {
                self.lose(fate, format!("parts.{kind}"), &format!("content of the kind `{kind}`"))?;
                continue;
            }
            if !matches!(word(part, "detail"), "" | "auto") && !self.ask.reads.leaf("detail") {
                self.lose(Fate::Drop, format!("parts.{kind}.detail"), "")?;
            }
            kept.push(part.clone());
        }
        let mut item = item.clone();
        if kept.len() < parts.len() {
            let text: String = kept.iter().map(|p| word(p, "text")).collect();
            item.insert("text", Tree::from(text));
            item.insert("parts", Tree::from(kept));
        }
        Ok(item)
    }

    fn scalars(&mut self, view: &mut Tree) -> Result<(), Fault> {
        for scalar in OPTIONAL {
            if self.ask.reads.scalar(scalar) || !view.get(scalar).is_some_and(|v| asks(scalar, v)) {
                continue;
            }
            let param = match *scalar {
                "format" => self.format_param(),
                _ => self.client.param_in(scalar, self.raw),
            };
            let what = format!("`{param}`");
            self.lose(self.manners.unsupported(scalar), param, &what)?;
        }
        Ok(())
    }

    /// Where the client says its format: around the first of its members.
    fn format_param(&self) -> String {
        let cursor = self.raw.map(Cursor::new);
        let selectors = self.client.format.iter().flat_map(Read::selectors);
        let said = cursor.and_then(|c| selectors.filter(|s| s.one(&c).is_some()).map(|s| s.param(&c)).next());
        let around = said.as_deref().and_then(|param| param.rsplit_once('.'));
        around.map_or("format", |(around, _)| around).to_owned()
    }

    /// What the client sent and its dialect does not know.
    fn members(&mut self, view: &mut Tree) -> Result<(), Fault> {
        let extra = view.get("extra").and_then(Tree::as_map).unwrap_or(&[]).to_vec();
        let mut forwarded = Vec::new();
        for (name, value) in extra {
            if value.is_null() || self.ask.reads.member(&name) {
                continue;
            }
            match self.manners.unknown_fields {
                Fate::Forward => forwarded.push((name, value)),
                fate => self.lose(fate, name.to_string(), &format!("`{name}`"))?,
            }
        }
        view.insert("forwarded", Tree::Map(forwarded));
        Ok(())
    }

    /// Of a member that the dialect reads in part: the rest of it.
    fn inner_members(&mut self) -> Result<(), Fault> {
        let null = Tree::Null;
        let cursor = Cursor::new(&null);
        let scalars = self.client.scalars.iter().filter(|r| OPTIONAL.contains(&r.field.name));
        let selectors = scalars.chain(&self.client.format).flat_map(Read::selectors);
        let read: Vec<Vec<String>> =
            selectors.map(|s| s.param(&cursor).split('.').map(str::to_owned).collect()).collect();
        for (member, value) in self.raw.and_then(Tree::as_map).unwrap_or(&[]) {
            let here: Vec<&[String]> = read.iter().filter(|p| p[0] == **member).map(Vec::as_slice).collect();
            if here.is_empty() || here.iter().any(|path| path.len() == 1) {
                continue;
            }
            for (name, value) in value.as_map().unwrap_or(&[]) {
                let known = here.iter().any(|path| path[1] == **name) || self.ask.reads.inner(member, name);
                if !value.is_null() && !known {
                    // It cannot be forwarded by itself.
                    let fate = if self.manners.unknown_fields == Fate::Reject { Fate::Reject } else { Fate::Drop };
                    self.lose(fate, format!("{member}.{name}"), &format!("`{member}.{name}`"))?;
                }
            }
        }
        Ok(())
    }
}

/// What the answer's tool is called when the client gives it no name.
const ANSWER: &str = "answer";

/// Does a value ask for anything that the backend would not do anyway?
fn asks(scalar: &str, value: &Tree) -> bool {
    match scalar {
        "n" => value.as_u64().is_some_and(|n| n > 1),
        "parallel" => value.as_bool() == Some(false),
        "tool_choice" => !matches!(word(value, "mode"), "" | "auto"),
        "format" => !matches!(word(value, "kind"), "" | "text"),
        _ => match value {
            Tree::Null => false,
            Tree::List(items) => !items.is_empty(),
            Tree::Map(members) => !members.is_empty(),
            _ => true,
        },
    }
}

/// The leading system and developer messages as one.
fn merge(items: &mut Vec<Tree>) {
    let lead = items.iter().take_while(|i| leads(i)).count();
    if lead < 2 {
        return;
    }
    let text = items[..lead].iter().map(|i| word(i, "text")).collect::<Vec<_>>().join("\n\n");
    let all: Vec<Tree> = items[..lead].iter().flat_map(|i| list(i, "parts")).cloned().collect();
    let parts = match all.iter().all(|p| word(p, "type") == "text") {
        true => vec![Tree::map([("type", Tree::from("text")), ("text", Tree::from(text.as_str()))])],
        false => all,
    };
    let mut merged = items[0].clone();
    merged.insert("text", Tree::from(text));
    merged.insert("parts", Tree::from(parts));
    items.splice(..lead, [merged]);
}

fn wrapped(tool: &Tree) -> Tree {
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

fn map_roles(view: &mut Tree, name: &str, manners: &Manners) {
    let Tree::Map(fields) = view else { return };
    let Some((_, Tree::List(messages))) = fields.iter_mut().find(|(k, _)| &**k == name) else { return };
    for message in messages {
        let role = word(message, "role");
        let mapped = manners.role(role);
        if mapped != role {
            let mapped = Tree::from(mapped);
            message.insert("role", mapped);
        }
    }
}

fn list<'t>(tree: &'t Tree, key: &str) -> &'t [Tree] {
    tree.get(key).and_then(Tree::as_list).unwrap_or(&[])
}

fn word<'t>(tree: &'t Tree, key: &str) -> &'t str {
    tree.get(key).and_then(Tree::as_str).unwrap_or_default()
}

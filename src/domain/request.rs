//! What a client asks, in our words: the variables below `request`, and the few scalars that Rust itself needs.

use super::Tree;

/// A request as every backend and every frame sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRequest {
    pub model: String,
    pub stream: bool,
    pub usage: bool,
    pub n: usize,
    /// Everything, as `request.*` reads it (see `shape::Shape::Request`).
    pub view: Tree,
}

impl TurnRequest {
    /// `view` has the scalars, `items`, `tools` and `extra`; the derived views are added here.
    pub fn new(mut view: Tree) -> TurnRequest {
        let mut items = view.get("items").and_then(Tree::as_list).unwrap_or(&[]).to_vec();
        items.iter_mut().for_each(derive);
        distinct(&mut items);
        let calls: Vec<Tree> = items.iter().filter(|i| word(i, "type") == "call").cloned().collect();
        for result in items.iter_mut().filter(|i| word(i, "type") == "result") {
            let call = calls.iter().find(|c| c.get("id") == result.get("call_id"));
            for key in ["name", "kind"] {
                result.insert(key, call.and_then(|c| c.get(key)).cloned().unwrap_or_default());
            }
        }
        view.insert("items", Tree::from(items.clone()));
        let lead = items.iter().take_while(|i| leads(i)).count();
        view.insert("messages", messages(&items));
        view.insert("conversation", messages(&items[lead..]));
        let trailing_user = items.last().is_some_and(is_user);
        let kept = if trailing_user { items.len() - 1 } else { items.len() };
        view.insert("history", Tree::from(items[..kept].to_vec()));
        view.insert("last", items.last().cloned().unwrap_or_default());
        let last_parts = items.last().filter(|i| is_user(i)).and_then(|i| i.get("parts").cloned());
        view.insert("last_user_parts", last_parts.unwrap_or_else(|| Tree::from(Vec::new())));
        let last_text = items.iter().rev().find(|i| is_user(i)).and_then(|i| i.get("text").cloned());
        view.insert("last_user_text", last_text.unwrap_or_default());
        view.insert("instructions", instructions(&items));
        TurnRequest {
            model: view.get("model").and_then(Tree::as_str).unwrap_or_default().to_owned(),
            stream: view.get("stream").and_then(Tree::as_bool).unwrap_or(false),
            usage: view.get("usage").and_then(Tree::as_bool).unwrap_or(false),
            n: view.get("n").and_then(Tree::as_u64).unwrap_or(1).max(1) as usize,
            view,
        }
    }

    /// A request that asks for nothing in particular: what `test` and `explain` use when none is given.
    pub fn plain(model: &str, stream: bool) -> TurnRequest {
        TurnRequest::new(Tree::map([
            ("model", Tree::from(model)),
            ("stream", Tree::from(stream)),
            ("n", Tree::from(1i64)),
            ("items", Tree::from(Vec::new())),
            ("tools", Tree::from(Vec::new())),
            ("extra", Tree::Map(Vec::new())),
        ]))
    }
}

fn word<'t>(item: &'t Tree, key: &str) -> &'t str {
    item.get(key).and_then(Tree::as_str).unwrap_or_default()
}

/// Is this an instruction of the operator's, which stands before the conversation?
pub fn leads(item: &Tree) -> bool {
    word(item, "type") == "message" && matches!(word(item, "role"), "system" | "developer")
}

/// What can be read out of an item: the arguments of a call as JSON, the bytes behind a `data:` URL.
fn derive(item: &mut Tree) {
    if word(item, "type") == "call" {
        let text = word(item, "arguments").trim();
        let parsed = match text {
            "" => Some(Tree::Map(Vec::new())),
            _ => Tree::parse(text.as_bytes()).ok().filter(|t| t.as_map().is_some()),
        };
        let input = parsed.unwrap_or_else(|| Tree::map([(WRAPPED_INPUT, Tree::from(text))]));
        item.insert("input", input);
    }
    if item.get("parts").is_some() {
        let plain = is_plain(item.get("parts"));
        item.insert("plain", Tree::from(plain));
    }
    let Tree::Map(fields) = item else { return };
    let Some((_, Tree::List(parts))) = fields.iter_mut().find(|(k, _)| &**k == "parts") else { return };
    for part in parts {
        let url = ["url", "data"].into_iter().map(|k| word(part, k)).find(|t| t.starts_with("data:"));
        let split = url.and_then(|u| u.strip_prefix("data:")?.split_once(";base64,"));
        // `;charset=…` and `;name=…` are no part of the type.
        let bare = |media: &str| Tree::from(media.split(';').next().unwrap_or_default());
        if let Some((media, base64)) = split.map(|(m, b)| (bare(m), Tree::from(b))) {
            part.insert("media", media);
            part.insert("base64", base64);
        }
    }
}

/// Tools that the backend knows as something else than the client does: their calls are turned back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Masks {
    /// Custom tools that travel as functions.
    pub custom: Vec<String>,
    /// The tool whose arguments are the answer.
    pub answer: Option<String>,
}

/// Calls have ids of their own. Where a client names its calls by their function, the second call of one is told apart.
fn distinct(items: &mut [Tree]) {
    let mut seen: Vec<String> = Vec::new();
    // Calls without a result yet, by the client's id.
    let mut open: Vec<(String, String)> = Vec::new();
    for item in items {
        match word(item, "type") {
            "call" => {
                let id = word(item, "id").to_owned();
                let mut own = id.clone();
                let mut count = 1;
                while seen.contains(&own) {
                    count += 1;
                    own = format!("{id}_{count}");
                }
                if own != id {
                    item.insert("id", Tree::from(own.as_str()));
                }
                seen.push(own.clone());
                open.push((id, own));
            }
            "result" => {
                if let Some(at) = open.iter().position(|(id, _)| id == word(item, "call_id")) {
                    item.insert("call_id", Tree::from(open.remove(at).1));
                }
            }
            _ => {}
        }
    }
}

/// The one argument of a custom tool that travels as a function.
pub const WRAPPED_INPUT: &str = "input";

fn is_user(item: &Tree) -> bool {
    word(item, "type") == "message" && word(item, "role") == "user"
}

/// Adjacent calls and the text around them become one assistant message; their results follow it.
fn messages(items: &[Tree]) -> Tree {
    let mut out: Vec<Tree> = Vec::new();
    for item in items {
        match word(item, "type") {
            "call" => {
                let call = Tree::map(
                    ["id", "name", "kind", "arguments", "input"].map(|k| (k, item.get(k).cloned().unwrap_or_default())),
                );
                if out.last().is_none_or(|m| word(m, "role") != "assistant") {
                    out.push(message("assistant", None, None));
                }
                if let Some(Tree::Map(fields)) = out.last_mut()
                    && let Some((_, Tree::List(calls))) = fields.iter_mut().find(|(k, _)| &**k == "calls")
                {
                    calls.push(call);
                }
            }
            "result" => {
                let mut result = message("tool", item.get("parts"), item.get("text"));
                result.insert("call_id", item.get("call_id").cloned().unwrap_or_default());
                result.insert("name", item.get("name").cloned().unwrap_or_default());
                result.insert("failed", item.get("failed").cloned().unwrap_or_default());
                out.push(result);
            }
            "message" => match out.last_mut().filter(|m| word(item, "role") == "assistant" && has_calls(m)) {
                // Between calls and their results no message may stand.
                Some(calling) => append(calling, item),
                None => out.push(message(word(item, "role"), item.get("parts"), item.get("text"))),
            },
            _ => {}
        }
    }
    Tree::from(out)
}

fn has_calls(message: &Tree) -> bool {
    message.get("calls").and_then(Tree::as_list).is_some_and(|calls| !calls.is_empty())
}

fn append(message: &mut Tree, item: &Tree) {
    let text = format!("{}{}", word(message, "text"), word(item, "text"));
    let parts = |tree: &Tree| tree.get("parts").and_then(Tree::as_list).unwrap_or(&[]).to_vec();
    let parts = Tree::from([parts(message), parts(item)].concat());
    message.insert("plain", Tree::from(is_plain(Some(&parts))));
    message.insert("text", Tree::from(text));
    message.insert("parts", parts);
}

fn is_plain(parts: Option<&Tree>) -> bool {
    parts.and_then(Tree::as_list).unwrap_or(&[]).iter().all(|p| word(p, "type") == "text")
}

fn message(role: &str, parts: Option<&Tree>, text: Option<&Tree>) -> Tree {
    let plain = is_plain(parts);
    Tree::map([
        ("role", Tree::from(role)),
        ("plain", Tree::from(plain)),
        ("text", text.cloned().unwrap_or_default()),
        ("parts", parts.cloned().unwrap_or_else(|| Tree::from(Vec::new()))),
        ("calls", Tree::from(Vec::new())),
    ])
}

/// The texts of the system and developer messages that lead the conversation.
fn instructions(items: &[Tree]) -> Tree {
    let texts: Vec<&str> = items.iter().take_while(|i| leads(i)).map(|i| word(i, "text")).collect();
    if texts.is_empty() { Tree::Null } else { Tree::from(texts.join("\n\n")) }
}

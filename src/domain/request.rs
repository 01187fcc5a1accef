//! The client's request in normalized form: the variables under `request`, and the scalars that the code itself needs.

use super::Tree;

/// A normalized request, as templates and frames read it.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRequest {
    pub model: String,
    pub stream: bool,
    pub usage: bool,
    pub n: usize,
    /// All variables of `request.*` (see `variables::RecordType::Request`).
    pub view: Tree,
}

impl TurnRequest {
    /// `view` has the scalars, `items`, `tools` and `extra`; the derived variables are added here.
    pub fn new(mut view: Tree) -> TurnRequest {
        let mut items = view.get("items").and_then(Tree::as_list).unwrap_or(&[]).to_vec();
        items.iter_mut().for_each(add_derived_fields);
        deduplicate_call_ids(&mut items);
        let calls: Vec<Tree> = items.iter().filter(|i| str_field(i, "type") == "call").cloned().collect();
        for result in items.iter_mut().filter(|i| str_field(i, "type") == "result") {
            let call = calls.iter().find(|c| c.get("id") == result.get("call_id"));
            for key in ["name", "kind"] {
                result.insert(key, call.and_then(|c| c.get(key)).cloned().unwrap_or_default());
            }
        }
        view.insert("items", Tree::from(items.clone()));
        let lead = items.iter().take_while(|i| is_leading_instruction(i)).count();
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

    /// A request without content: the default of `test` and `explain`.
    pub fn minimal(model: &str, stream: bool) -> TurnRequest {
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

fn str_field<'t>(item: &'t Tree, key: &str) -> &'t str {
    item.get(key).and_then(Tree::as_str).unwrap_or_default()
}

/// True for system and developer messages. Those at the start of the conversation are its instructions.
pub fn is_leading_instruction(item: &Tree) -> bool {
    str_field(item, "type") == "message" && matches!(str_field(item, "role"), "system" | "developer")
}

/// Adds the arguments of a call as JSON, and the media type and bytes of a `data:` URL.
fn add_derived_fields(item: &mut Tree) {
    if str_field(item, "type") == "call" {
        let text = str_field(item, "arguments").trim();
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
        let url = ["url", "data"].into_iter().map(|k| str_field(part, k)).find(|t| t.starts_with("data:"));
        let split = url.and_then(|u| u.strip_prefix("data:")?.split_once(";base64,"));
        // Parameters such as `;charset=…` and `;name=…` are not part of the media type.
        let bare = |media: &str| Tree::from(media.split(';').next().unwrap_or_default());
        if let Some((media, base64)) = split.map(|(m, b)| (bare(m), Tree::from(b))) {
            part.insert("media", media);
            part.insert("base64", base64);
        }
    }
}

/// Tools that were sent to the backend in another form. Calls of them are converted back for the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolAliases {
    /// Custom tools that were sent as functions.
    pub custom: Vec<String>,
    /// The tool that replaces a response format; the arguments of its calls are the content of the response.
    pub answer: Option<String>,
}

/// Makes call ids unique. Some clients use the function's name as id, so a second call of it gets a suffix.
fn deduplicate_call_ids(items: &mut [Tree]) {
    let mut seen: Vec<String> = Vec::new();
    // Calls without a result yet, by the client's id.
    let mut open: Vec<(String, String)> = Vec::new();
    for item in items {
        match str_field(item, "type") {
            "call" => {
                let id = str_field(item, "id").to_owned();
                let mut unique = id.clone();
                let mut count = 1;
                while seen.contains(&unique) {
                    count += 1;
                    unique = format!("{id}_{count}");
                }
                if unique != id {
                    item.insert("id", Tree::from(unique.as_str()));
                }
                seen.push(unique.clone());
                open.push((id, unique));
            }
            "result" => {
                if let Some(at) = open.iter().position(|(id, _)| id == str_field(item, "call_id")) {
                    item.insert("call_id", Tree::from(open.remove(at).1));
                }
            }
            _ => {}
        }
    }
}

/// The only argument of a custom tool that is sent as a function.
pub const WRAPPED_INPUT: &str = "input";

fn is_user(item: &Tree) -> bool {
    str_field(item, "type") == "message" && str_field(item, "role") == "user"
}

/// Converts items to messages. Adjacent calls and the text around them become one assistant message; results follow it.
fn messages(items: &[Tree]) -> Tree {
    let mut out: Vec<Tree> = Vec::new();
    for item in items {
        match str_field(item, "type") {
            "call" => {
                let call = Tree::map(
                    ["id", "name", "kind", "arguments", "input"].map(|k| (k, item.get(k).cloned().unwrap_or_default())),
                );
                if out.last().is_none_or(|m| str_field(m, "role") != "assistant") {
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
            "message" => match out.last_mut().filter(|m| str_field(item, "role") == "assistant" && has_calls(m)) {
                // No message is allowed between calls and their results.
                Some(calling) => append_content(calling, item),
                None => out.push(message(str_field(item, "role"), item.get("parts"), item.get("text"))),
            },
            _ => {}
        }
    }
    Tree::from(out)
}

fn has_calls(message: &Tree) -> bool {
    message.get("calls").and_then(Tree::as_list).is_some_and(|calls| !calls.is_empty())
}

fn append_content(message: &mut Tree, item: &Tree) {
    let text = format!("{}{}", str_field(message, "text"), str_field(item, "text"));
    let parts = |tree: &Tree| tree.get("parts").and_then(Tree::as_list).unwrap_or(&[]).to_vec();
    let parts = Tree::from([parts(message), parts(item)].concat());
    message.insert("plain", Tree::from(is_plain(Some(&parts))));
    message.insert("text", Tree::from(text));
    message.insert("parts", parts);
}

fn is_plain(parts: Option<&Tree>) -> bool {
    parts.and_then(Tree::as_list).unwrap_or(&[]).iter().all(|p| str_field(p, "type") == "text")
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
    let texts: Vec<&str> =
        items.iter().take_while(|i| is_leading_instruction(i)).map(|i| str_field(i, "text")).collect();
    if texts.is_empty() { Tree::Null } else { Tree::from(texts.join("\n\n")) }
}

//! What a backend supports, and what happens to unsupported parts of a request. Set in the backend file; an entry of
//! gateway.yaml can override it.

use crate::diagnostics::Code;
use crate::domain::{Tree, named_enum};
use crate::mapping::source::field_reader::{FieldReader, LoadContext, constant, text_of};
use crate::mapping::source::yaml::Entry;

named_enum! {
    /// Whether a stream is requested from the backend.
    pub enum StreamMode {
        AsRequested = "as_requested",
        Always = "always",
        Never = "never",
    }
}

named_enum! {
    /// What happens to something that a backend may not support. Dropped fields are listed in a response header.
    pub enum OnUnsupported {
        Forward = "forward",
        Drop = "drop",
        Reject = "reject",
        /// `format` only: the response format becomes the parameters of a tool, and the call of that tool the response.
        AsTool = "as_tool",
        /// Tools only: a custom tool is sent as a function with one string argument; its calls are converted back.
        Wrap = "wrap",
    }
}

named_enum! {
    /// Whether the leading system and developer messages are sent separately or merged into one.
    pub enum SystemMessages {
        Separate = "separate",
        Merge = "merge",
    }
}

#[derive(Clone, Debug)]
pub struct Capabilities {
    pub stream: StreamMode,
    pub system_messages: SystemMessages,
    pub role_map: Vec<(String, String)>,
    /// By kind (`custom`, `other`) or by the client's type of the tool.
    pub tools: Vec<(String, OnUnsupported)>,
    /// By kind of content part.
    pub content_parts: Vec<(String, OnUnsupported)>,
    /// Roles with text-only messages: `tool` for the result of a call.
    pub text_only_roles: Vec<String>,
    /// Request fields that the body does not read.
    pub unsupported: Vec<(String, OnUnsupported)>,
    pub unknown_fields: OnUnsupported,
    pub fields: FieldEdits,
}

/// Final edits of the body, by the names of members in the body.
#[derive(Clone, Debug, Default)]
pub struct FieldEdits {
    pub default: Vec<(String, Tree)>,
    pub force: Vec<(String, Tree)>,
    pub drop: Vec<String>,
    pub reject: Vec<String>,
    pub rename: Vec<(String, String)>,
}

/// Fields that a request depends on: by default rejected, not dropped.
const REJECTED_BY_DEFAULT: &[&str] = &["n", "format", "tools", "previous_response_id"];

impl Default for Capabilities {
    fn default() -> Self {
        Capabilities {
            stream: StreamMode::AsRequested,
            system_messages: SystemMessages::Separate,
            role_map: Vec::new(),
            tools: Vec::new(),
            content_parts: Vec::new(),
            text_only_roles: Vec::new(),
            unsupported: Vec::new(),
            unknown_fields: OnUnsupported::Drop,
            fields: FieldEdits::default(),
        }
    }
}

/// The fields that a backend may or may not support. The gateway itself handles `model`, `stream` and `usage`.
pub const OPTIONAL_FIELDS: &[&str] = &[
    "n",
    "max_tokens",
    "temperature",
    "top_p",
    "stop",
    "seed",
    "reasoning_effort",
    "parallel_tool_calls",
    "metadata",
    "user",
    "previous_response_id",
    "tool_choice",
    "format",
    "tools",
];
pub(crate) const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool"];
pub(crate) const CONTENT_PART_KINDS: &[&str] = &["image", "file", "audio", "refusal"];
pub(crate) const ON_UNSUPPORTED: &[&str] = &["forward", "drop", "reject"];
pub(crate) const ON_CUSTOM_TOOL: &[&str] = &["forward", "drop", "reject", "wrap"];
pub(crate) const ON_UNSUPPORTED_FIELD: &[&str] = &["drop", "reject"];
pub(crate) const ON_UNSUPPORTED_FORMAT: &[&str] = &["drop", "reject", "as_tool"];

impl Capabilities {
    /// `client_type`: the client's type of the tool, which takes precedence over its kind.
    pub fn on_tool(&self, kind: &str, client_type: Option<&str>) -> OnUnsupported {
        let found = |name: &str| self.tools.iter().find(|(k, _)| k == name).map(|(_, action)| *action);
        let default = if kind == "custom" { OnUnsupported::Wrap } else { OnUnsupported::Drop };
        client_type.and_then(found).or_else(|| found(kind)).unwrap_or(default)
    }

    pub fn on_content_part(&self, kind: &str) -> OnUnsupported {
        self.content_parts.iter().find(|(k, _)| k == kind).map_or(OnUnsupported::Forward, |(_, action)| *action)
    }

    pub fn on_unsupported_field(&self, field: &str) -> OnUnsupported {
        let set = self.unsupported.iter().find(|(k, _)| k == field).map(|(_, action)| *action);
        set.unwrap_or(if REJECTED_BY_DEFAULT.contains(&field) { OnUnsupported::Reject } else { OnUnsupported::Drop })
    }

    pub fn role<'r>(&'r self, role: &'r str) -> &'r str {
        self.role_map.iter().find(|(from, _)| from == role).map_or(role, |(_, to)| to)
    }

    /// Applies the values of `fields` over these.
    pub fn with_overrides(&self, fields: &FieldReader, cx: LoadContext) -> Capabilities {
        let mut capabilities = self.clone();
        if let Some(mode) = fields.get("stream").and_then(|n| cx.one_of(n, StreamMode::NAMES)) {
            capabilities.stream = StreamMode::from_name(mode).unwrap_or(capabilities.stream);
        }
        if let Some(word) = fields.get("system_messages").and_then(|n| cx.one_of(n, SystemMessages::NAMES)) {
            capabilities.system_messages = SystemMessages::from_name(word).unwrap_or(capabilities.system_messages);
        }
        if let Some(word) = fields.get("unknown_fields").and_then(|n| cx.one_of(n, ON_UNSUPPORTED)) {
            capabilities.unknown_fields = OnUnsupported::from_name(word).unwrap_or(capabilities.unknown_fields);
        }
        for entry in fields.map("role_map") {
            if !ROLES.contains(&entry.key.as_str()) {
                let message = format!("unknown role `{}`", entry.key);
                cx.unknown(Code::UnknownValue, entry.key_span, message, &entry.key, ROLES.iter().copied());
            } else if let Some(to) = text_of(&entry.value, cx) {
                set(&mut capabilities.role_map, &entry.key, to.to_owned());
            }
        }
        for entry in fields.map("tools") {
            if let Some(action) =
                parse_action(entry, if entry.key == "custom" { ON_CUSTOM_TOOL } else { ON_UNSUPPORTED }, cx)
            {
                set(&mut capabilities.tools, &entry.key, action);
            }
        }
        parse_actions(
            &mut capabilities.content_parts,
            fields.map("content_parts"),
            "content part",
            CONTENT_PART_KINDS,
            ON_UNSUPPORTED,
            cx,
        );
        if fields.get("text_only_roles").is_some() {
            let roles = fields.list("text_only_roles").iter().filter_map(|n| text_of(n, cx));
            capabilities.text_only_roles = roles.map(str::to_owned).collect();
        }
        for entry in fields.map("unsupported") {
            let allowed = if entry.key == "format" { ON_UNSUPPORTED_FORMAT } else { ON_UNSUPPORTED_FIELD };
            let entries = std::slice::from_ref(entry);
            parse_actions(&mut capabilities.unsupported, entries, "request field", OPTIONAL_FIELDS, allowed, cx);
        }
        if let Some(inner) = fields.get("fields").and_then(|n| FieldReader::of(n, "`fields:`", cx)) {
            capabilities.fields.apply_overrides(&inner, cx);
            inner.finish();
        }
        capabilities
    }
}

impl FieldEdits {
    fn apply_overrides(&mut self, fields: &FieldReader, cx: LoadContext) {
        for entry in fields.map("default") {
            set(&mut self.default, &entry.key, constant(&entry.value));
        }
        for entry in fields.map("force") {
            set(&mut self.force, &entry.key, constant(&entry.value));
        }
        for entry in fields.map("rename") {
            if let Some(to) = text_of(&entry.value, cx) {
                set(&mut self.rename, &entry.key, to.to_owned());
            }
        }
        self.drop.extend(fields.list("drop").iter().filter_map(|n| text_of(n, cx)).map(str::to_owned));
        self.reject.extend(fields.list("reject").iter().filter_map(|n| text_of(n, cx)).map(str::to_owned));
    }
}

fn parse_actions(
    into: &mut Vec<(String, OnUnsupported)>,
    entries: &[Entry],
    noun: &str,
    known: &[&str],
    allowed: &[&'static str],
    cx: LoadContext,
) {
    for entry in entries {
        if !known.contains(&entry.key.as_str()) {
            let message = format!("unknown {noun} `{}`", entry.key);
            cx.unknown(Code::UnknownValue, entry.key_span, message, &entry.key, known.iter().copied());
        } else if let Some(action) = parse_action(entry, allowed, cx) {
            set(into, &entry.key, action);
        }
    }
}

fn parse_action(entry: &Entry, allowed: &[&'static str], cx: LoadContext) -> Option<OnUnsupported> {
    cx.one_of(&entry.value, allowed).and_then(OnUnsupported::from_name)
}

fn set<T>(list: &mut Vec<(String, T)>, key: &str, value: T) {
    match list.iter_mut().find(|(k, _)| k == key) {
        Some((_, old)) => *old = value,
        None => list.push((key.to_owned(), value)),
    }
}

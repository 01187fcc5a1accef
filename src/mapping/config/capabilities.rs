//! What a backend takes and what becomes of the rest. The backend file says it; an entry of gateway.yaml refines it.

use crate::diagnostics::Code;
use crate::domain::{Tree, words};
use crate::mapping::source::field_reader::{Cx, Fields, constant, text_of};
use crate::mapping::source::yaml::Entry;

words! {
    /// Is the backend asked for a stream?
    pub enum StreamMode {
        AsAsked = "as_asked",
        Always = "always",
        Never = "never",
    }
}

words! {
    /// What becomes of something that a backend may not take. What is dropped is named in the answer's head.
    pub enum Fate {
        Forward = "forward",
        Drop = "drop",
        Reject = "reject",
        /// `format` only: the form of the answer is the form of a tool's arguments, and the call is the answer.
        AsTool = "as_tool",
        /// Tools only: a custom tool travels as a function with one text argument, and comes back as what it was.
        Wrap = "wrap",
    }
}

words! {
    /// The system and developer messages that lead a conversation: as they are, or as one.
    pub enum Instructions {
        Separate = "separate",
        Merged = "merged",
    }
}

#[derive(Clone, Debug)]
pub struct Manners {
    pub stream: StreamMode,
    pub instructions: Instructions,
    pub role_map: Vec<(String, String)>,
    /// By kind (`custom`, `other`) or by the client's own word for the type.
    pub tools: Vec<(String, Fate)>,
    /// By kind of content part.
    pub parts: Vec<(String, Fate)>,
    /// Roles whose messages hold nothing but text: `tool` for the result of a call.
    pub text_only: Vec<String>,
    /// Scalars of the request that the body does not read.
    pub unsupported: Vec<(String, Fate)>,
    pub unknown_fields: Fate,
    pub fields: FieldEdits,
}

/// Last changes to the members of the body, by their names in the body.
#[derive(Clone, Debug, Default)]
pub struct FieldEdits {
    pub default: Vec<(String, Tree)>,
    pub force: Vec<(String, Tree)>,
    pub drop: Vec<String>,
    pub reject: Vec<String>,
    pub rename: Vec<(String, String)>,
}

/// What a request loses that it cannot do without is refused rather than dropped.
const REFUSED: &[&str] = &["n", "format", "tools", "previous"];

impl Default for Manners {
    fn default() -> Self {
        Manners {
            stream: StreamMode::AsAsked,
            instructions: Instructions::Separate,
            role_map: Vec::new(),
            tools: Vec::new(),
            parts: Vec::new(),
            text_only: Vec::new(),
            unsupported: Vec::new(),
            unknown_fields: Fate::Drop,
            fields: FieldEdits::default(),
        }
    }
}

/// The scalars that a backend may or may not take; `model`, `stream` and `usage` are the gateway's own business.
pub const OPTIONAL: &[&str] = &[
    "n",
    "max_tokens",
    "temperature",
    "top_p",
    "stop",
    "seed",
    "effort",
    "parallel",
    "metadata",
    "user",
    "previous",
    "tool_choice",
    "format",
    "tools",
];
pub(crate) const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool"];
pub(crate) const PART_KINDS: &[&str] = &["image", "file", "audio", "refusal"];
pub(crate) const FATES: &[&str] = &["forward", "drop", "reject"];
pub(crate) const CUSTOM_FATES: &[&str] = &["forward", "drop", "reject", "wrap"];
pub(crate) const LOSSES: &[&str] = &["drop", "reject"];
pub(crate) const FORMAT_LOSSES: &[&str] = &["drop", "reject", "as_tool"];

impl Manners {
    pub fn tool(&self, kind: &str, own: Option<&str>) -> Fate {
        let found = |word: &str| self.tools.iter().find(|(k, _)| k == word).map(|(_, fate)| *fate);
        let built_in = if kind == "custom" { Fate::Wrap } else { Fate::Drop };
        own.and_then(found).or_else(|| found(kind)).unwrap_or(built_in)
    }

    pub fn part(&self, kind: &str) -> Fate {
        self.parts.iter().find(|(k, _)| k == kind).map_or(Fate::Forward, |(_, fate)| *fate)
    }

    pub fn unsupported(&self, scalar: &str) -> Fate {
        let said = self.unsupported.iter().find(|(k, _)| k == scalar).map(|(_, fate)| *fate);
        said.unwrap_or(if REFUSED.contains(&scalar) { Fate::Reject } else { Fate::Drop })
    }

    pub fn role<'r>(&'r self, role: &'r str) -> &'r str {
        self.role_map.iter().find(|(from, _)| from == role).map_or(role, |(_, to)| to)
    }

    /// What `fields` says, laid over what held before.
    pub fn refined(&self, fields: &Fields, cx: Cx) -> Manners {
        let mut manners = self.clone();
        if let Some(mode) = fields.get("stream").and_then(|n| cx.word(n, StreamMode::WORDS)) {
            manners.stream = StreamMode::from_word(mode).unwrap_or(manners.stream);
        }
        if let Some(word) = fields.get("instructions").and_then(|n| cx.word(n, Instructions::WORDS)) {
            manners.instructions = Instructions::from_word(word).unwrap_or(manners.instructions);
        }
        if let Some(word) = fields.get("unknown_fields").and_then(|n| cx.word(n, FATES)) {
            manners.unknown_fields = Fate::from_word(word).unwrap_or(manners.unknown_fields);
        }
        for entry in fields.map("role_map") {
            if !ROLES.contains(&entry.key.as_str()) {
                let message = format!("no role is called `{}`", entry.key);
                cx.unknown(Code::UnknownValue, entry.key_span, message, &entry.key, ROLES.iter().copied());
            } else if let Some(to) = text_of(&entry.value, cx) {
                set(&mut manners.role_map, &entry.key, to.to_owned());
            }
        }
        for entry in fields.map("tools") {
            if let Some(fate) = fate(entry, if entry.key == "custom" { CUSTOM_FATES } else { FATES }, cx) {
                set(&mut manners.tools, &entry.key, fate);
            }
        }
        fates(&mut manners.parts, fields.map("parts"), PART_KINDS, FATES, cx);
        if fields.get("text_only").is_some() {
            let roles = fields.list("text_only").iter().filter_map(|n| text_of(n, cx));
            manners.text_only = roles.map(str::to_owned).collect();
        }
        for entry in fields.map("unsupported") {
            let words = if entry.key == "format" { FORMAT_LOSSES } else { LOSSES };
            fates(&mut manners.unsupported, std::slice::from_ref(entry), OPTIONAL, words, cx);
        }
        if let Some(inner) = fields.get("fields").and_then(|n| Fields::of(n, "`fields:`", cx)) {
            manners.fields.refine(&inner, cx);
            inner.done();
        }
        manners
    }
}

impl FieldEdits {
    fn refine(&mut self, fields: &Fields, cx: Cx) {
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

fn fates(into: &mut Vec<(String, Fate)>, entries: &[Entry], known: &[&str], words: &[&'static str], cx: Cx) {
    for entry in entries {
        if !known.contains(&entry.key.as_str()) {
            let message = format!("nothing here is called `{}`", entry.key);
            cx.unknown(Code::UnknownValue, entry.key_span, message, &entry.key, known.iter().copied());
        } else if let Some(fate) = fate(entry, words, cx) {
            set(into, &entry.key, fate);
        }
    }
}

fn fate(entry: &Entry, words: &[&'static str], cx: Cx) -> Option<Fate> {
    cx.word(&entry.value, words).and_then(Fate::from_word)
}

fn set<T>(list: &mut Vec<(String, T)>, key: &str, value: T) {
    match list.iter_mut().find(|(k, _)| k == key) {
        Some((_, old)) => *old = value,
        None => list.push((key.to_owned(), value)),
    }
}

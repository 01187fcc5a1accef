//! What a backend supports, and what happens to unsupported parts of a request. Set in the backend file; an entry of
//! gateway.yaml can override it.

use super::capability_maps::{FieldAction, KeyedMap, OnContentPart, OnField, OnTool, OnUnknownField};
use crate::diagnostics::Code;
use crate::domain::request_item::ToolKind;
use crate::domain::{RoleNames, named_enum};
use crate::mapping::grammar::collections::{List, Map};
use crate::mapping::grammar::notation::{AnyValue, HeaderName, NameOf, Spanned, notation_schema, text_notation};
use crate::mapping::grammar::section;
use schemars::json_schema;

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
    /// What happens to reasoning that the client sends back.
    pub enum OnReasoning {
        Forward = "forward",
        /// Only reasoning with an id, a signature or encrypted content is forwarded; the rest is dropped.
        Identified = "identified",
        /// Only reasoning with a signature, or encrypted reasoning, is forwarded; the rest is dropped.
        Signed = "signed",
        Drop = "drop",
        Reject = "reject",
    }
}

named_enum! {
    /// What happens to a word that the client's dialect does not define.
    pub enum OnUnknownValue {
        Reject = "reject",
        Forward = "forward",
    }
}

named_enum! {
    /// Whether the leading system and developer messages are sent separately or merged into one.
    pub enum SystemMessages {
        Separate = "separate",
        Merge = "merge",
    }
}

named_enum! {
    /// How the texts of a system message with several parts are joined.
    pub enum SystemParts {
        /// With a blank line between them.
        Paragraphs = "paragraphs",
        Concat = "concat",
    }
}

section! {
    /// What a backend supports, and what happens to the rest of a request.
    #[subject = "capabilities"]
    pub struct Capabilities: Default {
        /// Whether a stream is requested from the backend. Whatever it then sends is read.
        #[extend("default" = StreamMode::AsRequested.name())]
        stream: Option<NameOf<StreamMode>>,
        /// Role to role, in messages: `{ developer: system }`.
        role_map: RoleNames = RoleNames::default(),
        /// `merge` combines the leading system and developer messages into one.
        #[extend("default" = SystemMessages::Separate.name())]
        system_messages: Option<NameOf<SystemMessages>>,
        /// How the texts of a system message with several parts become one: with a blank line between them, or
        /// concatenated as they are.
        #[extend("default" = SystemParts::Paragraphs.name())]
        system_parts: Option<NameOf<SystemParts>>,
        /// How tools are handled, by kind (`custom`, `other`) or by the client's own type name. `wrap`, for custom
        /// tools, sends the tool as a function with one text argument and converts its calls back into custom calls.
        /// Default: `wrap` for custom tools, `drop` for others.
        tools: KeyedMap<OnTool> = KeyedMap::default(),
        /// How content parts are handled, by kind. Default: `forward`.
        content_parts: KeyedMap<OnContentPart> = KeyedMap::default(),
        /// What happens to reasoning of earlier turns that the client sends back, if the body reads it: all of it is
        /// forwarded, only that with a signature or encrypted content (`signed`) or also with an id (`identified`), or none.
        #[extend("default" = OnReasoning::Forward.name())]
        reasoning: Option<NameOf<OnReasoning>>,
        /// Roles with messages that may contain only text. Other content parts are dropped and listed.
        text_only_roles: Option<List<String>>,
        /// How a request field is handled that the body does not read and that has an effect. `format: as_tool` sends
        /// the format as the parameters of a tool that must be called, and returns its call as the response text. A map
        /// is about single values, also of a field that the body reads: `{ required: reject, named: drop }`.
        /// Default: `reject` for `n`, `format`, `tools`, `previous_response_id` and `stored_prompt`, else `drop`.
        unsupported: KeyedMap<OnField> = KeyedMap::default(),
        /// How members of the client's body are handled that neither its dialect nor the body reads.
        #[extend("default" = OnUnsupported::Drop.name())]
        unknown_fields: Option<OnUnknownField>,
        /// What happens to words that are not among the `known_values` of the client's dialect, such as a reasoning
        /// effort of another server. They are forwarded only as far as the body reads them.
        #[extend("default" = OnUnknownValue::Reject.name())]
        unknown_values: Option<NameOf<OnUnknownValue>>,
        /// Headers of the client's request that are sent to the backend too. Headers of the backend file and of its entry
        /// in gateway.yaml take precedence.
        forward_headers: Option<List<Spanned<ForwardedHeader>>>,
        /// Final edits to the members of the body, by their names there: `reject`, `drop`, `default`, `force`,
        /// `rename`, in this order.
        fields: FieldEdits = FieldEdits::default(),
    }
}

section! {
    /// Final edits to the members of a backend's request body, by their names there.
    #[subject = "`fields:`"]
    pub struct FieldEdits: Default {
        /// A request with one of these members is rejected.
        reject: List<String> = List::default(),
        /// Members that are omitted.
        drop: List<String> = List::default(),
        /// Members that are added if they are missing.
        default: Map<AnyValue> = Map::default(),
        /// Members that are always set.
        force: Map<AnyValue> = Map::default(),
        /// Old name to new name.
        rename: Map<String> = Map::default(),
    }
}

/// Headers that belong to one connection or to the bytes of one body.
const NOT_FORWARDED: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

text_notation! {
    /// The name of a header that may be forwarded, in lower case.
    ForwardedHeader(String), |text, node, at| {
        let name = HeaderName::from_node(node, at)?.0;
        let is_allowed = !NOT_FORWARDED.contains(&name.as_str());
        if !is_allowed {
            at.cx.error(Code::UnknownValue, node.span, format!("the header `{text}` cannot be forwarded"));
        }
        is_allowed.then_some(name)
    }
}
notation_schema!(ForwardedHeader, |generator| {
    json_schema!({ "allOf": [generator.subschema_for::<HeaderName>()], "not": { "enum": NOT_FORWARDED } })
});

/// Fields that a request depends on: by default rejected, not dropped.
const REJECTED_BY_DEFAULT: &[&str] = &["n", "format", "tools", "previous_response_id", "stored_prompt"];

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
    "stored_prompt",
    "tool_choice",
    "format",
    "tools",
];

/// The members of a response format that a backend may or may not support, with their names in reports.
pub const FORMAT_MEMBERS: &[(&str, &str)] =
    &[("name", "format.name"), ("description", "format.description"), ("strict", "format.strict")];

impl Capabilities {
    /// `client_type`: the client's type of the tool, which takes precedence over its kind.
    pub fn on_tool(&self, kind: ToolKind, client_type: Option<&str>) -> OnUnsupported {
        let found = |name: &str| self.tools.get(name).copied();
        let default = if kind == ToolKind::Custom { OnUnsupported::Wrap } else { OnUnsupported::Drop };
        client_type.and_then(found).or_else(|| found(kind.name())).unwrap_or(default)
    }

    pub fn on_content_part(&self, kind: &str) -> OnUnsupported {
        self.content_parts.get(kind).copied().unwrap_or(OnUnsupported::Forward)
    }

    pub fn on_reasoning(&self) -> OnReasoning {
        self.reasoning.map_or(OnReasoning::Forward, |action| action.0)
    }

    pub fn on_unsupported_field(&self, field: &str) -> OnUnsupported {
        let set = match self.unsupported.get(field) {
            Some(FieldAction::Unread(action)) => Some(*action),
            Some(FieldAction::Values(_)) | None => None,
        };
        set.unwrap_or(if REJECTED_BY_DEFAULT.contains(&field) { OnUnsupported::Reject } else { OnUnsupported::Drop })
    }

    /// The fields of which some values are not supported, with these values.
    pub fn unsupported_values(&self) -> impl Iterator<Item = (&str, &[(String, OnUnsupported)])> {
        self.unsupported.0.iter().filter_map(|(field, action)| match action {
            FieldAction::Values(values) => Some((field.as_str(), &values[..])),
            FieldAction::Unread(_) => None,
        })
    }

    pub fn system_parts(&self) -> SystemParts {
        self.system_parts.map_or(SystemParts::Paragraphs, |parts| parts.0)
    }

    pub fn stream_mode(&self) -> StreamMode {
        self.stream.map_or(StreamMode::AsRequested, |mode| mode.0)
    }

    pub fn forwarded_headers(&self) -> &[Spanned<ForwardedHeader>] {
        self.forward_headers.as_ref().map_or(&[], |headers| headers)
    }

    pub fn on_unknown_field(&self) -> OnUnsupported {
        self.unknown_fields.map_or(OnUnsupported::Drop, |action| action.0)
    }

    pub fn on_unknown_value(&self) -> OnUnknownValue {
        self.unknown_values.map_or(OnUnknownValue::Reject, |action| action.0)
    }

    /// Applies other settings over these: maps are merged, other values replaced.
    pub fn with(&self, other: &Capabilities) -> Capabilities {
        Capabilities {
            stream: other.stream.or(self.stream),
            role_map: RoleNames(merged(&self.role_map.0, &other.role_map.0)),
            system_messages: other.system_messages.or(self.system_messages),
            system_parts: other.system_parts.or(self.system_parts),
            tools: KeyedMap(merged(&self.tools.0, &other.tools.0)),
            content_parts: KeyedMap(merged(&self.content_parts.0, &other.content_parts.0)),
            reasoning: other.reasoning.or(self.reasoning),
            text_only_roles: other.text_only_roles.clone().or_else(|| self.text_only_roles.clone()),
            unsupported: KeyedMap(merged(&self.unsupported.0, &other.unsupported.0)),
            unknown_fields: other.unknown_fields.or(self.unknown_fields),
            unknown_values: other.unknown_values.or(self.unknown_values),
            forward_headers: other.forward_headers.clone().or_else(|| self.forward_headers.clone()),
            fields: self.fields.with(&other.fields),
        }
    }
}

impl FieldEdits {
    /// Whether they change nothing.
    pub fn is_empty(&self) -> bool {
        self.reject.is_empty()
            && self.drop.is_empty()
            && self.default.0.is_empty()
            && self.force.0.is_empty()
            && self.rename.0.is_empty()
    }

    fn with(&self, other: &FieldEdits) -> FieldEdits {
        FieldEdits {
            reject: List([&self.reject[..], &other.reject].concat()),
            drop: List([&self.drop[..], &other.drop].concat()),
            default: self.default.merged(&other.default),
            force: self.force.merged(&other.force),
            rename: self.rename.merged(&other.rename),
        }
    }
}

/// The entries of both lists; those of `over` take precedence.
fn merged<T: Clone>(base: &[(String, T)], over: &[(String, T)]) -> Vec<(String, T)> {
    let kept = base.iter().filter(|(key, _)| !over.iter().any(|(other, _)| other == key));
    kept.chain(over).cloned().collect()
}

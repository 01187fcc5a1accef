//! Backend capabilities: what a backend supports and how the rest is handled. Set in a backend file, overridden in
//! gateway.yaml.

use super::notation::{AnyValue, Generated, List, Map, NameOf, closed, one_of, or_null};
use crate::mapping::config::capabilities::{
    CONTENT_PART_KINDS, ON_CUSTOM_TOOL, ON_UNSUPPORTED, ON_UNSUPPORTED_FIELD, ON_UNSUPPORTED_FORMAT, OPTIONAL_FIELDS,
    OnUnsupported, ROLES, StreamMode, SystemMessages,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Capabilities {
    /// Whether a stream is requested from the backend. Whatever it then sends is read.
    #[schemars(extend("default" = StreamMode::AsRequested.name()))]
    pub stream: Option<NameOf<StreamMode>>,
    /// Role to role, in messages: `{ developer: system }`.
    #[schemars(default, schema_with = "role_map", title = "role to role")]
    pub role_map: Generated,
    /// `merge` combines the leading system and developer messages into one.
    #[schemars(extend("default" = SystemMessages::Separate.name()))]
    pub system_messages: Option<NameOf<SystemMessages>>,
    /// How tools are handled, by kind (`custom`, `other`) or by the client's own type name. `wrap`, for custom tools,
    /// sends the tool as a function with one text argument and converts its calls back into custom calls. Default:
    /// `wrap` for custom tools, `drop` for others.
    #[schemars(default, schema_with = "tools")]
    pub tools: Generated,
    /// How content parts are handled, by kind. Default: `forward`.
    #[schemars(default, schema_with = "content_parts")]
    pub content_parts: Generated,
    /// Roles with messages that may contain only text. Other content parts are dropped and listed.
    pub text_only_roles: Option<List<String>>,
    /// How a request field is handled that the body does not read and that has an effect. `format: as_tool` sends the
    /// format as the parameters of a tool that must be called, and returns its call as the response text. Default:
    /// `reject` for `n`, `format`, `tools` and `previous_response_id`, else `drop`.
    #[schemars(default, schema_with = "unsupported")]
    pub unsupported: Generated,
    /// How members of the client's body are handled that neither its dialect nor the body reads.
    #[schemars(default, schema_with = "unknown_fields", extend("default" = OnUnsupported::Drop.name()))]
    pub unknown_fields: Generated,
    /// Final edits to the members of the body, by their names there: `reject`, `drop`, `default`, `force`, `rename`, in
    /// this order.
    pub fields: Option<FieldEdits>,
}

/// Final edits to the members of a backend's request body, by their names there.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FieldEdits {
    /// A request with one of these members is rejected.
    pub reject: Option<List<String>>,
    /// Members that are omitted.
    pub drop: Option<List<String>>,
    /// Members that are added if they are missing.
    pub default: Option<Map<AnyValue>>,
    /// Members that are always set.
    pub force: Option<Map<AnyValue>>,
    /// Old name to new name.
    pub rename: Option<Map<String>>,
}

fn tools(_: &mut SchemaGenerator) -> Schema {
    let custom = [("custom".to_owned(), one_of(ON_CUSTOM_TOOL).to_value())].into_iter().collect();
    let mut schema = or_null(closed(custom));
    schema.insert("additionalProperties".to_owned(), one_of(ON_UNSUPPORTED).to_value());
    schema
}

fn role_map(generator: &mut SchemaGenerator) -> Schema {
    let role = generator.subschema_for::<String>().to_value();
    or_null(closed(ROLES.iter().map(|from| ((*from).to_owned(), role.clone())).collect()))
}

fn content_parts(_: &mut SchemaGenerator) -> Schema {
    or_null(closed(
        CONTENT_PART_KINDS.iter().map(|kind| ((*kind).to_owned(), one_of(ON_UNSUPPORTED).to_value())).collect(),
    ))
}

fn unsupported(_: &mut SchemaGenerator) -> Schema {
    let values =
        |scalar: &str| one_of(if scalar == "format" { ON_UNSUPPORTED_FORMAT } else { ON_UNSUPPORTED_FIELD }).to_value();
    or_null(closed(OPTIONAL_FIELDS.iter().map(|scalar| ((*scalar).to_owned(), values(scalar))).collect()))
}

fn unknown_fields(_: &mut SchemaGenerator) -> Schema {
    one_of(ON_UNSUPPORTED)
}

//! Backend capabilities: what a backend supports and how the rest is handled. Set in a backend file, overridden in
//! gateway.yaml.

use super::notation::{Anything, Generated, List, Map, NameOf, closed, one_of, or_null};
use crate::mapping::config::capabilities::{
    CONTENT_PART_KINDS, ON_CUSTOM_TOOL, ON_UNSUPPORTED, ON_UNSUPPORTED_FIELD, ON_UNSUPPORTED_FORMAT, OPTIONAL_FIELDS,
    OnUnsupported, ROLES, StreamMode, SystemMessages,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Capabilities {
    /// Is the backend asked for a stream? Whatever it then sends is read.
    #[schemars(extend("default" = StreamMode::AsRequested.name()))]
    pub stream: Option<NameOf<StreamMode>>,
    /// Role to role, in messages: `{ developer: system }`.
    #[schemars(default, schema_with = "role_map", title = "role to role")]
    pub role_map: Generated,
    /// `merge`: the system and developer messages that lead become one.
    #[schemars(extend("default" = SystemMessages::Separate.name()))]
    pub system_messages: Option<NameOf<SystemMessages>>,
    /// What becomes of tools, by kind (`custom`, `other`) or by the client's own word for a type. A custom tool may `wrap`:
    /// it travels as a function with one text argument, and its calls come back as custom calls. Default: `wrap` for custom
    /// tools, `drop` for others.
    #[schemars(default, schema_with = "tools")]
    pub tools: Generated,
    /// What becomes of content parts, by kind. Default: `forward`.
    #[schemars(default, schema_with = "content_parts")]
    pub content_parts: Generated,
    /// Roles whose messages may hold nothing but text: other parts are dropped and named.
    pub text_only_roles: Option<List<String>>,
    /// What becomes of a scalar that the body does not read, when it asks for something. `format: as_tool` makes the format
    /// a tool's arguments and its call the answer. Default: `reject` for `n`, `format`, `tools` and `previous_response_id`, else `drop`.
    #[schemars(default, schema_with = "unsupported")]
    pub unsupported: Generated,
    /// What becomes of members of the client's body that neither its dialect nor the body reads.
    #[schemars(default, schema_with = "unknown_fields", extend("default" = OnUnsupported::Drop.name()))]
    pub unknown_fields: Generated,
    /// The last word on the members of the body, by their names there: `reject`, `drop`, `default`, `force`, `rename`, in
    /// this order.
    pub fields: Option<FieldEdits>,
}

/// Last changes to the members of a backend's request, by their names there.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FieldEdits {
    /// A client that sends one of these is refused.
    pub reject: Option<List<String>>,
    /// Members that are left out.
    pub drop: Option<List<String>>,
    /// Members that are added where they are not there.
    pub default: Option<Map<Anything>>,
    /// Members that are set, whatever was there.
    pub force: Option<Map<Anything>>,
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

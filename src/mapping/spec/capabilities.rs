//! What a backend takes and what becomes of the rest: in a backend file, and refined in gateway.yaml.

use super::notation::{Anything, List, Made, Map, Word, closed, one_of, or_null};
use crate::mapping::config::capabilities::{
    CUSTOM_FATES, FATES, FORMAT_LOSSES, Fate, Instructions, LOSSES, OPTIONAL, PART_KINDS, ROLES, StreamMode,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Manners {
    /// Is the backend asked for a stream? Whatever it then sends is read.
    #[schemars(extend("default" = StreamMode::AsAsked.word()))]
    pub stream: Option<Word<StreamMode>>,
    /// Role to role, in messages: `{ developer: system }`.
    #[schemars(default, schema_with = "role_map", title = "role to role")]
    pub role_map: Made,
    /// `merged`: the system and developer messages that lead become one.
    #[schemars(extend("default" = Instructions::Separate.word()))]
    pub instructions: Option<Word<Instructions>>,
    /// What becomes of tools, by kind (`custom`, `other`) or by the client's own word for a type. A custom tool may `wrap`:
    /// it travels as a function with one text argument, and its calls come back as custom calls. Default: `wrap` for custom
    /// tools, `drop` for others.
    #[schemars(default, schema_with = "tools")]
    pub tools: Made,
    /// What becomes of content parts, by kind. Default: `forward`.
    #[schemars(default, schema_with = "parts")]
    pub parts: Made,
    /// Roles whose messages may hold nothing but text: other parts are dropped and named.
    pub text_only: Option<List<String>>,
    /// What becomes of a scalar that the body does not read, when it asks for something. `format: as_tool` makes the format
    /// a tool's arguments and its call the answer. Default: `reject` for `n`, `format`, `tools` and `previous`, else `drop`.
    #[schemars(default, schema_with = "unsupported")]
    pub unsupported: Made,
    /// What becomes of members of the client's body that neither its dialect nor the body reads.
    #[schemars(default, schema_with = "unknown_fields", extend("default" = Fate::Drop.word()))]
    pub unknown_fields: Made,
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
    let custom = [("custom".to_owned(), one_of(CUSTOM_FATES).to_value())].into_iter().collect();
    let mut schema = or_null(closed(custom));
    schema.insert("additionalProperties".to_owned(), one_of(FATES).to_value());
    schema
}

fn role_map(generator: &mut SchemaGenerator) -> Schema {
    let role = generator.subschema_for::<String>().to_value();
    or_null(closed(ROLES.iter().map(|from| ((*from).to_owned(), role.clone())).collect()))
}

fn parts(_: &mut SchemaGenerator) -> Schema {
    or_null(closed(PART_KINDS.iter().map(|kind| ((*kind).to_owned(), one_of(FATES).to_value())).collect()))
}

fn unsupported(_: &mut SchemaGenerator) -> Schema {
    let fates = |scalar: &str| one_of(if scalar == "format" { FORMAT_LOSSES } else { LOSSES }).to_value();
    or_null(closed(OPTIONAL.iter().map(|scalar| ((*scalar).to_owned(), fates(scalar))).collect()))
}

fn unknown_fields(_: &mut SchemaGenerator) -> Schema {
    one_of(FATES)
}

//! scripts/*.yaml.

use super::notation::{Expression, Generated, NonEmptyList, exactly_one, one_of};
use crate::mapping::config::script::PACES;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// Which transcript a replay backend plays for which request.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "a script")]
pub struct Script {
    /// Its name.
    pub script: String,
    /// The time between two events.
    #[schemars(default, schema_with = "pace", extend("default" = PACES[0]))]
    pub pace: Generated,
    /// The first that holds is played. The last has no `when:`, so that every request has something to play.
    pub steps: NonEmptyList<Step>,
}

/// A step says exactly one of `play` and `refuse`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("oneOf" = exactly_one(["play", "refuse"])))]
pub struct Step {
    /// For which requests. It sees `request`.
    pub when: Option<Expression>,
    /// The name of a transcript.
    pub play: Option<String>,
    /// The request cannot be played: 400.
    pub refuse: Option<Refuse>,
    /// The time between two events. Default: the script's.
    #[schemars(default, schema_with = "pace")]
    pub pace: Generated,
}

/// Why a request cannot be played.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Refuse {
    /// What the client is told.
    pub message: String,
    /// The member that is to blame.
    pub param: Option<String>,
}

/// A fixed pace.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Fixed {
    /// Milliseconds between two events.
    #[schemars(extend("minimum" = 0))]
    pub fixed: i64,
}

fn pace(generator: &mut SchemaGenerator) -> Schema {
    let fixed = generator.subschema_for::<Fixed>();
    json_schema!({
        "title": "`none`, `recorded`, or `{ fixed: MILLISECONDS }`",
        "if": { "type": "object" }, "then": fixed, "else": one_of(PACES),
    })
}

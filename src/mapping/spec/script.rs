//! scripts/*.yaml.

use super::notation::{Expression, Generated, NonEmptyList, exactly_one, one_of};
use crate::mapping::config::script::PACES;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// A script decides which transcript a replay backend plays for a request.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "a script")]
pub struct Script {
    /// Its name.
    pub script: String,
    /// The time between two events.
    #[schemars(default, schema_with = "pace", extend("default" = PACES[0]))]
    pub pace: Generated,
    /// The first step with a true `when:` is used. The last step has no `when:`, so that every request has something to
    /// play.
    pub steps: NonEmptyList<ScriptStep>,
}

/// A step has exactly one of `play` and `reject`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("oneOf" = exactly_one(["play", "reject"])))]
pub struct ScriptStep {
    /// A condition. It sees `request`.
    pub when: Option<Expression>,
    /// The name of a transcript.
    pub play: Option<String>,
    /// Rejects the request with a 400.
    pub reject: Option<Reject>,
    /// The time between two events. Default: the script's.
    #[schemars(default, schema_with = "pace")]
    pub pace: Generated,
}

/// The error for a request that is rejected.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Reject {
    /// The error message.
    pub message: String,
    /// The member of the request that is at fault.
    pub param: Option<String>,
}

/// A fixed pace.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FixedPace {
    /// Milliseconds between two events.
    #[schemars(extend("minimum" = 0))]
    pub fixed: i64,
}

fn pace(generator: &mut SchemaGenerator) -> Schema {
    let fixed = generator.subschema_for::<FixedPace>();
    json_schema!({
        "title": "`none`, `recorded`, or `{ fixed: MILLISECONDS }`",
        "if": { "type": "object" }, "then": fixed, "else": one_of(PACES),
    })
}

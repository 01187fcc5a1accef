//! backends/*.yaml.

use super::capabilities::Capabilities;
use super::notation::{Generated, List, Map, NameOf, Selector, Table, closed, one_of};
use super::rules::{Event, NamedRule, event_rules_need_a_name_selector};
use super::skeleton::Skeleton;
use crate::mapping::config::backend::{Framing, Transport, Unmatched};
use crate::mapping::config::backend_request::METHODS;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;

/// What a backend sends, what that means, and how it is asked.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "a backend", transform = only_replay_has_no_events)]
pub struct Backend {
    /// Its name.
    pub backend: String,
    /// How it is reached. A `replay` backend plays transcripts, which name the backend whose rules read them.
    pub transport: NameOf<Transport>,
    /// Where its list of models is.
    pub models: Option<Models>,
    /// How a turn is asked for; without it the file only reads what was recorded.
    pub request: Option<Ask>,
    /// What it sends, and what that means. Only a `replay` backend has none.
    pub events: Option<Events>,
    /// Tables, by name; those of shared.yaml come after.
    pub tables: Option<Map<Table>>,
    /// Named fragments: skeletons for `$use`. Those of shared.yaml come after.
    pub fragments: Option<Map<Skeleton>>,
}

/// Where a backend lists its models.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Models {
    /// The path behind the URL of the gateway's entry.
    pub path: String,
    /// The ids in the answer.
    pub ids: Selector,
    /// What stands before each id and is none of the client's.
    pub prefix: Option<String>,
}

/// How a turn is asked for. What the body does not read does not reach the backend: it is refused, or dropped and named.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Ask {
    /// The HTTP method.
    #[schemars(default, schema_with = "method", extend("default" = METHODS[0]))]
    pub method: Generated,
    /// Comes behind the URL of the gateway's entry. It sees `model` (escaped, one segment) and `upstream.stream`.
    pub path: Skeleton,
    /// Headers, which see `request`, `upstream`, `secret.key` and `build.version`. One that lacks a value is left out.
    #[schemars(default, schema_with = "headers")]
    pub headers: Generated,
    /// The body, which sees `request` and `upstream.stream`.
    pub body: Skeleton,
    /// What skeletons cannot say: neighbours in a list of the body that become one.
    pub merge_adjacent: Option<List<Join>>,
    #[schemars(flatten)]
    pub capabilities: Capabilities,
}

/// Neighbours that become one.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Join {
    /// The member of the body that is the list.
    pub at: String,
    /// The member of its elements whose lists are joined.
    pub list: String,
    /// Neighbours are joined if they have the same value of this member.
    pub by: Option<String>,
    /// Only those are joined whose list holds nothing but elements with this member.
    pub only: Option<String>,
}

/// What a backend sends, and what that means.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, transform = event_rules_need_a_name_selector)]
pub struct Events {
    /// How bytes become events: one word, or a map when a backend does more than one.
    #[schemars(schema_with = "framing")]
    pub framing: Generated,
    /// Where an event's name stands; rules may then say `event: NAME`.
    pub event_name: Option<Selector>,
    /// What becomes of an event that no rule knows.
    #[schemars(extend("default" = Unmatched::Warn.name()))]
    pub unmatched: Option<NameOf<Unmatched>>,
    /// Rules that emit events.
    pub rules: List<NamedRule<Event>>,
}

/// More about a framing.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FramingDetails {
    /// The data that ends the stream.
    pub end: Option<String>,
    /// The member of an event's data that its name in the stream stands for, where the data does not say it.
    pub event: Option<String>,
}

fn only_replay_has_no_events(schema: &mut Schema) {
    let replay = json!({ "properties": { "transport": { "const": Transport::Replay.name() } } });
    schema.insert("if".to_owned(), replay);
    schema.insert("else".to_owned(), json!({ "required": ["events"] }));
}

fn method(_: &mut SchemaGenerator) -> Schema {
    one_of(METHODS)
}

fn headers(generator: &mut SchemaGenerator) -> Schema {
    let name = generator.subschema_for::<super::notation::HeaderName>();
    let value = generator.subschema_for::<Skeleton>();
    json_schema!({ "type": ["null", "object"], "propertyNames": name, "additionalProperties": value })
}

fn framing(generator: &mut SchemaGenerator) -> Schema {
    let details = generator.subschema_for::<FramingDetails>();
    let one = |framing: &Framing| match framing {
        Framing::Json => json!({ "anyOf": [{ "type": "null" }, { "const": "whole" }, details] }),
        Framing::Sse | Framing::Ndjson | Framing::Jsonrpc => json!({ "anyOf": [{ "type": "null" }, details] }),
    };
    let several = closed(Framing::ALL.iter().map(|f| (f.name().to_owned(), one(f))).collect());
    json_schema!({
        "title": "`sse`, `ndjson`, `json`, `jsonrpc`, or a map of these",
        "if": { "type": "object" }, "then": several, "else": one_of(Framing::NAMES),
    })
}

//! backends/*.yaml.

use super::capabilities::Capabilities;
use super::notation::{Generated, List, Map, NameOf, Selector, Table, closed, one_of};
use super::rules::{Event, NamedRule, event_rules_need_a_name_selector};
use super::skeleton::Skeleton;
use crate::mapping::config::backend::{Framing, Transport, Unmatched};
use crate::mapping::config::backend_request::METHODS;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;

/// One kind of backend: how it is called, what it supports, and what its events mean.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "a backend", transform = only_replay_has_no_events)]
pub struct Backend {
    /// Its name.
    pub backend: String,
    /// How it is called. A `replay` backend plays transcripts; each names the backend file with the rules that read it.
    pub transport: NameOf<Transport>,
    /// The backend's list of models.
    pub models: Option<Models>,
    /// The request template; without it the file only reads recorded events.
    pub request: Option<RequestTemplate>,
    /// The events that it sends. Only a `replay` backend has none.
    pub events: Option<Events>,
    /// Tables, by name. They take precedence over those of shared.yaml.
    pub tables: Option<Map<Table>>,
    /// Fragments, by name: skeletons for `$use`. They take precedence over those of shared.yaml.
    pub fragments: Option<Map<Skeleton>>,
}

/// The backend's list of models.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Models {
    /// The path, appended to the URL of the gateway's entry.
    pub path: String,
    /// The selector of the ids in the response.
    pub ids: Selector,
    /// A prefix of each id, which is removed from the ids that clients see.
    pub prefix: Option<String>,
}

/// The request to the backend. A field that the body does not read does not reach the backend: it is rejected, or
/// dropped and listed.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RequestTemplate {
    /// The HTTP method.
    #[schemars(default, schema_with = "method", extend("default" = METHODS[0]))]
    pub method: Generated,
    /// The path, appended to the URL of the gateway's entry. It sees `model` (percent-encoded, one segment) and
    /// `upstream.stream`.
    pub path: Skeleton,
    /// The headers. They see `request`, `upstream`, `secret.key` and `build.version`. A header without a value is
    /// omitted.
    #[schemars(default, schema_with = "headers")]
    pub headers: Generated,
    /// The body. It sees `request` and `upstream.stream`.
    pub body: Skeleton,
    /// Lists of the body with adjacent elements that are merged.
    pub merge_adjacent: Option<List<MergeAdjacent>>,
    #[schemars(flatten)]
    pub capabilities: Capabilities,
}

/// Merges adjacent elements of a list by concatenating one of their members.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MergeAdjacent {
    /// The member of the body that is the list.
    pub at: String,
    /// The member of its elements with the lists that are concatenated.
    pub list: String,
    /// Merge only elements with the same value of this member.
    pub by: Option<String>,
    /// Merge only elements with lists in which every element has this member.
    pub only: Option<String>,
}

/// The events that a backend sends, and the rules that read them.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, transform = event_rules_need_a_name_selector)]
pub struct Events {
    /// How bytes become events: a name, or a map if a backend uses several framings.
    #[schemars(schema_with = "framing")]
    pub framing: Generated,
    /// The selector of an event's name; needed by rules with `event:`.
    pub event_name: Option<Selector>,
    /// What happens to an event that no rule matches.
    #[schemars(extend("default" = Unmatched::Warn.name()))]
    pub unmatched: Option<NameOf<Unmatched>>,
    /// Rules that emit events.
    pub rules: List<NamedRule<Event>>,
}

/// Details of a framing.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FramingDetails {
    /// The data that ends the stream.
    pub end: Option<String>,
    /// The member of an event's data that receives the name in its `event:` line, unless the data has that member.
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

//! dialects/*.yaml.

use super::field;
use super::notation::{
    AnyValue, BySelector, Expression, Generated, Line, List, Map, NameOf, OneOrMore, Selector, Table, closed,
    exactly_one, or_null,
};
use super::policies;
use super::rules::{Item, NamedRule, Observation, Part, Rule, Tool, event_rules_need_a_name_selector};
use super::skeleton::Skeleton;
use crate::domain::emit::{FORMAT, SCALARS, TOOL_CHOICE};
use crate::domain::{MomentKind, NamedEnum, Scope, StreamFormat};
use crate::mapping::config::dialect_request::RequiredType;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Map as Members;
use std::borrow::Cow;

/// One client API: how a request is read, which frames a stream consists of, and what the JSON body and the errors look
/// like.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "a dialect", transform = policies::custom_policies_are_declared)]
pub struct Dialect {
    /// Its name.
    pub dialect: String,
    /// The folder below `schemas/` with the schemas of its frames, body and errors; without it output is not checked.
    pub schemas: Option<String>,
    /// How a client's body is read.
    pub request: Request,
    /// The policies of this dialect. Those of a profile take precedence.
    #[schemars(default, schema_with = "policies::of_dialect", title = "policies")]
    pub policies: Generated,
    /// Policies that this dialect declares: a name and its values, the default first. Expressions read them as
    /// `policy.NAME`.
    #[schemars(default, schema_with = "policies::declared", title = "name to list of values")]
    pub custom_policies: Generated,
    /// Tables, by name. They take precedence over those of shared.yaml.
    pub tables: Option<Map<Table>>,
    /// Fragments, by name: skeletons for `$use`. They take precedence over those of shared.yaml.
    pub fragments: Option<Map<Skeleton>>,
    /// The frames of a stream.
    pub stream: Stream,
    /// How `reframe validate` reads this dialect's own frames.
    pub capture: Option<Capture>,
    /// The whole response, for clients that do not stream. It sees `turn`, `request` and `policy`.
    pub body: Skeleton,
    /// The response to a fault before the first frame. It sees `fault` and `policy`.
    pub errors: Skeleton,
}

/// How a client's body is read. Scalars are filled like the fields of a rule. Members that nothing here reads are kept
/// in `request.extra`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Request {
    /// Required members: selector to type. Checked first; a missing member is a 400.
    pub required: Option<BySelector<NameOf<RequiredType>>>,
    /// Members that are rejected if they are present and not null: selector, or just a member's name, to the message.
    pub rejected_fields: Option<Map<RejectedField>>,
    #[schemars(flatten)]
    pub scalars: Scalars,
    /// Named rules that emit content parts, for `use:`.
    pub rules: Option<Map<OneOrMore<Rule<Part>>>>,
    /// Rules that emit the items of the conversation.
    pub items: Option<List<Rule<Item>>>,
    /// Rules that emit the tools.
    pub tools: Option<List<Rule<Tool>>>,
    /// Which tool the model must call.
    #[schemars(default, schema_with = "tool_choice")]
    pub tool_choice: Generated,
    /// The format that the response must have.
    #[schemars(default, schema_with = "format")]
    pub format: Generated,
}

/// The scalars of a request, from the loader's list.
pub struct Scalars;

impl JsonSchema for Scalars {
    fn schema_name() -> Cow<'static, str> {
        "Scalars".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        closed(field::properties(SCALARS, generator))
    }
}

/// The error for a rejected member.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub enum RejectedField {
    /// The message.
    Message(String),
    /// The message with details.
    Map(RejectedFieldDetails),
}

/// The error for a rejected member, with details.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RejectedFieldDetails {
    /// The error message.
    pub message: String,
    /// The error code.
    pub code: Option<String>,
    /// Values without effect, which are accepted.
    pub allowed_values: Option<List<AnyValue>>,
}

/// How `reframe validate` reads a dialect's own frames.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, transform = event_rules_need_a_name_selector)]
pub struct Capture {
    /// The selector of a frame's name; needed by rules with `event:`.
    pub event_name: Option<Selector>,
    /// The sequence number of the first frame.
    #[schemars(range(min = 0))]
    pub first_sequence: Option<i64>,
    /// Names of frames that only other servers send.
    pub extra_frames: Option<List<String>>,
    /// Rules that emit observations.
    pub rules: List<NamedRule<Observation>>,
}

/// The frames of a stream.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Stream {
    /// How frames are encoded.
    pub framing: Framing,
    /// The schema of frames that name none.
    pub schema: Option<String>,
    /// The keys that every data frame begins with. A key of the frame itself overrides them.
    #[schemars(extend("type" = "object"))]
    pub base: Option<Skeleton>,
    /// Moments to named frames, in the order in which they are sent.
    #[schemars(schema_with = "frames")]
    pub frames: Generated,
    /// A regular expression over moments for each scope. Every moment with frames must be mentioned in one of them,
    /// except `turn.fail`.
    #[schemars(schema_with = "order")]
    pub order: Generated,
}

/// How frames are encoded.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Framing {
    /// The format of the stream.
    #[schemars(rename = "as", extend("default" = StreamFormat::Sse.name()))]
    pub kind: Option<NameOf<StreamFormat>>,
    /// The format of a frame's data.
    #[schemars(extend("enum" = ["json"], "default" = "json"))]
    pub data: Option<String>,
    /// The SSE event name of data frames. It sees `data`, the rendered frame, and `frame`, its name.
    pub event: Option<Skeleton>,
    /// The content type of the stream. Default: that of the format.
    pub content_type: Option<String>,
}

/// One frame. It has exactly one of `data`, `text` and `comment`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("oneOf" = exactly_one(["data", "text", "comment"])))]
pub struct Frame {
    /// A condition; the frame is sent only if it is true.
    pub when: Option<Expression>,
    /// The SSE event name: a constant that overrides the framing's.
    pub event: Option<Line>,
    /// The schema, if it is neither the stream's nor called like the frame.
    pub schema: Option<String>,
    /// Whether the frame begins with the keys of `stream.base`.
    #[schemars(extend("default" = true))]
    pub base: Option<bool>,
    /// A JSON frame, checked against its schema.
    pub data: Option<Skeleton>,
    /// A bare text: a terminator.
    pub text: Option<Skeleton>,
    /// An SSE comment; no output in NDJSON.
    pub comment: Option<Skeleton>,
}

fn tool_choice(generator: &mut SchemaGenerator) -> Schema {
    closed(field::properties(TOOL_CHOICE, generator))
}

fn format(generator: &mut SchemaGenerator) -> Schema {
    closed(field::properties(FORMAT, generator))
}

fn frames(generator: &mut SchemaGenerator) -> Schema {
    let frames = json_schema!({ "type": "object", "additionalProperties": generator.subschema_for::<Frame>() });
    let moment = |(moment, about): (&&str, &&str)| {
        let mut frames = frames.clone();
        frames.insert("description".to_owned(), (*about).into());
        ((*moment).to_owned(), frames.to_value())
    };
    or_null(closed(MomentKind::NAMES.iter().zip(MomentKind::VALUE_DESCRIPTIONS).map(moment).collect()))
}

/// Checks the tokens only; the loader checks that they form an expression.
fn order(_: &mut SchemaGenerator) -> Schema {
    let moments = MomentKind::NAMES.join("|").replace('.', "\\.");
    let pattern = format!("^[\\s()|*+?]*(({moments})([\\s()|*+?]+|$))*$");
    let text = json_schema!({ "title": "moments, `( )`, `|`, `*`, `+`, `?`", "type": "string", "pattern": pattern })
        .to_value();
    closed(Scope::NAMES.iter().map(|scope| ((*scope).to_owned(), text.clone())).collect::<Members<_, _>>())
}

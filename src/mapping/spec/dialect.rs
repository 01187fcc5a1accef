//! dialects/*.yaml.

use super::field;
use super::notation::{
    Anything, BySelector, Expression, Generated, Line, List, Map, NameOf, OneOrMore, Selector, Table, closed,
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

/// How a client asks, and what it is told at which moment.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "a dialect", transform = policies::custom_policies_are_declared)]
pub struct Dialect {
    /// Its name.
    pub dialect: String,
    /// The folder below `schemas/` with the shapes of its frames, body and errors; without it nothing is checked.
    pub schemas: Option<String>,
    /// How a client's body is read.
    pub request: Request,
    /// Named choices, as this dialect needs them. A profile comes after.
    #[schemars(default, schema_with = "policies::of_dialect", title = "policies")]
    pub policies: Generated,
    /// Policies of this dialect's own: a name and its values, the default first. Expressions read them as `policy.NAME`.
    #[schemars(default, schema_with = "policies::declared", title = "name to list of values")]
    pub custom_policies: Generated,
    /// Tables, by name; those of shared.yaml come after.
    pub tables: Option<Map<Table>>,
    /// Named fragments: skeletons for `$use`. Those of shared.yaml come after.
    pub fragments: Option<Map<Skeleton>>,
    /// What a client that streams is told.
    pub stream: Stream,
    /// How its own frames are read back, for `reframe validate`.
    pub capture: Option<Capture>,
    /// The whole answer, for clients that do not stream. It sees `turn`, `request` and `policy`.
    pub body: Skeleton,
    /// What a client gets when something went wrong before the first frame. It sees `fault` and `policy`.
    pub errors: Skeleton,
}

/// How a client's body is read. Scalars are filled like the fields of a rule; members that nothing here reads are kept in
/// `request.extra`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Request {
    /// What must be there: selector to kind. Checked first; else 400.
    pub required: Option<BySelector<NameOf<RequiredType>>>,
    /// What is refused when it is there and not null: selector, or a member's name, to the message.
    pub rejected_fields: Option<Map<Refused>>,
    #[schemars(flatten)]
    pub scalars: Scalars,
    /// Named rules that emit content parts, for `use:`.
    pub rules: Option<Map<OneOrMore<Rule<Part>>>>,
    /// Rules that emit the items of the conversation.
    pub items: Option<List<Rule<Item>>>,
    /// Rules that emit the tools.
    pub tools: Option<List<Rule<Tool>>>,
    /// Which tool the model has to call.
    #[schemars(default, schema_with = "tool_choice")]
    pub tool_choice: Generated,
    /// The form that the answer must have.
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

/// Why a member is refused.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub enum Refused {
    /// The message.
    Message(String),
    /// The message, and more.
    Map(RefusedMap),
}

/// Why a member is refused, and when it is not.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RefusedMap {
    /// What the client is told.
    pub message: String,
    /// The code of the error.
    pub code: Option<String>,
    /// Values that ask for nothing, and so are no reason to refuse.
    pub allowed_values: Option<List<Anything>>,
}

/// How a dialect's own frames are read back, for `reframe validate`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, transform = event_rules_need_a_name_selector)]
pub struct Capture {
    /// A selector: where a frame's name stands. Rules may then say `event: NAME`.
    pub event_name: Option<Selector>,
    /// The number of a stream's first frame, where frames are numbered.
    #[schemars(range(min = 0))]
    pub first_sequence: Option<i64>,
    /// Frames that this set never sends and others do.
    pub extra_frames: Option<List<String>>,
    /// Rules that emit observations.
    pub rules: List<NamedRule<Observation>>,
}

/// What a client that streams is told.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Stream {
    /// How frames become bytes.
    pub framing: Framing,
    /// The schema of frames that name none.
    pub schema: Option<String>,
    /// The keys that every data frame begins with; a key of the frame itself comes instead.
    #[schemars(extend("type" = "object"))]
    pub base: Option<Skeleton>,
    /// Moments to frames, by name, in the order in which they leave.
    #[schemars(schema_with = "frames")]
    pub frames: Generated,
    /// A regular expression over moments for each scope. Every moment that has frames stands in one of them, but for
    /// `turn.fail`.
    #[schemars(schema_with = "order")]
    pub order: Generated,
}

/// How frames become bytes.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Framing {
    /// The framing.
    #[schemars(rename = "as", extend("default" = StreamFormat::Sse.name()))]
    pub kind: Option<NameOf<StreamFormat>>,
    /// What a frame's data is.
    #[schemars(extend("enum" = ["json"], "default" = "json"))]
    pub data: Option<String>,
    /// The event name of data frames. It sees `data`, the finished frame, and `frame`, its name.
    pub event: Option<Skeleton>,
    /// The content type of the stream. Default: that of the framing.
    pub content_type: Option<String>,
}

/// One frame. It has exactly one of `data`, `text` and `comment`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("oneOf" = exactly_one(["data", "text", "comment"])))]
pub struct Frame {
    /// The frame leaves only if this holds.
    pub when: Option<Expression>,
    /// The SSE event name, a constant that comes before the framing's.
    pub event: Option<Line>,
    /// Another schema than its name, or the stream's.
    pub schema: Option<String>,
    /// With `stream.base` before its own keys?
    #[schemars(extend("default" = true))]
    pub base: Option<bool>,
    /// A JSON frame, checked by its schema.
    pub data: Option<Skeleton>,
    /// A bare text: a terminator.
    pub text: Option<Skeleton>,
    /// An SSE comment; nothing in NDJSON.
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

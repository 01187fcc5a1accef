//! *.test.yaml.

use super::notation::{Anything, Generated, List, NameOf};
use crate::domain::FaultKind;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// The tests of the mapping beside it. They run with `reframe test` and before every reload.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "tests")]
pub struct TestFile {
    /// The tests.
    pub tests: List<Test>,
}

/// One test. Ids count from 1 (the turn), the clock stands at 0.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Case")]
pub struct Test {
    /// A sentence.
    pub name: String,
    /// The backend that is tested; a file in `backends/` need not say its own.
    pub backend: Option<String>,
    /// The dialect that is tested; a file in `dialects/` need not say its own.
    pub dialect: Option<String>,
    /// The profile that is tested; a file in `profiles/` need not say its own.
    pub profile: Option<String>,
    /// The script that is tested; a file in `scripts/` need not say its own.
    pub script: Option<String>,
    /// The client's body; without it a plain request.
    pub request: Option<Anything>,
    /// Raw events.
    pub given: Option<List<Anything>>,
    /// A recorded turn instead; it also names the backend.
    pub transcript: Option<String>,
    /// After these the connection is lost, and why.
    pub disconnect: Option<String>,
    /// What must come of it.
    pub expect: Expect,
}

/// What must come of a test.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("minProperties" = 1))]
pub struct Expect {
    /// All data frames, in order: their names, or `{ NAME: value }`. A turn that fails fails the test, unless a `fault` or a
    /// `body` is expected.
    pub frames: Option<Vec<Frame>>,
    /// What JSONPaths find in single frames.
    #[schemars(rename = "where")]
    pub values: Option<List<Where>>,
    /// All data frames as one list, like `body`: `{ "$..delta.content": [ "Good ", "morning" ] }`.
    pub stream: Option<Anything>,
    /// The JSON answer to the same events. Maps need only what is expected, lists are compared element by element;
    /// `{ $exactly: value }` is the whole value, `{ $is: string }` any text, `{ "$.a[*].b": [ 1 ] }` what the path finds.
    pub body: Option<Anything>,
    /// What the rules made of the raw events, one line each as in `explain`.
    pub events: Option<Vec<String>>,
    /// What the request was read as, like `body`.
    pub request: Option<Anything>,
    /// The fault that must come.
    pub fault: Option<Fault>,
    /// The transcript that the script plays for the request; `{ $is: string }` is any.
    pub plays: Option<Anything>,
}

/// A frame that must come: its name, or `{ NAME: value }`, where the value is like `body`.
pub struct Frame;

impl JsonSchema for Frame {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ExpectedFrame".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "title": "name of a frame, or `{ NAME: value }`",
            "if": { "type": "object" },
            "then": { "minProperties": 1, "maxProperties": 1 },
            "else": { "type": "string" }
        })
    }
}

/// Values of one frame: `{ frame: 1, "$.text": "Good" }`. Whole values; what is absent counts as null, and a path that can
/// find many finds a list.
#[derive(JsonSchema)]
#[schemars(extend("propertyNames" = { "pattern": "^(frame$|[$@^])" }, "minProperties" = 2))]
pub struct Where {
    /// Which frame, from 0; or `last`.
    #[schemars(schema_with = "which")]
    pub frame: Generated,
}

/// A fault, as far as it is expected.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("minProperties" = 1))]
pub struct Fault {
    /// Its kind.
    pub kind: Option<NameOf<FaultKind>>,
    /// Its message.
    pub message: Option<Anything>,
    /// The member that is to blame.
    pub param: Option<Anything>,
    /// The code of the backend or the mapping.
    pub code: Option<Anything>,
    /// The HTTP status.
    pub status: Option<Anything>,
}

fn which(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "title": "number, or `last`", "if": { "type": "string" }, "then": { "const": "last" }, "else": { "type": "integer", "minimum": 0 } })
}

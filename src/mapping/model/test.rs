//! *.test.yaml: what stands beside a mapping and must hold.

use super::notation::{Anything, List, Made, Word};
use crate::canon::FaultKind;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

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
    /// The client's body; without it a plain request.
    pub request: Option<Anything>,
    /// Raw events.
    pub given: Option<List<Anything>>,
    /// A recorded turn instead; it also names the backend.
    pub transcript: Option<String>,
    /// After these the connection is lost, and why.
    pub cut: Option<String>,
    /// What must come of it.
    pub expect: Expect,
}

/// What must come of a test.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Expect {
    /// The names of all data frames, in order. A turn that fails fails the test, unless a `fault` or a `body` is expected.
    pub frames: Option<Vec<String>>,
    /// Single values of frames.
    #[schemars(rename = "where")]
    pub values: Option<List<Where>>,
    /// The JSON answer to the same events. Maps need only what is expected, lists are compared element by element.
    pub body: Option<Anything>,
    /// What the rules made of the raw events, one line each as in `explain`.
    pub events: Option<Vec<String>>,
    /// What the request was read as, like `body`.
    pub request: Option<Anything>,
    /// The fault that must come.
    pub fault: Option<Fault>,
}

/// Values of one frame: `{ frame: 1, "$.text": "Good" }`. Whole values; what is absent counts as null.
#[derive(JsonSchema)]
#[schemars(extend("propertyNames" = { "pattern": "^(frame$|[$@^])" }))]
pub struct Where {
    /// Which frame, from 0; or `last`.
    #[schemars(schema_with = "which")]
    pub frame: Made,
}

/// A fault, as far as it is expected.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Fault {
    /// Its kind.
    pub kind: Option<Word<FaultKind>>,
    /// Its message.
    pub message: Option<String>,
    /// The member that is to blame.
    #[schemars(extend("type" = ["null", "string"]))]
    pub param: Option<String>,
    /// The code of the backend or the mapping.
    #[schemars(extend("type" = ["null", "string"]))]
    pub code: Option<String>,
    /// The HTTP status.
    #[schemars(extend("minimum" = 100))]
    pub status: Option<i64>,
}

fn which(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "title": "number, or `last`", "if": { "type": "string" }, "then": { "const": "last" }, "else": { "type": "integer", "minimum": 0 } })
}

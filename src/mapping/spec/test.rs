//! *.test.yaml.

use super::notation::{AnyValue, Generated, List, NameOf};
use crate::domain::FaultKind;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// The tests of the mapping next to this file. They run with `reframe test` and before every reload.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "tests")]
pub struct TestFile {
    /// The tests.
    pub tests: List<Test>,
}

/// One test. Ids count from 1 (the turn), and the clock is at 0.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "TestCase")]
pub struct Test {
    /// A sentence.
    pub name: String,
    /// The backend that is tested. Default in `backends/`: the backend of the file name.
    pub backend: Option<String>,
    /// The dialect that is tested. Default in `dialects/`: the dialect of the file name.
    pub dialect: Option<String>,
    /// The profile that is tested. Default in `profiles/`: the profile of the file name.
    pub profile: Option<String>,
    /// The script that is tested. Default in `scripts/`: the script of the file name.
    pub script: Option<String>,
    /// The client's body. Default: a plain request.
    pub request: Option<AnyValue>,
    /// Raw events.
    pub given: Option<List<AnyValue>>,
    /// A recorded turn instead; it also names the backend.
    pub transcript: Option<String>,
    /// The connection is lost after these events, with this reason.
    pub disconnect: Option<String>,
    /// The expected output.
    pub expect: Expect,
}

/// The expected output of a test.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("minProperties" = 1))]
pub struct Expect {
    /// All data frames, in order: a name, or `{ NAME: value }`. A turn that fails also fails the test, unless a `fault`
    /// or a `body` is expected.
    pub frames: Option<Vec<Frame>>,
    /// The results of JSONPaths in single frames.
    #[schemars(rename = "where")]
    pub values: Option<List<Where>>,
    /// All data frames as one list, like `body`: `{ "$..delta.content": [ "Good ", "morning" ] }`.
    pub stream: Option<AnyValue>,
    /// The JSON response to the same events. An object may have further members, an array is compared element by
    /// element; `{ $exactly: value }` is exactly this value, `{ $is: string }` any string, `{ "$.a[*].b": [ 1 ] }` the
    /// result of the path.
    pub body: Option<AnyValue>,
    /// The events that the rules emit, one line each as in `explain`.
    pub events: Option<Vec<String>>,
    /// The parsed request, like `body`.
    pub request: Option<AnyValue>,
    /// The expected fault.
    pub fault: Option<Fault>,
    /// The name of the transcript that the script selects for the request; `{ $is: string }` matches any.
    pub plays: Option<AnyValue>,
}

/// An expected frame: its name, or `{ NAME: value }`, where the value is like `body`.
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
            "title": "frame name, or `{ NAME: value }`",
            "if": { "type": "object" },
            "then": { "minProperties": 1, "maxProperties": 1 },
            "else": { "type": "string" }
        })
    }
}

/// Values of one frame: `{ frame: 1, "$.text": "Good" }`. Values are compared as a whole; a missing member counts as
/// null, and a path that can find several nodes gives a list.
#[derive(JsonSchema)]
#[schemars(extend("propertyNames" = { "pattern": "^(frame$|[$@^])" }, "minProperties" = 2))]
pub struct Where {
    /// The number of the frame, from 0, or `last`.
    #[schemars(schema_with = "which")]
    pub frame: Generated,
}

/// The expected members of a fault.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("minProperties" = 1))]
pub struct Fault {
    /// Its kind.
    pub kind: Option<NameOf<FaultKind>>,
    /// Its message.
    pub message: Option<AnyValue>,
    /// The member of the request that is at fault.
    pub param: Option<AnyValue>,
    /// The error code of the backend or the mapping.
    pub code: Option<AnyValue>,
    /// The HTTP status.
    pub status: Option<AnyValue>,
}

fn which(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "title": "number, or `last`", "if": { "type": "string" }, "then": { "const": "last" }, "else": { "type": "integer", "minimum": 0 } })
}

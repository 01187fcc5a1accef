//! *.test.yaml: the tests of a mapping.

use crate::diagnostics::Code;
use crate::domain::FaultKind;
use crate::mapping::grammar::collections::{Elements, Entries, List, Map};
use crate::mapping::grammar::notation::{NameOf, Spanned, notation_schema};
use crate::mapping::grammar::policies::DialectPolicies;
use crate::mapping::grammar::unparsed::{AnyNode, Unparsed};
use crate::mapping::grammar::{At, FromNode, Required, section};
use crate::mapping::source::layout::{SetFile, tested_by};
use crate::mapping::source::yaml::{Node, YamlKind};
use schemars::{JsonSchema, json_schema};

section! {
    /// The tests of the mapping next to this file. They run with `reframe test` and before a reload that changes what they read.
    #[subject = "a test file"]
    #[title = "tests"]
    pub struct TestFile<'n> {
        /// The tests.
        tests: Spanned<Elements<'n, TestEntry<'n>>>,
    }
}

section! {
    /// One test. Ids count from 1 (the turn), and the clock is at 0.
    #[subject = "a test"]
    #[title = "test case"]
    pub struct TestEntry<'n> {
        /// A sentence.
        name: Spanned<String>,
        /// The backend that is tested. Default in `backends/`: the backend of the file name.
        backend: Option<Spanned<String>>,
        /// An entry of `backends:` in gateway.yaml: its backend file is tested, with the settings of the entry.
        backend_entry: Option<Spanned<String>>,
        /// The dialect that is tested. Default in `dialects/`: the dialect of the file name.
        dialect: Option<Spanned<String>>,
        /// The profile that is tested. Default in `profiles/`: the profile of the file name.
        profile: Option<Spanned<String>>,
        /// Policies of the dialect for this test. They take precedence over those of the dialect and the profile, so that
        /// the test also holds after these are changed.
        policies: Option<Spanned<Entries<'n, DialectPolicies>>>,
        /// The script that is tested. Default in `scripts/`: the script of the file name.
        script: Option<Spanned<String>>,
        /// The client's body. Default: a plain request.
        request: Option<AnyNode<'n>>,
        /// The parameters of the path of the client's request, by name.
        path: Map<String> = Map::default(),
        /// The parameters of the query of the client's request, by name.
        query: Map<String> = Map::default(),
        /// The headers of the client's request, by name.
        headers: Map<String> = Map::default(),
        /// The head of the backend's HTTP response, as rules read it. With an error status, the events are its body.
        backend_response: Option<BackendResponse>,
        /// Raw events. `$idle` is a silence until a keepalive is due.
        given: Option<Spanned<List<AnyNode<'n>>>>,
        /// A recorded turn instead; it also names the backend.
        transcript: Option<Spanned<String>>,
        /// The connection is lost after these events, with this reason.
        disconnect: Option<String>,
        /// The expected output.
        expect: Required<Option<Spanned<Unparsed<'n, Expect<'n>>>>>,
    }
}

/// What a test is for: the mapping that it names, or the one next to its file.
pub fn tested_name<'t>(named: Option<&'t str>, file: &'t str, kind: SetFile) -> Option<&'t str> {
    named.or_else(|| tested_by(file).filter(|(of, _)| *of == kind).map(|(_, name)| name))
}

/// What a test is for.
pub struct TestSubject<'t> {
    pub dialect: Option<&'t str>,
    pub profile: Option<&'t str>,
    pub backend: Option<&'t str>,
}

impl<'t> TestSubject<'t> {
    pub fn of(test: &'t Node, file: &'t str) -> TestSubject<'t> {
        let name = |kind: SetFile| tested_name(test.get(kind.name()).and_then(Node::as_text), file, kind);
        let (dialect, profile) = (name(SetFile::Dialect), name(SetFile::Profile));
        TestSubject { dialect, profile, backend: name(SetFile::Backend) }
    }
}

/// The tests of a file, before they are checked.
pub fn tests_of(file: &Node) -> &[Node] {
    file.get("tests").map_or(&[], Node::as_list_or_one)
}

section! {
    /// The head of a backend's HTTP response.
    #[subject = "`backend_response:`"]
    pub struct BackendResponse {
        /// Its status.
        status: HttpStatus = HttpStatus(200),
        /// Its headers, by name.
        headers: Map<String> = Map::default(),
    }
}

/// The status of an HTTP response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpStatus(pub u16);

impl<'n> FromNode<'n> for HttpStatus {
    fn from_node(node: &'n Node, at: At) -> Option<HttpStatus> {
        match node.kind {
            YamlKind::Int(status @ 200..=599) => Some(HttpStatus(status as u16)),
            _ => {
                at.cx.wrong_value(node, "an HTTP status", "`429`");
                None
            }
        }
    }

    fn shown(&self) -> Option<serde_json::Value> {
        Some(self.0.into())
    }
}

notation_schema!(HttpStatus, { "type": "integer", "minimum": 200, "maximum": 599 });

section! {
    /// The expected output of a test.
    #[subject = "`expect:`"]
    #[extend("minProperties" = 1)]
    pub struct Expect<'n> {
        /// All data frames, in order: a name, or `{ NAME: value }`. A turn that fails also fails the test, unless a
        /// `fault` or a `body` is expected.
        frames: Option<StrictList<ExpectedFrame<'n>>>,
        /// The results of JSONPaths in single frames.
        values as "where": Option<Spanned<Elements<'n, FrameValues>>>,
        /// All data frames as one list, like `body`: `{ "$..delta.content": [ "Good ", "morning" ] }`.
        stream: Option<AnyNode<'n>>,
        /// The JSON response to the same events. An object may have further members, an array is compared element by
        /// element; `{ $exactly: value }` is exactly this value, `{ $is: string }` any string, `{ "$.a[*].b": [ 1 ] }`
        /// the result of the path.
        body: Option<AnyNode<'n>>,
        /// The events that the rules emit, one line each as in `explain`.
        events: Option<StrictList<String>>,
        /// The parsed request, like `body`.
        request: Option<AnyNode<'n>>,
        /// The request that the backend gets. Nothing is sent: the test needs `request`, `dialect` and a backend with
        /// `request:`.
        sent: Option<Spanned<ExpectedRequest<'n>>>,
        /// The HTTP response to a client that does not stream, also if it is an error.
        response: Option<Spanned<ExpectedResponse<'n>>>,
        /// The expected fault.
        fault: Option<Spanned<ExpectedFault<'n>>>,
        /// The name of the transcript that the script selects for the request; `{ $is: string }` matches any.
        plays: Option<AnyNode<'n>>,
    }
}

section! {
    /// The expected members of a request to a backend, like `body`. `secret.key` is `API-KEY` in tests.
    #[subject = "`sent:`"]
    #[extend("minProperties" = 1)]
    pub struct ExpectedRequest<'n> {
        /// The HTTP method.
        method: Option<AnyNode<'n>>,
        /// The path after the URL of the backend, without its query.
        path: Option<AnyNode<'n>>,
        /// The parameters of the query, decoded.
        query: Option<AnyNode<'n>>,
        /// The headers, by their names in lower case.
        headers: Option<AnyNode<'n>>,
        /// The body.
        body: Option<AnyNode<'n>>,
        /// The calls of a turn on a child process, in order: `call` or `notify`, and `params`. A value that an earlier call
        /// keeps is the text `kept.NAME`.
        calls: Option<AnyNode<'n>>,
        /// The fields of the client's request that are not sent, as in the header `x-reframe-dropped`.
        dropped: Option<AnyNode<'n>>,
    }
}

section! {
    /// The expected members of a response to a client, like `body`. `request_id` is `test` in tests.
    #[subject = "`response:`"]
    #[extend("minProperties" = 1)]
    pub struct ExpectedResponse<'n> {
        /// The HTTP status.
        status: Option<AnyNode<'n>>,
        /// The headers of the dialect, and `retry-after`, by their names in lower case.
        headers: Option<AnyNode<'n>>,
        /// The body: of the dialect's `body:`, or of its `errors:`.
        body: Option<AnyNode<'n>>,
    }
}

section! {
    /// The expected members of a fault.
    #[subject = "`fault:`"]
    #[extend("minProperties" = 1)]
    pub struct ExpectedFault<'n> {
        /// Its kind.
        kind: Option<NameOf<FaultKind>>,
        /// Its message.
        message: Option<AnyNode<'n>>,
        /// The member of the request that is at fault.
        param: Option<AnyNode<'n>>,
        /// The error code of the backend or the mapping.
        code: Option<AnyNode<'n>>,
        /// The HTTP status.
        status: Option<AnyNode<'n>>,
    }
}

/// A list. A single value is not accepted: it is probably a mistake.
#[derive(Clone, Debug)]
pub struct StrictList<T>(pub Vec<T>);

impl<'n, T: FromNode<'n>> FromNode<'n> for StrictList<T> {
    fn from_node(node: &'n Node, at: At) -> Option<StrictList<T>> {
        match &node.kind {
            YamlKind::List(items) => {
                return Some(StrictList(items.iter().filter_map(|n| T::from_node(n, at)).collect()));
            }
            YamlKind::Null => at.cx.error(Code::MissingKey, at.key_span, format!("`{}:` is empty", at.key)),
            YamlKind::Bool(_) | YamlKind::Int(_) | YamlKind::Float(_) | YamlKind::Text(_) | YamlKind::Map(_) => {
                let message = format!("`{}:` must be a list, not {}", at.key, node.type_name());
                at.cx.error(Code::WrongType, node.span, message);
            }
        }
        None
    }
}

notation_schema!([T: JsonSchema] StrictList<T>, |generator| {
    json_schema!({ "type": "array", "items": generator.subschema_for::<T>() })
});

/// An expected frame: its name, or `{ NAME: value }`, where the value is like `body`.
#[derive(Clone, Debug)]
pub struct ExpectedFrame<'n> {
    pub name: String,
    pub data: Option<&'n Node>,
}

impl<'n> FromNode<'n> for ExpectedFrame<'n> {
    fn from_node(node: &'n Node, at: At) -> Option<ExpectedFrame<'n>> {
        match (node.as_text(), node.as_map()) {
            (Some(name), _) => Some(ExpectedFrame { name: name.to_owned(), data: None }),
            (None, Some([entry])) => Some(ExpectedFrame { name: entry.key.clone(), data: Some(&entry.value) }),
            (None, _) => {
                at.cx.wrong_type(node, "a frame name, or `{ NAME: data }`");
                None
            }
        }
    }
}

notation_schema!(ExpectedFrame<'n>, {
    "title": "frame name, or `{ NAME: value }`",
    "if": { "type": "object" },
    "then": { "minProperties": 1, "maxProperties": 1 },
    "else": { "type": "string" },
});

section! {
    /// Values of one frame: `{ frame: 1, "$.text": "Good" }`. Values are compared as a whole; a missing member counts as
    /// null, and a path that can find several nodes gives a list.
    #[subject = "`where:`"]
    #[title = "where"]
    #[extend("additionalProperties" = true)]
    #[extend("propertyNames" = serde_json::json!({ "pattern": "^(frame$|[$@^])" }))]
    #[extend("minProperties" = 2)]
    pub struct FrameValues {
        /// The number of the frame, from 0, or `last`.
        frame: FrameIndex,
    }
}

/// The number of a frame, from 0, or `last`.
#[derive(Clone, Copy, Debug)]
pub enum FrameIndex {
    Nth(usize),
    Last,
}

pub const LAST: &str = "last";

impl<'n> FromNode<'n> for FrameIndex {
    fn from_node(node: &'n Node, at: At) -> Option<FrameIndex> {
        match node.kind {
            YamlKind::Int(n) if n >= 0 => Some(FrameIndex::Nth(n as usize)),
            YamlKind::Text(_) => at.cx.one_of(node, &[LAST]).map(|_| FrameIndex::Last),
            _ => {
                at.cx.wrong_type(node, "a frame number, from 0, or `last`");
                None
            }
        }
    }
}

notation_schema!(FrameIndex, {
    "title": "number, or `last`",
    "if": { "type": "string" }, "then": { "const": LAST }, "else": { "type": "integer", "minimum": 0 },
});

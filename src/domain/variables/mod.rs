//! The variables that expressions can read: their names, types and values, and where they are visible. `check` and the
//! renderer read the same tables.

mod frame;
mod record;
mod records;
mod request_values;
mod turn_values;
mod value;

pub use frame::{FrameContext, frame_variables, variables_at};
pub use record::FieldName;
pub use records::{Record, RecordType};
pub use request_values::RequestRecords;
pub use value::Value;

/// The type of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableType {
    Text,
    Int,
    Number,
    Bool,
    /// Any JSON; its members cannot be checked.
    Json,
    /// One of a closed set of names.
    Enum(&'static [&'static str]),
    /// One of these names, or another one.
    OpenEnum(&'static [&'static str]),
    Record(RecordType),
    List(RecordType),
    /// A list of scalars.
    ScalarList,
}

/// A variable that a place of a mapping provides, or a field of a record.
pub type Variable = (&'static str, VariableType);

use RecordType as R;
use VariableType as T;

/// The variables of places other than frames, each with its type: the check and the renderer use the same name.
pub const TURN: Variable = ("turn", T::Record(R::Turn));
pub const REQUEST: Variable = ("request", T::Record(R::Request));
/// The id of the request, as in the gateway's own header.
pub const REQUEST_ID: Variable = ("request_id", T::Text);
pub const FAULT: Variable = ("fault", T::Record(R::Fault));
/// The name of the frame.
pub const FRAME: Variable = ("frame", T::Text);
/// The data of a frame, in `framing:`.
pub const DATA: Variable = ("data", T::Record(R::Untyped));
/// The model of the request, escaped for a URL.
pub const MODEL_NAME: Variable = ("model", T::Text);
pub const UPSTREAM: Variable = ("upstream", T::Record(R::Upstream));
pub const SECRET: Variable = ("secret", T::Record(R::Secret));
/// The environment variables of the gateway, by name.
pub const ENV: Variable = ("env", T::Json);
/// What the calls of a session kept, and those of a turn.
pub const SESSION: Variable = ("session", T::Json);
pub const KEPT: Variable = ("kept", T::Json);
/// A message of a child process.
pub const MESSAGE: Variable = ("message", T::Json);
pub const BUILD: Variable = ("build", T::Record(R::Build));
/// The parameters of the path and the query of a client's request, and its headers.
pub const PATH: Variable = ("path", T::Json);
pub const QUERY: Variable = ("query", T::Json);
pub const HEADERS: Variable = ("headers", T::Json);
pub const MODEL: Variable = ("model", T::Record(R::Model));
pub const MODELS: Variable = ("models", T::List(R::Model));
pub const HEALTH: Variable = ("health", T::Record(R::Health));
/// What the usage log recorded.
pub const USAGE_LOG: Variable = ("usage_log", T::Record(R::UsageReport));
/// The metrics of the gateway, by name, and the labels of one sample.
pub const METRICS: Variable = ("metrics", T::Json);
pub const LABELS: Variable = ("labels", T::Json);
/// Of lines of a log: the time, the HTTP request with its response, and what was counted of a turn.
pub const TIME: Variable = ("time", T::Record(R::Time));
pub const HTTP: Variable = ("http", T::Record(R::Http));
pub const SUMMARY: Variable = ("summary", T::Record(R::Summary));
/// The names of the dialect and of the backend of a turn.
pub const DIALECT: Variable = ("dialect", T::Text);
pub const BACKEND: Variable = ("backend", T::Text);
/// The address of the listener.
pub const LISTEN: Variable = ("listen", T::Text);
/// The name of a frame's event, the size of its data, and its number in the stream.
pub const EVENT: Variable = ("event", T::Text);
pub const BYTES: Variable = ("bytes", T::Int);
pub const SEQ: Variable = ("seq", T::Int);
/// What a turn sent: the data of its frames, or its body.
pub const SENT: Variable = ("sent", T::Json);
/// A line of a child process, and its process.
pub const TEXT: Variable = ("text", T::Text);
pub const PID: Variable = ("pid", T::Int);

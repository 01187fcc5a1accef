//! Faults: what went wrong, with its kind, HTTP status and `param`; and the redactor for API keys in messages.

use super::emit::{EmitField, EmitSpec, EmittedFields, specs};
use super::{Tree, named_enum};

named_enum! {
    /// The kind of an error. Dialects map it to their own error types and codes with tables.
    pub enum FaultKind {
        /// The request body is not JSON.
        NotJson = "not_json",
        /// A required field is missing.
        Missing = "missing",
        /// A field has the wrong type or a value that is not allowed.
        Invalid = "invalid",
        /// The route or the backend does not support the request.
        Unsupported = "unsupported",
        TooLarge = "too_large",
        MediaType = "media_type",
        UnknownModel = "unknown_model",
        UnknownPath = "unknown_path",
        WrongMethod = "wrong_method",
        /// A request for a protocol that the endpoint does not have.
        UpgradeRequired = "upgrade_required",
        Unauthorized = "unauthorized",
        /// The API key does not allow the request.
        Forbidden = "forbidden",
        /// The client exceeds one of its limits.
        RateLimited = "rate_limited",
        /// The request has more tokens than the gateway accepts.
        ContextLength = "context_length",
        /// The gateway cannot take more work at the moment.
        Overloaded = "overloaded",
        /// The backend reported an error.
        Backend = "backend",
        /// The backend could not be reached.
        Unreachable = "unreachable",
        /// The backend ended without any output.
        Empty = "empty",
        /// The backend's stream ended before the response was complete.
        Truncated = "truncated",
        /// The backend's output cannot be decoded, or exceeds a size limit.
        Malformed = "malformed",
        Timeout = "timeout",
        /// A frame violates its schema or order.
        Violation = "violation",
        Internal = "internal",
    }
}

impl FaultKind {
    /// The default HTTP status.
    pub fn status(self) -> u16 {
        match self {
            FaultKind::NotJson
            | FaultKind::Missing
            | FaultKind::Invalid
            | FaultKind::Unsupported
            | FaultKind::ContextLength => 400,
            FaultKind::Unauthorized => 401,
            FaultKind::Forbidden => 403,
            FaultKind::UnknownModel | FaultKind::UnknownPath => 404,
            FaultKind::WrongMethod => 405,
            FaultKind::TooLarge => 413,
            FaultKind::MediaType => 415,
            FaultKind::UpgradeRequired => 426,
            FaultKind::RateLimited => 429,
            FaultKind::Overloaded => 503,
            FaultKind::Backend
            | FaultKind::Unreachable
            | FaultKind::Empty
            | FaultKind::Truncated
            | FaultKind::Malformed => 502,
            FaultKind::Timeout => 504,
            FaultKind::Violation | FaultKind::Internal => 500,
        }
    }
}

/// How a dialect reports faults (`faults:`).
pub trait FaultReporter: Send + Sync {
    /// The fault with the status, type, code and message that clients get.
    fn report(&self, fault: Fault) -> Fault;
}

/// An error, before the response or in the middle of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub kind: FaultKind,
    pub message: String,
    /// The field of the client's request that caused the error: `messages[2].content`.
    pub param: Option<String>,
    /// The backend's own error code, if it sent one.
    pub code: Option<String>,
    pub status: Option<u16>,
    /// Seconds.
    pub retry_after: Option<u64>,
    /// The type of error, by the dialect's `faults:`.
    pub error_type: Option<String>,
    /// Whether the client may repeat its request, by the dialect's `faults:`.
    pub retryable: Option<bool>,
    /// The limit that was exceeded, as in `timeouts:` and `limits:`.
    pub limit: Option<&'static str>,
    /// What the client sent, if that is the cause: the name of an unknown model.
    pub value: Option<Box<str>>,
    /// What else the backend reported about it, for the client.
    pub details: Option<Box<Tree>>,
    /// The dialect's `faults:` were applied.
    pub is_reported: bool,
    /// What only the operator may see, such as the expression that failed: for the log, `explain` and tests.
    pub detail: Option<String>,
}

impl EmitField for Fault {
    const SPEC: EmitSpec = EmitSpec::Group(
        specs!(message: String, code: String, param: String, status: u16, retry_after: u64, details: Tree),
    );

    /// The fault of a backend.
    fn take(_: &str, fields: &mut EmittedFields) -> Option<Fault> {
        let message = String::take("message", fields).filter(|message| !message.is_empty());
        Some(Fault {
            code: String::take("code", fields),
            param: String::take("param", fields),
            status: u16::take("status", fields),
            retry_after: u64::take("retry_after", fields),
            details: Tree::take("details", fields).map(Box::new),
            ..Fault::new(FaultKind::Backend, message.unwrap_or_else(|| "the backend reported an error".into()))
        })
    }
}

/// Removes secrets from texts for clients, in case a backend repeats them in an error.
#[derive(Clone)]
pub struct Redactor(std::sync::Arc<[Box<str>]>);

/// From this length on, a key is no part of another word by chance.
const LONG_KEY: usize = 12;

impl Redactor {
    pub fn new(text: &str) -> Redactor {
        Redactor::of([text])
    }

    pub fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Redactor {
        Redactor(texts.into_iter().filter(|text| !text.is_empty()).map(Box::from).collect())
    }

    /// Replaces the keys wherever they are, also if characters of them are escaped as in JSON. A short key is replaced
    /// only where it is a word of its own: as part of another word it is no leak, and replacing it would change the
    /// message.
    pub fn redact(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, key| without_key(key, &text))
    }

    pub fn redact_fault(&self, fault: Fault) -> Fault {
        let redact = |text: Option<String>| text.map(|text| self.redact(&text));
        let message = self.redact(&fault.message);
        Fault { message, param: redact(fault.param), code: redact(fault.code), detail: redact(fault.detail), ..fault }
    }
}

fn without_key(key: &str, text: &str) -> String {
    let in_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let mut redacted = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let written = written_length(key, rest).filter(|length| {
            let is_word = !redacted.ends_with(in_word) && !rest[*length..].starts_with(in_word);
            is_word || key.len() >= LONG_KEY
        });
        match written {
            Some(length) => {
                redacted.push_str("[redacted]");
                rest = &rest[length..];
            }
            None => {
                redacted.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    redacted
}

/// The bytes of the text that are the key, if it begins with it.
fn written_length(key: &str, text: &str) -> Option<usize> {
    let mut rest = text;
    for c in key.chars() {
        rest = rest.strip_prefix(c).or_else(|| after_escaped(rest, c))?;
    }
    Some(text.len() - rest.len())
}

/// What follows the character, if the text begins with it in the form of JSON: `\/`, `\u002d`.
fn after_escaped(text: &str, c: char) -> Option<&str> {
    let escaped = text.strip_prefix('\\')?;
    match escaped.strip_prefix('u') {
        Some(hex) => {
            let (hex, rest) = hex.split_at_checked(4)?;
            (u32::from_str_radix(hex, 16).ok()? == u32::from(c)).then_some(rest)
        }
        None => escaped.strip_prefix(c),
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redactor")
    }
}

impl Fault {
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Fault {
        let message = message.into();
        Fault {
            kind,
            message,
            param: None,
            code: None,
            status: None,
            retry_after: None,
            error_type: None,
            retryable: None,
            limit: None,
            value: None,
            details: None,
            is_reported: false,
            detail: None,
        }
    }

    /// An expression that failed while something was rendered. Clients do not see it.
    pub fn not_rendered(what: &str, error: impl std::fmt::Display) -> Fault {
        let detail = Some(error.to_string());
        Fault { detail, ..Fault::new(FaultKind::Internal, format!("{what} could not be rendered")) }
    }

    /// The message with the detail, for the operator.
    pub fn full_message(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{}: {detail}", self.message),
            None => self.message.clone(),
        }
    }

    /// A time limit, by its name in `timeouts:`, was exceeded.
    pub fn timeout(limit: &'static str, message: impl Into<String>) -> Fault {
        Fault { limit: Some(limit), ..Fault::new(FaultKind::Timeout, message) }
    }

    pub fn param(mut self, param: impl Into<String>) -> Fault {
        self.param = Some(param.into());
        self
    }

    /// True if the backend stopped in the middle, so that its output up to then may be usable.
    pub fn is_partial(&self) -> bool {
        matches!(
            self.kind,
            FaultKind::Backend
                | FaultKind::Unreachable
                | FaultKind::Truncated
                | FaultKind::Malformed
                | FaultKind::Timeout
        )
    }

    /// The HTTP status. A status outside 400..=599 is ignored, because some backends send `status: 200` with an error.
    pub fn status(&self) -> u16 {
        self.status.filter(|s| (400..=599).contains(s)).unwrap_or(self.kind.status())
    }
}

use super::words;

words! {
    /// What went wrong, in our words. A dialect turns a kind into its own type and code by tables.
    pub enum FaultKind {
        /// The body is not JSON.
        NotJson = "not_json",
        /// A field that must be there is not.
        Missing = "missing",
        /// A field of the wrong type, or a value that is not allowed.
        Invalid = "invalid",
        /// Understood, but not offered by this route or backend.
        Unsupported = "unsupported",
        TooLarge = "too_large",
        MediaType = "media_type",
        UnknownModel = "unknown_model",
        UnknownPath = "unknown_path",
        WrongMethod = "wrong_method",
        Unauthorized = "unauthorized",
        Overloaded = "overloaded",
        /// The backend said no, in its own words.
        Backend = "backend",
        /// The backend could not be reached.
        Unreachable = "unreachable",
        /// The backend ended without a word.
        Empty = "empty",
        /// The backend ended in the middle.
        Truncated = "truncated",
        /// What the backend sent cannot be read.
        Garbled = "garbled",
        Timeout = "timeout",
        /// A frame of ours broke its schema or its order.
        Breach = "breach",
        Internal = "internal",
    }
}

impl FaultKind {
    /// The HTTP status when nothing better is known.
    pub fn status(self) -> u16 {
        match self {
            FaultKind::NotJson | FaultKind::Missing | FaultKind::Invalid | FaultKind::Unsupported => 400,
            FaultKind::Unauthorized => 401,
            FaultKind::UnknownModel | FaultKind::UnknownPath => 404,
            FaultKind::WrongMethod => 405,
            FaultKind::TooLarge => 413,
            FaultKind::MediaType => 415,
            FaultKind::Overloaded => 503,
            FaultKind::Backend
            | FaultKind::Unreachable
            | FaultKind::Empty
            | FaultKind::Truncated
            | FaultKind::Garbled => 502,
            FaultKind::Timeout => 504,
            FaultKind::Breach | FaultKind::Internal => 500,
        }
    }
}

/// Something went wrong, before the answer or in the middle of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub kind: FaultKind,
    pub message: String,
    /// The field of the client's request that is to blame: `messages[2].content`.
    pub param: Option<String>,
    /// The backend's own code, when it gave one.
    pub code: Option<String>,
    pub status: Option<u16>,
    /// Seconds.
    pub retry_after: Option<u64>,
}

/// A text that no client may read, even when a backend repeats it.
#[derive(Clone)]
pub struct Hidden(std::sync::Arc<str>);

impl Hidden {
    pub fn new(text: &str) -> Hidden {
        Hidden(text.into())
    }

    pub fn redact(&self, text: &str) -> String {
        text.replace(&*self.0, "[redacted]")
    }

    pub fn redacted(&self, fault: Fault) -> Fault {
        let Fault { kind, message, param, code, status, retry_after } = fault;
        let code = code.map(|code| self.redact(&code));
        Fault { kind, message: self.redact(&message), param, code, status, retry_after }
    }
}

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hidden")
    }
}

impl Fault {
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Fault {
        Fault { kind, message: message.into(), param: None, code: None, status: None, retry_after: None }
    }

    pub fn param(mut self, param: impl Into<String>) -> Fault {
        self.param = Some(param.into());
        self
    }

    /// Did the backend stop in the middle? What it said before that is still worth something.
    pub fn is_partial(&self) -> bool {
        matches!(
            self.kind,
            FaultKind::Backend
                | FaultKind::Unreachable
                | FaultKind::Truncated
                | FaultKind::Garbled
                | FaultKind::Timeout
        )
    }

    /// Only statuses that tell of an error count; a backend's `status: 200` beside an error is noise.
    pub fn status(&self) -> u16 {
        self.status.filter(|s| (400..=599).contains(s)).unwrap_or(self.kind.status())
    }
}

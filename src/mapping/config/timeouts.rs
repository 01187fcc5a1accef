//! `timeouts:` and `keepalive:` of gateway.yaml.

use crate::mapping::grammar::collections::List;
use crate::mapping::grammar::notation::{Line, LowerCase, TimeLimit};
use crate::mapping::grammar::section;
use std::time::Duration;

section! {
    /// Time limits.
    #[subject = "`timeouts:`"]
    #[title = "timeouts"]
    pub struct TimeoutSettings {
        /// Connecting to the backend.
        #[extend("default" = shown(Timeouts::default().connect))]
        connect: Option<TimeLimit>,
        /// The time until the turn begins.
        #[extend("default" = shown(Timeouts::default().first_event))]
        first_event: Option<TimeLimit>,
        /// The time between two chunks of the backend's response.
        #[extend("default" = shown(Timeouts::default().idle))]
        idle: Option<TimeLimit>,
        /// A whole JSON response.
        #[extend("default" = shown(Timeouts::default().overall))]
        overall: Option<TimeLimit>,
        /// A whole stream. Off by default, because a long stream is healthy while it makes progress.
        #[extend("default" = shown(Timeouts::default().stream))]
        stream: Option<TimeLimit>,
    }
}

/// The time limits of a backend, after all settings were applied. `None` means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    pub connect: Option<Duration>,
    pub first_event: Option<Duration>,
    pub idle: Option<Duration>,
    pub overall: Option<Duration>,
    pub stream: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = |s| Some(Duration::from_secs(s));
        Timeouts {
            connect: seconds(10),
            first_event: seconds(300),
            idle: seconds(300),
            overall: seconds(600),
            stream: None,
        }
    }
}

impl Timeouts {
    /// Applies the settings over these.
    pub fn with(self, settings: Option<&TimeoutSettings>) -> Timeouts {
        let Some(settings) = settings else { return self };
        let limit = |set: Option<TimeLimit>, inherited| set.map_or(inherited, |limit| limit.0);
        Timeouts {
            connect: limit(settings.connect, self.connect),
            first_event: limit(settings.first_event, self.first_event),
            idle: limit(settings.idle, self.idle),
            overall: limit(settings.overall, self.overall),
            stream: limit(settings.stream, self.stream),
        }
    }
}

section! {
    /// SSE comments that keep a silent stream open.
    #[subject = "`keepalive:`"]
    pub struct Keepalive: Default {
        /// The interval in a silent stream, also before the first event; `none` turns comments off.
        every: TimeLimit = TimeLimit(Some(Duration::from_secs(15))),
        /// The text of the comment; `{now_ms}` in it is the current time.
        comment: Line = Line("keepalive".to_owned()),
        /// Requests without comments.
        disable_for: DisableFor = DisableFor::default(),
    }
}

section! {
    /// Requests that turn keepalive comments off.
    #[subject = "`disable_for:`"]
    pub struct DisableFor: Default {
        /// A header with the value 1.
        header: Option<LowerCase>,
        /// A query parameter with the value 1.
        query: Option<String>,
        /// Texts in the user agent.
        user_agents: List<LowerCase> = List::default(),
    }
}

/// A time limit as written in YAML.
fn shown(limit: Option<Duration>) -> String {
    TimeLimit(limit).to_string()
}

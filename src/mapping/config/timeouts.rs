//! `timeouts:` and `keepalive:` of gateway.yaml.

use crate::domain::named_enum;
use crate::mapping::grammar::collections::List;
use crate::mapping::grammar::notation::{Line, LowerCase, NameOf, TimeLimit};
use crate::mapping::grammar::section;
use std::time::Duration;

named_enum! {
    /// Whether SSE comments of a backend count as a sign of life.
    pub enum Comments {
        Ignore = "ignore",
        Count = "count",
    }
}

section! {
    /// Time limits.
    #[derive(Copy)]
    #[subject = "`timeouts:`"]
    pub struct GatewayTimeouts {
        ..client: ClientTimeouts,
        ..backend: Timeouts,
    }
}

impl GatewayTimeouts {
    pub const DEFAULT: GatewayTimeouts =
        GatewayTimeouts { client: ClientTimeouts::DEFAULT, backend: Timeouts::DEFAULT };
}

section! {
    /// Time limits for clients.
    #[derive(Copy)]
    #[subject = "`timeouts:`"]
    pub struct ClientTimeouts {
        /// The time until the headers of a request are complete; then the connection is closed. Read at startup only.
        headers: TimeLimit = ClientTimeouts::DEFAULT.headers,
        /// The time that a client may send nothing of its request body. A body may take this long, and one second more
        /// for every 8 KiB of it. Exceeding it is a 408.
        body: TimeLimit = ClientTimeouts::DEFAULT.body,
        /// The time that a client may accept no byte of its response. Then its connection is closed, or its stream over
        /// HTTP/2.
        write: TimeLimit = ClientTimeouts::DEFAULT.write,
    }
}

impl ClientTimeouts {
    pub const DEFAULT: ClientTimeouts = ClientTimeouts {
        headers: TimeLimit(Some(Duration::from_secs(75))),
        body: TimeLimit(Some(Duration::from_secs(30))),
        write: TimeLimit(Some(Duration::from_secs(60))),
    };
}

section! {
    /// Time limits for a backend.
    #[derive(Copy, PartialEq, Eq)]
    #[subject = "`timeouts:`"]
    pub struct Timeouts {
        /// Connecting to the backend.
        #[extend("default" = Timeouts::DEFAULT.connect.map(|t| t.to_string()))]
        connect: Option<TimeLimit>,
        /// The time until the turn begins.
        #[extend("default" = Timeouts::DEFAULT.first_event.map(|t| t.to_string()))]
        first_event: Option<TimeLimit>,
        /// The time between two chunks of data of the backend's response, once it has begun.
        #[extend("default" = Timeouts::DEFAULT.idle.map(|t| t.to_string()))]
        idle: Option<TimeLimit>,
        /// The same for a JSON response. Default: `idle`.
        idle_json: Option<TimeLimit>,
        /// Whether SSE comments of the backend count as a sign of life for `idle`: `ignore`, only data does; `count`,
        /// comments do too, until the finish. They never extend `first_event`.
        #[extend("default" = Timeouts::DEFAULT.comments.map(|comments| comments.0.name()))]
        comments: Option<NameOf<Comments>>,
        /// A whole JSON response.
        #[extend("default" = Timeouts::DEFAULT.overall.map(|t| t.to_string()))]
        overall: Option<TimeLimit>,
        /// A whole stream. Off by default, because a long stream is healthy while it makes progress.
        #[extend("default" = Timeouts::DEFAULT.stream.map(|t| t.to_string()))]
        stream: Option<TimeLimit>,
        /// With the policy `stop_after_tools: burst`: the time without another call after which a response ends.
        #[extend("default" = Timeouts::DEFAULT.after_tools.map(|t| t.to_string()))]
        after_tools: Option<TimeLimit>,
    }
}

impl Timeouts {
    pub const DEFAULT: Timeouts = Timeouts {
        connect: TimeLimit::seconds(10),
        first_event: TimeLimit::seconds(300),
        idle: TimeLimit::seconds(300),
        idle_json: None,
        comments: Some(NameOf(Comments::Ignore)),
        overall: TimeLimit::seconds(600),
        stream: Some(TimeLimit(None)),
        after_tools: Some(TimeLimit(Some(Duration::from_millis(300)))),
    };

    /// These, and the others where these are not set.
    pub fn or(self, others: Timeouts) -> Timeouts {
        Timeouts {
            connect: self.connect.or(others.connect),
            first_event: self.first_event.or(others.first_event),
            idle: self.idle.or(others.idle),
            idle_json: self.idle_json.or(others.idle_json),
            comments: self.comments.or(others.comments),
            overall: self.overall.or(others.overall),
            stream: self.stream.or(others.stream),
            after_tools: self.after_tools.or(others.after_tools),
        }
    }
}

section! {
    /// How the server stops. Read when it does.
    #[derive(Copy)]
    #[subject = "`drain:`"]
    pub struct Drain: Default {
        /// The time after the stop signal in which the server is not ready but still accepts requests, so that a load
        /// balancer can notice.
        delay: TimeLimit = TimeLimit(None),
        /// The time after that in which turns in flight may finish. Those that do not get the failure of their dialect.
        limit: TimeLimit = TimeLimit(Some(Duration::from_secs(10))),
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

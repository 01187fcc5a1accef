//! `telemetry:` and `usage_log:` of gateway.yaml: how clients are named in logs and metrics, and the file with one record
//! per turn.

use crate::mapping::grammar::collections::{List, NonEmptyList};
use crate::mapping::grammar::notation::{Bytes, LowerCase};
use crate::mapping::grammar::section;
use crate::mapping::language::directives::SkeletonNode;

section! {
    /// What logs and metrics contain about clients.
    #[subject = "`telemetry:`"]
    pub struct Telemetry: Default {
        /// The names of clients in logs and metrics, by their `User-Agent`; the first match is used. All others are
        /// `other`: clients cannot create labels.
        clients: List<KnownClient> = List::default(),
    }
}

section! {
    /// A client that logs and metrics mention by name.
    #[subject = "a known client"]
    #[title = "known client"]
    pub struct KnownClient {
        /// The name in logs and metrics.
        name: String,
        /// Texts in its `User-Agent`, in any case.
        user_agents: NonEmptyList<LowerCase>,
    }
}

section! {
    /// A file with one JSON record per turn: its tokens, its duration and how it ended.
    #[subject = "`usage_log:`"]
    pub struct UsageLogSection<'n> {
        /// The file. Records are appended; it is created if it does not exist.
        path: String,
        /// The size at which the file is renamed to `PATH.1` and a new one begins. An earlier `PATH.1` is replaced.
        max_bytes: Bytes = Bytes(64 << 20),
        /// A map: members of each record in addition to its own. It sees what a line of a log at `turn` sees.
        members: Option<SkeletonNode<'n>>,
    }
}

/// The file of a usage log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageLogPlan {
    pub path: String,
    pub max_bytes: u64,
}

impl From<UsageLogSection<'_>> for UsageLogPlan {
    fn from(section: UsageLogSection) -> UsageLogPlan {
        UsageLogPlan { path: section.path, max_bytes: section.max_bytes.0 as u64 }
    }
}

/// The name of clients that `clients:` does not list.
pub const OTHER_CLIENT: &str = "other";

impl Telemetry {
    /// The name of the client with this `User-Agent`.
    pub fn client(&self, user_agent: &str) -> &str {
        let agent = user_agent.to_lowercase();
        let known = self.clients.iter().find(|client| client.user_agents.0.iter().any(|text| agent.contains(&text.0)));
        known.map_or(OTHER_CLIENT, |client| &client.name)
    }
}

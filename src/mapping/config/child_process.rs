//! `process:` of a backend that is a child process: its command, its environment, and how it is supervised. Set in the
//! backend file; an entry of gateway.yaml can override it.

use super::rename_fields::RenameFields;
use super::request_values::NamedValues;
use super::timeouts::Timeouts;
use crate::domain::{Tree, named_enum, variables};
use crate::mapping::config::backend_request::RequestSettings;
use crate::mapping::grammar::collections::{Entries, Map};
use crate::mapping::grammar::notation::{Bytes, NameOf, PositiveCount, TimeLimit};
use crate::mapping::grammar::unparsed::Unparsed;
use crate::mapping::grammar::{At, FromNode, section};
use crate::mapping::language::directives::SkeletonNode;
use crate::mapping::language::expression::{ExpressionPool, ExpressionPoolBuilder};
use crate::mapping::language::scope::VariableScope;
use crate::mapping::language::skeleton::Skeleton;
use crate::mapping::language::skeleton_compiler::SkeletonCompiler;
use crate::mapping::language::skeleton_fragments::Fragments;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::{LoadContext, constant};
use crate::mapping::source::yaml::Entry;
use std::sync::Arc;

named_enum! {
    /// What happens to a request while no worker is ready.
    pub enum WhileStarting {
        /// It waits for a worker, for the time of `start_timeout`.
        Wait = "wait",
        /// It is rejected with 503.
        Reject = "reject",
    }
}

/// A `process:` section, compiled.
#[derive(Debug)]
pub struct ProcessTemplate {
    pub command: Option<Skeleton>,
    /// A list of texts.
    pub arguments: Option<Skeleton>,
    /// A variable without a value is removed.
    pub environment: NamedValues,
    pub directory: Option<Skeleton>,
    pub supervision: Supervision,
    pub pool: ExpressionPool,
    /// The section as written: a reload that changes it needs a restart.
    pub source: Tree,
}

/// The child process of one entry of gateway.yaml.
#[derive(Clone, Debug)]
pub struct ChildEntry {
    /// Of the backend file, then of the entry; the later one takes precedence, key by key.
    pub process: Vec<Arc<ProcessTemplate>>,
    pub settings: RequestSettings,
    pub timeouts: Timeouts,
}

section! {
    /// The process of a backend with the transport `child_jsonrpc`. Read at startup only. Texts see `env`, the
    /// environment variables of the gateway.
    #[subject = "`process:`"]
    #[title = "process"]
    pub struct ProcessSection<'n> {
        /// The program: a path, or a name that is searched for in `PATH`.
        command: Option<SkeletonNode<'n>>,
        /// The arguments, a list of texts.
        arguments: Option<SkeletonNode<'n>>,
        /// Changes to the environment of the gateway, by variable; null removes one. The API keys of clients and the token
        /// of the admin listener are always removed.
        environment: Entries<'n, Map<SkeletonNode<'n>>> = Entries::default(),
        /// The working directory; created if it does not exist. Default: that of the gateway.
        directory: Option<SkeletonNode<'n>>,
        ..supervision: Supervision,
    }
}

section! {
    /// How the processes of a backend are supervised.
    #[derive(Copy, PartialEq, Eq)]
    #[subject = "`process:`"]
    pub struct Supervision: Default {
        /// Whether there is a process at all. Without one, the backend is not ready and its requests are rejected with 503.
        #[extend("default" = true)]
        enabled: Option<bool>,
        /// How many processes run at the same time. A turn is given to the one with the fewest turns.
        #[extend("default" = 1)]
        workers: Option<PositiveCount>,
        /// How many turns one process may serve at the same time. More are rejected with 503. Turns that have ended and
        /// that the process is still closing do not count.
        #[extend("default" = 256)]
        turns_per_worker: Option<PositiveCount>,
        /// The time from the start of a process to the last answer of `session:`.
        #[extend("default" = "15s")]
        start_timeout: Option<TimeLimit>,
        /// What happens to a request while no process is ready: `wait`, at most `start_timeout`, or `reject` with 503.
        #[extend("default" = WhileStarting::Wait.name())]
        while_starting: Option<NameOf<WhileStarting>>,
        /// The pause before the first restart. It doubles with each restart, up to `restart_longest`.
        #[extend("default" = "500ms")]
        restart_first: Option<TimeLimit>,
        /// The longest pause before a restart. A process that runs longer than this ends a series of failures.
        #[extend("default" = "5s")]
        restart_longest: Option<TimeLimit>,
        /// After how many failures in a row restarts stop: the backend is not ready.
        #[extend("default" = 25)]
        restart_limit: Option<PositiveCount>,
        /// How long restarts stop then, before another one is tried; `none`: until the gateway is restarted.
        #[extend("default" = "60s")]
        restart_cooldown: Option<TimeLimit>,
        /// After this time a process is replaced: a new one is started, and the old one ends with its last turn.
        #[extend("default" = "none")]
        recycle_after: Option<TimeLimit>,
        /// After so many turns a process is replaced.
        recycle_turns: Option<PositiveCount>,
        /// The time that a process has to end after SIGTERM, before SIGKILL.
        #[extend("default" = "5s")]
        stop_timeout: Option<TimeLimit>,
        /// The largest message of the process. A larger one ends the process.
        #[extend("default" = "16MiB")]
        line_bytes: Option<Bytes>,
        /// How many bytes may wait until the process reads them. Turns that need more are rejected with 503.
        #[extend("default" = "64MiB")]
        queue_bytes: Option<Bytes>,
        /// A process that reads nothing for this time although something waits for it is ended and replaced.
        #[extend("default" = "60s")]
        read_timeout: Option<TimeLimit>,
        /// A process that writes nothing for this time although a call waits for its answer is ended and replaced. Only
        /// for protocols in which all calls are answered at once.
        #[extend("default" = "none")]
        answer_timeout: Option<TimeLimit>,
    }
}

impl ProcessTemplate {
    pub fn new(
        unparsed: &Unparsed<ProcessSection>,
        fragments: &[&[Entry]],
        tables: &Tables,
        cx: LoadContext,
    ) -> Option<ProcessTemplate> {
        let node = unparsed.node;
        let section = ProcessSection::from_node(node, At { key: "process", key_span: node.span, cx })?;
        let mut all_fragments = Fragments::default();
        fragments.iter().for_each(|entries| all_fragments.add(entries));
        let pool = ExpressionPoolBuilder::new(tables.clone());
        let compiler =
            SkeletonCompiler { cx, pool: &pool, fragments: &all_fragments, rename_fields: &RenameFields::default() };
        let scope = VariableScope::new("`process:`", [variables::ENV]);
        let compile = |node: &SkeletonNode| compiler.compile(node.0, &scope);
        let (command, arguments) = (section.command.as_ref().map(compile), section.arguments.as_ref().map(compile));
        let directory = section.directory.as_ref().map(compile);
        let variables = section
            .environment
            .items
            .iter()
            .map(|entry| Some((entry.key.clone(), compiler.compile(&entry.value, &scope)?)));
        let environment: Option<NamedValues> = variables.collect();
        let complete = |compiled: Option<Option<Skeleton>>| match compiled {
            Some(None) => None,
            Some(some) => Some(some),
            None => Some(None),
        };
        Some(ProcessTemplate {
            command: complete(command)?,
            arguments: complete(arguments)?,
            environment: environment?,
            directory: complete(directory)?,
            supervision: section.supervision,
            pool: pool.build(),
            source: constant(node),
        })
    }
}

impl Supervision {
    /// These settings over others, key by key.
    pub fn or(self, other: Supervision) -> Supervision {
        Supervision {
            enabled: self.enabled.or(other.enabled),
            workers: self.workers.or(other.workers),
            turns_per_worker: self.turns_per_worker.or(other.turns_per_worker),
            start_timeout: self.start_timeout.or(other.start_timeout),
            while_starting: self.while_starting.or(other.while_starting),
            restart_first: self.restart_first.or(other.restart_first),
            restart_longest: self.restart_longest.or(other.restart_longest),
            restart_limit: self.restart_limit.or(other.restart_limit),
            restart_cooldown: self.restart_cooldown.or(other.restart_cooldown),
            recycle_after: self.recycle_after.or(other.recycle_after),
            recycle_turns: self.recycle_turns.or(other.recycle_turns),
            stop_timeout: self.stop_timeout.or(other.stop_timeout),
            line_bytes: self.line_bytes.or(other.line_bytes),
            queue_bytes: self.queue_bytes.or(other.queue_bytes),
            read_timeout: self.read_timeout.or(other.read_timeout),
            answer_timeout: self.answer_timeout.or(other.answer_timeout),
        }
    }
}

impl ChildEntry {
    /// The sections as written.
    pub fn source(&self) -> Vec<&Tree> {
        self.process.iter().map(|template| &template.source).collect()
    }
}

//! `logs:` of gateway.yaml: log files with lines of the set's own, and what a usage log adds to its records.

use super::gateway::KnownNames;
use super::rename_fields::RenameFields;
use super::telemetry::UsageLogSection;
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::LogMoment;
use crate::domain::variables::{self, Variable};
use crate::mapping::grammar::collections::{List, Map};
use crate::mapping::grammar::notation::{Bytes, NameOf, PositiveCount, notation_schema, text_notation};
use crate::mapping::grammar::section;
use crate::mapping::grammar::unparsed::ExpressionNode;
use crate::mapping::language::directives::SkeletonNode;
use crate::mapping::language::expression::{Expression, ExpressionPool, ExpressionPoolBuilder};
use crate::mapping::language::scope::VariableScope;
use crate::mapping::language::skeleton::Skeleton;
use crate::mapping::language::skeleton_compiler::SkeletonCompiler;
use crate::mapping::language::skeleton_fragments::Fragments;
use crate::mapping::language::variables_read::VariablesRead;
use crate::mapping::source::field_reader::LoadContext;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

section! {
    /// A log with lines of your own.
    #[subject = "a log"]
    #[title = "log"]
    pub struct LogSection<'n> {
        /// `stdout`, `stderr`, a file, or a folder with `/` at its end. Lines are appended to a file, and it is created if it
        /// does not exist. In a folder each line is a file of its own, which only the owner can read. Default: none; the
        /// log is not written.
        to: Option<LogTarget>,
        /// Whether it is written.
        enabled: bool = true,
        /// The size at which a file is renamed to `PATH.1` and a new one begins. An earlier `PATH.1` is replaced.
        max_bytes: Bytes = Bytes(64 << 20),
        /// How many files one start of the gateway writes to a folder. Further lines are dropped and counted.
        max_files: PositiveCount = PositiveCount(10_000),
        /// Its lines, in the order in which they are written at one moment.
        lines: List<LogLineEntry<'n>> = List::default(),
    }
}

section! {
    /// A line of a log.
    #[subject = "a line of a log"]
    #[title = "log line"]
    pub struct LogLineEntry<'n> {
        /// When it is written.
        at: NameOf<LogMoment>,
        /// A condition; without it the line is written every time. It sees what the line sees.
        when: Option<ExpressionNode<'n>>,
        /// The line: a text as it is, everything else as JSON. What it sees depends on the moment.
        line: SkeletonNode<'n>,
    }
}

text_notation! {
    /// Where a log is written to.
    LogTarget(String), |text, node, at| {
        if text.trim().is_empty() {
            let message = "a log needs `stdout`, `stderr` or the path of a file";
            at.cx.add(Diagnostic::new(Code::UnknownValue, node.span, message).help("`enabled: false` turns it off"));
        }
        Some(text.to_owned()).filter(|text| !text.trim().is_empty())
    }
}
notation_schema!(LogTarget, { "type": "string", "pattern": "\\S" });

/// Where a line is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogOutput {
    Stdout,
    Stderr,
    File {
        path: Arc<str>,
        /// The size at which the file is renamed.
        max_bytes: u64,
    },
    /// Each line is a file.
    Folder {
        path: Arc<str>,
        max_files: usize,
    },
}

/// A compiled line.
#[derive(Debug)]
pub struct LogLine {
    pub output: LogOutput,
    pub when: Option<Expression>,
    pub line: Skeleton,
    /// An expression of it failed, and that was logged.
    pub has_failed: AtomicBool,
}

/// All lines of a set, by moment. A moment without lines costs nothing.
#[derive(Debug)]
pub struct LogsPlan {
    /// In the order of `LogMoment::ALL`.
    lines: Vec<Vec<LogLine>>,
    pub pool: ExpressionPool,
    /// Members of a record of the usage log, besides its own.
    pub usage_members: Option<Skeleton>,
    /// Whether a line about the end of a turn reads what the turn sent.
    pub reads_sent: bool,
}

impl LogsPlan {
    pub fn at(&self, moment: LogMoment) -> &[LogLine] {
        self.lines.get(moment as usize).map_or(&[], Vec::as_slice)
    }

    pub(super) fn compile(
        logs: &Map<LogSection>,
        usage_log: Option<&UsageLogSection>,
        known: &KnownNames,
        cx: LoadContext,
    ) -> LogsPlan {
        let mut fragments = Fragments::default();
        fragments.add(known.fragments);
        let pool = ExpressionPoolBuilder::new(known.tables.clone());
        let compiler =
            SkeletonCompiler { cx, pool: &pool, fragments: &fragments, rename_fields: &RenameFields::default() };
        let mut lines: Vec<Vec<LogLine>> = LogMoment::ALL.iter().map(|_| Vec::new()).collect();
        for log in logs.iter().map(|entry| &entry.value) {
            for entry in log.lines.iter() {
                let scope = scope(entry.at.0, known);
                let when = entry.when.map(|when| compiler.condition(when.0, &scope));
                let line = compiler.compile(entry.line.0, &scope);
                // Also a log that is turned off is checked.
                let (Some(output), Some(line), None | Some(Some(_))) = (log.output(), line, &when) else { continue };
                let line = LogLine { output, when: when.flatten(), line, has_failed: AtomicBool::default() };
                lines[entry.at.0 as usize].push(line);
            }
        }
        let members = usage_log.and_then(|log| log.members);
        let usage_members = members.and_then(|members| compiler.compile(members.0, &scope(LogMoment::Turn, known)));
        let of_turn = lines[LogMoment::Turn as usize].iter().map(|line| (line.when.as_ref(), &line.line));
        let mut read = of_turn.chain(usage_members.as_ref().map(|members| (None, members)));
        let reads_sent = read.any(|(when, line)| {
            let paths = VariablesRead::of(when, line).given;
            paths.iter().any(|path| path.split('.').next() == Some(variables::SENT.0))
        });
        LogsPlan { lines, usage_members, reads_sent, pool: pool.build() }
    }
}

impl LogSection<'_> {
    /// `None`: it is turned off.
    fn output(&self) -> Option<LogOutput> {
        let to = self.to.as_ref().filter(|_| self.enabled)?;
        Some(match to.0.as_str() {
            "stdout" => LogOutput::Stdout,
            "stderr" => LogOutput::Stderr,
            path if path.ends_with('/') => LogOutput::Folder { path: path.into(), max_files: self.max_files.0 },
            path => LogOutput::File { path: path.into(), max_bytes: self.max_bytes.0 as u64 },
        })
    }
}

fn scope(moment: LogMoment, known: &KnownNames) -> VariableScope {
    use variables::{
        BACKEND, BUILD, BYTES, DATA, DIALECT, EVENT, FRAME, HEADERS, HEALTH, HTTP, LISTEN, PID, REQUEST, REQUEST_ID,
        SENT, SEQ, SUMMARY, TEXT, TIME, TURN,
    };
    const OF_TURN: &[Variable] = &[REQUEST_ID, HTTP, REQUEST, DIALECT, BACKEND];
    let (of_turn, own): (&[Variable], &[Variable]) = match moment {
        LogMoment::Start => (&[], &[LISTEN, HEALTH]),
        LogMoment::Request => (OF_TURN, &[]),
        LogMoment::Frame => (OF_TURN, &[FRAME, EVENT, DATA, BYTES, SEQ]),
        LogMoment::Body => (OF_TURN, &[DATA, BYTES]),
        LogMoment::Turn => (OF_TURN, &[TURN, SUMMARY, SENT]),
        LogMoment::Response => (&[REQUEST_ID, HTTP], &[HEADERS]),
        LogMoment::Worker => (&[], &[BACKEND, PID, TEXT]),
    };
    let variables = [TIME, BUILD].iter().chain(of_turn).chain(own).copied();
    let scope = VariableScope::new(format!("a log at `{}`", moment.name()), variables);
    match moment {
        LogMoment::Response | LogMoment::Worker => scope,
        LogMoment::Start | LogMoment::Request | LogMoment::Frame | LogMoment::Body | LogMoment::Turn => {
            scope.policies(known.policies.clone())
        }
    }
}

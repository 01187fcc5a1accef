//! The lines of `logs:`: renders those of a moment, and hands them to the queue of their output. A moment without lines
//! costs a look at an empty list.

use super::access_line::CallerLabels;
use super::app_state::AppState;
use super::health;
use crate::domain::variables::{self, Record};
use crate::domain::{HttpExchange, LogMoment, LogTime, Tree, TurnRequest};
use crate::engine::render::{RenderError, Scope, is_true, render};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::logs::{LogLine, LogOutput, LogsPlan};
use crate::reload::Generation;
use crate::telemetry::{FileLog, LogFile, LogQueue};
use crate::upstream::StderrReader;
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Files that were written to folders since the start.
static FILES: AtomicUsize = AtomicUsize::new(0);

/// What the lines of a turn have in common.
pub struct TurnLines<'t> {
    pub request_id: &'t str,
    pub http: &'t HttpExchange,
    pub request: &'t TurnRequest,
    pub dialect: &'t DialectPlan,
    pub backend: &'t str,
}

impl<'t> TurnLines<'t> {
    pub fn scope(&self) -> Scope<'t> {
        Scope::request(self.request)
            .set(variables::REQUEST_ID, self.request_id)
            .set(variables::HTTP, Record::Http(self.http))
            .set(variables::DIALECT, &self.dialect.name)
            .set(variables::BACKEND, self.backend)
            .with_policies(self.dialect)
    }
}

/// Writes the lines of a moment. `scope` is called only if there are any.
pub fn write<'s>(logs: &LogsPlan, moment: LogMoment, scope: impl FnOnce() -> Scope<'s>) {
    let lines = logs.at(moment);
    if lines.is_empty() {
        return;
    }
    let (time, scope) = (now(), scope());
    let scope = with_time(scope, &time);
    for line in lines {
        match rendered(line, &scope, logs) {
            Ok(Some(text)) => send(&line.output, text),
            Ok(None) => {}
            Err(error) if !line.has_failed.swap(true, Ordering::Relaxed) => {
                let at = moment.name();
                tracing::warn!(at, %error, "a line of `logs:` cannot be rendered; reported once");
            }
            Err(_) => {}
        }
    }
}

/// Writes the lines of the start.
pub fn write_start(generation: &Generation, app_state: &AppState, listen: &str) {
    let gateway = &generation.plan.gateway;
    let health = health::of(gateway, app_state, 0);
    write(&gateway.logs, LogMoment::Start, || {
        let scope = Scope::default().set(variables::LISTEN, listen).set(variables::HEALTH, Record::Health(&health));
        // As the errors of paths without a route: those of the first route.
        match gateway.routes.first().and_then(|route| route.variants.default_dialect()) {
            Some(dialect) => scope.with_policies(dialect),
            None => scope,
        }
    });
}

/// Writes the lines about a request that was given to its backend.
pub fn write_request(
    generation: &Generation,
    caller: &CallerLabels,
    id: &str,
    request: &TurnRequest,
    (dialect, backend): (&DialectPlan, &str),
) {
    let logs = &generation.plan.gateway.logs;
    if logs.at(LogMoment::Request).is_empty() {
        return;
    }
    let http = caller.exchange();
    let lines = TurnLines { request_id: id, http: &http, request, dialect, backend };
    write(logs, LogMoment::Request, || lines.scope());
}

/// Writes the lines about the standard error of child processes; `None` if there are none. A reload does not change
/// them, as it does not change the processes.
pub fn worker_reader(logs: &Arc<LogsPlan>) -> Option<StderrReader> {
    if logs.at(LogMoment::Worker).is_empty() {
        return None;
    }
    let logs = logs.clone();
    Some(Arc::new(move |backend: &str, pid: u32, text: &str| {
        write(&logs, LogMoment::Worker, || {
            Scope::default()
                .set(variables::BACKEND, backend)
                .set(variables::PID, u64::from(pid))
                .set(variables::TEXT, text)
        });
    }))
}

/// The members that `usage_log:` adds to a record.
pub fn usage_members<'s>(logs: &LogsPlan, scope: impl FnOnce() -> Scope<'s>) -> Vec<(String, Tree)> {
    let Some(members) = &logs.usage_members else { return Vec::new() };
    let (time, scope) = (now(), scope());
    match render(members, &with_time(scope, &time), &logs.pool) {
        Ok(Some(Tree::Map(members))) => members.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
        Ok(_) => Vec::new(),
        Err(error) => {
            tracing::warn!(%error, "the members of `usage_log:` cannot be rendered");
            Vec::new()
        }
    }
}

fn with_time<'s>(scope: Scope<'s>, time: &'s LogTime) -> Scope<'s> {
    scope.set(variables::TIME, Record::Time(time)).set(variables::BUILD, Record::Build(env!("CARGO_PKG_VERSION")))
}

fn now() -> LogTime {
    let now = Timestamp::now();
    LogTime { ms: now.as_millisecond(), iso: format!("{now:.3}") }
}

/// `None`: its condition is false, or it has no value.
fn rendered(line: &LogLine, scope: &Scope, logs: &LogsPlan) -> Result<Option<String>, RenderError> {
    if let Some(when) = &line.when
        && !is_true(when, scope, &logs.pool)?
    {
        return Ok(None);
    }
    Ok(render(&line.line, scope, &logs.pool)?.map(|value| match &value {
        // One line, whatever a client or a backend wrote.
        Tree::Str(text) => text.replace(['\n', '\r'], " "),
        _ => value.to_json(),
    }))
}

fn send(output: &LogOutput, line: String) {
    match output {
        LogOutput::Stdout => LogQueue::stdout().print(&line),
        LogOutput::Stderr => LogQueue::stderr().print(&line),
        LogOutput::Folder { path, max_files } => match FILES.fetch_add(1, Ordering::Relaxed) {
            // The last one by name is the newest.
            number if number < *max_files => {
                let name = format!("{:013}-{number:06}.json", Timestamp::now().as_millisecond());
                FileLog::lines().write_file(Path::new(&**path).join(name), line);
            }
            _ => FileLog::lines().drop_line(),
        },
        LogOutput::File { path, max_bytes } => {
            FileLog::lines().write(LogFile { path: PathBuf::from(&**path), max_bytes: *max_bytes }, line);
        }
    }
}

//! The backends of gateway.yaml: each entry with its file, and its script or its address.

use super::backend::{BackendPlan, Transport};
use super::backend_address::{BackendAddress, BackendEntry};
use super::backend_request::RequestSettings;
use super::child_process::{ChildEntry, ProcessTemplate};
use super::client_keys::Auth;
use super::gateway::{GatewayPlan, KnownNames};
use super::script::ScriptPlan;
use super::timeouts::Timeouts;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::grammar::Section;
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::yaml::Entry;
use std::sync::Arc;

#[derive(Debug)]
pub struct Backend {
    pub name: String,
    pub plan: Arc<BackendPlan>,
    pub script: Option<Arc<ScriptPlan>>,
    /// Only for HTTP backends.
    pub address: Option<BackendAddress>,
    /// Only for backends that are child processes.
    pub child: Option<ChildEntry>,
    /// Span of its name.
    pub span: Span,
}

impl Backend {
    /// How its requests are built; `None` for a replay.
    pub fn settings(&self) -> Option<&RequestSettings> {
        let of_child = || self.child.as_ref().map(|child| &child.settings);
        self.address.as_ref().map(|address| &address.settings).or_else(of_child)
    }

    /// Its own time limits, if it has any.
    pub fn timeouts(&self) -> Option<Timeouts> {
        let of_child = || self.child.as_ref().map(|child| child.timeouts);
        self.address.as_ref().map(|address| address.timeouts).or_else(of_child)
    }
}

pub(super) fn backend(entry: &Entry, timeouts: Timeouts, known: &KnownNames, cx: LoadContext) -> Option<Backend> {
    let name = &entry.key;
    let KnownNames { backends, backend_names, scripts, script_names, .. } = known;
    let fields = BackendEntry::open(&entry.value, name, cx)?;
    let address = BackendEntry::read_fields(&fields)?;
    let file = &address.file;
    let Some(plan) = backends.iter().find(|b| b.name == file.value) else {
        if !backend_names.contains(&file.as_str()) {
            let message = format!("no backend file defines `backend: {}`", file.value);
            cx.unknown(Code::UnknownReference, file.span, message, file, backend_names.iter().copied());
        }
        return None;
    };
    let (script, address) = match (plan.transport, &plan.request_template) {
        (Transport::Replay, _) => {
            fields.required("script");
            let wanted = address.script?;
            let found = scripts.iter().find(|s| s.name == wanted.value).cloned();
            if found.is_none() && !script_names.contains(&wanted.as_str()) {
                let message = format!("unknown script `{}`", wanted.value);
                cx.unknown(Code::UnknownReference, wanted.span, message, &wanted, script_names.iter().copied());
            }
            (Some(found?), None)
        }
        (Transport::Http, Some(template)) => {
            fields.required("url");
            let address = BackendAddress::new(&address, &template.settings, timeouts, known, cx);
            fields.finish();
            (None, Some(address?))
        }
        (Transport::Http, None) => {
            let message = format!("the backend file `{}` has no `request:`", file.value);
            cx.add(
                Diagnostic::new(Code::MissingKey, file.span, message)
                    .help("an HTTP backend needs `request:` with a path and a body"),
            );
            return None;
        }
        (Transport::ChildJsonrpc, _) => {
            let child = child_entry(plan, &address, timeouts, known, cx)?;
            fields.finish();
            let (name, plan) = (name.to_owned(), plan.clone());
            return Some(Backend { name, plan, script: None, address: None, child: Some(child), span: entry.key_span });
        }
    };
    Some(Backend { name: name.to_owned(), plan: plan.clone(), script, address, child: None, span: entry.key_span })
}

/// The process of an entry: that of the backend file, with the changes of the entry.
fn child_entry(
    plan: &BackendPlan,
    entry: &BackendEntry,
    timeouts: Timeouts,
    known: &KnownNames,
    cx: LoadContext,
) -> Option<ChildEntry> {
    let file = &entry.file;
    let Some(conversation) = &plan.conversation else {
        let message = format!("the backend file `{}` has no `conversation:`", file.value);
        let help = "a child process needs `conversation:` with the calls of a turn";
        cx.add(Diagnostic::new(Code::MissingKey, file.span, message).help(help));
        return None;
    };
    let mut process: Vec<Arc<ProcessTemplate>> = plan.process.iter().cloned().collect();
    if let Some(own) = &entry.process {
        process.push(Arc::new(ProcessTemplate::new(own, &[known.fragments], known.tables, cx)?));
    }
    if !process.iter().any(|template| template.command.is_some()) {
        let message = format!("the backend `{}` has no `command:`", file.value);
        let help = "add `process: { command: … }` to its file or to its entry in gateway.yaml";
        cx.add(Diagnostic::new(Code::MissingKey, file.span, message).help(help));
        return None;
    }
    let capabilities = conversation.settings.capabilities.with(&entry.capabilities);
    Some(ChildEntry {
        process,
        settings: RequestSettings { capabilities, entry: None },
        timeouts: entry.timeouts.map_or(timeouts, |own| own.or(timeouts)),
    })
}

/// A header with an API key of the gateway must not reach a backend.
pub(super) fn check_forwarded_headers(plan: &GatewayPlan, cx: LoadContext) {
    let carries_key =
        |name: &str| plan.auth == Auth::Keys && plan.api_keys.iter().any(|key| key.headers.iter().any(|h| h.0 == name));
    let forwarded = plan.backends.iter().filter_map(|backend| backend.address.as_ref());
    for header in forwarded.flat_map(|address| address.settings.capabilities.forwarded_headers()) {
        let name = &header.value.0;
        if carries_key(name) {
            let message = format!("the header `{name}` carries the API keys of this gateway and cannot be forwarded");
            cx.error(Code::UnknownValue, header.span, message);
        }
    }
}

//! TurnRequest → HTTP request, by the backend's `request:` template. Without IO: tests and `explain` build the same
//! request as the server.

mod adapt;
mod adapt_items;
mod headers;
mod unknown_values;
mod view;

pub use headers::{RequestValues, in_headers};
pub use view::{SHOWN_KEY, preview};

use crate::domain::variables::{self, Record};
use crate::domain::{Fault, FaultKind, ToolAliases, Tree, TurnRequest};
use crate::engine::render;
use crate::engine::render::{RenderError, Scope};
use crate::mapping::config::backend_request::{MergeAdjacent, RequestSettings, RequestTemplate};
use crate::mapping::config::capabilities::{FieldEdits, StreamMode};
use crate::mapping::config::dialect_request::RequestPlan;
use crate::mapping::grammar::notation::AnyValue;
use adapt::{AdaptedRequest, adapt};
use http::HeaderMap;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::collections::HashSet;
use std::sync::Arc;

/// The HTTP request, and what is needed to decode its response.
#[derive(Debug)]
pub struct BackendRequest {
    pub method: &'static str,
    /// Path and query, to be appended to the URL of the backend.
    pub path: String,
    /// Those that contain the API key are marked as sensitive.
    pub headers: HeaderMap,
    pub body: Tree,
    /// Fields of the client's request that are not sent, by the client's names.
    pub dropped: Vec<String>,
    pub tool_aliases: ToolAliases,
}

/// Characters that a path segment may contain unescaped; all others are escaped, the slash too.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':');

pub fn prepare(
    template: &RequestTemplate,
    settings: &RequestSettings,
    key: Option<&str>,
    request: &TurnRequest,
    client: &RequestPlan,
) -> Result<BackendRequest, Fault> {
    let capabilities = &settings.capabilities;
    let AdaptedRequest { content, forwarded, mut dropped, tool_aliases } =
        adapt(request, template, capabilities, client)?;
    let stream = match capabilities.stream_mode() {
        StreamMode::Always => true,
        StreamMode::Never => false,
        StreamMode::AsRequested => request.stream,
    };
    let upstream = Record::Upstream(&stream);
    let adapted = Record::Request(request, &content, &capabilities.role_map);
    let scope = Scope::default().set(variables::REQUEST, adapted).set(variables::UPSTREAM, upstream);
    let mut body = render(render::render(&template.body, &scope, &template.pool))?;
    template.merge_adjacent.iter().for_each(|plan| merge_adjacent(&mut body, plan));
    let body = apply_field_edits(body, forwarded, &capabilities.fields, &mut dropped)?;
    let path = path(template, request, upstream)?;
    let (scope, values) = (in_headers(&scope, key), RequestValues { template, settings });
    let path = values.with_query(path, &scope)?;
    let headers = values.headers(&scope, key, stream, &request.head)?;
    Ok(BackendRequest { method: template.method, path, headers, body, dropped, tool_aliases })
}

fn path(template: &RequestTemplate, request: &TurnRequest, upstream: Record) -> Result<String, Fault> {
    let prefix = template.models.as_ref().and_then(|m| m.prefix.as_deref()).unwrap_or_default();
    let model = request.upstream_model.as_ref().unwrap_or(&request.model);
    let model = model.strip_prefix(prefix).unwrap_or(model);
    let model = utf8_percent_encode(model, SEGMENT).to_string();
    let scope = Scope::default().set(variables::MODEL_NAME, &model).set(variables::UPSTREAM, upstream);
    let path = render(render::render(&template.path, &scope, &template.pool))?;
    let path = path.as_str().unwrap_or_default();
    // URL parsers resolve dot segments, so a model name could change the path.
    let segments = path.split(['?', '#']).next().unwrap_or_default().split('/');
    if segments.into_iter().any(|s| matches!(s, "." | "..")) {
        let message = format!("`{}` is not a valid model name", request.model);
        return Err(Fault::new(FaultKind::Invalid, message).param("model"));
    }
    Ok(path.to_owned())
}

/// Merges adjacent elements, for backends that require it (such as alternating roles).
fn merge_adjacent(body: &mut Tree, plan: &MergeAdjacent) {
    let Some(elements) = list_member(body, &plan.at) else { return };
    let mut merged: Vec<Tree> = Vec::new();
    for mut element in std::mem::take(elements) {
        if let Some(inner) = list_member(&mut element, &plan.list) {
            *inner = std::mem::take(inner).into_iter().flat_map(flatten).collect();
            if inner.is_empty() {
                continue;
            }
        }
        let can_merge = merged.last().is_some_and(|before| can_merge(before, &element, plan));
        match merged.last_mut().and_then(|before| list_member(before, &plan.list)).filter(|_| can_merge) {
            Some(list) => list.append(list_member(&mut element, &plan.list).unwrap_or(&mut Vec::new())),
            None => merged.push(element),
        }
    }
    *elements = merged;
}

fn can_merge(before: &Tree, element: &Tree, plan: &MergeAdjacent) -> bool {
    let all = |tree: &Tree, name: &str| {
        let list = tree.get(&plan.list).and_then(Tree::as_list).unwrap_or(&[]);
        list.iter().all(|inner| inner.get(name).is_some())
    };
    element.get(&plan.list).is_some()
        && plan.by.as_ref().is_none_or(|name| before.get(name) == element.get(name))
        && plan.only.as_ref().is_none_or(|name| all(before, name) && all(element, name))
}

fn list_member<'t>(tree: &'t mut Tree, name: &str) -> Option<&'t mut Vec<Tree>> {
    let Tree::Map(members) = tree else { return None };
    match members.iter_mut().find(|(k, _)| **k == *name) {
        Some((_, Tree::List(list))) => Some(list),
        _ => None,
    }
}

fn flatten(tree: Tree) -> Vec<Tree> {
    match tree {
        Tree::List(inner) => inner,
        other => vec![other],
    }
}

/// Adds the forwarded members to the body and applies the configured `fields:` edits: they have the last word.
fn apply_field_edits(
    mut body: Tree,
    forwarded: Vec<(Arc<str>, Tree)>,
    edits: &FieldEdits,
    dropped: &mut Vec<String>,
) -> Result<Tree, Fault> {
    if let Tree::Map(members) = &mut body {
        // The names that the client chose are distinct; a set, because there can be many thousands of them.
        let rendered: HashSet<Arc<str>> = members.iter().map(|(name, _)| name.clone()).collect();
        members.extend(forwarded.into_iter().filter(|(name, _)| !rendered.contains(name)));
    }
    if let Some(name) = edits.reject.iter().find(|name| body.get(name).is_some()) {
        let message = format!("this backend does not support `{name}`");
        return Err(Fault::new(FaultKind::Unsupported, message).param(name.as_str()));
    }
    dropped.extend(edits.drop.iter().filter(|name| body.get(name).is_some()).cloned());
    if let Tree::Map(members) = &mut body {
        members.retain(|(name, _)| !edits.drop.iter().any(|dropped| **dropped == **name));
    }
    for (name, AnyValue(value)) in edits.default.pairs() {
        if body.get(name).is_none() {
            body.insert(name, value.clone());
        }
    }
    edits.force.pairs().for_each(|(name, value)| body.insert(name, value.0.clone()));
    let Tree::Map(members) = &mut body else { return Ok(body) };
    for (from, to) in edits.rename.pairs() {
        if let Some(at) = members.iter().position(|(k, _)| **k == *from) {
            // Keys are unique: a member that already has the new name is replaced.
            members[at].0 = to.as_str().into();
            let mut index = 0..;
            members.retain(|(k, _)| index.next() == Some(at) || **k != **to);
        }
    }
    Ok(body)
}

fn render(rendered: Result<Option<Tree>, RenderError>) -> Result<Tree, Fault> {
    rendered.map(Option::unwrap_or_default).map_err(render_fault)
}

/// The fault of a request that could not be rendered, or that the template rejects.
fn render_fault(error: RenderError) -> Fault {
    match error {
        RenderError::Rejected { message, param } => Fault { param, ..Fault::new(FaultKind::Unsupported, message) },
        RenderError::Failed(why) => Fault::not_rendered("the backend request", why),
    }
}

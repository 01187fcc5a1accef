//! TurnRequest → HTTP request, by the backend's `request:` template. Without IO: tests and `explain` build the same
//! request as the server.

pub(super) mod adapt;
mod adapt_items;
mod headers;
mod unknown_values;
mod view;

pub use headers::{RequestValues, in_headers};
pub use view::{RequestPreview, SHOWN_KEY, preview};

use crate::domain::variables::{self, Record};
use crate::domain::{Draft, Fault, FaultKind, Text, ToolAliases, Tree, TurnRequest};
use crate::engine::param::with_client_param;
use crate::engine::render;
use crate::engine::render::{RenderError, Scope};
use crate::mapping::config::backend_request::{MergeAdjacent, RequestSettings, RequestTemplate};
use crate::mapping::config::capabilities::{FieldEdits, StreamMode};
use crate::mapping::config::dialect_request::RequestPlan;
use crate::mapping::grammar::notation::AnyValue;
use crate::mapping::language::skeleton::Skeleton;
use adapt::{AdaptedRequest, adapt};
use http::HeaderMap;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reframe_json::into_text;
use std::borrow::Cow;
use std::collections::HashSet;

/// The HTTP request, and what is needed to decode its response.
#[derive(Debug)]
pub struct BackendRequest {
    pub method: &'static str,
    /// Path and query, to be appended to the URL of the backend.
    pub path: String,
    /// Those that contain the API key are marked as sensitive.
    pub headers: HeaderMap,
    /// JSON.
    pub body: String,
    /// Fields of the client's request that are not sent, by the client's names.
    pub dropped: Vec<String>,
    pub tool_aliases: ToolAliases,
}

/// Characters that a path segment may contain unescaped; all others are escaped, the slash too.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':');

/// Most bodies need no more; one that does grows.
const BODY_CAPACITY: usize = 1024;

pub fn prepare(
    template: &RequestTemplate,
    settings: &RequestSettings,
    key: Option<&str>,
    request: &TurnRequest,
    client: &RequestPlan,
) -> Result<BackendRequest, Fault> {
    let capabilities = &settings.capabilities;
    let AdaptedRequest { content, forwarded, mut dropped, tool_aliases } =
        adapt(request, &template.reads, capabilities, client)?;
    let stream = match capabilities.stream_mode() {
        StreamMode::Always => true,
        StreamMode::Never => false,
        StreamMode::AsRequested => request.stream,
    };
    let upstream = Record::Upstream(&stream);
    let adapted = Record::Request(request, &content, &capabilities.role_map);
    let mut scope = Scope::default().set(variables::REQUEST, adapted).set(variables::UPSTREAM, upstream);
    let not_rendered = |error| with_client_param(render_fault(error), || client.content_param());
    let is_final = template.merge_adjacent.is_empty() && forwarded.is_empty() && capabilities.fields.is_empty();
    let body = if is_final {
        let mut body = Vec::with_capacity(BODY_CAPACITY);
        match render::write(&template.body, &mut scope, &template.pool, &mut body).map_err(not_rendered)? {
            true => into_text(body),
            false => Tree::Null.to_json(),
        }
    } else {
        let body = render::draft(&template.body, &mut scope, &template.pool).map_err(not_rendered)?;
        let mut body = body.unwrap_or_default();
        template.merge_adjacent.iter().for_each(|plan| merge_adjacent(&mut body, plan));
        apply_field_edits(body, &forwarded, &capabilities.fields, &mut dropped)?.to_json()
    };
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
    let model = match template.path {
        Skeleton::Constant(_) => String::new(),
        _ => utf8_percent_encode(model, SEGMENT).to_string(),
    };
    let mut scope = Scope::default().set(variables::MODEL_NAME, &model).set(variables::UPSTREAM, upstream);
    let path = render::draft(&template.path, &mut scope, &template.pool).map_err(render_fault)?.unwrap_or_default();
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
fn merge_adjacent(body: &mut Draft, plan: &MergeAdjacent) {
    let Some(elements) = list_member(body, &plan.at) else { return };
    let mut merged: Vec<Draft> = Vec::new();
    for mut element in std::mem::take(elements) {
        if let Some(inner) = list_member(&mut element, &plan.list) {
            *inner = std::mem::take(inner).into_iter().flat_map(flatten).collect();
            if inner.is_empty() {
                continue;
            }
        }
        let can_merge = merged.last_mut().is_some_and(|before| can_merge(before, &mut element, plan));
        match merged.last_mut().and_then(|before| list_member(before, &plan.list)).filter(|_| can_merge) {
            Some(list) => list.append(list_member(&mut element, &plan.list).unwrap_or(&mut Vec::new())),
            None => merged.push(element),
        }
    }
    *elements = merged;
}

fn can_merge(before: &mut Draft, element: &mut Draft, plan: &MergeAdjacent) -> bool {
    let all = |draft: &mut Draft, name: &str| {
        let mut list = list_member(draft, &plan.list).into_iter().flatten();
        list.all(|inner| inner.get_mut(name).is_some())
    };
    let member = |draft: &mut Draft, name: &str| draft.get_mut(name).map(|member| member.clone().into_tree());
    element.get_mut(&plan.list).is_some()
        && plan.by.as_ref().is_none_or(|name| member(before, name) == member(element, name))
        && plan.only.as_ref().is_none_or(|name| all(before, name) && all(element, name))
}

fn list_member<'d, 'a>(draft: &'d mut Draft<'a>, name: &str) -> Option<&'d mut Vec<Draft<'a>>> {
    draft.get_mut(name).and_then(Draft::elements_mut)
}

fn flatten(mut draft: Draft) -> Vec<Draft> {
    match draft.elements_mut() {
        Some(elements) => std::mem::take(elements),
        None => vec![draft],
    }
}

/// More forwarded members than these are looked up in a set: there can be many thousands of them.
const FEW_FORWARDED: usize = 16;

/// Adds the forwarded members to the body and applies the configured `fields:` edits: they have the last word.
fn apply_field_edits<'a>(
    mut body: Draft<'a>,
    forwarded: &[(&'a Text, &'a Tree)],
    edits: &'a FieldEdits,
    dropped: &mut Vec<String>,
) -> Result<Draft<'a>, Fault> {
    let Some(members) = body.members_mut() else { return Ok(body) };
    // The names that the client chose are distinct.
    let rendered = members.len();
    let names: HashSet<String> = match forwarded.len() > FEW_FORWARDED {
        true => members.iter().map(|(name, _)| name.to_string()).collect(),
        false => HashSet::new(),
    };
    for (name, value) in forwarded {
        let is_rendered =
            names.contains(name.as_str()) || names.is_empty() && has_member(&members[..rendered], name.as_str());
        if !is_rendered {
            members.push((Cow::Borrowed(name.as_str()), Draft::Tree(value)));
        }
    }
    if let Some(name) = edits.reject.iter().find(|name| has_member(members, name)) {
        let message = format!("this backend does not support `{name}`");
        return Err(Fault::new(FaultKind::Unsupported, message).param(name.as_str()));
    }
    dropped.extend(edits.drop.iter().filter(|name| has_member(members, name)).cloned());
    if !edits.drop.is_empty() {
        members.retain(|(name, _)| !edits.drop.iter().any(|dropped| **dropped == **name));
    }
    for (name, AnyValue(value)) in edits.default.pairs() {
        if !has_member(members, name) {
            members.push((Cow::Borrowed(name), Draft::Tree(value)));
        }
    }
    for (name, AnyValue(value)) in edits.force.pairs() {
        match members.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = Draft::Tree(value),
            None => members.push((Cow::Borrowed(name), Draft::Tree(value))),
        }
    }
    for (from, to) in edits.rename.pairs() {
        if let Some(at) = members.iter().position(|(name, _)| *name == from) {
            // Keys are unique: a member that already has the new name is replaced.
            members[at].0 = Cow::Borrowed(to);
            let mut index = 0..;
            members.retain(|(name, _)| index.next() == Some(at) || *name != *to);
        }
    }
    Ok(body)
}

fn has_member(members: &[(Cow<str>, Draft)], name: &str) -> bool {
    members.iter().any(|(known, _)| *known == name)
}

/// The fault of a request that could not be rendered, or that the template rejects.
pub(super) fn render_fault(error: RenderError) -> Fault {
    match error {
        RenderError::Rejected { message, param } => Fault { param, ..Fault::new(FaultKind::Unsupported, message) },
        RenderError::Failed(why) => Fault::not_rendered("the backend request", why),
    }
}

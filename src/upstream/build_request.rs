//! A prepared request → what goes over HTTP, by the backend's `request:`.

use super::adapt_request::{Prepared, prepare};
use super::secrets::Secret;
use crate::domain::{Fault, FaultKind, Tree, TurnRequest};
use crate::engine::render;
use crate::engine::render::{RenderError, Scope, Value};
use crate::mapping::config::backend_address::Reach;
use crate::mapping::config::backend_request::{AskPlan, Join};
use crate::mapping::config::capabilities::{FieldEdits, StreamMode};
use crate::mapping::config::dialect_request::RequestPlan;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};

/// What is sent, and what the answer's reader has to know about it.
pub struct Composed {
    pub method: reqwest::Method,
    pub url: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub dropped: Vec<String>,
    pub wrapped: Vec<String>,
    pub answer_tool: Option<String>,
}

/// One segment of a path holds these as they are; all else is escaped, the slash too.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':');

pub fn compose(
    ask: &AskPlan,
    reach: &Reach,
    key: Option<&Secret>,
    request: &TurnRequest,
    client: &RequestPlan,
) -> Result<Composed, Fault> {
    let Prepared { request, mut dropped, wrapped, answer_tool } = prepare(request, ask, &reach.manners, client)?;
    let stream = match reach.manners.stream {
        StreamMode::Always => true,
        StreamMode::Never => false,
        StreamMode::AsAsked => request.stream,
    };
    let upstream = Tree::map([("stream", Tree::from(stream))]);
    let scope = Scope::request(&request).with("upstream", Value::Tree(&upstream));
    let mut body = render(render::render(&ask.body, &scope, &ask.pool))?;
    ask.joins.iter().for_each(|j| join(&mut body, j));
    let body = edit(body, &request.view, &reach.manners.fields, &mut dropped)?;
    let path = path(ask, &request, &upstream)?;
    let method = reqwest::Method::from_bytes(ask.method.as_bytes()).unwrap_or(reqwest::Method::POST);
    let headers = headers(ask, &scope, key, stream)?;
    let mut bytes = Vec::new();
    body.write(&mut bytes);
    Ok(Composed { method, url: format!("{}{path}", reach.url), headers, body: bytes, dropped, wrapped, answer_tool })
}

fn path(ask: &AskPlan, request: &TurnRequest, upstream: &Tree) -> Result<String, Fault> {
    let prefix = ask.models.as_ref().and_then(|m| m.prefix.as_deref()).unwrap_or_default();
    let model = request.model.strip_prefix(prefix).unwrap_or(&request.model);
    let model = utf8_percent_encode(model, SEGMENT).to_string();
    let scope = Scope::default().with("model", Value::text(&model)).with("upstream", Value::Tree(upstream));
    let path = render(render::render(&ask.path, &scope, &ask.pool))?;
    let path = path.as_str().unwrap_or_default();
    // A URL's reader takes these for the folder itself and the one above, whoever wrote them.
    let steps = path.split(['?', '#']).next().unwrap_or_default().split('/');
    if steps.into_iter().any(|s| matches!(s, "." | "..")) {
        let message = format!("`{}` cannot be the name of a model", request.model);
        return Err(Fault::new(FaultKind::Invalid, message).param("model"));
    }
    Ok(path.to_owned())
}

pub fn headers(ask: &AskPlan, scope: &Scope, key: Option<&Secret>, stream: bool) -> Result<HeaderMap, Fault> {
    let secret = Tree::map([("key", key.map_or(Tree::Null, |k| Tree::from(k.expose())))]);
    let build = Tree::map([("version", Tree::from(env!("CARGO_PKG_VERSION")))]);
    let scope = scope.with("secret", Value::Tree(&secret)).with("build", Value::Tree(&build));
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(
        ACCEPT,
        HeaderValue::from_static(if stream { "text/event-stream, application/json" } else { "application/json" }),
    );
    // A compressor would hold small events back; what is compressed all the same is read.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("reframe/", env!("CARGO_PKG_VERSION"))));
    for (name, text) in &ask.headers {
        let Some(value) = render::render_whole(text, &scope, &ask.pool).map_err(internal)? else { continue };
        let text = crate::mapping::language::field::scalar_text(&value).unwrap_or_default();
        let (Ok(name), Ok(mut value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(&text)) else {
            let message = format!("the header `{name}` cannot hold what the request says");
            return Err(Fault::new(FaultKind::Invalid, message));
        };
        value.set_sensitive(key.is_some_and(|k| text.contains(k.expose())));
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Neighbours that the backend takes as one become one.
fn join(body: &mut Tree, join: &Join) {
    let Some(elements) = member(body, &join.at) else { return };
    let mut joined: Vec<Tree> = Vec::new();
    for mut element in std::mem::take(elements) {
        if let Some(inner) = member(&mut element, &join.list) {
            *inner = std::mem::take(inner).into_iter().flat_map(flat).collect();
            if inner.is_empty() {
                continue;
            }
        }
        let fits = joined.last().is_some_and(|before| fits(before, &element, join));
        match joined.last_mut().and_then(|before| member(before, &join.list)).filter(|_| fits) {
            Some(list) => list.append(member(&mut element, &join.list).unwrap_or(&mut Vec::new())),
            None => joined.push(element),
        }
    }
    *elements = joined;
}

fn fits(before: &Tree, element: &Tree, join: &Join) -> bool {
    let all = |tree: &Tree, name: &str| {
        let list = tree.get(&join.list).and_then(Tree::as_list).unwrap_or(&[]);
        list.iter().all(|inner| inner.get(name).is_some())
    };
    element.get(&join.list).is_some()
        && join.by.as_ref().is_none_or(|name| before.get(name) == element.get(name))
        && join.only.as_ref().is_none_or(|name| all(before, name) && all(element, name))
}

fn member<'t>(tree: &'t mut Tree, name: &str) -> Option<&'t mut Vec<Tree>> {
    let Tree::Map(members) = tree else { return None };
    match members.iter_mut().find(|(k, _)| **k == *name) {
        Some((_, Tree::List(list))) => Some(list),
        _ => None,
    }
}

fn flat(tree: Tree) -> Vec<Tree> {
    match tree {
        Tree::List(inner) => inner,
        other => vec![other],
    }
}

/// The operator's last word on the members of the body.
fn edit(body: Tree, view: &Tree, edits: &FieldEdits, dropped: &mut Vec<String>) -> Result<Tree, Fault> {
    let Tree::Map(mut members) = body else { return Ok(body) };
    for (name, value) in view.get("forwarded").and_then(Tree::as_map).unwrap_or(&[]) {
        if !members.iter().any(|(k, _)| k == name) {
            members.push((name.clone(), value.clone()));
        }
    }
    if let Some(name) = edits.reject.iter().find(|name| members.iter().any(|(k, _)| **k == ***name)) {
        let message = format!("this backend does not take `{name}`");
        return Err(Fault::new(FaultKind::Unsupported, message).param(name.as_str()));
    }
    for name in &edits.drop {
        if let Some(at) = members.iter().position(|(k, _)| **k == **name) {
            members.remove(at);
            dropped.push(name.clone());
        }
    }
    for (name, value) in &edits.default {
        if !members.iter().any(|(k, _)| **k == **name) {
            members.push((name.as_str().into(), value.clone()));
        }
    }
    for (name, value) in &edits.force {
        match members.iter_mut().find(|(k, _)| **k == **name) {
            Some((_, old)) => *old = value.clone(),
            None => members.push((name.as_str().into(), value.clone())),
        }
    }
    for (from, to) in &edits.rename {
        if let Some(at) = members.iter().position(|(k, _)| **k == **from) {
            // A name stands once: what was there under the new one gives way.
            members[at].0 = to.as_str().into();
            let mut place = 0..;
            members.retain(|(k, _)| place.next() == Some(at) || **k != **to);
        }
    }
    Ok(Tree::Map(members))
}

fn render(rendered: Result<Option<Tree>, RenderError>) -> Result<Tree, Fault> {
    rendered.map(Option::unwrap_or_default).map_err(internal)
}

fn internal(error: RenderError) -> Fault {
    Fault::new(FaultKind::Internal, format!("the backend's request could not be made: {error}"))
}

//! The request to a backend as JSON, for `expect: { sent: … }` of tests and for `reframe explain --sent`.

use super::{BackendRequest, prepare};
use crate::domain::{Fault, FaultKind, Tree, TurnRequest};
use crate::engine::conversation;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::backend_request::RequestSettings;
use crate::mapping::config::dialect_request::RequestPlan;
use percent_encoding::percent_decode_str;
use reframe_json::Limits;
use std::sync::Arc;

/// What `secret.key` is in tests and in `explain`: they never read an API key.
pub const SHOWN_KEY: &str = "API-KEY";

/// What a backend would get for a request.
pub enum RequestPreview {
    Http(Box<BackendRequest>),
    /// The calls to a child process.
    Calls(Tree),
}

/// The request that a backend would get. `settings`: those of an entry of gateway.yaml instead of the file's own.
pub fn preview(
    backend: &Arc<BackendPlan>,
    settings: Option<&RequestSettings>,
    request: &Arc<TurnRequest>,
    client: &RequestPlan,
) -> Result<RequestPreview, Fault> {
    if let Some(conversation) = &backend.conversation {
        let settings = settings.unwrap_or(&conversation.settings);
        let prepared = conversation::prepare(backend, settings, request, client)?;
        return conversation::preview(&prepared).map(RequestPreview::Calls);
    }
    let Some(template) = &backend.request_template else {
        let message = format!("the backend `{}` has no `request:`", backend.name);
        return Err(Fault::new(FaultKind::Internal, message));
    };
    let settings = settings.unwrap_or(&template.settings);
    prepare(template, settings, Some(SHOWN_KEY), request, client).map(|request| RequestPreview::Http(Box::new(request)))
}

impl RequestPreview {
    pub fn to_tree(&self) -> Tree {
        match self {
            RequestPreview::Http(request) => request.to_tree(),
            RequestPreview::Calls(calls) => calls.clone(),
        }
    }
}

impl BackendRequest {
    /// The body, for whoever shows it.
    pub fn body_tree(&self) -> Tree {
        let limits = Limits { max_bytes: self.body.len(), ..Limits::default() };
        Tree::parse_with(self.body.as_bytes(), &limits).unwrap_or_default()
    }

    pub fn to_tree(&self) -> Tree {
        let (path, query) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let query = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let headers = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), Tree::from(String::from_utf8_lossy(value.as_bytes()).into_owned())));
        Tree::map([
            ("method", Tree::from(self.method)),
            ("path", Tree::from(path)),
            ("query", Tree::map(query.map(|(name, value)| (decoded(name), Tree::from(decoded(value)))))),
            ("headers", Tree::map(headers)),
            ("body", self.body_tree()),
            ("dropped", Tree::from(self.dropped.iter().map(|name| Tree::from(name.as_str())).collect::<Vec<_>>())),
        ])
    }
}

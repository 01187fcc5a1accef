//! Which models a backend has, as it says itself. Asked for now and then, never trusted to answer.

use super::Dialler;
use super::build_request::headers;
use crate::domain::Tree;
use crate::engine::render::{Scope, Value};
use crate::engine::select::Cursor;
use crate::mapping::config::backend_address::Reach;
use crate::mapping::config::backend_request::{AskPlan, ModelsPlan};
use crate::mapping::config::gateway::Backend;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 4 << 20;

/// The ids, or why there are none.
pub async fn list(dialler: &Dialler, backend: &Backend) -> Result<Vec<String>, String> {
    let (Some(reach), Some(ask)) = (&backend.reach, &backend.plan.ask) else { return Ok(Vec::new()) };
    let Some(plan) = &ask.models else { return Ok(Vec::new()) };
    tokio::time::timeout(PATIENCE, fetch(dialler, reach, ask, plan))
        .await
        .map_err(|_| "no answer in time".to_owned())?
}

async fn fetch(dialler: &Dialler, reach: &Reach, ask: &AskPlan, plan: &ModelsPlan) -> Result<Vec<String>, String> {
    let key = reach.key.as_ref().and_then(|source| dialler.keys.get(source));
    let nothing = Tree::Null;
    let scope = Scope::default().with("request", Value::Tree(&nothing));
    let headers = headers(ask, &scope, key.as_ref(), false).map_err(|fault| fault.message)?;
    let client = dialler.client(reach)?;
    let sent = client.get(format!("{}{}", reach.url, plan.path)).headers(headers).send();
    let mut response = sent.await.map_err(|e| e.without_url().to_string())?;
    if !response.status().is_success() {
        return Err(format!("it answered {}", response.status()));
    }
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|e| e.without_url().to_string())? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > MAX_BYTES {
            return Err(format!("its list is larger than {MAX_BYTES} bytes"));
        }
    }
    let body = Tree::parse(&bytes).map_err(|e| format!("its list is not JSON: {e}"))?;
    let ids = plan.ids.many(&Cursor::new(&body));
    let prefix = plan.prefix.as_deref().unwrap_or_default();
    let named = |id: &str| id.strip_prefix(prefix).unwrap_or(id).to_owned();
    Ok(ids.into_iter().filter_map(|(id, _)| id.as_str().map(named)).collect())
}

//! Fetches the model list of a backend. The backend may be slow, wrong or unreachable.

use super::ClientPool;
use super::secrets::Secret;
use crate::domain::variables;
use crate::domain::{RequestHead, Tree};
use crate::engine::backend_request::{RequestValues, in_headers};
use crate::engine::render::Scope;
use crate::engine::selector::Cursor;
use crate::mapping::config::backend_address::BackendAddress;
use crate::mapping::config::backend_request::{ModelListPlan, RequestTemplate};
use crate::mapping::config::gateway_backends::Backend;
use http::Request;
use std::future::poll_fn;
use std::time::Duration;

const LIST_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 4 << 20;

/// The model ids, or the reason why there is no list.
pub async fn list(client_pool: &ClientPool, backend: &Backend) -> Result<Vec<String>, String> {
    let (Some(address), Some(template)) = (&backend.address, &backend.plan.request_template) else {
        return Ok(Vec::new());
    };
    let Some(plan) = &template.models else { return Ok(Vec::new()) };
    tokio::time::timeout(LIST_TIMEOUT, fetch(client_pool, address, template, plan))
        .await
        .map_err(|_| "no response in time".to_owned())?
}

async fn fetch(
    client_pool: &ClientPool,
    address: &BackendAddress,
    template: &RequestTemplate,
    plan: &ModelListPlan,
) -> Result<Vec<String>, String> {
    let key = address.api_key.as_ref().and_then(|source| client_pool.keys.get(source));
    let no_request = Tree::Null;
    let scope = Scope::default().set(variables::REQUEST, &no_request);
    let key = key.as_ref().map(Secret::expose);
    let (scope, values) = (in_headers(&scope, key), RequestValues { template, settings: &address.settings });
    let headers = values.headers(&scope, key, false, &RequestHead::default()).map_err(|fault| fault.message)?;
    let path = values.with_query(plan.path.clone(), &scope).map_err(|fault| fault.message)?;
    let client = client_pool.client(address)?;
    let mut request = Request::default();
    *request.uri_mut() = client.base_url.request_path(&path).ok_or("the path is not valid")?.into();
    *request.headers_mut() = headers;
    let mut exchange = client.http.send(request);
    let response = poll_fn(|cx| exchange.poll_response(cx)).await.map_err(|error| error.to_string())?;
    if !response.status().is_success() {
        return Err(format!("the backend responded with {}", response.status()));
    }
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    while let Some(chunk) = poll_fn(|cx| body.poll_bytes(cx)).await {
        // The cause may contain what the backend has sent.
        let chunk = chunk.map_err(|_| "error decoding response body".to_owned())?;
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_BYTES {
            return Err(format!("the model list is larger than {MAX_BYTES} bytes"));
        }
    }
    let body = Tree::parse(&bytes).map_err(|e| format!("the model list is not JSON: {e}"))?;
    let ids = plan.ids.many(&Cursor::new(&body));
    let prefix = plan.prefix.as_deref().unwrap_or_default();
    let without_prefix = |id: &str| id.strip_prefix(prefix).unwrap_or(id).to_owned();
    Ok(ids.into_iter().filter_map(|(id, _)| id.as_str().map(without_prefix)).collect())
}

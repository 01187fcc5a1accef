//! The models that clients may request: those that the gateway names, and those that its backends list.

use crate::mapping::config::gateway::GatewayPlan;
use crate::mapping::config::models::ModelMatch;
use crate::upstream::{ClientPool, models};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Caches the model lists of backends, so that they are not fetched for every request.
#[derive(Default)]
pub struct ModelCache(Mutex<HashMap<String, (Instant, Vec<String>)>>);

const CACHE_TTL: Duration = Duration::from_secs(30);
/// Listed for a backend that accepts every model and has no list.
const DEFAULT_MODEL: &str = "default";

impl ModelCache {
    /// All models, each with the index of its backend in the plan.
    pub async fn all(&self, gateway: &GatewayPlan, client_pool: &ClientPool) -> Vec<(String, usize)> {
        let mut all: Vec<(String, usize)> = Vec::new();
        for model in gateway.models.iter().filter(|model| model.listed) {
            match &model.matches {
                ModelMatch::Id(id) => all.push((id.clone(), model.backend)),
                ModelMatch::Prefix(prefix) => {
                    let ids = self.of_backend(gateway, model.backend, client_pool).await;
                    let before = all.len();
                    all.extend(ids.iter().filter_map(|id| Some((model.listed_name(id)?, model.backend))));
                    let is_remote = gateway.backends.get(model.backend).is_some_and(|b| b.address.is_some());
                    if all.len() == before && prefix.is_empty() && is_remote {
                        all.push((DEFAULT_MODEL.to_owned(), model.backend));
                    }
                }
            }
        }
        let mut seen = HashSet::new();
        all.retain(|(id, _)| seen.insert(id.clone()));
        all
    }

    async fn of_backend(&self, gateway: &GatewayPlan, index: usize, client_pool: &ClientPool) -> Vec<String> {
        let Some(backend) = gateway.backends.get(index) else { return Vec::new() };
        let Some(address) = &backend.address else { return Vec::new() };
        let key = format!("{} {}", backend.plan.name, address.url);
        let cached = {
            let cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            cache.get(&key).filter(|(when, _)| when.elapsed() < CACHE_TTL).map(|(_, ids)| ids.clone())
        };
        if let Some(ids) = cached {
            return ids;
        }
        let ids = match models::list(client_pool, backend).await {
            Ok(ids) => ids,
            Err(why) => {
                tracing::warn!(backend = backend.name, reason = why, "the backend's model list is not available");
                return Vec::new();
            }
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (Instant::now(), ids.clone()));
        ids
    }
}

//! The models that clients may ask for: those that the gateway names, and those that its backends list.

use crate::mapping::config::gateway::{GatewayPlan, Match};
use crate::upstream::{Dialler, models};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a backend said stands for a while: its list is not asked for with every page.
#[derive(Default)]
pub struct Listed(Mutex<HashMap<String, (Instant, Vec<String>)>>);

const FRESH: Duration = Duration::from_secs(30);
/// A backend that takes every model and lists none.
const ANY: &str = "default";

impl Listed {
    /// Each with the place of its backend in the plan.
    pub async fn all(&self, gateway: &GatewayPlan, dialler: &Dialler) -> Vec<(String, usize)> {
        let mut all: Vec<(String, usize)> = Vec::new();
        for model in &gateway.models {
            match &model.matches {
                Match::Id(id) => all.push((id.clone(), model.backend)),
                Match::Prefix(prefix) => {
                    let ids = self.of(gateway, model.backend, dialler).await;
                    let fitting = ids.into_iter().filter(|id| id.starts_with(prefix.as_str()));
                    let before = all.len();
                    all.extend(fitting.map(|id| (id, model.backend)));
                    let asked = gateway.backends.get(model.backend).is_some_and(|b| b.reach.is_some());
                    if all.len() == before && prefix.is_empty() && asked {
                        all.push((ANY.to_owned(), model.backend));
                    }
                }
            }
        }
        let mut seen: Vec<String> = Vec::new();
        all.retain(|(id, _)| {
            !seen.contains(id) && {
                seen.push(id.clone());
                true
            }
        });
        all
    }

    async fn of(&self, gateway: &GatewayPlan, at: usize, dialler: &Dialler) -> Vec<String> {
        let Some(backend) = gateway.backends.get(at) else { return Vec::new() };
        let Some(reach) = &backend.reach else { return Vec::new() };
        let key = format!("{} {}", backend.plan.name, reach.url);
        let known = {
            let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.get(&key).filter(|(when, _)| when.elapsed() < FRESH).map(|(_, ids)| ids.clone())
        };
        if let Some(ids) = known {
            return ids;
        }
        let ids = match models::list(dialler, backend).await {
            Ok(ids) => ids,
            Err(why) => {
                tracing::warn!(backend = backend.name, why, "the backend's models are not known");
                return Vec::new();
            }
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (Instant::now(), ids.clone()));
        ids
    }
}

//! The health of the gateway: whether it drains, and which backends are ready.

use super::app_state::AppState;
use crate::domain::Health;
use crate::mapping::config::gateway::GatewayPlan;

/// `turns`: the number of turns in flight.
pub fn of(gateway: &GatewayPlan, app_state: &AppState, turns: usize) -> Health {
    let backends = gateway.backends.iter().map(|backend| app_state.client_pool.health(backend));
    Health { draining: !app_state.lifecycle.is_ready(), backends: backends.collect(), turns: turns as i64 }
}

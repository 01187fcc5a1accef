//! The limits on concurrent turns: of all clients, and of one client.

use crate::domain::{Fault, FaultKind};
use crate::mapping::config::gateway::GatewayPlan;
use crate::reload::{Generation, InFlight};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who sends a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClientId {
    /// The name of the API key.
    Key(Arc<str>),
    Address(IpAddr),
    /// The address is not known.
    Unknown,
}

impl ClientId {
    /// A client with IPv6 usually has a whole /64.
    pub fn of_address(address: IpAddr) -> ClientId {
        ClientId::Address(match address.to_canonical() {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !(u128::from(u64::MAX))).into(),
        })
    }
}

/// Turns in flight, over all generations.
#[derive(Default)]
pub struct TurnSlots {
    taken: Mutex<TakenSlots>,
}

#[derive(Default)]
struct TakenSlots {
    all: usize,
    /// Clients without a turn in flight have no entry.
    by_client: HashMap<ClientId, usize>,
}

/// Why no slot is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitReached {
    Streams(usize),
    StreamsPerClient(usize),
}

/// One of the turns that may be in flight at once. Dropping it releases the slot.
pub struct ConcurrencySlot {
    slots: Arc<TurnSlots>,
    client: ClientId,
    /// How many turns were in flight before this one.
    pub before: usize,
    _in_flight: InFlight,
}

impl ConcurrencySlot {
    pub fn acquire(
        slots: &Arc<TurnSlots>,
        gateway: &GatewayPlan,
        client: ClientId,
        several_keys: bool,
        generation: &Arc<Generation>,
    ) -> Result<ConcurrencySlot, LimitReached> {
        let key = match &client {
            ClientId::Key(name) => Some(&**name),
            ClientId::Address(_) | ClientId::Unknown => None,
        };
        let before = slots.take(&client, gateway.limits.streams.0, gateway.streams_per_client(key, several_keys))?;
        Ok(ConcurrencySlot { slots: slots.clone(), client, before, _in_flight: generation.begin_turn() })
    }
}

impl TurnSlots {
    /// The number of turns in flight.
    pub fn in_flight(&self) -> usize {
        self.taken().all
    }

    /// How many turns were in flight before.
    fn take(&self, client: &ClientId, limit: usize, limit_per_client: usize) -> Result<usize, LimitReached> {
        let mut taken = self.taken();
        if taken.all >= limit {
            return Err(LimitReached::Streams(limit));
        }
        let own = taken.by_client.get(client).copied().unwrap_or_default();
        if own >= limit_per_client {
            return Err(LimitReached::StreamsPerClient(limit_per_client));
        }
        taken.all += 1;
        taken.by_client.insert(client.clone(), own + 1);
        Ok(taken.all - 1)
    }

    fn release(&self, client: &ClientId) {
        let mut taken = self.taken();
        taken.all -= 1;
        if let Some(own) = taken.by_client.get_mut(client) {
            *own -= 1;
            if *own == 0 {
                taken.by_client.remove(client);
            }
        }
    }

    fn taken(&self) -> MutexGuard<'_, TakenSlots> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConcurrencySlot {
    fn drop(&mut self) {
        self.slots.release(&self.client);
    }
}

impl LimitReached {
    /// The key of the limit in gateway.yaml.
    pub fn name(self) -> &'static str {
        match self {
            LimitReached::Streams(_) => "streams",
            LimitReached::StreamsPerClient(_) => "streams_per_client",
        }
    }

    pub fn fault(self) -> Fault {
        let requests = |limit: usize| if limit == 1 { "1 request".to_owned() } else { format!("{limit} requests") };
        let message = match self {
            LimitReached::Streams(limit) => format!("concurrency limit reached ({} in flight)", requests(limit)),
            LimitReached::StreamsPerClient(limit) => {
                format!("concurrency limit of this client reached ({} in flight)", requests(limit))
            }
        };
        Fault { retry_after: Some(1), limit: Some(self.name()), ..Fault::new(FaultKind::RateLimited, message) }
    }
}

#[cfg(test)]
#[path = "../../tests/unit/server_limits.rs"]
mod tests;

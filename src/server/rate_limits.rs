//! The limits on what one client may send and use in a minute: requests and tokens.

use super::limits::ClientId;
use crate::domain::{Fault, FaultKind};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::{StateInformationMiddleware, StateSnapshot};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use poem::Response;
use poem::http::{HeaderName, HeaderValue};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

type Limiter = RateLimiter<ClientId, HashMapStateStore<ClientId>, DefaultClock, StateInformationMiddleware>;

/// A client is forgotten when it has not used anything for so long that it may use all again.
const MAX_CLIENTS: usize = 10_000;
/// Limits of earlier generations are forgotten.
const MAX_LIMITERS: usize = 64;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    Requests,
    Tokens,
}

impl Counted {
    fn name(self) -> &'static str {
        match self {
            Counted::Requests => "requests",
            Counted::Tokens => "tokens",
        }
    }

    /// The key of the limit in gateway.yaml.
    pub fn limit(self) -> &'static str {
        match self {
            Counted::Requests => "requests_per_minute",
            Counted::Tokens => "tokens_per_minute",
        }
    }
}

/// Outlives generations. A limit that a reload changes begins anew.
#[derive(Default)]
pub struct RateLimits(Mutex<HashMap<(Counted, NonZeroU32), Arc<Limiter>>>);

/// What a client has left, for its headers.
#[derive(Clone, Copy, Debug)]
pub struct RateState {
    counted: Counted,
    limit: u32,
    remaining: u32,
    /// Until it may use all again.
    reset: Duration,
}

/// More than a client may use.
pub struct RateExceeded {
    pub state: RateState,
    pub fault: Fault,
}

impl RateLimits {
    fn limiter(&self, counted: Counted, limit: NonZeroU32) -> Arc<Limiter> {
        let mut limiters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if limiters.len() >= MAX_LIMITERS && !limiters.contains_key(&(counted, limit)) {
            limiters.clear();
        }
        let new = || Arc::new(RateLimiter::hashmap(Quota::per_minute(limit)).with_middleware());
        limiters.entry((counted, limit)).or_insert_with(new).clone()
    }

    /// Takes `amount` of what the client may use in a minute. One request cannot need more than all of it.
    pub fn take(
        &self,
        counted: Counted,
        limit: usize,
        client: &ClientId,
        amount: usize,
    ) -> Result<RateState, Box<RateExceeded>> {
        let limit = NonZeroU32::new(u32::try_from(limit).unwrap_or(u32::MAX)).unwrap_or(NonZeroU32::MIN);
        let limiter = self.limiter(counted, limit);
        if limiter.len() > MAX_CLIENTS {
            limiter.retain_recent();
        }
        let amount = NonZeroU32::new(u32::try_from(amount).unwrap_or(u32::MAX)).unwrap_or(NonZeroU32::MIN).min(limit);
        match limiter.check_key_n(client, amount) {
            Ok(Ok(snapshot)) => Ok(RateState::new(counted, limit, &snapshot)),
            Ok(Err(not_until)) => {
                let wait = not_until.wait_time_from(DefaultClock::default().now());
                let state = RateState::exceeded(counted, limit, amount, wait);
                let (limit, what) = (limit.get(), counted.name());
                let message = format!("rate limit reached ({limit} {what} per minute)");
                let retry_after = Some(wait.as_secs() + 1);
                let fault = Fault { retry_after, ..Fault::new(FaultKind::RateLimited, message) };
                Err(Box::new(RateExceeded { state, fault }))
            }
            // Only an amount above the limit is refused, and it is not.
            Err(_) => Ok(RateState { counted, limit: limit.get(), remaining: 0, reset: Duration::ZERO }),
        }
    }

    /// Takes what was used beyond what was taken before, as far as there is any left: a response cannot be refused any
    /// more.
    pub fn charge(&self, counted: Counted, limit: usize, client: &ClientId, mut amount: usize) {
        // Halves until it fits, so that little is left of a limit that is exceeded.
        while amount > 0 && self.take(counted, limit, client, amount).is_err() {
            amount /= 2;
        }
    }
}

impl RateState {
    fn new(counted: Counted, limit: NonZeroU32, snapshot: &StateSnapshot) -> RateState {
        let remaining = snapshot.remaining_burst_capacity();
        let used = f64::from(limit.get().saturating_sub(remaining));
        let reset = Duration::from_secs_f64(60.0 * used / f64::from(limit.get()));
        RateState { counted, limit: limit.get(), remaining, reset }
    }

    /// Of a client that must wait so long until it may use `amount`.
    fn exceeded(counted: Counted, limit: NonZeroU32, amount: NonZeroU32, wait: Duration) -> RateState {
        let (limit, amount) = (f64::from(limit.get()), f64::from(amount.get()));
        // After the wait only `amount` is free.
        let reset = wait + Duration::from_secs_f64(60.0 * (limit - amount) / limit);
        let remaining = (limit - limit * reset.as_secs_f64() / 60.0).max(0.0);
        RateState { counted, limit: limit as u32, remaining: remaining as u32, reset }
    }

    /// Adds `PREFIX-limit-requests`, `PREFIX-remaining-requests` and `PREFIX-reset-requests`.
    pub fn add_headers(&self, prefix: &str, response: &mut Response) {
        let values = [
            ("limit", self.limit.to_string()),
            ("remaining", self.remaining.to_string()),
            ("reset", duration_text(self.reset)),
        ];
        for (what, value) in values {
            let name = HeaderName::try_from(format!("{prefix}-{what}-{}", self.counted.name()));
            if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
                response.headers_mut().insert(name, value);
            }
        }
    }
}

/// `20ms`, `1s`, `6m0s`.
fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 60, seconds % 60) {
        (0, 0) => format!("{}ms", duration.as_millis()),
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "../../tests/unit/server_rate_limits.rs"]
mod tests;

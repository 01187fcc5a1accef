//! Whether a request may start a turn: the state of the gateway, the rates of its client, and the size of its prompt.

use super::access::Caller;
use super::app_state::AppState;
use super::limits::ClientId;
use super::rate_limits::{Counted, RateLimits, RateState};
use super::response;
use crate::domain::{Fault, FaultKind, TurnRequest};
use crate::engine::pipeline::request_chars;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::GatewayPlan;
use crate::mapping::grammar::notation::PositiveCount;
use crate::telemetry::Metrics;
use poem::Response;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The limits of one request.
pub struct Admission {
    rates: Arc<RateLimits>,
    metrics: Arc<Metrics>,
    client: ClientId,
    requests_per_minute: Option<PositiveCount>,
    tokens_per_minute: Option<PositiveCount>,
    request_tokens: Option<PositiveCount>,
    /// The tokens of the prompt, which were charged.
    estimate: AtomicUsize,
    /// What the client has left.
    states: Mutex<Vec<RateState>>,
    /// The turns in flight before this request, and with it.
    turns: OnceLock<(usize, usize)>,
}

impl Admission {
    pub fn new(gateway: &GatewayPlan, app_state: &AppState, caller: &Caller) -> Arc<Admission> {
        let (limits, of_key) = (&gateway.limits, caller.key.map(|key| key.limits).unwrap_or_default());
        Arc::new(Admission {
            rates: app_state.rates.clone(),
            metrics: app_state.metrics.clone(),
            client: caller.id.clone(),
            requests_per_minute: of_key.requests_per_minute.or(limits.requests_per_minute),
            tokens_per_minute: of_key.tokens_per_minute.or(limits.tokens_per_minute),
            request_tokens: limits.request_tokens,
            estimate: AtomicUsize::new(0),
            states: Mutex::default(),
            turns: OnceLock::new(),
        })
    }

    /// Before the body is read.
    pub fn admit_request(&self, gateway: &GatewayPlan, app_state: &AppState) -> Result<(), Fault> {
        app_state.lifecycle.check_accepts()?;
        app_state.buffered_bytes.check(gateway.limits.buffered_bytes.0)?;
        app_state.client_pool.check_ready(&gateway.backends)?;
        self.take(Counted::Requests, self.requests_per_minute, 1)
    }

    /// After the request was read, and before it is sent to a backend.
    pub fn admit_prompt(&self, request: &TurnRequest, dialect: &DialectPlan) -> Result<(), Fault> {
        if self.request_tokens.is_none() && self.tokens_per_minute.is_none() {
            return Ok(());
        }
        let tokens = request_chars(request).div_ceil(4);
        if let Some(limit) = self.request_tokens.filter(|limit| tokens > limit.0) {
            let message = format!("the request has about {tokens} tokens, more than the limit of {}", limit.0);
            let fault = Fault::new(FaultKind::ContextLength, message);
            return Err(Fault { param: dialect.request.content_param(), ..fault });
        }
        self.take(Counted::Tokens, self.tokens_per_minute, tokens)?;
        self.estimate.store(tokens, Ordering::Relaxed);
        Ok(())
    }

    fn take(&self, counted: Counted, limit: Option<PositiveCount>, amount: usize) -> Result<(), Fault> {
        let Some(limit) = limit else { return Ok(()) };
        match self.rates.take(counted, limit.0, &self.client, amount) {
            Ok(state) => {
                self.states().push(state);
                Ok(())
            }
            Err(exceeded) => {
                self.metrics.count_limit_reached(counted.limit());
                self.states().push(exceeded.state);
                Err(exceeded.fault)
            }
        }
    }

    /// Charges the client for the tokens of a turn that has ended.
    pub fn charge(&self, tokens: u64) {
        let Some(limit) = self.tokens_per_minute else { return };
        let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
        let rest = tokens.saturating_sub(self.estimate.load(Ordering::Relaxed));
        self.rates.charge(Counted::Tokens, limit.0, &self.client, rest);
    }

    /// Keeps how many turns were in flight before this request, and with it.
    pub fn count_turns(&self, before: usize, after: usize) {
        let _ = self.turns.set((before, after));
    }

    /// Adds the headers with what the client has left and the turns in flight, if gateway.yaml names them.
    pub fn add_headers(&self, gateway: &GatewayPlan, response: &mut Response) {
        if let Some(prefix) = &gateway.headers.rate_limit {
            for state in self.states().iter() {
                state.add_headers(&prefix.0, response);
            }
        }
        if let (Some(prefix), Some((before, after))) = (&gateway.headers.streams, self.turns.get()) {
            let limit = gateway.limits.streams.0;
            for (what, value) in [("before", *before), ("after", *after), ("limit", limit)] {
                response::add_header(response, &format!("{}-{what}", prefix.0), &value.to_string());
            }
        }
    }

    fn states(&self) -> MutexGuard<'_, Vec<RateState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

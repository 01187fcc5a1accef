//! State of the server that outlives generations.

use super::buffered_bytes::BufferedBytes;
use super::event_shapes::EventShapes;
use super::lifecycle::Lifecycle;
use super::models::ModelCache;
use super::rate_limits::RateLimits;
use super::report_once::ReportOnce;
use super::write_stall::WriteTimeout;
use crate::telemetry::Metrics;
use crate::upstream::ClientPool;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;
use tokio::sync::Semaphore;

pub struct AppState {
    pub client_pool: ClientPool,
    pub metrics: Arc<Metrics>,
    pub write_timeout: Arc<WriteTimeout>,
    pub reports: Arc<ReportOnce>,
    pub event_shapes: EventShapes,
    pub(super) models: ModelCache,
    pub lifecycle: Lifecycle,
    pub rates: Arc<RateLimits>,
    pub buffered_bytes: Arc<BufferedBytes>,
    /// How many large requests may be read at the same time.
    pub large_requests: Arc<Semaphore>,
    /// How many turns may be read to their end without a client.
    pub drained: Arc<Semaphore>,
    /// Who reads the usage log.
    pub usage_log_reader: Arc<Semaphore>,
}

const MAX_DRAINED: usize = 1000;

impl Default for AppState {
    fn default() -> AppState {
        let metrics = Arc::<Metrics>::default();
        let write_timeout = Arc::new(WriteTimeout::new(metrics.clone()));
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        AppState {
            client_pool: ClientPool::default(),
            metrics,
            write_timeout,
            reports: Arc::default(),
            event_shapes: EventShapes::default(),
            models: ModelCache::default(),
            lifecycle: Lifecycle::default(),
            rates: Arc::default(),
            buffered_bytes: Arc::default(),
            large_requests: Arc::new(Semaphore::new(processors)),
            drained: Arc::new(Semaphore::new(MAX_DRAINED)),
            usage_log_reader: Arc::new(Semaphore::new(1)),
        }
    }
}

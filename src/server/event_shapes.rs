//! The shapes of events that the responses of each backend share (`engine/event_cache`). They belong to one generation:
//! another mapping of a backend reads the same events in another way.

use crate::engine::event_cache::SharedShapes;
use crate::reload::Generation;
use arc_swap::ArcSwap;
use std::sync::Arc;

#[derive(Default)]
pub struct EventShapes {
    current: ArcSwap<OfGeneration>,
}

#[derive(Default)]
struct OfGeneration {
    number: u64,
    /// By the position in `backends:` of the gateway.
    backends: Vec<Arc<SharedShapes>>,
}

impl EventShapes {
    /// A turn that stays on an older generation shares none.
    pub fn of(&self, generation: &Generation, backend: usize) -> Arc<SharedShapes> {
        let known = self.current.load();
        if known.number < generation.number {
            let backends = generation.plan.gateway.backends.iter().map(|_| Arc::default()).collect();
            self.current.store(Arc::new(OfGeneration { number: generation.number, backends }));
            return Arc::default();
        }
        let is_current = known.number == generation.number;
        known.backends.get(backend).filter(|_| is_current).cloned().unwrap_or_default()
    }
}

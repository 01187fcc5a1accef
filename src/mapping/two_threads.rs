//! Independent parts of a load, on two threads. Their memory is that of these threads, and is returned to the system when
//! it is freed: what the load keeps is not between it.

use super::load::LOAD_STACK_BYTES;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{iter, thread};

/// The results of all parts, in their order. `None`: they are to be done one after the other, because there is only
/// one, no thread can be started, or a part panicked. Then the panic occurs again, and is reported with its cause.
pub fn results<T: Send>(parts: usize, work: impl Fn(usize) -> T + Sync) -> Option<Vec<T>> {
    if parts < 2 {
        return None;
    }
    let next = AtomicUsize::new(0);
    let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|part| *part < parts);
    let do_some = || iter::from_fn(take).map(|part| (part, work(part))).collect::<Vec<_>>();
    let mut results = thread::scope(|scope| {
        let start = |_| {
            thread::Builder::new()
                .name("load part".to_owned())
                .stack_size(LOAD_STACK_BYTES)
                .spawn_scoped(scope, do_some)
        };
        let threads: Vec<_> = (0..2).map_while(|at| start(at).ok()).collect();
        let ended: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
        ended.into_iter().collect::<Result<Vec<_>, _>>().ok()
    })?
    .into_iter()
    .flatten()
    .collect::<Vec<_>>();
    results.sort_unstable_by_key(|(part, _)| *part);
    (results.len() == parts).then(|| results.into_iter().map(|(_, result)| result).collect())
}

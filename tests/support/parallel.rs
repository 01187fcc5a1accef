//! Slow cases of one test, on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What `check` returns for the cases, in their order.
pub fn in_parallel<T: Sync>(cases: &[T], check: impl Fn(&T) -> Option<String> + Sync) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let work = || -> Vec<(usize, String)> {
        std::iter::from_fn(|| {
            let at = next.fetch_add(1, Ordering::Relaxed);
            cases.get(at).map(|case| check(case).map(|found| (at, found)))
        })
        .flatten()
        .collect()
    };
    let mut found: Vec<(usize, String)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    found.sort();
    found.into_iter().map(|(_, found)| found).collect()
}

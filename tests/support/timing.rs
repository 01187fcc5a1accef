//! Time in tests. A test waits for a condition, never for a while; where it must compare two times, both are stretched
//! on a busy machine.

use std::fs;
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

/// Upper limit of every wait. It only decides how long a failure takes.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Retries until the attempt returns a value.
pub fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(started.elapsed() < TIMEOUT, "never: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Milliseconds on an idle machine, and in proportion more on a busy one. For times that a test compares with each other:
/// the limits it configures, the pauses of its backend, and how long it watches that nothing happens.
pub fn ms(idle_machine: u64) -> Duration {
    Duration::from_millis(idle_machine) * *SLOWNESS
}

/// Prints the measured time. Fails at ten times the limit, later on a busy machine. That is only a check if nothing but
/// the tested behaviour would end the wait before: a timer or a poll must be configured to come much later, or not at all.
pub fn assert_within(what: &str, elapsed: Duration, limit: Duration) {
    println!("{what}: {elapsed:.1?} (limit {limit:?})");
    // Of now, because the load may have grown since the start.
    let slack = 10.0 * processes_per_core().max(1.0);
    assert!(elapsed < limit.mul_f64(slack), "{what}: {elapsed:?}, {slack:.0} times the limit of {limit:?}");
}

/// From 1 to 4. Measured once, so that all times of a run fit together.
static SLOWNESS: LazyLock<u32> = LazyLock::new(|| {
    let samples = (0..10).map(|_| {
        thread::sleep(Duration::from_millis(10));
        processes_per_core()
    });
    samples.fold(0.0, f64::max).ceil().clamp(1.0, 4.0) as u32
});

/// How many processes want to run on each core: the larger of now and the average of the last minute. 0 where the system
/// reports neither.
fn processes_per_core() -> f64 {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut fields = load.split([' ', '/']);
    let average = fields.next().and_then(|n| n.parse().ok()).unwrap_or(0.0);
    let now = fields.nth(2).and_then(|n| n.parse().ok()).unwrap_or(0.0);
    f64::max(average, now) / thread::available_parallelism().map_or(1, |n| n.get()) as f64
}

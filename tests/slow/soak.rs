//! Soak tests: many streams, faults, disconnects and slow readers, with the memory, descriptors and threads of the server
//! before, during and after.
//!
//! The default run is short. `./test soak MINUTES` runs the long forms with the release binary: each part stops at its
//! count, or when its share of the time is over.

mod faulty_streams;
mod live_streams;
mod random_disconnects;
mod slow_readers;

use crate::support::{Request, Server, eventually};
use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

/// How much a part does: a number of things, and a time after which it stops.
pub struct SoakLoad {
    pub count: usize,
    pub deadline: Instant,
    pub is_long: bool,
}

impl SoakLoad {
    /// `share` is the part's percentage of the minutes in REFRAME_SOAK. A short run has no time limit.
    pub fn new(short: usize, long: usize, share: u32) -> SoakLoad {
        let minutes: Option<f64> = std::env::var("REFRAME_SOAK").ok().map(|text| text.parse().unwrap());
        let seconds = minutes.map_or(3600.0, |minutes| minutes * 60.0 * f64::from(share) / 100.0);
        let count = if minutes.is_some() { long } else { short };
        SoakLoad { count, deadline: Instant::now() + Duration::from_secs_f64(seconds), is_long: minutes.is_some() }
    }

    pub fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }
}

/// What the server uses.
pub struct ProcessStats {
    resident_mib: u64,
    pub descriptors: usize,
    pub threads: usize,
}

impl ProcessStats {
    pub fn of(server: &Server) -> ProcessStats {
        // The server opens the descriptors that it keeps in reserve before it accepts its first client.
        server.client().fetch(Request::get("/"));
        let count = |folder: &str| fs::read_dir(format!("/proc/{}/{folder}", server.pid())).unwrap().count();
        ProcessStats { resident_mib: crate::resident(server) >> 20, descriptors: count("fd"), threads: count("task") }
    }

    /// Asserts that the server has returned to what it used before. A few idle connections to the backend may remain.
    pub fn assert_returned(&self, server: &Server, idle_connections: usize) -> ProcessStats {
        eventually("the descriptors are closed", || {
            let now = ProcessStats::of(server);
            (now.descriptors <= self.descriptors + idle_connections).then_some(now)
        })
    }
}

impl fmt::Display for ProcessStats {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} MiB, {} descriptors, {} threads", self.resident_mib, self.descriptors, self.threads)
    }
}

/// A sequence of numbers that is random enough to choose by, and the same in every run.
pub struct Sequence(u64);

impl Sequence {
    pub fn new(seed: u64) -> Sequence {
        Sequence(seed)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }
}

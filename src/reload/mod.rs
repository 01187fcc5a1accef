//! Read, check, swap: a set with one bad file changes nothing that runs.

pub mod embedded;
pub mod generation;
pub mod read;
pub mod watch;

pub use generation::{Generation, Refusal};
pub use read::{Base, Layers, ReadError};

use crate::diag::{Code, Diagnostic, Sources, Span};
use crate::mapping::{FileText, Overrides};
use arc_swap::ArcSwap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// The generation that serves, and how it is replaced.
pub struct Store {
    layers: Layers,
    overrides: Overrides,
    current: ArcSwap<Generation>,
    /// One reload at a time; remembers what was refused last, so that it is said once.
    reloading: Mutex<Option<u64>>,
}

impl Store {
    /// The first generation. Without one there is nothing to serve.
    pub fn open(layers: Layers, overrides: Overrides) -> Result<Arc<Store>, Refusal> {
        let files = read(&layers)?;
        let first = generation::build(&files, 1, None, &overrides)?;
        Ok(Arc::new(Store { layers, overrides, current: ArcSwap::from_pointee(first), reloading: Mutex::default() }))
    }

    pub fn current(&self) -> Arc<Generation> {
        self.current.load_full()
    }

    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    /// Something may have changed on disk.
    pub fn reload(&self) {
        let mut refused = self.reloading.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let now = self.current();
        let files = match read(&self.layers) {
            Ok(files) => files,
            Err(refusal) => {
                tracing::warn!("reload refused, still on generation {}: {}", now.number, refusal.brief());
                return;
            }
        };
        let hash = generation::hash(&files);
        if hash == now.hash {
            // The bad edit was taken back; made once more, it is worth saying once more.
            *refused = None;
            return;
        }
        if *refused == Some(hash) {
            return;
        }
        match generation::build(&files, now.number + 1, Some(&now.plan), &self.overrides) {
            Ok(next) => {
                *refused = None;
                tracing::info!("generation {} applied; running turns stay on the one they began with", next.number);
                self.current.store(Arc::new(next));
            }
            Err(refusal) => {
                *refused = Some(hash);
                tracing::warn!("reload refused, still on generation {}: {}", now.number, refusal.brief());
                let _ = writeln!(io::stderr(), "{}", refusal.render(false));
            }
        }
    }
}

/// The files of a set, or what cannot be read.
pub fn read(layers: &Layers) -> Result<Vec<FileText>, Refusal> {
    layers.read(&embedded::files()).map_err(|errors| {
        let mut sources = Sources::default();
        let diagnostics = errors.into_iter().map(|error| {
            let span = error.path().map_or(Span::NOWHERE, |p| Span::new(sources.add("", p, Arc::from("")), 0, 0));
            let code = match error {
                ReadError::TooBig { .. } | ReadError::TooMany { .. } => Code::Budget,
                ReadError::Io { .. } | ReadError::NotUtf8 { .. } => Code::Unreadable,
            };
            Diagnostic::new(code, span, error.to_string())
        });
        let diagnostics = diagnostics.collect();
        Refusal { diagnostics, sources: Arc::new(sources) }
    })
}

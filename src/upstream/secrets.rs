//! Keys: read once from where the plan says they are, never printed.

use crate::mapping::config::backend_address::KeySource;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use subtle::ConstantTimeEq;

#[derive(Clone)]
pub struct Secret(Arc<str>);

impl Secret {
    pub fn new(text: &str) -> Option<Secret> {
        let text = text.trim();
        (!text.is_empty()).then(|| Secret(Arc::from(text)))
    }

    /// Only for the header that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// In a time that says nothing about how much of it was right, nor how long it is.
    pub fn matches(&self, shown: &[u8]) -> bool {
        Sha256::digest(self.0.as_bytes()).ct_eq(&Sha256::digest(shown)).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// What was read stays as it was at the start, whatever a reload says.
#[derive(Debug, Default)]
pub struct Keyring {
    kept: Mutex<HashMap<KeySource, Option<Secret>>>,
    /// The start is over: nothing more is read.
    sealed: AtomicBool,
}

impl Keyring {
    pub fn get(&self, source: &KeySource) -> Option<Secret> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if self.sealed.load(Ordering::Relaxed) {
            return kept.get(source).cloned().flatten();
        }
        kept.entry(source.clone()).or_insert_with(|| read(source)).clone()
    }

    /// Reads all of these, and nothing after them.
    pub fn seal<'s>(&self, sources: impl IntoIterator<Item = &'s KeySource>) {
        sources.into_iter().for_each(|source| drop(self.get(source)));
        self.sealed.store(true, Ordering::Relaxed);
    }

    /// Why there is no key, as a person would look for it.
    pub fn why_missing(&self, source: &KeySource) -> String {
        let known = self.kept.lock().unwrap_or_else(PoisonError::into_inner).contains_key(source);
        match (source, known) {
            (KeySource::Env(name), true) => format!("the environment has no {name}"),
            (KeySource::File(path), true) => format!("there is no key in {path}"),
            (KeySource::Env(name), false) => format!("{name} was not read at the start: restart the gateway"),
            (KeySource::File(path), false) => format!("{path} was not read at the start: restart the gateway"),
        }
    }
}

fn read(source: &KeySource) -> Option<Secret> {
    match source {
        KeySource::Env(name) => std::env::var(name).ok().and_then(|text| Secret::new(&text)),
        KeySource::File(path) => match std::fs::read_to_string(path) {
            Ok(text) => Secret::new(&text),
            Err(error) => {
                tracing::error!(path, %error, "a key cannot be read");
                None
            }
        },
    }
}

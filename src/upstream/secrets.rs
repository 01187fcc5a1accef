//! API keys: read once from the environment or a file, never printed.

use crate::mapping::config::secret::SecretSource;
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

    /// For the header that carries the key, and for comparisons.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Compares digests in constant time, so that timing reveals neither a prefix nor the length.
    pub fn matches(&self, presented: &[u8]) -> bool {
        Sha256::digest(self.0.as_bytes()).ct_eq(&Sha256::digest(presented)).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Keys are read at startup and do not change with a reload.
#[derive(Debug, Default)]
pub struct Keyring {
    secrets: Mutex<HashMap<SecretSource, Option<Secret>>>,
    /// Startup is complete: no more keys are read.
    sealed: AtomicBool,
}

impl Keyring {
    pub fn get(&self, source: &SecretSource) -> Option<Secret> {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if self.sealed.load(Ordering::Relaxed) {
            return secrets.get(source).cloned().flatten();
        }
        secrets.entry(source.clone()).or_insert_with(|| read(source)).clone()
    }

    /// Reads these keys; others cannot be read later.
    pub fn seal<'s>(&self, sources: impl IntoIterator<Item = &'s SecretSource>) {
        sources.into_iter().for_each(|source| drop(self.get(source)));
        self.sealed.store(true, Ordering::Relaxed);
    }

    /// Why there is no key, with the name of the variable or file.
    pub fn missing_reason(&self, source: &SecretSource) -> String {
        let was_read = self.secrets.lock().unwrap_or_else(PoisonError::into_inner).contains_key(source);
        match (source, was_read) {
            (SecretSource::Env(name), true) => format!("the environment variable {name} is not set or empty"),
            (SecretSource::File(path), true) => format!("no key could be read from {path}"),
            (SecretSource::Env(name), false) => format!("{name} was not read at startup; restart the gateway"),
            (SecretSource::File(path), false) => format!("{path} was not read at startup; restart the gateway"),
        }
    }
}

fn read(source: &SecretSource) -> Option<Secret> {
    match source {
        SecretSource::Env(name) => std::env::var(name).ok().and_then(|text| Secret::new(&text)),
        SecretSource::File(path) => match std::fs::read_to_string(path) {
            Ok(text) => Secret::new(&text),
            Err(error) => {
                tracing::error!(path, %error, "a key file cannot be read");
                None
            }
        },
    }
}

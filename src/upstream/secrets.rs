//! Keys: read once from where the plan says they are, never printed.

use crate::mapping::reach::KeySource;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;
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
pub struct Keyring(Mutex<HashMap<KeySource, Option<Secret>>>);

impl Keyring {
    pub fn get(&self, source: &KeySource) -> Option<Secret> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.entry(source.clone()).or_insert_with(|| read(source)).clone()
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

/// As a person would look for it.
pub fn shown(source: &KeySource) -> String {
    match source {
        KeySource::Env(name) => format!("the environment has no {name}"),
        KeySource::File(path) => format!("there is no key in {path}"),
    }
}

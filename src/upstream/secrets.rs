//! API keys: read from the environment or a file at startup, never printed. A key file is read again when it changes.

use crate::mapping::config::secret::SecretSource;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use subtle::ConstantTimeEq;

#[derive(Clone)]
pub struct Secret(Arc<KnownSecret>);

struct KnownSecret {
    text: String,
    digest: [u8; 32],
}

impl Secret {
    pub fn new(text: &str) -> Option<Secret> {
        let text = text.trim();
        let digest = || Sha256::digest(text.as_bytes()).into();
        (!text.is_empty()).then(|| Secret(Arc::new(KnownSecret { text: text.to_owned(), digest: digest() })))
    }

    /// For the header that carries the key, and for comparisons.
    pub fn expose(&self) -> &str {
        &self.0.text
    }

    /// Compares digests in constant time, so that timing reveals neither a prefix nor the length.
    pub fn matches(&self, presented: &[u8]) -> bool {
        self.0.digest.ct_eq(&<[u8; 32]>::from(Sha256::digest(presented))).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Keys are read at startup. Which keys there are does not change with a reload; the content of a key file may.
#[derive(Debug, Default)]
pub struct Keyring {
    secrets: Mutex<HashMap<SecretSource, StoredSecret>>,
    /// Startup is complete: no more keys are read.
    sealed: AtomicBool,
}

/// A key, and the version of the file that it was read from.
#[derive(Debug)]
struct StoredSecret {
    secret: Option<Secret>,
    version: Option<FileVersion>,
    checked_at: Instant,
    /// What a changed file must satisfy.
    rules: Option<Arc<KeyRules>>,
}

/// What the keys of clients must satisfy at an address that is not local.
#[derive(Debug)]
pub struct KeyRules {
    /// Characters: shorter keys can be guessed.
    pub min_length: usize,
    /// Everybody knows them, in any case of letters.
    pub refused: Vec<String>,
}

impl KeyRules {
    pub fn is_short(&self, secret: &Secret) -> bool {
        secret.expose().chars().count() < self.min_length
    }

    pub fn is_refused(&self, secret: &Secret) -> bool {
        self.refused.iter().any(|known| known.eq_ignore_ascii_case(secret.expose()))
    }
}

/// When a file was modified, and its length.
type FileVersion = (SystemTime, u64);

/// How often a key file is checked for changes, at most.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl StoredSecret {
    fn read(source: &SecretSource) -> StoredSecret {
        StoredSecret { secret: read(source), version: version(source), checked_at: Instant::now(), rules: None }
    }

    /// Reads a file that has changed. A file that is gone or empty keeps its key: it may be just being replaced.
    fn refresh(&mut self, source: &SecretSource) {
        let SecretSource::File(file) = source else { return };
        if self.checked_at.elapsed() < CHECK_INTERVAL {
            return;
        }
        self.checked_at = Instant::now();
        let version = version(source);
        if version.is_none() || version == self.version {
            return;
        }
        let Some(secret) = read(source) else { return };
        self.version = version;
        if self.rules.as_ref().is_some_and(|rules| rules.is_short(&secret) || rules.is_refused(&secret)) {
            tracing::error!(file, "the new key of a key file can be guessed and is not used: the old one stays");
            return;
        }
        tracing::info!(file, "a key file has changed and was read again");
        self.secret = Some(secret);
    }
}

/// `None` for an environment variable, which cannot change, and for a file that cannot be read.
fn version(source: &SecretSource) -> Option<FileVersion> {
    let SecretSource::File(path) = source else { return None };
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

impl Keyring {
    pub fn get(&self, source: &SecretSource) -> Option<Secret> {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stored) = secrets.get_mut(source) {
            stored.refresh(source);
            return stored.secret.clone();
        }
        if self.sealed.load(Ordering::Relaxed) {
            return None;
        }
        secrets.entry(source.clone()).or_insert_with(|| StoredSecret::read(source)).secret.clone()
    }

    /// Reads these keys; others cannot be read later.
    pub fn seal<'s>(&self, sources: impl IntoIterator<Item = &'s SecretSource>) {
        sources.into_iter().for_each(|source| drop(self.get(source)));
        self.sealed.store(true, Ordering::Relaxed);
    }

    /// Keys that change later must satisfy the rules too.
    pub fn set_rules<'s>(&self, sources: impl IntoIterator<Item = &'s SecretSource>, rules: KeyRules) {
        let rules = Arc::new(rules);
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        for source in sources {
            if let Some(stored) = secrets.get_mut(source) {
                stored.rules = Some(rules.clone());
            }
        }
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

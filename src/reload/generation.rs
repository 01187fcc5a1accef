//! One loaded, checked, immutable set of mappings; a request keeps the one it began with.

use crate::diag::{Diagnostic, Sources, render_all};
use crate::mapping::{FileText, Overrides, Plan, load_after};
use crate::trial;
use sha2::{Digest, Sha256};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

#[derive(Debug)]
pub struct Generation {
    pub number: u64,
    /// Of the texts, so that the same set saved again changes nothing.
    pub hash: u64,
    /// The same for people and for other programs: the same texts give the same digest anywhere.
    pub digest: String,
    pub plan: Plan,
    pub warnings: Vec<Diagnostic>,
}

/// Why a set did not become a generation.
#[derive(Debug)]
pub struct Refusal {
    pub diagnostics: Vec<Diagnostic>,
    pub sources: Arc<Sources>,
}

impl Refusal {
    pub fn render(&self, colour: bool) -> String {
        render_all(&self.diagnostics, &self.sources, colour)
    }

    /// `1 error in dialects/chat.yaml (RF104 at 10:69)`: what a log line has room for.
    pub fn brief(&self) -> String {
        let count = self.diagnostics.len();
        let Some(first) = self.diagnostics.first() else { return "no reason was found".into() };
        let errors = if count == 1 { "1 error".into() } else { format!("{count} errors, the first") };
        let (code, message) = (first.code.as_str(), &first.message);
        // What is wrong with the set as a whole stands in none of its files.
        let Some(source) = self.sources.get(first.span.file) else { return format!("{errors} ({code}): {message}") };
        let place = self.sources.place(first.span);
        format!("{errors} in {} ({code} at {}:{}): {message}", source.shown, place.line, place.column)
    }
}

pub fn hash(files: &[FileText]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files {
        (&file.name, &file.text).hash(&mut hasher);
    }
    hasher.finish()
}

fn digest(files: &[FileText]) -> String {
    let mut hasher = Sha256::new();
    for file in files {
        hasher.update(file.name.as_bytes());
        hasher.update([0]);
        hasher.update(file.text.as_bytes());
        hasher.update([0]);
    }
    hasher.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect()
}

/// Loads, checks, and runs the tests that stand beside the mappings.
pub fn build(
    files: &[FileText],
    number: u64,
    earlier: Option<&Plan>,
    overrides: &Overrides,
) -> Result<Generation, Refusal> {
    let loaded = load_after(files, earlier, overrides);
    let Some(plan) = loaded.plan else {
        return Err(Refusal { diagnostics: loaded.diagnostics, sources: loaded.sources });
    };
    let failed = trial::findings(&plan);
    if !failed.is_empty() {
        return Err(Refusal { diagnostics: failed, sources: loaded.sources });
    }
    Ok(Generation { number, hash: hash(files), digest: digest(files), plan, warnings: loaded.diagnostics })
}

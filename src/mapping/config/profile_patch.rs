//! Dialects with the patches of profiles applied.

use super::patch;
use super::profile::ProfileChain;
use crate::mapping::source::field_reader::{FieldReader, LoadContext, text_of};
use crate::mapping::source::yaml::{Entry, Node};
use std::sync::Arc;

/// A dialect file with the patch of a profile applied: what the compiler, the lints and the search for the source of a
/// value read. The span of each node refers to the file that contains it.
#[derive(Debug)]
pub struct PatchedDialect {
    pub dialect: String,
    pub profile: Option<String>,
    /// The file without the patch.
    pub base: Arc<Node>,
    /// The same as `base` if the profile has no patch for the dialect.
    pub node: Arc<Node>,
    /// The entries of the dialect below `patch:` of the profile, and of those that it extends before it.
    pub patches: Vec<Entry>,
    /// Below `rename_fields:`.
    pub renames: Vec<Entry>,
}

/// Every dialect, without a profile and with each. A dialect without a name is reported and left out.
pub fn patched_dialects<'n>(
    dialects: impl Iterator<Item = &'n Arc<Node>>,
    chains: &[ProfileChain],
    cx: LoadContext,
) -> Vec<PatchedDialect> {
    let mut patched = Vec::new();
    for base in dialects {
        let Some(name) = FieldReader::of(base, "a dialect", cx).and_then(|f| text_of(f.required("dialect")?, cx))
        else {
            continue;
        };
        for chain in std::iter::once(&Vec::new()).chain(chains) {
            let of_dialect = |entries: &&'_ [Entry]| entries.iter().find(|e| e.key == name).cloned();
            let patches: Vec<Entry> = chain.iter().filter_map(|p| of_dialect(&p.patch.items)).collect();
            let renames = chain.iter().filter_map(|p| of_dialect(&p.rename_fields.items));
            let renames = renames.flat_map(|entry| entry.value.as_map().unwrap_or_default().to_vec());
            let mut node = base.clone();
            for patch in &patches {
                patch::apply(Arc::make_mut(&mut node), &patch.value, name, cx);
            }
            patched.push(PatchedDialect {
                dialect: name.to_owned(),
                profile: chain.last().map(|p| p.name.to_owned()),
                base: base.clone(),
                node,
                patches,
                renames: renames.collect(),
            });
        }
    }
    patched
}

//! Dialects with the patches of profiles applied.

use super::patch;
use super::profile::Profile;
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
    /// The entry of the dialect below `patch:`.
    pub patch: Option<Entry>,
    /// Below `rename_fields:`.
    pub renames: Vec<Entry>,
}

/// Every dialect, without a profile and with each. A dialect without a name is reported and left out.
pub fn patched_dialects<'n>(
    dialects: impl Iterator<Item = &'n Arc<Node>>,
    profiles: &[Profile],
    cx: LoadContext,
) -> Vec<PatchedDialect> {
    let mut patched = Vec::new();
    for base in dialects {
        let Some(name) = FieldReader::of(base, "a dialect", cx).and_then(|f| text_of(f.required("dialect")?, cx))
        else {
            continue;
        };
        for profile in std::iter::once(None).chain(profiles.iter().map(Some)) {
            let patch = profile.and_then(|p| p.patch.iter().find(|e| e.key == name)).cloned();
            let renames = profile.and_then(|p| p.rename_fields.iter().find(|e| e.key == name)?.value.as_map());
            let mut node = base.clone();
            if let Some(patch) = &patch {
                patch::apply(Arc::make_mut(&mut node), &patch.value, name, cx);
            }
            patched.push(PatchedDialect {
                dialect: name.to_owned(),
                profile: profile.map(|p| p.name.to_owned()),
                base: base.clone(),
                node,
                patch,
                renames: renames.unwrap_or_default().to_vec(),
            });
        }
    }
    patched
}

//! A profile that changes the index law of a dialect.
//!
//! ## Why
//!
//! It is not a mistake: some clients expect other indexes than those of the dialect. But `index:` states what the clients
//! of the dialect rely on, and `check` proves the statement of the profile instead. Whoever serves other clients with this
//! profile should know it. Profiles of a lower layer, such as the embedded set below `--add DIR`, are not listed.
//!
//! ## Example
//!
//! ```yaml
//! patch: { chat: { index: { $add: none } } }
//! ```
//!
//! ```text
//! note[RF210]: the profile `v1` changes the index law of `chat` from `position` to `none`
//! ```
//!
//! ## Fix
//!
//! No change is required. Without `index:` in the patch, the law of the dialect applies to the clients of the profile too.

use super::LintContext;
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::IndexLaw;
use crate::mapping::source::layout::SetFile;
use crate::mapping::source::yaml::Node;
use std::sync::Arc;

pub(super) fn check(context: &LintContext) {
    for file in context.files.of(SetFile::Profile) {
        let profile = file.get(SetFile::Profile.name()).and_then(Node::as_text).unwrap_or_default();
        for patch in file.get("patch").and_then(Node::as_map).unwrap_or(&[]) {
            let Some(index) = patch.value.get("index") else { continue };
            // A profile of a lower layer is an offer.
            let sources = context.cx.sources;
            if sources.layer(index.span) < sources.last_layer() {
                continue;
            }
            let is_dialect = |node: &&Arc<Node>| node.get("dialect").and_then(Node::as_text) == Some(&*patch.key);
            let dialect = context.files.of(SetFile::Dialect).find(is_dialect);
            let stated = dialect.and_then(|dialect| dialect.get("index")).and_then(Node::as_text);
            let stated = stated.unwrap_or(IndexLaw::Position.name());
            // Another form, such as `{ $replace: none }`.
            let changed = index.as_text().or_else(|| index.as_map()?.first()?.value.as_text()).unwrap_or("another one");
            if changed != stated {
                let message = format!(
                    "the profile `{profile}` changes the index law of `{}` from `{stated}` to `{changed}`",
                    patch.key
                );
                context.cx.add(Diagnostic::new(Code::ChangedIndexLaw, index.span, message));
            }
        }
    }
}

//! The overrides of a set: what a layer replaces or removes of the layers below it, with both places.

use crate::mapping::Plan;
use crate::mapping::config::layers::OverrideAction;
use crate::reload::{Layers, embedded};
use serde_json::{Value, json};

/// An override as it is printed.
pub struct ShownOverride {
    what: String,
    action: OverrideAction,
    /// The place in the later layer: a file, or a line of it.
    by: String,
    of: String,
}

/// Whole files, and the keys of merged files if the set compiles.
pub fn find(layers: &Layers, plan: Option<&Plan>) -> Vec<ShownOverride> {
    let files = layers.replaced_files(&embedded::files()).into_iter().map(|file| ShownOverride {
        what: format!("file {}", file.name),
        action: OverrideAction::Replaces,
        by: file.by,
        of: file.of,
    });
    let keys = plan.into_iter().flat_map(|plan| {
        plan.overrides.iter().map(|one| ShownOverride {
            what: one.what.clone(),
            action: one.action,
            by: plan.sources.show(one.by),
            of: plan.sources.show(one.of),
        })
    });
    files.chain(keys).collect()
}

impl ShownOverride {
    /// ``model `demo`: a/gateway.yaml:5:5 replaces mappings/gateway.yaml:9:5``
    pub fn sentence(&self) -> String {
        format!("{}: {} {} {}", self.what, self.by, self.action.name(), self.of)
    }

    pub fn to_json(&self) -> Value {
        json!({ "what": self.what, "action": self.action.name(), "by": self.by, "of": self.of })
    }
}

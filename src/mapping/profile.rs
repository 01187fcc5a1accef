//! A profile file: policies, the variables that set some, names and patches that are laid over dialects.

use super::fields::{Cx, Fields};
use super::yaml::{Entry, Node};

#[derive(Clone, Copy)]
pub struct Profile<'n> {
    pub name: &'n str,
    pub policies: &'n [Entry],
    /// Variable to policy.
    pub environment: &'n [Entry],
    pub names: &'n [Entry],
    pub patch: &'n [Entry],
}

impl<'n> Profile<'n> {
    pub fn parse(node: &'n Node, cx: Cx) -> Option<Profile<'n>> {
        let fields = Fields::of(node, "a profile", cx)?;
        let name = fields.required_text("profile")?;
        let profile = Profile {
            name,
            policies: fields.map("policies"),
            environment: fields.map("environment"),
            names: fields.map("names"),
            patch: fields.map("patch"),
        };
        fields.done();
        Some(profile)
    }
}

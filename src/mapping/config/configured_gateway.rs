//! The gateway of a set: gateway.yaml with what the chosen profile, the environment and the command line change.

use super::gateway::{self, GatewayPlan, KnownNames};
use super::overrides::Overrides;
use super::profile::{Profile, ProfileChain};
use super::profile_gateway;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::checked;
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::files::MappingFiles;
use crate::mapping::source::yaml::Node;
use std::sync::Arc;

pub(in crate::mapping) fn file<'f>(files: &'f MappingFiles, cx: LoadContext) -> Option<&'f Node> {
    let gateway = files.gateway();
    if gateway.is_none() && !files.unreadable.gateway {
        cx.add(
            Diagnostic::new(Code::Unreadable, Span::NOWHERE, "this set has no gateway.yaml")
                .help("create one, or add this folder on top of the embedded set with `--add`"),
        );
    }
    gateway
}

/// The gateway with what the chosen profile, the environment and the command line change, and what identifies it for
/// tests. Its routes have no variants yet.
pub fn parse(
    file: &Node,
    known: &KnownNames,
    chains: &[ProfileChain],
    profiles: &[Profile],
    overrides: &Overrides,
    cx: LoadContext,
) -> Option<(GatewayPlan, u64)> {
    let chosen =
        chains.iter().find(|c| overrides.profile.is_some() && c.last().map(|p| p.name) == overrides.profile.as_deref());
    let (file, variables) = match chosen {
        Some(chain) => profile_gateway::with_profile(file, chain, &overrides.environment, cx),
        None => (Arc::new(file.clone()), Vec::new()),
    };
    let mut gateway = gateway::parse(&file, known, cx)?;
    overrides.apply(&mut gateway, known, cx);
    gateway.variables = variables;
    let is_used = |chain: &&ProfileChain| {
        let name = chain.last().map(|p| p.name);
        gateway.routes.iter().any(|route| route.profile.as_deref() == name)
    };
    let used: Vec<&Profile> = chains.iter().filter(is_used).flatten().copied().collect();
    gateway.unknown_variables = profile_gateway::unknown_variables(&used, profiles, &overrides.environment);
    Some((gateway, checked::tested_gateway(&file)))
}

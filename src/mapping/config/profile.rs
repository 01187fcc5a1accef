//! A profile file: policies, environment variables that set policies or settings of the gateway, renamed fields and
//! patches of dialects.

use super::gateway::Gateway;
use super::profile_environment::VariableEntry;
use super::rename_fields::{FieldRename, RenameFields};
use crate::diagnostics::{Code, Diagnostic};
use crate::mapping::grammar::collections::{Entries, List, Map};
use crate::mapping::grammar::notation::{AnyValue, Spanned, notation_schema};
use crate::mapping::grammar::policies::ProfilePolicies;
use crate::mapping::grammar::unparsed::unparsed;
use crate::mapping::grammar::{At, FromNode, Section, section};
use crate::mapping::source::field_reader::{LoadContext, text_of};
use crate::mapping::source::yaml::{Entry, Node, YamlKind};
use schemars::json_schema;
use std::collections::BTreeMap;

section! {
    /// Policies and small changes for one kind of client. A profile applies where a route names it.
    #[subject = "a profile"]
    #[title = "a profile"]
    pub struct Profile<'n> {
        /// Its name.
        name as "profile": &'n str,
        /// Another profile. Its policies, variables, renamed fields, patches and gateway settings apply before those of this
        /// one.
        extends: Option<Spanned<String>>,
        /// Policies: a value for every dialect, or dialect to value. A custom policy must be set per dialect.
        policies: Entries<'n, ProfilePolicies> = Entries::default(),
        /// Environment variables that set policies: variable to policy, or to `POLICY.DIALECT` for one dialect, or to a map
        /// for other words and for settings of the gateway. They are read at startup and take precedence over `policies:`.
        /// A variable that is unset or empty sets nothing.
        environment: Entries<'n, Map<VariableEntry>> = Entries::default(),
        /// The beginnings of the names of such variables. A variable that begins so and that no profile names causes a
        /// warning at startup.
        environment_prefixes: List<String> = List::default(),
        /// Settings of gateway.yaml, written like a layer on top of it. They count only if the profile was chosen by
        /// `--profile`.
        gateway: Option<GatewayLayer<'n>>,
        /// Renamed fields in every frame, body and error of a dialect: dialect, old name, new name. The schemas must
        /// know the new name.
        rename_fields: Entries<'n, Map<BTreeMap<String, String>>> = Entries::default(),
        /// Changes to a dialect. Maps are merged; `$remove` deletes a key, `{ $replace: VALUE }` replaces a map, `{
        /// $add: VALUE }` adds a key, `{ $before: OTHER, … }` adds an entry before another; any other value replaces
        /// what is there.
        patch: Entries<'n, Map<BTreeMap<String, AnyValue>>> = Entries::default(),
    }
}

unparsed! {
    /// A layer of gateway.yaml.
    GatewayLayer
}

notation_schema!([] GatewayLayer<'_>, |generator| {
    let keys: Vec<String> = Gateway::properties(generator).into_iter().map(|(key, _)| key).collect();
    json_schema!({ "type": "object", "propertyNames": { "enum": keys } })
});

/// A profile after those that it extends; empty without a profile.
pub type ProfileChain<'c, 'n> = Vec<&'c Profile<'n>>;

impl<'n> Profile<'n> {
    /// The chain of each profile, in their order. A profile that cannot extend what it names is reported.
    pub fn chains<'c>(profiles: &'c [Profile<'n>], known: &[&str], cx: LoadContext) -> Vec<ProfileChain<'c, 'n>> {
        profiles.iter().map(|profile| profile.chain(profiles, known, cx)).collect()
    }

    fn chain<'c>(&'c self, profiles: &'c [Profile<'n>], known: &[&str], cx: LoadContext) -> ProfileChain<'c, 'n> {
        let mut chain = vec![self];
        while let Some(extends) = chain.first().and_then(|first| first.extends.as_ref()) {
            let found = profiles.iter().find(|p| p.name == extends.value);
            match found {
                Some(base) if chain.iter().any(|p| p.name == base.name) => {
                    self.report_cycle(&chain, base, cx);
                    break;
                }
                Some(base) => chain.insert(0, base),
                None if known.contains(&extends.value.as_str()) => break,
                None => {
                    let message = format!("unknown profile `{}`", extends.value);
                    cx.unknown(Code::UnknownReference, extends.span, message, extends, known.iter().copied());
                    break;
                }
            }
        }
        chain
    }

    /// Reports a cycle at the first of its profiles. `chain` begins with the one that extends `base`.
    fn report_cycle(&self, chain: &[&Profile], base: &Profile, cx: LoadContext) {
        let is_first = chain.iter().all(|other| self.name <= other.name);
        let (Some(extends), true) = (self.extends.as_ref(), is_first && base.name == self.name) else { return };
        let way: Vec<&str> = chain.iter().rev().map(|p| p.name).chain([base.name]).collect();
        let message = format!("the profile extends itself: {}", way.join(" → "));
        let help = "remove `extends:` from one of these profiles";
        cx.add(Diagnostic::new(Code::FragmentCycle, extends.span, message).help(help));
    }

    /// The renamed fields of a dialect.
    pub fn renames(chain: &[&Profile], dialect: &str, cx: LoadContext) -> RenameFields {
        let mut renames: Vec<FieldRename> = Vec::new();
        for entry in chain.iter().filter_map(|p| p.rename_fields.iter().find(|e| e.key == dialect)) {
            let YamlKind::Map(entries) = &entry.value.kind else {
                cx.wrong_type(&entry.value, "a map from the old name to the new one");
                continue;
            };
            let rename = |e: &Entry| {
                let to = text_of(&e.value, cx)?.to_owned();
                Some(FieldRename { from: e.key.clone(), to, span: e.key_span })
            };
            for rename in entries.iter().filter_map(rename) {
                renames.retain(|earlier| earlier.from != rename.from);
                // The same name takes back what an extended profile renames.
                if rename.from != rename.to {
                    renames.push(rename);
                }
            }
        }
        RenameFields::new(renames)
    }
}

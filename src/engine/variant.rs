//! Selects the variant of a route's dialect for one client: by its headers when the request arrives, and by the rules of
//! `choose:` after it was read.

use super::render::{Scope, is_true};
use crate::diagnostics::or_list;
use crate::domain::policy::canonical;
use crate::domain::{Fault, FaultKind, Tree, TurnRequest, variables};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::route_headers::UnknownHeaderValue;
use crate::mapping::policy::environment::truncate_for_message;
use crate::mapping::policy::variants::{
    ChosenWord, HeaderChoice, RouteVariant, RouteVariants, USER_AGENT, VariantGroup, user_agent_contains,
};
use std::sync::Arc;

/// A policy header with an unknown value. The error uses the variant that the client would get without the header.
#[derive(Debug)]
pub struct RejectedHeader<'v> {
    pub fault: Fault,
    pub plan: &'v Arc<DialectPlan>,
}

/// The variant that the headers of a client select.
#[derive(Clone, Copy, Debug)]
pub struct SelectedVariant<'v> {
    pub variant: &'v RouteVariant,
    group: &'v VariantGroup,
    at: usize,
}

impl RouteVariants {
    /// The variant for a client; `None` if the route has none. `header` gives a header's value by its lower-case name.
    pub fn select(
        &self,
        header: impl Fn(&str) -> Option<String>,
    ) -> Option<Result<SelectedVariant<'_>, RejectedHeader<'_>>> {
        let group = match self.group(&header) {
            Ok(group) => group?,
            Err(fault) => return Some(Err(RejectedHeader { fault, plan: self.default_dialect()? })),
        };
        let first = group.variants.first()?;
        let mut chosen = Vec::new();
        for choice in &group.choices {
            let text = header(&choice.header).unwrap_or_default();
            match choice.read(text.trim()) {
                Ok(word) => chosen.push(word),
                Err(fault) => return Some(Err(RejectedHeader { fault, plan: &first.plan })),
            }
        }
        let at = group.index_of(&chosen);
        group.variants.get(at).map(|variant| Ok(SelectedVariant { variant, group, at }))
    }

    /// The position of the user-agent rule that matches the client.
    pub fn rule(&self, header: impl Fn(&str) -> Option<String>) -> Option<usize> {
        Some(self.group(&header).ok()??.agent.as_ref()?.rule)
    }

    /// The header with which the client chose its profile.
    pub fn profile_header(&self, header: impl Fn(&str) -> Option<String>) -> Option<&str> {
        Some(self.group(&header).ok()??.profile.as_ref()?.header.as_str())
    }

    /// The profiles that a client may choose, with the header.
    pub fn profiles(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|g| g.profile.as_ref()).map(|p| (p.header.as_str(), p.profile.as_str()))
    }

    /// The policies that the client may choose by header.
    pub fn choices(&self, header: impl Fn(&str) -> Option<String>) -> &[HeaderChoice] {
        self.group(&header).ok().flatten().map_or(&[], |group| &group.choices)
    }

    fn group(&self, header: impl Fn(&str) -> Option<String>) -> Result<Option<&VariantGroup>, Fault> {
        if self.0.len() == 1 {
            return Ok(self.0.first());
        }
        if let Some(group) = self.group_of_profile(&header)? {
            return Ok(Some(group));
        }
        let user_agent = header(USER_AGENT).unwrap_or_default();
        let matching =
            self.0.iter().find(|g| g.agent.as_ref().is_some_and(|agent| user_agent_contains(&user_agent, &agent.word)));
        Ok(matching.or(self.0.first()))
    }

    /// The group of the profile that the client names.
    fn group_of_profile(&self, header: impl Fn(&str) -> Option<String>) -> Result<Option<&VariantGroup>, Fault> {
        let mut groups = self.0.iter().filter_map(|g| Some((g, g.profile.as_ref()?)));
        let Some((_, first)) = groups.clone().next() else { return Ok(None) };
        let text = header(&first.header).unwrap_or_default();
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let names = groups.clone().map(|(_, p)| p.profile.as_str());
        match groups.find(|(_, p)| p.profile == text) {
            Some((group, _)) => Ok(Some(group)),
            None if first.unknown == UnknownHeaderValue::Ignore => Ok(None),
            None => Err(cannot_be(&first.header, text, names)),
        }
    }
}

impl<'v> SelectedVariant<'v> {
    /// Whether the variant may depend on the content of the request.
    pub fn depends_on_request(&self) -> bool {
        self.group.choose.is_some()
    }

    /// The variant after the request was read: the first rule of `choose:` with a true condition changes it. `head` has
    /// the path, the query and the headers of the request.
    pub fn choose(&self, request: &TurnRequest, head: &Tree) -> Result<&'v RouteVariant, Fault> {
        let Some(rules) = &self.group.choose else { return Ok(self.variant) };
        let mut scope = Scope::request(request).with_policies(&self.variant.plan);
        for (name, ty) in [variables::PATH, variables::QUERY, variables::HEADERS] {
            scope = scope.set((name, ty), head.get(name));
        }
        let per_rule = VariantGroup::count(&self.group.choices).unwrap_or(1);
        for (rule, condition) in rules.conditions.iter().enumerate() {
            let matches = is_true(condition, &scope, &rules.pool);
            if matches.map_err(|error| Fault::not_rendered("`choose:` of the route", error))? {
                return Ok(self.group.variants.get(self.at + (rule + 1) * per_rule).unwrap_or(self.variant));
            }
        }
        Ok(self.variant)
    }
}

impl VariantGroup {
    /// The index of the variant without a rule of `choose:`: a number with one digit per header, the first header the
    /// lowest. The variants of a rule follow those of the rule before it.
    pub fn index_of(&self, chosen: &[ChosenWord]) -> usize {
        let digits = self.choices.iter().zip(chosen).rev();
        digits.fold(0, |index, (choice, word)| index * (choice.words.len() + 1) + word.map_or(0, |word| word + 1))
    }
}

impl HeaderChoice {
    /// An empty header selects nothing.
    fn read(&self, text: &str) -> Result<ChosenWord, Fault> {
        if text.is_empty() {
            return Ok(None);
        }
        let alias = self.aliases.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
        let value = alias.map_or_else(|| canonical(&self.policy, text), |(_, value)| value.as_str());
        match self.words.iter().position(|word| word == value) {
            None if self.unknown == UnknownHeaderValue::Ignore => Ok(None),
            None => Err(cannot_be(&self.header, text, self.words.iter().map(String::as_str))),
            found => Ok(found),
        }
    }
}

fn cannot_be<'w>(header: &str, text: &str, words: impl IntoIterator<Item = &'w str>) -> Fault {
    let words = or_list(words);
    let message = format!("the header `{header}` cannot be `{}`: use {words}", truncate_for_message(text));
    Fault::new(FaultKind::Invalid, message).param(header)
}

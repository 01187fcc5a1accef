//! Selects the variant of a route's dialect for one client, by its `User-Agent` and its policy headers.

use crate::diagnostics::or_list;
use crate::domain::policy::canonical;
use crate::domain::{Fault, FaultKind};
use crate::mapping::config::dialect::DialectPlan;
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

impl RouteVariants {
    /// The variant for a client; `None` if the route has none. `header` gives a header's value by its lower-case name.
    pub fn select(&self, header: impl Fn(&str) -> Option<String>) -> Option<Result<&RouteVariant, RejectedHeader<'_>>> {
        let group = self.group(&header)?;
        let first = group.variants.first()?;
        let mut chosen = Vec::new();
        for choice in &group.choices {
            let text = header(&choice.header).unwrap_or_default();
            match choice.read(text.trim()) {
                Ok(word) => chosen.push(word),
                Err(fault) => return Some(Err(RejectedHeader { fault, plan: &first.plan })),
            }
        }
        group.variants.get(group.index_of(&chosen)).map(Ok)
    }

    /// The position of the user-agent rule that matches the client.
    pub fn rule(&self, header: impl Fn(&str) -> Option<String>) -> Option<usize> {
        Some(self.group(&header)?.agent.as_ref()?.rule)
    }

    /// The policies that the client may choose by header.
    pub fn choices(&self, header: impl Fn(&str) -> Option<String>) -> &[HeaderChoice] {
        self.group(&header).map_or(&[], |group| &group.choices)
    }

    fn group(&self, header: impl Fn(&str) -> Option<String>) -> Option<&VariantGroup> {
        if self.0.len() == 1 {
            return self.0.first();
        }
        let user_agent = header(USER_AGENT).unwrap_or_default();
        let matching =
            self.0.iter().find(|g| g.agent.as_ref().is_some_and(|agent| user_agent_contains(&user_agent, &agent.word)));
        matching.or(self.0.first())
    }
}

impl VariantGroup {
    /// The index of a variant: a number with one digit per header, the first header the lowest.
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
        let value = canonical(&self.policy, text);
        let found = self.words.iter().position(|word| word == value);
        found.map(Some).ok_or_else(|| {
            let words = or_list(self.words.iter().map(String::as_str));
            let message =
                format!("the header `{}` cannot be `{}`: use {words}", self.header, truncate_for_message(text));
            Fault::new(FaultKind::Invalid, message).param(&self.header)
        })
    }
}

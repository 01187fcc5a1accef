//! Picks the variant of a route's dialect for one client, by its `User-Agent` and its policy headers.

use crate::diagnostics::one_of;
use crate::domain::{Fault, FaultKind};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::policy::environment::shorten;
use crate::mapping::policy::variants::{Choice, Group, Said, USER_AGENT, Variant, Variants, agent_has};
use std::sync::Arc;

/// A client chose what there is not. It is told so in the words that it would have got without choosing.
#[derive(Debug)]
pub struct Refused<'v> {
    pub fault: Fault,
    pub plan: &'v Arc<DialectPlan>,
}

impl Variants {
    /// What a client gets whose headers `header` knows, by their names in lower case. None: the route has nothing at all.
    pub fn pick(&self, header: impl Fn(&str) -> Option<String>) -> Option<Result<&Variant, Refused<'_>>> {
        let group = self.group(&header)?;
        let first = group.variants.first()?;
        let mut said = Vec::new();
        for choice in &group.choices {
            let text = header(&choice.header).unwrap_or_default();
            match choice.read(text.trim()) {
                Ok(word) => said.push(word),
                Err(fault) => return Some(Err(Refused { fault, plan: &first.plan })),
            }
        }
        group.variants.get(group.at(&said)).map(Ok)
    }

    /// The rule by user agent that knows such a client, by its place.
    pub fn rule(&self, header: impl Fn(&str) -> Option<String>) -> Option<usize> {
        Some(self.group(&header)?.agent.as_ref()?.rule)
    }

    /// What such a client may choose.
    pub fn choices(&self, header: impl Fn(&str) -> Option<String>) -> &[Choice] {
        self.group(&header).map_or(&[], |group| &group.choices)
    }

    fn group(&self, header: impl Fn(&str) -> Option<String>) -> Option<&Group> {
        if self.0.len() == 1 {
            return self.0.first();
        }
        let said = header(USER_AGENT).unwrap_or_default();
        let known = self.0.iter().find(|g| g.agent.as_ref().is_some_and(|agent| agent_has(&said, &agent.word)));
        known.or(self.0.first())
    }
}

impl Group {
    /// The place of a variant: a number whose digits are what each header says, the first one the lowest.
    pub fn at(&self, said: &[Said]) -> usize {
        let digits = self.choices.iter().zip(said).rev();
        digits.fold(0, |at, (choice, said)| at * (choice.words.len() + 1) + said.map_or(0, |word| word + 1))
    }
}

impl Choice {
    /// An empty header says nothing.
    fn read(&self, text: &str) -> Result<Said, Fault> {
        if text.is_empty() {
            return Ok(None);
        }
        let found = self.words.iter().position(|word| word == text);
        found.map(Some).ok_or_else(|| {
            let words = one_of(self.words.iter().map(String::as_str));
            let message = format!("the header `{}` cannot be `{}`: say {words}", self.header, shorten(text));
            Fault::new(FaultKind::Invalid, message).param(&self.header)
        })
    }
}

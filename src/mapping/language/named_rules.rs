//! Rules with a name, for others to use.

use super::rule::RuleSet;
use std::sync::Arc;

/// Named rules, for `use:`.
#[derive(Debug, Default)]
pub struct RuleBook(Vec<(String, Arc<RuleSet>)>);

impl RuleBook {
    pub fn get(&self, name: &str) -> Option<Arc<RuleSet>> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, r)| r.clone())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(n, _)| n.as_str())
    }

    pub fn add(&mut self, name: &str, rules: RuleSet) {
        self.0.push((name.to_owned(), Arc::new(rules)));
    }
}

//! Token usage.

use super::named_enum;

named_enum! {
    /// How a later usage report is combined with an earlier one.
    pub enum Merge {
        Replace = "replace",
        Add = "add",
        Max = "max",
    }
}

/// Token counts as far as they are known. Unknown counts are absent, not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub total: Option<u64>,
    pub cached: Option<u64>,
    pub cache_write: Option<u64>,
    pub reasoning: Option<u64>,
}

impl Usage {
    pub const ZERO: Usage = Usage {
        input: Some(0),
        output: Some(0),
        total: Some(0),
        cached: Some(0),
        cache_write: Some(0),
        reasoning: Some(0),
    };

    pub fn merge(&mut self, later: Usage, how: Merge) {
        let join = |old: Option<u64>, new: Option<u64>| match (old, new) {
            (Some(old), Some(new)) => Some(match how {
                Merge::Replace => new,
                Merge::Add => old.saturating_add(new),
                Merge::Max => old.max(new),
            }),
            (old, new) => new.or(old),
        };
        self.input = join(self.input, later.input);
        self.output = join(self.output, later.output);
        self.total = join(self.total, later.total);
        self.cached = join(self.cached, later.cached);
        self.cache_write = join(self.cache_write, later.cache_write);
        self.reasoning = join(self.reasoning, later.reasoning);
    }

    /// The reported total, otherwise the sum of input and output.
    pub fn total(&self) -> u64 {
        self.total.unwrap_or_else(|| self.input.unwrap_or(0).saturating_add(self.output.unwrap_or(0)))
    }

    pub fn is_known(&self) -> bool {
        *self != Usage::default()
    }
}

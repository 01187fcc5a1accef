//! Token usage of a turn: as the backend reported it, zeros, or an estimate, by the policy `usage`.

use super::Turn;
use crate::domain::Usage;
use crate::domain::policy::{OutputTokens, UsagePolicy};

impl Turn {
    /// What the backend reported, or an estimate; true for an estimate. For logs and limits, whatever the policy is.
    pub fn counted_usage(&self) -> (Usage, bool) {
        match self.usage.is_known() {
            true => (self.usage, false),
            false => (self.estimate_usage(), true),
        }
    }

    pub(super) fn final_usage(&self) -> Option<Usage> {
        let reported = self.usage.is_known().then(|| self.usage_of_all_choices());
        match self.policies.usage {
            UsagePolicy::AsReported => reported,
            UsagePolicy::Zeros => Some(reported.unwrap_or(Usage::ZERO)),
            UsagePolicy::Estimate => Some(reported.unwrap_or_else(|| self.estimate_usage())),
        }
    }

    /// Policy `output_tokens: per_choice`: the backend counts the output of one choice.
    fn usage_of_all_choices(&self) -> Usage {
        let mut usage = self.usage;
        let n = self.requested_choices as u64;
        if self.policies.output_tokens == OutputTokens::PerChoice && n > 1 {
            usage.output = usage.output.map(|output| output.saturating_mul(n));
            usage.total = None;
        }
        usage
    }

    /// A coarse estimate: four characters per token.
    fn estimate_usage(&self) -> Usage {
        let tokens = |chars: usize| chars.div_ceil(4) as u64;
        let output: usize = self
            .state
            .items
            .iter()
            .map(|i| {
                let texts = i.parts.iter().chain(&i.summaries).map(|p| p.text.chars().count()).sum::<usize>();
                texts + i.arguments.chars().count()
            })
            .sum();
        let (input, output) = (tokens(self.request_chars), tokens(output));
        Usage { input: Some(input), output: Some(output), total: Some(input + output), ..Usage::ZERO }
    }
}

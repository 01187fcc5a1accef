//! Token usage of a turn: as the backend reported it, zeros, or an estimate, by the policy `usage`.

use super::Turn;
use crate::domain::Usage;
use crate::domain::policy::UsagePolicy;

impl Turn {
    pub(super) fn final_usage(&self) -> Option<Usage> {
        let reported = self.usage.is_known().then_some(self.usage);
        match self.policies.usage {
            UsagePolicy::AsReported => reported,
            UsagePolicy::Zeros => Some(reported.unwrap_or(Usage::ZERO)),
            UsagePolicy::Estimate => Some(reported.unwrap_or_else(|| self.estimate_usage())),
        }
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

//! What the callers of a pipeline can read of it: whether the turn is open or over, its faults, usage, memory and
//! violations.

use super::frame_validation::Violation;
use super::pipeline::Pipeline;
use crate::domain::policy::StreamStart;
use crate::domain::{Fault, RemovedMetadata, TurnState, Usage};
use crate::turn::inline::BlockCounts;

impl Pipeline {
    /// No output follows.
    pub fn is_over(&self) -> bool {
        self.turn.is_over()
    }

    /// Every choice is finished; only usage and the end of the stream may follow, and they are not waited for long.
    pub fn is_finished(&self) -> bool {
        self.turn.is_finished()
    }

    /// Whether the turn has opened for the client. Until then a fault can still be a plain HTTP error.
    pub fn is_open(&self) -> bool {
        self.turn.is_open()
    }

    /// Whether the backend has sent part of its response. A turn that was opened immediately still waits for its first
    /// event, so for it only items and finished choices count.
    pub fn has_output(&self) -> bool {
        let state = self.turn.state();
        let has_content = || !state.items.is_empty() || state.choices.iter().any(|c| c.finish.is_some());
        self.turn.is_open() && (self.policies().stream_start == StreamStart::FirstEvent || has_content())
    }

    pub fn fault(&self) -> Option<&Fault> {
        self.turn.state().error.as_ref()
    }

    /// The fault that the policies turned into a truncated response.
    pub fn truncated_by(&self) -> Option<&Fault> {
        self.truncated_by.as_ref()
    }

    pub fn state(&self) -> &TurnState {
        self.turn.state()
    }

    /// The number of events that arrived after the end of the turn.
    pub fn late_events(&self) -> u64 {
        self.turn.late_events()
    }

    /// What the backend reported, or an estimate; true for an estimate.
    pub fn counted_usage(&self) -> (Usage, bool) {
        self.turn.counted_usage()
    }

    /// The memory of what the turn keeps.
    pub fn kept_bytes(&self) -> usize {
        self.turn.kept_bytes()
    }

    /// The calls that were found in text.
    pub fn textual_calls(&self) -> usize {
        self.inline.as_ref().map_or(0, |inline| inline.calls)
    }

    /// The blocks of calls in the text.
    pub fn block_counts(&self) -> BlockCounts {
        self.inline.as_ref().map(|inline| inline.pass.block_counts()).unwrap_or_default()
    }

    /// The metadata lines that were removed from the text.
    pub fn removed_metadata(&self) -> RemovedMetadata {
        self.metadata_lines.as_ref().map(|lines| lines.removed().clone()).unwrap_or_default()
    }

    /// How many frames of each plan were sent, by ordinal; empty if none was.
    pub fn frame_counts(&self) -> &[u64] {
        &self.producer.counts
    }

    /// The schema and order violations so far.
    pub fn violations(&self) -> &[Violation] {
        &self.producer.violations
    }
}

//! What a run knows of its compactions.

/// Compactions of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionState {
    /// One is under way.
    pub in_flight: bool,
    /// So many retries after one have not ended yet.
    pub pending_retries: u32,
    /// So many gave a summary.
    pub count: u32,
    /// Tokens after the last one.
    pub last_tokens_after: Option<u64>,
}

impl CompactionState {
    /// Whether the run is not over because of a compaction.
    pub fn is_compacting(&self) -> bool {
        self.in_flight || self.pending_retries > 0
    }
}

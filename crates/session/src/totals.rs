//! The cost of a session.

use pinch_llm::message::{Message, Usage};

use crate::entry::EntryBody;
use crate::session_log::SessionLog;

/// Tokens and cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct UsageTotals {
    /// Input tokens not read from a cache.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Tokens read from caches.
    pub cache_read: u64,
    /// Tokens written to caches.
    pub cache_write: u64,
    /// Cost in US dollars.
    pub cost: f64,
}

impl UsageTotals {
    /// Returns the total number of tokens.
    pub fn total(&self) -> u64 {
        self.input + self.output + self.cache_read + self.cache_write
    }

    /// Adds the usage of a request.
    pub fn add(&mut self, usage: &Usage) {
        self.input += usage.input;
        self.output += usage.output;
        self.cache_read += usage.cache_read;
        self.cache_write += usage.cache_write;
        self.cost += usage.cost.total;
    }

    /// Adds another total.
    pub fn merge(&mut self, other: &Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.cost += other.cost;
    }

    /// Sums up all branches of a log.
    pub fn of(log: &SessionLog) -> Self {
        let mut spent = Self::default();
        for entry in log.entries() {
            match &entry.body {
                EntryBody::Message(message) => match &**message {
                    Message::Assistant(answer) => spent.add(&answer.usage),
                    Message::ToolResult(result) => result.usage.iter().for_each(|usage| spent.add(usage)),
                    _ => {}
                },
                EntryBody::Compaction(compaction) => compaction.usage.iter().for_each(|usage| spent.add(usage)),
                EntryBody::BranchSummary(branch) => branch.usage.iter().for_each(|usage| spent.add(usage)),
                EntryBody::Usage(note) => spent.add(&note.usage),
                _ => {}
            }
        }
        spent
    }
}

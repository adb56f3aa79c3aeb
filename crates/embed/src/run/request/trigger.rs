//! What starts a run.

/// What started a run. Tools, prompts and hooks of a host may depend on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunTrigger {
    /// A message from a person.
    #[default]
    User,
    /// The heartbeat.
    Heartbeat,
    /// A scheduled job.
    Cron,
    /// Saving of memories before a compaction.
    Memory,
    /// The conversation no longer fits the context window.
    Overflow,
    /// Anything else, by name.
    Other(String),
}

impl RunTrigger {
    /// Returns the name used in events and hooks.
    pub fn as_str(&self) -> &str {
        match self {
            Self::User => "user",
            Self::Heartbeat => "heartbeat",
            Self::Cron => "cron",
            Self::Memory => "memory",
            Self::Overflow => "overflow",
            Self::Other(name) => name,
        }
    }
}

//! Delivery settings besides the limits of the sink.

use std::path::PathBuf;
use std::time::Duration;

use pinch_stdx::host::Host;

use super::contract::SinkLimits;
use crate::plugin::MessageHooks;
use crate::texts::TextTable;

/// Delivery settings besides the limits of the sink.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryTerms {
    /// Known limits of the channel.
    pub(crate) limits: SinkLimits,
    /// Pauses between blocks.
    pub(crate) pace: Option<Pace>,
    /// Texts for people.
    pub(crate) texts: TextTable,
    /// Base directory for relative media paths.
    pub(crate) media_dir: Option<PathBuf>,
    /// Hooks that may change blocks and are notified of their outcome.
    pub(crate) hooks: MessageHooks,
}

/// Pauses between blocks that imitate a human typist.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// Shortest pause.
    pub(crate) min: Duration,
    /// Longest pause.
    pub(crate) max: Duration,
    /// Source of randomness.
    pub(crate) host: Host,
}

impl Pace {
    /// Returns the next pause.
    pub(super) fn pause(&self) -> Duration {
        self.min + self.max.saturating_sub(self.min).mul_f64(self.host.ids().fraction())
    }
}

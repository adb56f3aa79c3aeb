//! What the delivery of a run's reply respects beside what its sink says.

use std::path::PathBuf;
use std::time::Duration;

use pinch_stdx::host::Host;

use super::contract::SinkLimits;
use crate::plugin::MessageHooks;
use crate::texts::TextTable;

/// What delivery respects beside what the sink says about itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryTerms {
    /// What the channel can take, as far as it is known.
    pub(crate) limits: SinkLimits,
    /// Pauses between blocks.
    pub(crate) pace: Option<Pace>,
    /// Texts for people.
    pub(crate) texts: TextTable,
    /// What paths of media are relative to.
    pub(crate) media_dir: Option<PathBuf>,
    /// Who is asked about blocks, and told what became of them.
    pub(crate) hooks: MessageHooks,
}

/// Pauses between blocks, as if somebody typed them.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// The shortest.
    pub(crate) min: Duration,
    /// The longest.
    pub(crate) max: Duration,
    /// Where chance comes from.
    pub(crate) host: Host,
}

impl Pace {
    /// The next pause.
    pub(super) fn pause(&self) -> Duration {
        self.min + self.max.saturating_sub(self.min).mul_f64(self.host.ids().fraction())
    }
}

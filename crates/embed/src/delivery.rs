//! How a run's reply reaches its host during the run.
//!
//! Replies come as [`ReplyEvent`]s. A run never waits for its reader: a sink takes events from one bounded queue, in which what belongs
//! together merges. What was sent, and what was not, is in [`Delivered`].

pub mod event;
pub mod snapshot;
pub mod contract;
pub mod bus;
mod rules;
mod pump;

pub use bus::{EngineEvent, EngineEvents, Envelope};
pub(crate) use bus::{EventBus, RunPublisher};
pub use contract::{OutgoingBlock, Receipt, ReplyId, ReplySink, RunId, SendFailure, SinkLimits};
pub use event::{Lifecycle, ReplyEvent};
pub(crate) use pump::Pump;
pub use pump::{Delivered, DeliveredBlock, FailedBlock, MAX_RETRY_AFTER, SINK_TIMEOUT};
pub use snapshot::{PartialReply, ReasoningSnapshot, ReplySnapshot};

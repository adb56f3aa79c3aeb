//! Delivers a run's reply to its host during the run.
//!
//! Replies arrive as [`ReplyEvent`]s. A run never waits for its reader: a sink takes events from one bounded queue, in which related events
//! are
//! merged. [`Delivered`] lists what was sent and what was not.
//!
//! ```
//! use std::sync::Arc;
//!
//! use futures::future::BoxFuture;
//! use pinch_embed::Engine;
//! use pinch_embed::delivery::{OutgoingBlock, Receipt, ReplySink, SendFailure, SinkLimits};
//! use pinch_embed::run::request::BlockReplies;
//!
//! struct Chat;
//!
//! impl ReplySink for Chat {
//!     fn limits(&self) -> SinkLimits {
//!         SinkLimits::of_chars(4_000)
//!     }
//!
//!     fn send<'a>(&'a self, block: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>> {
//!         Box::pin(async move {
//!             println!("{}: {}", block.id, block.reply.text);
//!             Ok(Receipt::default())
//!         })
//!     }
//! }
//!
//! async fn answer(engine: &Engine, text: &str) {
//!     let request = engine.request("s1", None, None, text).block_replies(BlockReplies::default());
//!     let run = engine.run(request).deliver(Arc::new(Chat)).await;
//!     for payload in run.still_to_send() {
//!         println!("not sent yet: {}", payload.reply.text);
//!     }
//! }
//! ```

pub mod event;
pub mod snapshot;
pub mod contract;
pub mod bus;
mod rules;
mod terms;
mod media;
mod pump;

pub use bus::{EngineEvent, EngineEvents, Envelope};
pub(crate) use bus::{EventBus, RunPublisher};
pub use contract::{OutgoingBlock, Receipt, ReplyId, ReplySink, RunId, SendFailure, SinkLimits};
pub use event::{Lifecycle, ReplyEvent};
pub(crate) use pump::Pump;
pub use pump::{Delivered, DeliveredBlock, FailedBlock, MAX_RETRY_AFTER, SINK_TIMEOUT};
pub use snapshot::{PartialReply, PartialScope, ReasoningSnapshot, ReplySnapshot};
pub(crate) use terms::{DeliveryTerms, Pace};

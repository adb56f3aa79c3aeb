//! The interface between the runner and runtimes, which carry out attempts.
//!
//! [`native`] is ours: a session of `pinch-coding-agent`. A fork can register its own runtime (a command-line program, a remote worker)
//! under the same contract. An attempt never retries and never sleeps: it reports what happened.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use pinch_agent_core::queue::QueueKind;
use pinch_coding_agent::auth::RequestAuth;
use pinch_coding_agent::compaction::Compacted;
use pinch_coding_agent::event::SessionEvent;
use pinch_llm::message::{Image, Usage};
use pinch_llm::model::Model;
use pinch_stdx::cancel::Cancel;

use crate::run::decide::{Repair, RepairOutcome};
use crate::run::scope::RunScope;
use crate::run::{AttemptOutcome, AttemptPlan, RunError, RunRequest};

pub mod native;
pub mod cli;
#[cfg(feature = "test-util")]
pub mod scripted;
pub(crate) mod choice;

/// The id of the built-in runtime.
pub(crate) const NATIVE: &str = "native";
/// The id of the runtime for command-line agents.
pub(crate) const CLI: &str = "cli";

/// Capabilities of a runtime. The runner asks for nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Whether it uses the credentials it is given, so that profiles can be rotated. Otherwise it gets one attempt, without a profile.
    pub profiles: bool,
    /// Whether it can compact its conversation. Otherwise an overflow leads to shorter tool results, then to failure.
    pub compaction: bool,
    /// Whether a later attempt can resume from the log. Otherwise every attempt gets the prompt again.
    pub resumable: bool,
    /// Whether the prompt of an attempt that failed is in the log, so that a later attempt must not add it again.
    pub logs_prompt: bool,
    /// Whether it stops for [client tools](crate::run::RunRequest::client_tools) and accepts their results. Otherwise runs with such tools
    /// are refused.
    pub client_tools: bool,
}

impl Capabilities {
    /// All capabilities.
    pub const ALL: Self =
        Self { profiles: true, compaction: true, resumable: true, logs_prompt: true, client_tools: true };
    /// No capabilities: a program that takes a prompt and returns an answer.
    pub const NONE: Self =
        Self { profiles: false, compaction: false, resumable: false, logs_prompt: false, client_tools: false };

    /// Sets whether profiles can be rotated.
    #[must_use]
    pub fn profiles(self, profiles: bool) -> Self {
        Self { profiles, ..self }
    }

    /// Sets whether conversations can be compacted.
    #[must_use]
    pub fn compaction(self, compaction: bool) -> Self {
        Self { compaction, ..self }
    }

    /// Sets whether runs stop for client tools.
    #[must_use]
    pub fn client_tools(self, client_tools: bool) -> Self {
        Self { client_tools, ..self }
    }

    /// Sets whether attempts can resume. Such a runtime also logs the prompt.
    #[must_use]
    pub fn resumable(self, resumable: bool) -> Self {
        Self { resumable, logs_prompt: self.logs_prompt || resumable, ..self }
    }

    /// Sets whether the log contains the prompt of an attempt that failed.
    #[must_use]
    pub fn logs_prompt(self, logs_prompt: bool) -> Self {
        Self { logs_prompt, ..self }
    }
}

/// Opens attempts for a model.
pub trait AttemptRuntime: Send + Sync {
    /// Returns its id for reports.
    fn id(&self) -> &str;

    /// Returns its capabilities.
    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    /// Returns the file that attempts write to, which the run locks against other processes. `None`: there is none.
    fn session_file(&self, _request: &RunRequest) -> Option<PathBuf> {
        None
    }

    /// Sets up everything for one model. Rotating a profile does not set it up again.
    fn open<'a>(
        &'a self,
        scope: &'a RunScope,
        model: Arc<Model>,
    ) -> BoxFuture<'a, Result<Box<dyn Attempts + 'a>, RunError>>;
}

/// Controls active attempts from outside. No method blocks.
pub trait RunControl: Send + Sync {
    /// Queues a user message: for the next turn (`Steering`) or for when the model would otherwise finish (`FollowUp`). When the model
    /// reads it, the runtime emits its `message_start` event.
    ///
    /// # Errors
    /// [`QueueRefusal`]; the message is then not kept.
    fn queue(&self, kind: QueueKind, text: String, images: Vec<Image>) -> Result<(), QueueRefusal>;

    /// Removes and returns unread queued messages.
    fn take_queued(&self) -> Vec<PendingMessage> {
        Vec::new()
    }

    /// Returns whether an attempt is in progress.
    fn is_streaming(&self) -> bool;

    /// Returns whether the conversation is being compacted.
    fn is_compacting(&self) -> bool {
        false
    }
}

/// A message waiting for the model.
#[derive(Clone, Debug)]
pub struct PendingMessage {
    /// When the model should read it.
    pub kind: QueueKind,
    /// Its text.
    pub text: String,
    /// Its images.
    pub images: Vec<Image>,
}

/// Why a runtime did not queue a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueRefusal {
    /// It accepts no messages during attempts.
    #[error("this runtime does not accept messages during an attempt")]
    Unsupported,
}

/// Attempts with one model.
pub trait Attempts: Send {
    /// Makes one attempt. The stream yields the events of its session, then exactly one end; dropping it stops the attempt.
    fn attempt<'a>(
        &'a mut self,
        plan: &'a AttemptPlan,
        auth: Arc<dyn RequestAuth>,
        cancel: Cancel,
    ) -> BoxStream<'a, AttemptEvent>;

    /// Repairs the conversation between two attempts.
    fn repair<'a>(
        &'a mut self,
        repair: &'a Repair,
        auth: Arc<dyn RequestAuth>,
        cancel: Cancel,
    ) -> BoxFuture<'a, RepairOutcome>;

    /// Returns the tokens and the cost of repairs since the last call.
    ///
    /// The default implementation returns none.
    fn take_repair_usage(&mut self) -> Usage {
        Usage::default()
    }

    /// Compacts the conversation on request. `focus`: what the summary should focus on.
    ///
    /// The default implementation refuses.
    fn compact<'a>(
        &'a mut self,
        focus: Option<&'a str>,
        auth: Arc<dyn RequestAuth>,
        cancel: Cancel,
    ) -> BoxFuture<'a, Result<Compacted, CompactRefusal>> {
        let _ = (focus, auth, cancel);
        Box::pin(async { Err(CompactRefusal::new("this runtime cannot compact a conversation")) })
    }

    /// Records in the log of the conversation why its model failed for good. Models never see that.
    ///
    /// The default implementation does nothing.
    fn note_failure<'a>(&'a mut self, error: &'a str) -> BoxFuture<'a, ()> {
        let _ = error;
        Box::pin(async {})
    }

    /// Returns the control for active attempts. Called once, before the first attempt.
    fn control(&self) -> Arc<dyn RunControl>;
}

/// Why a conversation was not compacted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CompactRefusal(String);

impl CompactRefusal {
    /// Creates a refusal with a reason for people.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// An item of an attempt's stream.
#[derive(Debug)]
#[non_exhaustive]
pub enum AttemptEvent {
    /// An event of its session.
    Session(SessionEvent),
    /// The attempt ended, successfully or not.
    End(Box<AttemptOutcome>),
    /// The attempt could not be carried out, for example because the log cannot be written. Another model would not help.
    Broken(RunError),
}

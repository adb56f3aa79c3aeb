//! The interface between the runner and what carries out attempts.
//!
//! [`native`] is ours: a session of `pinch-coding-agent`. A fork's own runtime (a command-line program, a remote worker) is registered beside
//! it, and callers keep one contract. An attempt never retries and never sleeps: it reports what happened.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use pinch_agent_core::queue::QueueKind;
use pinch_coding_agent::auth::RequestAuth;
use pinch_coding_agent::compaction::Compacted;
use pinch_coding_agent::event::SessionEvent;
use pinch_llm::message::Image;
use pinch_llm::model::Model;
use pinch_stdx::cancel::Cancel;

use crate::run::decide::{Repair, RepairOutcome};
use crate::run::scope::RunScope;
use crate::run::{AttemptOutcome, AttemptPlan, RunError, RunRequest};

pub mod native;
pub mod cli;
pub(crate) mod choice;

/// The id of the built-in runtime.
pub(crate) const NATIVE: &str = "native";
/// The id of the runtime for command-line agents.
pub(crate) const CLI: &str = "cli";

/// What a runtime can do. The runner does not ask for anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// It uses the credentials it is given, so that profiles can be rotated. Otherwise it is asked once, without a profile.
    pub profiles: bool,
    /// It can compact its conversation. Otherwise an overflow is answered with shorter tool results, then with failure.
    pub compaction: bool,
    /// A later attempt can resume from the log. Otherwise every attempt gets the prompt again.
    pub resumable: bool,
    /// It stops for [client tools](crate::run::RunRequest::client_tools) and takes their results. Otherwise runs with such tools are refused.
    pub client_tools: bool,
}

impl Capabilities {
    /// Everything.
    pub const ALL: Self = Self { profiles: true, compaction: true, resumable: true, client_tools: true };
    /// Nothing: a program that takes a prompt and returns an answer.
    pub const NONE: Self = Self { profiles: false, compaction: false, resumable: false, client_tools: false };

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

    /// Sets whether attempts can resume.
    #[must_use]
    pub fn resumable(self, resumable: bool) -> Self {
        Self { resumable, ..self }
    }
}

/// Opens what attempts need, once a model.
pub trait AttemptRuntime: Send + Sync {
    /// Its name in reports.
    fn id(&self) -> &str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    /// The file that attempts write to, from which the run keeps other processes away. `None`: there is none.
    fn session_file(&self, _request: &RunRequest) -> Option<PathBuf> {
        None
    }

    /// Sets up everything for one model. Rotating a profile sets up nothing again.
    fn open<'a>(
        &'a self,
        scope: &'a RunScope,
        model: Arc<Model>,
    ) -> BoxFuture<'a, Result<Box<dyn Attempts + 'a>, RunError>>;
}

/// Controls attempts from outside while they are under way. Nothing here waits.
pub trait RunControl: Send + Sync {
    /// Queues a user message: for the next turn (`Steering`) or for when the model would be done (`FollowUp`). Once the model reads it,
    /// the runtime emits its `message_start` event.
    ///
    /// # Errors
    /// [`QueueRefusal`]; the message is not kept then.
    fn queue(&self, kind: QueueKind, text: String, images: Vec<Image>) -> Result<(), QueueRefusal>;

    /// Removes and returns what was queued and not read yet.
    fn take_queued(&self) -> Vec<PendingMessage> {
        Vec::new()
    }

    /// Whether an attempt is under way.
    fn is_streaming(&self) -> bool;

    /// Whether the conversation is being compacted.
    fn is_compacting(&self) -> bool {
        false
    }
}

/// A message that waits for the model.
#[derive(Clone, Debug)]
pub struct PendingMessage {
    /// When the model is to read it.
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
    /// It takes no messages while it works.
    #[error("this runtime does not take messages while it works")]
    Unsupported,
}

/// Attempts with one model.
pub trait Attempts: Send {
    /// Makes one attempt: the events of its session, then one end. Dropping the stream stops it.
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

    /// Compacts the conversation because it is asked for. `focus`: what the summary looks at in particular.
    ///
    /// The default refuses.
    fn compact<'a>(
        &'a mut self,
        focus: Option<&'a str>,
        auth: Arc<dyn RequestAuth>,
        cancel: Cancel,
    ) -> BoxFuture<'a, Result<Compacted, CompactRefusal>> {
        let _ = (focus, auth, cancel);
        Box::pin(async { Err(CompactRefusal::new("this runtime cannot compact a conversation")) })
    }

    /// Controls attempts while they are under way. Called once, before the first of them.
    fn control(&self) -> Arc<dyn RunControl>;
}

/// Why a conversation was not compacted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CompactRefusal(String);

impl CompactRefusal {
    /// The reason, for people.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// What an attempt yields.
#[derive(Debug)]
pub enum AttemptEvent {
    /// An event of its session.
    Session(SessionEvent),
    /// The attempt ended, well or badly.
    End(Box<AttemptOutcome>),
    /// The attempt could not be carried out, for example because the log cannot be written. No other model would help.
    Broken(RunError),
}

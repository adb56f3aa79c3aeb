//! Who carries out attempts.
//!
//! [`native`] is ours: a session of `pinch-coding-agent`. A fork's own runtime (a command-line program, a remote worker) plugs in beside it,
//! and callers keep one contract. An attempt never retries and never sleeps: what happened goes up.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use pinch_coding_agent::auth::RequestAuth;
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::session::SessionControl;
use pinch_llm::model::Model;
use pinch_stdx::cancel::Cancel;

use crate::run::decide::{Repair, Repaired};
use crate::run::scope::RunScope;
use crate::run::{AttemptOutcome, AttemptPlan, RunError, RunRequest};

pub mod native;

/// Opens what attempts need, once a model.
pub trait AttemptRuntime: Send + Sync {
    /// Its name in requests and reports.
    fn id(&self) -> &str;

    /// The file attempts write, which the run keeps other programs from. `None` when they write none.
    fn session_file(&self, _request: &RunRequest) -> Option<PathBuf> {
        None
    }

    /// Sets everything up for one model. Rotating a profile sets nothing up again.
    fn open<'a>(
        &'a self,
        scope: &'a RunScope,
        model: Arc<Model>,
    ) -> BoxFuture<'a, Result<Box<dyn Attempts + 'a>, RunError>>;
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

    /// Mends the conversation between two attempts.
    fn repair<'a>(
        &'a mut self,
        repair: &'a Repair,
        auth: Arc<dyn RequestAuth>,
        cancel: Cancel,
    ) -> BoxFuture<'a, Repaired>;

    /// Steers the session while an attempt has it borrowed.
    fn control(&self) -> SessionControl;
}

/// What an attempt tells.
#[derive(Debug)]
pub enum AttemptEvent {
    /// An event of its session.
    Session(SessionEvent),
    /// It is over, well or badly.
    End(Box<AttemptOutcome>),
    /// It could not be carried through: the log cannot be written, say. No other model would help.
    Broken(RunError),
}

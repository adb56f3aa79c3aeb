//! What extensions ask of a session, until somebody who has it does it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use pinch_llm::message::Message;
use tokio::sync::oneshot;

use crate::extension::actions::{Act, Acted};
use crate::extension::{Draft, ExtensionError};

/// Things that wait to be done at most; further ones are refused.
const MAX_WAITING: usize = 256;

/// Something that waits, and where the answer goes.
pub(super) struct Errand {
    pub(super) act: Act,
    pub(super) reply: oneshot::Sender<Result<Acted, ExtensionError>>,
}

impl fmt::Debug for Errand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.act.fmt(f)
    }
}

/// Entries that extensions want, until somebody who has the log appends them.
#[derive(Debug)]
pub(super) struct Drafted {
    pub(super) drafts: Vec<Draft>,
    /// Why none of them was appended.
    pub(super) reply: oneshot::Sender<Result<(), String>>,
}

/// Everything that waits.
#[derive(Debug, Default)]
pub(super) struct Errands {
    /// The model is being asked, or about to be.
    pub(super) is_busy: bool,
    /// The session is gone.
    is_closed: bool,
    /// Questions that can be answered whenever somebody has the log.
    questions: VecDeque<Errand>,
    /// What the whole session is needed for.
    errands: VecDeque<Errand>,
    /// Messages that the model is to be asked with.
    prompts: VecDeque<Arc<Message>>,
    /// Which turn of its run is under way, counted from 0.
    pub(super) turn_index: u64,
    /// What the owner is asked for.
    pub(super) wish: Option<Wish>,
}

/// Something that an extension wants of whoever runs the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The end of the program.
    Shutdown,
    /// Extensions, settings and resources are to be read anew.
    Reload,
}

impl Errands {
    pub(super) fn is_idle(&self) -> bool {
        !self.is_busy && self.prompts.is_empty()
    }

    /// Whether there is something to do for somebody who has the session at rest.
    pub(super) fn has_work(&self) -> bool {
        self.has_questions() || !self.errands.is_empty() || !self.prompts.is_empty()
    }

    pub(super) fn has_questions(&self) -> bool {
        !self.questions.is_empty()
    }

    /// Nobody will do anything any more: who waits learns that.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.questions.clear();
        self.errands.clear();
        self.prompts.clear();
    }

    /// Puts something in; answers with where its answer comes.
    pub(super) fn push(
        &mut self,
        act: Act,
    ) -> Result<oneshot::Receiver<Result<Acted, ExtensionError>>, ExtensionError> {
        let queue = match act {
            Act::Entries | Act::Branch | Act::ContextUsage => &mut self.questions,
            _ => &mut self.errands,
        };
        room(self.is_closed, queue.len())?;
        let (reply, answer) = oneshot::channel();
        queue.push_back(Errand { act, reply });
        Ok(answer)
    }

    pub(super) fn push_prompt(&mut self, message: Arc<Message>) -> Result<(), ExtensionError> {
        room(self.is_closed, self.prompts.len())?;
        self.prompts.push_back(message);
        Ok(())
    }

    pub(super) fn take_question(&mut self) -> Option<Errand> {
        self.questions.pop_front()
    }

    pub(super) fn take_errand(&mut self) -> Option<Errand> {
        self.errands.pop_front()
    }

    /// Takes a message that the model is to be asked with; the session is busy with it from here on.
    pub(super) fn take_prompt(&mut self) -> Option<Arc<Message>> {
        let message = self.prompts.pop_front()?;
        self.is_busy = true;
        Some(message)
    }
}

fn room(is_closed: bool, n_waiting: usize) -> Result<(), ExtensionError> {
    match is_closed {
        true => Err(ExtensionError::Stale),
        false if n_waiting >= MAX_WAITING => Err(ExtensionError::refused("Too much waits to be done already")),
        false => Ok(()),
    }
}

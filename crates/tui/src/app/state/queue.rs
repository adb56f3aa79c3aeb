//! Waiting messages: for the current run, or for the end of a compaction.

use pinch_agent_core::queue::QueueKind;
use pinch_coding_agent::session::SessionControl;

use super::App;
use crate::compose;
use crate::effect::{SubmittedMessage, WaitingMessage};

impl App {
    /// Holds a message until the compaction is over.
    pub(crate) fn wait_for_compaction(&mut self, kind: QueueKind, message: SubmittedMessage) {
        self.waiting.push((kind, message));
        self.status("Queued message for after compaction");
    }

    /// Takes messages submitted during a compaction, as texts.
    pub(crate) fn take_waiting(&mut self) -> Vec<String> {
        self.waiting.drain(..).map(|(_, message)| message.text).collect()
    }

    /// Like [`Self::take_waiting`], with the queue of each message.
    pub(crate) fn take_waiting_messages(&mut self) -> Vec<(QueueKind, SubmittedMessage)> {
        std::mem::take(&mut self.waiting)
    }

    /// Returns all waiting messages, in display order.
    pub(crate) fn all_waiting(&self, control: &SessionControl) -> Vec<WaitingMessage> {
        let queued = control.queued().into_iter();
        let queued = queued.map(|(kind, id, text)| WaitingMessage { id: Some(id), kind, text });
        let held = self.waiting.iter();
        let held = held.map(|(kind, message)| WaitingMessage { id: None, kind: *kind, text: message.text.clone() });
        queued.chain(held).collect()
    }

    /// Removes a message that waits for the end of a compaction; false if it is no longer there.
    pub(crate) fn remove_waiting(&mut self, message: &WaitingMessage) -> bool {
        let is_it = |(kind, held): &(QueueKind, SubmittedMessage)| *kind == message.kind && held.text == message.text;
        let at = self.waiting.iter().position(is_it);
        at.map(|at| self.waiting.remove(at)).is_some()
    }

    /// Inserts a waiting message before the text of the editor.
    pub(crate) fn edit_waiting(&mut self, text: &str) {
        let moved = compose::give_back(vec![text.to_owned()], &mut self.editor);
        self.status(&moved);
    }

    pub(crate) fn set_queue(&mut self, steering: Vec<String>, follow_up: Vec<String>) {
        self.queue = (steering, follow_up);
    }

    /// Inserts waiting texts before the text of the editor.
    pub(crate) fn restore(&mut self, texts: Vec<String>) {
        self.queue = Default::default();
        if texts.is_empty() {
            return self.status("There are no queued messages");
        }
        let moved = compose::give_back(texts, &mut self.editor);
        self.status(&moved);
    }
}

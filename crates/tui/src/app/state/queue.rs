//! Messages that wait: for the run under way, or for the end of a compaction.

use pinch_agent_core::queue::QueueKind;

use super::App;
use crate::compose;
use crate::effect::SubmittedMessage;

impl App {
    /// Keeps a message until the compaction is over.
    pub(crate) fn wait_for_compaction(&mut self, kind: QueueKind, message: SubmittedMessage) {
        self.waiting.push((kind, message));
        self.status("Queued message for after compaction");
    }

    /// Takes what was said during a compaction, as texts.
    pub(crate) fn take_waiting(&mut self) -> Vec<String> {
        self.waiting.drain(..).map(|(_, message)| message.text).collect()
    }

    /// The same, with the queues they are for.
    pub(crate) fn take_waiting_messages(&mut self) -> Vec<(QueueKind, SubmittedMessage)> {
        std::mem::take(&mut self.waiting)
    }

    pub(crate) fn set_queue(&mut self, steering: Vec<String>, follow_up: Vec<String>) {
        self.queue = (steering, follow_up);
    }

    /// Puts texts that waited before the text of the editor.
    pub(crate) fn restore(&mut self, texts: Vec<String>) {
        self.queue = Default::default();
        if texts.is_empty() {
            return self.status("There are no queued messages");
        }
        let moved = compose::give_back(texts, &mut self.editor);
        self.status(&moved);
    }
}

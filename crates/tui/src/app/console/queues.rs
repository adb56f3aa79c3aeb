//! Messages queued for the current run: adding and removing them.

use futures::FutureExt as _;
use pinch_agent_core::queue::QueueKind;
use pinch_coding_agent::extension::{FoundCommand, InputSource, Point};
use pinch_coding_agent::session::SessionControl;

use super::Console;
use super::lookups::LookupResult;
use crate::app::state::SessionActivity;
use crate::effect::{SubmittedMessage, WaitingMessage};
use crate::key::Key;

impl Console {
    /// Queues a message of the user; commands of extensions run immediately.
    pub(super) async fn queue(&mut self, control: &SessionControl, kind: QueueKind, message: SubmittedMessage) {
        if self.app.activity() == SessionActivity::Compacting {
            self.app.wait_for_compaction(kind, message);
            return;
        }
        let SubmittedMessage { text, images } = message;
        if let Some((found, args)) = control.find_command(&text) {
            self.run_command(control, found, args);
            return;
        }
        let images = self.read_images(&images).await;
        if control.extensions().wants(Point::Input) {
            let control = control.clone();
            self.lookups.push(
                async move {
                    control.say(kind, &text, images, InputSource::Interactive).await;
                    LookupResult::Done(Ok(String::new()))
                }
                .boxed(),
            );
            return;
        }
        match kind {
            QueueKind::Steering => control.steer(text, images),
            QueueKind::FollowUp => control.follow_up(text, images),
        }
        let (steering, follow_up) = control.waiting();
        self.app.set_queue(steering, follow_up);
    }

    /// Runs the command that an extension has bound to a key, whether the session is busy or not.
    pub(super) fn run_shortcut(&mut self, key: Key) {
        let Some(session) = self.session.clone() else { return };
        if let Some(found) = self.app.shortcut(key).cloned() {
            self.run_command(&session.control, found, String::new());
        }
    }

    /// Runs a command of an extension while the user goes on.
    fn run_command(&mut self, control: &SessionControl, found: FoundCommand, args: String) {
        let control = control.clone();
        let work = async move {
            control.run_command(&found, &args).await;
            LookupResult::Done(Ok(String::new()))
        };
        self.lookups.push(work.boxed());
    }

    /// Moves queued messages back into the editor.
    pub(super) fn dequeue(&mut self) {
        let mut texts = Vec::new();
        if let Some(session) = &self.session {
            let (steering, follow_up) = session.control.clear_queues();
            texts.extend(steering);
            texts.extend(follow_up);
        }
        texts.extend(self.app.take_waiting());
        self.app.restore(texts);
    }

    /// Removes a message from its queue, and moves it into the editor if `edit` is set.
    pub(super) fn unqueue(&mut self, message: &WaitingMessage, edit: bool) {
        let taken = match (message.id, &self.session) {
            (Some(id), Some(session)) => session.control.remove_queued(id).is_some(),
            (Some(_), None) => false,
            (None, _) => self.app.remove_waiting(message),
        };
        if let Some(session) = &self.session {
            let (steering, follow_up) = session.control.waiting();
            self.app.set_queue(steering, follow_up);
        }
        match (taken, edit) {
            (true, true) => self.app.edit_waiting(&message.text),
            (true, false) => self.app.status("Removed a queued message"),
            (false, _) => self.app.status("The message is no longer queued"),
        }
    }
}

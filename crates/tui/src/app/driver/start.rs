//! Startup of the interactive mode, once the first session is open.

use std::io;

use super::Driver;
use crate::app::state::ChangelogNews;
use crate::effect::Effect;
use futures::future::BoxFuture;

impl Driver {
    /// Returns the next effect for the idle session.
    pub(super) fn next_effect(&mut self) -> Option<Effect> {
        match self.early.is_empty() {
            true => self.console.postponed.pop_front(),
            // Commands and messages after a command may depend on it.
            false if self.console.runs_bash() => None,
            false => self.next_early(),
        }
    }

    /// Returns the next submission from before there was a session. Commands that turn out to be unknown go back to the editor.
    fn next_early(&mut self) -> Option<Effect> {
        loop {
            match self.early.pop_front()? {
                Effect::Submit(message) | Effect::FollowUp(message) if self.console.app.is_held_back(&message) => {
                    self.console.front.mark();
                }
                effect => return Some(effect),
            }
        }
    }

    /// Enters the mode selected on the command line or in the settings.
    pub(in crate::app) fn choose_mode(&mut self) {
        if self.console.app.wants_fullscreen() {
            self.console.set_fullscreen(true);
        }
    }

    /// Lets the user choose a session first; leaving the list exits.
    pub(in crate::app) fn choose_session(&mut self) {
        self.console.choose_first = true;
        self.console.list_sessions(false);
    }

    /// Adds submissions of the project's earlier sessions to the editor's history, if enabled.
    pub(in crate::app) fn recall_prompts(&mut self, earlier: io::Result<Vec<String>>) {
        if self.console.app.prompt_history().is_none() {
            return;
        }
        match earlier {
            Ok(texts) => self.console.app.add_older_history(texts),
            Err(error) => self.console.app.warning(&format!("Cannot read the prompt history: {error}")),
        }
    }

    /// Shows changes since the last version at the start of a session, and checks for a later one.
    pub(in crate::app) fn show_news(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.console.look_for_version();
            if self.runtime.session().messages().is_empty()
                && let ChangelogNews::Note(version) = self.console.app.show_changes()
            {
                let effect = Effect::Set { key: "lastChangelogVersion", value: version.into() };
                Box::pin(self.console.perform(effect)).await;
            }
        })
    }
}

//! Submissions of the project's earlier sessions.

use super::App;
use crate::prompt_history::PromptHistory;

impl App {
    /// Returns whether submissions are stored for later sessions. Sessions that are not stored leave nothing behind.
    pub(super) fn keeps_history(&self) -> bool {
        let is_wanted = self.interface.as_ref().is_some_and(|interface| interface.history_file);
        is_wanted && self.session_path.is_some()
    }

    /// Returns the history of the project's earlier sessions, if enabled.
    pub(crate) fn prompt_history(&self) -> Option<PromptHistory> {
        let is_wanted = self.interface.as_ref().is_some_and(|interface| interface.history_file);
        is_wanted.then(|| PromptHistory::new(&self.options.agent_dir, &self.options.cwd))
    }

    /// Adds submissions of earlier sessions.
    pub(crate) fn add_older_history(&mut self, texts: Vec<String>) {
        self.editor.add_older_history(texts);
    }
}

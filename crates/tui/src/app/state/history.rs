//! What was submitted in earlier sessions of the project.

use super::App;
use crate::prompt_history::PromptHistory;

impl App {
    /// Whether what is submitted is kept for later sessions: sessions that are not stored leave nothing behind.
    pub(super) fn keeps_history(&self) -> bool {
        let is_wanted = self.interface.as_ref().is_some_and(|interface| interface.history_file);
        is_wanted && self.session_path.is_some()
    }

    /// The submissions of earlier sessions of the project, if they are wanted.
    pub(crate) fn prompt_history(&self) -> Option<PromptHistory> {
        let is_wanted = self.interface.as_ref().is_some_and(|interface| interface.history_file);
        is_wanted.then(|| PromptHistory::new(&self.options.agent_dir, &self.options.cwd))
    }

    /// The submissions of earlier sessions were read.
    pub(crate) fn add_older_history(&mut self, texts: Vec<String>) {
        self.editor.add_older_history(texts);
    }
}

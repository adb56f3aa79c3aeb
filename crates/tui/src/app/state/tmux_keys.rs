//! Problems with keys in tmux.

use std::path::Path;

use super::App;
use crate::tmux::TmuxKeys;

impl App {
    /// Returns the agent directory.
    pub(crate) fn agent_dir(&self) -> &Path {
        &self.options.agent_dir
    }

    /// Sets how tmux passes keys on. `warns`: whether to show a problem now; `/hotkeys` shows it in any case.
    pub(crate) fn set_tmux_keys(&mut self, keys: TmuxKeys, warns: bool) {
        self.tmux_keys = Some(keys);
        if let Some(problem) = keys.problem(&self.keymap).filter(|_| warns) {
            self.warning(&problem);
        }
    }

    /// Returns the problem with keys in tmux, if there is one.
    pub(crate) fn tmux_problem(&self) -> Option<String> {
        self.tmux_keys?.problem(&self.keymap)
    }

    /// Formats the problem with keys in tmux in Markdown, if there is one.
    pub(super) fn tmux_note(&self) -> String {
        self.tmux_keys.map_or_else(String::new, |keys| keys.note(&self.keymap))
    }
}

//! Asking the user whether to trust a project.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::ui::{Dialog, DialogKind, DialogReply, Ui};

/// Label of an answer, whether the project is trusted, and whether to remember the answer.
const ANSWERS: [(&str, bool, bool); 4] = [
    ("Yes, and remember the answer", true, true),
    ("Yes, for this session only", true, false),
    ("No, for this session only", false, false),
    ("No, and remember the answer", false, true),
];

/// Asks the user about undecided projects that contain settings, extensions, skills or prompts. Asks once per project during the lifetime
/// of this value.
#[derive(Default)]
pub struct TrustPrompt {
    answers: Mutex<HashMap<PathBuf, bool>>,
}

impl TrustPrompt {
    /// Creates a prompt that has not asked yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records a decision made elsewhere, so that the user is not asked.
    pub(crate) fn decided(&self, project: &Path, trusted: bool) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).insert(project.to_owned(), trusted);
    }

    /// Asks about a project, or repeats the earlier answer. Returns whether it is trusted, and whether to remember that. Without an answer
    /// it is not trusted, and the user is asked again next time.
    pub(crate) async fn ask(&self, project: &Path, ui: &dyn Ui) -> Option<(bool, bool)> {
        let earlier = self.answers.lock().unwrap_or_else(PoisonError::into_inner).get(project).copied();
        if let Some(trusted) = earlier {
            return Some((trusted, false));
        }
        let title = format!(
            "Do you trust {}? The project contains settings, extensions, skills or prompts, which can run programs and instruct the model.",
            project.display()
        );
        let options = ANSWERS.iter().map(|(text, ..)| (*text).to_owned()).collect();
        let dialog = Dialog::new(title, DialogKind::Select { options });
        let Some(DialogReply::Text(reply)) = ui.ask(&dialog).await else { return None };
        let (_, trusted, remember) = *ANSWERS.iter().find(|(text, ..)| *text == reply)?;
        self.decided(project, trusted);
        Some((trusted, remember))
    }
}

impl fmt::Debug for TrustPrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustPrompt").finish_non_exhaustive()
    }
}

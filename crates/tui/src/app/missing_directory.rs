//! The question about a stored session whose working directory no longer exists.

use std::path::Path;

use pinch_coding_agent::extension::ui::{Dialog as Question, DialogKind, DialogReply, Ui};

use crate::figures::short_path;

/// Where to continue a session whose working directory no longer exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryChoice {
    /// In the current directory. The session keeps its record, so the question returns next time.
    Here,
    /// As a copy that belongs to the current directory.
    Copy,
}

/// A stored session whose working directory no longer exists.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MissingDirectory<'a> {
    /// The directory recorded in the session.
    pub gone: &'a str,
    /// The current directory.
    pub here: &'a Path,
    /// The home directory, which is shown as `~`.
    pub home: Option<&'a Path>,
}

impl<'a> MissingDirectory<'a> {
    /// Describes a session that records the directory `gone`, to be continued `here`.
    pub fn new(gone: &'a str, here: &'a Path, home: Option<&'a Path>) -> Self {
        Self { gone, here, home }
    }

    /// Asks the user; `None`: leave the session alone.
    pub async fn ask(&self, ui: &dyn Ui) -> Option<DirectoryChoice> {
        match ui.ask(&self.question()).await? {
            DialogReply::Text(answer) => self.choice(&answer),
            DialogReply::Yes(_) => None,
        }
    }

    /// Returns the question.
    pub(super) fn question(&self) -> Question {
        let gone = short_path(Path::new(self.gone), self.home);
        let options = self.answers().into_iter().map(|(label, _)| label).collect();
        Question::new(
            format!("The working directory of this session no longer exists: {gone}"),
            DialogKind::Select { options },
        )
    }

    /// Returns the choice that an answer makes.
    pub(super) fn choice(&self, answer: &str) -> Option<DirectoryChoice> {
        self.answers().into_iter().find(|(label, _)| label == answer)?.1
    }

    fn answers(&self) -> [(String, Option<DirectoryChoice>); 3] {
        let here = short_path(self.here, self.home);
        [
            (format!("Continue in {here} (asks again next time)"), Some(DirectoryChoice::Here)),
            (format!("Continue a copy in {here} (the original is kept)"), Some(DirectoryChoice::Copy)),
            ("Cancel".to_owned(), None),
        ]
    }
}

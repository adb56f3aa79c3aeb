//! Changes after an update, and later versions.

use pinch_coding_agent::releases::{self, LatestRelease};
use pinch_coding_agent::settings::values::QuietStartup;

use super::App;
use crate::text::one_line;

/// What to do about the changelog at the start of an empty session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChangelogNews {
    /// Everything was already shown.
    Nothing,
    /// Record this version.
    Note(String),
}

impl App {
    /// Shows changes since the last recorded version. The very first start only records the version.
    pub(crate) fn show_changes(&mut self) -> ChangelogNews {
        let Some(interface) = &self.interface else { return ChangelogNews::Nothing };
        let now = &self.options.version;
        let Some(last) = &interface.last_changelog_version else { return ChangelogNews::Note(now.clone()) };
        let is_quiet = interface.quiet_startup == QuietStartup::On && !self.options.verbose;
        let notes = releases::notes_since(self.options.changelog, last, now);
        if notes.is_empty() {
            return ChangelogNews::Nothing;
        }
        let news = ChangelogNews::Note(now.clone());
        if interface.collapse_changelog || is_quiet {
            self.status(&format!("Updated to v{now}. /changelog shows what's new"));
        } else {
            let texts: Vec<&str> = notes.iter().map(|one| &*one.text).collect();
            self.transcript.markdown(&format!("# What's new\n\n{}", texts.join("\n\n")));
        }
        news
    }

    /// Returns all changes of released versions, newest last.
    pub(crate) fn changelog(&self) -> String {
        let texts: Vec<String> =
            releases::notes(self.options.changelog).into_iter().rev().map(|one| one.text).collect();
        if texts.is_empty() { "There are no release notes yet".to_owned() } else { texts.join("\n\n") }
    }

    /// Returns the server to ask for a later version, if enabled.
    pub(crate) fn version_check(&self) -> Option<String> {
        let env = self.options.host.env();
        let variables = ["PINCH_SKIP_VERSION_CHECK", "PI_SKIP_VERSION_CHECK", "PINCH_OFFLINE", "PI_OFFLINE"];
        if self.options.offline || variables.iter().any(|name| env.non_empty(name).is_some()) {
            return None;
        }
        self.interface.as_ref()?.version_check_url.clone()
    }

    /// Returns the version of the program.
    pub(crate) fn version(&self) -> &str {
        &self.options.version
    }

    /// Announces a later version.
    pub(crate) fn later_version(&mut self, release: &LatestRelease) {
        let version = one_line(&release.version);
        self.warning(&format!("Version {version} is available. Run `pinch update` for instructions"));
        if let Some(note) = &release.note {
            self.transcript.markdown(note);
        }
    }
}

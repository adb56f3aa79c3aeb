//! Asking extensions whether a project is trusted, before there is a session.

use std::path::PathBuf;
use std::sync::Arc;

use pinch_stdx::cancel::Cancel;

use super::Extension;
use super::limit::{HANDLER_LIMIT, Stopwatch, guarded, guarded_now};
use super::points::Point;
use super::ui::{Dialogs, NoUi, Screen, Ui};

/// A project has things of its own that count only when it is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProjectTrust {
    /// Its directory.
    pub cwd: PathBuf,
}

/// What an extension says of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrustAction {
    /// Others may decide.
    #[default]
    Undecided,
    /// It is decided.
    Decided {
        /// The project's own things count.
        trusted: bool,
        /// The decision is kept for later sessions.
        remember: bool,
    },
}

/// A decision, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    pub(crate) extension: String,
    pub(crate) trusted: bool,
    pub(crate) remember: bool,
}

/// Asks extensions one after another; the first decision is used. Failures are reported as sentences, and the next extension is asked.
pub(crate) async fn ask(
    extensions: &[Arc<dyn Extension>],
    ask: &ProjectTrust,
    ui: Option<Arc<dyn Ui>>,
) -> (Option<Decided>, Vec<String>) {
    let screen = Screen::new(ui.unwrap_or_else(|| Arc::new(NoUi)));
    let mut problems = Vec::new();
    for extension in extensions {
        // One that panics here is reported when it is loaded.
        let known = guarded_now(|| Ok((extension.name().to_owned(), extension.points())));
        let Some((name, _)) = known.ok().filter(|(_, points)| points.has(Point::ProjectTrust)) else { continue };
        let watch = Stopwatch::start();
        let dialogs = Dialogs { screen: screen.clone(), watch: Some(Arc::clone(&watch)), cancel: Cancel::new() };
        let answer = guarded(|| extension.project_trust(ask, &dialogs), &watch, Some(HANDLER_LIMIT)).await;
        match answer {
            Ok(TrustAction::Undecided) => {}
            Ok(TrustAction::Decided { trusted, remember }) => {
                return (Some(Decided { extension: name, trusted, remember }), problems);
            }
            Err(error) => problems.push(format!("Extension {name} failed at {}: {error}", Point::ProjectTrust.name())),
        }
    }
    (None, problems)
}

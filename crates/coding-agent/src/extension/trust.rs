//! Asking extensions whether to trust a project, before there is a session.

use std::path::PathBuf;
use std::sync::Arc;

use pinch_stdx::cancel::Cancel;

use super::Extension;
use super::limit::{HANDLER_LIMIT, Stopwatch, guarded, guarded_now};
use super::points::Point;
use super::ui::{Dialogs, NoUi, Screen, Ui};

/// A project with resources that require trust.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProjectTrust {
    /// Directory of the project.
    pub cwd: PathBuf,
}

/// An extension's decision about a project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrustAction {
    /// No decision; others may decide.
    #[default]
    Undecided,
    /// A decision.
    Decided {
        /// Whether to trust the project.
        trusted: bool,
        /// Whether to remember the decision for later sessions.
        remember: bool,
    },
}

/// A decision and the extension that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    pub(crate) extension: String,
    pub(crate) trusted: bool,
    pub(crate) remember: bool,
}

/// Asks extensions one after another until one decides. Failures are reported as sentences, and the next extension is asked.
pub(crate) async fn ask(
    extensions: &[Arc<dyn Extension>],
    ask: &ProjectTrust,
    ui: Option<Arc<dyn Ui>>,
) -> (Option<Decided>, Vec<String>) {
    let screen = Screen::new(ui.unwrap_or_else(|| Arc::new(NoUi)));
    let mut problems = Vec::new();
    for extension in extensions {
        // A panic here is reported when the extension is loaded.
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

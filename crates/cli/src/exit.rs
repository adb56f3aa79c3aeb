//! Why a command ends early, and its exit codes.

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pinch_embed::coding_agent::document::Problem;
use pinch_embed::coding_agent::extension::ExtensionFailure;
use pinch_embed::coding_agent::modes::print::PrintError;
use pinch_embed::coding_agent::session::SessionError;
use pinch_embed::coding_agent::store::StoreError;
use pinch_embed::stdx::text::with_causes;

use crate::output;

/// The cause of a failure, which is also the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// Nobody: the user chose not to go on.
    Nobody = 0,
    /// The user: an invalid option, a missing file, an unknown model or session, a cancelled prompt.
    User = 1,
    /// The configuration: no model or key, a document that prevents the run.
    Configuration = 2,
    /// The provider.
    Provider = 3,
    /// The machine or pinch itself: disk, lock, bug.
    Internal = 4,
}

/// A failed command, with a message for people.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    pub(crate) kind: Blame,
    pub(crate) text: String,
    /// Whether the text is printed without a prefix.
    pub(crate) bare: bool,
    /// Whether there is no usable model, so that a login would help.
    pub(crate) lacks_model: bool,
}

impl CommandFailure {
    pub(crate) fn new(kind: Blame, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), bare: false, lacks_model: false }
    }

    pub(crate) fn user(text: impl Into<String>) -> Self {
        Self::new(Blame::User, text)
    }

    pub(crate) fn configuration(text: impl Into<String>) -> Self {
        Self::new(Blame::Configuration, text)
    }

    pub(crate) fn internal(text: impl Into<String>) -> Self {
        Self::new(Blame::Internal, text)
    }

    /// Ends the command because the user cancelled a question. That is not a failure.
    pub(crate) fn cancelled() -> Self {
        Self::bare(Blame::Nobody, "Aborted.")
    }

    /// Creates a failure whose text is printed without a prefix, like that of a failed answer.
    pub(crate) fn bare(kind: Blame, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), bare: true, lacks_model: false }
    }

    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.kind as u8)
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bare { f.write_str(&self.text) } else { write!(f, "Error: {}", self.text) }
    }
}

impl From<StoreError> for CommandFailure {
    fn from(error: StoreError) -> Self {
        let kind = match &error {
            StoreError::Io { .. } | StoreError::Locked { .. } | StoreError::Cut { .. } | StoreError::Contended => {
                Blame::Internal
            }
            _ => Blame::User,
        };
        Self::new(kind, with_causes(&error))
    }
}

impl From<SessionError> for CommandFailure {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Store(error) => error.into(),
            SessionError::ContinueError(_) | SessionError::SwitchCancelled => Self::user(error.to_string()),
            SessionError::Auth(_) | SessionError::NoKey { .. } => Self::configuration(with_causes(&error)),
            error => Self::internal(with_causes(&error)),
        }
    }
}

impl From<PrintError> for CommandFailure {
    fn from(error: PrintError) -> Self {
        match error {
            PrintError::Session(error) => error.into(),
            error => Self::internal(with_causes(&error)),
        }
    }
}

/// Warns about problems in documents that are used anyway.
pub(crate) fn warn_of(problems: &[Problem]) {
    problems.iter().for_each(|problem| warn(&problem.to_string()));
}

/// Prints the failure of an extension.
pub(crate) fn extension_failed(failure: &ExtensionFailure) {
    tell(&format_args!("Extension error ({}): {}", failure.extension, failure.error));
}

/// Prints a warning to stderr.
pub(crate) fn warn(text: &str) {
    match &mut *kept() {
        Some(warnings) => warnings.push(text.to_owned()),
        None => write_line(&format_args!("Warning: {text}")),
    }
}

/// Writes a line to stderr. If it cannot be written, only the exit code reports the failure.
pub(crate) fn tell(line: &dyn fmt::Display) {
    match &mut *kept() {
        Some(warnings) => warnings.push(line.to_string()),
        None => write_line(line),
    }
}

fn write_line(line: &dyn fmt::Display) {
    let _unread = writeln!(output::stderr(), "{line}");
}

/// Lines for stderr that are held back while something else uses the terminal.
static KEPT: Mutex<Option<Vec<String>>> = Mutex::new(None);

fn kept() -> MutexGuard<'static, Option<Vec<String>>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds back lines for stderr until this is dropped; lines that were not taken are written then.
pub(crate) struct KeptWarnings;

/// Holds back lines for stderr, because something else uses the terminal.
pub(crate) fn keep_warnings() -> KeptWarnings {
    *kept() = Some(Vec::new());
    KeptWarnings
}

/// Takes the lines that were held back.
pub(crate) fn take_warnings() -> Vec<String> {
    kept().as_mut().map(std::mem::take).unwrap_or_default()
}

impl Drop for KeptWarnings {
    fn drop(&mut self) {
        let left = kept().take().unwrap_or_default();
        left.iter().for_each(|line| warn(line));
    }
}

/// Creates the failure of a write to stdout: the reader is gone, or the disk is full.
pub(crate) fn unwritten(error: &std::io::Error) -> CommandFailure {
    CommandFailure::internal(format!("cannot write the output: {error}"))
}

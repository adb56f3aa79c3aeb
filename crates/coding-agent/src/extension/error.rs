//! Errors of extensions, and how they are reported.

use std::time::Duration;

/// Why an extension could not do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionError {
    /// It says so itself.
    #[error("{text}")]
    Failed {
        /// What it says.
        text: String,
    },
    /// The session it speaks to was replaced, was reloaded, or is over.
    #[error(
        "This extension context is stale: the session was replaced, reloaded or closed. Use the context of the new session."
    )]
    Stale,
    /// It took too long.
    #[error("The handler took longer than {} s", limit.as_secs_f64())]
    TimedOut {
        /// How long it may take.
        limit: Duration,
    },
    /// It panicked.
    #[error("The handler panicked: {text}")]
    Panicked {
        /// What it said.
        text: String,
    },
    /// Its process is gone.
    #[error("The extension's process is not running: {why}")]
    Gone {
        /// What is known of its end.
        why: String,
    },
    /// The session did not do what it asked for.
    #[error("{text}")]
    Refused {
        /// Why not.
        text: String,
    },
}

impl ExtensionError {
    /// A failure with its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self::Failed { text: text.into() }
    }

    /// A refusal with its text.
    pub fn refused(text: impl ToString) -> Self {
        Self::Refused { text: text.to_string() }
    }
}

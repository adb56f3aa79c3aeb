//! Extension errors, and how they are reported.

use std::time::Duration;

/// Why an extension or one of its requests failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionError {
    /// The extension reported a failure.
    #[error("{text}")]
    Failed {
        /// The error message.
        text: String,
    },
    /// The session of the context was replaced, reloaded or closed.
    #[error(
        "This extension context is stale: the session was replaced, reloaded or closed. Use the context of the new session."
    )]
    Stale,
    /// It timed out.
    #[error("The handler took longer than {} s", limit.as_secs_f64())]
    TimedOut {
        /// The time limit.
        limit: Duration,
    },
    /// It panicked.
    #[error("The handler panicked: {text}")]
    Panicked {
        /// The panic message.
        text: String,
    },
    /// Its process has exited.
    #[error("The extension's process is not running: {reason}")]
    Gone {
        /// How it exited.
        reason: String,
    },
    /// The session refused a request.
    #[error("{text}")]
    Refused {
        /// The reason.
        text: String,
    },
}

impl ExtensionError {
    /// Creates a failure with a message.
    pub fn new(text: impl Into<String>) -> Self {
        Self::Failed { text: text.into() }
    }

    /// Creates a refusal with a message.
    pub fn refused(text: impl ToString) -> Self {
        Self::Refused { text: text.to_string() }
    }
}

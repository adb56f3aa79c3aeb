//! Errors of shared state.

use pinch_session::store::Fence;

/// Boxed error of an implementation.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Reasons why shared state could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// The caller's lease has passed to another run; nothing was changed.
    #[error("another run has taken over the session (epoch {epoch} is not current)")]
    Fenced {
        /// The epoch of the call.
        epoch: u64,
    },
    /// The state could not be reached, read or written.
    #[error("cannot {action}: {source}")]
    Unavailable {
        /// The action that failed.
        action: String,
        /// The cause.
        source: BoxError,
    },
}

impl PortError {
    /// Creates an error of the implementation; `action` completes the sentence "cannot …".
    pub fn unavailable(action: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self::Unavailable { action: action.into(), source: source.into() }
    }

    /// Fails if a call carries an outdated lease. Implementations without transactions call this where no other writer can intervene
    /// between the check and the write.
    ///
    /// # Errors
    /// Returns [`PortError::Fenced`] if the lease is not current.
    pub fn check(fence: Option<&dyn Fence>) -> Result<(), Self> {
        match fence {
            Some(fence) if !fence.is_current() => Err(Self::Fenced { epoch: fence.epoch() }),
            _ => Ok(()),
        }
    }
}

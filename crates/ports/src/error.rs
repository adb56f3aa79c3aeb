//! Why shared state could not be read or changed.

use pinch_session::store::Fence;

/// Any error of an implementation.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why shared state could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// The caller's lease has passed to another run; nothing was changed.
    #[error("another run has taken over the session (epoch {epoch} is not current)")]
    Fenced {
        /// The epoch that the call carried.
        epoch: u64,
    },
    /// The state could not be reached, read or written.
    #[error("cannot {action}: {source}")]
    Unavailable {
        /// What was tried.
        action: String,
        /// Why it failed.
        source: BoxError,
    },
}

impl PortError {
    /// An error of the implementation; `action` completes the sentence "cannot …".
    pub fn unavailable(action: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self::Unavailable { action: action.into(), source: source.into() }
    }

    /// Fails when a call carries a lease that is not current. Implementations without a transaction of their own call this where no other
    /// writer can come between the check and the write.
    ///
    /// # Errors
    /// [`PortError::Fenced`].
    pub fn check(fence: Option<&dyn Fence>) -> Result<(), Self> {
        match fence {
            Some(fence) if !fence.is_current() => Err(Self::Fenced { epoch: fence.epoch() }),
            _ => Ok(()),
        }
    }
}

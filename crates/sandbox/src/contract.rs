//! The interface of all backends.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_machine::Machine;

use crate::confinement::{Confinement, SandboxGuarantees};

/// A backend that isolates tools and commands from the rest of the machine.
///
/// Nothing is ever left unconfined silently: an unavailable requirement is an error with a remedy.
pub trait Sandbox: Send + Sync {
    /// Returns the name used in configurations.
    fn name(&self) -> &'static str;

    /// Returns whether commands inside start programs of an image, not of this machine.
    fn has_own_programs(&self) -> bool;

    /// Checks whether the backend works on this machine.
    fn probe(&self) -> BoxFuture<'_, Result<SandboxProbe, SandboxUnavailable>>;

    /// Returns a machine whose tools and commands are confined. Its commands end with it, as far as the system supports that.
    fn enter<'a>(&'a self, confinement: &'a Confinement)
    -> BoxFuture<'a, Result<Arc<dyn Machine>, SandboxUnavailable>>;

    /// Removes what the sandboxes of programs that were killed have left behind: temporary files, and containers. Entering a sandbox does
    /// this as well.
    fn prune(&self) -> BoxFuture<'_, ()>;
}

/// A working backend.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxProbe {
    /// Description with version.
    pub version: String,
    /// Its guarantees.
    pub guarantees: SandboxGuarantees,
}

impl SandboxProbe {
    /// Creates a probe result.
    pub fn new(version: impl Into<String>, guarantees: SandboxGuarantees) -> Self {
        Self { version: version.into(), guarantees }
    }
}

/// Why a backend does not work here or cannot meet the requirements.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sandbox {backend} is not available: {reason}")]
#[non_exhaustive]
pub struct SandboxUnavailable {
    /// Name of the backend.
    pub backend: &'static str,
    /// The reason.
    pub reason: String,
    /// How to fix it.
    pub remedy: String,
}

impl SandboxUnavailable {
    /// Creates an error with a reason and a remedy.
    pub fn new(backend: &'static str, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { backend, reason: reason.into(), remedy: remedy.into() }
    }
}

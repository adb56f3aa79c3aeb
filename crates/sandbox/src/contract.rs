//! What every backend does.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_machine::Machine;

use crate::confinement::{Confinement, SandboxGuarantees};

/// A way to keep tools and commands apart from the rest of the machine.
///
/// Nothing is ever left unconfined silently: what cannot be had is an error that says what to do about it.
pub trait Sandbox: Send + Sync {
    /// Its name, as configurations have it.
    fn name(&self) -> &'static str;

    /// Tries whether it works on this machine.
    fn probe(&self) -> BoxFuture<'_, Result<SandboxProbe, SandboxUnavailable>>;

    /// A machine whose tools and commands are confined. Its commands end with it, as far as the system can do that.
    fn enter<'a>(&'a self, confinement: &'a Confinement)
    -> BoxFuture<'a, Result<Arc<dyn Machine>, SandboxUnavailable>>;
}

/// A backend that works.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxProbe {
    /// What it is, with its version.
    pub version: String,
    /// What it guarantees.
    pub guarantees: SandboxGuarantees,
}

impl SandboxProbe {
    /// A backend that works.
    pub fn new(version: impl Into<String>, guarantees: SandboxGuarantees) -> Self {
        Self { version: version.into(), guarantees }
    }
}

/// A backend that does not work here, or cannot do what it is asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sandbox {backend} is not available: {reason}")]
#[non_exhaustive]
pub struct SandboxUnavailable {
    /// Its name.
    pub backend: &'static str,
    /// Why.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

impl SandboxUnavailable {
    /// A backend that does not work, why, and what to do about it.
    pub fn new(backend: &'static str, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { backend, reason: reason.into(), remedy: remedy.into() }
    }
}

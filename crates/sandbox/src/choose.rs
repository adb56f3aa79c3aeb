//! Which backend is used.

use std::sync::Arc;

use pinch_machine::Machine;

use crate::confinement::Confinement;
use crate::contract::{Sandbox, SandboxUnavailable};

/// Which backend is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SandboxBackend {
    /// The first that works: bubblewrap, else landlock.
    #[default]
    Auto,
    /// Bubblewrap.
    Bubblewrap,
    /// Landlock and seccomp.
    Landlock,
}

impl SandboxBackend {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Bubblewrap, Self::Landlock];

    /// Parses its name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.as_str() == word.trim())
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
        }
    }
}

/// A sandbox that was entered.
#[derive(Clone)]
#[non_exhaustive]
pub struct EnteredSandbox {
    /// The name of its backend.
    pub backend: &'static str,
    /// The machine inside.
    pub machine: Arc<dyn Machine>,
}

/// The backends for this system, in the order in which they are tried. `path` is where programs are searched.
pub fn sandboxes(path: &str) -> Vec<Box<dyn Sandbox>> {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    {
        vec![Box::new(crate::bubblewrap::BubblewrapSandbox::find(path)), Box::new(crate::landlock::LandlockSandbox)]
    }
    #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
    {
        let _ = path;
        Vec::new()
    }
}

/// Enters the sandbox that is asked for.
///
/// # Errors
/// When it cannot be had. With [`SandboxBackend::Auto`] the error names every backend that was tried.
pub async fn enter(
    backend: SandboxBackend,
    path: &str,
    asked: &Confinement,
) -> Result<EnteredSandbox, SandboxUnavailable> {
    let mut failed: Vec<SandboxUnavailable> = Vec::new();
    for sandbox in sandboxes(path) {
        if backend != SandboxBackend::Auto && backend.as_str() != sandbox.name() {
            continue;
        }
        match sandbox.enter(asked).await {
            Ok(machine) => return Ok(EnteredSandbox { backend: sandbox.name(), machine }),
            Err(error) => failed.push(error),
        }
    }
    match failed.len() {
        0 => Err(SandboxUnavailable::new(
            backend.as_str(),
            "there is none for this system",
            "run the program in a container or a virtual machine",
        )),
        1 => Err(failed.remove(0)),
        _ => {
            let reasons: Vec<String> =
                failed.iter().map(|error| format!("{}: {}", error.backend, error.reason)).collect();
            let remedies: Vec<&str> = failed.iter().map(|error| error.remedy.as_str()).collect();
            Err(SandboxUnavailable::new(backend.as_str(), reasons.join("; "), remedies.join("; or ")))
        }
    }
}

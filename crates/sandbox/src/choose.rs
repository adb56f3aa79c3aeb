//! Choosing a backend.

use std::sync::Arc;

use pinch_machine::Machine;

use crate::confinement::Confinement;
use crate::container::ContainerOptions;
use crate::contract::{Sandbox, SandboxUnavailable};

/// The requested backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SandboxBackend {
    /// The first that works: bubblewrap, or else landlock. Containers must be requested by name, because they hide the host's toolchain.
    #[default]
    Auto,
    /// Bubblewrap.
    Bubblewrap,
    /// Landlock and seccomp.
    Landlock,
    /// Docker containers.
    Docker,
    /// Podman containers.
    Podman,
    /// Containers of runc, made of a root file system on this machine.
    Runc,
}

impl SandboxBackend {
    /// All backends.
    pub const ALL: [Self; 6] = [Self::Auto, Self::Bubblewrap, Self::Landlock, Self::Docker, Self::Podman, Self::Runc];

    /// Parses the name of a backend.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.as_str() == word.trim())
    }

    /// Returns the name of the backend.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::Runc => "runc",
        }
    }
}

/// A sandbox that was entered.
#[derive(Clone)]
#[non_exhaustive]
pub struct EnteredSandbox {
    /// Name of the backend.
    pub backend: &'static str,
    /// The machine inside the sandbox.
    pub machine: Arc<dyn Machine>,
    /// Whether its programs are those of an image, not of this machine.
    pub has_own_programs: bool,
}

/// Returns the backends for this system, in the order in which they are tried. `path` is searched for programs.
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

/// Returns the container backends, in the order in which they are tried.
pub fn container_sandboxes(path: &str, options: &ContainerOptions) -> Vec<Box<dyn Sandbox>> {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    {
        use crate::containers::{ContainerEngine, ContainerSandbox, RuncSandbox};
        let sandbox = |engine| -> Box<dyn Sandbox> { Box::new(ContainerSandbox::find(engine, path, options.clone())) };
        let engines = [ContainerEngine::Docker, ContainerEngine::Podman].into_iter().map(sandbox);
        engines.chain([Box::new(RuncSandbox::find(path, options.clone())) as Box<dyn Sandbox>]).collect()
    }
    #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
    {
        let _ = (path, options);
        Vec::new()
    }
}

/// Enters the requested sandbox. [`SandboxBackend::Auto`] tries docker and podman if the configuration requires something only containers
/// support.
///
/// # Errors
/// Fails if the sandbox is not available. With [`SandboxBackend::Auto`], the error names every backend that was tried.
pub async fn enter(
    backend: SandboxBackend,
    path: &str,
    options: &ContainerOptions,
    asked: &Confinement,
) -> Result<EnteredSandbox, SandboxUnavailable> {
    let needs_container = options.config.needs_container();
    let asked = &asked.clone().limits(options.config.process_limits());
    let candidates = match (backend, needs_container) {
        (SandboxBackend::Docker | SandboxBackend::Podman | SandboxBackend::Runc, _)
        | (SandboxBackend::Auto, Some(_)) => container_sandboxes(path, options),
        (SandboxBackend::Auto, None) | (SandboxBackend::Bubblewrap | SandboxBackend::Landlock, None) => sandboxes(path),
        (SandboxBackend::Bubblewrap | SandboxBackend::Landlock, Some(key)) => {
            let reason = format!("docker.{key} requires a container");
            return Err(SandboxUnavailable::new(backend.as_str(), reason, "remove the key, or use docker or podman"));
        }
    };
    let mut failed: Vec<SandboxUnavailable> = Vec::new();
    for sandbox in candidates {
        // A root file system for runc is never chosen by itself.
        let is_auto = backend == SandboxBackend::Auto && sandbox.name() != SandboxBackend::Runc.as_str();
        if !is_auto && backend.as_str() != sandbox.name() {
            continue;
        }
        sandbox.prune().await;
        match sandbox.enter(asked).await {
            Ok(machine) => {
                let has_own_programs = sandbox.has_own_programs();
                return Ok(EnteredSandbox { backend: sandbox.name(), machine, has_own_programs });
            }
            Err(error) => failed.push(error),
        }
    }
    match failed.len() {
        0 => Err(SandboxUnavailable::new(
            backend.as_str(),
            "no backend supports this system",
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

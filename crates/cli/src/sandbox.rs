//! `--sandbox`: tools and commands of a conversation stay in its directory.

use pinch_embed::stdx::host::Host;
use pinch_sandbox::choose::{self, EnteredSandbox, SandboxBackend};
use pinch_sandbox::confinement::Confinement;

use crate::exit::CommandFailure;
use crate::folders::Folders;

/// Enters the sandbox that is asked for. There is no going on without it.
pub(crate) async fn enter(
    backend: Option<SandboxBackend>,
    folders: &Folders,
    host: &Host,
) -> Result<Option<EnteredSandbox>, CommandFailure> {
    let Some(backend) = backend else { return Ok(None) };
    let real = |path: &std::path::Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let cwd = real(&folders.cwd);
    for (what, path) in [("home directory", host.home()), ("credentials", Some(folders.agent_dir.as_path()))] {
        if path.is_some_and(|path| real(path).starts_with(&cwd)) {
            return Err(CommandFailure::configuration(format!(
                "the sandbox would contain your {what}: {} is shown inside\nhint: start pinch in the directory of a project",
                folders.cwd.display()
            )));
        }
    }
    let mut asked = Confinement::new(&folders.cwd);
    if let Some(home) = host.home() {
        asked = asked.toolchains_of(home);
    }
    let entered = choose::enter(backend, host.env().get("PATH").unwrap_or_default(), &asked).await;
    entered.map(Some).map_err(|error| {
        let without = "--sandbox=none runs tools with your permissions";
        CommandFailure::configuration(format!("{error}\nhint: {}\nhint: {without}", error.remedy))
    })
}

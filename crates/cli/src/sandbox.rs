//! `--sandbox` and the setting `sandbox`: confine a conversation's tools and commands to its directory.

use std::path::Path;

use pinch_cli::options::SandboxChoice;
use pinch_embed::coding_agent::resources::sandboxed;
use pinch_embed::coding_agent::settings::SettingsManager;
use pinch_embed::coding_agent::settings::values::SandboxDefaults;
use pinch_embed::stdx::fs::real_path;
use pinch_embed::stdx::host::Host;
use pinch_sandbox::choose::{self, EnteredSandbox};
use pinch_sandbox::config::ContainerConfig;
use pinch_sandbox::confinement::{Confinement, NetworkAccess, PathAccess};
use pinch_sandbox::container::ContainerOptions;
use pinch_sandbox::domains::DomainList;

use crate::exit::{CommandFailure, warn};
use crate::folders::{Folders, expand_home};

/// Enters the sandbox requested by the command line, else by the settings. Fails if it is unavailable.
pub(crate) async fn enter(
    flag: Option<SandboxChoice>,
    folders: &Folders,
    host: &Host,
) -> Result<Option<EnteredSandbox>, CommandFailure> {
    if flag == Some(SandboxChoice::Off) {
        return Ok(None);
    }
    // Only users have these settings, not projects. Problems in them are reported when they are read for the session.
    let settings = &SettingsManager::of_user(&folders.agent_dir, host).settings().sandbox;
    // Unknown words are not treated as `none`: settings are checked against the same words.
    let choice = flag.or_else(|| SandboxChoice::parse(&settings.backend));
    let backend = match choice.unwrap_or(SandboxChoice::Use(choose::SandboxBackend::Auto)) {
        SandboxChoice::Off => return Ok(None),
        SandboxChoice::Use(backend) => backend,
    };
    let asked = confinement(settings, folders, host)?;
    if settings.can_write {
        sandboxed::remember(&folders.agent_dir, &folders.cwd, host)
            .map_err(|error| CommandFailure::configuration(error.into_problem().to_string()))?;
    }
    let path = host.env().get("PATH").unwrap_or_default();
    let entered = choose::enter(backend, path, &container_options(settings, folders, host), &asked).await;
    entered.map(Some).map_err(|error| {
        let without = match flag {
            Some(_) => "--sandbox=none runs tools with your permissions",
            None => "\"sandbox\" in settings.json asks for it; --sandbox=none runs tools with your permissions",
        };
        CommandFailure::configuration(format!("{error}\nhint: {}\nhint: {without}", error.remedy))
    })
}

/// Returns the container options.
pub(crate) fn container_options(settings: &SandboxDefaults, folders: &Folders, host: &Host) -> ContainerOptions {
    let mut config = ContainerConfig::default();
    config.image.clone_from(&settings.image);
    let rootfs = settings.rootfs.as_deref().map(|dir| folders.cwd.join(expand_home(Path::new(dir), host)));
    config.rootfs = rootfs.map(|dir| dir.to_string_lossy().into_owned());
    "pinch-".clone_into(&mut config.container_prefix);
    let options = ContainerOptions::new(config, folders.cwd.to_string_lossy());
    options.host(host.home().map(Into::into), host.env().to_vec(), host.now_ms())
}

/// Returns the network access of commands.
pub(crate) fn network(settings: &SandboxDefaults) -> Result<NetworkAccess, CommandFailure> {
    if settings.has_unused_domains {
        warn("sandbox.domains has no effect without \"network\": \"domains\"");
    }
    let Some(domains) = settings.domains.as_deref().filter(|domains| !domains.is_empty()) else {
        return Ok(if settings.has_network { NetworkAccess::On } else { NetworkAccess::Off });
    };
    let list = DomainList::parse(domains);
    list.map(NetworkAccess::Domains)
        .map_err(|error| CommandFailure::configuration(format!("sandbox.domains in settings.json: {error}")))
}

/// Returns what is visible inside.
fn confinement(settings: &SandboxDefaults, folders: &Folders, host: &Host) -> Result<Confinement, CommandFailure> {
    let mut asked = Confinement::new(&folders.cwd);
    if !settings.can_write {
        asked = asked.read_only();
    }
    asked = asked.network(network(settings)?);
    if let Some(home) = host.home() {
        asked = asked.toolchains_of(home);
    }
    let mut shown = vec![folders.cwd.clone()];
    for (written, can_write) in &settings.extra_roots {
        let path = folders.cwd.join(expand_home(Path::new(written), host));
        if !path.exists() {
            warn(&format!("sandbox.extraRoots: {written} does not exist, so it is not visible in the sandbox"));
            continue;
        }
        let access = if *can_write { PathAccess::Write } else { PathAccess::Read };
        asked = asked.root(&path, access);
        shown.push(path);
    }
    let hidden = [("home directory", host.home()), ("credentials", Some(folders.agent_dir.as_path()))];
    for dir in &shown {
        let real_dir = real_path(dir);
        if let Some((what, _)) =
            hidden.iter().find(|(_, path)| path.is_some_and(|path| real_path(path).starts_with(&real_dir)))
        {
            return Err(CommandFailure::configuration(format!(
                "the sandbox would contain your {what}: {} is visible inside\nhint: start pinch in the directory of a project",
                dir.display()
            )));
        }
    }
    Ok(asked)
}

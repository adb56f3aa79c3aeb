//! `--sandbox` and the setting `sandbox`: confine a conversation's tools and commands to its directory.

use std::path::{Path, PathBuf};

use pinch_cli::options::SandboxChoice;
use pinch_embed::coding_agent::resources::info::ResourceScope;
use pinch_embed::coding_agent::resources::sandboxed;
use pinch_embed::coding_agent::resources::skills::Skill;
use pinch_embed::coding_agent::settings::SettingsManager;
use pinch_embed::coding_agent::settings::values::SandboxDefaults;
use pinch_embed::stdx::fs::real_path;
use pinch_embed::stdx::host::Host;
use pinch_sandbox::choose::{self, EnteredSandbox, SandboxBackend};
use pinch_sandbox::config::ContainerConfig;
use pinch_sandbox::confinement::{Confinement, NetworkAccess, PathAccess};
use pinch_sandbox::container::ContainerOptions;
use pinch_sandbox::domains::DomainList;

use crate::exit::{CommandFailure, warn};
use crate::folders::{Folders, expand_home};

/// The sandbox of a conversation.
pub(crate) struct SessionSandbox {
    pub(crate) entered: EnteredSandbox,
    /// What tools can reach in it, for the model.
    pub(crate) description: String,
}

/// Returns the directories of skills that are not part of a project. The model reads them, and runs their programs.
pub(crate) fn skill_dirs(skills: &[Skill]) -> Vec<PathBuf> {
    let of_user = skills.iter().filter(|skill| skill.info.scope != ResourceScope::Project);
    of_user.map(|skill| real_path(&skill.base_dir)).collect()
}

/// Enters the sandbox requested by the command line, else by the settings. `skills` returns the directories of skills, which can be read.
/// Fails if the sandbox is unavailable.
pub(crate) async fn enter(
    flag: Option<SandboxChoice>,
    folders: &Folders,
    skills: impl FnOnce() -> Vec<PathBuf>,
    host: &Host,
) -> Result<Option<SessionSandbox>, CommandFailure> {
    if flag == Some(SandboxChoice::Off) {
        return Ok(None);
    }
    // Only users have these settings, not projects. Problems in them are reported when they are read for the session.
    let settings = &SettingsManager::of_user(&folders.agent_dir, host).settings().sandbox;
    // Unknown words are not treated as `none`: settings are checked against the same words.
    let choice = flag.or_else(|| SandboxChoice::parse(&settings.backend));
    let backend = match choice.unwrap_or(SandboxChoice::Use(SandboxBackend::Auto)) {
        SandboxChoice::Off => return Ok(None),
        SandboxChoice::Use(backend) => backend,
    };
    let mut asked = confinement(settings, folders, host)?;
    let hidden = [host.home(), Some(folders.agent_dir.as_path())].into_iter().flatten().map(real_path);
    let hidden: Vec<PathBuf> = hidden.collect();
    for dir in skills() {
        // A skill beside credentials stays invisible, and so does everything else there.
        if dir.is_dir() && !hidden.iter().any(|hidden| hidden.starts_with(&dir)) {
            asked = asked.root(&dir, PathAccess::Read);
        }
    }
    if settings.can_write {
        sandboxed::remember(&folders.agent_dir, &folders.cwd, host)
            .map_err(|error| CommandFailure::configuration(error.into_problem().to_string()))?;
    }
    let path = host.env().get("PATH").unwrap_or_default();
    let entered = choose::enter(backend, path, &container_options(backend, settings, folders, host), &asked).await;
    let described = |entered: EnteredSandbox| {
        let description = description(entered.backend, settings, folders);
        Some(SessionSandbox { entered, description })
    };
    entered.map(described).map_err(|error| {
        let without = match flag {
            Some(_) => "--sandbox=none runs tools with your permissions",
            None => "\"sandbox\" in settings.json asks for it; --sandbox=none runs tools with your permissions",
        };
        CommandFailure::configuration(format!("{error}\nhint: {}\nhint: {without}", error.remedy))
    })
}

/// Describes what tools can reach, for the model.
fn description(backend: &str, settings: &SandboxDefaults, folders: &Folders) -> String {
    let may = if settings.can_write { "read and write" } else { "only read" };
    let network = match settings.domains.as_deref().filter(|domains| !domains.is_empty()) {
        Some(domains) => format!("Only these servers can be reached: {}.", domains.join(", ")),
        None if settings.has_network => "The network can be reached.".to_owned(),
        None => "There is no network.".to_owned(),
    };
    let roots = settings.extra_roots.iter().map(|(path, can_write)| match can_write {
        true => format!(" {path} can be read and written."),
        false => format!(" {path} can be read."),
    });
    format!(
        "Tools and commands run in a sandbox ({backend}): they {may} files in {}, write temporary files, and only read those of the system. \
         The home directory is not visible.{} {network} A command that needs more fails; tell the user instead of trying to get around it.",
        folders.cwd.display(),
        roots.collect::<String>(),
    )
}

/// Returns the container options for a backend. The image of the settings is only for backends that have one, so that `--sandbox` can
/// choose another.
pub(crate) fn container_options(
    backend: SandboxBackend,
    settings: &SandboxDefaults,
    folders: &Folders,
    host: &Host,
) -> ContainerOptions {
    let mut config = ContainerConfig::default();
    if matches!(backend, SandboxBackend::Docker | SandboxBackend::Podman) {
        config.image.clone_from(&settings.image);
    }
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
    if settings.hides_processes {
        asked = asked.hide_processes();
    }
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

//! The backends `docker`, `podman` and `runc`: containers, managed with their command lines.
//!
//! A container of docker or podman lives as long as its machine, one of runc as long as its command. Containers are removed even if this
//! program is killed; those left behind nevertheless, as by a crash of the system, are removed when the next sandbox is entered.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use pinch_machine::Machine;
use pinch_stdx::fs::real_path;

use crate::confined::{ConfinedMachine, ConfinedThread, SandboxView, landlock_version, prune_directories};
use crate::confinement::{Confinement, NetworkAccess, PathAccess, SandboxGuarantees};
use crate::container::{AGENT_MOUNT, BindRules, ContainerMounts, ContainerOptions, ContainerSpec, sandbox_hash};
use crate::contract::{Sandbox, SandboxProbe, SandboxUnavailable};
use crate::landlock::file_thread;
use crate::scope::WorkspaceAccess;

mod binds;
mod client;
mod commands;
mod runc;
mod seccomp;

use binds::{BoundPath, with_binds};
use client::ContainerClient;
use commands::RunningContainer;
pub use runc::RuncSandbox;
use seccomp::podman_profile;

/// Timeout of a query.
const PATIENCE: Duration = Duration::from_secs(15);
/// Timeout of creating or preparing a container.
const LONG_PATIENCE: Duration = Duration::from_secs(300);
/// Maximum characters of a container's name.
const MAX_NAME: usize = 63;
/// Label of containers that end with the program that created them.
const OWNER: &str = "pinch.owner";
/// Network with outside access, used if the configuration has none.
const BRIDGE: &str = "bridge";

const GUARANTEES: SandboxGuarantees =
    SandboxGuarantees { files: true, attributes: true, network: true, domains: false, processes: true, signals: true };

/// A container engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerEngine {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
}

impl ContainerEngine {
    /// Returns the name of the engine and its program.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Docker => "start the docker daemon and allow this user to use it, or use another backend",
            Self::Podman => "check that `podman info` works for this user, or use another backend",
        }
    }
}

/// The docker and podman backends. Tools run outside, confined by Landlock to what the container sees of the host.
#[derive(Clone, Debug)]
pub struct ContainerSandbox {
    engine: ContainerEngine,
    client: Option<ContainerClient>,
    options: ContainerOptions,
}

impl ContainerSandbox {
    /// Looks up the engine in a `PATH`.
    pub fn find(engine: ContainerEngine, path: &str, options: ContainerOptions) -> Self {
        Self { engine, client: ContainerClient::find(engine.as_str(), path, &options.env), options }
    }

    fn unavailable(&self, reason: impl ToString) -> SandboxUnavailable {
        SandboxUnavailable::new(self.engine.as_str(), reason.to_string(), self.engine.remedy())
    }

    fn refused(&self, reason: impl ToString, remedy: &str) -> SandboxUnavailable {
        SandboxUnavailable::new(self.engine.as_str(), reason.to_string(), remedy)
    }

    /// Returns the client if it responds, and its version.
    async fn check(&self) -> Result<(&ContainerClient, String), SandboxUnavailable> {
        let name = self.engine.as_str();
        let Some(client) = &self.client else {
            let reason = format!("{name} is not installed");
            return Err(self.refused(reason, &format!("install {name}, or use another backend")));
        };
        if landlock_version() == 0 {
            let remedy = "use kernel 5.13 or later with `landlock` in its `lsm=` list";
            return Err(self.refused("its tools require Landlock, which this kernel does not support", remedy));
        }
        // Fails if there is no daemon, or if podman has no usable storage or user namespace.
        let query = match self.engine {
            ContainerEngine::Docker => ["version", "--format", "{{.Server.Version}}"],
            ContainerEngine::Podman => ["info", "--format", "{{.Version.Version}}"],
        };
        let version = client.run(query, PATIENCE).await;
        let version = version.map_err(|error| self.unavailable(error))?;
        Ok((client, format!("{name} {}", version.trim())))
    }

    async fn machine(&self, asked: &Confinement) -> Result<Arc<dyn Machine>, SandboxUnavailable> {
        let (client, _) = self.check().await?;
        if let Some(what) = GUARANTEES.lacks(asked) {
            return Err(self.refused(format!("it cannot {what}"), "use bubblewrap, or drop this requirement"));
        }
        let image = &self.options.config.image;
        if let Err(error) = client.run(["image", "inspect", "--format", "{{.Id}}", image], PATIENCE).await {
            let reason = format!("Sandbox image not found: {image}. Build or pull it first. ({error})");
            return Err(
                self.refused(reason, &format!("run `{} pull {image}`, or name another image", self.engine.as_str()))
            );
        }
        self.prune().await;
        let view = SandboxView::of_container(&with_binds(asked, &self.options.config.binds)).map_err(|error| {
            let reason = format!("cannot use {}: {error}", asked.workspace.display());
            self.refused(reason, "check the sandbox's directories")
        })?;
        let files = file_thread(&view).map_err(|error| self.unavailable(error))?;
        let launcher = ConfinedThread::start("sandbox-launcher", || Ok(())).map_err(|error| self.unavailable(error))?;
        let name = self.name();
        let is_podman = self.engine == ContainerEngine::Podman && self.options.config.seccomp_profile.is_none();
        // Read when the container starts.
        let profile = if is_podman { podman_profile() } else { None };
        let mut args = self.arguments(asked, &view, &name)?;
        if let Some(profile) = &profile {
            args.splice(1..1, ["--security-opt".to_owned(), format!("seccomp={}", profile.path().display())]);
        }
        // From here on it is removed on drop, whatever happens.
        let removal = client.removal(&name).map_err(|error| self.unavailable(error))?;
        let mut container = RunningContainer { client: client.clone(), name, has_bash: true, _removal: removal };
        self.start(&mut container, args).await.map_err(|error| self.unavailable(error))?;
        let machine = ConfinedMachine::new(view, files, launcher).wrapped(container.wrapper());
        Ok(Arc::new(machine.with_aliases(aliases(&self.options, asked))))
    }

    /// Creates, starts and prepares a container.
    async fn start(&self, container: &mut RunningContainer, args: Vec<String>) -> Result<(), String> {
        let (client, name) = (container.client.clone(), container.name.clone());
        client.run_all(args, LONG_PATIENCE).await?;
        client.run(["start", &name], LONG_PATIENCE).await?;
        if let Some(setup) = &self.options.config.setup_command {
            client.run(["exec", &name, "/bin/sh", "-lc", setup], LONG_PATIENCE).await?;
        }
        container.has_bash = client.run(["exec", &name, "/bin/bash", "-c", "true"], PATIENCE).await.is_ok();
        Ok(())
    }

    /// Returns a unique container name: the readable part of the key, the process id, and a counter.
    fn name(&self) -> String {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let (scope, key) = &self.options.scope;
        let own = format!("-{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let name = scope.container_name(&self.options.config.container_prefix, key);
        let name: String = name.chars().take(MAX_NAME - own.len()).collect();
        name + &own
    }

    /// Returns the arguments for creating the container.
    fn arguments(
        &self,
        asked: &Confinement,
        view: &SandboxView,
        name: &str,
    ) -> Result<Vec<String>, SandboxUnavailable> {
        let workspace = real_path(&asked.workspace);
        let mut config = self.options.config.clone();
        match &asked.network {
            NetworkAccess::Off | NetworkAccess::Domains(_) => config.network = "none".to_owned(),
            NetworkAccess::On if config.network.trim() == "none" => config.network = BRIDGE.to_owned(),
            NetworkAccess::On => {}
        }
        let is_rootless = self.engine == ContainerEngine::Podman && !is_root();
        let owner = workspace.metadata().map_err(|error| self.refused(error, "check the sandbox's directories"))?;
        if is_rootless && owner.uid() == 0 {
            let remedy = "use a workspace that you own, or run podman as root";
            return Err(self.refused("the workspace belongs to root", remedy));
        }
        config.user.get_or_insert_with(|| format!("{}:{}", owner.uid(), owner.gid()));
        let read_only = match asked.access {
            PathAccess::Read => WorkspaceAccess::ReadOnly,
            PathAccess::Write => WorkspaceAccess::ReadWrite,
        };
        let (agent_workspace, access) = self.options.agent_workspace.clone().unwrap_or((workspace.clone(), read_only));
        let mounts = ContainerMounts { workspace: workspace.clone(), agent_workspace, access };
        let own = own_mounts(asked, view);
        let rules = BindRules {
            roots: vec![workspace.clone(), mounts.agent_workspace.clone()],
            home: self.options.home.clone(),
            allow_external: config.allow_external_binds,
            reserved: own.iter().map(|(path, _)| path.clone()).chain([PathBuf::from(&config.workdir)]).collect(),
            allow_reserved_targets: config.allow_reserved_targets,
        };
        let spec = ContainerSpec {
            config: &config,
            name,
            scope_key: &self.options.scope.1,
            created_at_ms: self.options.now_ms,
            config_hash: Some(&sandbox_hash(&config, &mounts)),
            labels: &[(OWNER.to_owned(), owner_label())],
        };
        let args = spec
            .arguments(&mounts, &rules)
            .map_err(|error| self.refused(error, "change the sandbox's `docker` settings"))?;
        let mut all = vec!["create".to_owned(), "--pull".to_owned(), "never".to_owned()];
        if is_rootless {
            all.extend(["--userns".to_owned(), "keep-id".to_owned()]);
        }
        // Mount directories under their own names too, so that a path means the same file to tools, commands and the model.
        let targets = [Path::new(&config.workdir), Path::new(AGENT_MOUNT)];
        for (path, access) in own {
            let shown = path.to_string_lossy();
            if shown.contains([':', ',']) {
                let remedy = "rename the directory, or use another backend";
                return Err(self.refused(format!("{shown} has a colon or a comma in its name"), remedy));
            }
            if !targets.contains(&path.as_path()) {
                let read_only = if access == PathAccess::Read { ":ro" } else { "" };
                all.extend(["--volume".to_owned(), format!("{shown}:{shown}{read_only}")]);
            }
        }
        all.extend(args.into_iter().skip(1));
        Ok(all)
    }
}

/// Returns a container's paths of the workspaces and of what the configuration mounts, with their locations outside; the most specific
/// first.
fn aliases(options: &ContainerOptions, asked: &Confinement) -> Vec<(PathBuf, PathBuf)> {
    let mut aliases = vec![(PathBuf::from(&options.config.workdir), real_path(&asked.workspace))];
    let agent = options.agent_workspace.iter().filter(|(_, access)| *access != WorkspaceAccess::None);
    aliases.extend(agent.map(|(dir, _)| (PathBuf::from(AGENT_MOUNT), real_path(dir))));
    let binds = options.config.binds.iter().map(|bind| BoundPath::parse(bind));
    aliases.extend(binds.map(|bind| (bind.target, bind.source)));
    aliases.sort_by_key(|(inside, _)| std::cmp::Reverse(inside.components().count()));
    aliases
}

impl Sandbox for ContainerSandbox {
    fn name(&self) -> &'static str {
        self.engine.as_str()
    }

    fn has_own_programs(&self) -> bool {
        true
    }

    fn probe(&self) -> BoxFuture<'_, Result<SandboxProbe, SandboxUnavailable>> {
        async move { Ok(SandboxProbe::new(self.check().await?.1, GUARANTEES)) }.boxed()
    }

    fn enter<'a>(
        &'a self,
        confinement: &'a Confinement,
    ) -> BoxFuture<'a, Result<Arc<dyn Machine>, SandboxUnavailable>> {
        self.machine(confinement).boxed()
    }

    fn prune(&self) -> BoxFuture<'_, ()> {
        async move {
            prune_directories().await;
            if let Some(client) = &self.client {
                remove_left_over(client).await;
            }
        }
        .boxed()
    }
}

/// Returns the directories that a container sees under their outside paths.
fn own_mounts(asked: &Confinement, view: &SandboxView) -> Vec<(PathBuf, PathAccess)> {
    let roots = asked.roots.iter().map(|(path, access)| (real_path(path), *access));
    let own = [(real_path(&asked.workspace), asked.access), (real_path(view.private()), PathAccess::Write)];
    let mut all: Vec<_> = own.into_iter().chain(roots).collect();
    // The first of equal paths wins.
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all.dedup_by(|later, first| later.0 == first.0);
    all
}

/// Removes containers whose programs on this machine ended without removing them.
async fn remove_left_over(client: &ContainerClient) {
    let filter = format!("label={OWNER}={}", owner_label());
    let listed = client.run(["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"], PATIENCE).await;
    for name in listed.unwrap_or_default().lines().map(str::trim) {
        let owner = name.rsplit('-').nth(1).filter(|pid| pid.chars().all(|c| c.is_ascii_digit()));
        if owner.is_some_and(|pid| !pid.is_empty() && !Path::new("/proc").join(pid).exists()) {
            // Dropping it removes the container.
            drop(client.removal(name));
        }
    }
}

/// Returns a label that distinguishes this machine's processes from those of others using the same daemon: process ids mean nothing
/// elsewhere.
fn owner_label() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let text = format!("{}{}", boot.trim(), namespace.to_string_lossy());
    text.chars().filter(char::is_ascii_alphanumeric).collect()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

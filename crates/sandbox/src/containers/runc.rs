//! The backend `runc`: each command is a container of its own, made of a root file system on this machine.
//!
//! There is no daemon and no image store. The root file system is a directory, which stays unchanged: an empty directory becomes `/`, and
//! the contents of the root file system are mounted into it read-only.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::{BoxFuture, FutureExt as _};
use pinch_machine::{CommandSpec, Machine};
use pinch_stdx::fs::{create_private_dir, real_path};
use serde_json::Value;
use tempfile::TempDir;

use super::binds::{BoundPath, with_binds};
use super::client::ContainerClient;
use super::commands::LEFT_OUT;
use super::{GUARANTEES, LONG_PATIENCE, OWNER, PATIENCE, aliases, is_root, own_mounts, owner_label};
use crate::confined::{
    ConfinedMachine, ConfinedThread, SandboxView, WrappedCommand, landlock_version, prune_directories,
};
use crate::confinement::{Confinement, NetworkAccess, PathAccess};
use crate::container::{AGENT_MOUNT, BindRules, ContainerOptions, check_network, check_profile};
use crate::contract::{Sandbox, SandboxProbe, SandboxUnavailable};
use crate::landlock::file_thread;
use crate::scope::WorkspaceAccess;

mod limits;
mod spec;

use spec::{ContainerCommand, ContainerPlan, PlanParts};

const NAME: &str = "runc";
/// What all container ids begin with.
const ID_PREFIX: &str = "pinch-";
/// Runs a command, and reaps the processes that it leaves.
const INIT: [&str; 4] = ["/bin/sh", "-c", "\"$@\"; exit \"$?\"", "sh"];
/// Ends what is left of a container.
const END: &str = r#"if "$1" --root "$2" kill --all "$3" TERM; then sleep 0.2; fi
"$1" --root "$2" delete --force "$3"
rm -rf -- "$4""#;
/// Directories of this machine that are enough to run `true`.
const PROBED: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "nix"];

/// The runc backend. Tools run outside, confined by Landlock to what the containers see of the host.
#[derive(Clone, Debug)]
pub struct RuncSandbox {
    client: Option<ContainerClient>,
    options: ContainerOptions,
}

/// Containers with the same contents.
struct Containers {
    client: ContainerClient,
    state: PathBuf,
    /// The root directory of the containers, and a bundle for each running one.
    dir: TempDir,
    plan: ContainerPlan,
    /// Whether there is `/bin/bash`.
    has_bash: bool,
}

impl RuncSandbox {
    /// Looks up runc in a `PATH`.
    pub fn find(path: &str, options: ContainerOptions) -> Self {
        Self { client: ContainerClient::find(NAME, path, &options.env), options }
    }

    /// Returns runc if it is usable, with its version.
    async fn check(&self) -> Result<(&ContainerClient, String), SandboxUnavailable> {
        let Some(client) = &self.client else {
            return Err(refused("runc is not installed", "install runc, or use another backend"));
        };
        if landlock_version() == 0 {
            let remedy = "use kernel 5.13 or later with `landlock` in its `lsm=` list";
            return Err(refused("its tools require Landlock, which this kernel does not support", remedy));
        }
        let version = client.run(["--version"], PATIENCE).await.map_err(unavailable)?;
        Ok((client, version.lines().next().unwrap_or(NAME).trim().to_owned()))
    }

    /// Runs `true` in a container made of programs of this machine.
    async fn probed(&self) -> Result<SandboxProbe, SandboxUnavailable> {
        let (client, version) = self.check().await?;
        let image = tempfile::tempdir().map_err(unavailable)?;
        let mut bound = Vec::new();
        for name in PROBED {
            let (outside, inside) = (Path::new("/").join(name), image.path().join(name));
            match std::fs::read_link(&outside) {
                Ok(target) => std::os::unix::fs::symlink(target, inside).map_err(unavailable)?,
                Err(_) if outside.is_dir() => {
                    std::fs::create_dir(inside).map_err(unavailable)?;
                    bound.push(BoundPath { source: outside.clone(), target: outside, access: PathAccess::Read });
                }
                Err(_) => {}
            }
        }
        let user = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let containers = self.containers(client, image.path(), bound, &NetworkAccess::Off, user)?;
        containers.run(&["/bin/sh", "-c", "true"]).await.map_err(unavailable)?;
        Ok(SandboxProbe::new(version, GUARANTEES))
    }

    async fn machine(&self, asked: &Confinement) -> Result<Arc<dyn Machine>, SandboxUnavailable> {
        let (client, _) = self.check().await?;
        if let Some(what) = GUARANTEES.lacks(asked) {
            return Err(refused(format!("it cannot {what}"), "use bubblewrap, or drop this requirement"));
        }
        let image = self.image(asked)?;
        let view = SandboxView::of_container(&with_binds(asked, &self.options.config.binds)).map_err(|error| {
            let reason = format!("cannot use {}: {error}", asked.workspace.display());
            refused(reason, "check the sandbox's directories")
        })?;
        let files = file_thread(&view).map_err(unavailable)?;
        let launcher = ConfinedThread::start("sandbox-launcher", || Ok(())).map_err(unavailable)?;
        let bound = self.bound(asked, &view)?;
        let mut containers = self.containers(client, &image, bound, &asked.network, self.user(asked)?)?;
        containers.remove_left_over().await;
        let found = containers.run(&["/bin/sh", "-c", "test ! -x /bin/bash || echo bash"]).await;
        let found = found.map_err(|error| {
            let remedy = "check that the root file system has /bin/sh, and that `runc run` works for this user";
            refused(error, remedy)
        })?;
        containers.has_bash = found.trim() == "bash";
        let wrapper = Arc::new(move |command| containers.wrapped(command));
        let machine = ConfinedMachine::new(view, files, launcher).wrapped(wrapper);
        Ok(Arc::new(machine.with_aliases(aliases(&self.options, asked))))
    }

    /// Returns the root file system.
    fn image(&self, asked: &Confinement) -> Result<PathBuf, SandboxUnavailable> {
        let remedy = "set `sandbox.rootfs` (of agents: `docker.rootfs`) to a directory with the root file system of a Linux system, for \
                      example one made with mmdebstrap or podman export";
        let Some(image) = self.options.config.rootfs.as_deref().map(str::trim).filter(|dir| !dir.is_empty()) else {
            return Err(refused("no root file system is configured", remedy));
        };
        let dir = Path::new(image);
        if !dir.is_absolute() || !dir.is_dir() {
            return Err(refused(
                format!("the root file system {image} is not a directory with an absolute path"),
                remedy,
            ));
        }
        let real = real_path(dir);
        let shown = [Some(asked.workspace.as_path()), self.options.home.as_deref()];
        match shown.into_iter().flatten().find(|shown| real_path(shown).starts_with(&real)) {
            Some(shown) => Err(refused(format!("the root file system {image} contains {}", shown.display()), remedy)),
            None => Ok(real),
        }
    }

    /// Returns the user that commands run as: the configured one, else the owner of the workspace.
    fn user(&self, asked: &Confinement) -> Result<(u32, u32), SandboxUnavailable> {
        let meta = real_path(&asked.workspace).metadata();
        let owner = meta.map_err(|error| refused(error, "check the sandbox's directories"))?;
        let mut user = (owner.uid(), owner.gid());
        if let Some(configured) = &self.options.config.user {
            let (uid, gid) = configured.split_once(':').unwrap_or((configured, configured));
            let ids = uid.trim().parse().ok().zip(gid.trim().parse().ok());
            user = ids.ok_or_else(|| refused("docker.user has no numbers", "write it as `1000:1000`"))?;
        }
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        if is_root() {
            Ok(user)
        } else if user.0 != own.0 {
            Err(refused(
                format!("commands would run as user {}", user.0),
                "use a workspace that you own, or run as root",
            ))
        } else {
            Ok(own)
        }
    }

    /// Returns what the containers see of the host. Directories are mounted under their own names too, so that a path means the same file
    /// to tools, commands and the model.
    fn bound(&self, asked: &Confinement, view: &SandboxView) -> Result<Vec<BoundPath>, SandboxUnavailable> {
        let config = &self.options.config;
        let workspace = real_path(&asked.workspace);
        let mut bound =
            vec![BoundPath { source: workspace.clone(), target: PathBuf::from(&config.workdir), access: asked.access }];
        let mut roots = vec![workspace];
        if let Some((dir, access)) = &self.options.agent_workspace {
            let access = match access {
                WorkspaceAccess::None => None,
                WorkspaceAccess::ReadOnly => Some(PathAccess::Read),
                WorkspaceAccess::ReadWrite => Some(PathAccess::Write),
            };
            let mounted = |access| BoundPath { source: real_path(dir), target: PathBuf::from(AGENT_MOUNT), access };
            bound.extend(access.map(mounted));
            roots.push(real_path(dir));
        }
        let own = own_mounts(asked, view).into_iter().filter(|(path, _)| *path != Path::new(&config.workdir));
        bound.extend(own.map(|(path, access)| BoundPath { source: path.clone(), target: path, access }));
        let rules = BindRules {
            roots,
            home: self.options.home.clone(),
            allow_external: config.allow_external_binds,
            reserved: bound.iter().map(|own| own.target.clone()).collect(),
            allow_reserved_targets: config.allow_reserved_targets,
        };
        for bind in &config.binds {
            rules.check(bind).map_err(refused_settings)?;
            let bind = BoundPath::parse(bind);
            bound.retain(|known| known.target != bind.target);
            bound.push(bind);
        }
        Ok(bound)
    }

    fn containers(
        &self,
        client: &ContainerClient,
        image: &Path,
        bound: Vec<BoundPath>,
        network: &NetworkAccess,
        user: (u32, u32),
    ) -> Result<Containers, SandboxUnavailable> {
        let config = &self.options.config;
        if let Some((key, _)) = self.unsupported().into_iter().find(|(_, is_set)| *is_set) {
            return Err(refused(
                format!("it does not support docker.{key}"),
                "remove the key, or use docker or podman",
            ));
        }
        check_network(&config.network, false).map_err(refused_settings)?;
        if let Some(profile) = &config.apparmor_profile {
            check_profile("apparmor", profile).map_err(refused_settings)?;
        }
        let dir = tempfile::Builder::new().prefix("pinch-runc-").tempdir().map_err(unavailable)?;
        let (root, state) = (dir.path().join("root"), self.state_dir().map_err(unavailable)?);
        std::fs::create_dir(&root).map_err(unavailable)?;
        // Commands may run as another user, who must be able to enter `/`.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&root, open).map_err(unavailable)?;
        let is_rootless = !is_root();
        let parts = PlanParts { config, root: &root, image, bound, network, user, is_rootless, label: owner_label() };
        let plan = ContainerPlan::new(parts).map_err(|reason| refused(reason, "change the sandbox's settings"))?;
        Ok(Containers { client: client.clone(), state, dir, plan, has_bash: false })
    }

    /// Returns the settings that only an engine with images and networks of its own has, and whether they are set.
    fn unsupported(&self) -> [(&'static str, bool); 6] {
        let config = &self.options.config;
        [
            ("readOnlyRoot: false", !config.read_only_root),
            ("setupCommand", config.setup_command.is_some()),
            ("seccompProfile", config.seccomp_profile.is_some()),
            ("dns", !config.dns.is_empty()),
            ("extraHosts", !config.extra_hosts.is_empty()),
            ("network with a name", !["none", "bridge", "host"].contains(&config.network.trim())),
        ]
    }

    /// Returns runc's directory for the states of containers, which belongs to this user only.
    fn state_dir(&self) -> std::io::Result<PathBuf> {
        let uid = rustix::process::geteuid().as_raw();
        let runtime = self.options.env.iter().find(|(name, value)| name == "XDG_RUNTIME_DIR" && value.starts_with('/'));
        let dir = match runtime {
            _ if uid == 0 => PathBuf::from("/run/pinch-runc"),
            Some((_, dir)) => Path::new(dir).join("pinch-runc"),
            None => std::env::temp_dir().join(format!("pinch-runc-{uid}")),
        };
        create_private_dir(&dir)?;
        let meta = dir.symlink_metadata()?;
        match meta.is_dir() && meta.uid() == uid && meta.mode() & 0o022 == 0 {
            true => Ok(dir),
            false => Err(std::io::Error::other(format!("{} belongs to another user", dir.display()))),
        }
    }
}

fn refused(reason: impl ToString, remedy: &str) -> SandboxUnavailable {
    SandboxUnavailable::new(NAME, reason.to_string(), remedy)
}

fn refused_settings(reason: impl ToString) -> SandboxUnavailable {
    refused(reason, "change the sandbox's `docker` settings")
}

fn unavailable(reason: impl ToString) -> SandboxUnavailable {
    refused(reason, "check that `runc run` works for this user, or use another backend")
}

impl Containers {
    /// Writes the bundle of a container, and returns its directory and the id of the container.
    fn bundle(&self, config: &Value) -> std::io::Result<(PathBuf, String)> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let id = format!("{ID_PREFIX}{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let bundle = self.dir.path().join(&id);
        // It has the values of variables.
        create_private_dir(&bundle)?;
        std::fs::File::create_new(bundle.join("config.json"))
            .and_then(|file| serde_json::to_writer(file, config).map_err(std::io::Error::other))?;
        Ok((bundle, id))
    }

    fn state(&self) -> String {
        self.state.to_string_lossy().into_owned()
    }

    fn arguments(&self, bundle: &Path, id: &str) -> Vec<String> {
        let bundle = bundle.to_string_lossy().into_owned();
        ["--root".into(), self.state(), "run".into(), "--bundle".into(), bundle, id.to_owned()].to_vec()
    }

    /// Runs a command without variables, and returns its output.
    async fn run(&self, args: &[&str]) -> Result<String, String> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let config = self.plan.config(&ContainerCommand { args: &args, env: &[], cwd: Path::new("/") });
        let (bundle, id) = self.bundle(&config).map_err(|error| error.to_string())?;
        let output = self.client.run_all(self.arguments(&bundle, &id), LONG_PATIENCE).await;
        if output.is_err() {
            let state = self.state();
            // Whatever is left is reported by the error.
            drop(self.client.run(["--root", &state, "delete", "--force", &id], PATIENCE).await);
        }
        output
    }

    /// Wraps a command in a container.
    fn wrapped(&self, command: CommandSpec) -> std::io::Result<WrappedCommand> {
        let mut args = INIT.map(str::to_owned).to_vec();
        let is_bash = command.program.file_name() == Path::new("bash").file_name();
        match is_bash && !self.has_bash {
            true => args.push("/bin/sh".to_owned()),
            false => args.push(command.program.to_string_lossy().into_owned()),
        }
        args.extend(command.args);
        let env: Vec<(String, String)> =
            command.env.into_iter().filter(|(name, _)| !LEFT_OUT.contains(&name.as_str())).collect();
        let config = self.plan.config(&ContainerCommand { args: &args, env: &env, cwd: &command.cwd });
        let (bundle, id) = self.bundle(&config)?;
        let mut inside = self.client.command(self.arguments(&bundle, &id), Vec::new());
        inside.has_input = command.has_input;
        let runc = self.client.program.to_string_lossy().into_owned();
        let mut end = self.client.command(Vec::new(), Vec::new());
        end.program = PathBuf::from("/bin/sh");
        let words = ["-c".to_owned(), END.to_owned(), "sh".to_owned(), runc, self.state(), id];
        end.args = words.into_iter().chain([bundle.to_string_lossy().into_owned()]).collect();
        Ok(WrappedCommand { command: inside, at_end: Some(end), egress: None })
    }

    /// Removes containers whose programs on this machine ended without removing them.
    async fn remove_left_over(&self) {
        let (state, owner) = (self.state(), owner_label());
        let listed = self.client.run(["--root", &state, "list", "--format", "json"], PATIENCE).await;
        let listed: Value = serde_json::from_str(&listed.unwrap_or_default()).unwrap_or_default();
        for container in listed.as_array().into_iter().flatten().filter(|one| one["annotations"][OWNER] == *owner) {
            let id = container["id"].as_str().unwrap_or_default();
            let pid = id.strip_prefix(ID_PREFIX).and_then(|rest| rest.split('-').next()).unwrap_or_default();
            if pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists() {
                // If it fails, the next sandbox tries again.
                drop(self.client.run(["--root", &state, "delete", "--force", id], PATIENCE).await);
            }
        }
    }
}

impl Sandbox for RuncSandbox {
    fn name(&self) -> &'static str {
        NAME
    }

    fn has_own_programs(&self) -> bool {
        true
    }

    fn probe(&self) -> BoxFuture<'_, Result<SandboxProbe, SandboxUnavailable>> {
        self.probed().boxed()
    }

    fn enter<'a>(
        &'a self,
        confinement: &'a Confinement,
    ) -> BoxFuture<'a, Result<Arc<dyn Machine>, SandboxUnavailable>> {
        self.machine(confinement).boxed()
    }

    fn prune(&self) -> BoxFuture<'_, ()> {
        prune_directories().boxed()
    }
}

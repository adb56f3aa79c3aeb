//! The backend `bubblewrap`: `bwrap` gives commands separate file system, process and network namespaces.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use pinch_machine::{CommandSpec, LocalMachine, Machine, ProcessEnd};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::text::shortened;

use crate::confined::{
    ConfinedMachine, ConfinedThread, KERNEL_FILES, Rlimits, SandboxView, SyscallRules, WrappedCommand, Wrapper,
    filter_program, landlock_version, prune_directories, try_out,
};
use crate::confinement::{Confinement, NetworkAccess, SandboxGuarantees};
use crate::contract::{Sandbox, SandboxProbe, SandboxUnavailable};
use crate::egress::EgressGate;
use crate::landlock::file_thread;

const NAME: &str = "bubblewrap";
/// How long a probe may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where commands see their temporary files.
const TEMPORARY: &str = "/tmp";
/// Maximum characters of its output shown in errors.
const SHOWN: usize = 400;
/// Variables that would affect `bwrap` itself, which is not confined yet; `bwrap` sets them for the command instead.
const LOADED: [&str; 9] =
    ["BASHOPTS", "BASH_ENV", "ENV", "GCONV_PATH", "GLIBC_TUNABLES", "IFS", "PS4", "SHELLOPTS", "LOCPATH"];
const LOADED_PREFIXES: [&str; 2] = ["LD_", "BASH_FUNC_"];

const GUARANTEES: SandboxGuarantees =
    SandboxGuarantees { files: true, attributes: true, network: true, domains: true, processes: true, signals: true };

/// The Bubblewrap backend. It needs user namespaces, which some systems forbid, and Landlock for the tools, which run outside its
/// namespaces. When a command ends, so does everything it left running.
#[derive(Clone, Debug)]
pub struct BubblewrapSandbox {
    program: Option<PathBuf>,
}

impl BubblewrapSandbox {
    /// Looks up `bwrap` in a `PATH`.
    pub fn find(path: &str) -> Self {
        let candidates = path.split(':').filter(|dir| dir.starts_with('/')).map(|dir| Path::new(dir).join("bwrap"));
        Self { program: candidates.into_iter().find(|program| program.is_file()) }
    }

    fn program(&self) -> Result<&Path, SandboxUnavailable> {
        let missing = || {
            SandboxUnavailable::new(NAME, "bwrap is not installed", "install the package bubblewrap, or use landlock")
        };
        self.program.as_deref().ok_or_else(missing)
    }

    /// Checks that it works, and returns its version, reported by the unsandboxed program.
    async fn check(&self) -> Result<SandboxProbe, SandboxUnavailable> {
        let program = self.try_out().await?;
        let version = run(program, vec!["--version".to_owned()]).await?;
        Ok(SandboxProbe::new(version.trim(), GUARANTEES))
    }

    /// Runs a no-op in a sandbox. Returns the path of the program if that works.
    async fn try_out(&self) -> Result<&Path, SandboxUnavailable> {
        let program = self.program()?;
        if landlock_version() == 0 {
            let remedy = "use kernel 5.13 or later with `landlock` in its `lsm=` list";
            return Err(SandboxUnavailable::new(
                NAME,
                "its tools require Landlock, which this kernel does not support",
                remedy,
            ));
        }
        let rules = Confinement::new("/usr").read_only();
        let view = SandboxView::new(&rules).map_err(|error| io_failed(&rules, &error))?;
        let mut args = arguments(&view, &NetworkAccess::Off);
        args.extend(["--".to_owned(), "/bin/true".to_owned()]);
        run(program, args).await?;
        Ok(program)
    }

    async fn machine(&self, asked: &Confinement) -> Result<Arc<dyn Machine>, SandboxUnavailable> {
        let program = self.try_out().await?.to_owned();
        let view = SandboxView::new(asked).map_err(|error| io_failed(asked, &error))?;
        let broken =
            |error: &dyn std::fmt::Display| SandboxUnavailable::new(NAME, error.to_string(), "use another backend");
        let mut sockets = vec![libc::AF_NETLINK, libc::AF_INET, libc::AF_INET6];
        if asked.network != NetworkAccess::On {
            // In a separate network namespace, abstract sockets are isolated too.
            sockets.push(libc::AF_UNIX);
        }
        let filter = filter_program(&SyscallRules { sockets, blocks_truncate: false, shares_namespaces: false })
            .map_err(|error| broken(&error))?;
        let filter_file = file_with(&filter).map_err(|error| broken(&error))?;
        let files = file_thread(&view).map_err(|error| broken(&error))?;
        // The sandbox dies with the thread that starts it, so this thread has to live as long as the machine.
        let launcher = ConfinedThread::start("sandbox-launcher", || Ok(())).map_err(|error| broken(&error))?;
        let args = arguments(&view, &asked.network);
        let list = match &asked.network {
            NetworkAccess::Domains(list) => Some(Arc::new(list.clone())),
            NetworkAccess::Off | NetworkAccess::On => None,
        };
        let limits = Rlimits::of(&asked.limits)
            .map_err(|error| SandboxUnavailable::new(NAME, error.to_string(), error.remedy()))?;
        let (is_listed, is_limited) = (list.is_some(), limits.is_some());
        let wrapper: Wrapper = Arc::new(move |command| {
            let egress = list.clone().map(EgressGate::new).transpose()?;
            let command = match &limits {
                Some(limits) => limits.limited(command),
                None => command,
            };
            let command = wrapped(&program, &args, filter_file.path(), egress.as_ref(), command);
            // Everything inside ends with it.
            Ok(WrappedCommand { command, at_end: None, egress })
        });
        let machine = ConfinedMachine::new(view, files, launcher).wrapped(wrapper).mounted(TEMPORARY);
        if is_listed || is_limited {
            try_out(&machine, &asked.workspace).await.map_err(|reason| match is_limited {
                true => SandboxUnavailable::new(NAME, format!("a limit cannot be set: {reason}"), "change the limits"),
                false => {
                    let reason = format!("network access cannot be limited to a list of servers: {reason}");
                    SandboxUnavailable::new(NAME, reason, "disable network access, or allow all of it")
                }
            })?;
        }
        Ok(Arc::new(machine))
    }
}

impl Sandbox for BubblewrapSandbox {
    fn name(&self) -> &'static str {
        NAME
    }

    fn has_own_programs(&self) -> bool {
        false
    }

    fn probe(&self) -> BoxFuture<'_, Result<SandboxProbe, SandboxUnavailable>> {
        self.check().boxed()
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

fn io_failed(asked: &Confinement, error: &std::io::Error) -> SandboxUnavailable {
    let reason = format!("cannot use {}: {error}", asked.workspace.display());
    SandboxUnavailable::new(NAME, reason, "check the sandbox's directories")
}

/// Creates a file outside the sandbox that only the user can read.
fn file_with(content: &[u8]) -> std::io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(content)?;
    file.flush()?;
    Ok(file)
}

/// Runs `bwrap` itself and returns its output.
async fn run(program: &Path, args: Vec<String>) -> Result<String, SandboxUnavailable> {
    let remedy = "if the system forbids user namespaces (as Ubuntu does for programs without an AppArmor profile), \
                  allow them for bwrap, or use landlock";
    let failed = |reason: String| SandboxUnavailable::new(NAME, reason, remedy);
    let command = CommandSpec::new(program.to_owned(), args, PathBuf::from("/"), Vec::new());
    let mut process = LocalMachine.spawn(command).await.map_err(|error| failed(error.to_string()))?;
    let mut output = Vec::new();
    let mut keep = |data: &[u8]| output.extend(data.iter().take(SHOWN * 4 - output.len().min(SHOWN * 4)));
    let end = process.pump(&Cancel::new(), Some(PATIENCE), Duration::ZERO, &mut keep).await;
    let output = String::from_utf8_lossy(&output).into_owned();
    match end {
        Ok(ProcessEnd::Exited(exit)) if exit.is_success() => Ok(output),
        Ok(ProcessEnd::Exited(_)) => Err(failed(shortened(output.trim(), SHOWN).into_owned())),
        Ok(_) => Err(failed("bwrap timed out".to_owned())),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Returns the arguments that set up a command's file system and namespaces.
fn arguments(view: &SandboxView, network: &NetworkAccess) -> Vec<String> {
    let mut args: Vec<String> = [
        "--unshare-user",
        "--disable-userns",
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
    ]
    .map(str::to_owned)
    .to_vec();
    if *network != NetworkAccess::On {
        args.push("--unshare-net".to_owned());
    }
    // Nested paths must come after their parents.
    let readable = view.readable.iter().map(|path| (path, "--ro-bind"));
    let writable = view.writable.iter().map(|path| (path, "--bind"));
    let mut all: Vec<(&PathBuf, &str)> = readable.chain(writable).collect();
    all.sort_by_key(|(path, _)| path.components().count());
    let mut push = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
    let n_everything = all.iter().take_while(|(path, _)| *path == Path::new("/")).count();
    for (_, flag) in &all[..n_everything] {
        push(&[flag, "/", "/"]);
    }
    push(&["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/var/tmp", "--tmpfs", "/run"]);
    // They are files of root, who may be the user inside, and bubblewrap only protects them against others.
    for path in KERNEL_FILES.into_iter().filter(|path| Path::new(path).exists()) {
        push(&["--ro-bind", path, path]);
    }
    push(&["--bind", &view.private().to_string_lossy(), TEMPORARY]);
    for (path, flag) in &all[n_everything..] {
        let shown = path.to_string_lossy();
        // On most systems /bin is a link to usr/bin.
        match std::fs::read_link(path) {
            Ok(_) if n_everything > 0 => {}
            Ok(target) => push(&["--symlink", &target.to_string_lossy(), &shown]),
            Err(_) => push(&[flag, &shown, &shown]),
        }
    }
    args
}

/// Wraps a command to run inside. A shell opens the files that are passed as file descriptors: the system call filter, and the pipes that
/// hold back a command with limited network access.
fn wrapped(
    program: &Path,
    args: &[String],
    filter: &Path,
    egress: Option<&EgressGate>,
    mut command: CommandSpec,
) -> CommandSpec {
    let is_loaded =
        |name: &str| LOADED.contains(&name) || LOADED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    if egress.is_some() {
        EgressGate::set_variables(&mut command.env);
    }
    let (loaded, env): (Vec<_>, Vec<_>) = command.env.into_iter().partition(|(name, _)| is_loaded(name));
    let mut all = vec!["-c".to_owned()];
    match egress {
        None => all.extend(["exec 3<\"$1\" && shift && exec \"$@\"".to_owned(), "sh".to_owned()]),
        Some(gate) => {
            all.push("exec 4>\"$1\" 5<\"$2\" 3<\"$3\" && shift 3 && exec \"$@\"".to_owned());
            all.push("sh".to_owned());
            all.extend([gate.report(), gate.release()].map(|path| path.to_string_lossy().into_owned()));
        }
    }
    all.extend([filter, program].map(|path| path.to_string_lossy().into_owned()));
    all.extend(["--seccomp", "3"].map(str::to_owned));
    if egress.is_some() {
        all.extend(["--info-fd", "4", "--block-fd", "5"].map(str::to_owned));
    }
    all.extend(args.iter().cloned());
    for (name, value) in loaded {
        all.extend(["--setenv".to_owned(), name, value]);
    }
    all.extend(["--chdir".to_owned(), command.cwd.to_string_lossy().into_owned(), "--".to_owned()]);
    all.push(command.program.to_string_lossy().into_owned());
    all.extend(command.args);
    let mut inside = CommandSpec::new(PathBuf::from("/bin/sh"), all, PathBuf::from("/"), env);
    inside.has_input = command.has_input;
    inside
}

//! Tools and commands on confined threads.

use std::future::ready;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{BoxStream, StreamExt as _, poll_fn};
use pinch_machine::search::{FindQuery, FoundPath, GrepLine, GrepQuery, SearchError, SearchItem};
use pinch_machine::{CommandSpec, LocalMachine, Machine, MachineError, Process, ProcessEnd, ProcessInput, Stat};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::process::LastWill;
use pinch_stdx::text::shortened;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::thread::ConfinedThread;
use super::view::SandboxView;
use crate::egress::{EgressGate, EgressProxy};

/// Maximum stream items buffered for the reader.
const WAITING: usize = 16;
/// Variables with directories in the home directory outside.
const HOME_VARIABLES: [&str; 6] =
    ["HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"];
/// Variables with directories for temporary files.
const TEMPORARY_VARIABLES: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

/// Wraps a command in one that confines it.
pub(crate) type Wrapper = Arc<dyn Fn(CommandSpec) -> io::Result<WrappedCommand> + Send + Sync>;

/// A command that confines another one.
pub(crate) struct WrappedCommand {
    /// The wrapping command.
    pub(crate) command: CommandSpec,
    /// Kills everything the inner command left running, if the end of the wrapper does not.
    pub(crate) at_end: Option<CommandSpec>,
    /// Its way to the network, if that is limited.
    pub(crate) egress: Option<EgressGate>,
}

/// How long `at_end`, or trying out a command, may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum characters of a command's output shown in errors.
const SHOWN: usize = 400;

/// A machine whose tools and commands are confined.
pub(crate) struct ConfinedMachine {
    view: Arc<SandboxView>,
    files: ConfinedThread,
    launcher: Arc<ConfinedThread>,
    wrapper: Option<Wrapper>,
    /// Where commands see the private directory, if elsewhere.
    mount: Option<&'static str>,
    /// Aliases of visible paths inside the sandbox, with their real locations.
    aliases: Vec<(PathBuf, PathBuf)>,
}

impl ConfinedMachine {
    /// Creates a machine with two threads: one for tools, and one that starts commands.
    pub(crate) fn new(view: SandboxView, files: ConfinedThread, launcher: ConfinedThread) -> Self {
        Self {
            view: Arc::new(view),
            files,
            launcher: Arc::new(launcher),
            wrapper: None,
            mount: None,
            aliases: Vec::new(),
        }
    }

    /// Starts commands through another program.
    pub(crate) fn wrapped(mut self, wrapper: Wrapper) -> Self {
        self.wrapper = Some(wrapper);
        self
    }

    /// Sets where commands see the private directory.
    pub(crate) fn mounted(mut self, mount: &'static str) -> Self {
        self.mount = Some(mount);
        self
    }

    /// Adds aliases of visible paths inside the sandbox, with their real locations.
    pub(crate) fn with_aliases(mut self, aliases: Vec<(PathBuf, PathBuf)>) -> Self {
        self.aliases = aliases;
        self
    }

    /// Translates a path inside the sandbox to one outside.
    fn outside(&self, path: &Path) -> PathBuf {
        if self.view.contains(path) {
            return path.to_owned();
        }
        let private = self.mount.map(|mount| (Path::new(mount), self.view.private()));
        let aliases = self.aliases.iter().map(|(inside, outside)| (inside.as_path(), outside.as_path()));
        let found = private.into_iter().chain(aliases).find_map(|(inside, outside)| {
            let below = path.strip_prefix(inside).ok()?;
            // `join` would append a separator to a file name.
            Some(if below.as_os_str().is_empty() { outside.to_owned() } else { outside.join(below) })
        });
        found.unwrap_or_else(|| path.to_owned())
    }

    /// Translates a path outside the sandbox to one inside.
    fn inside(&self, path: PathBuf) -> PathBuf {
        let below =
            self.mount.and_then(|mount| Some(Path::new(mount).join(path.strip_prefix(self.view.private()).ok()?)));
        below.unwrap_or(path)
    }

    /// Runs work with a path on the thread for tools.
    async fn with_path<T: Send + 'static>(
        &self,
        operation: &'static str,
        path: &Path,
        work: impl FnOnce(PathBuf) -> BoxFuture<'static, Result<T, MachineError>> + Send,
    ) -> Result<T, MachineError> {
        let failed = |error| MachineError::new(error, operation, Some(path));
        let done = self.files.run(work(self.outside(path))).await.map_err(failed)?;
        done.map_err(|mut error| {
            error.path = error.path.map(|found| self.inside(found));
            error
        })
    }

    /// Like [`Self::with_path`], for operations that change files: explains what happens to a path that may only be read.
    async fn with_writable_path<T: Send + 'static>(
        &self,
        action: &'static str,
        operation: &'static str,
        path: &Path,
        work: impl FnOnce(PathBuf) -> BoxFuture<'static, Result<T, MachineError>> + Send,
    ) -> Result<T, MachineError> {
        self.with_path(operation, path, work).await.map_err(|error| {
            let is_explained =
                error.source.as_ref().is_some_and(is_refusal) && self.view.is_read_only(&self.outside(path));
            if !is_explained {
                return error;
            }
            let text = format!("Sandbox path is read-only; cannot {action}: {}", path.display());
            MachineError::explained(error.code, text)
        })
    }

    /// Like [`Self::with_path`], for operations that the kernel does not check: rejects paths that lead out of the sandbox.
    async fn with_visible_path<T: Send + 'static>(
        &self,
        operation: &'static str,
        path: &Path,
        work: impl FnOnce(PathBuf) -> BoxFuture<'static, Result<T, MachineError>> + Send,
    ) -> Result<T, MachineError> {
        let outside = self.outside(path);
        let real = self.files.run(async move { LocalMachine.real_path(&outside).await }).await;
        let is_seen = match real {
            Ok(Ok(real)) => self.view.contains(&real),
            _ => self.view.contains(&self.outside(path)),
        };
        match is_seen {
            true => self.with_path(operation, path, work).await,
            false => Err(MachineError::new(io::ErrorKind::PermissionDenied.into(), operation, Some(path))),
        }
    }

    /// Runs a stream on the thread for tools.
    fn stream<T: Send + 'static>(
        &self,
        open: impl FnOnce() -> BoxStream<'static, T> + Send + 'static,
    ) -> BoxStream<'static, T> {
        let (tx, mut rx) = mpsc::channel(WAITING);
        self.files.start_task(async move { forward(open(), tx).await });
        Box::pin(poll_fn(move |cx| rx.poll_recv(cx)))
    }

    /// Runs a search as a stream, without reporting that ignore files of a repository around the workspace cannot be read.
    fn searched<T: Send + 'static>(
        &self,
        open: impl FnOnce() -> BoxStream<'static, Result<SearchItem<T>, SearchError>> + Send + 'static,
    ) -> BoxStream<'static, Result<SearchItem<T>, SearchError>> {
        let view = Arc::clone(&self.view);
        let is_beyond = move |item: &Result<SearchItem<T>, SearchError>| match item {
            Ok(SearchItem::Unreadable(error)) => error.path.as_deref().is_some_and(|path| !view.contains(path)),
            _ => false,
        };
        Box::pin(self.stream(open).filter(move |item| ready(!is_beyond(item))))
    }

    /// Returns the environment of a command, with its home and temporary files in the private directory.
    fn environment(&self, env: Vec<(String, String)>) -> Vec<(String, String)> {
        let private = self.inside(self.view.private().to_owned());
        let replaced = |name: &str| HOME_VARIABLES.contains(&name) || TEMPORARY_VARIABLES.contains(&name);
        let mut all: Vec<(String, String)> = env.into_iter().filter(|(name, _)| !replaced(name)).collect();
        all.push(("HOME".to_owned(), private.join("home").to_string_lossy().into_owned()));
        if let Some(above) = self.view.above_workspace() {
            // Git would fail at an unreadable repository around the workspace.
            all.push(("GIT_CEILING_DIRECTORIES".to_owned(), above.to_string_lossy().into_owned()));
        }
        all.push(("TMPDIR".to_owned(), private.to_string_lossy().into_owned()));
        all
    }
}

/// Returns whether the system refuses access, as opposed to a file that does not exist.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

impl Machine for ConfinedMachine {
    fn stat<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Stat, MachineError>> {
        let work = |path: PathBuf| async move { LocalMachine.stat(&path).await }.boxed();
        self.with_visible_path("access", path, work).boxed()
    }

    fn read<'a>(&'a self, path: &'a Path, max: u64) -> BoxFuture<'a, Result<Bytes, MachineError>> {
        let work = move |path: PathBuf| async move { LocalMachine.read(&path, max).await }.boxed();
        self.with_path("open", path, work).boxed()
    }

    fn read_pieces<'a>(&'a self, path: &'a Path) -> BoxStream<'a, Result<Bytes, MachineError>> {
        let path = self.outside(path);
        let (tx, mut rx) = mpsc::channel(1);
        self.files.start_task(async move { forward(LocalMachine.read_pieces(&path), tx).await });
        Box::pin(poll_fn(move |cx| rx.poll_recv(cx)))
    }

    fn write<'a>(&'a self, path: &'a Path, content: Bytes) -> BoxFuture<'a, Result<(), MachineError>> {
        let work = move |path: PathBuf| async move { LocalMachine.write(&path, content).await }.boxed();
        self.with_writable_path("write", "open", path, work).boxed()
    }

    fn remove<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<(), MachineError>> {
        let work = |path: PathBuf| async move { LocalMachine.remove(&path).await }.boxed();
        self.with_writable_path("remove", "unlink", path, work).boxed()
    }

    fn list<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Vec<String>, MachineError>> {
        let work = |path: PathBuf| async move { LocalMachine.list(&path).await }.boxed();
        self.with_path("scandir", path, work).boxed()
    }

    fn find(&self, mut query: FindQuery) -> BoxStream<'_, Result<SearchItem<FoundPath>, SearchError>> {
        query.root = self.outside(&query.root);
        self.searched(|| local().find(query))
    }

    fn grep(&self, mut query: GrepQuery) -> BoxStream<'_, Result<SearchItem<GrepLine>, SearchError>> {
        query.root = self.outside(&query.root);
        self.searched(|| local().grep(query))
    }

    fn real_path<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<PathBuf, MachineError>> {
        let work = |path: PathBuf| async move { LocalMachine.real_path(&path).await }.boxed();
        async move { Ok(self.inside(self.with_visible_path("realpath", path, work).await?)) }.boxed()
    }

    fn temp_dir(&self) -> Option<&Path> {
        Some(self.view.private())
    }

    fn spawn<'a>(&'a self, mut command: CommandSpec) -> BoxFuture<'a, Result<Box<dyn Process>, MachineError>> {
        async move {
            command.env = self.environment(command.env);
            let program = command.program.clone();
            let (mut at_end, mut egress) = (None, None);
            let failed = |error| MachineError::new(error, "spawn", Some(&program));
            if let Some(wrapper) = &self.wrapper {
                // The wrapping program would report a missing directory with a different message.
                self.list(&command.cwd).await.map_err(|mut error| {
                    error.operation = "chdir";
                    error
                })?;
                let wrapped = wrapper(command).map_err(failed)?;
                (command, egress) = (wrapped.command, wrapped.egress);
                at_end = wrapped.at_end.map(CommandCleanup::prepare).transpose().map_err(failed)?;
            }
            // The child process belongs to the caller's runtime, not to that of the starting thread.
            let caller = Handle::current();
            let started = self.launcher.run(async move {
                let _caller = caller.enter();
                local().spawn(command).now_or_never()
            });
            let waits = || Err(failed(io::Error::other("starting the command blocked unexpectedly")));
            let inner = started.await.map_err(failed)?.unwrap_or_else(waits)?;
            let proxy = match egress {
                Some(gate) => gate.open().await.map_err(failed)?,
                None => None,
            };
            let process = ConfinedProcess {
                inner,
                at_end,
                _proxy: proxy,
                _launcher: Arc::clone(&self.launcher),
                _wrapper: self.wrapper.clone(),
                _view: Arc::clone(&self.view),
            };
            Ok(Box::new(process) as Box<dyn Process>)
        }
        .boxed()
    }
}

/// Runs a no-op.
///
/// # Errors
/// Returns why it failed.
pub(crate) async fn try_out(machine: &ConfinedMachine, cwd: &Path) -> Result<(), String> {
    let command = CommandSpec::new(PathBuf::from("/bin/true"), Vec::new(), cwd.to_owned(), Vec::new());
    let mut process = machine.spawn(command).await.map_err(|error| error.to_string())?;
    let mut output = Vec::new();
    let end = process.pump(&Cancel::new(), Some(PATIENCE), Duration::ZERO, &mut |data| output.extend(data)).await;
    match end {
        Ok(ProcessEnd::Exited(exit)) if exit.is_success() => Ok(()),
        Ok(_) if output.is_empty() => Err("a command failed to start".to_owned()),
        Ok(_) => Err(shortened(String::from_utf8_lossy(&output).trim(), SHOWN).into_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Forwards the items of a stream until the receiver is dropped.
async fn forward<T>(mut items: BoxStream<'_, T>, tx: mpsc::Sender<T>) {
    loop {
        let item = tokio::select! {
            item = items.next() => item,
            () = tx.closed() => None,
        };
        let Some(item) = item else { return };
        if tx.send(item).await.is_err() {
            return;
        }
    }
}

/// Returns the unconfined machine, for the lifetime of the process.
fn local() -> &'static LocalMachine {
    &LocalMachine
}

/// A command that keeps its resources alive until it ends.
struct ConfinedProcess {
    inner: Box<dyn Process>,
    at_end: Option<CommandCleanup>,
    _proxy: Option<EgressProxy>,
    _launcher: Arc<ConfinedThread>,
    _wrapper: Option<Wrapper>,
    _view: Arc<SandboxView>,
}

/// A command that ends what another one has left running. It runs at the latest when this is dropped, or when this program is killed.
struct CommandCleanup {
    command: CommandSpec,
    will: LastWill,
}

impl CommandCleanup {
    fn prepare(command: CommandSpec) -> io::Result<Self> {
        let will = last_will(&command)?;
        Ok(Self { command, will })
    }

    async fn run(self) {
        // Failure means that there is nothing to kill.
        if let Ok(mut process) = local().spawn(self.command).await {
            drop(process.pump(&Cancel::new(), Some(PATIENCE), Duration::ZERO, &mut |_| {}).await);
        }
        self.will.revoke();
    }
}

/// Prepares a cleanup command that runs on drop, or when this program is killed. If it fails, the next sandbox removes what is left.
pub(crate) fn last_will(spec: &CommandSpec) -> io::Result<LastWill> {
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).envs(spec.env.iter().map(|(name, value)| (name, value))).current_dir(&spec.cwd);
    LastWill::new(&command)
}

impl Process for ConfinedProcess {
    fn id(&self) -> Option<u32> {
        self.inner.id()
    }

    fn take_input(&mut self) -> Option<ProcessInput> {
        self.inner.take_input()
    }

    fn pump<'a>(
        &'a mut self,
        cancel: &'a Cancel,
        timeout: Option<Duration>,
        grace: Duration,
        on_data: &'a mut (dyn FnMut(&[u8]) + Send),
    ) -> BoxFuture<'a, Result<ProcessEnd, MachineError>> {
        async move {
            let end = self.inner.pump(cancel, timeout, grace, on_data).await?;
            if !matches!(end, ProcessEnd::Exited(_))
                && let Some(cleanup) = self.at_end.take()
            {
                cleanup.run().await;
            }
            Ok(end)
        }
        .boxed()
    }
}

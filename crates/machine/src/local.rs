//! The local computer.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::fs::{Access, open_regular, read_regular, write_named};
use pinch_stdx::process::{self, ProcessEnd, SpawnError};
use pinch_stdx::pull::{Emitter, pulled};

use super::search::{FindQuery, FoundPath, GrepLine, GrepQuery, SearchError, SearchItem};
use super::{CommandSpec, FileKind, Machine, MachineError, Process, ProcessInput, Stat, TerminalSize};

mod names;

#[cfg(feature = "search")]
mod walk;

#[cfg(feature = "search")]
mod lookup;
#[cfg(not(feature = "search"))]
mod no_lookup;
#[cfg(not(feature = "search"))]
use no_lookup as lookup;

#[cfg(target_os = "linux")]
mod exact;

#[cfg(feature = "search")]
pub use lookup::paths_below;
use names::meant;

/// Chunk size for reading long files.
const PIECE: usize = 256 * 1024;

/// The local computer, with the permissions of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalMachine;

/// Runs file work off the async threads.
async fn blocking<T: Send + 'static>(
    operation: &'static str,
    path: &Path,
    work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> Result<T, MachineError> {
    let owned = path.to_owned();
    let done = tokio::task::spawn_blocking(move || work(&meant(&owned))).await;
    match done {
        Ok(result) => result.map_err(|error| MachineError::new(error, operation, Some(path))),
        Err(_) => Err(MachineError::new(io::Error::other("the work was cancelled"), operation, Some(path))),
    }
}

/// Opens a file to read it.
type FileOpener = fn(&Path) -> io::Result<File>;

/// Emits a file chunk by chunk.
fn pieces(path: &Path, open: FileOpener) -> BoxStream<'_, Result<Bytes, MachineError>> {
    Box::pin(pulled(move |emitter| async move {
        if let Err(error) = emit_pieces(path, open, &emitter).await {
            emitter.emit(Err(error)).await;
        }
    }))
}

async fn emit_pieces(
    path: &Path,
    open: FileOpener,
    emitter: &Emitter<Result<Bytes, MachineError>>,
) -> Result<(), MachineError> {
    let mut file = blocking("open", path, open).await?;
    loop {
        let (back, piece) = blocking("read", path, move |_| {
            let mut piece = vec![0; PIECE];
            let n = file.read(&mut piece)?;
            piece.truncate(n);
            Ok((file, piece))
        })
        .await?;
        file = back;
        if piece.is_empty() {
            return Ok(());
        }
        emitter.emit(Ok(Bytes::from(piece))).await;
    }
}

fn stat_of(path: &Path) -> io::Result<Stat> {
    let meta = std::fs::metadata(path)?;
    let kind = if meta.is_file() {
        FileKind::File
    } else if meta.is_dir() {
        FileKind::Directory
    } else {
        FileKind::Special
    };
    let readable = match kind {
        FileKind::File => open_regular(path).is_ok(),
        FileKind::Directory | FileKind::Special => true,
    };
    Ok(Stat { kind, len: meta.len(), readable })
}

fn names_in(path: &Path) -> io::Result<Vec<String>> {
    std::fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Removes a file, a link or an empty directory.
fn remove_named(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path)?.is_dir() {
        true => std::fs::remove_dir(path),
        false => std::fs::remove_file(path),
    }
}

impl Machine for LocalMachine {
    fn stat<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Stat, MachineError>> {
        Box::pin(blocking("access", path, stat_of))
    }

    fn read<'a>(&'a self, path: &'a Path, max: u64) -> BoxFuture<'a, Result<Bytes, MachineError>> {
        Box::pin(blocking("open", path, move |path| read_regular(path, max).map(Bytes::from)))
    }

    fn read_pieces<'a>(&'a self, path: &'a Path) -> BoxStream<'a, Result<Bytes, MachineError>> {
        pieces(path, open_regular)
    }

    fn write<'a>(&'a self, path: &'a Path, content: Bytes) -> BoxFuture<'a, Result<(), MachineError>> {
        Box::pin(blocking("open", path, move |path| {
            match std::fs::metadata(path) {
                // A file that may be replaced but not written is left unchanged.
                Ok(meta) if meta.is_file() && !writable(path) => Err(io::ErrorKind::PermissionDenied.into()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if let Some(folder) = path.parent() {
                        std::fs::create_dir_all(folder)?;
                    }
                    write_named(path, &content, Access::Keep)
                }
                Err(error) => Err(error),
                Ok(_) => write_named(path, &content, Access::Keep),
            }
        }))
    }

    fn remove<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<(), MachineError>> {
        Box::pin(blocking("unlink", path, remove_named))
    }

    fn list<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Vec<String>, MachineError>> {
        Box::pin(blocking("scandir", path, names_in))
    }

    fn find(&self, query: FindQuery) -> BoxStream<'_, Result<SearchItem<FoundPath>, SearchError>> {
        lookup::find(query, |_| true)
    }

    fn grep(&self, query: GrepQuery) -> BoxStream<'_, Result<SearchItem<GrepLine>, SearchError>> {
        lookup::grep(query, open_regular)
    }

    fn real_path<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<PathBuf, MachineError>> {
        Box::pin(blocking("realpath", path, |path| std::fs::canonicalize(path)))
    }

    #[cfg(target_os = "linux")]
    fn exact(&self) -> Option<Arc<dyn Machine>> {
        exact::ExactMachine::new().map(|machine| Arc::new(machine) as Arc<dyn Machine>)
    }

    fn spawn<'a>(&'a self, command: CommandSpec) -> BoxFuture<'a, Result<Box<dyn Process>, MachineError>> {
        Box::pin(async move {
            let CommandSpec { program, args, cwd, env, has_input, terminal, ends_rest } = command;
            let mut command = std::process::Command::new(&program);
            command.args(args).current_dir(cwd).env_clear().envs(env);
            let spawned = match terminal {
                Some(size) => on_terminal(command, size),
                None if has_input => process::ChildTree::spawn_with_input(command),
                None => process::ChildTree::spawn(command),
            };
            match spawned {
                Ok(process) if ends_rest => Ok(Box::new(LocalProcess(process.ending_rest())) as Box<dyn Process>),
                Ok(process) => Ok(Box::new(LocalProcess(process)) as Box<dyn Process>),
                Err(SpawnError::MissingDir { path }) => {
                    Err(MachineError::new(io::ErrorKind::NotFound.into(), "chdir", Some(&path)))
                }
                Err(SpawnError::Io { source, .. }) => Err(MachineError::new(source, "spawn", Some(&program))),
                Err(other) => Err(MachineError::new(io::Error::other(other), "spawn", Some(&program))),
            }
        })
    }
}

#[cfg(all(unix, feature = "pty"))]
fn on_terminal(command: std::process::Command, size: TerminalSize) -> Result<process::ChildTree, SpawnError> {
    process::ChildTree::spawn_on_terminal(command, size.columns, size.rows)
}

/// Fails: there are no pseudoterminals without the feature `pty`.
#[cfg(not(all(unix, feature = "pty")))]
fn on_terminal(command: std::process::Command, _: TerminalSize) -> Result<process::ChildTree, SpawnError> {
    let program = command.get_program().to_string_lossy().into_owned();
    Err(SpawnError::Io { program, source: io::ErrorKind::Unsupported.into() })
}

/// Returns whether this process may write a file.
fn writable(path: &Path) -> bool {
    std::fs::OpenOptions::new().append(true).open(path).is_ok()
}

struct LocalProcess(process::ChildTree);

impl Process for LocalProcess {
    fn id(&self) -> Option<u32> {
        self.0.id()
    }

    fn take_input(&mut self) -> Option<ProcessInput> {
        Some(Box::new(self.0.take_stdin()?))
    }

    fn pump<'a>(
        &'a mut self,
        cancel: &'a Cancel,
        timeout: Option<Duration>,
        grace: Duration,
        on_data: &'a mut (dyn FnMut(&[u8]) + Send),
    ) -> BoxFuture<'a, Result<ProcessEnd, MachineError>> {
        Box::pin(async move {
            self.0.pump(cancel, timeout, grace, on_data).await.map_err(|error| MachineError::new(error, "wait", None))
        })
    }
}

#![doc = include_str!("../README.md")]

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use pinch_stdx::cancel::Cancel;
pub use pinch_stdx::process::{Exit, ProcessEnd};
use pinch_stdx::text::shortened;

pub mod search;

pub mod local;

pub mod rooted;

pub mod protected;

pub use local::LocalMachine;
pub use protected::ProtectedMachine;
pub use rooted::RootedMachine;

use search::{FindQuery, FoundPath, GrepLine, GrepQuery, SearchError, SearchItem};

/// Files and commands of a machine. Paths are absolute.
///
/// Names are returned as text, with U+FFFD in place of bytes that are not valid Unicode; a path that contains such a name refers to the
/// only file whose name is shown that way.
pub trait Machine: Send + Sync {
    /// Returns metadata about a path, following symbolic links.
    fn stat<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Stat, MachineError>>;

    /// Reads a whole file. Fails for files longer than `max` bytes.
    fn read<'a>(&'a self, path: &'a Path, max: u64) -> BoxFuture<'a, Result<Bytes, MachineError>>;

    /// Reads a file chunk by chunk, for files of any length.
    fn read_pieces<'a>(&'a self, path: &'a Path) -> BoxStream<'a, Result<Bytes, MachineError>>;

    /// Replaces a file atomically, or creates it with its parent directories. Readers see either the old content or the new.
    fn write<'a>(&'a self, path: &'a Path, content: Bytes) -> BoxFuture<'a, Result<(), MachineError>>;

    /// Removes a file, a symbolic link or an empty directory. Machines without support for this fail with `ENOTSUP`.
    fn remove<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<(), MachineError>> {
        let error = MachineError::new(io::ErrorKind::Unsupported.into(), "unlink", Some(path));
        Box::pin(std::future::ready(Err(error)))
    }

    /// Lists the names in a directory, unsorted.
    fn list<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Vec<String>, MachineError>>;

    /// Finds paths by name, sorted by path. Dropping the stream ends the search.
    fn find(&self, query: FindQuery) -> BoxStream<'_, Result<SearchItem<FoundPath>, SearchError>>;

    /// Finds lines in files, sorted by path. Dropping the stream ends the search.
    fn grep(&self, query: GrepQuery) -> BoxStream<'_, Result<SearchItem<GrepLine>, SearchError>>;

    /// Resolves symbolic links, to decide whether two paths are the same file.
    fn real_path<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<PathBuf, MachineError>>;

    /// Returns the directory for files that tools and commands must be able to read, if they do not see the usual temporary directory.
    fn temp_dir(&self) -> Option<&Path> {
        None
    }

    /// Returns this machine in a form that follows no symbolic links: a file operation fails with `ELOOP` if a directory of its path, or the
    /// file itself, is one at the moment of the operation. Wrappers that decide by resolved paths use it so that nobody can replace a
    /// directory by a link in between. Machines that cannot guarantee this return `None`.
    fn exact(&self) -> Option<Arc<dyn Machine>> {
        None
    }

    /// Starts a command.
    fn spawn<'a>(&'a self, command: CommandSpec) -> BoxFuture<'a, Result<Box<dyn Process>, MachineError>>;
}

/// Metadata about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// File, directory or something else.
    pub kind: FileKind,
    /// Length in bytes.
    pub len: u64,
    /// Whether this process may read it, according to the system.
    pub readable: bool,
}

impl Stat {
    /// Creates metadata for something that this process may read.
    pub fn new(kind: FileKind, len: u64) -> Self {
        Self { kind, len, readable: true }
    }
}

/// Type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A device, a pipe or a socket.
    Special,
}

/// A command for a machine's shell.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandSpec {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its complete environment.
    pub env: Vec<(String, String)>,
    /// Whether it has an input; see [`Process::take_input`].
    pub has_input: bool,
    /// Its pseudoterminal, if any. Machines without pseudoterminals fail with `ENOTSUP`.
    pub terminal: Option<TerminalSize>,
    /// Whether what it leaves running is ended when it exits by itself.
    pub ends_rest: bool,
}

/// Size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Columns.
    pub columns: u16,
    /// Rows.
    pub rows: u16,
}

impl CommandSpec {
    /// Creates a command.
    pub fn new(program: PathBuf, args: Vec<String>, cwd: PathBuf, env: Vec<(String, String)>) -> Self {
        Self { program, args, cwd, env, has_input: false, terminal: None, ends_rest: false }
    }

    /// Gives the command an input that can be written to.
    #[must_use]
    pub fn with_input(mut self) -> Self {
        self.has_input = true;
        self
    }

    /// Ends what the command leaves running when it exits by itself, such as `server &`.
    #[must_use]
    pub fn ending_rest(mut self) -> Self {
        self.ends_rest = true;
        self
    }

    /// Runs the command on its own pseudoterminal, which is also its input: write keys to [`Process::take_input`].
    #[must_use]
    pub fn on_terminal(mut self, size: TerminalSize) -> Self {
        self.has_input = true;
        self.terminal = Some(size);
        self
    }
}

/// Input of a running command. Dropping it closes the input.
pub type ProcessInput = Box<dyn tokio::io::AsyncWrite + Send + Unpin>;

/// A running command and its descendants. Dropping it kills them all.
pub trait Process: Send {
    /// Returns the process id, on the machine that it runs on, while it is running.
    fn id(&self) -> Option<u32> {
        None
    }

    /// Takes the input of a command that was started with one; returns it only once. Machines that cannot provide it return `None`.
    fn take_input(&mut self) -> Option<ProcessInput> {
        None
    }

    /// Runs the command to its end and forwards its output as it arrives, stdout and stderr alike.
    ///
    /// On `cancel`, or after `timeout`, the command is terminated with all its descendants: gracefully first, then, after `grace`,
    /// forcibly. A child left in the background does not delay the call.
    fn pump<'a>(
        &'a mut self,
        cancel: &'a Cancel,
        timeout: Option<Duration>,
        grace: Duration,
        on_data: &'a mut (dyn FnMut(&[u8]) + Send),
    ) -> BoxFuture<'a, Result<ProcessEnd, MachineError>>;
}

/// An operation that failed. Its text is shown to a model: the error's code, the system's message, the operation and the path.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {text}{}{operation}{}", if operation.is_empty() { "" } else { ", " }, Quoted(path.as_deref()))]
#[non_exhaustive]
pub struct MachineError {
    /// The error's code, e.g. `ENOENT`.
    pub code: &'static str,
    /// The message.
    pub text: String,
    /// The operation that failed; empty if the message says what cannot be done.
    pub operation: &'static str,
    /// The file, if any.
    pub path: Option<PathBuf>,
    /// The system's error.
    #[source]
    pub source: Option<io::Error>,
}

/// Maximum bytes of a path that are shown; no system accepts longer ones.
pub const MAX_PATH: usize = 4096;

struct Quoted<'a>(Option<&'a Path>);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(path) => write!(f, " '{}'", shortened(&path.to_string_lossy(), MAX_PATH)),
            None => Ok(()),
        }
    }
}

impl MachineError {
    /// Describes a system error as libuv, and therefore Node, does.
    pub fn new(source: io::Error, operation: &'static str, path: Option<&Path>) -> Self {
        let (code, text) = name(&source);
        Self { code, text, operation, path: path.map(Path::to_owned), source: Some(source) }
    }

    /// Creates an error whose text names the operation and the file.
    pub fn explained(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), operation: "", path: None, source: None }
    }
}

/// Error number for symbolic link cycles, which has no stable kind.
const ELOOP: i32 = if cfg!(target_os = "linux") { 40 } else { 62 };

/// Error number for pipes without a reader, and for sockets opened like files; it has no kind.
const ENXIO: i32 = 6;

/// Codes and messages of frequent system errors, as Node prints them.
fn name(error: &io::Error) -> (&'static str, String) {
    use io::ErrorKind as Kind;
    let (code, text) = match error.kind() {
        Kind::NotFound => ("ENOENT", "no such file or directory"),
        Kind::PermissionDenied => ("EACCES", "permission denied"),
        Kind::IsADirectory => ("EISDIR", "illegal operation on a directory"),
        Kind::NotADirectory => ("ENOTDIR", "not a directory"),
        Kind::AlreadyExists => ("EEXIST", "file already exists"),
        Kind::StorageFull => ("ENOSPC", "no space left on device"),
        Kind::QuotaExceeded => ("EDQUOT", "disk quota exceeded"),
        Kind::ReadOnlyFilesystem => ("EROFS", "read-only file system"),
        Kind::InvalidFilename => ("ENAMETOOLONG", "name too long"),
        Kind::FileTooLarge => ("EFBIG", "file too large"),
        Kind::ResourceBusy => ("EBUSY", "resource busy or locked"),
        Kind::ExecutableFileBusy => ("ETXTBSY", "text file is busy"),
        Kind::ArgumentListTooLong => ("E2BIG", "argument list too long"),
        Kind::InvalidInput => ("EINVAL", "invalid argument"),
        Kind::WouldBlock => ("EAGAIN", "resource temporarily unavailable"),
        Kind::Unsupported => ("ENOTSUP", "operation not supported"),
        Kind::TimedOut => ("ETIMEDOUT", "operation timed out"),
        _ => match error.raw_os_error() {
            Some(code) if code == ELOOP => ("ELOOP", "too many symbolic links encountered"),
            Some(ENXIO) => ("ENXIO", "no such device or address"),
            _ => return ("EIO", error.to_string()),
        },
    };
    (code, text.to_owned())
}

//! The directories of a program run, `~` in paths, and files named on the command line.

use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use pinch_embed::stdx::host::Host;

use crate::exit::CommandFailure;

/// The directories of one program run.
pub(crate) struct Folders {
    pub(crate) cwd: PathBuf,
    pub(crate) agent_dir: PathBuf,
}

impl Folders {
    /// Finds the directories: the flag, then PINCH_AGENT_DIR, then PI_CODING_AGENT_DIR, then ~/.pinch/agent.
    pub(crate) fn find(flag: Option<&Path>, host: &Host) -> Result<Self, CommandFailure> {
        let cwd = working_directory()?;
        let named = flag.map(Path::to_owned).or_else(|| {
            let env = host.env();
            env.non_empty("PINCH_AGENT_DIR").or_else(|| env.non_empty("PI_CODING_AGENT_DIR")).map(PathBuf::from)
        });
        let agent_dir = match named {
            Some(dir) => cwd.join(expand_home(&dir, host)),
            None => host.home().map(|home| home.join(".pinch/agent")).ok_or_else(|| {
                CommandFailure::configuration(
                    "no home directory\nhint: name a directory with --agent-dir or PINCH_AGENT_DIR",
                )
            })?,
        };
        Ok(Self { cwd, agent_dir })
    }
}

/// Returns the working directory; nothing else reads it.
pub(crate) fn working_directory() -> Result<PathBuf, CommandFailure> {
    #[expect(clippy::disallowed_methods, reason = "the binary asks once and passes it on")]
    std::env::current_dir()
        .map_err(|error| CommandFailure::configuration(format!("cannot use the working directory: {error}")))
}

/// Expands `~` at the start of a path.
pub(crate) fn expand_home(path: &Path, host: &Host) -> PathBuf {
    match (path.strip_prefix("~"), host.home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

/// Reads a file of UTF-8 text, which may be a pipe, without the white space around it. Fails if it is empty or longer than `max` bytes.
pub(crate) fn trimmed_text(path: &Path, max: u64) -> Result<String, String> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let n_read = file.take(max + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if n_read as u64 > max {
        return Err("the file is too long".to_owned());
    }
    // Some editors begin a file with a byte order mark.
    match text.trim_start_matches('\u{feff}').trim() {
        "" => Err("the file is empty".to_owned()),
        text => Ok(text.to_owned()),
    }
}

/// Makes a command-line path absolute; `.` and `..` are resolved lexically, without accessing the disk.
pub(crate) fn absolute(cwd: &Path, given: &str, host: &Host) -> PathBuf {
    let mut path = PathBuf::new();
    for part in cwd.join(expand_home(Path::new(given), host)).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(path.pop()),
            other => path.push(other),
        }
    }
    path
}

//! Moving files of older versions to their current places and names.
//!
//! Each move is attempted at every start; after the first there is nothing to do. Nothing is ever overwritten, and a failed move is
//! reported without stopping the others.

use std::io;
use std::path::{Path, PathBuf};

use pinch_stdx::fs::open_regular;
use pinch_stdx::fs::{Access, create_private_dir};
use pinch_stdx::host::Host;
use serde_json::Value;

use crate::document::{self, ChangeError, Problem, change_object};
use crate::entry::names::dir_name as session_folder;

pub mod keybindings;
mod credentials;

/// The results of all moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StartupMoves {
    /// Providers whose credentials were moved to auth.json.
    pub providers: Vec<String>,
    /// Session files that were moved to `sessions/`.
    pub sessions: Vec<PathBuf>,
    /// Warnings about directories that are no longer used.
    pub warnings: Vec<String>,
    /// Moves that failed.
    pub problems: Vec<Problem>,
}

/// Performs all moves for a user and a project; without a project directory, only those for the user.
pub fn run(agent_dir: &Path, project_dir: Option<&Path>, host: &Host) -> StartupMoves {
    let mut moved = StartupMoves::default();
    if !agent_dir.is_dir() && project_dir.is_none_or(|dir| !dir.is_dir()) {
        return moved;
    }
    match credentials::fold(agent_dir, host, &mut moved.problems) {
        Ok(providers) => moved.providers = providers,
        Err(problem) => moved.problems.push(problem),
    }
    sessions(agent_dir, &mut moved);
    for dir in [Some(agent_dir), project_dir].into_iter().flatten() {
        moved.check(rename(&dir.join("commands"), &dir.join("prompts")));
    }
    tools(agent_dir, &mut moved);
    moved.check(bindings(agent_dir, host));
    for dir in [Some(agent_dir), project_dir].into_iter().flatten() {
        warn(dir, &mut moved);
    }
    moved
}

impl StartupMoves {
    fn check(&mut self, done: Result<(), Problem>) {
        self.problems.extend(done.err());
    }
}

fn failed(path: &Path, error: &io::Error) -> Problem {
    Problem::new(path, format!("cannot be moved: {error}"))
}

/// Renames a file or directory, unless the new path exists or the old one does not.
fn rename(from: &Path, to: &Path) -> Result<(), Problem> {
    if from.symlink_metadata().is_err() || to.symlink_metadata().is_ok() {
        return Ok(());
    }
    std::fs::rename(from, to).map_err(|error| failed(from, &error))
}

/// Moves session files in the agent's directory to the directory of their working directory.
fn sessions(agent_dir: &Path, moved: &mut StartupMoves) {
    for path in files(agent_dir).into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")) {
        let done = || -> Result<Option<PathBuf>, Problem> {
            let Some(cwd) = working_directory(&path).map_err(|error| failed(&path, &error))? else { return Ok(None) };
            let folder = agent_dir.join("sessions").join(session_folder(&cwd));
            create_private_dir(&folder).map_err(|error| failed(&path, &error))?;
            let Some(name) = path.file_name() else { return Ok(None) };
            let target = folder.join(name);
            rename(&path, &target)?;
            Ok((path.symlink_metadata().is_err()).then_some(target))
        };
        match done() {
            Ok(target) => moved.sessions.extend(target),
            Err(problem) => moved.problems.push(problem),
        }
    }
}

/// Returns the working directory in the first line of a session, or `None` if it is not a session.
fn working_directory(path: &Path) -> io::Result<Option<String>> {
    use std::io::{BufRead as _, Read as _};
    let mut line = Vec::new();
    // A session's first line is short; a longer one is something else.
    io::BufReader::new(open_regular(path)?.take(64 * 1024)).read_until(b'\n', &mut line)?;
    let header: Value = serde_json::from_slice(&line).unwrap_or_default();
    let cwd = header["cwd"].as_str().filter(|_| header["type"] == "session");
    Ok(cwd.map(str::to_owned))
}

/// Search programs downloaded by older versions.
const PROGRAMS: [&str; 4] = ["fd", "rg", "fd.exe", "rg.exe"];

fn tools(agent_dir: &Path, moved: &mut StartupMoves) {
    for name in PROGRAMS {
        let (from, bin) = (agent_dir.join("tools").join(name), agent_dir.join("bin"));
        if !from.is_file() {
            continue;
        }
        let done = create_private_dir(&bin).map_err(|error| failed(&from, &error));
        moved.check(done.and_then(|()| rename(&from, &bin.join(name))));
    }
}

/// Migrates old key names; a file without any is left unchanged.
fn bindings(agent_dir: &Path, host: &Host) -> Result<(), Problem> {
    let path = agent_dir.join("keybindings.json");
    if !path.is_file() {
        return Ok(());
    }
    let (_, has_changed) = keybindings::migrate(&document::read_object(&path)?);
    if !has_changed {
        return Ok(());
    }
    let done = change_object(&path, Access::NewPrivate, host, |config| {
        let (migrated, has_changed) = keybindings::migrate(config);
        *config = migrated;
        Ok(has_changed)
    });
    done.map(drop).map_err(|error| unchanged(&path, error))
}

/// Returns the problem with a document that could not be changed.
fn unchanged(path: &Path, error: ChangeError) -> Problem {
    match error {
        ChangeError::Damaged(problem) => problem,
        ChangeError::Lock { source, .. } => Problem::new(path, source.to_string()),
        ChangeError::Io { source, .. } => failed(path, &source),
    }
}

/// Warns about directories that older versions read and this one does not.
fn warn(dir: &Path, moved: &mut StartupMoves) {
    let hooks = dir.join("hooks");
    if hooks.is_dir() {
        moved.warnings.push(format!("{} is no longer used: hooks are extensions now", hooks.display()));
    }
    let tools = dir.join("tools");
    let is_own = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with('.') && !PROGRAMS.contains(&&*name)
    };
    if entries(&tools).iter().any(|path| is_own(path)) {
        moved.warnings.push(format!("{} is no longer used: tools are extensions now", tools.display()));
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn files(folder: &Path) -> Vec<PathBuf> {
    entries(folder).into_iter().filter(|path| path.symlink_metadata().is_ok_and(|meta| meta.is_file())).collect()
}

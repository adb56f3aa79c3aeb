//! Projects in which agents worked in a sandbox.
//!
//! Such an agent can write the project's own settings and extensions. They run outside of the sandbox, with the user's permissions, if the
//! project is trusted. The trust therefore ends when they change after the first such run.

use std::path::{Path, PathBuf};

use pinch_stdx::fs::{Access, real_path};
use pinch_stdx::host::Host;
use serde_json::{Value, json};

use super::trust::{IN_PROJECT_DIR, Project, TrustStore};
use crate::document::{self, ChangeError, Problem, change_object};

/// File in the agent directory: for each directory that a sandbox could write to, when that began.
const FILE: &str = "sandboxed.json";
/// Maximum number of files of a project to look at. A project with more counts as changed.
const MAX_FILES: usize = 20_000;

/// Records that agents may write to a directory from inside a sandbox from now on.
///
/// # Errors
/// [`ChangeError`]; nothing was recorded, and the sandbox must not be entered.
pub fn remember(agent_dir: &Path, directory: &Path, host: &Host) -> Result<(), ChangeError> {
    let key = real_path(directory).to_string_lossy().into_owned();
    change_object(&agent_dir.join(FILE), Access::Private, host, |entries| {
        let is_new = entries.get(&key).and_then(since).is_none();
        if is_new {
            entries.insert(key, json!({"since": host.now_ms()}));
        }
        Ok(is_new)
    })?;
    Ok(())
}

/// Records that the user decided about the trust in a directory. Nothing is written if no sandbox was ever used.
///
/// # Errors
/// [`ChangeError`]; earlier changes still count.
pub(crate) fn note_decision(agent_dir: &Path, directory: &Path, host: &Host) -> Result<(), ChangeError> {
    let path = agent_dir.join(FILE);
    if !path.exists() {
        return Ok(());
    }
    let key = real_path(directory).to_string_lossy().into_owned();
    change_object(&path, Access::Private, host, |entries| {
        entries.entry(key).or_insert_with(|| json!({}))["decided"] = host.now_ms().into();
        Ok(true)
    })?;
    Ok(())
}

/// Doubts the trust in a project whose own settings or extensions have changed since a sandboxed run and since the user's last decision, and
/// returns what changed.
pub fn doubt(agent_dir: &Path, project: &Project, store: &mut TrustStore) -> Option<Problem> {
    let entries = match document::read_object(&agent_dir.join(FILE)) {
        Ok(entries) if entries.is_empty() => return None,
        Ok(entries) => entries,
        Err(problem) => {
            // Without it, nothing is known about any project.
            store.doubt(project.real_cwd());
            return Some(problem);
        }
    };
    let above = || project.real_cwd().ancestors().filter_map(|dir| entries.get(&*dir.to_string_lossy()));
    let began = above().filter_map(since).min()?;
    let decided = above().filter_map(|entry| entry["decided"].as_i64()).max();
    let changed = changed_after(project, began.max(decided.unwrap_or_default()))?;
    store.doubt(project.real_cwd());
    let text = "changed after a run in a sandbox, so its project is not trusted any more";
    Some(
        Problem::new(&changed, text)
            .remedy("Check what changed, then trust the project again, for example with /trust"),
    )
}

fn since(entry: &Value) -> Option<i64> {
    entry["since"].as_i64()
}

/// Returns a file or directory of the project that requires trust and was changed after this time, in milliseconds since 1970.
fn changed_after(project: &Project, ms: i64) -> Option<PathBuf> {
    let mut dirs = vec![project.real_cwd().join(".pinch"), project.real_cwd().join(".pi")];
    dirs.retain(|dir| dir.symlink_metadata().is_ok());
    let in_dirs = dirs.iter().flat_map(|dir| IN_PROJECT_DIR.iter().map(move |name| dir.join(name)));
    let mut open: Vec<PathBuf> = in_dirs.chain(project.agents_skills().iter().cloned()).collect();
    let mut n_files = 0;
    while let Some(path) = open.pop() {
        let Ok(meta) = path.symlink_metadata() else { continue };
        n_files += 1;
        if changed_ms(&meta).is_none_or(|changed| changed > ms) || n_files > MAX_FILES {
            return Some(path);
        }
        if meta.is_dir() {
            open.extend(std::fs::read_dir(&path).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())));
        }
    }
    None
}

/// Returns when the system last changed a file or its attributes. Programs cannot set this time, unlike that of the last write.
#[cfg(unix)]
fn changed_ms(meta: &std::fs::Metadata) -> Option<i64> {
    use std::os::unix::fs::MetadataExt as _;
    meta.ctime().checked_mul(1_000)?.checked_add(meta.ctime_nsec() / 1_000_000)
}

#[cfg(not(unix))]
fn changed_ms(meta: &std::fs::Metadata) -> Option<i64> {
    let time = meta.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(time.as_millis()).ok()
}

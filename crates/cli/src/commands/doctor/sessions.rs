//! Checks for unreadable or damaged sessions, stale locks, and extensions that would be started.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinch_embed::coding_agent::store::jsonl::read_header;
use pinch_embed::coding_agent::store::repair::damaged_lines;
use pinch_embed::stdx::fs::dir_lock::DirLockOptions;
use pinch_embed::stdx::process::is_alive;
use serde_json::Value;

use super::context::DoctorContext;
use super::report::{DoctorSection, FindingStatus};
use crate::commands::agent;

/// Maximum number of session files.
const MAX_FILES: usize = 2_000;
/// Maximum bytes of session files that are read.
const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// Maximum number of directories.
const MAX_FOLDERS: usize = 500;
/// Maximum bytes of a lock file.
const MAX_LOCK: u64 = 4_096;

/// Checks the headers of session files, and locks.
pub(super) async fn look(context: &DoctorContext) -> DoctorSection {
    let (sessions, state_dir) = (context.session_dir.clone(), agent::state_dir(None, &context.host).ok());
    let mut documents = vec![context.folders.agent_dir.clone()];
    documents.extend(context.project_dir.clone());
    let now_ms = context.host.now_ms();
    let work = move || {
        let mut section = DoctorSection::new("Sessions and locks");
        let folders: Vec<PathBuf> = std::iter::once(sessions.clone()).chain(entries(&sessions, MAX_FOLDERS)).collect();
        let mut good = headers(&mut section, &folders);
        documents.iter().for_each(|folder| document_locks(&mut section, folder, now_ms));
        let agents = state_dir.iter().flat_map(|dir| entries(&dir.join("agents"), MAX_FOLDERS));
        let agents: Vec<PathBuf> = agents.map(|agent| agent.join("sessions")).collect();
        good.extend(agents.iter().flat_map(|folder| session_files(folder)).filter(|path| read_header(path).is_some()));
        damage(&mut section, good);
        agents.iter().for_each(|folder| session_locks(&mut section, folder));
        section
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| DoctorSection::new("Sessions and locks"))
}

/// Returns the entries of a directory, sorted and limited; none if it is unreadable.
fn entries(folder: &Path, limit: usize) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut paths: Vec<PathBuf> = read.take(limit).map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Returns the files in a directory that should be sessions.
fn session_files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let is_one = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "jsonl") && path.is_file();
    entries(folder, MAX_FILES).into_iter().filter(is_one)
}

/// Checks the headers of files; returns those that are sessions.
fn headers(section: &mut DoctorSection, folders: &[PathBuf]) -> Vec<PathBuf> {
    let (mut good, mut n_seen) = (Vec::new(), 0);
    for path in folders.iter().flat_map(|folder| session_files(folder)) {
        if n_seen == MAX_FILES {
            section.add(FindingStatus::Note, "sessions", format!("only {MAX_FILES} files were checked"));
            break;
        }
        n_seen += 1;
        match read_header(&path) {
            Some(_) => good.push(path),
            None => section.add(
                FindingStatus::Warn,
                "session",
                format!("{} is not a session file and is ignored", path.display()),
            ),
        }
    }
    section.add(FindingStatus::Ok, "sessions", format!("{} readable", good.len()));
    good
}

/// Looks for unreadable lines, newest files first, up to the byte limit.
fn damage(section: &mut DoctorSection, sessions: Vec<PathBuf>) {
    let files = sessions.into_iter().filter_map(|path| Some((fs::metadata(&path).ok()?, path)));
    let mut files: Vec<(fs::Metadata, PathBuf)> = files.collect();
    files.sort_by_key(|(meta, path)| (std::cmp::Reverse(meta.modified().ok()), path.clone()));
    let (mut n_left, mut n_unread) = (MAX_BYTES, 0);
    for (meta, path) in files {
        let Some(left) = n_left.checked_sub(meta.len()) else {
            n_unread += 1;
            continue;
        };
        n_left = left;
        let n_damaged = damaged_lines(&path, MAX_BYTES).unwrap_or(0);
        if n_damaged > 0 {
            let (file, (lines, are, them)) = (
                path.display(),
                match n_damaged {
                    1 => ("line", "is", "it"),
                    _ => ("lines", "are", "them"),
                },
            );
            let text = format!(
                "{file} has {n_damaged} damaged {lines}, which {are} skipped. Run pinch sessions repair {file} to remove {them}"
            );
            section.add(FindingStatus::Warn, "session", text);
        }
    }
    if n_unread > 0 {
        section.add(
            FindingStatus::Note,
            "sessions",
            format!("{n_unread} files were not checked for damage: too much data"),
        );
    }
}

/// Checks locks of documents: directories that their holders renew.
fn document_locks(section: &mut DoctorSection, folder: &Path, now_ms: i64) {
    for path in entries(folder, MAX_FILES) {
        if path.extension().is_none_or(|ending| ending != "lock") || !path.is_dir() {
            continue;
        }
        let renewed = fs::metadata(&path).and_then(|meta| meta.modified()).ok();
        let renewed = renewed.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
        let now = Duration::from_millis(u64::try_from(now_ms).unwrap_or_default());
        let age = now.saturating_sub(renewed);
        if age > DirLockOptions::PATIENT.stale {
            let text = format!("{} is {} s old. The next writer removes it", path.display(), age.as_secs());
            section.add(FindingStatus::Warn, "stale lock", text);
        }
    }
}

/// Checks locks of embedded sessions: files that name a process.
fn session_locks(section: &mut DoctorSection, folder: &Path) {
    for path in entries(folder, MAX_FILES) {
        let is_lock = path.extension().is_some_and(|ending| ending == "lock");
        if !is_lock || !fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_LOCK) {
            continue;
        }
        let owner = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        let pid = owner.and_then(|owner| owner["pid"].as_u64()).and_then(|pid| u32::try_from(pid).ok());
        if pid.is_none_or(|pid| !is_alive(pid)) {
            let text = format!("{} has no owner. The next run removes it", path.display());
            section.add(FindingStatus::Warn, "stale lock", text);
        }
    }
}

/// Lists the extensions that a session here would start.
pub(super) fn extensions(context: &DoctorContext) -> DoctorSection {
    let mut section = DoctorSection::new("Extensions");
    for entry in &context.services.resources().extensions {
        let path = entry.path.display().to_string();
        let name = entry.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let source = if entry.info.source.is_empty() { String::new() } else { format!(" ({})", entry.info.source) };
        section.add(FindingStatus::Ok, name, format!("{path}{source}"));
    }
    if section.is_empty() {
        section.add(FindingStatus::Note, "extensions", "none configured for this directory");
    }
    section
}

/// Returns whether an extension needs Node.js.
pub(super) fn needs_node(context: &DoctorContext) -> bool {
    let is_script = |path: &Path| {
        let ending = path.extension().unwrap_or_default();
        path.is_file() && ["js", "mjs", "cjs", "ts", "mts"].iter().any(|one| ending == *one)
    };
    context.services.resources().extensions.iter().any(|entry| is_script(&entry.path))
}

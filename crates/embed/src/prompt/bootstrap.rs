//! Workspace files in the system prompt: who the agent is, what it knows, how it works.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use pinch_coding_agent::document::Problem;
use pinch_coding_agent::machine::{FileKind, Machine, MachineError};
use pinch_stdx::fs::{read_regular, real_path};
use pinch_stdx::text::{utf16_len, utf16_prefix};

use crate::config::prompt::BootstrapLimits;
use crate::key;

/// Names of the files, in order.
const FILES: [&str; 7] = ["AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", HEARTBEAT, BOOTSTRAP];
/// What to do at a heartbeat.
pub(crate) const HEARTBEAT: &str = "HEARTBEAT.md";
/// Instructions for a new agent, which removes the file after following them.
pub(crate) const BOOTSTRAP: &str = "BOOTSTRAP.md";
/// Memory files; the second name is the older one.
const MEMORY: [&str; 2] = ["MEMORY.md", "memory.md"];
/// Files for runs of sub-agents and cron jobs.
const FEW: [&str; 2] = ["AGENTS.md", "TOOLS.md"];
/// Size limit of a file, in bytes.
const MAX_BYTES: u64 = 2 * 1024 * 1024;
/// A file is left out if there is less room than this.
const MIN_CHARS: usize = 64;
/// Maximum number of characters from the file about the user.
const USER_CHARS: usize = 4_000;

/// A file in the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceFile {
    /// Its name.
    pub name: String,
    /// Its path, even if it is missing.
    pub path: PathBuf,
    /// Its text; `None` if it is missing.
    pub text: Option<String>,
}

/// A file as included in the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectedFile {
    /// Its name.
    pub name: String,
    /// Its path, even if it is missing.
    pub path: PathBuf,
    /// The included text.
    pub text: String,
    /// Whether the file is missing.
    pub is_missing: bool,
    /// Length of the whole text; 0 if the file is missing.
    pub raw_chars: usize,
    /// Whether text was left out.
    pub is_truncated: bool,
    /// Whether the whole text is in the prompt, but takes at least 85 % of its limit.
    pub is_near_limit: bool,
}

/// Which workspace files a system prompt contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BootstrapContext {
    /// All that the session gets.
    #[default]
    Full,
    /// None, or in a run that the heartbeat started, only HEARTBEAT.md.
    Lightweight,
}

/// Returns whether a session gets a file: those of sub-agents and cron jobs only get instructions.
pub fn is_for(session_key: Option<&str>, name: &str) -> bool {
    !session_key.is_some_and(is_limited) || FEW.contains(&name)
}

/// Returns whether a session performs a task for another one.
pub(crate) fn is_limited(session_key: &str) -> bool {
    key::is_subagent(session_key) || key::parse(session_key).is_some_and(|key| key.rest.starts_with("cron:"))
}

/// Loads the workspace files for a session. A workspace without any of them does not belong to an agent, and the prompt mentions none.
/// Links out of the workspace are not followed.
///
/// `confined`: the machine of a sandboxed run, which reads the files, so that even links changed concurrently cannot lead out.
pub(crate) async fn load(
    workspace: &Path,
    session_key: Option<&str>,
    confined: Option<&dyn Machine>,
) -> (Vec<WorkspaceFile>, Vec<Problem>) {
    let (mut files, mut problems) = (Vec::new(), Vec::new());
    let root = real_path(workspace);
    let mut memory = None;
    for name in FILES.into_iter().chain(MEMORY).filter(|name| is_for(session_key, name)) {
        let path = workspace.join(name);
        let text = match confined {
            Some(machine) => read_inside(machine, &path, &root).await,
            None => read(&path, &root),
        };
        let text = match text {
            Ok(Some((real, text))) => {
                // On case-insensitive file systems both memory names are the same file.
                if MEMORY.contains(&name) && memory.replace(real.clone()).is_some_and(|first| first == real) {
                    continue;
                }
                Some(text)
            }
            Ok(None) if MEMORY.contains(&name) || name == BOOTSTRAP => continue,
            Ok(None) => None,
            Err(why) => {
                problems.push(Problem::new(&path, why));
                continue;
            }
        };
        files.push(WorkspaceFile { name: name.to_owned(), path, text });
    }
    if files.iter().all(|file| file.text.is_none()) {
        files.clear();
    }
    (files, problems)
}

/// Returns the text of a workspace's AGENTS.md, read like the files of the prompt; `None` if it is missing or unreadable.
pub(crate) async fn instructions(workspace: &Path, confined: Option<&dyn Machine>) -> Option<String> {
    let (path, root) = (workspace.join(FILES[0]), real_path(workspace));
    let text = match confined {
        Some(machine) => read_inside(machine, &path, &root).await,
        None => read(&path, &root),
    };
    text.ok().flatten().map(|(_, text)| text)
}

/// Like [`read`], on a confined machine.
async fn read_inside(machine: &dyn Machine, path: &Path, root: &Path) -> Result<Option<(PathBuf, String)>, String> {
    let is_missing = |error: &MachineError| error.code == "ENOENT";
    let real = match machine.real_path(path).await {
        Ok(real) => real,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(format!("cannot be read: {error}")),
    };
    if !real.starts_with(root) {
        return Err("is a link that leads out of the workspace; it was ignored".to_owned());
    }
    // Reading a pipe would never end.
    match machine.stat(&real).await {
        Ok(stat) if stat.kind == FileKind::File => {}
        Ok(_) => return Err("is not a regular file and was ignored".to_owned()),
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(format!("cannot be read: {error}")),
    }
    match machine.read(&real, MAX_BYTES).await {
        Ok(bytes) => Ok(Some((real, String::from_utf8_lossy(&bytes).into_owned()))),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

/// Copies the files of a workspace into another one, unless they exist there. Instructions for a new agent are only copied into a new
/// workspace.
pub(crate) fn seed(from: &Path, to: &Path) -> std::io::Result<()> {
    let root = from.canonicalize()?;
    // Links count as existing files; their targets are never touched.
    let is_new = FILES.iter().all(|name| to.join(name).symlink_metadata().is_err());
    for name in FILES.into_iter().filter(|name| *name != BOOTSTRAP || is_new) {
        let (source, target) = (from.join(name), to.join(name));
        if target.symlink_metadata().is_ok() {
            continue;
        }
        match read(&source, &root) {
            Ok(Some((_, text))) => write_new(&target, text.as_bytes())?,
            Ok(None) => {}
            Err(why) => tracing::warn!(file = %source.display(), why, "could not copy a workspace file"),
        }
    }
    Ok(())
}

pub(super) fn write_new(path: &Path, content: &[u8]) -> std::io::Result<()> {
    match File::create_new(path) {
        Ok(mut file) => file.write_all(content),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Reads a file and resolves its real path; `None` if it is missing.
fn read(path: &Path, root: &Path) -> Result<Option<(PathBuf, String)>, String> {
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot be read: {error}")),
    };
    if !real.starts_with(root) {
        return Err("is a link that leads out of the workspace; it was ignored".to_owned());
    }
    match read_regular(&real, MAX_BYTES) {
        Ok(bytes) => Ok(Some((real, String::from_utf8_lossy(&bytes).into_owned()))),
        Err(error) if error.kind() == ErrorKind::FileTooLarge => Err("is larger than 2 MiB and was ignored".to_owned()),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

/// Returns the files as included in the prompt: blank ones are omitted, and long ones lose their middle.
pub fn inject(files: impl IntoIterator<Item = WorkspaceFile>, limits: BootstrapLimits) -> Vec<InjectedFile> {
    let mut left = limits.total;
    let mut injected = Vec::new();
    for WorkspaceFile { name, path, text } in files {
        if left < MIN_CHARS {
            tracing::warn!(file = name, "omitting a workspace file: there is no room for it in the prompt");
            continue;
        }
        let is_missing = text.is_none();
        let raw = text.as_deref().map_or("", str::trim_end);
        if !is_missing && raw.is_empty() {
            continue;
        }
        let raw_chars = utf16_len(raw);
        let of_file = if name == "USER.md" { limits.file.min(USER_CHARS) } else { limits.file };
        let max = of_file.min(left);
        let text = match is_missing {
            true => format!("[MISSING] Expected at: {}", path.display()),
            false if raw_chars > max => {
                tracing::warn!(file = name, raw_chars, max, "a workspace file is shortened in the prompt");
                shortened(&name, raw, raw_chars, max)
            }
            false => raw.to_owned(),
        };
        left = left.saturating_sub(utf16_len(&text));
        let is_truncated = raw_chars > max;
        let is_near_limit = !is_truncated && !is_missing && is_near(raw_chars, of_file);
        injected.push(InjectedFile { is_truncated, is_near_limit, name, path, text, is_missing, raw_chars });
    }
    injected
}

/// Returns whether at least 85 % of a limit is used.
pub(super) fn is_near(chars: usize, limit: usize) -> bool {
    chars.saturating_mul(100) >= limit.saturating_mul(85)
}

/// Keeps the first 70% and the last 20% of the limit, with a note in between.
fn shortened(name: &str, text: &str, n_chars: usize, max: usize) -> String {
    let (n_head, n_tail) = (max * 7 / 10, max * 2 / 10);
    let head = utf16_prefix(text, n_head);
    let tail = &text[utf16_prefix(text, n_chars - n_tail).len()..];
    format!(
        "{head}\n\n[...truncated, read {name} for full content...]\n\u{2026}(truncated {name}: kept {n_head}+{n_tail} chars of {n_chars})\u{2026}\n\n{tail}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_stay_in_the_workspace_and_in_their_limits() {
        let local: &dyn Machine = &pinch_coding_agent::machine::LocalMachine;
        for confined in [None, Some(local)] {
            let dir = tempfile::tempdir().unwrap();
            let workspace = dir.path().join("w");
            std::fs::create_dir(&workspace).unwrap();
            assert_eq!(load(&workspace, None, confined).await.0, [], "not a workspace of an agent");
            std::fs::write(workspace.join("AGENTS.md"), "rules\n").unwrap();
            std::fs::write(workspace.join("USER.md"), "u".repeat(5_000)).unwrap();
            std::fs::write(workspace.join("MEMORY.md"), "m".repeat(30_000)).unwrap();
            std::fs::write(dir.path().join("secret"), "s").unwrap();
            #[cfg(unix)]
            std::os::unix::fs::symlink(dir.path().join("secret"), workspace.join("SOUL.md")).unwrap();
            let (files, problems) = load(&workspace, Some("agent:main:main"), confined).await;
            let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
            assert_eq!(names, ["AGENTS.md", "TOOLS.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", "MEMORY.md"]);
            assert_eq!(problems.len(), 1);
            let injected = inject(files, BootstrapLimits { file: 20_000, total: 10_000 });
            assert_eq!(injected[0].text, "rules");
            assert!(injected[1].text.starts_with("[MISSING] Expected at: ") && injected[1].is_missing);
            let user = &injected[3];
            assert!(user.is_truncated && user.raw_chars == 5_000 && user.text.contains("kept 2800+800 chars"));
            assert!(injected.iter().map(|file| file.text.len()).sum::<usize>() <= 10_200);
            for key in ["agent:main:subagent:x", "agent:main:cron:x"] {
                let (files, _) = load(&workspace, Some(key), confined).await;
                let names: Vec<String> = files.into_iter().map(|file| file.name).collect();
                assert_eq!(names, FEW, "{key}");
            }
        }
    }

    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[tokio::test]
    async fn links_swapped_while_a_prompt_is_built_lead_nowhere() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicBool, Ordering};

        use pinch_sandbox::confinement::Confinement;
        use pinch_sandbox::contract::Sandbox as _;

        let dir = tempfile::tempdir().unwrap();
        let (workspace, secret) = (dir.path().join("w"), dir.path().join("secret"));
        std::fs::create_dir(&workspace).unwrap();
        std::fs::write(&secret, "top secret").unwrap();
        std::fs::write(workspace.join("AGENTS.md"), "rules").unwrap();
        let entered = pinch_sandbox::landlock::LandlockSandbox.enter(&Confinement::new(&workspace)).await;
        let Ok(machine) = entered.inspect_err(|error| drop(writeln!(std::io::stderr(), "skipped: {error}"))) else {
            return;
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let swapping = std::thread::spawn({
            let (soul, file, link) = (workspace.join("SOUL.md"), workspace.join("file"), workspace.join("link"));
            let is_over = Arc::clone(&is_over);
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::fs::write(&file, "a soul").unwrap();
                    std::fs::rename(&file, &soul).unwrap();
                    std::os::unix::fs::symlink(&secret, &link).unwrap();
                    std::fs::rename(&link, &soul).unwrap();
                }
            }
        });
        for _ in 0..300 {
            let (files, _) = load(&workspace, None, Some(&*machine)).await;
            assert!(files.iter().all(|file| file.text.as_deref() != Some("top secret")));
        }
        is_over.store(true, Ordering::Relaxed);
        swapping.join().unwrap();
    }
}

//! The files of a workspace that the system prompt contains: who the agent is, what it knows, how it works.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use pinch_coding_agent::document::Problem;
use pinch_coding_agent::machine::{FileKind, Machine, MachineError};
use pinch_stdx::fs::{read_regular, real_path};
use pinch_stdx::text::{utf16_len, utf16_prefix};

use crate::config::agents::BootstrapLimits;
use crate::key;

/// The files in order.
const FILES: [&str; 7] = ["AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", BOOTSTRAP];
/// The file of a new agent, which it removes once it has followed it.
pub(crate) const BOOTSTRAP: &str = "BOOTSTRAP.md";
/// Files of what it remembers; the second name is an older one.
const MEMORY: [&str; 2] = ["MEMORY.md", "memory.md"];
/// What a run of a sub-agent or of a cron job gets.
const FEW: [&str; 2] = ["AGENTS.md", "TOOLS.md"];
/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 2 * 1024 * 1024;
/// With less room than this, a file is left out.
const MIN_CHARS: usize = 64;
/// Characters of what is known about the user, at most.
const USER_CHARS: usize = 4_000;

/// A file of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceFile {
    /// Its name.
    pub name: String,
    /// Where it is, or would be.
    pub path: PathBuf,
    /// Its text; `None` if it is not there.
    pub text: Option<String>,
}

/// A file as the prompt contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectedFile {
    /// Its name.
    pub name: String,
    /// Where it is, or would be.
    pub path: PathBuf,
    /// What the prompt contains.
    pub text: String,
    /// Whether it is not there.
    pub is_missing: bool,
    /// How long its text is; 0 if it is not there.
    pub raw_chars: usize,
    /// Whether some of the text is left out.
    pub is_truncated: bool,
}

/// Whether a session gets a file: those of sub-agents and of cron jobs get the instructions only.
pub fn is_for(session_key: Option<&str>, name: &str) -> bool {
    !session_key.is_some_and(is_limited) || FEW.contains(&name)
}

/// Whether a session does one piece of work for another.
pub(crate) fn is_limited(session_key: &str) -> bool {
    key::is_subagent(session_key) || key::parse(session_key).is_some_and(|key| key.rest.starts_with("cron:"))
}

/// The files of a workspace for a session. A workspace with none of them is not an agent's, and nothing is said about them. A link that leads out
/// of the workspace is not followed.
///
/// `confined`: the machine of a run in a sandbox, which reads them, so that links that are changed in that moment lead nowhere either.
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
                // On some systems both names of the memory are one file.
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

/// The same as [`read`] on a confined machine.
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
    // A pipe would never end.
    match machine.stat(&real).await {
        Ok(stat) if stat.kind == FileKind::File => {}
        Ok(_) => return Err("is no regular file and was ignored".to_owned()),
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(format!("cannot be read: {error}")),
    }
    match machine.read(&real, MAX_BYTES).await {
        Ok(bytes) => Ok(Some((real, String::from_utf8_lossy(&bytes).into_owned()))),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

/// Copies the files of a workspace into another one, unless they are there. Instructions for a new agent are not copied to one that is not new.
pub(crate) fn seed(from: &Path, to: &Path) -> std::io::Result<()> {
    let root = from.canonicalize()?;
    // Links count as files that are there: what they lead to is never touched.
    let is_new = FILES.iter().all(|name| to.join(name).symlink_metadata().is_err());
    for name in FILES.into_iter().filter(|name| *name != BOOTSTRAP || is_new) {
        let (source, target) = (from.join(name), to.join(name));
        if target.symlink_metadata().is_ok() {
            continue;
        }
        match read(&source, &root) {
            Ok(Some((_, text))) => write_new(&target, text.as_bytes())?,
            Ok(None) => {}
            Err(why) => tracing::warn!(file = %source.display(), why, "a file of the workspace is not copied"),
        }
    }
    Ok(())
}

fn write_new(path: &Path, content: &[u8]) -> std::io::Result<()> {
    match File::create_new(path) {
        Ok(mut file) => file.write_all(content),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// The text of a file and where it really is; `None` if there is none.
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

/// The files as the prompt contains them: blank ones are left out, the middle of long ones too.
pub fn inject(files: impl IntoIterator<Item = WorkspaceFile>, limits: BootstrapLimits) -> Vec<InjectedFile> {
    let mut left = limits.total;
    let mut injected = Vec::new();
    for WorkspaceFile { name, path, text } in files {
        if left < MIN_CHARS {
            tracing::warn!(file = name, "a file of the workspace is left out: there is no room for it in the prompt");
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
                tracing::warn!(file = name, raw_chars, max, "a file of the workspace is shortened in the prompt");
                shortened(&name, raw, raw_chars, max)
            }
            false => raw.to_owned(),
        };
        left = left.saturating_sub(utf16_len(&text));
        injected.push(InjectedFile { is_truncated: raw_chars > max, name, path, text, is_missing, raw_chars });
    }
    injected
}

/// The first 70 % and the last 20 % of what may be said, with a note between them.
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
    async fn links_that_are_swapped_while_a_prompt_is_made_lead_nowhere() {
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

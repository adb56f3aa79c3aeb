//! The first files of an agent's workspace.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pinch_stdx::host::Host;
use pinch_stdx::process::ChildTree;

use super::bootstrap::{BOOTSTRAP, HEARTBEAT, write_new};

/// The files that stay, with their first text.
const PERMANENT: [(&str, &str); 6] = [
    ("AGENTS.md", include_str!("templates/AGENTS.md")),
    ("SOUL.md", include_str!("templates/SOUL.md")),
    ("TOOLS.md", include_str!("templates/TOOLS.md")),
    ("IDENTITY.md", include_str!("templates/IDENTITY.md")),
    ("USER.md", include_str!("templates/USER.md")),
    (HEARTBEAT, include_str!("templates/HEARTBEAT.md")),
];

/// Instructions for a new agent.
const FIRST_RUN: &str = include_str!("templates/BOOTSTRAP.md");

/// Time limit of `git init`.
const GIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Writes the files that a workspace lacks. A brand-new one, which has none of the permanent files, also gets instructions for a new agent
/// and, where git is installed, a repository. Nothing is overwritten; links count as existing files.
///
/// # Errors
/// Returns the system's error.
pub(crate) async fn create(workspace: &Path, host: &Host) -> io::Result<()> {
    let is_missing = |name: &str| workspace.join(name).symlink_metadata().is_err();
    let is_new = PERMANENT.iter().all(|(name, _)| is_missing(name));
    for (name, text) in PERMANENT.iter().filter(|(name, _)| is_missing(name)) {
        write_new(&workspace.join(name), text.as_bytes())?;
    }
    if is_new {
        write_new(&workspace.join(BOOTSTRAP), FIRST_RUN.as_bytes())?;
        if is_missing(".git") {
            init_repository(workspace, host).await;
        }
    }
    Ok(())
}

/// Runs `git init`. A workspace works without a repository, so that a failure is only logged.
async fn init_repository(workspace: &Path, host: &Host) {
    // Without a search path, the system would use one of its own.
    if host.env().non_empty("PATH").is_none() {
        return;
    }
    let mut command = Command::new("git");
    command.args(["init", "--quiet"]).current_dir(workspace);
    command.env_clear().envs(host.env().iter().filter(|(name, _)| !name.starts_with("GIT_")));
    let mut git = match ChildTree::spawn(command) {
        Ok(git) => git,
        Err(error) => return tracing::debug!(%error, "the workspace gets no repository"),
    };
    match tokio::time::timeout(GIT_TIMEOUT, git.wait()).await {
        Ok(Ok(exit)) if exit.is_success() => {}
        Ok(Ok(exit)) => tracing::warn!(status = exit.status(), "git init failed in the workspace"),
        Ok(Err(error)) => tracing::warn!(%error, "git init failed in the workspace"),
        Err(_) => tracing::warn!("git init took too long in the workspace"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn a_new_workspace_gets_all_files_and_an_old_one_only_missing_ones() {
        let host = Host::builder().build();
        let dir = tempfile::tempdir().unwrap();
        create(dir.path(), &host).await.unwrap();
        let all = ["AGENTS.md", "BOOTSTRAP.md", "HEARTBEAT.md", "IDENTITY.md", "SOUL.md", "TOOLS.md", "USER.md"];
        assert_eq!(names(dir.path()), all, "and no repository without git");

        let old = tempfile::tempdir().unwrap();
        std::fs::write(old.path().join("AGENTS.md"), "mine").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("elsewhere", old.path().join("SOUL.md")).unwrap();
        create(old.path(), &host).await.unwrap();
        assert_eq!(std::fs::read_to_string(old.path().join("AGENTS.md")).unwrap(), "mine");
        assert!(!old.path().join("BOOTSTRAP.md").exists() && !old.path().join("elsewhere").exists());
        assert_eq!(names(old.path()).len(), 6);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_new_workspace_becomes_a_repository_where_git_exists() {
        use std::os::unix::fs::PermissionsExt as _;

        let (dir, bin) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let git = bin.path().join("git");
        std::fs::write(&git, "#!/bin/sh\n/bin/mkdir .git && echo \"$@\" > .git/args\n").unwrap();
        std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o755)).unwrap();
        let env = [("PATH", bin.path().to_str().unwrap())];
        let host = Host::builder().env(env.into_iter().collect()).build();
        create(dir.path(), &host).await.unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join(".git/args")).unwrap(), "init --quiet\n");
        std::fs::remove_dir_all(dir.path().join(".git")).unwrap();
        create(dir.path(), &host).await.unwrap();
        assert!(!dir.path().join(".git").exists(), "only a new workspace becomes one");
    }
}

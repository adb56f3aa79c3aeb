//! Packages from git servers: cloned below a managed directory that no source can escape from.

use std::path::{Path, PathBuf};

use pinch_stdx::cancel::Cancel;
use pinch_stdx::fs::create_private_dir;

use super::run::CapturedOutput;
use super::source::GitSource;
use super::{PackageError, PackageScope, PackageToolError, Packages};

/// Options for every git call: never prompt, and never run hooks or programs named in a URL.
const GUARDS: [&str; 7] =
    ["git", "-c", "protocol.ext.allow=never", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];
const ENV: [(&str, &str); 2] = [("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0")];

/// A directory removed on drop unless it is kept.
struct Unfinished(Option<PathBuf>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(path) = self.0.take()
            && let Err(error) = std::fs::remove_dir_all(&path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "cannot remove an unfinished clone");
        }
    }
}

impl Packages {
    /// Clones a repository and installs its dependencies. It appears in its place completely or not at all.
    pub(super) async fn git_install(
        &self,
        git: &GitSource,
        scope: PackageScope,
        cancel: &Cancel,
    ) -> Result<(), PackageError> {
        let root = self.git_root(scope);
        let place = root.join(&git.host).join(&git.path);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| PackageError::Io { path, source }
        };
        create_private_dir(&root).map_err(failed(&root))?;
        if place.exists() {
            check_beneath(&root, &place)?;
            return self.git_refresh(git, &place, cancel).await;
        }
        let parent = place.parent().unwrap_or(&root);
        create_private_dir(parent).map_err(failed(parent))?;
        check_beneath(&root, parent)?;
        let temp = parent.join(format!(".clone-{}", self.host.ids().uuid_v4()));
        let mut unfinished = Unfinished(Some(temp.clone()));
        let target = temp.to_string_lossy();
        self.git(&["clone", "--quiet", "--", &git.repo, &target], parent, CapturedOutput::Everything, cancel).await?;
        if let Some(reference) = &git.reference {
            self.git(&["checkout", "--quiet", reference, "--"], &temp, CapturedOutput::Everything, cancel).await?;
        }
        self.npm_dependencies(&temp, cancel).await?;
        std::fs::rename(&temp, &place).map_err(failed(&place))?;
        unfinished.0 = None;
        Ok(())
    }

    /// Updates a clone to the requested reference, or else to the server's head; local changes are lost.
    async fn git_refresh(&self, git: &GitSource, place: &Path, cancel: &Cancel) -> Result<(), PackageError> {
        self.git(
            &["fetch", "--quiet", "--prune", "--tags", "--force", "origin"],
            place,
            CapturedOutput::Everything,
            cancel,
        )
        .await?;
        let candidates: Vec<String> = match &git.reference {
            Some(reference) => vec![format!("refs/remotes/origin/{reference}"), reference.clone()],
            None => vec!["@{upstream}".to_owned(), "refs/remotes/origin/HEAD".to_owned()],
        };
        let mut goal = None;
        for candidate in &candidates {
            let wanted = format!("{candidate}^{{commit}}");
            match self.git(&["rev-parse", "--verify", "--quiet", &wanted], place, CapturedOutput::Result, cancel).await
            {
                Ok(commit) => {
                    goal = Some(commit.trim().to_owned());
                    break;
                }
                Err(PackageError::Run(PackageToolError::Failed { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        let goal = goal.ok_or_else(|| PackageToolError::Failed {
            command: "git rev-parse".to_owned(),
            status: 1,
            output: format!("found neither {}", candidates.join(" nor ")),
        })?;
        self.git(&["reset", "--quiet", "--hard", &goal], place, CapturedOutput::Everything, cancel).await?;
        self.git(&["clean", "--quiet", "-fdx"], place, CapturedOutput::Everything, cancel).await?;
        self.npm_dependencies(place, cancel).await
    }

    /// Updates a clone, creating it if it is missing.
    pub(super) async fn git_update(
        &self,
        git: &GitSource,
        scope: PackageScope,
        cancel: &Cancel,
    ) -> Result<(), PackageError> {
        self.git_install(git, scope, cancel).await
    }

    /// Removes a clone, and its parent directories if they are empty then.
    pub(super) fn git_remove(&self, git: &GitSource, scope: PackageScope) -> Result<(), PackageError> {
        let root = self.git_root(scope);
        let place = root.join(&git.host).join(&git.path);
        if !place.exists() {
            return Ok(());
        }
        check_beneath(&root, &place)?;
        std::fs::remove_dir_all(&place).map_err(|source| PackageError::Io { path: place.clone(), source })?;
        let above = place.ancestors().skip(1).take_while(|folder| *folder != root);
        for folder in above {
            // A non-empty directory is still needed.
            if std::fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }

    async fn git(
        &self,
        args: &[&str],
        folder: &Path,
        want: CapturedOutput,
        cancel: &Cancel,
    ) -> Result<String, PackageError> {
        let argv = [&GUARDS, args].concat();
        let done = self.runner(cancel).run(&argv, folder, &ENV, want).await;
        Ok(done.map_err(|error| match error {
            // Do not repeat the guard options in the error.
            PackageToolError::Failed { status, output, .. } => {
                PackageToolError::Failed { command: format!("git {}", args.first().unwrap_or(&"")), status, output }
            }
            other => other,
        })?)
    }
}

/// Checks that a directory is really below another one, with links resolved.
fn check_beneath(root: &Path, path: &Path) -> Result<(), PackageError> {
    let real =
        |path: &Path| std::fs::canonicalize(path).map_err(|source| PackageError::Io { path: path.to_owned(), source });
    let (real_root, real_path) = (real(root)?, real(path)?);
    if real_path.starts_with(&real_root) && (real_path != real_root) {
        return Ok(());
    }
    Err(PackageError::Outside { path: path.to_owned(), root: root.to_owned() })
}

//! Reads the branch of the git repository around a directory from its files.

use std::fs;
use std::path::{Path, PathBuf};

/// What a working tree has checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// A branch.
    Branch(String),
    /// A commit that is not the tip of a local branch.
    Detached,
}

/// Reads the head of the repository around a directory; `None` outside a repository. Reads at most two small files, and runs no program.
pub(crate) fn head(dir: &Path) -> Option<Head> {
    let git = dir.ancestors().find_map(git_dir)?;
    let head = fs::read_to_string(git.join("HEAD")).ok()?;
    match head.trim().strip_prefix("ref:").map(str::trim) {
        // Repositories that keep references in tables name the branch there.
        Some("refs/heads/.invalid") => None,
        Some(reference) => Some(Head::Branch(reference.strip_prefix("refs/heads/").unwrap_or(reference).to_owned())),
        None => Some(Head::Detached),
    }
}

/// Returns the git directory of a working tree: `.git`, or the target of the file `.git` in a worktree.
fn git_dir(root: &Path) -> Option<PathBuf> {
    let dot_git = root.join(".git");
    let kind = fs::metadata(&dot_git).ok()?;
    if kind.is_dir() {
        return Some(dot_git);
    }
    let text = fs::read_to_string(&dot_git).ok()?;
    Some(root.join(text.trim().strip_prefix("gitdir:")?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_is_found_from_subdirectories_and_in_worktrees() {
        let dir = tempfile::tempdir().unwrap();
        let (repo, tree) = (dir.path().join("repo"), dir.path().join("tree"));
        fs::create_dir_all(repo.join(".git/worktrees/tree")).unwrap();
        fs::create_dir_all(repo.join("src/deep")).unwrap();
        fs::create_dir_all(&tree).unwrap();
        fs::write(repo.join(".git/HEAD"), "ref: refs/heads/feature/x\n").unwrap();
        fs::write(repo.join(".git/worktrees/tree/HEAD"), "0123456789abcdef\n").unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", repo.join(".git/worktrees/tree").display())).unwrap();
        assert_eq!(head(&repo.join("src/deep")), Some(Head::Branch("feature/x".to_owned())));
        assert_eq!(head(&tree), Some(Head::Detached));
        assert_eq!(head(dir.path()), None);
        fs::write(repo.join(".git/HEAD"), "ref: refs/heads/.invalid\n").unwrap();
        assert_eq!(head(&repo), None, "references in tables");
    }
}

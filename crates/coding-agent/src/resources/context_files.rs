//! Files with instructions: AGENTS.md and its relatives, of the agent directory and of every folder down to the working directory.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use super::collect::Listed;
use super::real_paths::RealPaths;
use super::text_file::{self, without_bom};
use crate::document::Problem;

/// Names in one folder; the first that is there counts.
const NAMES: [&str; 5] = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];

/// Instructions of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextFile {
    /// Where they stand.
    pub path: PathBuf,
    /// The text.
    pub text: String,
}

impl ContextFile {
    /// The file as the system prompt holds it.
    pub fn render(&self) -> String {
        format!(
            "<project_instructions path=\"{}\">\n{}\n</project_instructions>",
            self.path.to_string_lossy().replace('"', "&quot;"),
            self.text
        )
    }
}

/// Collects the files: that of the agent directory first, then from the file system's root down to the working directory. A file that two
/// paths lead to counts once, and that of a repository does not count beside the same one of a linked worktree in it: `repositories` are the
/// folders from the working directory up that have a `.git`. A file that cannot be read is reported.
pub(super) fn collect(
    agent_dir: &Path,
    cwd: &Path,
    repositories: &[PathBuf],
    real_paths: &mut RealPaths,
) -> (Vec<ContextFile>, Vec<Problem>) {
    let mut folders: Vec<&Path> = cwd.ancestors().collect();
    folders.push(agent_dir);
    folders.reverse();
    let twins = twins(cwd, repositories);
    folders.retain(|folder| !twins.contains(folder));
    let (mut files, mut problems, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    for folder in folders {
        for name in NAMES {
            let path = folder.join(name);
            let Ok(meta) = std::fs::symlink_metadata(&path) else { continue };
            let is_link = meta.is_symlink();
            if !(meta.is_file() || is_link && path.is_file()) {
                continue;
            }
            let file = Listed { path, n_plain: usize::from(!is_link) };
            let real = real_paths.of_listed(&file);
            if seen.contains(&real) {
                break;
            }
            match file.read(text_file::MAX_BYTES) {
                Ok(bytes) => {
                    let text = without_bom(text_file::text(bytes));
                    seen.insert(real);
                    files.push(ContextFile { path: file.path, text });
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                    problems.push(Problem::new(&file.path, "is larger than 1 MiB and was left out"));
                }
                Err(error) => problems.push(Problem::new(&file.path, format!("cannot be read: {error}"))),
            }
        }
    }
    (files, problems)
}

/// Roots of repositories above a linked worktree of theirs that has context files of its own.
fn twins<'a>(cwd: &'a Path, repositories: &[PathBuf]) -> Vec<&'a Path> {
    let has_any = |folder: &Path| NAMES.iter().any(|name| folder.join(name).is_file());
    let main_of = |folder: &PathBuf| {
        let main = main_worktree(folder)?;
        let main = cwd.ancestors().find(|above| std::fs::canonicalize(above).is_ok_and(|above| above == main))?;
        (main != folder && has_any(folder)).then_some(main)
    };
    repositories.iter().filter_map(main_of).collect()
}

/// Where the repository lies that a folder is a linked worktree of.
fn main_worktree(folder: &Path) -> Option<PathBuf> {
    let link = folder.join(".git");
    if !std::fs::metadata(&link).is_ok_and(|meta| meta.is_file() && meta.len() < 4096) {
        return None;
    }
    let text = std::fs::read_to_string(&link).ok()?;
    let at = folder.join(text.trim().strip_prefix("gitdir:")?.trim());
    // `…/.git/worktrees/NAME`
    let at = std::fs::canonicalize(at).ok()?;
    let worktrees = at.parent()?;
    let git = worktrees.parent()?;
    (worktrees.ends_with("worktrees") && git.ends_with(".git")).then(|| git.parent().map(Path::to_owned))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outer_folders_come_first_and_nothing_twice() {
        let dir = tempfile::tempdir().unwrap();
        let (agent, inner) = (dir.path().join("agent"), dir.path().join("a/b"));
        let write = |path: PathBuf, text: &str| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::io::Write::write_all(&mut std::fs::File::create(path).unwrap(), text.as_bytes()).unwrap();
        };
        write(agent.join("AGENTS.md"), "user");
        write(dir.path().join("a/CLAUDE.md"), "outer\n");
        write(inner.join("AGENTS.md"), "hidden");
        write(inner.join("AGENTS.override.md"), "inner");
        std::fs::create_dir_all(inner.join("AGENTS.MD")).unwrap();
        let (files, problems) = collect(&agent, &inner, &[], &mut RealPaths::default());
        let texts: Vec<&str> = files.iter().map(|file| file.text.as_str()).collect();
        assert_eq!((texts, problems.len()), (vec!["user", "outer\n", "inner"], 0));
    }

    #[test]
    fn a_worktree_inside_of_its_repository_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let main = dir.path().join("main");
        let tree = main.join(".trees/x");
        std::fs::create_dir_all(main.join(".git/worktrees/x")).unwrap();
        std::fs::create_dir_all(tree.join("sub")).unwrap();
        let git_file = format!("gitdir: {}\n", main.join(".git/worktrees/x").display());
        let texts = || {
            let (files, problems) = collect(
                &dir.path().join("none"),
                &tree.join("sub"),
                &[tree.clone(), main.clone()],
                &mut RealPaths::default(),
            );
            assert_eq!(problems, []);
            files.into_iter().map(|file| file.text).collect::<Vec<_>>()
        };
        for (path, text) in [(main.join("AGENTS.md"), "main"), (tree.join(".git"), git_file.as_str())] {
            std::fs::write(path, text).unwrap();
        }
        assert_eq!(texts(), ["main"]);
        std::fs::write(tree.join("CLAUDE.md"), "tree").unwrap();
        assert_eq!(texts(), ["tree"]);
    }
}

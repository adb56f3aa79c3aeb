//! Instruction files: AGENTS.md and its variants, from the agent directory and every directory down to the working directory.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use super::collect::ListedFile;
use super::real_paths::RealPaths;
use super::text_file::{self, without_bom};
use crate::document::Problem;

/// File names, by precedence within a directory.
const NAMES: [&str; 5] = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];

/// An instruction file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextFile {
    /// Path of the file.
    pub path: PathBuf,
    /// The text.
    pub text: String,
}

impl ContextFile {
    /// Formats the file for the system prompt.
    pub fn render(&self) -> String {
        format!(
            "<project_instructions path=\"{}\">\n{}\n</project_instructions>",
            self.path.to_string_lossy().replace('"', "&quot;"),
            self.text
        )
    }
}

/// The policy for following links to context files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links<'a> {
    /// Whether to follow links out of the project, because the project is explicitly trusted.
    pub(super) anywhere: bool,
    /// The user's home directory, whose links are the user's own.
    pub(super) home: Option<&'a Path>,
}

impl Links<'_> {
    /// Returns whether a link in a directory may be followed to a file. A project is the whole repository, or else the directory alone.
    fn may_lead(self, folder: &Path, to: &Path, repositories: &[PathBuf], real_paths: &mut RealPaths) -> bool {
        if self.anywhere || self.home.is_some_and(|home| home == folder || real_paths.of(home) == real_paths.of(folder))
        {
            return true;
        }
        let repository = repositories.iter().find(|repository| folder.starts_with(repository));
        to.starts_with(real_paths.of(repository.map_or(folder, PathBuf::as_path)))
    }
}

/// Collects the files: the one in the agent directory first, then from the root of the file system down to the working directory. A file
/// reachable by two paths is included once, and a repository's file is skipped in favor of a linked worktree inside it. `repositories` are
/// the directories from the working directory up that contain `.git`. Unreadable files are reported.
pub(super) fn collect(
    agent_dir: Option<&Path>,
    cwd: &Path,
    repositories: &[PathBuf],
    links: Links<'_>,
    real_paths: &mut RealPaths,
) -> (Vec<ContextFile>, Vec<Problem>) {
    let mut folders: Vec<&Path> = cwd.ancestors().collect();
    folders.extend(agent_dir);
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
            let file = ListedFile { path, n_plain: usize::from(!is_link) };
            let real = real_paths.of_listed(&file);
            if seen.contains(&real) {
                break;
            }
            if is_link && Some(folder) != agent_dir && !links.may_lead(folder, &real, repositories, real_paths) {
                let what = "is a link that leads out of the project, which is not trusted; it was ignored";
                problems.push(Problem::new(&file.path, what).remedy("Trust the project, or copy the file"));
                continue;
            }
            match file.read(text_file::MAX_BYTES) {
                Ok(bytes) => {
                    let text = without_bom(text_file::text(bytes));
                    seen.insert(real);
                    files.push(ContextFile { path: file.path, text });
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                    problems.push(Problem::new(&file.path, "is larger than 1 MiB and was ignored"));
                }
                Err(error) => problems.push(Problem::new(&file.path, format!("cannot be read: {error}"))),
            }
        }
    }
    (files, problems)
}

/// Returns the roots of repositories above a linked worktree of theirs that has its own context files.
fn twins<'a>(cwd: &'a Path, repositories: &[PathBuf]) -> Vec<&'a Path> {
    let has_any = |folder: &Path| NAMES.iter().any(|name| folder.join(name).is_file());
    let main_of = |folder: &PathBuf| {
        let main = main_worktree(folder)?;
        let main = cwd.ancestors().find(|above| std::fs::canonicalize(above).is_ok_and(|above| above == main))?;
        (main != folder && has_any(folder)).then_some(main)
    };
    repositories.iter().filter_map(main_of).collect()
}

/// Returns the main worktree if a directory is a linked one.
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

    const FREE: Links<'_> = Links { anywhere: true, home: None };

    #[cfg(unix)]
    #[test]
    fn links_do_not_leave_an_untrusted_project() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(dir.path()).unwrap();
        let (home, repository) = (root.join("home"), root.join("home/code/repo"));
        let inner = repository.join("sub");
        for folder in [&inner, &repository.join(".git"), &root.join("agent")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(root.join("secret"), "secret").unwrap();
        std::fs::write(repository.join("README.md"), "of the project").unwrap();
        std::fs::write(root.join("own"), "agent").unwrap();
        symlink(root.join("own"), root.join("agent/AGENTS.md")).unwrap();
        std::fs::write(root.join("dotfile"), "mine").unwrap();
        symlink("../dotfile", home.join("AGENTS.md")).unwrap();
        symlink("../README.md", inner.join("AGENTS.md")).unwrap();
        symlink(root.join("secret"), repository.join("AGENTS.md")).unwrap();
        std::fs::write(repository.join("CLAUDE.md"), "in its place").unwrap();
        symlink("../../secret", root.join("home/code/AGENTS.md")).unwrap();
        let repositories = [repository.clone()];
        let of = |anywhere, home: Option<&Path>| {
            let (agent, links) = (root.join("agent"), Links { anywhere, home });
            let (files, problems) = collect(Some(&agent), &inner, &repositories, links, &mut RealPaths::default());
            let texts: Vec<String> = files.into_iter().map(|file| file.text).collect();
            (texts, problems.iter().map(|problem| problem.to_string()).collect::<Vec<_>>())
        };
        let (texts, problems) = of(false, Some(&home));
        assert_eq!(texts, ["agent", "mine", "in its place", "of the project"]);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems.iter().all(|problem| problem.contains("leads out of the project")), "{problems:?}");
        let (texts, problems) = of(false, None);
        assert_eq!((texts.join(" "), problems.len()), ("agent in its place of the project".to_owned(), 3));
        let (texts, problems) = of(true, None);
        assert_eq!((texts.join(" "), problems.len()), ("agent mine secret of the project".to_owned(), 0));
    }

    #[test]
    fn outer_directories_come_first_without_duplicates() {
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
        let (files, problems) = collect(Some(&agent), &inner, &[], FREE, &mut RealPaths::default());
        let texts: Vec<&str> = files.iter().map(|file| file.text.as_str()).collect();
        assert_eq!((texts, problems.len()), (vec!["user", "outer\n", "inner"], 0));
    }

    #[test]
    fn a_worktree_inside_its_repository_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let main = dir.path().join("main");
        let tree = main.join(".trees/x");
        std::fs::create_dir_all(main.join(".git/worktrees/x")).unwrap();
        std::fs::create_dir_all(tree.join("sub")).unwrap();
        let git_file = format!("gitdir: {}\n", main.join(".git/worktrees/x").display());
        let texts = || {
            let (files, problems) = collect(
                Some(&dir.path().join("none")),
                &tree.join("sub"),
                &[tree.clone(), main.clone()],
                FREE,
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

//! Restricting paths to a root.

use std::path::{Path, PathBuf};

use pinch_coding_agent::tools::path::lexical;
use pinch_machine::Machine;

/// A root that paths must stay below, and how to interpret them.
#[derive(Clone, Debug)]
pub struct PathRoot {
    /// The root, absolute.
    pub root: PathBuf,
    /// Base of relative paths; usually the root.
    pub cwd: PathBuf,
    /// Expansion of `~`.
    pub home: Option<PathBuf>,
}

/// A path below a root.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContainedPath {
    /// The absolute path.
    pub path: PathBuf,
    /// The path relative to the root; empty for the root itself.
    pub relative: PathBuf,
}

/// Why a path is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContainmentError {
    /// It leads out of the root.
    #[error("Path escapes sandbox root ({root}): {path}")]
    Escapes {
        /// The root, with the home directory shown as `~`.
        root: String,
        /// The path as given.
        path: String,
    },
    /// A component is a symbolic link.
    #[error("Symlink not allowed in sandbox path: {}", path.display())]
    Symlink {
        /// The link.
        path: PathBuf,
    },
    /// A parent directory of the file is itself a file.
    #[error("Not a directory: {}", path.display())]
    NotADirectory {
        /// The file.
        path: PathBuf,
    },
}

impl PathRoot {
    /// Creates a root that relative paths are resolved against.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { cwd: root.clone(), root, home: None }
    }

    /// Returns the absolute path for a text, without accessing the disk: unusual spaces become plain ones, `~` the home directory, and `.`
    /// and `..` are resolved.
    pub fn absolute(&self, path: &str) -> PathBuf {
        let path: String = path.chars().map(|c| if is_odd_space(c) { ' ' } else { c }).collect();
        let expanded = match (path.strip_prefix('~'), &self.home) {
            (Some(""), Some(home)) => home.clone(),
            (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            _ => PathBuf::from(&path),
        };
        lexical(&self.cwd.join(expanded))
    }

    /// Resolves a path and checks that it stays below the root, and that no component below the root is a symbolic link.
    ///
    /// # Errors
    /// Fails if the path leads out of the root or through a link.
    pub async fn contain(&self, path: &str, machine: &dyn Machine) -> Result<ContainedPath, ContainmentError> {
        let absolute = self.absolute(path);
        let root = lexical(&self.root);
        let Ok(relative) = absolute.strip_prefix(&root).map(Path::to_owned) else {
            return Err(ContainmentError::Escapes { root: self.shown_root(), path: path.to_owned() });
        };
        // Links above the root belong to the host, such as /tmp on macOS.
        let real_root = machine.real_path(&root).await.unwrap_or_else(|_| root.clone());
        let (mut at, mut real) = (root.clone(), real_root);
        for part in relative.components() {
            at.push(part);
            real.push(part);
            match machine.real_path(&at).await {
                Ok(found) if found != real => return Err(ContainmentError::Symlink { path: at }),
                Ok(_) => {}
                // A dangling link has no real path, but it has a name in its directory.
                Err(_) => {
                    let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else { break };
                    let names = match machine.list(parent).await {
                        Ok(names) => names,
                        Err(error) if error.code == "ENOTDIR" => {
                            return Err(ContainmentError::NotADirectory { path: parent.to_owned() });
                        }
                        Err(_) => break,
                    };
                    if names.iter().any(|known| *known == name.to_string_lossy()) {
                        return Err(ContainmentError::Symlink { path: at });
                    }
                    break;
                }
            }
        }
        Ok(ContainedPath { path: absolute, relative })
    }

    fn shown_root(&self) -> String {
        let shown = self.home.as_ref().and_then(|home| self.root.strip_prefix(home).ok());
        match shown {
            Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
            Some(rest) => format!("~/{}", rest.display()),
            None => self.root.display().to_string(),
        }
    }
}

fn is_odd_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use pinch_machine::LocalMachine;

    use super::*;

    #[tokio::test]
    async fn paths_stay_below_the_root_and_do_not_follow_links() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("work");
        std::fs::create_dir_all(root.join("a")).unwrap();
        std::fs::File::create(root.join("a/file")).unwrap();
        symlink("/etc", root.join("etc")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        symlink("a", root.join("inside")).unwrap();
        let place = PathRoot { home: Some(dir.path().to_owned()), ..PathRoot::new(&root) };
        for (path, expect) in [
            ("", Ok("")),
            ("./a/../a/new/file", Ok("a/new/file")),
            ("..foo/bar", Ok("..foo/bar")),
            ("~/work/a/file", Ok("a/file")),
            ("a\u{a0}b", Ok("a b")),
            ("../work2/x", Err("Path escapes sandbox root (~/work): ../work2/x")),
            ("/etc/passwd", Err("Path escapes sandbox root (~/work): /etc/passwd")),
            ("a/../../x", Err("Path escapes sandbox root (~/work): a/../../x")),
            ("etc/passwd", Err("Symlink not allowed in sandbox path: {root}/etc")),
            ("dangling", Err("Symlink not allowed in sandbox path: {root}/dangling")),
            ("inside/file", Err("Symlink not allowed in sandbox path: {root}/inside")),
            ("a/file/x", Err("Not a directory: {root}/a/file")),
        ] {
            let found = place.contain(path, &LocalMachine).await.map(|found| found.relative.display().to_string());
            let expect = expect.map(str::to_owned).map_err(|text| text.replace("{root}", &root.to_string_lossy()));
            assert_eq!(found.map_err(|error| error.to_string()), expect, "{path}");
        }
    }
}

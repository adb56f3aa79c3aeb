//! Resolving the real paths of many files, with each shared directory resolved once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::collect::ListedFile;

/// Determines which paths lead to the same file.
#[derive(Debug, Default)]
pub(super) struct RealPaths {
    folders: HashMap<PathBuf, PathBuf>,
}

impl RealPaths {
    /// Creates a resolver with the known real path of a directory. If the two are equal, none of its parents is a link either.
    pub(super) fn knowing(folder: &Path, real: &Path) -> Self {
        let known = folder.ancestors().filter(|_| folder == real);
        Self { folders: known.map(|above| (above.to_owned(), above.to_owned())).collect() }
    }

    /// Resolves links like the system does; a path that does not exist is returned unchanged.
    pub(super) fn of(&mut self, path: &Path) -> PathBuf {
        self.of_parts(path, 0)
    }

    /// Resolves a listed file, skipping components known not to be links.
    pub(super) fn of_listed(&mut self, file: &ListedFile) -> PathBuf {
        self.of_parts(&file.path, file.n_plain)
    }

    fn of_parts(&mut self, path: &Path, n_plain: usize) -> PathBuf {
        // With a trailing slash or dot, a link would be followed.
        let path = path.components().as_path();
        let is_plain = || n_plain > 0 || std::fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_symlink());
        match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) if !folder.as_os_str().is_empty() && is_plain() => match n_plain {
                0 | 1 => self.folder(folder).join(name),
                more => self.of_parts(folder, more - 1).join(name),
            },
            _ => std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
        }
    }

    fn folder(&mut self, folder: &Path) -> PathBuf {
        if let Some(real) = self.folders.get(folder) {
            return real.clone();
        }
        let real = self.of(folder);
        self.folders.insert(folder.to_owned(), real.clone());
        real
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn paths_resolve_as_by_the_system() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/f"), "").unwrap();
        for (to, at) in [("a/b", "link"), ("b/f", "a/file"), ("nowhere", "broken"), ("loop", "loop")] {
            std::os::unix::fs::symlink(to, root.join(at)).unwrap();
        }
        let mut paths = RealPaths::default();
        for name in [
            "a/b/f",
            "link/f",
            "a/file",
            "a/../link/f",
            "a/b/.",
            "link/..",
            "link/.",
            "link/",
            "broken",
            "loop/x",
            "none/x",
            "a/b/f",
        ] {
            let path = root.join(name);
            let expected = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            assert_eq!(paths.of(&path), expected, "{name}");
        }
        assert_eq!(paths.of(Path::new("/")), Path::new("/"));
        let real_root = std::fs::canonicalize(root).unwrap();
        for (folder, real) in
            [(real_root.join("a/b"), real_root.join("a/b")), (root.join("link"), real_root.join("a/b"))]
        {
            let mut paths = RealPaths::knowing(&folder, &real);
            assert_eq!(paths.of(&folder.join("f")), real.join("f"));
            assert_eq!(paths.of(&real_root.join("a/file")), real_root.join("a/b/f"));
        }
        assert_eq!(paths.of(Path::new("Cargo.toml")), std::fs::canonicalize("Cargo.toml").unwrap());
    }

    #[cfg(unix)]
    #[test]
    fn listings_are_correct() {
        use super::super::collect::{self, Enter};
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("real/deep/x")).unwrap();
        std::fs::create_dir_all(root.join("in/y")).unwrap();
        for name in ["real/f", "real/deep/x/f", "in/f", "in/y/f"] {
            std::fs::write(root.join(name), "").unwrap();
        }
        for (to, at) in [("in", "way"), ("../real", "in/link"), ("../real/f", "in/file"), ("../../real/f", "in/y/file")]
        {
            std::os::unix::fs::symlink(to, root.join(at)).unwrap();
        }
        let mut listed = Vec::new();
        collect::search(&root.join("way"), &mut |_, _, listing| {
            listed.extend(listing.files.iter().cloned());
            Enter::Yes
        });
        let mut paths = RealPaths::default();
        let actual: Vec<_> = listed
            .iter()
            .map(|file| {
                assert_eq!(paths.of_listed(file), std::fs::canonicalize(&file.path).unwrap());
                (file.path.strip_prefix(root).unwrap().to_str().unwrap(), file.n_plain)
            })
            .collect();
        let expected = [
            ("way/f", 1),
            ("way/file", 0),
            ("way/link/f", 1),
            ("way/link/deep/x/f", 3),
            ("way/y/f", 2),
            ("way/y/file", 0),
        ];
        assert_eq!(actual.iter().copied().collect::<std::collections::BTreeSet<_>>(), expected.into());
    }
}

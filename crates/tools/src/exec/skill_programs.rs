//! Programs that skills name in their metadata: with `autoAllowSkills` they run without asking.

use std::path::{Path, PathBuf};

use pinch_stdx::fs::real_path;

use super::interpreters::is_script_runner;

/// The programs that skills name, each with the file that the `PATH` leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillPrograms(Vec<(String, PathBuf)>);

impl SkillPrograms {
    /// Looks names up in the directories of a `PATH`. A program is left out if it is, or could be replaced by, a file in one of the
    /// `writable` directories, or in a directory that every user may write to, and if it runs scripts: an agent could write one itself.
    pub fn resolve(
        names: &[String],
        path: &[PathBuf],
        writable: &[&Path],
        is_executable: &dyn Fn(&Path) -> bool,
    ) -> Self {
        if names.is_empty() {
            return Self::default();
        }
        let writable: Vec<PathBuf> = writable.iter().map(|dir| real_path(dir)).collect();
        let is_writable = |path: &Path| {
            let real = real_path(path);
            writable.iter().any(|dir| real.starts_with(dir)) || is_writable_by_all(&real)
        };
        // Directories after a writable one do not count: a file in that one would come first.
        let trusted: Vec<&PathBuf> = path.iter().take_while(|dir| dir.is_absolute() && !is_writable(dir)).collect();
        let find = |name: &String| {
            let is_name = !name.is_empty() && !name.contains(['/', '\\']) && !is_script_runner(&name.to_lowercase());
            let found =
                trusted.iter().map(|dir| dir.join(name)).find(|file| is_executable(file)).filter(|_| is_name)?;
            (!is_writable(&found)).then(|| (name.clone(), found))
        };
        Self(names.iter().filter_map(find).collect())
    }

    /// Returns whether a call starts one of them: by its name, which the `PATH` leads to the same file.
    pub fn contains(&self, argv: &[String], program: Option<&Path>) -> bool {
        let (Some(name), Some(program)) = (argv.first(), program) else { return false };
        self.0.iter().any(|(known, file)| known == name && file == program)
    }
}

/// Returns whether every user can write to a file or directory, or replace it.
#[cfg(unix)]
fn is_writable_by_all(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let is_open = |path: &Path, bits: u32| {
        let mode = path.metadata().map_or(0, |meta| meta.permissions().mode());
        mode & bits == 0o002
    };
    // In a sticky directory nobody can replace the directories of others, but everybody can add programs.
    let is_dir = path.is_dir();
    is_open(path, 0o002)
        || path.parent().is_some_and(|parent| !is_dir && is_open(parent, 0o002))
        || path.ancestors().skip(1).any(|above| is_open(above, 0o1002))
}

#[cfg(not(unix))]
fn is_writable_by_all(_: &Path) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn programs_in_and_behind_writable_directories_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(dir.path()).unwrap();
        for path in ["safe/gh", "safe/python3", "safe/bash", "work/bin/gh", "open/gh", "other/tool", "shared/own/gh"] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::fs::set_permissions(root.join("open"), std::fs::Permissions::from_mode(0o777)).unwrap();
        std::fs::set_permissions(root.join("shared"), std::fs::Permissions::from_mode(0o1777)).unwrap();
        symlink(root.join("work/bin"), root.join("link")).unwrap();
        symlink(root.join("work/bin/gh"), root.join("safe/moved")).unwrap();
        let names = ["gh", "moved", "tool", "../other/tool", "absent", "", "python3", "bash"].map(str::to_owned);
        for (path, expect) in [
            (&["safe", "work/bin", "other"][..], "gh"),
            (&["safe", "other"], "gh tool"),
            (&["work/bin", "safe"], ""),
            (&["link", "safe", "other"], ""),
            (&["open", "safe"], ""),
            (&["shared", "safe"], ""),
            (&["shared/own"], "gh"),
            (&["none", "safe", "open", "other"], "gh"),
        ] {
            let path: Vec<PathBuf> = path.iter().map(|part| root.join(part)).collect();
            let found = SkillPrograms::resolve(&names, &path, &[&root.join("work")], &|path| path.is_file());
            let found: Vec<&str> = found.0.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(found.join(" "), expect, "{path:?}");
        }
        let relative = SkillPrograms::resolve(&names, &["bin".into(), root.join("safe")], &[], &|_| true);
        assert_eq!(relative, SkillPrograms::default());
    }

    #[test]
    fn a_call_counts_by_its_name_only() {
        let known = SkillPrograms(vec![("gh".to_owned(), "/usr/bin/gh".into())]);
        let check = |name: &str, program: &str| known.contains(&[name.to_owned()], Some(Path::new(program)));
        assert!(check("gh", "/usr/bin/gh"));
        assert!(!check("gh", "/work/gh") && !check("/usr/bin/gh", "/usr/bin/gh") && !check("hub", "/usr/bin/gh"));
        assert!(!known.contains(&["gh".to_owned()], None) && !known.contains(&[], Some(Path::new("/usr/bin/gh"))));
    }
}

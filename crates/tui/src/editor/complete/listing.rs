//! Lists a single directory, for step-by-step completion of paths.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pinch_coding_agent::extension::Completion;

use crate::text::{SanitizeMode, sanitize};

/// Time limit of a listing: remote directories can be slow.
const PATIENCE: Duration = Duration::from_millis(150);
/// Maximum number of suggested entries.
const MAX_ENTRIES: usize = 1000;

/// Returns whether a name can be displayed and typed.
pub(super) fn is_printable(name: &str) -> bool {
    !name.contains(['\n', '\t']) && sanitize(name, SanitizeMode::Output) == name
}

/// Creates a suggestion of a path; directories end with a slash.
pub(super) fn suggestion(mut path: String, is_dir: bool, description: Option<String>) -> Completion {
    if is_dir {
        path.push('/');
    }
    let end = path.trim_end_matches('/').rfind('/').map_or(0, |at| at + 1);
    let label = Some(path[end..].to_owned());
    Completion { value: path, label, description }
}

/// Splits a path into its directory and the rest: `src/ma` into `src/` and `ma`.
pub(super) fn split_path(typed: &str) -> (&str, &str) {
    match typed.rfind('/') {
        Some(at) => typed.split_at(at + 1),
        None if typed == "~" => (typed, ""),
        None => ("", typed),
    }
}

/// Returns the entries of a directory whose names begin with the typed text, ignoring case: directories first, then by name. The typed
/// prefix of the path is preserved. Blocks for at most 150 ms, unless the system itself hangs.
pub(super) fn list(typed: &str, root: &Path, home: Option<&Path>) -> Vec<Completion> {
    let (folder, name) = split_path(typed);
    let Some(path) = real_folder(folder, root, home) else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let end = Instant::now() + PATIENCE;
    let wanted = name.to_lowercase();
    let mut found: Vec<(bool, String)> = Vec::new();
    for entry in entries.map_while(|entry| entry.ok().filter(|_| Instant::now() < end)) {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !name.to_lowercase().starts_with(&wanted) || !is_printable(&name) {
            continue;
        }
        let is_dir = match entry.file_type() {
            Ok(kind) if kind.is_symlink() => entry.path().is_dir(),
            Ok(kind) => kind.is_dir(),
            Err(_) => false,
        };
        found.push((!is_dir, name));
    }
    found.sort_by_cached_key(|(is_file, name)| (*is_file, name.to_lowercase(), name.clone()));
    found.truncate(MAX_ENTRIES);
    let separator = if folder == "~" { "/" } else { "" };
    let paths = found.into_iter().map(|(is_file, name)| (format!("{folder}{separator}{name}"), !is_file));
    paths.map(|(path, is_dir)| suggestion(path, is_dir, None)).collect()
}

fn real_folder(folder: &str, root: &Path, home: Option<&Path>) -> Option<PathBuf> {
    match folder.strip_prefix('~') {
        Some("") => home.map(Path::to_owned),
        Some(rest) if rest.starts_with('/') => Some(home?.join(rest.trim_start_matches('/'))),
        _ => Some(root.join(folder)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_listed_with_the_typed_path() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("src/nested")).unwrap();
        std::fs::create_dir_all(dir.path().join("home/Music")).unwrap();
        for name in
            ["root/Setup.md", "root/.env", "root/src/main.rs", "root/src/Makefile", "root/sub dir", "home/notes"]
        {
            std::io::Write::write_all(&mut std::fs::File::create(dir.path().join(name)).unwrap(), b"").unwrap();
        }
        let absolute = format!("{}/src/", root.display());
        for (typed, expected) in [
            ("", vec!["src/", ".env", "Setup.md", "sub dir"]),
            ("s", vec!["src/", "Setup.md", "sub dir"]),
            ("src/", vec!["src/nested/", "src/main.rs", "src/Makefile"]),
            ("./src/M", vec!["./src/main.rs", "./src/Makefile"]),
            ("src/../S", vec!["src/../src/", "src/../Setup.md", "src/../sub dir"]),
            ("~", vec!["~/Music/", "~/notes"]),
            ("~/mu", vec!["~/Music/"]),
            ("~other/", vec![]),
            ("missing/", vec![]),
            (&format!("{absolute}ne"), vec![&format!("{absolute}nested/")]),
        ] {
            let found = list(typed, &root, Some(&dir.path().join("home")));
            assert_eq!(found.iter().map(|one| &*one.value).collect::<Vec<_>>(), expected, "{typed:?}");
        }
        assert_eq!(list("src/ne", &root, None)[0].label.as_deref(), Some("nested/"));
        assert_eq!(list("~/", &root, None), []);
    }

    #[test]
    #[cfg(unix)]
    fn names_that_cannot_be_typed_are_omitted() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a\u{1b}[31m", "a\nb", "a\u{202e}b", "ab"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        std::os::unix::fs::symlink(dir.path().join("ab"), dir.path().join("link")).unwrap();
        let found = list("", dir.path(), None);
        assert_eq!(found.iter().map(|one| &*one.value).collect::<Vec<_>>(), ["ab/", "link/"]);
    }
}

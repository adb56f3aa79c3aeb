//! Resolving paths written by a model to paths of the machine.

use std::path::{Component, Path, PathBuf};

use icu_normalizer::DecomposingNormalizerBorrowed;
use percent_encoding::percent_decode_str;

use crate::machine::Machine;

/// The working directory of tools, and the home directory for `~`.
#[derive(Clone, Debug)]
pub struct WorkingDirectory {
    /// The absolute working directory.
    pub cwd: PathBuf,
    /// The home directory, if there is one.
    pub home: Option<PathBuf>,
}

impl WorkingDirectory {
    /// Makes a path absolute as written: expands `~` and `file://` URLs, but keeps a leading `@` and unusual spaces.
    fn literal(&self, path: &str) -> PathBuf {
        match (path.strip_prefix('~'), &self.home) {
            (Some(""), Some(home)) => home.clone(),
            (Some(rest), Some(home)) if rest.starts_with('/') => home.join(&rest[1..]),
            _ => match path_of_url(path) {
                Some(decoded) => join(&self.cwd, &decoded),
                None => join(&self.cwd, path),
            },
        }
    }

    /// Makes a path absolute after dropping a leading `@` and normalizing unusual spaces, both of which models copy from their prompts.
    fn cleaned(&self, path: &str) -> PathBuf {
        let path = path.strip_prefix('@').unwrap_or(path);
        let path: String = path.chars().map(|c| if is_odd_space(c) { ' ' } else { c }).collect();
        self.literal(&path)
    }

    /// Returns the path to write to: the literal one if it exists or needs no cleaning, or else the cleaned one.
    pub async fn resolve(&self, path: &str, machine: &dyn Machine) -> PathBuf {
        let literal = self.literal(path);
        let cleaned = self.cleaned(path);
        if literal == cleaned || machine.stat(&literal).await.is_ok() { literal } else { cleaned }
    }

    /// Returns the path to read from: like [`WorkingDirectory::resolve`], trying macOS spellings of the name if nothing exists there.
    pub async fn resolve_read(&self, path: &str, machine: &dyn Machine) -> PathBuf {
        let plain = self.resolve(path, machine).await;
        if machine.stat(&plain).await.is_ok() {
            return plain;
        }
        let Some(text) = plain.to_str() else { return plain };
        let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize(text).into_owned();
        let curly = text.replace('\'', "\u{2019}");
        let both = decomposed.replace('\'', "\u{2019}");
        for variant in [narrow_meridiem(text), decomposed, curly, both] {
            let variant = PathBuf::from(variant);
            if variant != plain && machine.stat(&variant).await.is_ok() {
                return variant;
            }
        }
        plain
    }
}

/// Returns the path in a `file://` URL; `None` for other texts, and for URLs without a path on this machine.
pub(crate) fn path_of_url(text: &str) -> Option<String> {
    let rest = text.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = rest.split(['?', '#']).next().filter(|path| path.starts_with('/'))?;
    let has_coded_slash = path.as_bytes().windows(3).any(|code| code.eq_ignore_ascii_case(b"%2f"));
    let decoded = percent_decode_str(path).decode_utf8().ok().filter(|_| !has_coded_slash)?;
    // Like every URL, it has no `.` and `..`.
    Some(join(Path::new("/"), decoded.trim_start_matches('/')).to_string_lossy().into_owned())
}

/// Joins paths and resolves `.` and `..` in relative ones, without accessing the disk.
fn join(base: &Path, path: &str) -> PathBuf {
    if Path::new(path).is_absolute() {
        return PathBuf::from(path);
    }
    lexical(&base.join(path))
}

/// Resolves `.` and `..` lexically, without accessing the disk.
pub fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

fn is_odd_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

/// Inserts the narrow space that macOS uses before AM and PM in the names of screenshots.
fn narrow_meridiem(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 4);
    let mut rest = text;
    while let Some(at) = rest.find(' ') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let is_meridiem =
            after.get(..3).is_some_and(|m| m.eq_ignore_ascii_case("am.") || m.eq_ignore_ascii_case("pm."));
        out.push(if is_meridiem { '\u{202f}' } else { ' ' });
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::LocalMachine;

    #[tokio::test]
    async fn urls_of_files_are_paths() {
        let place = WorkingDirectory { cwd: PathBuf::from("/w"), home: None };
        for (given, expect) in [
            ("file:///etc/a%20b%C3%A4.txt", "/etc/a b\u{e4}.txt"),
            ("@file:///etc/a", "/etc/a"),
            ("file://localhost/etc/../a?x#y", "/a"),
            ("file:///", "/"),
            ("file:///a%2Fb", "/w/file:/a%2Fb"),
            ("file:///a%ff", "/w/file:/a%ff"),
            ("file://server/a", "/w/file:/server/a"),
            ("file:/a", "/w/file:/a"),
        ] {
            assert_eq!(place.resolve(given, &LocalMachine).await, PathBuf::from(expect), "{given}");
        }
    }

    #[tokio::test]
    async fn literal_paths_win_over_cleaned_ones() {
        let dir = tempfile::tempdir().unwrap();
        let place = WorkingDirectory { cwd: dir.path().to_owned(), home: Some(PathBuf::from("/home/me")) };
        let at = |path: &'static str| {
            let place = place.clone();
            async move { place.resolve_read(path, &LocalMachine).await }
        };
        assert_eq!(at("@a.txt").await, dir.path().join("a.txt"));
        std::fs::File::create(dir.path().join("@a.txt")).unwrap();
        assert_eq!(at("@a.txt").await, dir.path().join("@a.txt"));
        assert_eq!(at("~/x").await, PathBuf::from("/home/me/x"));
        assert_eq!(at("b/../c\u{a0}d").await, dir.path().join("c d"));
        std::fs::File::create(dir.path().join("Shot 1\u{202f}PM.txt")).unwrap();
        assert_eq!(at("Shot 1 PM.txt").await, dir.path().join("Shot 1\u{202f}PM.txt"));
    }
}

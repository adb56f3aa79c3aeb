//! `MEDIA:` lines: files and URLs to send with a text.

use std::collections::HashSet;
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, PoisonError};

/// Directories whose files a model may name by absolute paths, and the files reported by tools of the session. Clones share the reported
/// files. By default there are none: only URLs and paths that begin with `./` are allowed.
#[derive(Clone, Debug, Default)]
pub struct MediaRoots {
    dirs: Arc<[String]>,
    home: Option<Arc<str>>,
    reported: Arc<Mutex<HashSet<String>>>,
    /// Names of directories in a sandbox, and their locations outside.
    aliases: Arc<[(String, String)]>,
    /// Whether files are checked by their real path.
    is_confined: bool,
}

/// Maximum number of reported files.
const MAX_REPORTED: usize = 1_000;

impl MediaRoots {
    /// Allows files below these directories, which must be absolute. `home` is the expansion of `~`.
    pub fn new(dirs: impl IntoIterator<Item = String>, home: Option<&str>) -> Self {
        let dirs = dirs.into_iter().filter(|dir| Path::new(dir).is_absolute());
        Self { dirs: dirs.collect(), home: home.map(Arc::from), ..Self::default() }
    }

    /// Only allows existing files whose real path is below one of the directories, and names that path; `./` refers to the first one. A model
    /// in a sandbox can create links, change them later and make commands print anything, but must not reach files outside that way.
    #[must_use]
    pub fn confined(mut self) -> Self {
        self.is_confined = true;
        self
    }

    /// Sets the names that directories have in a sandbox, with their locations outside.
    #[must_use]
    pub fn aliases(self, aliases: Vec<(String, String)>) -> Self {
        Self { aliases: aliases.into(), ..self }
    }

    /// Returns the location outside of a path in the sandbox.
    fn outside(&self, path: String) -> String {
        let located = |(shown, real): &(String, String)| {
            let below = Path::new(&path).strip_prefix(shown).ok()?;
            Some(Path::new(real).join(below).to_string_lossy().into_owned())
        };
        self.aliases.iter().find_map(located).unwrap_or(path)
    }

    /// Returns the real path of a file if it may be sent.
    fn inside(&self, target: &str) -> Option<String> {
        let real = Path::new(self.dirs.first()?).join(target).canonicalize().ok()?;
        let mut dirs = self.dirs.iter().filter_map(|dir| Path::new(dir).canonicalize().ok());
        dirs.any(|dir| real.starts_with(dir)).then(|| real.to_string_lossy().into_owned())
    }

    /// Allows a file that a tool made, by its absolute path.
    pub fn report(&self, target: &str) {
        let target = bare(target);
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if Path::new(target).is_absolute() && reported.len() < MAX_REPORTED {
            reported.insert(target.to_owned());
        }
    }

    /// Returns the path, with the home directory expanded, if a model may name it.
    fn allowed(&self, target: &str) -> Option<String> {
        let path = match (target.strip_prefix("~/"), &self.home) {
            (Some(below), Some(home)) => format!("{}/{below}", home.trim_end_matches('/')),
            _ => target.to_owned(),
        };
        let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        if !Path::new(&path).is_absolute() || !Path::new(&path).components().all(plain) {
            return None;
        }
        let path = self.outside(path);
        let is_below =
            self.dirs.iter().any(|dir| Path::new(&path).starts_with(dir) && Path::new(&path) != Path::new(dir));
        let is_known = || self.reported.lock().unwrap_or_else(PoisonError::into_inner).contains(&path);
        (is_below || is_known()).then_some(path)
    }
}

/// A parsed `MEDIA:` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineMedia {
    /// Media to send.
    pub targets: Vec<String>,
    /// Rest of the line, which stays as text.
    pub rest: String,
}

/// The longest target, in bytes.
const MAX_TARGET: usize = 4096;

/// Parses a line whose first word is `MEDIA:`; `None` for other lines and for targets that may not be sent.
pub fn media_line(line: &str, roots: &MediaRoots) -> Option<LineMedia> {
    let payload = line.trim_start().strip_prefix("MEDIA:")?.trim();
    if let Some(inner) = quoted(payload) {
        let target = media_target(inner, true, roots)?;
        return Some(LineMedia { targets: vec![target], rest: String::new() });
    }
    let (mut targets, mut rest) = (Vec::new(), Vec::new());
    for part in payload.split_whitespace() {
        let bare = strip_keyword(part);
        match media_target(bare, false, roots) {
            Some(target) => targets.push(target),
            None if bare.is_empty() => {}
            None => rest.push(part),
        }
    }
    let is_local = ["./", "/", "~/", "file://"].iter().any(|start| payload.starts_with(start));
    if (targets.is_empty() || (targets.len() == 1 && !rest.is_empty() && is_local))
        && let Some(whole) = media_target(payload, true, roots)
    {
        (targets, rest) = (vec![whole], Vec::new());
    }
    (!targets.is_empty()).then(|| LineMedia { targets, rest: rest.join(" ") })
}

/// Strips quotes and brackets around a candidate.
fn bare(candidate: &str) -> &str {
    let target = candidate.trim();
    let target = target.trim_start_matches(['`', '"', '\'', '[', '{', '(']);
    let target = target.trim_end_matches(['`', '"', '\'', '\\', '}', ')', ']', ',']);
    target.strip_prefix("file://").unwrap_or(target)
}

/// Parses one target; `None` if it may not be sent. Absolute paths, the home directory and parent directories are rejected outside the
/// roots, since a model could name any file.
pub fn media_target(candidate: &str, spaces: bool, roots: &MediaRoots) -> Option<String> {
    let target = bare(candidate);
    if target.is_empty() || target.chars().count() > MAX_TARGET || (!spaces && target.contains(char::is_whitespace)) {
        return None;
    }
    let lower = target.get(..8).unwrap_or(target).to_ascii_lowercase();
    let is_address = lower.starts_with("http://") || lower.starts_with("https://");
    let is_address = is_address && !target.contains(char::is_whitespace);
    let is_below = target.starts_with("./") && !target.contains("..");
    if is_address {
        return Some(target.to_owned());
    }
    let allowed = if is_below { Some(target.to_owned()) } else { roots.allowed(target) };
    if roots.is_confined { roots.inside(&allowed?) } else { allowed }
}

fn quoted(payload: &str) -> Option<&str> {
    ['"', '\'', '`'].into_iter().find_map(|quote| {
        let inner = payload.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains(quote)).then_some(inner)
    })
}

fn strip_keyword(part: &str) -> &str {
    match part.get(..6) {
        Some(head) if head.eq_ignore_ascii_case("media:") => &part[6..],
        _ => part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_lines_are_parsed() {
        for (line, targets, rest) in [
            ("MEDIA:https://e.com/a.png", &["https://e.com/a.png"][..], ""),
            ("  MEDIA: https://e.com/a.png words", &["https://e.com/a.png"], "words"),
            ("MEDIA:\"./my pics/a b.png\"", &["./my pics/a b.png"], ""),
            ("MEDIA:./my pics/a b.png", &["./my pics/a b.png"], ""),
            ("MEDIA:file://./a.png", &["./a.png"], ""),
        ] {
            let expect = LineMedia { targets: targets.iter().map(|t| (*t).to_owned()).collect(), rest: rest.into() };
            assert_eq!(media_line(line, &MediaRoots::default()), Some(expect), "{line}");
        }
        for line in [
            "MEDIA:/etc/passwd",
            "MEDIA:~/x",
            "MEDIA:./../x",
            "media:https://e.com/a",
            "see MEDIA:https://e.com/a",
            "MEDIA:",
        ] {
            assert_eq!(media_line(line, &MediaRoots::default()), None, "{line}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_confined_run_sends_no_outside_file_by_link_or_by_output() {
        let dir = tempfile::tempdir().unwrap();
        let (work, secret) = (dir.path().join("work"), dir.path().join("secret"));
        std::fs::create_dir(&work).unwrap();
        for path in [&secret, &work.join("a.png")] {
            std::io::Write::write_all(&mut std::fs::File::create(path).unwrap(), b"x").unwrap();
        }
        std::os::unix::fs::symlink(&secret, work.join("link.png")).unwrap();
        std::os::unix::fs::symlink(dir.path(), work.join("up")).unwrap();
        std::os::unix::fs::symlink("a.png", work.join("inner.png")).unwrap();
        let roots = MediaRoots::new([work.display().to_string()], None);
        let (secret, inside) = (secret.display().to_string(), work.join("a.png").display().to_string());
        roots.report(&secret);
        assert!(media_target(&secret, true, &roots).is_some(), "files reported by tools are allowed unless confined");
        let confined = roots.confined();
        for target in ["./link.png", "./up/secret", "./missing.png", &secret] {
            assert_eq!(media_target(target, true, &confined), None, "{target}");
        }
        let real = work.canonicalize().unwrap().join("a.png").display().to_string();
        // A link could lead elsewhere when the file is sent.
        for target in ["./a.png", "./inner.png", &inside] {
            assert_eq!(media_target(target, true, &confined).as_ref(), Some(&real), "{target}");
        }
        let url = "https://e.com/a.png";
        assert_eq!(media_target(url, true, &confined).as_deref(), Some(url));
        let aliased = confined.aliases(vec![("/workspace".to_owned(), work.display().to_string())]);
        assert_eq!(media_target("/workspace/a.png", true, &aliased), Some(real));
        for target in ["/workspace/link.png", "/workspace/../secret", "/workspaces/a.png", "/workspace/up/secret"] {
            assert_eq!(media_target(target, true, &aliased), None, "{target}");
        }
    }

    #[test]
    fn absolute_paths_are_allowed_below_a_root_and_if_a_tool_reported_them() {
        let roots = MediaRoots::new(["/work/a".to_owned()], Some("/home/u"));
        roots.report("/tmp/shot 1.png");
        roots.report("~/x.png");
        for (target, expect) in [
            ("/work/a/b c.png", Some("/work/a/b c.png")),
            ("/work/a", None),
            ("/work/ab/c.png", None),
            ("/work/a/../c.png", None),
            ("/tmp/shot 1.png", Some("/tmp/shot 1.png")),
            ("/etc/passwd", None),
            ("~/x.png", None),
        ] {
            assert_eq!(media_target(target, true, &roots).as_deref(), expect, "{target}");
        }
        let home = MediaRoots::new(["/home/u/pics".to_owned()], Some("/home/u"));
        assert_eq!(media_target("~/pics/x.png", false, &home).as_deref(), Some("/home/u/pics/x.png"));
    }

    #[test]
    fn the_words_of_a_line_name_media_or_stay_text() {
        let roots = MediaRoots::new(["/work".to_owned()], None);
        for (line, targets, rest) in [
            ("MEDIA:https://e.com/a.png media: ./b.png c", &["https://e.com/a.png", "./b.png"][..], "c"),
            ("MEDIA: MEDIA:./a.png", &["./a.png"], ""),
            ("MEDIA: Media: ./a.png", &["./a.png"], ""),
            ("MEDIA: madam: ./a.png", &["./a.png"], "madam:"),
            ("MEDIA:/work/a b.png", &["/work/a b.png"], ""),
            ("MEDIA:/work/a.png /work/b.png", &["/work/a.png", "/work/b.png"], ""),
            ("MEDIA:/work/a.png see /work/b.png", &["/work/a.png", "/work/b.png"], "see"),
            ("MEDIA:HTTP://e.com/a.png", &["HTTP://e.com/a.png"], ""),
            ("MEDIA:'./a b.png'", &["./a b.png"], ""),
        ] {
            let expect = LineMedia { targets: targets.iter().map(|t| (*t).to_owned()).collect(), rest: rest.into() };
            assert_eq!(media_line(line, &roots), Some(expect), "{line}");
        }
        for line in ["MEDIA: \"./a\" \"./b\" c", "MEDIA:./a\"b", "MEDIA: ftp://e.com/a"] {
            let found = media_line(line, &roots).map(|found| found.targets);
            assert!(found.is_none_or(|found| found.iter().all(|target| target.starts_with("./"))), "{line}");
        }
    }

    #[test]
    fn targets_have_limits() {
        let roots = MediaRoots::default();
        let of_length = |n: usize| format!("./{}", "a".repeat(n - 2));
        assert!(media_target(&of_length(MAX_TARGET), true, &roots).is_some());
        for target in ["", "\"\"", &of_length(MAX_TARGET + 1), "./a/../b", "https://e.com/a b"] {
            assert_eq!(media_target(target, true, &roots), None);
        }
        assert_eq!(media_target("./a b", false, &roots), None);
        for n in 0..=MAX_REPORTED {
            roots.report(&format!("/tmp/{n}"));
        }
        let last = |n: usize| media_target(&format!("/tmp/{n}"), true, &roots).is_some();
        assert!(last(MAX_REPORTED - 1) && !last(MAX_REPORTED));
        let other = MediaRoots::default();
        other.report("tmp/a");
        assert_eq!(media_target("tmp/a", true, &other), None);
    }
}

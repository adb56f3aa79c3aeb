//! Package sources: the npm registry, a git server, or a directory.
//!
//! Sources are split by hand: `user@host:path` and `host/path` are not URLs, a reference may follow in pi's syntax, and git receives the
//! rest exactly as written.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::tools::path::{lexical, path_of_url};

/// A package source in settings and on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackageSource {
    /// `npm:name`, `npm:name@version`.
    Npm(NpmSource),
    /// `git:host/path`, `git:user@host:path`, `https://host/path`; a branch, tag or commit may follow an `@`.
    Git(GitSource),
    /// A local path: anything else.
    Local(String),
}

/// A package of the npm registry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NpmSource {
    /// Name, including its scope.
    pub name: String,
    /// The requested version or tag; such a package is not updated.
    pub version: Option<String>,
}

/// A git repository.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GitSource {
    /// The URL passed to git.
    pub repo: String,
    /// Host name of the server.
    pub host: String,
    /// Path on the server: two or more components.
    pub path: String,
    /// The requested branch, tag or commit; such a package is not updated.
    pub reference: Option<String>,
}

/// Why a source was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The npm package name is invalid.
    #[error("Not an npm package: {}", without_passwords(.0))]
    Npm(String),
    /// The repository is invalid, or its directory would be outside ours.
    #[error("Not a usable git source: {}", without_passwords(.0))]
    Git(String),
}

impl PackageSource {
    /// Parses a source.
    ///
    /// # Errors
    /// Fails for invalid npm and git sources, and for unsafe ones: see [`GitSource::parse`].
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let text = text.trim();
        if let Some(spec) = text.strip_prefix("npm:") {
            return NpmSource::parse(spec).map(Self::Npm).ok_or_else(|| SourceError::Npm(text.to_owned()));
        }
        if !text.starts_with("git:") && !has_scheme(text) {
            return Ok(Self::Local(text.to_owned()));
        }
        GitSource::parse(text).map(Self::Git).ok_or_else(|| SourceError::Git(text.to_owned()))
    }

    /// Returns what identifies a package across sources: its name, repository or directory. Paths are relative to `base`.
    pub fn identity(&self, base: &Path, home: Option<&Path>) -> String {
        match self {
            Self::Npm(npm) => format!("npm:{}", npm.name),
            Self::Git(git) => format!("git:{}/{}", git.host, git.path),
            Self::Local(path) => format!("local:{}", absolute(path, base, home).display()),
        }
    }

    /// Returns whether a specific version is requested.
    pub fn is_pinned(&self) -> bool {
        match self {
            Self::Npm(npm) => npm.version.is_some(),
            Self::Git(git) => git.reference.is_some(),
            Self::Local(_) => false,
        }
    }
}

impl NpmSource {
    /// Parses what follows `npm:`. Returns `None` for invalid names.
    pub fn parse(spec: &str) -> Option<Self> {
        let spec = spec.trim();
        let at = spec.char_indices().skip(1).find(|(_, c)| *c == '@').map(|(at, _)| at);
        let (name, version) = at.map_or((spec, None), |at| (&spec[..at], Some(&spec[at + 1..])));
        let bare = match name.strip_prefix('@') {
            Some(scoped) => {
                let (scope, bare) = scoped.split_once('/')?;
                is_npm_name(scope).then_some(bare)?
            }
            None => name,
        };
        let is_version = |version: &str| {
            !version.is_empty() && !version.starts_with('-') && !version.contains(|c: char| c.is_control() || c == '/')
        };
        (is_npm_name(bare) && version.is_none_or(is_version))
            .then(|| Self { name: name.to_owned(), version: version.map(str::to_owned) })
    }
}

fn is_npm_name(name: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
    !name.is_empty() && !name.starts_with(['.', '-']) && name.bytes().all(is_fine)
}

/// Schemes of repository URLs.
const SCHEMES: [&str; 4] = ["https://", "http://", "ssh://", "git://"];

/// Removes passwords from URLs in a text; a lone user name before an `@` may be a token, except in `ssh:`.
pub fn without_passwords(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        let end = after.find(['/', '?', '#', '\'', '"', '<', '>']).unwrap_or(after.len());
        let end = after[..end].find(char::is_whitespace).unwrap_or(end);
        shown.push_str(before);
        rest = after;
        if let Some(at) = after[..end].rfind('@') {
            let user = after[..at].split_once(':').map(|(user, _)| user);
            match user {
                Some(user) => shown.extend([user, ":***"]),
                None if before.to_ascii_lowercase().ends_with("ssh://") => shown.push_str(&after[..at]),
                None => shown.push_str("***"),
            }
            rest = &after[at..];
        }
    }
    if shown.is_empty() {
        return Cow::Borrowed(text);
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// Returns whether a text is a repository URL.
fn has_scheme(text: &str) -> bool {
    scheme_of(text).is_some()
}

fn scheme_of(text: &str) -> Option<&'static str> {
    SCHEMES.into_iter().find(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
}

impl GitSource {
    /// Parses a git source. Returns `None` if it is not one, or if its host, a path component or its reference could mislead a program:
    /// `..`, names that begin with a hyphen, control characters, backslashes, `.git`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        // `git://` is a scheme, not the prefix.
        let address = if has_scheme(text) { text } else { text.strip_prefix("git:")?.trim() };
        let parts = match scheme_of(address) {
            Some(scheme) => UrlParts::of_url(address, scheme)?,
            None => UrlParts::of_scp(address).or_else(|| UrlParts::of_short_form(address))?,
        };
        let host = parts.host.to_ascii_lowercase();
        let path = parts.path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
        let is_safe = is_host(&host)
            && path.split('/').count() >= 2
            && path.split('/').all(is_path_name)
            && parts.reference.as_deref().is_none_or(is_reference)
            && !parts.repo.contains(|c: char| c.is_control() || c.is_whitespace());
        is_safe.then(|| Self { path: path.to_owned(), host, repo: parts.repo, reference: parts.reference })
    }
}

/// The parts of a URL.
struct UrlParts<'a> {
    repo: String,
    host: &'a str,
    path: &'a str,
    reference: Option<String>,
}

impl<'a> UrlParts<'a> {
    /// `https://host/path@ref`.
    fn of_url(address: &'a str, scheme: &str) -> Option<Self> {
        let (server, path) = address[scheme.len()..].split_once('/')?;
        let (path, reference) = split_reference(path);
        let host = server.rsplit_once('@').map_or(server, |(_, host)| host);
        let host = match host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => host,
        };
        let repo = format!("{}{server}/{}", &address[..scheme.len()], path.trim_end_matches('/'));
        Some(Self { repo, host, path, reference })
    }

    /// `user@host:path@ref`.
    fn of_scp(address: &'a str) -> Option<Self> {
        let (server, path) = address.split_once(':')?;
        let (user, host) = server.split_once('@')?;
        let is_user = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if user.is_empty() || user.starts_with('-') || !user.bytes().all(is_user) {
            return None;
        }
        let (path, reference) = split_reference(path);
        Some(Self { repo: format!("{server}:{path}"), host, path, reference })
    }

    /// `host/path@ref`; if the first component cannot be a host, it is an owner on GitHub.
    fn of_short_form(address: &'a str) -> Option<Self> {
        let (first, rest) = address.split_once('/')?;
        let (whole, _) = split_reference(address);
        let (path, reference) = split_reference(rest);
        match first.contains('.') || first == "localhost" {
            true => {
                Some(Self { repo: format!("https://{}", whole.trim_end_matches('/')), host: first, path, reference })
            }
            false if path.contains('/') => None,
            false => {
                Some(Self { repo: format!("https://github.com/{whole}"), host: "github.com", path: whole, reference })
            }
        }
    }
}

/// Splits the reference off a path: the part after the first `@` or `#`.
fn split_reference(path: &str) -> (&str, Option<String>) {
    match path.find(['@', '#']) {
        Some(at) if at > 0 && at + 1 < path.len() => (&path[..at], Some(path[at + 1..].to_owned())),
        _ => (path, None),
    }
}

fn is_host(host: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    !host.is_empty() && !host.starts_with(['.', '-']) && !host.contains("..") && host.bytes().all(is_fine)
}

fn is_path_name(name: &str) -> bool {
    let is_bad = |c: char| c.is_control() || c.is_whitespace() || "\\:*?\"<>|@#".contains(c);
    !name.is_empty()
        && name != "."
        && name != ".."
        && !name.starts_with('-')
        && !name.eq_ignore_ascii_case(".git")
        && !name.contains(is_bad)
}

fn is_reference(reference: &str) -> bool {
    let is_bad = |c: char| c.is_control() || c.is_whitespace() || "\\:*?~^[".contains(c);
    !reference.is_empty() && !reference.starts_with('-') && !reference.contains("..") && !reference.contains(is_bad)
}

/// Makes a user's path absolute lexically: `~` is the home directory, `.` and `..` are resolved.
pub fn absolute(path: &str, base: &Path, home: Option<&Path>) -> PathBuf {
    let given = Path::new(path.trim());
    let given = match (given.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => base.join(given),
    };
    lexical(&given)
}

/// Returns the path that a client means: `~` is the home directory, and `file:` URLs are understood.
pub(crate) fn of_client(path: &str, home: Option<&Path>) -> PathBuf {
    if let Some(of_url) = path_of_url(path) {
        return of_url.into();
    }
    match (Path::new(path).strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.into(),
    }
}

/// Returns an absolute path relative to another directory, with `/` as separator.
pub(crate) fn relative(path: &Path, base: &Path) -> String {
    let (path, base): (Vec<_>, Vec<_>) = (path.components().collect(), base.components().collect());
    let n_common = path.iter().zip(&base).take_while(|(a, b)| a == b).count();
    let up = base[n_common..].iter().map(|_| "..".into());
    let down = path[n_common..].iter().map(|name| name.as_os_str().to_string_lossy());
    let names: Vec<std::borrow::Cow<'_, str>> = up.chain(down).collect();
    if names.is_empty() { ".".to_owned() } else { names.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_urls_are_not_shown() {
        for (text, shown) in [
            ("https://me:secret@host/a/b@v1", "https://me:***@host/a/b@v1"),
            ("fatal: 'http://tok@en@host:80/x' and https://h/y", "fatal: 'http://***@host:80/x' and https://h/y"),
            ("ssh://git@host/a/b", "ssh://git@host/a/b"),
            ("git:git@host:a/b", "git:git@host:a/b"),
            ("npm:@scope/name", "npm:@scope/name"),
        ] {
            assert_eq!(without_passwords(text), shown);
        }
    }

    #[track_caller]
    fn git(text: &str, repo: &str, host: &str, path: &str, reference: Option<&str>) {
        let expected = GitSource {
            repo: repo.into(),
            host: host.into(),
            path: path.into(),
            reference: reference.map(str::to_owned),
        };
        assert_eq!(GitSource::parse(text), Some(expected));
    }

    #[test]
    fn repositories_are_parsed() {
        git("git:github.com/a/b", "https://github.com/a/b", "github.com", "a/b", None);
        git("https://GitHub.com/a/b.git@v1", "https://GitHub.com/a/b.git", "github.com", "a/b", Some("v1"));
        git("https://github.com/a/b#v1", "https://github.com/a/b", "github.com", "a/b", Some("v1"));
        git("ssh://git@h.org:22/a/b/c/", "ssh://git@h.org:22/a/b/c", "h.org", "a/b/c", None);
        git("git://h.org/a/b", "git://h.org/a/b", "h.org", "a/b", None);
        git("git:git@h.org:a/b@feature/x", "git@h.org:a/b", "h.org", "a/b", Some("feature/x"));
        git("git:a/b@1", "https://github.com/a/b", "github.com", "a/b", Some("1"));
        git("git:localhost/a/b", "https://localhost/a/b", "localhost", "a/b", None);
    }

    #[test]
    fn sources_that_could_escape_their_root_are_rejected() {
        for text in [
            "git:github.com/a/..",
            "git:github.com/../a/b",
            "https://h.org/a/../../b",
            "git:h.org/a/.git",
            "git:-h.org/a/b",
            "git:git@-oProxy:a/b",
            "git:-u@h.org:a/b",
            "https://h.org/a\\b/c",
            "git:h.org/-a/b",
            "git:h.org/a/b@-x",
            "git:h.org/a/b@a..b",
            "https://../a/b",
            "https://h.org/a//b",
            "git:h.org/a",
            "git:a",
            "git:a/b/c",
            "https://[::1]/a/b",
            "git:h.org/a/b c",
            "https://h.org/a/b\u{7}",
            "git@h.org:a/b",
            "./a",
            "npm:a",
        ] {
            assert_eq!(GitSource::parse(text), None, "{text}");
        }
        assert!(PackageSource::parse("git:h.org/..").is_err());
        assert_eq!(PackageSource::parse("git@h.org:a/b"), Ok(PackageSource::Local("git@h.org:a/b".into())));
    }

    #[test]
    fn npm_packages_are_parsed() {
        let npm = |spec| NpmSource::parse(spec).map(|npm| (npm.name, npm.version));
        assert_eq!(npm("@a/b@1.0.0"), Some(("@a/b".into(), Some("1.0.0".into()))));
        assert_eq!(npm("b"), Some(("b".into(), None)));
        for spec in ["", "@", "@a", "../x", "a/b", "--prefix", "@a/../b", "a@", "a@-x", "a@../b", "a b"] {
            assert_eq!(npm(spec), None, "{spec}");
        }
    }

    #[test]
    fn identities_and_paths_are_normalized() {
        let id = |text: &str| PackageSource::parse(text).unwrap().identity(Path::new("/w/x"), Some(Path::new("/h")));
        assert_eq!(id("npm:a@1"), "npm:a");
        assert_eq!(id("git:git@github.com:a/b@v1"), id("https://github.com/a/b"));
        assert_eq!((id("../y/./z").as_str(), id("~/z").as_str()), ("local:/w/y/z", "local:/h/z"));
    }

    #[cfg(feature = "packages")]
    #[test]
    fn relative_paths_lead_from_one_directory_to_another() {
        assert_eq!(relative(Path::new("/a/b/c"), Path::new("/a/d/e")), "../../b/c");
        assert_eq!(relative(Path::new("/a"), Path::new("/a")), ".");
    }
}

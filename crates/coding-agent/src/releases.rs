//! Release notes, and checking for a later version.

use std::time::Duration;

use futures::future::BoxFuture;
use pinch_llm::http::{HttpClient, url_parts};
use pinch_stdx::host::Host;

use crate::web::{json_answer, json_request};

/// Timeout of a version check.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum bytes of its response.
const MAX_BYTES: usize = 64 * 1024;

/// A version's major, minor and patch numbers. Pre-releases count as the version they lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReleaseVersion([u64; 3]);

impl ReleaseVersion {
    /// Parses a version such as `1.2.3`, `v1.2.3` or `1.2.3-rc.1`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let mut rest = text.strip_prefix('v').unwrap_or(text);
        let mut numbers = [0; 3];
        for (at, number) in numbers.iter_mut().enumerate() {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            *number = rest[..end].parse().ok()?;
            rest = &rest[end..];
            if at < 2 {
                rest = rest.strip_prefix('.')?;
            }
        }
        Some(Self(numbers))
    }
}

/// A changelog section about one version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReleaseNotes {
    /// The version.
    pub version: ReleaseVersion,
    /// The section in Markdown, including its heading.
    pub text: String,
}

/// Returns the sections of a changelog in order, each starting with `## [1.2.3] …`. Sections without a version, such as unreleased changes,
/// are skipped.
pub fn notes(changelog: &str) -> Vec<ReleaseNotes> {
    let mut sections: Vec<(Option<ReleaseVersion>, String)> = Vec::new();
    for line in changelog.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            let title = title.trim_start();
            sections.push((ReleaseVersion::parse(title.strip_prefix('[').unwrap_or(title)), String::new()));
        }
        if let Some((_, text)) = sections.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    let of = |(version, text): (Option<ReleaseVersion>, String)| {
        Some(ReleaseNotes { version: version?, text: text.trim().to_owned() })
    };
    sections.into_iter().filter_map(of).collect()
}

/// Returns the sections of versions after `last` up to `now`, in changelog order. Empty if either version is invalid.
pub fn notes_since(changelog: &str, last: &str, now: &str) -> Vec<ReleaseNotes> {
    let (Some(last), Some(now)) = (ReleaseVersion::parse(last), ReleaseVersion::parse(now)) else { return Vec::new() };
    let mut notes = notes(changelog);
    notes.retain(|one| last < one.version && one.version <= now);
    notes
}

/// The latest version according to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LatestRelease {
    /// The version, as written by the server.
    pub version: String,
    /// The server's note in Markdown.
    pub note: Option<String>,
}

/// Asks a server for the latest version. Returns `None` if it is not later than `now`, or if there is no valid answer within 10 s. The
/// answer is a JSON object with `version` and optionally `note`. Only https URLs and URLs of this machine are contacted.
pub fn later_release<'a>(url: &'a str, now: &'a str, host: &'a Host) -> BoxFuture<'a, Option<LatestRelease>> {
    Box::pin(async move {
        if !url_parts::is_confidential(url) {
            return None;
        }
        let answer = json_answer(&HttpClient::new(), json_request(url), host, PATIENCE, MAX_BYTES).await?;
        let text = |name: &str| {
            let text = answer.get(name)?.as_str()?.trim();
            (!text.is_empty()).then(|| text.to_owned())
        };
        let version = text("version")?;
        let is_later = ReleaseVersion::parse(&version)? > ReleaseVersion::parse(now)?;
        is_later.then(|| LatestRelease { version, note: text("note") })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str = "# Changelog\n\n## [Unreleased]\n\n- soon\n\n## [0.10.0] - 2026-12-01\n\n- ten\n\n## 0.9.1\n- nine\n\n## Older\n- x\n";

    #[test]
    fn sections_have_versions_in_changelog_order() {
        let found = notes(CHANGELOG);
        let texts: Vec<&str> = found.iter().map(|one| &*one.text).collect();
        assert_eq!(texts, ["## [0.10.0] - 2026-12-01\n\n- ten", "## 0.9.1\n- nine"]);
        assert_eq!(notes(""), []);
    }

    #[test]
    fn only_versions_after_the_last_are_new() {
        let since = |last: &str, now: &str| notes_since(CHANGELOG, last, now).len();
        assert_eq!(since("0.9.0", "0.10.0"), 2);
        assert_eq!(since("0.9.1", "v0.10.0"), 1);
        assert_eq!(since("0.10.0-rc.1", "0.10.0"), 0, "a pre-release has shown them");
        assert_eq!(since("0.9.0", "0.9.5"), 1, "what comes later is not there yet");
        assert_eq!(since("1.5.2", "0.10.0"), 0);
        assert_eq!(since("none", "0.10.0"), 0);
    }

    #[test]
    fn versions_are_parsed_leniently() {
        for (text, expected) in [
            ("1.2.3", Some([1, 2, 3])),
            (" v1.20.3-rc.1 ", Some([1, 20, 3])),
            ("1.2.3] - 2026", Some([1, 2, 3])),
            ("1.2", None),
            ("Unreleased]", None),
            ("", None),
        ] {
            assert_eq!(ReleaseVersion::parse(text), expected.map(ReleaseVersion), "{text:?}");
        }
    }
}

//! What is new in a version of the program, and whether there is a later one.

use std::time::Duration;

use pinch_llm::http::{HttpClient, url_parts};
use pinch_stdx::host::Host;

use crate::web::{json_answer, json_request};

/// How long a server may take to name the latest version.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of its answer at most.
const MAX_BYTES: usize = 64 * 1024;

/// The numbers of a version: major, minor and patch. Pre-releases count as the version they lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReleaseVersion([u64; 3]);

impl ReleaseVersion {
    /// Reads a version, such as `1.2.3`, `v1.2.3` or `1.2.3-rc.1`.
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

/// The section of a changelog about one version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReleaseNotes {
    /// The version.
    pub version: ReleaseVersion,
    /// The section with its heading, in Markdown.
    pub text: String,
}

/// The sections of a changelog in its order: what stands below `## [1.2.3] …`. Sections without a version, such as unreleased changes, are left out.
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

/// The sections of versions behind `last` up to `now`, in the order of the changelog. Without a version that can be read there are none.
pub fn notes_since(changelog: &str, last: &str, now: &str) -> Vec<ReleaseNotes> {
    let (Some(last), Some(now)) = (ReleaseVersion::parse(last), ReleaseVersion::parse(now)) else { return Vec::new() };
    let mut notes = notes(changelog);
    notes.retain(|one| last < one.version && one.version <= now);
    notes
}

/// A version that a server names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LatestRelease {
    /// The version, as the server writes it.
    pub version: String,
    /// What the server says of it, in Markdown.
    pub note: Option<String>,
}

/// Asks a server for the latest version; `None` where it is no later one than `now`, and where there is no usable answer within 10 s. The answer is a
/// JSON object with `version` and perhaps `note`. Only https URLs and those of this machine are asked.
pub async fn later_release(url: &str, now: &str, host: &Host) -> Option<LatestRelease> {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str = "# Changelog\n\n## [Unreleased]\n\n- soon\n\n## [0.10.0] - 2026-12-01\n\n- ten\n\n## 0.9.1\n- nine\n\n## Older\n- x\n";

    #[test]
    fn sections_have_versions_in_the_order_of_the_changelog() {
        let found = notes(CHANGELOG);
        let texts: Vec<&str> = found.iter().map(|one| &*one.text).collect();
        assert_eq!(texts, ["## [0.10.0] - 2026-12-01\n\n- ten", "## 0.9.1\n- nine"]);
        assert_eq!(notes(""), []);
    }

    #[test]
    fn only_what_came_since_the_last_version_is_new() {
        let since = |last: &str, now: &str| notes_since(CHANGELOG, last, now).len();
        assert_eq!(since("0.9.0", "0.10.0"), 2);
        assert_eq!(since("0.9.1", "v0.10.0"), 1);
        assert_eq!(since("0.10.0-rc.1", "0.10.0"), 0, "a pre-release has shown them");
        assert_eq!(since("0.9.0", "0.9.5"), 1, "what comes later is not there yet");
        assert_eq!(since("1.5.2", "0.10.0"), 0);
        assert_eq!(since("none", "0.10.0"), 0);
    }

    #[test]
    fn versions_are_read_leniently() {
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

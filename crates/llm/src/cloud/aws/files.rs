//! `~/.aws/config` and `~/.aws/credentials`.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use pinch_stdx::host::Env;

/// Maximum bytes of a file that are read.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

type ProfileSection = HashMap<String, String>;

/// The contents of the user's files.
#[derive(Debug, Default)]
pub(super) struct ProfileFiles {
    config_path: Option<PathBuf>,
    credentials_path: Option<PathBuf>,
    /// Profiles by name; the credentials file takes precedence over the config file.
    profiles: HashMap<String, ProfileSection>,
    sessions: HashMap<String, ProfileSection>,
}

impl ProfileFiles {
    /// Reads both files; a missing one counts as empty.
    ///
    /// # Errors
    /// Returns an error that names the file if one cannot be read.
    pub(super) async fn read(env: &Env, home: Option<&Path>) -> Result<Self, String> {
        let path = |variable: &str, name: &str| {
            let own = || home.map(|home| home.join(".aws").join(name));
            env.non_empty(variable).map(|path| expand(path, home)).or_else(own)
        };
        let config_path = path("AWS_CONFIG_FILE", "config");
        let credentials_path = path("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        let mut files = Self { config_path, credentials_path, ..Self::default() };
        if let Some(path) = &files.config_path {
            for (name, section) in sections(&read_file(path).await?) {
                let name = name.split_whitespace().collect::<Vec<_>>();
                match name[..] {
                    ["default"] => files.profiles.entry("default".into()).or_default().extend(section),
                    ["profile", name] => files.profiles.entry(unquoted(name)).or_default().extend(section),
                    ["sso-session", name] => files.sessions.entry(unquoted(name)).or_default().extend(section),
                    _ => {}
                }
            }
        }
        if let Some(path) = &files.credentials_path {
            for (name, section) in sections(&read_file(path).await?) {
                let profile = files.profiles.entry(name).or_default();
                // Keys from one file must not be combined with a token from the other.
                if section.contains_key("aws_access_key_id") {
                    profile.remove("aws_session_token");
                }
                profile.extend(section);
            }
        }
        Ok(files)
    }

    pub(super) fn has(&self, profile: &str) -> bool {
        self.profiles.contains_key(profile)
    }

    /// Returns a non-empty value of a profile.
    pub(super) fn value(&self, profile: &str, name: &str) -> Option<&str> {
        self.profiles.get(profile)?.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns a value of a login shared by profiles.
    pub(super) fn session_value(&self, session: &str, name: &str) -> Option<&str> {
        self.sessions.get(session)?.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns the paths of the files, for error texts.
    pub(super) fn names(&self) -> String {
        let paths = self.config_path.iter().chain(&self.credentials_path);
        paths.map(|path| path.display().to_string()).collect::<Vec<_>>().join(" or ")
    }
}

/// Expands a leading `~/` to the home directory.
pub(super) fn expand(path: &str, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => path.into(),
    }
}

/// Reads a file off the runtime's threads; returns an empty text if it does not exist.
pub(super) async fn read_file(path: &Path) -> Result<String, String> {
    let owned = path.to_owned();
    let reading = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        std::fs::File::open(owned)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    match reading.await.unwrap_or_else(|panic| Err(io::Error::other(panic))) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(String::new())
        }
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

/// Parses the sections of a file. Indented lines belong to the value above them, which is not needed here.
fn sections(text: &str) -> Vec<(String, ProfileSection)> {
    let mut sections: Vec<(String, ProfileSection)> = Vec::new();
    for line in text.trim_start_matches('\u{FEFF}').lines() {
        let is_comment = line.trim_start().starts_with(['#', ';']);
        if is_comment || line.trim().is_empty() || line.starts_with([' ', '\t']) {
            continue;
        }
        if let Some(inside) = line.strip_prefix('[') {
            let name = inside.split(']').next().unwrap_or(inside).trim();
            sections.push((name.to_owned(), ProfileSection::new()));
        } else if let (Some((name, value)), Some((_, section))) = (line.split_once('='), sections.last_mut()) {
            section.insert(name.trim().to_ascii_lowercase(), without_comment(value).trim().to_owned());
        }
    }
    sections
}

/// Removes a comment, which starts after a space.
fn without_comment(value: &str) -> &str {
    let at = [" #", " ;", "\t#", "\t;"].iter().filter_map(|mark| value.find(mark)).min();
    at.map_or(value, |at| &value[..at])
}

fn unquoted(name: &str) -> String {
    name.trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn two_files_make_one_profile() {
        let dir = tempfile::tempdir().unwrap();
        let aws = dir.path().join(".aws");
        std::fs::create_dir(&aws).unwrap();
        let config = "\u{FEFF}# top\n[default]\nregion = us-west-2 # here\ns3 =\n  region = nested\n[profile \"a\"]\n\
                      Region=eu-west-1\naws_access_key_id = old\naws_session_token = stale\n[sso-session s]\nsso_region = x\n\
                      [broken\nno equals\n";
        let credentials = "stray = 1\n[a]\naws_access_key_id=AK\naws_secret_access_key = a#b;c\n";
        std::fs::write(aws.join("config"), config).unwrap();
        std::fs::write(aws.join("credentials"), credentials).unwrap();
        let files = ProfileFiles::read(&Env::default(), Some(dir.path())).await.unwrap();
        let value = |profile: &str, name: &str| files.value(profile, name).map(str::to_owned);
        assert_eq!(value("default", "region").as_deref(), Some("us-west-2"));
        assert_eq!(value("a", "region").as_deref(), Some("eu-west-1"));
        assert_eq!(value("a", "aws_access_key_id").as_deref(), Some("AK"));
        assert_eq!(value("a", "aws_secret_access_key").as_deref(), Some("a#b;c"));
        assert_eq!(value("a", "aws_session_token"), None);
        assert_eq!(files.session_value("s", "sso_region"), Some("x"));
        assert!(!files.has("b"));
    }

    #[tokio::test]
    async fn missing_files_count_as_empty() {
        let env: Env = [("AWS_CONFIG_FILE", "/nowhere/config")].into_iter().collect();
        assert!(!ProfileFiles::read(&env, None).await.unwrap().has("default"));
    }
}

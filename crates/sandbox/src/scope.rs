//! Which sessions are sandboxed, which of them share a sandbox, and how sandboxes are named.

use std::path::{Path, PathBuf};

use sha1::{Digest as _, Sha1};

/// Which sessions are sandboxed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SandboxMode {
    /// None.
    #[default]
    Off,
    /// All except the agent's main session.
    NonMain,
    /// All.
    All,
}

impl SandboxMode {
    /// Parses the value used in configurations.
    pub fn parse(word: &str) -> Option<Self> {
        match word.trim() {
            "off" => Some(Self::Off),
            "non-main" => Some(Self::NonMain),
            "all" => Some(Self::All),
            _ => None,
        }
    }

    /// Returns the value used in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::NonMain => "non-main",
            Self::All => "all",
        }
    }
}

/// Which sessions share a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SandboxScope {
    /// Each session has its own.
    Session,
    /// All sessions of an agent.
    #[default]
    Agent,
    /// All sessions.
    Shared,
}

impl SandboxScope {
    /// Parses the value used in configurations.
    pub fn parse(word: &str) -> Option<Self> {
        match word.trim() {
            "session" => Some(Self::Session),
            "agent" => Some(Self::Agent),
            "shared" => Some(Self::Shared),
            _ => None,
        }
    }

    /// Returns the value used in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Agent => "agent",
            Self::Shared => "shared",
        }
    }

    /// Returns the key common to all sessions that share a sandbox. `session_key` must be canonical.
    pub fn key(self, session_key: &str) -> String {
        let session_key = session_key.trim();
        match self {
            Self::Shared => "shared".to_owned(),
            Self::Session if session_key.is_empty() => "main".to_owned(),
            Self::Session => session_key.to_owned(),
            Self::Agent => format!("agent:{}", agent_of(session_key)),
        }
    }

    /// Returns the directory below `root` for the workspace copy of a [`SandboxScope::key`].
    pub fn workspace(self, root: &Path, scope_key: &str) -> PathBuf {
        match self {
            Self::Shared => root.to_owned(),
            Self::Session | Self::Agent => root.join(slug(scope_key)),
        }
    }

    /// Returns the container name for a [`SandboxScope::key`].
    pub fn container_name(self, prefix: &str, scope_key: &str) -> String {
        let name = match self {
            Self::Shared => format!("{prefix}shared"),
            Self::Session | Self::Agent => format!("{prefix}{}", slug(scope_key)),
        };
        name.chars().take(MAX_NAME).collect()
    }
}

/// Access to a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathAccess {
    /// Files may be read and executed.
    Read,
    /// Files may be changed as well.
    Write,
}

/// How much of the agent's workspace a sandbox sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkspaceAccess {
    /// Nothing: it works in a copy.
    #[default]
    None,
    /// It works in a copy, with the workspace readable next to it.
    ReadOnly,
    /// It works in the workspace.
    ReadWrite,
}

impl WorkspaceAccess {
    /// Parses the value used in configurations.
    pub fn parse(word: &str) -> Option<Self> {
        match word.trim() {
            "none" => Some(Self::None),
            "ro" => Some(Self::ReadOnly),
            "rw" => Some(Self::ReadWrite),
            _ => None,
        }
    }

    /// Returns the value used in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ReadOnly => "ro",
            Self::ReadWrite => "rw",
        }
    }
}

/// Maximum characters of a container's name.
const MAX_NAME: usize = 63;
/// Maximum characters of a slug before its hash.
const MAX_SLUG: usize = 32;

/// Returns whether a session is sandboxed. Keys must be canonical; runs without a session are not sandboxed.
pub fn is_sandboxed(mode: SandboxMode, session_key: Option<&str>, main_key: &str) -> bool {
    let Some(session_key) = session_key.map(str::trim).filter(|key| !key.is_empty()) else { return false };
    match mode {
        SandboxMode::Off => false,
        SandboxMode::All => true,
        SandboxMode::NonMain => session_key != main_key.trim(),
    }
}

/// Returns a name for files and containers: the readable part of a key, and a hash of the whole key.
pub fn slug(key: &str) -> String {
    let key = key.trim();
    let key = if key.is_empty() { "session" } else { key };
    let mut readable = String::new();
    let mut is_replacing = false;
    for c in key.to_lowercase().chars() {
        let is_kept = matches!(c, 'a'..='z' | '0'..='9' | '.' | '_' | '-');
        if is_kept {
            readable.push(c);
        } else if !is_replacing {
            readable.push('-');
        }
        is_replacing = !is_kept;
    }
    let readable: String = readable.trim_matches('-').chars().take(MAX_SLUG).collect();
    let readable = if readable.is_empty() { "session" } else { &readable };
    let hash = Sha1::digest(key.as_bytes());
    let hash: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{readable}-{hash}")
}

/// Returns the agent of a canonical key.
fn agent_of(session_key: &str) -> &str {
    let agent = session_key.strip_prefix("agent:").and_then(|rest| rest.split_once(':')).map(|(agent, _)| agent);
    agent.filter(|agent| !agent.is_empty()).unwrap_or("main")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_share_a_sandbox_according_to_its_scope() {
        let key = "agent:ops:telegram:group:1";
        for (scope, expect) in [
            (SandboxScope::Session, "agent:ops:telegram:group:1"),
            (SandboxScope::Agent, "agent:ops"),
            (SandboxScope::Shared, "shared"),
        ] {
            assert_eq!(scope.key(key), expect);
        }
        assert_eq!(
            (SandboxScope::Session.key(" "), SandboxScope::Agent.key("odd")),
            ("main".into(), "agent:main".into())
        );
    }

    #[test]
    fn names_are_safe_and_differ_for_different_keys() {
        assert_eq!(slug("agent:main:::x"), format!("agent-main-x-{}", &slug("agent:main:::x")[13..]));
        assert_ne!(slug("agent:a:b"), slug("agent:a/b"), "the hash tells them apart");
        assert!(slug("../../etc").starts_with("..-..-etc-"), "no separator is left");
        let long = SandboxScope::Session.container_name(&"p".repeat(60), "agent:main:main");
        assert_eq!(long.len(), MAX_NAME);
        let root = Path::new("/sandboxes");
        assert_eq!(SandboxScope::Shared.workspace(root, "shared"), root);
        assert_eq!(SandboxScope::Agent.workspace(root, "main"), root.join("main-b28b7af6"));
    }

    #[test]
    fn only_the_main_session_stays_outside_in_mode_non_main() {
        for (mode, key, expect) in [
            (SandboxMode::Off, Some("agent:main:x"), false),
            (SandboxMode::NonMain, Some("agent:main:main"), false),
            (SandboxMode::NonMain, Some("agent:main:x"), true),
            (SandboxMode::All, Some("agent:main:main"), true),
            (SandboxMode::All, None, false),
        ] {
            assert_eq!(is_sandboxed(mode, key, "agent:main:main"), expect, "{mode:?} {key:?}");
        }
    }
}

//! Resolves the working directory and the agent of a run.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::config::agents::Agents;
use crate::config::paths::expand_home;
use crate::key::{self, AgentId, DEFAULT_AGENT_ID};
use crate::replies::channel;

/// Why the request's directory was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkspaceFallback {
    /// The request names none.
    Missing,
    /// The request's directory is blank.
    Blank,
}

impl WorkspaceFallback {
    /// Returns the reason as an identifier, for logs and programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Blank => "blank",
        }
    }
}

/// What determined the agent of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentSource {
    /// The request names it.
    Explicit,
    /// The session key names it.
    SessionKey,
    /// It is the default agent.
    Default,
}

impl AgentSource {
    /// Returns the source as an identifier, for logs and programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Explicit => "explicit",
            Self::SessionKey => "session_key",
            Self::Default => "default",
        }
    }
}

/// The directory and the agent of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunWorkspace {
    /// The directory, with `~` expanded.
    pub dir: PathBuf,
    /// Why the agent's directory was used instead of the request's.
    pub fallback: Option<WorkspaceFallback>,
    /// The agent.
    pub agent_id: AgentId,
    /// What determined the agent.
    pub agent_source: AgentSource,
}

/// A session key that starts like an agent's but is malformed; it may have been meant for another agent's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Malformed agent session key; refusing workspace resolution.")]
pub struct MalformedKey;

/// Input for resolving the workspace.
#[derive(Clone, Copy, Debug)]
pub struct WorkspaceRequest<'a> {
    /// The directory named by the request.
    pub dir: Option<&'a Path>,
    /// The routing key of the session.
    pub session_key: Option<&'a str>,
    /// The agent named by the request.
    pub agent_id: Option<&'a str>,
    /// The home directory, for `~`.
    pub home: Option<&'a Path>,
    /// Directory of agents for which none is configured.
    pub default_dir: &'a Path,
}

/// Returns the form of a session key by which rules are looked up; see [`key::modern`].
pub fn lookup_key<'a>(agents: &Agents, session_key: &'a str) -> Cow<'a, str> {
    let is_agent = |agent: &AgentId| agent.as_str() == DEFAULT_AGENT_ID || agents.get(agent).is_some();
    key::modern(session_key, &is_agent, &channel::is_known)
}

/// Resolves the agent of a run: the named one, else the key's, else the default one.
pub fn agent_of(agents: &Agents, named: Option<&str>, session_key: Option<&str>) -> (AgentId, AgentSource) {
    if let Some(named) = named.map(str::trim).filter(|id| !id.is_empty()) {
        return (AgentId::normalise(named), AgentSource::Explicit);
    }
    let session_key = session_key.map(|key| lookup_key(agents, key));
    match session_key.as_deref().and_then(key::parse) {
        Some(key) => (AgentId::normalise(key.agent_id), AgentSource::SessionKey),
        None => (agents.default_id(), AgentSource::Default),
    }
}

/// Resolves the directory of a run: the request's, else the agent's.
///
/// # Errors
/// [`MalformedKey`].
pub fn resolve(agents: &Agents, request: &WorkspaceRequest<'_>) -> Result<RunWorkspace, MalformedKey> {
    if request.agent_id.is_none() && request.session_key.is_some_and(key::is_malformed) {
        return Err(MalformedKey);
    }
    let (agent_id, agent_source) = agent_of(agents, request.agent_id, request.session_key);
    let is_blank = |dir: &Path| dir.to_str().is_some_and(|text| text.trim().is_empty());
    let fallback = match request.dir {
        None => Some(WorkspaceFallback::Missing),
        Some(dir) if is_blank(dir) => Some(WorkspaceFallback::Blank),
        Some(_) => None,
    };
    let dir = match request.dir.filter(|_| fallback.is_none()) {
        Some(dir) => expand_home(dir, request.home),
        None => {
            let own = agents.get(&agent_id).and_then(|agent| agent.workspace.as_deref());
            match own.or(agents.defaults.workspace.as_deref()) {
                Some(path) => expand_home(Path::new(path), request.home),
                None => request.default_dir.to_owned(),
            }
        }
    };
    Ok(RunWorkspace { dir, fallback, agent_id, agent_source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_comes_from_the_request_the_key_or_the_configuration() {
        let agents = Agents::default();
        let id = |named, key| agent_of(&agents, named, key).0.as_str().to_owned();
        assert_eq!(id(None, Some("agent:ops:main")), "ops");
        assert_eq!(id(Some("dev"), Some("agent:ops:main")), "dev");
        assert_eq!(id(None, None), "main");
        assert_eq!(id(Some("../../x"), None), "x");
        assert_eq!(id(None, Some("agent:../..:main")), "main");
    }

    #[test]
    fn a_malformed_key_is_refused_unless_the_agent_is_named() {
        let request = |agent_id| WorkspaceRequest {
            dir: None,
            session_key: Some("agent::x"),
            agent_id,
            home: None,
            default_dir: Path::new("/w"),
        };
        assert_eq!(resolve(&Agents::default(), &request(None)), Err(MalformedKey));
        assert_eq!(resolve(&Agents::default(), &request(Some("ops"))).unwrap().dir, Path::new("/w"));
    }
}

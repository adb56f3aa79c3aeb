//! Documents of agents and requests that have their own directory. They are layered over those of the main agent.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use super::configured::{AgentDocuments, DocumentSources};
use super::directories::own_dir;
use crate::config::paths::expand_home;
use crate::key::AgentId;
use crate::parts::Parts;
use crate::run::RunRequest;

/// Maximum number of loaded directories; those that no run uses are then forgotten.
const MAX_LOADED: usize = 256;

/// Returns the parts of an engine for an agent, with its own settings, models and credentials if it has a directory.
pub(super) fn of_agent(parts: &Arc<Parts>, agent: &AgentId) -> Arc<Parts> {
    in_dir(parts, own_dir(parts, agent), agent)
}

/// Returns the parts of an engine for a request, with the documents in its own directory or that of its agent.
pub(super) fn of_request(parts: &Arc<Parts>, request: &RunRequest) -> Arc<Parts> {
    let agent = request.agent(&parts.config.agents);
    let named = request.agent_dir.as_deref().filter(|dir| !dir.as_os_str().is_empty());
    let named = named.map(|dir| parts.state_dir.join(expand_home(dir, parts.host.home())));
    in_dir(parts, named.or_else(|| own_dir(parts, &agent)), &agent)
}

fn in_dir(parts: &Arc<Parts>, dir: Option<PathBuf>, agent: &AgentId) -> Arc<Parts> {
    let Some(dir) = dir.filter(|dir| *dir != parts.agent_dir) else { return Arc::clone(parts) };
    let mut loaded = parts.agents.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = loaded.get(&dir) {
        return Arc::clone(known);
    }
    if loaded.len() >= MAX_LOADED {
        loaded.retain(|_, parts| Arc::strong_count(parts) > 1);
    }
    let documents = AgentDocuments::load(&DocumentSources::of(parts), &parts.config, &dir, Some(parts));
    for problem in &documents.problems {
        tracing::warn!(%problem, agent = agent.as_str(), "problem in a document of an agent");
    }
    let own = Arc::new(Parts {
        settings: documents.settings,
        registry: documents.registry,
        profiles: documents.profiles,
        agent_dir: dir.clone(),
        agents: Arc::default(),
        ..Parts::clone(parts)
    });
    loaded.insert(dir, Arc::clone(&own));
    own
}

/// Waits until the health of all profiles and the logins being renewed are written.
pub(super) async fn flush(parts: &Parts) {
    let agents: Vec<Arc<Parts>> =
        parts.agents.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
    for agent in &agents {
        agent.profiles.flush().await;
    }
    parts.profiles.flush().await;
}

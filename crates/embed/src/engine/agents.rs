//! Documents of agents that have their own directory. They are layered over those of the main agent.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use super::configured::{AgentDocuments, DocumentSources};
use crate::config::paths::expand_home;
use crate::key::AgentId;
use crate::parts::Parts;

/// Returns the parts of an engine for an agent, with its own settings, models and credentials if it has a directory.
pub(super) fn of_agent(parts: &Arc<Parts>, agent: &AgentId) -> Arc<Parts> {
    let Some(dir) = own_dir(parts, agent).filter(|dir| *dir != parts.agent_dir) else { return Arc::clone(parts) };
    let mut loaded = parts.agents.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = loaded.get(agent).filter(|known| known.agent_dir == dir) {
        return Arc::clone(known);
    }
    let documents = AgentDocuments::load(&DocumentSources::of(parts), &parts.config, &dir, Some(parts));
    for problem in &documents.problems {
        tracing::warn!(%problem, agent = agent.as_str(), "problem in a document of an agent");
    }
    let own = Arc::new(Parts {
        settings: documents.settings,
        registry: documents.registry,
        profiles: documents.profiles,
        agent_dir: dir,
        agents: Arc::default(),
        ..Parts::clone(parts)
    });
    loaded.insert(agent.clone(), Arc::clone(&own));
    own
}

/// Returns the configured directory of an agent, or the default one if it exists.
fn own_dir(parts: &Parts, agent: &AgentId) -> Option<PathBuf> {
    let named = parts.config.agents.get(agent).and_then(|agent| agent.agent_dir.as_deref());
    if let Some(dir) = named.map(str::trim).filter(|dir| !dir.is_empty()) {
        return Some(parts.state_dir.join(expand_home(Path::new(dir), parts.host.home())));
    }
    let is_main = *agent == AgentId::default();
    let dir = parts.state_dir.join("agents").join(agent.as_str()).join("agent");
    (!is_main && dir.is_dir()).then_some(dir)
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

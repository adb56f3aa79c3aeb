//! Documents of agents that have their own directory. They are layered over those of the main agent.

use std::sync::{Arc, PoisonError};

use super::configured::{AgentDocuments, DocumentSources};
use super::directories::own_dir;
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

/// Waits until the health of all profiles and the logins being renewed are written.
pub(super) async fn flush(parts: &Parts) {
    let agents: Vec<Arc<Parts>> =
        parts.agents.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
    for agent in &agents {
        agent.profiles.flush().await;
    }
    parts.profiles.flush().await;
}

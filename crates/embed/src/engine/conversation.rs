//! Methods for hosts that display conversations: the messages of a session, a new session for a key, the available models.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_llm::message::Message;
use pinch_llm::model::Model;
use pinch_ports::SessionEntry;
use pinch_stdx::text::with_causes;
use pinch_tools::process::ElevatedRules;

use super::configured::document_dir;
use super::replaced::ReplacedEntry;
use super::{Engine, agents, entries, inbound, offering, replaced, resolve};
use crate::key::AgentId;
use crate::plugin::ResetReason;
use crate::profiles::AuthProfileStatus;
use crate::run::{RunError, RunRequest};
use crate::sessions::entry;

impl Engine {
    /// Returns the messages of a key's current session as the model would read them, oldest first, with compacted ones replaced by a
    /// summary. Empty if the key has no session yet. Creates nothing.
    ///
    /// # Errors
    /// [`RunError::Config`] if the key is malformed, or if the index or the transcript cannot be read.
    pub fn history<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Vec<Arc<Message>>, RunError>> {
        Box::pin(async move {
            let parts = self.parts();
            let key = inbound::canonical(&parts, key)?;
            let Some(entry) = parts.index.get(&key).await.map_err(inbound::port_error)? else { return Ok(Vec::new()) };
            let log = entries::transcript(&parts, &key, &entry)
                .await
                .map_err(|error| RunError::Config(with_causes(&error)))?;
            Ok(log.context().messages)
        })
    }

    /// Begins a new session for a key, as a message with `/reset` does. The old transcript stays in place, and what the user chose for the
    /// key, such as its model, is kept. A key without a session is left without one.
    ///
    /// # Errors
    /// [`RunError::Config`] if the key is malformed, or if the index cannot be read or written.
    pub fn reset_session<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(async move {
            let parts = self.parts();
            let key = inbound::canonical(&parts, key)?;
            let (session_id, now) = (parts.host.ids().uuid_v4(), parts.host.now_ms());
            let (replaced, new_id) = (ReplacedEntry::default(), session_id.clone());
            let noted = replaced.clone();
            let change = move |known: Option<SessionEntry>| {
                noted.set(known.clone().map(|known| (known, ResetReason::Asked)));
                known.map(|known| entry::start_anew(&known, &new_id, now))
            };
            if self.update_session(&key, change).await?.is_some() {
                replaced::notify(&parts, &key, &session_id, &replaced).await;
            }
            Ok(())
        })
    }

    /// Returns the models that may answer a request: the first one to ask, then its fallbacks.
    ///
    /// # Errors
    /// As for a run: [`RunError::NoModel`], [`RunError::UnknownModel`], or [`RunError::Config`] for a model that is not allowed.
    pub fn candidates(&self, request: &RunRequest) -> Result<Vec<Arc<Model>>, RunError> {
        let parts = self.parts();
        let parts = agents::of_request(&parts, request);
        resolve::candidates(&parts, request)
    }

    /// Returns whether the commands of a request may leave the sandbox, from the rules of `tools.elevated` for its caller and the level of
    /// the request.
    pub fn elevated_rules(&self, mut request: RunRequest) -> ElevatedRules {
        let parts = self.parts();
        let agent = request.agent(&parts.config.agents);
        resolve::complete_caller(&parts.config.agents, &mut request, &agent);
        offering::elevated(&parts.config, &request, &agent)
    }

    /// Returns the auth profiles of an agent with their health, for one provider or all; those of a provider are in the order in which they
    /// are tried.
    pub fn auth_profiles(&self, agent: &str, provider: Option<&str>) -> Vec<AuthProfileStatus> {
        let parts = self.parts();
        agents::of_agent(&parts, &AgentId::normalise(agent)).profiles.statuses(provider, parts.host.now_ms())
    }

    /// Returns the directory whose `auth.json` an agent uses: its own, else the main agent's, else the one of the state directory.
    pub fn login_dir(&self, agent: &str) -> PathBuf {
        let parts = self.parts();
        let own = agents::of_agent(&parts, &AgentId::normalise(agent));
        document_dir(&parts.state_dir, &own.agent_dir, Some(&parts.agent_dir), "auth.json")
    }

    /// Returns the models that an agent can use: those allowed by the configuration, of providers with credentials.
    pub fn models(&self, agent: &str) -> Vec<Arc<Model>> {
        let parts = self.parts();
        let agent = AgentId::normalise(agent);
        let parts = agents::of_agent(&parts, &agent);
        let available = parts.registry.available(&|provider| parts.profiles.is_configured(provider));
        let mut request = resolve::request(&parts, "", None, Some(agent.as_str()), "");
        let mut is_allowed = |model: &Arc<Model>| {
            request.provider = Some(model.provider.to_string());
            request.model = Some(model.id.to_string());
            resolve::candidates(&parts, &request).is_ok()
        };
        available.into_iter().filter(|model| is_allowed(model)).collect()
    }
}

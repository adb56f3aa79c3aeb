//! Credentials that a run may use: profiles, and credentials found without one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_coding_agent::auth::{AuthError, AuthStorage, Logins, RequestAuth};
use pinch_coding_agent::document::Problem;
use pinch_coding_agent::models::{ModelRegistry, RegistryAuth};
use pinch_llm::ids::ProviderId;
use pinch_llm::keys;
use pinch_llm::model::Model;
use pinch_stdx::host::Host;

use crate::config::Config;
use crate::ports::HealthStore;
use crate::profiles::choice::ProfileChoice;
use crate::profiles::order::{NotConfigured, Selection};
use crate::profiles::{AuthProfileStatus, ProfileId, ProfileSources, Profiles};
use crate::reason::FailoverReason;
use crate::run::decide::Mark;
use crate::run::failover::ProviderHealth;

/// All credentials of an engine.
#[derive(Clone)]
pub(crate) struct Credentials {
    profiles: Profiles,
    plain: Arc<RegistryAuth>,
}

/// Sources of an agent's credentials.
pub(crate) struct CredentialSources<'a> {
    /// The agent's directory.
    pub(crate) agent_dir: &'a Path,
    /// pi's file of keys and logins.
    pub(crate) auth_json: &'a Path,
    /// File in which the oldest versions stored logins, for the main agent.
    pub(crate) oauth_json: Option<PathBuf>,
    pub(crate) config: &'a Config,
    pub(crate) health: Option<Arc<dyn HealthStore>>,
    /// Credentials of the main agent, if these are for another one.
    pub(crate) below: Option<&'a Credentials>,
    pub(crate) logins: Arc<Logins>,
}

impl Credentials {
    /// Loads the profiles of an agent directory. Other credentials come from auth.json, models.json and the environment.
    pub(crate) fn load(
        from: CredentialSources<'_>,
        registry: &Arc<ModelRegistry>,
        host: &Host,
    ) -> (Self, Vec<Problem>) {
        let CredentialSources { agent_dir, auth_json, oauth_json, config, health, below, logins } = from;
        let (storage, mut problems) = AuthStorage::load(auth_json);
        let plain = RegistryAuth::new(Arc::clone(registry), storage, None, host.clone());
        let plain = Arc::new(plain.with_logins(Arc::clone(&logins)));
        let sources = ProfileSources {
            config: config.auth.clone(),
            file: Some(agent_dir.join("auth-profiles.json")),
            legacy: std::iter::once(agent_dir.join("auth.json")).chain(oauth_json).collect(),
            below: below.map(|below| below.profiles.clone()),
            health,
            without_profile: Some(plain.clone()),
            logins: Some(logins),
        };
        let (profiles, more) = Profiles::load(host.clone(), sources);
        // A file of an earlier version is read twice and would repeat its problems.
        problems.extend(more.into_iter().filter(|problem| !problems.contains(problem)).collect::<Vec<_>>());
        (Self { profiles, plain }, problems)
    }

    /// Returns the profiles of a provider in the order in which they are tried, for one model or any.
    pub(crate) fn order(&self, provider: &ProviderId, model: Option<&str>) -> Vec<ProfileId> {
        self.profiles.candidates(provider, model, None)
    }

    /// Returns the profiles that a run may use, given the choice in its request.
    pub(crate) fn select(&self, model: &Model, choice: Option<&ProfileChoice>) -> Result<Selection, NotConfigured> {
        self.profiles.select(&model.provider, Some(model.id.as_str()), choice)
    }

    /// Returns whether a profile is not in cooldown.
    pub(crate) fn is_usable(&self, id: &ProfileId, model: &Model) -> bool {
        self.profiles.usable(id, Some(model.id.as_str()))
    }

    /// Returns why all profiles are in cooldown for a model, if they are.
    pub(crate) fn cooldown_reason(&self, model: &Model) -> Option<FailoverReason> {
        self.profiles.unavailable_reason(&model.provider, Some(model.id.as_str()))
    }

    /// Returns whether any of a provider's profiles can be used for a model; if not, until when and why.
    pub(crate) fn health(&self, provider: &ProviderId, model: &str) -> ProviderHealth {
        let reason = || self.profiles.unavailable_reason(provider, Some(model));
        match self.profiles.soonest_expiry(provider, Some(model)) {
            Some(until) => ProviderHealth::CoolingDown { until, reason: reason() },
            None => ProviderHealth::Usable,
        }
    }

    /// Returns the profiles with their health, for one provider or all.
    pub(crate) fn statuses(&self, provider: Option<&str>, now: i64) -> Vec<AuthProfileStatus> {
        self.profiles.statuses(provider, now)
    }

    /// Returns whether there are credentials for a provider.
    pub(crate) fn is_configured(&self, provider: &ProviderId) -> bool {
        !self.order(provider, None).is_empty() || self.plain.is_configured(provider)
    }

    /// Returns the credentials of a profile, or those found without one.
    pub(crate) fn auth(&self, id: Option<&ProfileId>, model: &Model) -> Result<Arc<dyn RequestAuth>, AuthError> {
        if id.is_none() && !self.plain.is_configured(&model.provider) {
            return Err(AuthError::Missing { provider: model.provider.clone() });
        }
        self.profiles.auth(&model.provider, id)
    }

    /// Records the outcome of using a profile.
    pub(crate) fn mark(&self, mark: &Mark, model: &Model) {
        match mark {
            Mark::Failure { profile, reason, retry_after } => {
                self.profiles.mark_failure(profile, *reason, *retry_after, Some(model.id.as_str()));
            }
            Mark::Good { profile } => self.profiles.mark_good(profile, &model.provider),
            // Marking a profile as good also marks it as used.
            Mark::Used { .. } => {}
        }
    }

    /// Reads changes made by other processes.
    pub(crate) async fn refresh(&self) {
        self.profiles.refresh().await;
    }

    /// Returns the variables that contain credentials of profiles.
    pub(crate) fn key_variables(&self) -> BTreeSet<String> {
        self.profiles.key_variables()
    }

    /// Waits until all marks are written.
    pub(crate) async fn flush(&self) {
        self.profiles.flush().await;
    }
}

/// Returns the message about a missing credential: its provider, and what to do.
pub(crate) fn advice(error: &AuthError) -> String {
    let AuthError::Missing { provider } = error else { return error.to_string() };
    let set = keys::remedy(provider.as_str())
        .map(|remedy| format!("{remedy}, or give "))
        .unwrap_or_else(|| "Give ".to_owned());
    format!("{error} {set}the key as \"apiKey\" of a profile under auth.profiles in pinch.json.")
}

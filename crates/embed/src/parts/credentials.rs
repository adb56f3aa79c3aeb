//! Which credentials a run may use: profiles, and credentials found without one.

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

/// Where the credentials of an agent come from.
pub(crate) struct CredentialSources<'a> {
    /// The agent's directory.
    pub(crate) agent_dir: &'a Path,
    /// pi's file of keys and logins.
    pub(crate) auth_json: &'a Path,
    /// The file in which the oldest versions kept logins, for the main agent.
    pub(crate) oauth_json: Option<PathBuf>,
    pub(crate) config: &'a Config,
    pub(crate) health: Option<Arc<dyn HealthStore>>,
    /// The credentials of the main agent, for another one.
    pub(crate) below: Option<&'a Credentials>,
    pub(crate) logins: Arc<Logins>,
}

impl Credentials {
    /// Reads the profiles of an agent directory. Other credentials come from auth.json, models.json and the environment.
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
        // A file of an earlier version is read as well, and has the same problem then.
        problems.extend(more.into_iter().filter(|problem| !problems.contains(problem)).collect::<Vec<_>>());
        (Self { profiles, plain }, problems)
    }

    /// The profiles of a provider in the order in which they are tried for a model, or for any.
    pub(crate) fn order(&self, provider: &ProviderId, model: Option<&str>) -> Vec<ProfileId> {
        self.profiles.candidates(provider, model, None)
    }

    /// The profiles that a run may use, after the choice of its request.
    pub(crate) fn select(&self, model: &Model, choice: Option<&ProfileChoice>) -> Result<Selection, NotConfigured> {
        self.profiles.select(&model.provider, Some(model.id.as_str()), choice)
    }

    /// Whether a profile is not in cooldown.
    pub(crate) fn is_usable(&self, id: &ProfileId, model: &Model) -> bool {
        self.profiles.usable(id, Some(model.id.as_str()))
    }

    /// Why all profiles are in cooldown for a model, if they are.
    pub(crate) fn cooldown_reason(&self, model: &Model) -> Option<FailoverReason> {
        self.profiles.unavailable_reason(&model.provider, Some(model.id.as_str()))
    }

    /// Whether one of a provider's profiles can be used for a model; if not, until when and why.
    pub(crate) fn health(&self, provider: &ProviderId, model: &str) -> ProviderHealth {
        let reason = || self.profiles.unavailable_reason(provider, Some(model));
        match self.profiles.soonest_expiry(provider, Some(model)) {
            Some(until) => ProviderHealth::Resting { until, reason: reason() },
            None => ProviderHealth::Usable,
        }
    }

    /// The profiles with their health, of one provider or of all.
    pub(crate) fn statuses(&self, provider: Option<&str>, now: i64) -> Vec<AuthProfileStatus> {
        self.profiles.statuses(provider, now)
    }

    /// Whether there are credentials for a provider.
    pub(crate) fn is_configured(&self, provider: &ProviderId) -> bool {
        !self.order(provider, None).is_empty() || self.plain.is_configured(provider)
    }

    /// The credentials of a profile, or those found without one.
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

    /// Reads what other processes have changed.
    pub(crate) async fn refresh(&self) {
        self.profiles.refresh().await;
    }

    /// The variables that profiles take their credentials from.
    pub(crate) fn key_variables(&self) -> BTreeSet<String> {
        self.profiles.key_variables()
    }

    /// Waits until all marks are written.
    pub(crate) async fn flush(&self) {
        self.profiles.flush().await;
    }
}

/// The message about a missing credential: which provider it is for, and what to do.
pub(crate) fn advice(error: &AuthError) -> String {
    let AuthError::Missing { provider } = error else { return error.to_string() };
    let set = keys::remedy(provider.as_str())
        .map(|remedy| format!("{remedy}, or give "))
        .unwrap_or_else(|| "Give ".to_owned());
    format!("{error} {set}the key as \"apiKey\" of a profile under auth.profiles in pinch.json.")
}

//! Auth profiles: several credentials per provider, each with its health.
//!
//! Credentials come from the configuration, from `auth-profiles.json` of the agent and of the main agent, and from files of other programs;
//! further credentials are found without a profile (pi's auth.json, models.json, the environment). Only health and renewed logins are
//! written, each to the file that the profile comes from.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pinch_coding_agent::auth::config_value::Remembered;
use pinch_coding_agent::auth::{AuthError, Logins, RequestAuth};
use pinch_coding_agent::document::Problem;
use pinch_coding_agent::models::RegistryAuth;
use pinch_llm::ids::ProviderId;
use pinch_ports::HealthRecords;
use pinch_stdx::host::Host;

pub mod choice;
pub mod health;
mod login;
pub mod file;
mod external;
mod secret;
pub mod resolve;
pub mod order;
pub mod pin;
mod marks;
mod store;

pub use self::file::{Credential, Profile, ProfileFile};
pub use self::health::Health;
pub use crate::key::ProfileId;

use self::choice::ProfileChoice;
use self::external::ExternalLogins;
use self::marks::HealthMarks;
use self::order::{NotConfigured, Selection};
use self::resolve::{ProfileAuth, is_usable};
use self::store::ProfileStore;
use crate::config::secrets::KeySource;
use crate::config::{AuthConfig, normalise_provider};
use crate::ports::HealthStore;
use crate::reason::FailoverReason;

/// All profiles that one agent may use. Clones share them.
#[derive(Clone)]
pub struct Profiles(Arc<ProfilesInner>);

/// An auth profile and its health, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthProfileStatus {
    /// Its id.
    pub id: ProfileId,
    /// The provider it is for.
    pub provider: ProviderId,
    /// Kind of credential.
    pub kind: AuthProfileKind,
    /// When it can be used again, in milliseconds since the epoch; `None`: now.
    pub unavailable_until: Option<i64>,
    /// Why it is unavailable.
    pub reason: Option<FailoverReason>,
    /// The only model that it is unavailable for; `None`: all of them.
    pub model: Option<String>,
}

/// A kind of credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthProfileKind {
    /// An API key.
    ApiKey,
    /// A token that cannot be renewed.
    Token,
    /// A login that is renewed.
    Login,
}

struct ProfilesInner {
    host: Host,
    config: AuthConfig,
    /// The agent's own store, then the main agent's.
    stores: Vec<Arc<ProfileStore>>,
    external: ExternalLogins,
    logins: Arc<Logins>,
    commands: Remembered,
    without_profile: Option<Arc<RegistryAuth>>,
}

/// The agent's own store, then the main agent's.
#[derive(Default)]
pub struct ProfileSources {
    /// `auth` in the configuration.
    pub config: AuthConfig,
    /// The agent's `auth-profiles.json`. A missing file counts as empty.
    pub file: Option<PathBuf>,
    /// Files of earlier versions, which are used as long as `file` has no profiles.
    pub legacy: Vec<PathBuf>,
    /// Profiles of the main agent, which the agent may also use.
    pub below: Option<Profiles>,
    /// Store for health; by default, the file that a profile comes from.
    pub health: Option<Arc<dyn HealthStore>>,
    /// Credentials to use if no profile has any.
    pub without_profile: Option<Arc<RegistryAuth>>,
    /// Renewal of logins; by default over the network.
    pub logins: Option<Arc<Logins>>,
}

impl Profiles {
    /// Loads the profiles of an agent.
    pub fn load(host: Host, from: ProfileSources) -> (Self, Vec<Problem>) {
        let below = from.below.as_ref().map(|below| below.0.stores.clone()).unwrap_or_default();
        let health = match (from.health, below.last()) {
            (Some(_), Some(below)) => Some(Arc::clone(&below.marks)),
            (Some(health), None) => Some(Arc::new(HealthMarks::new(health))),
            (None, _) => None,
        };
        let external = ExternalLogins::new(host.home());
        external.reload();
        let (own, problems) = ProfileStore::load(from.file, from.legacy, health, &host);
        let inner = ProfilesInner {
            stores: std::iter::once(Arc::new(own)).chain(below).collect(),
            external,
            logins: from.logins.unwrap_or_else(|| Arc::new(Logins::over_network(&host))),
            commands: Remembered::default(),
            without_profile: from.without_profile,
            config: from.config,
            host,
        };
        (Self(Arc::new(inner)), problems)
    }

    /// Reads changes made by other processes to credentials, orders and health.
    pub async fn refresh(&self) {
        self.reload();
        for store in &self.0.stores {
            store.marks.refresh().await;
        }
        self.correct_clock();
    }

    /// Reads changes made by other processes to credentials and orders.
    fn reload(&self) {
        for problem in self.0.stores.iter().flat_map(|store| store.reload()) {
            tracing::warn!(%problem, "could not reread the profiles");
        }
        self.0.external.reload();
    }

    /// Shortens cooldowns that end later than possible, because the clock was set back.
    fn correct_clock(&self) {
        let (now, terms) = (self.0.host.now_ms(), &self.0.config.cooldowns);
        for profile in self.all() {
            if self.health(&profile.id).within(now, terms).is_some() {
                let (id, terms) = (profile.id.clone(), terms.clone());
                self.store_of(&profile.id).marks.change(move |records| {
                    health::change_health(records, &id, |health| health.within(now, &terms).unwrap_or(health.clone()));
                });
            }
        }
    }

    /// Waits until all marks and all logins being renewed are written.
    pub async fn flush(&self) {
        for store in &self.0.stores {
            store.marks.flush().await;
        }
        self.0.logins.settle().await;
    }

    /// Returns every profile with its credential: the configured ones, then those of the files, the agent's own first.
    fn all(&self) -> Vec<Profile> {
        let inline = self.0.config.profiles.iter().filter_map(Profile::inline);
        let mut all: Vec<Profile> = inline.collect();
        let n_inline = all.len();
        for store in &self.0.stores {
            for profile in &store.content().profiles {
                if all.iter().all(|other| other.id != profile.id) {
                    all.push(profile.clone());
                }
            }
        }
        let mut stored = all.split_off(n_inline);
        let is_inline = |id: &ProfileId| all.iter().any(|profile| profile.id == *id);
        let is_named = |id: &ProfileId| self.0.config.names(id) && !is_inline(id);
        self.0.external.overlay(&mut stored, is_named, self.0.host.now_ms());
        stored.retain(|profile| !is_inline(&profile.id));
        all.extend(stored);
        all
    }

    /// Returns the merged files of all stores, the agent's own taking precedence over the main agent's.
    pub fn document(&self) -> ProfileFile {
        self.0.stores.iter().fold(ProfileFile::default(), |above, store| above.over(&store.content().file))
    }

    /// Returns the variables that contain credentials of profiles; commands must not see them.
    pub fn key_variables(&self) -> BTreeSet<String> {
        let names = |profile: &Profile| match &profile.credential {
            Credential::ApiKey(source) | Credential::Token { token: source, .. } => source.variables(),
            Credential::OAuth { access, .. } => KeySource::Text(access.clone()).variables(),
        };
        self.all().iter().flat_map(names).collect()
    }

    /// Returns the store of a profile. Configured profiles and those of other programs count as the main agent's.
    fn store_of(&self, id: &ProfileId) -> &ProfileStore {
        let stores = &self.0.stores;
        let at = stores.iter().position(|store| store.has(id)).unwrap_or(stores.len() - 1);
        &stores[at]
    }

    /// Returns the profile with this id.
    pub fn get(&self, id: &ProfileId) -> Option<Profile> {
        self.all().into_iter().find(|profile| profile.id == *id)
    }

    /// Returns the profiles that a run may use, given the choice in its request.
    ///
    /// # Errors
    /// The user chose a profile of this provider that is not in its order.
    pub fn select(
        &self,
        provider: &ProviderId,
        model: Option<&str>,
        choice: Option<&ProfileChoice>,
    ) -> Result<Selection, NotConfigured> {
        let owner = choice.and_then(|choice| self.get(&choice.id)).map(|profile| profile.provider);
        let order = self.candidates(provider, model, choice.map(|choice| &choice.id));
        order::select(order, choice, owner.as_ref(), provider)
    }

    /// Returns the profiles of a provider in the order in which they are tried, for one model or any: healthy ones first, with `preferred`
    /// before all others.
    pub fn candidates(
        &self,
        provider: &ProviderId,
        model: Option<&str>,
        preferred: Option<&ProfileId>,
    ) -> Vec<ProfileId> {
        let profiles = self.all();
        let (only, merged);
        let file: &ProfileFile = match &self.0.stores[..] {
            [store] => {
                only = store.content();
                &only.file
            }
            _ => {
                merged = self.document();
                &merged
            }
        };
        let mut records = HealthRecords::default();
        for profile in profiles.iter().filter(|profile| profile.provider == normalise_provider(provider.as_str())) {
            if let Some(entry) = self.store_of(&profile.id).marks.entry(&profile.id) {
                records.profiles.insert(profile.id.to_string(), entry);
            }
        }
        order::order(&order::Order {
            provider,
            model,
            preferred,
            profiles: &profiles,
            file,
            health: &records,
            config: &self.0.config,
            env: self.0.host.env(),
            now: self.0.host.now_ms(),
        })
    }

    /// Returns the profiles with their health, for one provider or all; those of a provider are in the order in which they are tried.
    pub fn statuses(&self, provider: Option<&str>, now: i64) -> Vec<AuthProfileStatus> {
        let profiles = self.all();
        let wanted = provider.map(normalise_provider);
        let providers: BTreeSet<&ProviderId> = profiles.iter().map(|profile| &profile.provider).collect();
        let providers = providers.into_iter().filter(|id| wanted.as_ref().is_none_or(|wanted| *id == wanted));
        let ordered = providers.flat_map(|id| self.candidates(id, None, None));
        let status = |id: ProfileId| {
            let profile = profiles.iter().find(|profile| profile.id == id)?;
            let health = self.health(&id);
            let unavailable_until = health.cools_until(now);
            let reason = health.disabled_reason.filter(|_| health.disabled_until.is_some_and(|until| now < until));
            Some(AuthProfileStatus {
                provider: profile.provider.clone(),
                kind: match profile.credential {
                    Credential::ApiKey(_) => AuthProfileKind::ApiKey,
                    Credential::Token { .. } => AuthProfileKind::Token,
                    Credential::OAuth { .. } => AuthProfileKind::Login,
                },
                reason: unavailable_until.and(reason.or(health.cooldown_reason)),
                model: health.cooldown_model.filter(|_| unavailable_until.is_some()),
                unavailable_until,
                id,
            })
        };
        ordered.filter_map(status).collect()
    }

    /// Returns the health of a profile.
    pub fn health(&self, id: &ProfileId) -> Health {
        self.store_of(id).marks.health(id)
    }

    /// Returns whether a profile can be used for a model now.
    pub fn usable(&self, id: &ProfileId, model: Option<&str>) -> bool {
        let balances_itself = self.get(id).is_some_and(|profile| never_cools(&profile.provider));
        balances_itself || !self.health(id).is_cooling(self.0.host.now_ms(), model)
    }

    /// Returns when the first of a provider's profiles can be used again, for one model or any; `None` if one can be used now, or there is
    /// none.
    pub fn soonest_expiry(&self, provider: &ProviderId, model: Option<&str>) -> Option<i64> {
        let now = self.0.host.now_ms();
        let ids = self.candidates(provider, model, None);
        if ids.iter().any(|id| self.usable(id, model)) {
            return None;
        }
        ids.iter().filter_map(|id| self.health(id).cools_until(now)).min()
    }

    /// Returns why a provider's profiles cannot be used, for one model or some; `None` if no reason is recorded.
    pub fn unavailable_reason(&self, provider: &ProviderId, model: Option<&str>) -> Option<FailoverReason> {
        let now = self.0.host.now_ms();
        let healths = self.candidates(provider, model, None).into_iter().map(|id| self.health(&id));
        let healths: Vec<Health> = healths.filter(|health| model.is_none() || health.is_cooling(now, model)).collect();
        health::unavailable_reason(&healths, now)
    }

    /// Returns the credentials of a profile, or those found without one.
    ///
    /// # Errors
    /// If there are none, or they have expired.
    pub fn auth(&self, provider: &ProviderId, id: Option<&ProfileId>) -> Result<Arc<dyn RequestAuth>, AuthError> {
        let missing = || AuthError::Missing { provider: provider.clone() };
        let profile = match id {
            None if self.0.without_profile.is_none() => return Err(missing()),
            None => None,
            Some(id) => Some(self.get(id).ok_or_else(missing)?),
        };
        if let Some(profile) = &profile {
            is_usable(profile, self.0.host.env(), self.0.host.now_ms())?;
        }
        Ok(Arc::new(ProfileAuth::new(self.clone(), profile)))
    }

    /// Records that a profile failed: immediately in this process, and shortly after in the store, merged with records of other processes.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn mark_failure(
        &self,
        id: &ProfileId,
        reason: FailoverReason,
        retry_after: Option<Duration>,
        model: Option<&str>,
    ) {
        let Some(profile) = self.get(id) else { return };
        let (id, model, now) = (id.clone(), model.map(str::to_owned), self.0.host.now_ms());
        let cooldowns = self.0.config.cooldowns.clone();
        let of_model = reason == FailoverReason::Auth && self.0.config.has_key_of(&id);
        self.store_of(&id).marks.change(move |records| {
            let (model, provider) = (model.as_deref(), &profile.provider);
            let failure = health::ProfileFailure { reason, retry_after, model, provider, now, of_model };
            health::change_health(records, &id, |health| health.after_failure(&failure, &cooldowns));
        });
    }

    /// Records that a profile worked with a provider: its failures are forgotten, and it becomes the provider's last good one. Does nothing
    /// if the profile belongs to another provider. Written in the same way as failures.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn mark_good(&self, id: &ProfileId, provider: &ProviderId) {
        let is_of =
            |profile: &Profile| normalise_provider(profile.provider.as_str()) == normalise_provider(provider.as_str());
        let Some(profile) = self.get(id).filter(is_of) else { return };
        let (id, now) = (id.clone(), self.0.host.now_ms());
        self.store_of(&id).marks.change(move |records| {
            health::change_health(records, &id, |health| health.after_success(now));
            records.last_good.insert(profile.provider.to_string(), id.to_string());
        });
    }
}

/// Returns whether a provider balances load itself, which makes cooldowns of keys useless.
fn never_cools(provider: &ProviderId) -> bool {
    matches!(normalise_provider(provider.as_str()).as_str(), "openrouter" | "kilocode")
}

#[cfg(test)]
mod tests;

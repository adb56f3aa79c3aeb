//! Auth profiles: several credentials per provider, each with its health.
//!
//! Credentials come from `auth-profiles.json` and from the configuration; other credentials are found without a profile (pi's auth.json,
//! models.json, the environment). Only health is ever written, and only to `auth-profiles.json`.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinch_coding_agent::auth::{AuthError, RequestAuth};
use pinch_coding_agent::document::Problem;
use pinch_llm::ids::ProviderId;
use pinch_stdx::host::Host;

pub mod choice;
pub mod health;
pub mod file;
pub mod resolve;
pub mod order;
mod marks;

pub use self::file::{Credential, Profile, ProfileFile};
pub use self::health::Health;
pub use self::marks::MarkError;
pub use crate::key::ProfileId;

use self::choice::ProfileChoice;
use self::order::{NotConfigured, Selection};
use self::resolve::ProfileAuth;
use crate::config::{AuthConfig, normalise_provider};
use crate::reason::FailoverReason;

/// All profiles that one agent may use. Clones share them.
#[derive(Clone)]
pub struct Profiles(Arc<Parts>);

struct Parts {
    host: Host,
    config: AuthConfig,
    path: Option<PathBuf>,
    file: Mutex<ProfileFile>,
    without_profile: Option<Arc<dyn RequestAuth>>,
}

impl Profiles {
    /// Reads `auth-profiles.json` at `path`; a missing one is empty. `without_profile` supplies credentials where no profile does.
    pub fn load(
        host: Host,
        config: AuthConfig,
        path: Option<PathBuf>,
        without_profile: Option<Arc<dyn RequestAuth>>,
    ) -> (Self, Vec<Problem>) {
        let (file, problems) = path.as_deref().map(ProfileFile::load).unwrap_or_default();
        (Self(Arc::new(Parts { host, config, path, file: Mutex::new(file), without_profile })), problems)
    }

    /// Every profile with its credential: the configuration's, then the file's.
    fn all(&self) -> Vec<Profile> {
        let file = self.0.file();
        let inline = self.0.config.profiles.iter().filter_map(Profile::inline);
        let mut all: Vec<Profile> = inline.collect();
        for profile in file.profiles() {
            if all.iter().all(|other| other.id != profile.id) {
                all.push(profile);
            }
        }
        all
    }

    /// The profile with this id.
    pub fn get(&self, id: &ProfileId) -> Option<Profile> {
        self.all().into_iter().find(|profile| profile.id == *id)
    }

    /// The profiles that a run may use, after the choice of its request.
    ///
    /// # Errors
    /// The user chose a profile of this provider that its order leaves out.
    pub fn select(&self, provider: &ProviderId, choice: Option<&ProfileChoice>) -> Result<Selection, NotConfigured> {
        let owner = choice.and_then(|choice| self.get(&choice.id)).map(|profile| profile.provider);
        let order = self.candidates(provider, choice.map(|choice| &choice.id));
        order::select(order, choice, owner.as_ref(), provider)
    }

    /// The profiles of a provider in the order in which they are tried: healthy ones first, `preferred` before all.
    pub fn candidates(&self, provider: &ProviderId, preferred: Option<&ProfileId>) -> Vec<ProfileId> {
        let profiles = self.all();
        let file = self.0.file();
        order::order(&order::Order {
            provider,
            preferred,
            profiles: &profiles,
            file: &file,
            config: &self.0.config,
            env: self.0.host.env(),
            now: self.0.host.now_ms(),
        })
    }

    /// The health of a profile.
    pub fn health(&self, id: &ProfileId) -> Health {
        self.0.file().health(id)
    }

    /// Whether a profile can be used for a model now.
    pub fn usable(&self, id: &ProfileId, model: Option<&str>) -> bool {
        let balances_itself = self.get(id).is_some_and(|profile| never_cools(&profile.provider));
        balances_itself || !self.health(id).is_cooling(self.0.host.now_ms(), model)
    }

    /// When the first of a provider's profiles may be used again; `None` when one may be used now, or there is none.
    pub fn soonest_expiry(&self, provider: &ProviderId) -> Option<i64> {
        let now = self.0.host.now_ms();
        let ids = self.candidates(provider, None);
        if ids.iter().any(|id| self.usable(id, None)) {
            return None;
        }
        ids.iter().filter_map(|id| self.health(id).cools_until(now)).min()
    }

    /// Why a provider's profiles cannot be used; `None` if no reason is recorded.
    pub fn unavailable_reason(&self, provider: &ProviderId) -> Option<FailoverReason> {
        let healths: Vec<Health> = self.candidates(provider, None).iter().map(|id| self.health(id)).collect();
        health::unavailable_reason(&healths, self.0.host.now_ms())
    }

    /// The credentials of a profile, or those found without one.
    ///
    /// # Errors
    /// If there are none, or they have expired.
    pub fn auth(&self, provider: &ProviderId, id: Option<&ProfileId>) -> Result<Arc<dyn RequestAuth>, AuthError> {
        let missing = || AuthError::Missing { provider: provider.clone() };
        let Some(id) = id else { return self.0.without_profile.clone().ok_or_else(missing) };
        let profile = self.get(id).ok_or_else(missing)?;
        resolve::resolve(&profile, self.0.host.env(), self.0.host.now_ms())?;
        Ok(Arc::new(ProfileAuth::new(self.clone(), profile)))
    }

    /// Records that a profile failed. Changes that other programs made meanwhile are kept.
    ///
    /// # Errors
    /// [`MarkError`]: the mark counts in this process, but could not be written.
    pub async fn mark_failure(
        &self,
        id: &ProfileId,
        reason: FailoverReason,
        retry_after: Option<Duration>,
        model: Option<&str>,
    ) -> Result<(), MarkError> {
        let Some(profile) = self.get(id) else { return Ok(()) };
        let now = self.0.host.now_ms();
        let failure = health::ProfileFailure { reason, retry_after, model, provider: &profile.provider, now };
        marks::change(&self.0, |file| {
            let health = file.health(id).after_failure(&failure, &self.0.config.cooldowns);
            file.set_health(id, &health);
        })
        .await
    }

    /// Records that a profile worked with a provider: its failures are forgotten, and it becomes the provider's last good one. Does nothing
    /// when the profile belongs to another provider.
    ///
    /// # Errors
    /// [`MarkError`]: the mark counts in this process, but could not be written.
    pub async fn mark_good(&self, id: &ProfileId, provider: &ProviderId) -> Result<(), MarkError> {
        let is_of =
            |profile: &Profile| normalise_provider(profile.provider.as_str()) == normalise_provider(provider.as_str());
        let Some(profile) = self.get(id).filter(is_of) else { return Ok(()) };
        let now = self.0.host.now_ms();
        marks::change(&self.0, |file| {
            file.set_health(id, &file.health(id).after_success(now));
            file.set_last_good(&profile.provider, id);
        })
        .await
    }
}

impl Parts {
    fn file(&self) -> MutexGuard<'_, ProfileFile> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a provider balances load itself, so that a cooldown of a key is useless.
fn never_cools(provider: &ProviderId) -> bool {
    matches!(normalise_provider(provider.as_str()).as_str(), "openrouter" | "kilocode")
}

#[cfg(test)]
mod tests;

//! Auth profiles: several credentials per provider, each with its health.
//!
//! Credentials come from `auth-profiles.json` and from the configuration; other credentials are found without a profile (pi's auth.json,
//! models.json, the environment). Only health is ever written.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinch_coding_agent::auth::{AuthError, RequestAuth};
use pinch_coding_agent::document::Problem;
use pinch_llm::ids::ProviderId;
use pinch_stdx::fs::FileStamp;
use pinch_stdx::host::Host;

pub mod choice;
pub mod health;
pub mod file;
pub mod resolve;
pub mod order;
pub mod pin;
mod marks;

pub use self::file::{Credential, Profile, ProfileFile};
pub use self::health::Health;
pub use crate::key::ProfileId;

use self::choice::ProfileChoice;
use self::marks::HealthMarks;
use self::order::{NotConfigured, Selection};
use self::resolve::ProfileAuth;
use crate::config::{AuthConfig, normalise_provider};
use crate::ports::{FileHealth, HealthStore, MemoryHealth};
use crate::reason::FailoverReason;

/// All profiles that one agent may use. Clones share them.
#[derive(Clone)]
pub struct Profiles(Arc<ProfilesInner>);

struct ProfilesInner {
    host: Host,
    config: AuthConfig,
    path: Option<PathBuf>,
    file: Mutex<LoadedFile>,
    marks: HealthMarks,
    without_profile: Option<Arc<dyn RequestAuth>>,
}

/// The file as it was last read.
#[derive(Default)]
struct LoadedFile {
    stamp: Option<FileStamp>,
    content: Arc<ProfileFile>,
}

impl Profiles {
    /// Reads `auth-profiles.json` at `path`; a missing one is empty. `health` keeps health elsewhere than in that file.
    /// `without_profile` supplies credentials where no profile does.
    pub fn load(
        host: Host,
        config: AuthConfig,
        path: Option<PathBuf>,
        health: Option<Arc<dyn HealthStore>>,
        without_profile: Option<Arc<dyn RequestAuth>>,
    ) -> (Self, Vec<Problem>) {
        let stamp = path.as_deref().and_then(FileStamp::of);
        let (content, problems) = path.as_deref().map(ProfileFile::load).unwrap_or_default();
        let store = health.unwrap_or_else(|| match &path {
            Some(path) => Arc::new(FileHealth::new(path.clone(), host.clone())),
            None => Arc::new(MemoryHealth::default()),
        });
        let marks = HealthMarks::new(store, FileHealth::records(content.document()));
        let file = Mutex::new(LoadedFile { stamp, content: Arc::new(content) });
        (Self(Arc::new(ProfilesInner { host, config, path, file, marks, without_profile })), problems)
    }

    /// Reads what other processes have changed: credentials, orders and health.
    pub async fn refresh(&self) {
        if let Some(path) = &self.0.path {
            let stamp = FileStamp::of(path);
            if self.0.file.lock().unwrap_or_else(PoisonError::into_inner).stamp != stamp {
                let (content, problems) = ProfileFile::load(path);
                match problems.first() {
                    None => {
                        let mut file = self.0.file.lock().unwrap_or_else(PoisonError::into_inner);
                        *file = LoadedFile { stamp, content: Arc::new(content) };
                    }
                    // What was read before stays in use.
                    Some(problem) => tracing::warn!(%problem, "the profiles could not be read again"),
                }
            }
        }
        self.0.marks.refresh().await;
    }

    /// Waits until all marks are written.
    pub async fn flush(&self) {
        self.0.marks.flush().await;
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
            health: &self.0.marks.records(),
            config: &self.0.config,
            env: self.0.host.env(),
            now: self.0.host.now_ms(),
        })
    }

    /// The health of a profile.
    pub fn health(&self, id: &ProfileId) -> Health {
        self.0.marks.health(id)
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

    /// Records that a profile failed: in this process at once, and in the store a little later, with what other processes recorded meanwhile.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
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
        self.0.marks.change(move |records| {
            let (model, provider) = (model.as_deref(), &profile.provider);
            let failure = health::ProfileFailure { reason, retry_after, model, provider, now };
            health::change_health(records, &id, |health| health.after_failure(&failure, &cooldowns));
        });
    }

    /// Records that a profile worked with a provider: its failures are forgotten, and it becomes the provider's last good one. Does nothing
    /// when the profile belongs to another provider. Written like failures.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn mark_good(&self, id: &ProfileId, provider: &ProviderId) {
        let is_of =
            |profile: &Profile| normalise_provider(profile.provider.as_str()) == normalise_provider(provider.as_str());
        let Some(profile) = self.get(id).filter(is_of) else { return };
        let (id, now) = (id.clone(), self.0.host.now_ms());
        self.0.marks.change(move |records| {
            health::change_health(records, &id, |health| health.after_success(now));
            records.last_good.insert(profile.provider.to_string(), id.to_string());
        });
    }
}

impl ProfilesInner {
    fn file(&self) -> Arc<ProfileFile> {
        Arc::clone(&self.file.lock().unwrap_or_else(PoisonError::into_inner).content)
    }
}

/// Whether a provider balances load itself, so that a cooldown of a key is useless.
fn never_cools(provider: &ProviderId) -> bool {
    matches!(normalise_provider(provider.as_str()).as_str(), "openrouter" | "kilocode")
}

#[cfg(test)]
mod tests;

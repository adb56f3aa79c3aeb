//! Resolves a profile to the credentials for a request.

use std::sync::{Mutex, PoisonError};

use futures::future::BoxFuture;
use pinch_coding_agent::auth::{AuthError, KeyLookup, RequestAuth};
use pinch_llm::model::Model;
use pinch_llm::request::Auth;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Env;
use pinch_stdx::secret::Secret;
use serde_json::json;

use super::Profiles;
use super::file::{Credential, Profile};
use super::secret::{SecretLookup, may_be_found, plain, text};

/// Returns the key of a profile as requests carry it, if it can be resolved without I/O.
///
/// # Errors
/// If there is none, or it has expired.
pub fn resolve(profile: &Profile, env: &Env, now: i64) -> Result<Secret, AuthError> {
    let missing = || AuthError::Missing { provider: profile.provider.clone() };
    let expired = || AuthError::Expired { provider: profile.provider.clone() };
    match &profile.credential {
        Credential::ApiKey(key) => plain(key, env).ok_or_else(missing),
        Credential::Token { token, expires } => {
            let token = plain(token, env).ok_or_else(missing)?;
            if *expires > 0 && now >= *expires { Err(expired()) } else { Ok(token) }
        }
        Credential::OAuth { access, expires, project, .. } => {
            let access = text(access, env).ok_or_else(missing)?;
            if now >= *expires {
                return Err(expired());
            }
            match profile.provider.as_str() {
                "google-gemini-cli" | "google-antigravity" => {
                    Ok(Secret::new(json!({"token": access.reveal(), "projectId": project}).to_string()))
                }
                _ => Ok(access),
            }
        }
    }
}

/// Fails if a profile is known to be unusable without I/O.
pub(super) fn is_usable(profile: &Profile, env: &Env, now: i64) -> Result<(), AuthError> {
    let missing = || AuthError::Missing { provider: profile.provider.clone() };
    match &profile.credential {
        Credential::ApiKey(source) => may_be_found(source, env).then_some(()).ok_or_else(missing),
        Credential::Token { token, expires } => {
            let is_over = *expires > 0 && now >= *expires;
            if is_over {
                return Err(AuthError::Expired { provider: profile.provider.clone() });
            }
            may_be_found(token, env).then_some(()).ok_or_else(missing)
        }
        Credential::OAuth { refreshable: true, .. } if profile.place.is_some() => Ok(()),
        Credential::OAuth { .. } => resolve(profile, env, now).map(drop),
    }
}

/// Returns whether a profile has a credential, including an expired one that can be renewed.
pub(super) fn has_secret(profile: &Profile, env: &Env, now: i64) -> bool {
    match &profile.credential {
        Credential::ApiKey(_) | Credential::Token { .. } => is_usable(profile, env, now).is_ok(),
        Credential::OAuth { access, refreshable, .. } => text(access, env).is_some() || *refreshable,
    }
}

/// The credentials of one profile, or those found without one. They are looked up for each request, because this process and others renew
/// logins.
pub(super) struct ProfileAuth {
    profiles: Profiles,
    profile: Option<Profile>,
    /// The secret sent with the last request.
    sent: Mutex<Option<Secret>>,
}

impl ProfileAuth {
    pub(super) fn new(profiles: Profiles, profile: Option<Profile>) -> Self {
        Self { profiles, profile, sent: Mutex::default() }
    }

    async fn find(&self, model: &Model, cancel: &Cancel) -> Result<Auth, AuthError> {
        let inner = &self.profiles.0;
        let plain = inner.without_profile.as_ref();
        let auth = match (&self.profile, plain) {
            (None, None) => return Err(AuthError::Missing { provider: model.provider.clone() }),
            (None, Some(plain)) => plain.for_model(model, cancel).await?,
            (Some(profile), plain) => {
                let auth = self.of_profile(profile).await?;
                match plain {
                    Some(plain) => plain.complete(model, auth, KeyLookup::Value).await?,
                    None => auth,
                }
            }
        };
        *self.sent.lock().unwrap_or_else(PoisonError::into_inner) = auth.key.clone();
        Ok(auth)
    }

    async fn of_profile(&self, known: &Profile) -> Result<Auth, AuthError> {
        let inner = &self.profiles.0;
        self.profiles.reload();
        let profile = self.profiles.get(&known.id).unwrap_or_else(|| known.clone());
        match (&profile.credential, &profile.place) {
            (Credential::OAuth { .. }, Some(place)) => {
                let storage = self.profiles.store_of(&profile.id).login(&profile, place);
                let renewed = match inner.logins.resolve(&profile.provider, &storage, &inner.host).await {
                    Ok(renewed) => renewed,
                    // Other programs copy logins of the main agent, and a copy becomes invalid when the original is renewed.
                    Err(error) => Some(self.of_lower_layer(&profile).await.ok_or(error)?),
                };
                // If logins of the provider cannot be renewed here, use the stored one until it expires.
                renewed.map_or_else(|| self.stored(&profile), Ok)
            }
            (Credential::OAuth { .. }, None) => self.stored(&profile),
            (Credential::ApiKey(source) | Credential::Token { token: source, .. }, _) => {
                is_usable(&profile, inner.host.env(), inner.host.now_ms())?;
                let secrets = &inner.config.secrets;
                let lookup = SecretLookup { config: secrets, host: &inner.host, commands: &inner.commands };
                lookup.find(source, &profile.provider).await.map(Auth::key)
            }
        }
    }

    /// Returns the same login from the main agent, if it is valid there.
    async fn of_lower_layer(&self, profile: &Profile) -> Option<Auth> {
        let inner = &self.profiles.0;
        let below = inner.stores.iter().skip_while(|store| !store.has(&profile.id)).skip(1);
        for store in below {
            let content = store.content();
            let Some(other) = content.profiles.iter().find(|other| other.id == profile.id) else { continue };
            let Some(place) = &other.place else { continue };
            if let Ok(Some(auth)) = inner.logins.resolve(&other.provider, &store.login(other, place), &inner.host).await
            {
                return Some(auth);
            }
        }
        None
    }

    fn stored(&self, profile: &Profile) -> Result<Auth, AuthError> {
        let host = &self.profiles.0.host;
        resolve(profile, host.env(), host.now_ms()).map(Auth::key)
    }
}

impl RequestAuth for ProfileAuth {
    fn for_model<'a>(&'a self, model: &'a Model, cancel: &'a Cancel) -> BoxFuture<'a, Result<Auth, AuthError>> {
        Box::pin(async { cancel.run(self.find(model, cancel)).await.map_err(|_| AuthError::Cancelled)? })
    }

    fn check<'a>(&'a self, model: &'a Model, cancel: &'a Cancel) -> BoxFuture<'a, Result<(), AuthError>> {
        Box::pin(async move {
            let inner = &self.profiles.0;
            match (&self.profile, &inner.without_profile) {
                // Do not run a program to find out.
                (Some(profile), _) => is_usable(profile, inner.host.env(), inner.host.now_ms()),
                (None, Some(plain)) => plain.check(model, cancel).await,
                (None, None) => Err(AuthError::Missing { provider: model.provider.clone() }),
            }
        })
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.profiles.0.logins.settle())
    }

    fn renew<'a>(&'a self, model: &'a Model, cancel: &'a Cancel) -> BoxFuture<'a, bool> {
        Box::pin(async {
            let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let Some(sent) = sent else { return false };
            let inner = &self.profiles.0;
            let renewed = async {
                match self.profile.as_ref().map(|profile| (profile, &profile.place)) {
                    Some((profile, Some(place))) => {
                        let storage = self.profiles.store_of(&profile.id).login(profile, place);
                        inner.logins.renew(&profile.provider, &storage, &inner.host, &sent).await
                    }
                    Some(_) => false,
                    None => match &inner.without_profile {
                        Some(plain) => plain.renew_login(&model.provider, &sent).await,
                        None => false,
                    },
                }
            };
            cancel.run(renewed).await.unwrap_or(false)
        })
    }
}

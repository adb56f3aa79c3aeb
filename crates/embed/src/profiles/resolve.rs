//! Resolves a profile to the key of a request.

use futures::future::BoxFuture;
use pinch_coding_agent::auth::{AuthError, RequestAuth};
use pinch_llm::model::Model;
use pinch_llm::request::Auth;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Env;
use pinch_stdx::secret::Secret;
use serde_json::json;

use super::Profiles;
use super::file::{Credential, Profile};

/// The key of a profile, as requests carry it.
///
/// # Errors
/// If there is none, or it has expired.
pub fn resolve(profile: &Profile, env: &Env, now: i64) -> Result<Secret, AuthError> {
    let missing = || AuthError::Missing { provider: profile.provider.clone() };
    let expired = || AuthError::Expired { provider: profile.provider.clone() };
    match &profile.credential {
        Credential::ApiKey(key) => value(key, env).ok_or_else(missing),
        Credential::Token { token, expires } => {
            let token = value(token, env).ok_or_else(missing)?;
            if *expires > 0 && now >= *expires { Err(expired()) } else { Ok(token) }
        }
        Credential::OAuth { access, expires, project, .. } => {
            let access = value(access, env).ok_or_else(missing)?;
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

/// Whether a profile can be resolved to a key; an expired login counts if it can be refreshed.
pub(super) fn has_secret(profile: &Profile, env: &Env, now: i64) -> bool {
    match &profile.credential {
        Credential::ApiKey(key) => value(key, env).is_some(),
        Credential::Token { token, expires } => value(token, env).is_some() && (*expires <= 0 || now < *expires),
        Credential::OAuth { access, refreshable, .. } => value(access, env).is_some() || *refreshable,
    }
}

/// A secret, or the environment variable it names as `${NAME}`.
fn value(secret: &Secret, env: &Env) -> Option<Secret> {
    let text = secret.reveal().trim();
    let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let text = match name {
        Some(name) => env.non_empty(name)?,
        None => text,
    };
    (!text.is_empty()).then(|| Secret::new(text))
}

/// The credentials of one profile. They are looked up for each request, because another program may have refreshed them.
pub(super) struct ProfileAuth {
    profiles: Profiles,
    profile: Profile,
}

impl ProfileAuth {
    pub(super) fn new(profiles: Profiles, profile: Profile) -> Self {
        Self { profiles, profile }
    }
}

impl RequestAuth for ProfileAuth {
    fn for_model<'a>(&'a self, _: &'a Model, _: &'a Cancel) -> BoxFuture<'a, Result<Auth, AuthError>> {
        Box::pin(async move {
            let profile = self.profiles.get(&self.profile.id).unwrap_or_else(|| self.profile.clone());
            let host = &self.profiles.0.host;
            resolve(&profile, host.env(), host.now_ms()).map(Auth::key)
        })
    }
}

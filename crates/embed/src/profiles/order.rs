//! The order in which profiles are tried.

use pinch_llm::ids::ProviderId;
use pinch_ports::HealthRecords;
use pinch_stdx::host::Env;

use super::choice::{ProfileChoice, ProfileSource};
use super::file::{Profile, ProfileFile};
use super::health::health_of;
use super::{never_cools, resolve};
use crate::config::auth::ProfileMode;
use crate::config::{AuthConfig, normalise_provider};
use crate::key::ProfileId;

/// Input of [`order`].
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// The provider of the profiles.
    pub provider: &'a ProviderId,
    /// The model they are for; `None`: any. A cooldown may be for another model.
    pub model: Option<&'a str>,
    /// The profile to try first, if it is among them.
    pub preferred: Option<&'a ProfileId>,
    /// All profiles.
    pub profiles: &'a [Profile],
    /// Explicit orders.
    pub file: &'a ProfileFile,
    /// The health of the profiles.
    pub health: &'a HealthRecords,
    /// Configured orders and named profiles.
    pub config: &'a AuthConfig,
    /// The environment that `${NAME}` in the configuration refers to.
    pub env: &'a Env,
    /// The current time, in milliseconds since the epoch.
    pub now: i64,
}

/// Returns the profiles of a provider in order: the configured one, else by kind and then least recently used first. Profiles in cooldown
/// come last.
pub fn order(by: &Order<'_>) -> Vec<ProfileId> {
    let provider = normalise_provider(by.provider.as_str());
    let named: Vec<ProfileId> =
        by.config.profiles.iter().filter(|profile| profile.provider == provider).map(|p| p.id.clone()).collect();
    let in_config = by.config.order.get(provider.as_str()).cloned().filter(|ids| !ids.is_empty());
    let in_list = (by.config.is_list && !named.is_empty()).then(|| named.clone());
    let explicit = by.file.order(&provider).or(in_config).or(in_list);
    let is_explicit = explicit.is_some();
    let stored = || by.profiles.iter().filter(|p| p.provider == provider).map(|p| p.id.clone()).collect::<Vec<_>>();
    let base = explicit.unwrap_or_else(|| if named.is_empty() { stored() } else { named.clone() });
    let mut usable = of_provider(by, &provider, base);
    if usable.is_empty() && !is_explicit && !named.is_empty() {
        usable = of_provider(by, &provider, stored());
    }
    let until = |profile: &&Profile| {
        let health = health_of(by.health, &profile.id);
        let rests = !never_cools(&profile.provider) && health.is_cooling(by.now, by.model);
        if rests { health.cools_until(by.now) } else { None }
    };
    let (mut healthy, mut resting): (Vec<&Profile>, Vec<&Profile>) =
        usable.into_iter().partition(|profile| until(profile).is_none());
    if !is_explicit {
        healthy.sort_by_key(|profile| {
            let kind = match profile.credential.mode() {
                ProfileMode::OAuth => 0,
                ProfileMode::Token => 1,
                ProfileMode::ApiKey => 2,
            };
            (kind, health_of(by.health, &profile.id).last_used.unwrap_or(0))
        });
    }
    resting.sort_by_key(until);
    let mut ids: Vec<ProfileId> = healthy.into_iter().chain(resting).map(|profile| profile.id.clone()).collect();
    if let Some(at) = by.preferred.and_then(|preferred| ids.iter().position(|id| id == preferred)) {
        let preferred = ids.remove(at);
        ids.insert(0, preferred);
    }
    ids
}

/// Returns the profiles that have a credential for the provider, without duplicates.
fn of_provider<'a>(by: &Order<'a>, provider: &ProviderId, ids: Vec<ProfileId>) -> Vec<&'a Profile> {
    let mut found: Vec<&Profile> = Vec::new();
    for id in ids {
        let known = by.profiles.iter().find(|profile| profile.id == id).or_else(|| renamed(by, provider, &id));
        let Some(profile) = known else { continue };
        let entry = by.config.profiles.iter().find(|entry| entry.id == id);
        let fits = entry.is_none_or(|entry| {
            let mode = profile.credential.mode();
            entry.provider == *provider
                && entry
                    .mode
                    .is_none_or(|wanted| wanted == mode || (wanted == ProfileMode::OAuth && mode == ProfileMode::Token))
        });
        let is_new = found.iter().all(|other| other.id != profile.id);
        if profile.provider == *provider && fits && is_new && resolve::has_secret(profile, by.env, by.now) {
            found.push(profile);
        }
    }
    found
}

/// Returns the login that a configured one was renamed to: programs rename `provider:default` when they learn the user's email address.
fn renamed<'a>(by: &Order<'a>, provider: &ProviderId, id: &ProfileId) -> Option<&'a Profile> {
    let is_default = id.as_str().strip_suffix(":default").is_some_and(|name| normalise_provider(name) == *provider);
    let entry = by.config.profiles.iter().find(|entry| entry.id == *id)?;
    if !is_default || entry.mode != Some(ProfileMode::OAuth) || entry.credential.is_some() {
        return None;
    }
    let is_login =
        |profile: &&Profile| profile.provider == *provider && profile.credential.mode() == ProfileMode::OAuth;
    let logins: Vec<&Profile> = by.profiles.iter().filter(is_login).collect();
    let label = |profile: &Profile| profile.id.as_str().split_once(':').map(|(_, label)| label.to_owned());
    let of_email = logins.iter().find(|profile| entry.email.is_some() && label(profile) == entry.email);
    let last_good = by.file.last_good(provider).and_then(|good| logins.iter().find(|profile| profile.id == good));
    let only = || match logins[..] {
        [only] => Some(only),
        _ => None,
    };
    let only_email = || {
        let mut with_email = logins.iter().filter(|profile| profile.id.as_str().contains('@'));
        with_email.next().filter(|_| with_email.next().is_none()).copied()
    };
    of_email.or(last_good).copied().or_else(only).or_else(only_email)
}

/// The profiles that a run may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The profiles in order; if empty, credentials found without a profile are used.
    pub ids: Vec<ProfileId>,
    /// Whether the user chose a profile, which is then the only one.
    pub locked: bool,
}

/// The user chose a profile that is not configured for the provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Auth profile \"{id}\" is not configured for {provider}.")]
pub struct NotConfigured {
    /// The profile.
    pub id: ProfileId,
    /// The provider.
    pub provider: ProviderId,
}

/// Applies the choice of a request to an order. A choice of the user is binding unless the profile belongs to another provider. `owner`:
/// the provider it belongs to, or `None` if there is no such profile.
///
/// # Errors
/// If the user chose a profile that does not exist, or one of this provider that is not in its order.
pub(super) fn select(
    order: Vec<ProfileId>,
    choice: Option<&ProfileChoice>,
    owner: Option<&ProviderId>,
    provider: &ProviderId,
) -> Result<Selection, NotConfigured> {
    let provider = normalise_provider(provider.as_str());
    let locked = choice.filter(|choice| {
        choice.source == ProfileSource::User && owner.is_none_or(|owner| normalise_provider(owner.as_str()) == provider)
    });
    match locked {
        None => Ok(Selection { ids: order, locked: false }),
        Some(choice) if order.contains(&choice.id) => Ok(Selection { ids: vec![choice.id.clone()], locked: true }),
        Some(choice) => Err(NotConfigured { id: choice.id.clone(), provider }),
    }
}

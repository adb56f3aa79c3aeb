//! The providers that support logins, and their login methods.

use std::fmt;
use std::sync::Arc;

use pinch_llm::catalog::canonical_provider;
use pinch_llm::ids::ProviderId;
use pinch_llm::keys;
use pinch_llm::oauth::OAuthFlow;

use crate::models::RegistryAuth;

/// A login method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoginMethod {
    /// Sign in with a browser; requests carry a token that is refreshed.
    Subscription,
    /// Enter an API key.
    ApiKey,
}

impl LoginMethod {
    /// Returns the name used on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Subscription => "subscription",
            Self::ApiKey => "api-key",
        }
    }

    /// Returns the label shown to users.
    pub fn label(self) -> &'static str {
        match self {
            Self::Subscription => "Use a subscription",
            Self::ApiKey => "Use an API key",
        }
    }
}

impl fmt::Display for LoginMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Subscription => "subscription",
            Self::ApiKey => "API key",
        })
    }
}

/// A provider that users can log in to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginProvider {
    /// Its id, under which credentials are stored.
    pub id: ProviderId,
    /// Its display name.
    pub name: String,
    /// The login methods, preferred one first; empty if credentials are stored elsewhere, as for cloud providers.
    pub methods: Vec<LoginMethod>,
}

impl LoginProvider {
    /// Returns all providers, sorted by name.
    pub fn all(auth: &RegistryAuth) -> Vec<Self> {
        let mut ids = auth.registry().providers();
        for flow in auth.logins().flows().iter().filter(|flow| flow.signs_in()) {
            let id = ProviderId::new(flow.id());
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        let mut all: Vec<Self> = ids.into_iter().map(|id| Self::of(auth, id)).collect();
        all.sort_by_cached_key(|provider| (provider.name.to_lowercase(), provider.id.to_string()));
        all
    }

    /// Finds a provider by its id, ignoring case, or by a legacy id.
    pub fn find(auth: &RegistryAuth, name: &str) -> Option<Self> {
        let name = canonical_provider(name);
        Self::all(auth).into_iter().find(|provider| provider.id.as_str().eq_ignore_ascii_case(name))
    }

    fn of(auth: &RegistryAuth, id: ProviderId) -> Self {
        let flow = flow(auth, &id);
        let takes_key = match id.as_str() {
            "amazon-bedrock" => false,
            id => flow.is_none() || !keys::variables(id).is_empty(),
        };
        let subscription = flow.is_some().then_some(LoginMethod::Subscription);
        let methods = subscription.into_iter().chain(takes_key.then_some(LoginMethod::ApiKey)).collect();
        let name = auth.registry().display_name(&id);
        // A provider without models and a name of its own gets its flow's name.
        let name = flow.filter(|_| name == id.as_str()).map_or(name, |flow| flow.name().to_owned());
        Self { id, name, methods }
    }
}

/// Returns the sign-in flow of a provider: an extension's, or else a built-in one.
pub(super) fn flow(auth: &RegistryAuth, provider: &ProviderId) -> Option<Arc<dyn OAuthFlow>> {
    let of_extension = auth.registry().flow_of(provider);
    let known = || auth.logins().flows().iter().find(|flow| flow.id() == provider.as_str()).cloned();
    of_extension.or_else(known).filter(|flow| flow.signs_in())
}

//! `auth-profiles.json`: credentials and their health. Unknown members are preserved.

use std::path::Path;

use pinch_coding_agent::document::{self, Problem};
use pinch_llm::ids::ProviderId;
use pinch_stdx::secret::Secret;
use serde_json::{Map, Value};

use crate::config::auth::{InlineCredential, InlineProfile, ProfileMode, clean_secret};
use crate::config::normalise_provider;
use crate::config::secrets::{KeySource, SecretRef};
use crate::key::ProfileId;

use super::login::LoginPlace;

/// The content of the file as last read.
#[derive(Clone, Debug, Default)]
pub struct ProfileFile(Map<String, Value>);

/// A profile with its credential.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its id.
    pub id: ProfileId,
    /// The provider it is for.
    pub provider: ProviderId,
    /// The credential.
    pub credential: Credential,
    /// Where a renewable login is stored.
    pub(super) place: Option<LoginPlace>,
}

/// A credential.
#[derive(Clone, Debug)]
pub enum Credential {
    /// An API key.
    ApiKey(KeySource),
    /// A token that cannot be refreshed; `expires` in milliseconds since the epoch, 0: never.
    Token {
        /// The token.
        token: KeySource,
        /// Expiry time.
        expires: i64,
    },
    /// A refreshable OAuth login.
    OAuth {
        /// The access token.
        access: Secret,
        /// Whether there is a refresh token.
        refreshable: bool,
        /// Expiry time.
        expires: i64,
        /// Project that requests belong to, if the provider needs one.
        project: Option<String>,
    },
}

impl Credential {
    /// Returns whether it contains anything to authenticate with.
    fn is_present(&self) -> bool {
        match self {
            Self::ApiKey(key) => !key.is_empty(),
            Self::Token { token, .. } => !token.is_empty(),
            Self::OAuth { access, refreshable, .. } => !access.is_empty() || *refreshable,
        }
    }

    /// Returns the kind of credential.
    pub fn mode(&self) -> ProfileMode {
        match self {
            Self::ApiKey(_) => ProfileMode::ApiKey,
            Self::Token { .. } => ProfileMode::Token,
            Self::OAuth { .. } => ProfileMode::OAuth,
        }
    }
}

impl Profile {
    /// Reads an entry; `None` if its type is unknown or it names no provider.
    pub fn from_entry(id: &str, entry: &Value) -> Option<Self> {
        let provider = entry["provider"].as_str().filter(|provider| !provider.trim().is_empty())?;
        let secret = |name: &str| Secret::new(clean_secret(entry[name].as_str().unwrap_or("")));
        // A reference takes precedence: a text next to it is left over from its migration.
        let source = |name: &str, reference: &str| {
            SecretRef::read(&entry[reference]).map_or_else(|| KeySource::Text(secret(name)), KeySource::Reference)
        };
        let expires = entry["expires"].as_f64().unwrap_or(0.0) as i64;
        let credential = match entry["type"].as_str()? {
            "api_key" => Credential::ApiKey(source("key", "keyRef")),
            "token" => Credential::Token { token: source("token", "tokenRef"), expires },
            "oauth" => Credential::OAuth {
                access: secret("access"),
                refreshable: !secret("refresh").is_empty(),
                expires,
                project: entry["projectId"].as_str().map(str::to_owned),
            },
            _ => return None,
        };
        Some(Self { id: id.into(), provider: normalise_provider(provider), credential, place: None })
    }

    /// Returns a configured profile, if the configuration contains its credential.
    pub fn inline(profile: &InlineProfile) -> Option<Self> {
        let credential = match profile.credential.clone()? {
            InlineCredential::ApiKey(key) => Credential::ApiKey(key),
            InlineCredential::Token { token, expires } => Credential::Token { token, expires },
            InlineCredential::OAuth { access, expires } => {
                Credential::OAuth { access, refreshable: false, expires, project: None }
            }
        };
        Some(Self { id: profile.id.clone(), provider: profile.provider.clone(), credential, place: None })
    }
}

impl ProfileFile {
    /// Loads a file. A missing file counts as empty; so does a damaged one, which is also reported.
    pub fn load(path: &Path) -> (Self, Vec<Problem>) {
        match document::read_object(path) {
            Ok(document) => (Self(document), Vec::new()),
            Err(problem) => (Self::default(), vec![problem]),
        }
    }

    /// Reads a file in which earlier versions stored one credential per provider: each becomes `provider:default`.
    pub fn of_legacy(entries: &Map<String, Value>) -> Self {
        let mut profiles = Map::new();
        for (name, entry) in entries {
            let (provider, id) = (normalise_provider(name), Self::legacy_id(name));
            let mut profile = Map::from_iter([("type".to_owned(), Value::from("oauth"))]);
            profile.extend(entry.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
            profile.entry("provider").or_insert_with(|| provider.as_str().into());
            let profile = Value::Object(profile);
            if Profile::from_entry(id.as_str(), &profile).is_some_and(|profile| profile.credential.is_present()) {
                profiles.insert(id.to_string(), profile);
            }
        }
        Self(Map::from_iter([("profiles".to_owned(), Value::Object(profiles))]))
    }

    /// Returns the id of the profile for an entry of such a file.
    pub(super) fn legacy_id(name: &str) -> ProfileId {
        ProfileId::from(format!("{}:default", normalise_provider(name)).as_str())
    }

    /// Returns this file merged over another one; entries of this one take precedence.
    #[must_use]
    pub fn over(&self, below: &Self) -> Self {
        /// Members whose own members are merged.
        const MERGED: [&str; 4] = ["profiles", "order", "lastGood", "usageStats"];
        let mut document = below.0.clone();
        for (name, value) in &self.0 {
            match (document.get_mut(name), value) {
                (Some(Value::Object(below)), Value::Object(own)) if MERGED.contains(&name.as_str()) => {
                    below.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
                }
                _ => drop(document.insert(name.clone(), value.clone())),
            }
        }
        Self(document)
    }

    /// Wraps a parsed document.
    pub fn from_document(document: Map<String, Value>) -> Self {
        Self(document)
    }

    /// Returns the document.
    pub fn document(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Returns its profiles, without malformed ones.
    pub fn profiles(&self) -> Vec<Profile> {
        let entries = self.0.get("profiles").and_then(Value::as_object).into_iter().flatten();
        entries.filter_map(|(id, entry)| Profile::from_entry(id, entry)).collect()
    }

    /// Returns the profile of a provider that last worked.
    pub(super) fn last_good(&self, provider: &ProviderId) -> Option<ProfileId> {
        let last_good = self.0.get("lastGood")?.as_object()?;
        let (_, id) = last_good.iter().find(|(name, _)| normalise_provider(name) == *provider)?;
        id.as_str().map(ProfileId::new)
    }

    /// Returns the explicit order of a provider.
    pub fn order(&self, provider: &ProviderId) -> Option<Vec<ProfileId>> {
        let orders = self.0.get("order")?.as_object()?;
        let (_, list) =
            orders.iter().find(|(name, _)| normalise_provider(name) == normalise_provider(provider.as_str()))?;
        let texts = list.as_array()?.iter().filter_map(Value::as_str);
        let ids: Vec<ProfileId> = texts.map(str::trim).filter(|id| !id.is_empty()).map(ProfileId::new).collect();
        (!ids.is_empty()).then_some(ids)
    }
}

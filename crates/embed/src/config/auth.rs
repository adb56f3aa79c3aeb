//! `auth`: profiles, their order and their cooldowns.

use std::collections::BTreeMap;

use pinch_coding_agent::document::Problem;
use pinch_llm::ids::ProviderId;
use pinch_stdx::secret::Secret;
use serde_json::Value;

use super::models::normalise_provider;
use super::node::Node;
use super::secrets::{KeySource, SecretRef, SecretsConfig};
use crate::key::ProfileId;

/// Profiles, their order and their cooldowns.
#[derive(Clone, Debug, Default)]
pub struct AuthConfig {
    /// The profiles, in order.
    pub profiles: Vec<InlineProfile>,
    /// Whether the profiles are given as a list; its order then applies to each provider.
    pub is_list: bool,
    /// Explicit orders, by normalised provider name.
    pub order: BTreeMap<String, Vec<ProfileId>>,
    /// Cooldowns after failures.
    pub cooldowns: Cooldowns,
    /// Where the secrets that profiles refer to are stored (`secrets`).
    pub secrets: SecretsConfig,
}

/// A profile named in the configuration, with or without its credential.
#[derive(Clone, Debug)]
pub struct InlineProfile {
    /// Its id.
    pub id: ProfileId,
    /// The normalised name of its provider.
    pub provider: ProviderId,
    /// The kind of credential.
    pub mode: Option<ProfileMode>,
    /// The email address of the login.
    pub email: Option<String>,
    /// The credential, if the configuration contains it.
    pub credential: Option<InlineCredential>,
}

/// Kind of credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileMode {
    /// An API key.
    ApiKey,
    /// A refreshable OAuth login.
    OAuth,
    /// A token that cannot be refreshed.
    Token,
}

impl ProfileMode {
    /// Parses the name used in files.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "api_key" => Self::ApiKey,
            "oauth" => Self::OAuth,
            "token" => Self::Token,
            _ => return None,
        })
    }
}

/// A credential in the configuration. `${NAME}` is expanded from the environment on use.
#[derive(Clone, Debug)]
pub enum InlineCredential {
    /// A key.
    ApiKey(KeySource),
    /// A token.
    Token {
        /// The token.
        token: KeySource,
        /// Expiry time, in milliseconds since the epoch; 0: never.
        expires: i64,
    },
    /// A login.
    OAuth {
        /// The access token.
        access: Secret,
        /// Expiry time, in milliseconds since the epoch.
        expires: i64,
    },
}

/// Cooldowns of profiles after failures.
#[derive(Clone, Debug, PartialEq)]
pub struct Cooldowns {
    /// Cooldowns after the first, second, … failure, in milliseconds.
    pub series: Vec<i64>,
    /// First cooldown after a billing failure, in milliseconds; each further one doubles.
    pub billing_ms: i64,
    /// `billing_ms` for individual providers.
    pub billing_ms_by_provider: BTreeMap<String, i64>,
    /// Longest cooldown after a billing failure, in milliseconds.
    pub billing_max_ms: i64,
    /// First cooldown of an invalid credential, in milliseconds.
    pub auth_permanent_ms: i64,
    /// Longest cooldown of an invalid credential, in milliseconds.
    pub auth_permanent_max_ms: i64,
    /// Time without failures after which the failure counters restart, in milliseconds.
    pub failure_window_ms: i64,
}

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

impl Default for Cooldowns {
    fn default() -> Self {
        Self {
            series: vec![MINUTE, 5 * MINUTE, 25 * MINUTE, HOUR],
            billing_ms: 5 * HOUR,
            billing_ms_by_provider: BTreeMap::new(),
            billing_max_ms: 24 * HOUR,
            auth_permanent_ms: 10 * MINUTE,
            auth_permanent_max_ms: HOUR,
            failure_window_ms: 24 * HOUR,
        }
    }
}

impl AuthConfig {
    /// Reads `auth` and `secrets`. `cooldowns`: the values to use where none are set.
    pub(super) fn read(
        node: &Node<'_>,
        secrets: &Node<'_>,
        cooldowns: &Cooldowns,
        problems: &mut Vec<Problem>,
    ) -> Self {
        node.object(problems);
        let profiles = read_profiles(&node.get("profiles"), problems);
        let mut order: BTreeMap<String, Vec<ProfileId>> = BTreeMap::new();
        for (provider, list) in node.get("order").members(problems) {
            let ids = list.texts(problems).unwrap_or_default();
            let ids = ids.iter().map(|id| id.trim()).filter(|id| !id.is_empty()).map(ProfileId::new).collect();
            order.insert(normalise_provider(provider).as_str().to_owned(), ids);
        }
        let is_list = matches!(node.get("profiles").value(), Some(Value::Array(_)));
        let cooldowns = Cooldowns::read(&node.get("cooldowns"), cooldowns, problems);
        Self { profiles, is_list, order, cooldowns, secrets: SecretsConfig::read(secrets, problems) }
    }

    /// Returns whether a profile or an order names this profile.
    pub(crate) fn names(&self, id: &ProfileId) -> bool {
        self.profiles.iter().any(|profile| profile.id == *id) || self.order.values().flatten().any(|other| other == id)
    }

    /// Returns whether the configuration contains the credential of this profile.
    pub(crate) fn has_key_of(&self, id: &ProfileId) -> bool {
        self.profiles.iter().any(|profile| profile.id == *id && profile.credential.is_some())
    }

    /// Returns whether the file itself contains a secret.
    pub fn has_secrets(&self) -> bool {
        let literal = |secret: &Secret| !secret.reveal().trim_start().starts_with("${");
        self.profiles.iter().any(|profile| match &profile.credential {
            None => false,
            Some(
                InlineCredential::ApiKey(KeySource::Text(secret))
                | InlineCredential::Token { token: KeySource::Text(secret), .. },
            ) => literal(secret),
            Some(InlineCredential::ApiKey(_) | InlineCredential::Token { .. }) => false,
            Some(InlineCredential::OAuth { access, .. }) => literal(access),
        })
    }
}

/// Reads profiles: a list of `{id, …}`, or an object by id.
fn read_profiles(node: &Node<'_>, problems: &mut Vec<Problem>) -> Vec<InlineProfile> {
    let named: Vec<(ProfileId, Node<'_>)> = if let Some(Value::Array(_)) = node.value() {
        let mut named: Vec<(ProfileId, Node<'_>)> = Vec::new();
        for item in node.items(problems) {
            let id_node = item.get("id");
            let id = id_node.text(problems).map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
            let Some(id) = id.map(ProfileId::from) else {
                problems.push(id_node.problem("is missing").remedy("Give the profile a name"));
                continue;
            };
            if named.iter().any(|(other, _)| *other == id) {
                problems.push(
                    id_node
                        .problem(format!("\"{id}\" is already the name of another profile"))
                        .remedy("Give each profile a unique name"),
                );
                continue;
            }
            named.push((id, item));
        }
        named
    } else {
        node.members(problems).into_iter().map(|(id, member)| (ProfileId::new(id.trim()), member)).collect()
    };
    named.into_iter().filter_map(|(id, node)| read_profile(id, &node, problems)).collect()
}

fn read_profile(id: ProfileId, node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<InlineProfile> {
    node.object(problems)?;
    let provider_node = node.get("provider");
    let Some(provider) = provider_node.text(problems).filter(|provider| !provider.trim().is_empty()) else {
        problems.push(provider_node.problem("is missing").remedy("Name the provider of the credential"));
        return None;
    };
    let secret = |name: &str, problems: &mut Vec<Problem>| {
        let text = node.get(name).text(problems)?;
        let text = clean_secret(&text);
        (!text.is_empty()).then(|| Secret::new(text))
    };
    let source = |name: &str, problems: &mut Vec<Problem>| {
        let member = node.get(name);
        match member.is_object() {
            true => SecretRef::read_node(&member, problems).map(KeySource::Reference),
            false => secret(name, problems).map(KeySource::Text),
        }
    };
    let expires = |problems: &mut Vec<Problem>| node.get("expires").number(problems).map_or(0, |at| at as i64);
    let credential = if let Some(key) = source("apiKey", problems) {
        Some(InlineCredential::ApiKey(key))
    } else if let Some(token) = source("token", problems) {
        Some(InlineCredential::Token { token, expires: expires(problems) })
    } else {
        secret("access", problems).map(|access| InlineCredential::OAuth { access, expires: expires(problems) })
    };
    let mode = node.get("mode").word(problems, &["api_key", "oauth", "token"], ProfileMode::parse);
    let mode = mode.or(match &credential {
        None => None,
        Some(InlineCredential::ApiKey(_)) => Some(ProfileMode::ApiKey),
        Some(InlineCredential::Token { .. }) => Some(ProfileMode::Token),
        Some(InlineCredential::OAuth { .. }) => Some(ProfileMode::OAuth),
    });
    let provider = normalise_provider(&provider);
    Some(InlineProfile { id, provider, mode, email: node.get("email").text(problems), credential })
}

/// Cleans up a pasted secret: removes all line breaks and surrounding spaces.
pub fn clean_secret(text: &str) -> String {
    let is_break = |c: char| matches!(c, '\r' | '\n' | '\u{2028}' | '\u{2029}');
    text.replace(is_break, "").trim().to_owned()
}

impl Cooldowns {
    pub(super) fn read(node: &Node<'_>, default: &Self, problems: &mut Vec<Problem>) -> Self {
        node.object(problems);
        let positive = |node: &Node<'_>, unit: i64, problems: &mut Vec<Problem>| {
            let number = node.number(problems).filter(|n| n.is_finite() && *n > 0.0)?;
            Some((number * unit as f64) as i64)
        };
        let mut read =
            |name: &str, unit: i64, default: i64| positive(&node.get(name), unit, problems).unwrap_or(default);
        let billing_ms = read("billingBackoffHours", HOUR, default.billing_ms).max(MINUTE);
        let billing_max_ms = read("billingMaxHours", HOUR, default.billing_max_ms).max(billing_ms);
        let auth_permanent_ms = read("authPermanentBackoffMinutes", MINUTE, default.auth_permanent_ms);
        let auth_permanent_max_ms =
            read("authPermanentMaxMinutes", MINUTE, default.auth_permanent_max_ms).max(auth_permanent_ms);
        let failure_window_ms = read("failureWindowHours", HOUR, default.failure_window_ms);
        let series: Vec<i64> =
            node.get("series").items(problems).iter().filter_map(|item| positive(item, 1, problems)).collect();
        let billing_ms_by_provider = (node.get("billingBackoffHoursByProvider").members(problems).into_iter())
            .filter_map(|(name, hours)| {
                Some((normalise_provider(name).as_str().to_owned(), positive(&hours, HOUR, problems)?.max(MINUTE)))
            })
            .collect();
        Self {
            series: if series.is_empty() { default.series.clone() } else { series },
            billing_ms,
            billing_ms_by_provider,
            billing_max_ms,
            auth_permanent_ms,
            auth_permanent_max_ms,
            failure_window_ms,
        }
    }
}

//! The index of session keys and the data stored about each.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_session::llm::ids::SessionId;
use pinch_session::store::Fence;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::error::PortError;
use crate::session_key::SessionKey;

/// Stores one [`SessionEntry`] per session key.
///
/// An engine's default is each agent's `sessions.json`, which OpenClaw reads and writes as well.
pub trait SessionIndex: fmt::Debug + Send + Sync {
    /// Returns the entry of a key.
    ///
    /// # Errors
    /// Returns [`PortError`] if the index cannot be read.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<SessionEntry>, PortError>>;

    /// Returns all entries of an agent, by key.
    ///
    /// # Errors
    /// Returns [`PortError`] if the index cannot be read.
    fn list<'a>(&'a self, agent: &'a str) -> BoxFuture<'a, Result<BTreeMap<SessionKey, SessionEntry>, PortError>>;

    /// Atomically reads, changes and writes an entry, and returns the new state. `fence` is the lease of the calling run, if any; an
    /// outdated one is rejected.
    ///
    /// # Errors
    /// Returns [`PortError`] if the update fails; nothing is changed then.
    fn update<'a>(
        &'a self,
        key: &'a str,
        fence: Option<Arc<dyn Fence>>,
        change: EntryChange,
    ) -> BoxFuture<'a, Result<Option<SessionEntry>, PortError>>;
}

/// A change to an entry; `None` stands for no entry. It may be applied more than once, each time to the latest state.
pub type EntryChange = Arc<dyn Fn(Option<SessionEntry>) -> Option<SessionEntry> + Send + Sync>;

/// Data stored about the session of a key. JSON members are those of OpenClaw's `sessions.json`; times are milliseconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionEntry {
    /// The current session.
    pub session_id: SessionId,
    /// Its transcript, if it is not at the store's default path: a path, relative to the index or absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// When a message last arrived.
    #[serde(deserialize_with = "millis")]
    pub updated_at: i64,
    /// The label shown to people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The thinking level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
    /// How much of tool calls is shown to the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbose_level: Option<String>,
    /// How much of the model's reasoning is shown to the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_level: Option<String>,
    /// The provider chosen by the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_override: Option<String>,
    /// The model chosen by the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_override: Option<String>,
    /// The auth profile that the session is pinned to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_profile_override: Option<String>,
    /// Who pinned the profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_profile_override_source: Option<OverrideSource>,
    /// The number of compactions when the profile was pinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_profile_override_compaction_count: Option<u64>,
    /// Input tokens of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Tokens of the context after the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// The context window of the last model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// The provider that answered last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
    /// The model that answered last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The number of compactions of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction_count: Option<u64>,
    /// Whether the last run was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aborted_last_run: Option<bool>,
    /// The session that spawned this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<SessionKey>,
    /// Where answers are sent (`deliveryContext`).
    #[serde(rename = "deliveryContext", skip_serializing_if = "Option::is_none")]
    pub route: Option<SessionRoute>,
    /// Unknown members, which are kept.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Where a session's answers are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionRoute {
    /// The channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The target within the channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The channel account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// The thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<Value>,
    /// Unknown members, which are kept.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Who chose an override.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OverrideSource {
    /// The program.
    Auto,
    /// The user.
    User,
}

impl SessionEntry {
    /// Creates the entry of a new session.
    pub fn new(session_id: impl Into<SessionId>, now_ms: i64) -> Self {
        Self { session_id: session_id.into(), updated_at: now_ms, ..Self::default() }
    }
}

/// Parses a time; JavaScript writes null for an unknown one.
fn millis<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.map_or(0, |ms| ms as i64))
}

//! Which session a key means, and what is remembered about it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_session::store::Fence;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::error::PortError;

/// Stores one [`SessionEntry`] for each session key.
///
/// The default of an engine is `sessions.json` of each agent, which OpenClaw reads and writes as well.
pub trait SessionIndex: fmt::Debug + Send + Sync {
    /// The entry of a key.
    ///
    /// # Errors
    /// [`PortError`].
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<SessionEntry>, PortError>>;

    /// All entries of an agent, by key.
    ///
    /// # Errors
    /// [`PortError`].
    fn list<'a>(&'a self, agent: &'a str) -> BoxFuture<'a, Result<BTreeMap<String, SessionEntry>, PortError>>;

    /// Reads, changes and writes an entry as one step, and returns what was written. `fence` is the lease of the run that reports, if a run
    /// does; a stale one is refused.
    ///
    /// # Errors
    /// [`PortError`]; nothing was changed then.
    fn update<'a>(
        &'a self,
        key: &'a str,
        fence: Option<Arc<dyn Fence>>,
        change: EntryChange,
    ) -> BoxFuture<'a, Result<Option<SessionEntry>, PortError>>;
}

/// A change of an entry; `None` stands for no entry. It may be applied more than once, each time to what others wrote meanwhile.
pub type EntryChange = Arc<dyn Fn(Option<SessionEntry>) -> Option<SessionEntry> + Send + Sync>;

/// What is remembered about the session of a key. Members in JSON are those of OpenClaw's `sessions.json`; times are milliseconds since the
/// epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionEntry {
    /// The current session.
    pub session_id: String,
    /// Its transcript, if it is not where the store puts it: a path, relative to the index or absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// When a message last arrived.
    #[serde(deserialize_with = "millis")]
    pub updated_at: i64,
    /// The label people see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How much the model thinks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
    /// How much the user sees of tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbose_level: Option<String>,
    /// How much the user sees of the model's reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_level: Option<String>,
    /// The provider that the user chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_override: Option<String>,
    /// The model that the user chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_override: Option<String>,
    /// The auth profile that the session is pinned to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_profile_override: Option<String>,
    /// Who pinned it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_profile_override_source: Option<OverrideSource>,
    /// The number of compactions when it was pinned.
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
    /// How often the session was compacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction_count: Option<u64>,
    /// Whether the last run was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aborted_last_run: Option<bool>,
    /// The session that spawned this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<String>,
    /// Where answers go (`deliveryContext`).
    #[serde(rename = "deliveryContext", skip_serializing_if = "Option::is_none")]
    pub route: Option<SessionRoute>,
    /// Members that this version does not know; they are kept.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Where the answers of a session go.
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
    /// Members that this version does not know; they are kept.
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
    /// An entry of a session that begins now.
    pub fn new(session_id: impl Into<String>, now_ms: i64) -> Self {
        Self { session_id: session_id.into(), updated_at: now_ms, ..Self::default() }
    }
}

/// Reads a time; JavaScript writes null for one it does not know.
fn millis<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.map_or(0, |ms| ms as i64))
}

//! How credentials fared, as many hosts can share it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::error::PortError;

/// What is recorded about auth profiles: failures, cooldowns, last use.
///
/// The engine decides what an entry means; a store keeps it as it is, members that it does not know included.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HealthRecords {
    /// Entries by profile id (`usageStats` of OpenClaw's `auth-profiles.json`).
    pub profiles: BTreeMap<String, Map<String, Value>>,
    /// The profile that worked last, by provider (`lastGood`).
    pub last_good: BTreeMap<String, String>,
}

/// A change of [`HealthRecords`]. It may be applied more than once, each time to what others wrote meanwhile.
pub type HealthChange = Arc<dyn Fn(&mut HealthRecords) + Send + Sync>;

/// Stores [`HealthRecords`].
///
/// The default of an engine is `auth-profiles.json` of the agent directory, which OpenClaw reads and writes as well. Calls carry no lease: how
/// a credential fared is true whoever owns the session.
pub trait HealthStore: fmt::Debug + Send + Sync {
    /// Everything recorded.
    ///
    /// # Errors
    /// [`PortError`].
    fn load(&self) -> BoxFuture<'_, Result<HealthRecords, PortError>>;

    /// Reads, changes and writes the records as one step, and returns what was written.
    ///
    /// # Errors
    /// [`PortError`]; nothing was changed then.
    fn update(&self, change: HealthChange) -> BoxFuture<'_, Result<HealthRecords, PortError>>;
}

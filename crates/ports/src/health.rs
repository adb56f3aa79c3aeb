//! How credentials fared, as many hosts can share it.

use std::collections::BTreeMap;
use std::fmt;

use futures::future::BoxFuture;
use pinch_session::store::Fence;
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

/// Stores [`HealthRecords`].
///
/// The default of an engine is `auth-profiles.json` of the agent directory, which OpenClaw reads and writes as well.
pub trait HealthStore: fmt::Debug + Send + Sync {
    /// Everything recorded.
    ///
    /// # Errors
    /// [`PortError`].
    fn load(&self) -> BoxFuture<'_, Result<HealthRecords, PortError>>;

    /// Reads, changes and writes the records as one step, and returns what was written. `change` may be called more than once, and gets what
    /// others wrote meanwhile. `fence` is the lease of the run that reports, if a run does; a stale one is refused.
    ///
    /// # Errors
    /// [`PortError`]; nothing was changed then.
    fn update<'a>(
        &'a self,
        fence: Option<&'a dyn Fence>,
        change: &'a (dyn Fn(&mut HealthRecords) + Send + Sync),
    ) -> BoxFuture<'a, Result<HealthRecords, PortError>>;
}

//! Health of credentials, in a form that several hosts can share.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::error::PortError;

/// Records about auth profiles: failures, cooldowns, last use.
///
/// The engine interprets the entries; a store keeps them unchanged, including unknown members.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HealthRecords {
    /// Entries by profile id (`usageStats` of OpenClaw's `auth-profiles.json`).
    pub profiles: BTreeMap<String, Map<String, Value>>,
    /// The profile that worked last, by provider (`lastGood`).
    pub last_good: BTreeMap<String, String>,
}

/// A change to [`HealthRecords`]. It may be applied more than once, each time to the latest state.
pub type HealthChange = Arc<dyn Fn(&mut HealthRecords) + Send + Sync>;

/// Stores [`HealthRecords`].
///
/// An engine's default is `auth-profiles.json` in the agent directory, which OpenClaw reads and writes as well. Calls carry no lease,
/// because a credential's health does not depend on who owns the session.
pub trait HealthStore: fmt::Debug + Send + Sync {
    /// Loads all records.
    ///
    /// # Errors
    /// Returns [`PortError`] if the records cannot be read.
    fn load(&self) -> BoxFuture<'_, Result<HealthRecords, PortError>>;

    /// Atomically reads, changes and writes the records, and returns the new state.
    ///
    /// # Errors
    /// Returns [`PortError`] if the update fails; nothing is changed then.
    fn update(&self, change: HealthChange) -> BoxFuture<'_, Result<HealthRecords, PortError>>;
}

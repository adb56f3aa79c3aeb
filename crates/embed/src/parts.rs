//! What all runs of an engine share.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pinch_coding_agent::models::ModelRegistry;
use pinch_coding_agent::settings::Settings;
use pinch_stdx::host::Host;

use crate::config::Config;
use crate::lanes::Lanes;
use crate::run::failover::ProbeThrottle;
use crate::runtime::AttemptRuntime;

pub(crate) mod credentials;

use credentials::Credentials;

/// The parts of one engine. Everything deeper takes what it needs from here as arguments.
pub(crate) struct Parts {
    pub(crate) host: Host,
    pub(crate) config: Arc<Config>,
    pub(crate) settings: Settings,
    pub(crate) registry: Arc<ModelRegistry>,
    pub(crate) profiles: Credentials,
    pub(crate) lanes: Lanes,
    pub(crate) throttle: Mutex<ProbeThrottle>,
    pub(crate) runtime: Arc<dyn AttemptRuntime>,
    /// How long a locked session file is waited for.
    pub(crate) lock_patience: Duration,
    pub(crate) state_dir: PathBuf,
    pub(crate) agent_dir: PathBuf,
}

impl Parts {
    pub(crate) fn runtime(&self) -> &dyn AttemptRuntime {
        &*self.runtime
    }
}

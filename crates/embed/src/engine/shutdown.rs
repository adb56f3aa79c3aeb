//! How an engine comes to rest, and how it takes a new configuration.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pinch_coding_agent::document::Problem;
use pinch_stdx::cancel::CancelReason;

use super::agents;
use super::configured::{AgentDocuments, DocumentSources, set_slots};
use super::{Current, Engine};
use crate::config::Config;
use crate::parts::Parts;
use crate::parts::active::RunTarget;
use crate::plugin::{GatewayStart, GatewayStop};
use crate::runner::HARD_END;

/// How long after the hard end of stopped runs they may take to be dropped.
const GRACE: Duration = Duration::from_secs(1);

impl Engine {
    /// Tells plugins that the host takes messages from now on. `port`: where it listens, if it does. Call it once, inside the runtime; that no
    /// more messages are taken is told by [`Engine::drain`].
    pub fn announce_start(&self, port: Option<u16>) {
        self.parts().registered.plugins.gateway_started(GatewayStart { port });
    }

    /// Starts no more runs, and waits until those under way have ended. Runs that wait for their session or a slot, and messages that wait
    /// for their turn, end with [`RunError::Draining`](crate::run::RunError::Draining): their hosts may send them again elsewhere. Returns
    /// whether all runs ended within the limit. A login that is being renewed is waited for beyond that, for a minute at most: its old token is
    /// used up. Plugins that are still being told something are waited for, too, for half a minute at most. It cannot be undone.
    pub async fn drain(&self, limit: Duration) -> bool {
        let parts = self.parts();
        if !parts.gate.is_closed() {
            parts.registered.plugins.gateway_stopped(GatewayStop { reason: None });
        }
        parts.gate.close();
        let ended = parts.gate.wait_until_empty(limit).await;
        agents::flush(&parts).await;
        parts.seen.settle().await;
        parts.registered.plugins.drain().await;
        ended
    }

    /// Ends the engine: [drains](Engine::drain) it, stops runs that have not ended within the limit, and writes what is still to be
    /// written. Returns how many runs were stopped. A host that no longer polls its runs should drop them first.
    pub async fn shutdown(&self, limit: Duration) -> usize {
        if self.drain(limit).await {
            return 0;
        }
        let parts = self.parts();
        let runs = parts.active.list();
        for run in &runs {
            parts.active.abort(RunTarget::Run(&run.run_id), CancelReason::Shutdown);
        }
        if !parts.gate.wait_until_empty(HARD_END + GRACE).await {
            tracing::warn!("runs that were stopped have not ended; nobody polls them");
        }
        agents::flush(&parts).await;
        parts.registered.plugins.drain().await;
        runs.len()
    }

    /// Replaces the configuration, and reads the documents beside it again. Runs under way keep theirs; waiting messages and new runs use the
    /// new one. Returns the mistakes in it, which [`Engine::problems`] reports from now on.
    pub fn reload(&self, config: impl Into<Arc<Config>>) -> Vec<Problem> {
        let before = self.parts();
        let config: Arc<Config> = config.into();
        let loaded = AgentDocuments::load(&DocumentSources::of(&before), &config, &before.agent_dir, None);
        if let Some(lanes) = &before.lanes {
            set_slots(lanes, &config);
        }
        let parts = Parts {
            config,
            agents: Arc::default(),
            settings: loaded.settings,
            registry: loaded.registry,
            profiles: loaded.profiles,
            ..Parts::clone(&before)
        };
        let problems = Arc::new(loaded.problems);
        let current = Current { parts: Arc::new(parts), problems: Arc::clone(&problems) };
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
        problems.to_vec()
    }
}

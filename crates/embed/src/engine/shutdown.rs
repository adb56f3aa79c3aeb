//! Shutdown of an engine, and replacement of its configuration.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_coding_agent::document::Problem;
use pinch_stdx::cancel::CancelReason;

use super::agents;
use super::configured::{AgentDocuments, DocumentSources, set_slots};
use super::{Current, Engine, subagents};
use crate::config::Config;
use crate::parts::Parts;
use crate::parts::active::RunTarget;
use crate::plugin::{GatewayStart, GatewayStop};
use crate::runner::HARD_END;

/// How long background work may take to end once no run is left.
const SETTLE: Duration = Duration::from_secs(5);
/// How long stopped runs may take to be dropped.
const GRACE: Duration = Duration::from_secs(1);

impl Engine {
    /// Notifies plugins that the host now accepts messages. `port`: the port it listens on, if any. Call it once, inside the runtime;
    /// [`Engine::drain`] then notifies them of the end. Sub-agents that an earlier engine did not finish go on, if their tools are enabled.
    pub fn announce_start(&self, port: Option<u16>) {
        let parts = self.parts();
        subagents::resume(&self.background, &parts);
        parts.is_announced.store(true, Ordering::Relaxed);
        parts.registered.plugins.gateway_started(GatewayStart { port });
    }

    /// Starts no more runs, and waits until active ones have ended. Runs waiting for their session or a slot, and messages waiting for
    /// their turn, end with [`RunError::Draining`](crate::run::RunError::Draining), so that their hosts can send them elsewhere. Returns
    /// whether all runs ended within the limit. Beyond the limit, it waits up to a minute for logins being renewed, whose old tokens are
    /// used up, and up to half a minute for plugins being notified. It cannot be undone.
    pub fn drain(&self, limit: Duration) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let parts = self.parts();
            if !parts.gate.is_closed() && parts.is_announced.load(Ordering::Relaxed) {
                parts.registered.plugins.gateway_stopped(GatewayStop { reason: None });
            }
            parts.gate.close();
            let ended = parts.gate.wait_until_empty(limit).await;
            if ended {
                // What sub-agents have left to report is reported by the next engine.
                self.background.stop(SETTLE).await;
            }
            agents::flush(&parts).await;
            parts.seen.settle().await;
            parts.registered.plugins.drain().await;
            ended
        })
    }

    /// Shuts the engine down: [drains](Engine::drain) it, stops runs that have not ended within the limit, and writes pending state.
    /// Returns how many runs were stopped. A host that no longer polls its runs should drop them first.
    pub fn shutdown(&self, limit: Duration) -> BoxFuture<'_, usize> {
        Box::pin(async move {
            if self.drain(limit).await {
                return 0;
            }
            let parts = self.parts();
            let runs = parts.active.list();
            for run in &runs {
                parts.active.abort(RunTarget::Run(&run.run_id), CancelReason::Shutdown);
            }
            if !parts.gate.wait_until_empty(HARD_END + GRACE).await {
                tracing::warn!("stopped runs have not ended because nothing polls them");
            }
            self.background.stop(SETTLE).await;
            agents::flush(&parts).await;
            parts.registered.plugins.drain().await;
            runs.len()
        })
    }

    /// Replaces the configuration and rereads the documents next to it. Active runs keep the old one; waiting messages and new runs use the
    /// new one. Returns its problems, which [`Engine::problems`] reports from now on.
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
        let parts = Arc::new(parts);
        self.background.set_parts(&parts);
        let current = Current { parts, problems: Arc::clone(&problems) };
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
        problems.to_vec()
    }
}

//! The front door: one value a process or tenant, which runs are asked of.

use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::{Stream, StreamExt};
use pinch_coding_agent::document::Problem;
use pinch_coding_agent::machine::{LocalMachine, Machine};
use pinch_coding_agent::settings::Settings;
use pinch_coding_agent::store::{JsonlStore, SessionStore};
use pinch_llm::provider::ProviderRegistry;
use pinch_stdx::cancel::Deadline;
use pinch_stdx::host::Host;
use pinch_stdx::pull::{Pulled, pulled};
use tokio::time::Instant;

use crate::config::Config;
use crate::delivery::{Delivered, Pump, ReplySinks};
use crate::key;
use crate::lanes::{LaneError, Lanes};
use crate::parts::Parts;
use crate::parts::credentials::Credentials;
use crate::replies::Replies;
use crate::run::{RunError, RunRequest, RunResult};
use crate::runner::{RunEvent, Runner, millis};
use crate::runtime::AttemptRuntime;
use crate::runtime::native::NativeRuntime;

mod resolve;
mod session_lock;

use session_lock::SessionLock;

/// Runs agents. Cloning is cheap and shares everything: lanes, profiles, connections.
#[derive(Clone)]
pub struct Engine {
    parts: Arc<Parts>,
    problems: Arc<Vec<Problem>>,
}

/// Puts an [`Engine`] together.
pub struct EngineBuilder {
    host: Host,
    config: Arc<Config>,
    state_dir: PathBuf,
    agent_dir: Option<PathBuf>,
    providers: ProviderRegistry,
    store: Option<Arc<dyn SessionStore>>,
    machine: Arc<dyn Machine>,
    runtime: Option<Arc<dyn AttemptRuntime>>,
    lock_patience: Duration,
}

impl Engine {
    /// Begins with what every engine needs. `state_dir` holds `agents/<id>/sessions` and the agents' credentials.
    pub fn builder(host: Host, config: Arc<Config>, state_dir: &Path) -> EngineBuilder {
        EngineBuilder {
            host,
            config,
            state_dir: state_dir.to_owned(),
            agent_dir: None,
            providers: ProviderRegistry::builtin(),
            store: None,
            machine: Arc::new(LocalMachine),
            runtime: None,
            lock_patience: session_lock::PATIENCE,
        }
    }

    /// What was wrong in documents that are used all the same.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// A request with everything the configuration says: agent, session file, workspace, time limit.
    pub fn request(
        &self,
        session_id: &str,
        session_key: Option<&str>,
        agent_id: Option<&str>,
        prompt: &str,
    ) -> RunRequest {
        resolve::request(&self.parts, session_id, session_key, agent_id, prompt)
    }

    /// Runs a request. Nothing happens until the run is polled; dropping it stops everything and gives the lanes back.
    pub fn run(&self, request: RunRequest) -> EngineRun {
        let parts = Arc::clone(&self.parts);
        let result: ResultSlot = Arc::default();
        let slot = Arc::clone(&result);
        let events = pulled(move |giver| async move {
            let done = carry_out(&parts, request, &giver).await;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        });
        EngineRun { events, result }
    }
}

impl EngineBuilder {
    /// Uses another folder for `auth.json`, `models.json`, `settings.json` and the profiles; without it that of the agent `main`.
    #[must_use]
    pub fn agent_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.agent_dir = Some(dir.into());
        self
    }

    /// Asks other providers.
    #[must_use]
    pub fn providers(mut self, providers: ProviderRegistry) -> Self {
        self.providers = providers;
        self
    }

    /// Keeps sessions elsewhere.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn SessionStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// Lets tools act elsewhere.
    #[must_use]
    pub fn machine(mut self, machine: Arc<dyn Machine>) -> Self {
        self.machine = machine;
        self
    }

    /// Carries attempts out in another way.
    #[must_use]
    pub fn runtime(mut self, runtime: Arc<dyn AttemptRuntime>) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Waits this long for a session file that another program has locked, in place of 10 s; then a run ends with [`RunError::Busy`].
    #[must_use]
    pub fn lock_patience(mut self, patience: Duration) -> Self {
        self.lock_patience = patience;
        self
    }

    /// The engine. What is wrong in documents is in [`Engine::problems`]; the rest of them counts.
    pub fn build(self) -> Engine {
        let agent_dir = self.agent_dir.unwrap_or_else(|| self.state_dir.join("agents/main/agent"));
        let shared = self.state_dir.join("agent");
        // Documents of the agent itself come before those that the command line's own sessions use.
        let document = |name: &str| {
            let own = agent_dir.join(name);
            if own.is_file() { own } else { shared.join(name) }
        };
        let (settings, mut problems) = Settings::load(&document("settings.json"));
        let (registry, more) = resolve::registry(&document("models.json"), &self.config);
        problems.extend(more);
        let registry = Arc::new(registry);
        let (profiles, more) =
            Credentials::load(&agent_dir, &document("auth.json"), &self.config, &registry, &self.host);
        problems.extend(more);
        let store = self.store.unwrap_or_else(|| Arc::new(own_store(&self.state_dir, &settings)));
        let runtime = self.runtime.unwrap_or_else(|| Arc::new(NativeRuntime::new(self.providers, store, self.machine)));
        let lanes = Lanes::default();
        if let Some(places) = self.config.agents.defaults.max_concurrent {
            lanes.set_concurrency(key::global_lane(None), places);
        }
        let parts = Parts {
            host: self.host,
            config: self.config,
            settings,
            registry,
            profiles,
            lanes,
            throttle: Mutex::default(),
            runtime,
            lock_patience: self.lock_patience,
            state_dir: self.state_dir,
            agent_dir,
        };
        Engine { parts: Arc::new(parts), problems: Arc::new(problems) }
    }
}

/// Where sessions are kept unless somebody brings a store; as safe as the settings want it.
fn own_store(state_dir: &Path, settings: &Settings) -> JsonlStore {
    JsonlStore::flat(state_dir.join("agents/main/sessions")).durability(settings.durability)
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("agent_dir", &self.parts.agent_dir).finish_non_exhaustive()
    }
}

/// Runs a request to its end and hands the reply to nobody on the way: its payloads are in the result.
///
/// # Errors
/// [`RunError`].
pub async fn run_embedded_agent(engine: &Engine, request: RunRequest) -> Result<RunResult, RunError> {
    engine.run(request).finish().await
}

type ResultSlot = Arc<Mutex<Option<Result<RunResult, RunError>>>>;

/// A run under way: a stream of what happens, and then its result.
#[must_use = "a run does nothing unless polled"]
pub struct EngineRun {
    events: Pulled<'static, RunEvent>,
    result: ResultSlot,
}

impl EngineRun {
    /// Pulls the run to its end.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn finish(mut self) -> Result<RunResult, RunError> {
        while self.events.next().await.is_some() {}
        self.into_result()
    }

    /// Pulls the run to its end and hands the reply to sinks as it comes. The run never waits for a sink: what a slow one has not taken
    /// merges, and is delivered before this returns. [`Delivered`] says which blocks the sink took; what is still to be sent of the
    /// payloads says [`still_to_send`](crate::run::payloads::still_to_send).
    ///
    /// # Errors
    /// [`RunError`]; what the sinks got until then they keep.
    pub async fn deliver(mut self, sinks: Arc<dyn ReplySinks>) -> Result<(RunResult, Delivered), RunError> {
        let (sender, pump) = Pump::new(sinks);
        let pulled = async {
            while let Some(event) = self.events.next().await {
                if let RunEvent::Reply(event) = event {
                    sender.send(event);
                }
            }
            sender.close();
        };
        let ((), delivered) = futures::join!(pulled, pump.run());
        Ok((self.into_result()?, delivered))
    }

    fn into_result(self) -> Result<RunResult, RunError> {
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner).take();
        result.unwrap_or_else(|| Err(RunError::Internal("the run ended without a result".to_owned())))
    }

    /// The result, after the last event.
    ///
    /// # Errors
    /// [`RunError`], also when the run is not over.
    pub fn result(&mut self) -> Result<RunResult, RunError> {
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner).take();
        result.unwrap_or_else(|| Err(RunError::Internal("the run is not over".to_owned())))
    }
}

impl Stream for EngineRun {
    type Item = RunEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        Pin::new(&mut self.events).poll_next(cx)
    }
}

/// One run: lanes, what the request resolves to, and the runner.
async fn carry_out(
    parts: &Arc<Parts>,
    request: RunRequest,
    giver: &pinch_stdx::pull::Giver<RunEvent>,
) -> Result<RunResult, RunError> {
    if request.prompt.trim().is_empty() && request.images.is_empty() {
        return Err(RunError::Config("The prompt is empty".to_owned()));
    }
    let cancel = request.cancel.child();
    let asked = Instant::now();
    let session_lane = key::session_lane(request.session_key.as_deref(), &request.session_id);
    let global_lane = key::global_lane(request.lane.as_deref());
    let _permits = parts.lanes.enter(&session_lane, global_lane, &cancel).await.map_err(lane_error)?;
    let waited_ms = millis(asked.elapsed());
    let resolved = resolve::scope(parts, request)?;
    giver.give(RunEvent::Granted { waited_ms }).await;
    let began = Instant::now();
    let limited = match resolved.scope.request.timeout {
        Some(limit) => cancel.child_until(Deadline::after(limit)),
        None => cancel.child(),
    };
    // Given back before the lanes are, however the run ends.
    let _locked = match parts.runtime().session_file(&resolved.scope.request) {
        Some(file) => Some(SessionLock::acquire(&file, parts.lock_patience, &parts.host, &cancel).await?),
        None => None,
    };
    let mut runner = Runner {
        parts,
        scope: &resolved.scope,
        tell: giver,
        cancel: limited,
        began,
        replies: Replies::new(resolve::reply_options(parts, &resolved.scope.request)),
        held: Vec::new(),
        reports: Vec::new(),
        outcomes: Vec::new(),
    };
    runner.run(&resolved.candidates).await
}

fn lane_error(error: LaneError) -> RunError {
    match error {
        LaneError::Cancelled(reason) => RunError::Cancelled(reason),
        other => RunError::Busy(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_as_safe_as_the_settings_want() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        for (text, expected) in
            [("{}", "Os"), (r#"{"durability": "turn"}"#, "Turn"), (r#"{"durability": "entry"}"#, "Entry")]
        {
            std::fs::write(&path, text).unwrap();
            let store = format!("{:?}", own_store(dir.path(), &Settings::load(&path).0));
            assert!(store.contains(&format!("durability: {expected}")), "{store}");
        }
    }
}

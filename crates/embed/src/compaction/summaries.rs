//! Writes the summaries of embedded sessions.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_coding_agent::auth::{Authorised, RequestAuth};
use pinch_coding_agent::compaction::hooks::PendingCompaction;
use pinch_coding_agent::compaction::{
    CompactError, Strategy as _, Summarised, SummaryHooks, SummaryModel, SummaryPrompt, SummaryRetry, SummaryStep,
};
use pinch_coding_agent::recovery::RecoveryPlan;
use pinch_llm::message::{Message, Usage};
use pinch_llm::model::Model;
use pinch_llm::provider::{Provider, ProviderRegistry};
use pinch_llm::request::{CacheRetention, CallOptions, Request, SystemPrompt, ThinkingChoice};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::copy_on_write::CopyOnWrite;
use pinch_stdx::host::Host;

use super::{safeguard, sections};
use crate::config::compaction::{CompactionConfig, SummaryMode};

/// A model that writes summaries, and its credentials.
type AuthorisedModel = (Arc<Model>, Arc<dyn RequestAuth>);

/// Chooses a model to write summaries instead of the run's.
type LighterModel = Arc<dyn Fn(&Model) -> Option<AuthorisedModel> + Send + Sync>;

/// Reads the text of a workspace's AGENTS.md.
type InstructionsReader = Arc<dyn Fn() -> BoxFuture<'static, Option<String>> + Send + Sync>;

/// How long a compaction with all its requests may take, unless a single one may take longer.
const MAX_TIME: Duration = Duration::from_secs(900);

/// How the summaries of a run are made.
#[derive(Clone)]
pub struct SummaryPlan {
    config: CompactionConfig,
    lighter: LighterModel,
    /// Reads the workspace's AGENTS.md, whose rules summaries repeat.
    instructions: Option<InstructionsReader>,
}

impl SummaryPlan {
    /// Creates a plan; `lighter` chooses a model to write summaries instead of the run's, with its credentials.
    pub(crate) fn new(
        config: CompactionConfig,
        lighter: impl Fn(&Model) -> Option<AuthorisedModel> + Send + Sync + 'static,
    ) -> Self {
        Self { config, lighter: Arc::new(lighter), instructions: None }
    }

    /// Repeats the rules of a workspace in summaries; `read` returns the text of its AGENTS.md.
    pub(crate) fn with_instructions(
        mut self,
        read: impl Fn() -> BoxFuture<'static, Option<String>> + Send + Sync + 'static,
    ) -> Self {
        self.instructions = Some(Arc::new(read));
        self
    }

    /// Returns how long a compaction may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.config.timeout
    }

    async fn rules(&self) -> Option<String> {
        let read = self.instructions.as_ref()?;
        sections::workspace_rules(&read().await?)
    }
}

impl fmt::Debug for SummaryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SummaryPlan").field(&self.config).finish()
    }
}

/// Summaries for one session.
pub(crate) struct Summaries {
    plan: SummaryPlan,
    providers: Arc<ProviderRegistry>,
    model: Arc<Model>,
    options: CopyOnWrite<CallOptions>,
    host: Host,
    /// Credentials of the current attempt.
    auth: Mutex<Option<Arc<dyn RequestAuth>>>,
    /// Usage of the summaries since it was last taken.
    used: Mutex<Usage>,
}

impl Summaries {
    pub(crate) fn new(
        plan: SummaryPlan,
        providers: Arc<ProviderRegistry>,
        model: Arc<Model>,
        options: CopyOnWrite<CallOptions>,
        host: Host,
    ) -> Self {
        Self { plan, providers, model, options, host, auth: Mutex::default(), used: Mutex::default() }
    }

    /// Sets the credentials for summaries written by the run's own model.
    pub(crate) fn authorise(&self, auth: Arc<dyn RequestAuth>) {
        *self.auth.lock().unwrap_or_else(PoisonError::into_inner) = Some(auth);
    }

    /// Returns the tokens and the cost of the summaries since the last call.
    pub(crate) fn take_usage(&self) -> Usage {
        std::mem::take(&mut *self.used.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the models to ask, in order.
    fn writers(&self) -> Vec<AuthorisedModel> {
        let own = self.auth.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let lighter = (self.plan.lighter)(&self.model);
        lighter.into_iter().chain(own.map(|auth| (Arc::clone(&self.model), auth))).collect()
    }

    async fn make(
        &self,
        writer: &AuthorisedModel,
        ahead: &PendingCompaction<'_>,
        usage: &mut Option<Usage>,
        cancel: &Cancel,
    ) -> Result<Summarised, CompactError> {
        let (model, auth) = writer;
        let provider = self.providers.get(&model.api).map_err(|error| CompactError::Summary {
            what: "Summarization",
            message: error.to_string(),
            source: None,
        })?;
        let provider: Arc<dyn Provider> = Arc::new(Authorised::new(provider, Arc::clone(auth)));
        let build = |prompt: SummaryPrompt| self.request(model, &prompt);
        let step = |_: SummaryStep| -> BoxFuture<'_, ()> { Box::pin(async {}) };
        let summary_model = SummaryModel {
            provider: &*provider,
            build: &build,
            focus: match self.plan.config.mode {
                SummaryMode::Safeguard => ahead.focus.map(str::to_owned),
                SummaryMode::Default => Some(safeguard::focus(ahead.focus, &self.plan.config)),
            },
            context_window: model.context_window,
            retry: Some(SummaryRetry { plan: retries(), host: &self.host, on_step: &step }),
        };
        match self.plan.config.mode {
            SummaryMode::Safeguard => {
                let rules = self.plan.rules().await;
                safeguard::summarise(&summary_model, &self.plan.config, ahead.preparation, rules, usage, cancel).await
            }
            SummaryMode::Default => {
                let limit = self.plan.config.timeout;
                let made = tokio::time::timeout(limit, summary_model.summarise(ahead.preparation, cancel)).await;
                let made = made.unwrap_or_else(|_| Err(too_slow(limit)))?;
                usage.clone_from(&made.usage);
                Ok(made)
            }
        }
    }

    /// Builds the request for a summary: a separate conversation without tools, which is not cached.
    fn request(&self, model: &Arc<Model>, prompt: &SummaryPrompt) -> Request {
        let mut options = CallOptions::clone(&self.options);
        // What is meant for the run's model may be refused by another one.
        if (&model.provider, &model.id) != (&self.model.provider, &self.model.id) {
            options.native.clear();
            options.sampling_params = None;
        }
        if model.provider != self.model.provider {
            options.headers.clear();
            options.metadata = None;
        }
        options.temperature = None;
        options.max_tokens = Some(match model.max_tokens {
            0 => prompt.max_tokens,
            limit => prompt.max_tokens.min(limit),
        });
        options.cache_retention = Some(CacheRetention::None);
        options.session_id = Some(self.host.ids().uuid_v7(self.host.now_ms()).into());
        options.thinking = ThinkingChoice::Level(if model.reasoning { ThinkingLevel::Low } else { ThinkingLevel::Off });
        let message = Message::user(prompt.text.as_str(), self.host.now_ms());
        Request::new(Arc::clone(model), vec![Arc::new(message)])
            .with_system(SystemPrompt::text(prompt.system))
            .with_options(options)
            .with_host(self.host.clone())
    }
}

fn too_slow(limit: Duration) -> CompactError {
    let message = format!("no summary within {} seconds", limit.as_secs());
    CompactError::Summary { what: "Summarization", message, source: None }
}

/// Retry limits for summaries: two retries, with delays from half a second to five seconds.
fn retries() -> pinch_coding_agent::recovery::TurnRetry {
    let mut plan = RecoveryPlan::default().turn;
    plan.max_retries = 2;
    plan.base_delay = Duration::from_millis(500);
    plan.max_delay = Duration::from_secs(5);
    plan
}

impl SummaryHooks for Summaries {
    fn summarise<'a>(
        &'a self,
        ahead: &'a PendingCompaction<'a>,
        cancel: &'a Cancel,
    ) -> BoxFuture<'a, Option<Result<Summarised, CompactError>>> {
        Box::pin(async move {
            let mut last = None;
            let ends_at = tokio::time::Instant::now() + MAX_TIME.max(self.plan.config.timeout);
            for writer in self.writers() {
                let mut usage = None;
                let making = self.make(&writer, ahead, &mut usage, cancel);
                let made = tokio::time::timeout_at(ends_at, making).await.unwrap_or_else(|_| Err(too_slow(MAX_TIME)));
                if let Some(usage) = &usage {
                    self.used.lock().unwrap_or_else(PoisonError::into_inner).add(usage);
                }
                match made {
                    Ok(made) => return Some(Ok(made)),
                    Err(CompactError::Cancelled) => return Some(Err(CompactError::Cancelled)),
                    Err(error) => {
                        tracing::warn!(%error, model = %writer.0.id, "a summary failed");
                        last = Some(Err(error));
                    }
                }
            }
            last
        })
    }
}

//! Our own runtime: one session of `pinch-coding-agent` a model.

use std::path::PathBuf;
use std::sync::Arc;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use pinch_agent_core::tool::ToolSet;
use pinch_coding_agent::auth::{Authorised, FixedAuth, RequestAuth};
use pinch_coding_agent::compaction::CompactionReason;
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::images::Intake;
use pinch_coding_agent::machine::Machine;
use pinch_coding_agent::prompt::{Prompt as SystemPrompt, PromptParts};
use pinch_coding_agent::recovery::RecoveryPlan;
use pinch_coding_agent::session::{AgentSession, Prompt, SessionControl, SessionError, SessionParts};
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_coding_agent::store::{SessionRef, SessionStore, StoreError};
use pinch_coding_agent::tools::facts::SessionFacts;
use pinch_coding_agent::tools::file_queue::FileQueue;
use pinch_coding_agent::tools::path::Place;
use pinch_coding_agent::tools::{ToolParts, coding_tools};
use pinch_llm::model::Model;
use pinch_llm::provider::{Provider, ProviderRegistry};
use pinch_llm::request::{Auth, CallOptions};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::pull::pulled;

use super::{AttemptEvent, AttemptRuntime, Attempts};
use crate::run::decide::{Repair, Repaired};
use crate::run::outcome::AttemptStart;
use crate::run::scope::RunScope;
use crate::run::{AttemptPlan, RunError, RunRequest};

mod repair;
mod outcome;

use outcome::Watcher;

/// Runs attempts in this process.
pub struct NativeRuntime {
    providers: ProviderRegistry,
    store: Arc<dyn SessionStore>,
    machine: Arc<dyn Machine>,
    files: FileQueue,
}

impl NativeRuntime {
    /// A runtime on these providers, this store and this machine.
    pub fn new(providers: ProviderRegistry, store: Arc<dyn SessionStore>, machine: Arc<dyn Machine>) -> Self {
        Self { providers, store, machine, files: FileQueue::default() }
    }

    fn tools(&self, scope: &RunScope, facts: &SessionFacts) -> ToolSet {
        if scope.request.disable_tools {
            return ToolSet::new();
        }
        let tools = coding_tools(&ToolParts {
            machine: Arc::clone(&self.machine),
            place: Place { cwd: scope.workspace.clone(), home: scope.host.home().map(Into::into) },
            files: self.files.clone(),
            shell: scope.shell.clone(),
            facts: facts.clone(),
            images: Intake::default(),
        });
        tools.filter(|tool| scope.tools.allows(&tool.spec().name))
    }

    async fn open_session(&self, scope: &RunScope, model: Arc<Model>) -> Result<NativeAttempts, RunError> {
        let provider = self.providers.get(&model.api).map_err(|error| RunError::Config(error.to_string()))?;
        let request = &scope.request;
        let new = NewSession {
            cwd: scope.workspace.to_string_lossy().into_owned(),
            id: Some(request.session_id.clone()),
            parent_session: None,
        };
        let at = SessionRef::Path(request.session_file.clone());
        let log =
            SessionLog::open_or_begin(&scope.host, Arc::clone(&self.store), &at, new).await.map_err(store_error)?;
        let facts = SessionFacts::default();
        let tools = self.tools(scope, &facts);
        let options = CallOptions {
            temperature: request.stream_params.temperature,
            max_tokens: request.stream_params.max_tokens,
            timeouts: scope.timeouts,
            ..CallOptions::default()
        };
        let system = SystemPrompt::coding(&PromptParts {
            addendum: request.extra_system_prompt.as_deref(),
            ..PromptParts::new(&tools, &scope.workspace)
        });
        // Nobody is asked before an attempt brings its credentials.
        let nobody = authorised(&provider, Arc::new(FixedAuth(Auth::default())));
        let session = AgentSession::start(SessionParts {
            thinking: Some(request.think_level.unwrap_or_default()),
            tools: tools.clone(),
            facts,
            system,
            compaction: scope.compaction.clone(),
            plan: RecoveryPlan::report(),
            options,
            ..SessionParts::new(scope.host.clone(), log, model, nobody)
        })
        .await
        .map_err(session_error)?;
        Ok(NativeAttempts { session, provider, tools, request: request.clone() })
    }
}

impl AttemptRuntime for NativeRuntime {
    fn id(&self) -> &str {
        "native"
    }

    fn session_file(&self, request: &RunRequest) -> Option<PathBuf> {
        self.store.file_of(&SessionRef::Path(request.session_file.clone()))
    }

    fn open<'a>(
        &'a self,
        scope: &'a RunScope,
        model: Arc<Model>,
    ) -> BoxFuture<'a, Result<Box<dyn Attempts + 'a>, RunError>> {
        Box::pin(async move {
            let attempts: Box<dyn Attempts + 'a> = Box::new(self.open_session(scope, model).await?);
            Ok(attempts)
        })
    }
}

/// One session that attempts are made in.
struct NativeAttempts {
    session: AgentSession,
    provider: Arc<dyn Provider>,
    tools: ToolSet,
    request: RunRequest,
}

impl Attempts for NativeAttempts {
    fn attempt<'a>(
        &'a mut self,
        plan: &'a AttemptPlan,
        auth: Arc<dyn RequestAuth>,
        cancel: Cancel,
    ) -> BoxStream<'a, AttemptEvent> {
        Box::pin(pulled(move |giver| async move {
            let cancel = cancel.child();
            self.session.set_provider(authorised(&self.provider, auth));
            if let Err(error) = self.session.set_thinking(plan.thinking).await {
                giver.give(AttemptEvent::Broken(session_error(error))).await;
                return;
            }
            let window = self.session.model().context_window;
            let mut watcher = Watcher::new(self.tools.clone(), window);
            let mut run = match plan.start {
                AttemptStart::Prompt => self.session.prompt(Prompt {
                    text: self.request.prompt.clone(),
                    images: self.request.images.clone(),
                    verbatim: true,
                    cancel: cancel.clone(),
                    ..Prompt::default()
                }),
                AttemptStart::Resume => self.session.resume(&cancel),
            };
            while let Some(event) = run.next().await {
                match event {
                    Ok(event) => {
                        watcher.see(&event);
                        // What follows a run is the runner's business, and so is its end.
                        if !matches!(event, SessionEvent::Settled { .. }) {
                            giver.give(AttemptEvent::Session(event)).await;
                        }
                    }
                    Err(error) => {
                        giver.give(AttemptEvent::Broken(session_error(error))).await;
                        return;
                    }
                }
            }
            drop(run);
            giver.give(AttemptEvent::End(Box::new(watcher.finish(&cancel, self.session.messages())))).await;
        }))
    }

    fn repair<'a>(
        &'a mut self,
        repair: &'a Repair,
        auth: Arc<dyn RequestAuth>,
        cancel: Cancel,
    ) -> BoxFuture<'a, Repaired> {
        Box::pin(async move {
            self.session.set_provider(authorised(&self.provider, auth));
            match repair {
                Repair::Compact { .. } => repair::compact(&mut self.session, CompactionReason::Overflow, &cancel).await,
                Repair::TruncateToolResults => repair::truncate_tool_results(&mut self.session).await,
            }
        })
    }

    fn control(&self) -> SessionControl {
        self.session.control()
    }
}

fn authorised(provider: &Arc<dyn Provider>, auth: Arc<dyn RequestAuth>) -> Arc<dyn Provider> {
    Arc::new(Authorised::new(Arc::clone(provider), auth))
}

fn session_error(error: SessionError) -> RunError {
    match error {
        SessionError::Store(error) => store_error(error),
        error @ (SessionError::CannotContinue(_) | SessionError::Stayed) => RunError::Internal(error.to_string()),
        error @ (SessionError::Auth(_) | SessionError::NoKey { .. }) => RunError::Config(error.to_string()),
    }
}

fn store_error(error: StoreError) -> RunError {
    match error {
        StoreError::Locked { .. } | StoreError::Contended => RunError::Busy(error.to_string()),
        StoreError::NotASession { .. } | StoreError::BadId { .. } => RunError::Config(error.to_string()),
        other => {
            // What the operating system said stands underneath.
            let cause = std::error::Error::source(&other).map(|cause| format!(": {cause}"));
            RunError::Internal(format!("{other}{}", cause.unwrap_or_default()))
        }
    }
}

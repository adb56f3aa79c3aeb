//! The shared state of commands, and the commands that need nothing else: controls and queries.

use std::sync::Arc;

use pinch_agent_core::queue::QueueKind;
use pinch_llm::model::Model;
use serde_json::{Value, json};

use super::approvals::CAPABILITY;
use super::dialogs::ClientUi;
use super::io::{FinishedTask, Io};
use super::snapshots;
use crate::extension::{InputSource, Point};
use crate::protocol::command::{ControlCommand, QueryCommand, UserInput};
use crate::protocol::response::Answerer;
use crate::runtime::SessionRuntime;
use crate::services::Services;
use crate::session::{ScopedModel, SessionControl, SessionView};
use crate::tools::bash::BashTool;

/// The error for a blank session name.
pub(super) const EMPTY_NAME: &str = "Session name cannot be empty";

/// The current activity of the session.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Status {
    pub(super) is_streaming: bool,
    pub(super) is_compacting: bool,
}

/// The shared state of commands, created anew for each session.
#[derive(Clone)]
pub(super) struct RpcContext {
    pub(super) services: Arc<Services>,
    pub(super) control: SessionControl,
    pub(super) ui: ClientUi,
    shell: Arc<BashTool>,
    scope: Arc<[ScopedModel]>,
    /// Whether the session is configured to compact automatically.
    auto_compaction: bool,
}

/// A query waiting for a view of the session.
pub(super) struct PendingQuery {
    pub(super) answerer: Answerer,
    pub(super) query: QueryCommand,
    pub(super) context: RpcContext,
    pub(super) status: Status,
}

impl RpcContext {
    pub(super) fn of(runtime: &SessionRuntime, ui: &ClientUi) -> Self {
        let session = runtime.session();
        Self {
            services: Arc::clone(runtime.services()),
            control: session.control(),
            ui: ui.clone(),
            shell: Arc::clone(runtime.shell()),
            scope: runtime.scope().into(),
            auto_compaction: session.auto_compaction(),
        }
    }

    /// Returns the tool that runs the user's commands.
    pub(super) fn shell(&self) -> Arc<BashTool> {
        Arc::clone(&self.shell)
    }

    /// Clears the queues and returns the answer with their content.
    pub(super) async fn clear_queues(&self, io: &mut Io, answerer: &Answerer) -> Vec<u8> {
        let (steering, follow_up) = self.control.clear_queues();
        io.show_queues(Vec::new(), Vec::new()).await;
        answerer.with(&json!({"steering": steering, "followUp": follow_up}))
    }

    /// Queues a message, unless an extension handles it.
    pub(super) async fn queue(&self, io: &mut Io, answerer: Answerer, kind: QueueKind, input: UserInput) {
        if self.control.find_command(&input.text).is_some() {
            let name = input.text.split_whitespace().next().unwrap_or_default();
            let error = format!(
                "Extension command \"{name}\" cannot be queued. Use prompt() or execute the command when not streaming."
            );
            return io.write(answerer.failed(&error)).await;
        }
        let control = self.control.clone();
        if control.extensions().wants(Point::Input) {
            return io.start_task(async move {
                let is_queued = control.say(kind, &input.text, input.images, InputSource::Rpc).await;
                FinishedTask::Input { answerer, is_queued }
            });
        }
        match kind {
            QueueKind::Steering => control.steer(input.text, input.images),
            QueueKind::FollowUp => control.follow_up(input.text, input.images),
        }
        self.finish(io, FinishedTask::Input { answerer, is_queued: true }).await;
    }

    /// Answers the command that started a task.
    pub(super) async fn finish(&self, io: &mut Io, finished: FinishedTask) {
        let (answerer, disposition) = match finished {
            FinishedTask::ExtensionCommand(answerer) | FinishedTask::Input { answerer, is_queued: false } => {
                (answerer, "handled")
            }
            FinishedTask::Input { answerer, is_queued: true } => {
                let (steering, follow_up) = self.control.waiting();
                io.queues(steering, follow_up).await;
                (answerer, "queued")
            }
            FinishedTask::Page(line) => return io.write(line).await,
        };
        io.write(answerer.with(&json!({"disposition": disposition}))).await;
    }

    /// Returns the models to cycle through.
    pub(super) fn models_to_cycle(&self) -> Vec<ScopedModel> {
        if self.is_scoped() {
            return self.scope.to_vec();
        }
        self.services.available_models().into_iter().map(|model| ScopedModel { model, thinking: None }).collect()
    }

    /// Returns whether the models to cycle through were selected explicitly.
    pub(super) fn is_scoped(&self) -> bool {
        !self.scope.is_empty()
    }

    /// Runs a command that needs no session, and returns the answer.
    pub(super) async fn control_command(&self, answerer: &Answerer, command: ControlCommand) -> Vec<u8> {
        match command {
            ControlCommand::Hello(hello) => {
                self.ui.hello(&hello);
                answerer.with(&json!({
                    "protocolVersion": 1,
                    "version": env!("CARGO_PKG_VERSION"),
                    "capabilities": ["hello", "get_entries", "get_tree", "clear_queue", "disposition", CAPABILITY],
                }))
            }
            ControlCommand::GetCommands => {
                answerer.with(&json!({ "commands": self.services.commands(self.control.extensions()) }))
            }
            ControlCommand::GetAvailableModels => {
                let models: Vec<Value> =
                    self.services.available_models().iter().map(|model| model.to_shown_record()).collect();
                answerer.with(&json!({ "models": models }))
            }
            ControlCommand::SetQueueMode { kind, mode } => {
                self.control.set_queue_mode(kind, mode);
                self.services.remember_queue_mode(kind, mode);
                self.saved(answerer).await
            }
            ControlCommand::SetAutoCompaction { enabled } => {
                self.control.set_auto_compaction(enabled);
                self.services.remember_auto_compaction(enabled);
                self.saved(answerer).await
            }
            ControlCommand::SetAutoRetry { enabled } => {
                self.services.remember_auto_retry(enabled);
                self.control.set_retries(if enabled { self.services.retry_limit() } else { 0 });
                self.saved(answerer).await
            }
        }
    }

    /// Saves the settings and answers the command that changed them.
    async fn saved(&self, answerer: &Answerer) -> Vec<u8> {
        match self.services.write_settings().await {
            Ok(()) => answerer.done(),
            Err(why) => answerer.failed(&format!("set for this run only: {why}")),
        }
    }

    /// Finds an available model by its exact name.
    pub(super) fn available(&self, provider: &str, id: &str) -> Result<Arc<Model>, String> {
        (self.services.available_models().into_iter())
            .find(|model| model.provider == *provider && model.id == *id)
            .ok_or_else(|| format!("Model not found: {provider}/{id}"))
    }
}

impl PendingQuery {
    /// Returns the answer.
    pub(super) fn answer(self, view: &SessionView<'_>) -> Vec<u8> {
        let Self { answerer, query, context, status } = self;
        match query {
            QueryCommand::GetState => answerer.with(&state(view, &context, status)),
            QueryCommand::GetMessages => answerer.with_json(&snapshots::messages(view)),
            QueryCommand::GetEntries { since } => match snapshots::entries(view, since.as_ref()) {
                Some(json) => answerer.with_json(&json),
                None => answerer.failed(&format!("Entry not found: {}", since.as_ref().map_or("", |id| id.as_str()))),
            },
            QueryCommand::GetTree => answerer.with_json(&snapshots::tree(view)),
            QueryCommand::GetForkMessages => answerer.with(&snapshots::fork_messages(view)),
            QueryCommand::GetLastAssistantText => answerer.with(&match view.last_text() {
                Some(text) => json!({ "text": text }),
                None => json!({}),
            }),
            QueryCommand::GetSessionStats => answerer.with(&snapshots::stats(&view.stats())),
            QueryCommand::GetAvailableThinkingLevels => answerer.with(&snapshots::thinking_levels(view.model)),
        }
    }
}

fn state(view: &SessionView<'_>, context: &RpcContext, status: Status) -> Value {
    let control = &context.control;
    let mut value = json!({
        "model": view.model.to_shown_record(),
        "thinkingLevel": view.thinking.as_str(),
        "isStreaming": status.is_streaming,
        "isCompacting": status.is_compacting,
        "steeringMode": control.queue_mode(QueueKind::Steering).as_str(),
        "followUpMode": control.queue_mode(QueueKind::FollowUp).as_str(),
        "sessionFile": view.log.path().map(|path| path.to_string_lossy()),
        "sessionId": view.log.id(),
        "sessionName": view.log.name(),
        "autoCompactionEnabled": control.auto_compaction().unwrap_or(context.auto_compaction),
        "messageCount": view.messages().len(),
        "pendingMessageCount": control.n_waiting(),
    });
    snapshots::without_nulls(&mut value, &["sessionFile", "sessionName"]);
    value
}

//! Commands that need no session, or only a look at one.

use std::sync::Arc;

use pinch_agent_core::queue::QueueKind;
use pinch_llm::model::Model;
use serde_json::{Value, json};

use super::approvals::CAPABILITY;
use super::dialogs::ClientUi;
use super::io::{Dealt, Io};
use super::snapshots;
use crate::extension::{InputSource, Point};
use crate::protocol::command::{Command, Said};
use crate::protocol::response::Answerer;
use crate::runtime::SessionRuntime;
use crate::services::Services;
use crate::session::{ScopedModel, SessionControl, SessionView};
use crate::tools::bash::BashTool;

/// What is said of a name that is none.
pub(super) const EMPTY_NAME: &str = "Session name cannot be empty";

/// What is going on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Status {
    pub(super) is_streaming: bool,
    pub(super) is_compacting: bool,
}

/// What commands need beside the session itself.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) services: Arc<Services>,
    pub(super) control: SessionControl,
    pub(super) ui: ClientUi,
    shell: Arc<BashTool>,
    scope: Arc<[ScopedModel]>,
    /// Whether the session's parts say that conversations are compacted by themselves.
    auto_compaction: bool,
}

/// A question that a look at the session answers.
pub(super) struct Question {
    answerer: Answerer,
    command: Command,
    desk: Desk,
    status: Status,
}

impl Desk {
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

    /// Runs commands of the user.
    pub(super) fn shell(&self) -> Arc<BashTool> {
        Arc::clone(&self.shell)
    }

    /// Empties the queues and shows that; answers with what was in them.
    pub(super) async fn clear_queues(&self, io: &mut Io, answerer: &Answerer) -> Vec<u8> {
        let (steering, follow_up) = self.control.clear_queues();
        io.show_queues(Vec::new(), Vec::new()).await;
        answerer.with(&json!({"steering": steering, "followUp": follow_up}))
    }

    /// Puts a message into a queue, past the extensions that listen to what is said.
    pub(super) async fn queue(&self, io: &mut Io, answerer: Answerer, kind: QueueKind, said: Said) {
        if self.control.find_command(&said.text).is_some() {
            let name = said.text.split_whitespace().next().unwrap_or_default();
            let error = format!(
                "Extension command \"{name}\" cannot be queued. Use prompt() or execute the command when not streaming."
            );
            return io.write(answerer.failed(&error)).await;
        }
        let control = self.control.clone();
        if control.extensions().wants(Point::Input) {
            return io.beside(async move {
                let is_queued = control.say(kind, &said.text, said.images, InputSource::Rpc).await;
                Dealt::Said { answerer, is_queued }
            });
        }
        match kind {
            QueueKind::Steering => control.steer(said.text, said.images),
            QueueKind::FollowUp => control.follow_up(said.text, said.images),
        }
        self.dealt(io, Dealt::Said { answerer, is_queued: true }).await;
    }

    /// Answers what was dealt with beside the session.
    pub(super) async fn dealt(&self, io: &mut Io, dealt: Dealt) {
        let (answerer, disposition) = match dealt {
            Dealt::Command(answerer) => (answerer, "handled"),
            Dealt::Said { answerer, is_queued: false } => (answerer, "handled"),
            Dealt::Said { answerer, is_queued: true } => {
                let (steering, follow_up) = self.control.waiting();
                io.queues(steering, follow_up).await;
                (answerer, "queued")
            }
            Dealt::Page(line) => return io.write(line).await,
        };
        io.write(answerer.with(&json!({"disposition": disposition}))).await;
    }

    /// The models that are gone through.
    pub(super) fn models_to_cycle(&self) -> Vec<ScopedModel> {
        if self.is_scoped() {
            return self.scope.to_vec();
        }
        self.services.available_models().into_iter().map(|model| ScopedModel { model, thinking: None }).collect()
    }

    /// Whether some models were chosen to be gone through.
    pub(super) fn is_scoped(&self) -> bool {
        !self.scope.is_empty()
    }

    /// Answers a command that needs no session; `None` for others.
    pub(super) async fn answer(&self, answerer: &Answerer, command: &Command) -> Option<Vec<u8>> {
        Some(match command {
            Command::Hello(hello) => {
                self.ui.hello(hello);
                answerer.with(&json!({
                    "protocolVersion": 1,
                    "version": env!("CARGO_PKG_VERSION"),
                    "capabilities": ["hello", "get_entries", "get_tree", "clear_queue", "disposition", CAPABILITY],
                }))
            }
            Command::GetCommands => {
                answerer.with(&json!({ "commands": self.services.commands(self.control.extensions()) }))
            }
            Command::GetAvailableModels => {
                let models: Vec<Value> =
                    self.services.available_models().iter().map(|model| model.to_shown_record()).collect();
                answerer.with(&json!({ "models": models }))
            }
            Command::SetQueueMode { kind, mode } => {
                self.control.set_queue_mode(*kind, *mode);
                self.services.remember_queue_mode(*kind, *mode);
                self.kept(answerer).await
            }
            Command::SetAutoCompaction { enabled } => {
                self.control.set_auto_compaction(*enabled);
                self.services.remember_auto_compaction(*enabled);
                self.kept(answerer).await
            }
            Command::SetAutoRetry { enabled } => {
                self.services.remember_auto_retry(*enabled);
                self.control.set_retries(if *enabled { self.services.retry_limit() } else { 0 });
                self.kept(answerer).await
            }
            _ => return None,
        })
    }

    /// Answers a command that sets something for other runs, too.
    async fn kept(&self, answerer: &Answerer) -> Vec<u8> {
        match self.services.write_settings().await {
            Ok(()) => answerer.done(),
            Err(why) => answerer.failed(&format!("It is set for this run only. {why}")),
        }
    }

    /// A model that can be used, by its exact name.
    pub(super) fn available(&self, provider: &str, id: &str) -> Result<Arc<Model>, String> {
        (self.services.available_models().into_iter())
            .find(|model| model.provider == *provider && model.id == *id)
            .ok_or_else(|| format!("Model not found: {provider}/{id}"))
    }
}

impl Question {
    /// A command that a look at the session answers; else the command is given back.
    pub(super) fn new(desk: &Desk, answerer: Answerer, command: Command, status: Status) -> Result<Self, Command> {
        match &command {
            Command::GetState
            | Command::GetMessages
            | Command::GetEntries { .. }
            | Command::GetTree
            | Command::GetForkMessages
            | Command::GetLastAssistantText
            | Command::GetSessionStats
            | Command::GetAvailableThinkingLevels => Ok(Self { answerer, command, desk: desk.clone(), status }),
            _ => Err(command),
        }
    }

    /// The answer.
    pub(super) fn answer(self, view: &SessionView<'_>) -> Vec<u8> {
        let Self { answerer, command, desk, status } = self;
        match command {
            Command::GetState => answerer.with(&state(view, &desk, status)),
            Command::GetMessages => answerer.with_json(&snapshots::messages(view)),
            Command::GetEntries { since } => match snapshots::entries(view, since.as_ref()) {
                Some(json) => answerer.with_json(&json),
                None => answerer.failed(&format!("Entry not found: {}", since.as_ref().map_or("", |id| id.as_str()))),
            },
            Command::GetTree => answerer.with_json(&snapshots::tree(view)),
            Command::GetForkMessages => answerer.with(&snapshots::fork_messages(view)),
            Command::GetLastAssistantText => answerer.with(&match view.last_text() {
                Some(text) => json!({ "text": text }),
                None => json!({}),
            }),
            Command::GetSessionStats => answerer.with(&snapshots::stats(&view.stats())),
            Command::GetAvailableThinkingLevels => answerer.with(&snapshots::thinking_levels(view.model)),
            _ => answerer.failed("This command needs more than a look at the session"),
        }
    }
}

fn state(view: &SessionView<'_>, desk: &Desk, status: Status) -> Value {
    let control = &desk.control;
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
        "autoCompactionEnabled": control.auto_compaction().unwrap_or(desk.auto_compaction),
        "messageCount": view.messages().len(),
        "pendingMessageCount": control.n_waiting(),
    });
    snapshots::without_nulls(&mut value, &["sessionFile", "sessionName"]);
    value
}

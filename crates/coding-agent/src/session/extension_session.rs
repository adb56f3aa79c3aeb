//! The actions a session performs for its extensions without its owner.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::ToolSet;
use pinch_agent_core::queue::QueueKind;
use pinch_llm::event::EventStream;
use pinch_llm::ids::{ModelId, ProviderId};
use pinch_llm::message::{Block, Content, Image, Message, UserMessage};
use pinch_llm::request::{CallOptions, Request};
use pinch_stdx::cancel::{Cancel, CancelReason};

use super::control::{Change, ControlState, SessionControl};
use super::extension_models::ExtensionCalls;
use super::models::FindModel;
use super::requests::HostRequest;
use super::tooling::Tooling;
use crate::extension::ExtensionError;
use crate::extension::actions::{ActionOutcome, DeliverAs, SessionAction, SessionActions, SessionSnapshot};
use crate::extension::host::InputOutcome;
use crate::extension::models::KnownModels;
use crate::extension::{FoundCommand, Input, InputSource, UserBash, UserBashAction};
use crate::resources::Commands;

/// A session as seen by its extensions.
pub(super) struct ExtensionSession {
    control: SessionControl,
    find_model: Option<FindModel>,
    models: Arc<dyn KnownModels>,
    calls: Arc<ExtensionCalls>,
}

impl ExtensionSession {
    pub(super) fn new(
        control: SessionControl,
        find_model: Option<FindModel>,
        models: Arc<dyn KnownModels>,
        calls: Arc<ExtensionCalls>,
    ) -> Self {
        Self { control, find_model, models, calls }
    }

    fn model(&self, provider: &ProviderId, id: &ModelId) -> ActionOutcome {
        let found = self.find_model.as_ref().and_then(|find| find(provider, id));
        let is_found = found.is_some();
        if let Some(model) = found {
            self.control.change(Change::Model(model));
        }
        ActionOutcome::Found(is_found)
    }

    /// Sends a message that triggers the model, as the user or an extension: to a queue, or as a prompt.
    fn ask_model(&self, message: Message, delivery: DeliverAs) -> Result<ActionOutcome, ExtensionError> {
        if self.control.peek(|state| state.requests.is_busy) {
            self.control.push_message(delivery.queue(), message);
            return Ok(ActionOutcome::Done);
        }
        self.control.share(|state| state.requests.push_prompt(Arc::new(message)))?;
        Ok(ActionOutcome::Done)
    }

    /// Performs an action immediately, or returns it if it needs the session.
    fn act_now(&self, act: SessionAction) -> Result<Result<ActionOutcome, ExtensionError>, SessionAction> {
        let control = &self.control;
        match act {
            SessionAction::SendMessage { message, delivery: DeliverAs::NextPrompt, .. } => {
                control.with_next_prompt(&message)
            }
            SessionAction::SendMessage { message, delivery, .. } if control.peek(|state| state.requests.is_busy) => {
                control.queue_custom(delivery.queue(), &message);
            }
            SessionAction::SendMessage { message, trigger: false, .. } => control.change(Change::Note(message)),
            SessionAction::SendMessage { message, delivery, .. } => {
                let message = Arc::unwrap_or_clone(control.custom(&message));
                return Ok(self.ask_model(message, delivery));
            }
            SessionAction::SendUserMessage { content, delivery } => {
                let message = Message::User(UserMessage::new(as_prompt(content), control.now_ms()));
                return Ok(self.ask_model(message, delivery));
            }
            SessionAction::Append(body) => control.change(Change::Entry(*body)),
            SessionAction::Name(name) => control.change(Change::Name(name)),
            SessionAction::ActiveTools(names) => control.choose_tools(|tooling, all| {
                tooling.active = names.into_iter().filter(|name| all.get(name).is_some()).collect();
            }),
            SessionAction::ToolsChanged => control.choose_tools(|tooling, _| tooling.take_in(control.extensions())),
            SessionAction::Model(provider, id) => return Ok(Ok(self.model(&provider, &id))),
            SessionAction::Thinking(level) => control.change(Change::Thinking(level)),
            SessionAction::Abort => control.cancel(CancelReason::User),
            SessionAction::Shutdown => control.share(|state| state.requests.to_host = Some(HostRequest::Shutdown)),
            // A reload does not replace a shutdown.
            SessionAction::Reload => {
                control.share(|state| state.requests.to_host = state.requests.to_host.or(Some(HostRequest::Reload)))
            }
            waits => return Err(waits),
        }
        Ok(Ok(ActionOutcome::Done))
    }
}

/// Formats content like a prompt: the text parts joined by line feeds, then the images.
fn as_prompt(content: Content) -> Content {
    match content {
        Content::Text(text) => Content::Blocks(vec![Block::text(text)]),
        Content::Blocks(ref blocks) => {
            let text = content.text("\n");
            let images = blocks.iter().filter(|block| block.as_text().is_none()).cloned();
            let text = (!text.is_empty()).then(|| Block::text(text));
            Content::Blocks(text.into_iter().chain(images).collect())
        }
    }
}

impl SessionActions for ExtensionSession {
    fn now(&self) -> Arc<SessionSnapshot> {
        self.control.peek(|state| Arc::clone(&state.now))
    }

    fn is_idle(&self) -> bool {
        self.control.peek(|state| state.requests.is_idle())
    }

    fn n_waiting(&self) -> usize {
        self.control.n_waiting()
    }

    fn models(&self) -> Arc<dyn KnownModels> {
        Arc::clone(&self.models)
    }

    fn call_options(&self) -> CallOptions {
        self.calls.options()
    }

    fn call(&self, request: Request, cancel: Cancel) -> EventStream {
        self.calls.start(request, cancel)
    }

    fn act(&self, act: SessionAction) -> BoxFuture<'_, Result<ActionOutcome, ExtensionError>> {
        Box::pin(async move {
            let act = match self.act_now(act) {
                Ok(done) => return done,
                Err(act) => act,
            };
            let is_awaited = !matches!(act, SessionAction::Compact { wait: false, .. });
            if matches!(act, SessionAction::WaitForIdle) {
                self.control.until(|state| state.requests.is_idle()).await;
                return Ok(ActionOutcome::Done);
            }
            let answer = self.control.share(|state| state.requests.push(act))?;
            if !is_awaited {
                return Ok(ActionOutcome::Done);
            }
            answer.await.unwrap_or(Err(ExtensionError::Stale))
        })
    }
}

impl SessionControl {
    /// Replaces the slash commands. Since the system prompt lists skills, it is rebuilt for the next request.
    pub(super) fn commands_changed(&self, commands: Commands) {
        self.share(|state| state.commands = Arc::new(commands));
        self.choose_tools(|_, _| {});
    }

    /// Changes the selection of tools from the next request on.
    fn choose_tools(&self, choose: impl FnOnce(&mut Tooling, &ToolSet)) {
        let extensions = self.extensions();
        let (tools, system) = self.share(|ControlState { tooling, now, .. }| {
            choose(tooling, &tooling.all(extensions));
            let tools = tooling.active(extensions);
            let system =
                tooling.prompt_for.as_ref().map_or_else(|| now.system.clone(), |make| make(&tooling.offered(&tools)));
            let now = Arc::make_mut(now);
            now.active_tools = tools.clone();
            now.all_tools = tooling.all(extensions);
            (tools, system)
        });
        self.change(Change::Tools(tools, system));
    }

    /// Queues a user message during a run, after passing it to extensions. Returns false if one of them handled it.
    pub async fn say(&self, kind: QueueKind, text: &str, images: Vec<Image>, source: InputSource) -> bool {
        let input = Input { text: text.to_owned(), images, source, queue: Some(kind) };
        match self.extensions().input(input).await {
            InputOutcome::Handled => false,
            InputOutcome::Pass(input) => {
                match kind {
                    QueueKind::Steering => self.steer(input.text, input.images),
                    QueueKind::FollowUp => self.follow_up(input.text, input.images),
                }
                true
            }
        }
    }

    /// Returns the extension command in a text with its arguments, for running it during a run with [`SessionControl::run_command`].
    pub fn find_command(&self, text: &str) -> Option<(FoundCommand, String)> {
        self.extensions().find_command(text)
    }

    /// Runs a command of an extension. Requests that need an idle session are performed after the current run.
    pub async fn run_command(&self, found: &FoundCommand, args: &str) {
        self.extensions().run_command(found, args).await;
    }

    /// Asks extensions about a command that the user is about to run. A failing extension blocks it.
    pub async fn before_bash(&self, command: &str, exclude: bool) -> UserBashAction {
        self.extensions().user_bash(&UserBash { command: command.to_owned(), exclude }).await
    }

    /// Waits until there are requests for [`super::AgentSession::run_requests`].
    pub async fn has_requests(&self) {
        self.until(|state| state.requests.has_work() || state.has_any_change()).await;
    }

    /// Takes an extension's request to the host program.
    pub fn take_host_request(&self) -> Option<HostRequest> {
        self.share(|state| state.requests.to_host.take())
    }
}

//! What a session does for its extensions without anybody having it.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::ToolSet;
use pinch_agent_core::queue::QueueKind;
use pinch_llm::ids::{ModelId, ProviderId};
use pinch_llm::message::{Block, Content, Image, Message, UserMessage};
use pinch_stdx::cancel::CancelReason;

use super::control::{Change, SessionControl, State};
use super::errands::Wish;
use super::models::FindModel;
use super::tooling::Tooling;
use crate::extension::ExtensionError;
use crate::extension::actions::{Act, Acted, Delivery, SessionActions, SessionNow};
use crate::extension::host::Heard;
use crate::extension::{FoundCommand, Input, InputSource, UserBash, UserBashAction};
use crate::resources::Commands;

/// A session to its extensions.
pub(super) struct Acting {
    control: SessionControl,
    find_model: Option<FindModel>,
}

impl Acting {
    pub(super) fn new(control: SessionControl, find_model: Option<FindModel>) -> Self {
        Self { control, find_model }
    }

    fn model(&self, provider: &ProviderId, id: &ModelId) -> Acted {
        let found = self.find_model.as_ref().and_then(|find| find(provider, id));
        let is_found = found.is_some();
        if let Some(model) = found {
            self.control.change(Change::Model(model));
        }
        Acted::Found(is_found)
    }

    /// Says something as the user, or as an extension with `trigger` set: into a queue, or as a prompt.
    fn ask_model(&self, message: Message, delivery: Delivery) -> Result<Acted, ExtensionError> {
        if self.control.peek(|state| state.errands.is_busy) {
            self.control.push_message(delivery.queue(), message);
            return Ok(Acted::Done);
        }
        self.control.share(|state| state.errands.push_prompt(Arc::new(message)))?;
        Ok(Acted::Done)
    }

    /// Does what can be done at once; gives back what only somebody who has the session can do.
    fn act_now(&self, act: Act) -> Result<Result<Acted, ExtensionError>, Act> {
        let control = &self.control;
        match act {
            Act::SendMessage { message, delivery: Delivery::NextPrompt, .. } => control.with_next_prompt(&message),
            Act::SendMessage { message, delivery, .. } if control.peek(|state| state.errands.is_busy) => {
                control.queue_custom(delivery.queue(), &message);
            }
            Act::SendMessage { message, trigger: false, .. } => control.change(Change::Note(message)),
            Act::SendMessage { message, delivery, .. } => {
                let message = Arc::unwrap_or_clone(control.custom(&message));
                return Ok(self.ask_model(message, delivery));
            }
            Act::SendUserMessage { content, delivery } => {
                let message = Message::User(UserMessage { content: as_prompt(content), timestamp: control.now_ms() });
                return Ok(self.ask_model(message, delivery));
            }
            Act::Append(body) => control.change(Change::Entry(*body)),
            Act::Name(name) => control.change(Change::Name(name)),
            Act::ActiveTools(names) => control.choose_tools(|tooling, all| {
                tooling.active = names.into_iter().filter(|name| all.get(name).is_some()).collect();
            }),
            Act::ToolsChanged => control.choose_tools(|tooling, _| tooling.take_in(control.extensions())),
            Act::Model(provider, id) => return Ok(Ok(self.model(&provider, &id))),
            Act::Thinking(level) => control.change(Change::Thinking(level)),
            Act::Abort => control.cancel(CancelReason::User),
            Act::Shutdown => control.share(|state| state.errands.wish = Some(Wish::Shutdown)),
            // A program that is to end is not to begin anew.
            Act::Reload => control.share(|state| state.errands.wish = state.errands.wish.or(Some(Wish::Reload))),
            waits => return Err(waits),
        }
        Ok(Ok(Acted::Done))
    }
}

/// Text parts of a message joined by line feeds, then the images, as a prompt has them: in blocks.
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

impl SessionActions for Acting {
    fn now(&self) -> Arc<SessionNow> {
        self.control.peek(|state| Arc::clone(&state.now))
    }

    fn is_idle(&self) -> bool {
        self.control.peek(|state| state.errands.is_idle())
    }

    fn n_waiting(&self) -> usize {
        self.control.n_waiting()
    }

    fn act(&self, act: Act) -> BoxFuture<'_, Result<Acted, ExtensionError>> {
        Box::pin(async move {
            let act = match self.act_now(act) {
                Ok(done) => return done,
                Err(act) => act,
            };
            let is_awaited = !matches!(act, Act::Compact { wait: false, .. });
            if matches!(act, Act::WaitForIdle) {
                self.control.until(|state| state.errands.is_idle()).await;
                return Ok(Acted::Done);
            }
            let answer = self.control.share(|state| state.errands.push(act))?;
            if !is_awaited {
                return Ok(Acted::Done);
            }
            answer.await.unwrap_or(Err(ExtensionError::Stale))
        })
    }
}

impl SessionControl {
    /// Another meaning of what follows a slash. The prompt tells of skills: it is made anew for the next request.
    pub(super) fn commands_are(&self, commands: Commands) {
        self.share(|state| state.commands = Arc::new(commands));
        self.choose_tools(|_, _| {});
    }

    /// Changes the choice of tools; it holds from the next request on.
    fn choose_tools(&self, choose: impl FnOnce(&mut Tooling, &ToolSet)) {
        let extensions = self.extensions();
        let (tools, system) = self.share(|State { tooling, now, .. }| {
            choose(tooling, &tooling.all(extensions));
            let tools = tooling.active(extensions);
            let system = tooling.prompt_for.as_ref().map_or_else(|| now.system.clone(), |make| make(&tools));
            let now = Arc::make_mut(now);
            now.active_tools = tools.clone();
            now.all_tools = tooling.all(extensions);
            (tools, system)
        });
        self.change(Change::Tools(tools, system));
    }

    /// Something a user says while a run is under way, through the extensions that listen to it; false when one of them has dealt with it.
    pub async fn say(&self, kind: QueueKind, text: &str, images: Vec<Image>, source: InputSource) -> bool {
        let input = Input { text: text.to_owned(), images, source, queue: Some(kind) };
        match self.extensions().input(input).await {
            Heard::Handled => false,
            Heard::Say(input) => {
                match kind {
                    QueueKind::Steering => self.steer(input.text, input.images),
                    QueueKind::FollowUp => self.follow_up(input.text, input.images),
                }
                true
            }
        }
    }

    /// The command of an extension that a text calls, with its arguments: for running it beside a run, with [`SessionControl::run_command`].
    pub fn find_command(&self, text: &str) -> Option<(FoundCommand, String)> {
        self.extensions().find_command(text)
    }

    /// Runs a command of an extension. What it asks of the session at rest is done when the run under way is over.
    pub async fn run_command(&self, found: &FoundCommand, args: &str) {
        self.extensions().run_command(found, args).await;
    }

    /// Asks the extensions about a command that the user is about to run. A failing extension blocks it.
    pub async fn before_bash(&self, command: &str, exclude: bool) -> UserBashAction {
        self.extensions().user_bash(&UserBash { command: command.to_owned(), exclude }).await
    }

    /// Waits until extensions have asked for something that [`super::AgentSession::attend`] does.
    pub async fn wants_attention(&self) {
        self.until(|state| state.errands.has_work() || state.has_any_change()).await;
    }

    /// Takes what an extension has asked of whoever runs the session.
    pub fn take_wish(&self) -> Option<Wish> {
        self.share(|state| state.errands.wish.take())
    }
}

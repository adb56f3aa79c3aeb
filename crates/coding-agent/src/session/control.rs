//! Controlling a session while a run borrows it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinch_agent_core::queue::{MessageQueues, QueueKind, QueueMode, QueuedMessage, SteeringPoint};
use pinch_agent_core::tool::ToolSet;
use pinch_llm::message::{Image, Message};
use pinch_llm::model::Model;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::host::Host;
use tokio::sync::Notify;

use super::input::{expanded, user_message};
use super::requests::{PendingEntries, RequestQueue};
use super::tooling::Tooling;
use super::view::{SessionView, ViewCallback};
use crate::entry::{CustomMessage, EntryBody, EntryId};
use crate::extension::Extensions;
use crate::extension::actions::SessionSnapshot;
use crate::images::{ImageIntake, ImageProcessing};
use crate::prompt::PromptSections as SystemPrompt;
use crate::resources::Commands;
use crate::session_log::roles::{self, BashExecution};
use crate::tools::facts::SessionFacts;

/// A handle to a session; clones share it. No method blocks, so hooks may use it too.
#[derive(Clone, Debug)]
pub struct SessionControl {
    queues: MessageQueues,
    host: Host,
    extensions: Extensions,
    facts: SessionFacts,
    images: ImageIntake,
    shared: Arc<ControlShared>,
}

#[derive(Debug)]
struct ControlShared {
    state: Mutex<ControlState>,
    /// Whether there may be changes; checked before every event to avoid taking the lock.
    has_changes: AtomicBool,
    changed: Notify,
}

#[derive(Debug)]
pub(super) struct ControlState {
    running: Option<RunTokens>,
    /// Messages to add after the next prompt.
    next_prompt: Vec<Arc<Message>>,
    /// Changes that the run has not applied yet.
    changes: Vec<Change>,
    /// Changes that the run has applied but the agent has not adopted.
    adopted: Adopted,
    /// Pending observers of the session.
    pub(super) observers: Vec<ViewCallback>,
    switches: Switches,
    /// The state of the session at the last update.
    pub(super) now: Arc<SessionSnapshot>,
    /// The slash commands.
    pub(super) commands: Arc<Commands>,
    /// The available tools.
    pub(super) tooling: Tooling,
    /// Whether the handler of the command that was sent as a prompt is running.
    pub(super) runs_command: bool,
    /// Pending requests of extensions.
    pub(super) requests: RequestQueue,
    /// System prompt that extensions want for the current prompt: used in requests, while the conversation keeps its own.
    pub(super) forced_system: Option<Arc<str>>,
    /// Entries that extensions want to append to the current turn.
    pub(super) drafted: Option<PendingEntries>,
    /// The entries of the current turn.
    pub(super) turn: TurnEntries,
}

/// The entries of a turn's messages.
#[derive(Clone, Debug, Default)]
pub(super) struct TurnEntries {
    pub(super) answer: Option<EntryId>,
    pub(super) results: Vec<EntryId>,
}

/// Settings switched at run time; `None` uses the configured value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Switches {
    pub(super) compaction: Option<bool>,
    /// Maximum retries of a failed answer.
    pub(super) retries: Option<u32>,
    steering: Option<QueueMode>,
    follow_up: Option<QueueMode>,
}

/// Changes for the next request of a run; `None` leaves a part unchanged.
#[derive(Clone, Debug, Default)]
pub(super) struct Adopted {
    pub(super) model: Option<Arc<Model>>,
    pub(super) thinking: Option<ThinkingLevel>,
    pub(super) tools: Option<ToolSet>,
    pub(super) system: Option<SystemPrompt>,
}

/// The cancellation tokens of the current run.
#[derive(Clone, Debug)]
struct RunTokens {
    prompt: Cancel,
    wait: Cancel,
}

/// A change to a session. A run applies it between two events; without a run, the next prompt does.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Change {
    /// Switches to another model from the next request on.
    Model(Arc<Model>),
    /// Switches to another thinking level from the next request on, clamped to those the model supports.
    Thinking(ThinkingLevel),
    /// Replaces tools and system prompt from the next request on; the model is informed of the change.
    Tools(ToolSet, SystemPrompt),
    /// Renames the session; a blank name clears it.
    Name(String),
    /// Appends an entry that is not a message, such as an extension's state or a label.
    Entry(EntryBody),
    /// Records a command that the user ran, after the messages of the run.
    Bash(BashExecution),
    /// Appends an extension's message that needs no answer, after the messages of the run.
    Note(CustomMessage),
}

impl ControlState {
    pub(super) fn has_any_change(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Returns whether there are queries of extensions or observers.
    pub(super) fn has_queries(&self) -> bool {
        self.requests.has_queries() || !self.observers.is_empty()
    }
}

impl Change {
    /// Returns whether it must wait for the end of a run.
    fn is_late(&self) -> bool {
        matches!(self, Self::Bash(_) | Self::Note(_))
    }
}

/// The error for input during a run without a queue for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.")]
pub struct SessionBusy;

impl SessionControl {
    pub(super) fn new(
        queues: MessageQueues,
        host: Host,
        commands: Arc<Commands>,
        extensions: Extensions,
        now: SessionSnapshot,
        tooling: Tooling,
    ) -> Self {
        let state = ControlState {
            running: None,
            next_prompt: Vec::new(),
            changes: Vec::new(),
            adopted: Adopted::default(),
            observers: Vec::new(),
            switches: Switches::default(),
            now: Arc::new(now),
            commands,
            tooling,
            runs_command: false,
            requests: RequestQueue::default(),
            forced_system: None,
            drafted: None,
            turn: TurnEntries::default(),
        };
        let shared =
            ControlShared { state: Mutex::new(state), has_changes: AtomicBool::new(false), changed: Notify::new() };
        let facts = SessionFacts::default();
        let images = ImageIntake::new(ImageProcessing::Untouched);
        Self { queues, host, extensions, facts, images, shared: Arc::new(shared) }
    }

    /// Replaces the facts that tools see.
    pub(super) fn keeping(self, facts: SessionFacts) -> Self {
        self.peek(|state| facts.set(state.now.facts()));
        Self { facts, ..self }
    }

    /// Sets the intake for images.
    pub(super) fn taking(self, images: ImageIntake) -> Self {
        Self { images, ..self }
    }

    /// Returns the intake for images.
    pub fn images(&self) -> &ImageIntake {
        &self.images
    }

    pub(super) fn facts(&self) -> &SessionFacts {
        &self.facts
    }

    /// Returns the session's extensions.
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    pub(super) fn commands(&self) -> Arc<Commands> {
        self.peek(|state| Arc::clone(&state.commands))
    }

    /// Reads or changes the shared state, and wakes those waiting for a change.
    pub(super) fn share<T>(&self, change: impl FnOnce(&mut ControlState) -> T) -> T {
        let done = change(&mut self.lock());
        self.shared.changed.notify_waiters();
        done
    }

    /// Reads the shared state.
    pub(super) fn peek<T>(&self, look: impl FnOnce(&ControlState) -> T) -> T {
        look(&self.lock())
    }

    /// Waits until a condition on the shared state holds.
    pub(super) async fn until(&self, holds: impl Fn(&ControlState) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            // Register before checking, so that no change is missed.
            changed.as_mut().enable();
            if holds(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ControlState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message that the model reads at its next turn, or with the next prompt if nothing is running. Expands skills and prompt
    /// templates.
    pub fn steer(&self, text: impl Into<String>, images: Vec<Image>) {
        self.push(QueueKind::Steering, &text.into(), images);
    }

    /// Queues a message that the model reads when the run would end. Expands skills and prompt templates.
    pub fn follow_up(&self, text: impl Into<String>, images: Vec<Image>) {
        self.push(QueueKind::FollowUp, &text.into(), images);
    }

    /// Handles a prompt sent while another one is running: adds it to the given queue.
    ///
    /// # Errors
    /// [`SessionBusy`] without a queue.
    pub fn prompt(&self, text: &str, images: Vec<Image>, queue: Option<QueueKind>) -> Result<(), SessionBusy> {
        self.push(queue.ok_or(SessionBusy)?, text, images);
        Ok(())
    }

    fn push(&self, kind: QueueKind, text: &str, images: Vec<Image>) {
        let text = expanded(&self.commands(), text);
        self.push_message(kind, Message::User(user_message(text, images, self.host.now_ms())));
    }

    /// Queues a message unchanged.
    pub(super) fn push_message(&self, kind: QueueKind, message: Message) {
        self.queues.push(kind, message);
    }

    /// Queues an extension's message.
    pub fn queue_custom(&self, kind: QueueKind, message: &CustomMessage) {
        self.queues.push(kind, roles::custom(message, Some(self.host.now_ms())));
    }

    /// Adds an extension's message after the user's next prompt.
    pub fn with_next_prompt(&self, message: &CustomMessage) {
        let message = self.custom(message);
        self.lock().next_prompt.push(message);
    }

    /// Creates an extension's message with the current time.
    pub(super) fn custom(&self, message: &CustomMessage) -> Arc<Message> {
        Arc::new(roles::custom(message, Some(self.host.now_ms())))
    }

    pub(super) fn take_next_prompt(&self) -> Vec<Arc<Message>> {
        std::mem::take(&mut self.lock().next_prompt)
    }

    /// Changes the session: see [`Change`].
    pub fn change(&self, change: Change) {
        self.lock().changes.push(change);
        self.shared.has_changes.store(true, Ordering::Release);
        self.shared.changed.notify_waiters();
    }

    /// Returns the changes that can be applied now; user commands wait for the end of the run.
    pub(super) fn take_changes(&self, at_end: bool) -> Vec<Change> {
        if !at_end && !self.shared.has_changes.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        self.lock().changes.extract_if(.., |change| at_end || !change.is_late()).collect()
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.host.now_ms()
    }

    /// Sets what the agent uses from its next request on.
    pub(super) fn adopt(&self, news: Adopted) {
        let mut state = self.lock();
        let now = &mut state.adopted;
        now.model = news.model.or(now.model.take());
        now.thinking = news.thinking.or(now.thinking);
        now.tools = news.tools.or(now.tools.take());
        now.system = news.system.or(now.system.take());
    }

    /// Takes some or all of what the agent should adopt.
    pub(super) fn take_adopted<T>(&self, take: impl FnOnce(&mut Adopted) -> T) -> T {
        take(&mut self.lock().adopted)
    }

    /// Waits until there is work for the current run: changes applicable during a run, queries, observers or drafts.
    pub(super) async fn has_work(&self) {
        let can_change = |state: &ControlState| state.changes.iter().any(|change| !change.is_late());
        self.until(|state| can_change(state) || state.has_queries() || state.drafted.is_some()).await;
    }

    /// Waits until there are queries of extensions or observers.
    pub(super) async fn has_queries(&self) {
        self.until(ControlState::has_queries).await;
    }

    /// Calls `observe` with a view of the session as soon as the current run waits or emits an event. Without a run, use
    /// [`super::AgentSession::view`]; for observers still waiting at the end of a run, call [`super::AgentSession::notify_observers`].
    pub fn observe(&self, observe: impl FnOnce(&SessionView<'_>) + Send + 'static) {
        self.share(|state| state.observers.push(ViewCallback::new(observe)));
    }

    /// Enables or disables automatic compaction.
    pub fn set_auto_compaction(&self, on: bool) {
        self.lock().switches.compaction = Some(on);
    }

    /// Sets the maximum retries of a failed answer; 0 disables them.
    pub fn set_retries(&self, max_retries: u32) {
        self.lock().switches.retries = Some(max_retries);
    }

    /// Returns whether automatic compaction is enabled, if it was switched.
    pub fn auto_compaction(&self) -> Option<bool> {
        self.lock().switches.compaction
    }

    pub(super) fn switches(&self) -> Switches {
        self.lock().switches
    }

    /// Cancels the current prompt with its retries and compactions. Queues are kept.
    pub fn cancel(&self, why: CancelReason) {
        if let Some(running) = &self.lock().running {
            running.prompt.cancel(why);
        }
    }

    /// Cancels the wait for a retry; the failed answer then ends the run.
    pub fn cancel_retry(&self) {
        if let Some(running) = &self.lock().running {
            running.wait.cancel(CancelReason::User);
        }
    }

    /// Returns whether a prompt is running.
    pub fn is_running(&self) -> bool {
        self.lock().running.is_some()
    }

    /// Returns whether the handler of the command that was sent as a prompt is running.
    pub(crate) fn runs_command(&self) -> bool {
        self.lock().runs_command
    }

    /// Returns the texts of queued user messages: steering, then follow-ups.
    pub fn waiting(&self) -> (Vec<String>, Vec<String>) {
        (self.texts(QueueKind::Steering), self.texts(QueueKind::FollowUp))
    }

    /// Returns the number of queued user messages.
    pub fn n_waiting(&self) -> usize {
        let count = |kind| self.queues.list(kind).iter().filter(|w| matches!(*w.message, Message::User(_))).count();
        count(QueueKind::Steering) + count(QueueKind::FollowUp)
    }

    /// Returns the queued user messages with ids for [`SessionControl::remove_queued`]: steering, then follow-ups.
    pub fn queued(&self) -> Vec<(QueueKind, u64, String)> {
        let of = |kind| {
            let text = move |waiting: QueuedMessage| Some((kind, waiting.id, text_of(&waiting.message)?));
            self.queues.list(kind).into_iter().filter_map(text)
        };
        of(QueueKind::Steering).chain(of(QueueKind::FollowUp)).collect()
    }

    /// Removes a message from its queue, or returns `None` if it is no longer queued.
    pub fn remove_queued(&self, id: u64) -> Option<Arc<Message>> {
        self.queues.remove(id).map(|waiting| waiting.message)
    }

    /// Clears both queues and returns the texts of the user's messages in them.
    pub fn clear_queues(&self) -> (Vec<String>, Vec<String>) {
        let waiting = self.waiting();
        self.queues.clear(QueueKind::Steering);
        self.queues.clear(QueueKind::FollowUp);
        waiting
    }

    /// Drops the messages that wait for the next turn or prompt.
    pub(super) fn drop_pending(&self) {
        self.queues.clear(QueueKind::Steering);
        self.queues.clear(QueueKind::FollowUp);
        self.lock().next_prompt.clear();
    }

    /// Clears both queues and returns their messages: steering first, each queue in order.
    pub fn take_queued(&self) -> Vec<(QueueKind, Arc<Message>)> {
        let kinds = [QueueKind::Steering, QueueKind::FollowUp];
        let take = |kind| self.queues.clear(kind).into_iter().map(move |waiting| (kind, waiting.message));
        kinds.into_iter().flat_map(take).collect()
    }

    /// Sets how many queued messages are taken at a time.
    pub fn set_queue_mode(&self, kind: QueueKind, mode: QueueMode) {
        self.queues.set_mode(kind, mode);
        let switches = &mut self.lock().switches;
        match kind {
            QueueKind::Steering => switches.steering = Some(mode),
            QueueKind::FollowUp => switches.follow_up = Some(mode),
        }
    }

    /// Sets when a run takes in steering; the default is between two turns.
    pub fn set_steering_point(&self, point: SteeringPoint) {
        self.queues.set_steering_point(point);
    }

    /// Sets the default for how many queued messages are taken at a time.
    pub(super) fn begin_with_queue_modes(&self, steering: QueueMode, follow_up: QueueMode) {
        self.queues.set_mode(QueueKind::Steering, steering);
        self.queues.set_mode(QueueKind::FollowUp, follow_up);
    }

    /// Copies the switches of another session.
    pub(crate) fn keep_switches_of(&self, other: &Self) {
        let switches = other.switches();
        self.lock().switches = switches;
        self.queues.set_steering_point(other.queues.steering_point());
        for (kind, mode) in [(QueueKind::Steering, switches.steering), (QueueKind::FollowUp, switches.follow_up)] {
            mode.into_iter().for_each(|mode| self.queues.set_mode(kind, mode));
        }
    }

    /// Returns how many queued messages are taken at a time.
    pub fn queue_mode(&self, kind: QueueKind) -> QueueMode {
        self.queues.mode(kind)
    }

    fn texts(&self, kind: QueueKind) -> Vec<String> {
        self.queues.list(kind).iter().filter_map(|waiting| text_of(&waiting.message)).collect()
    }

    /// Registers a run until the guard is dropped.
    pub(super) fn enter(&self, prompt: &Cancel) -> Entered {
        self.extensions.set_cancel(prompt);
        let before = self.lock().running.replace(RunTokens { prompt: prompt.clone(), wait: prompt.child() });
        Entered { control: self.clone(), before }
    }

    /// Creates a token for one delay between two attempts.
    pub(super) fn new_wait(&self, prompt: &Cancel) -> Cancel {
        let wait = prompt.child();
        self.lock().running = Some(RunTokens { prompt: prompt.clone(), wait: wait.clone() });
        wait
    }
}

/// Marks a run as active until dropped.
pub(super) struct Entered {
    control: SessionControl,
    /// The enclosing run, if any.
    before: Option<RunTokens>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.before.take();
        let cancel = before.as_ref().map(|running| running.prompt.clone()).unwrap_or_default();
        self.control.extensions.set_cancel(&cancel);
        self.control.share(|state| {
            state.requests.is_busy &= before.is_some();
            state.running = before;
        });
    }
}

/// Returns the text of a user message.
fn text_of(message: &Message) -> Option<String> {
    match message {
        Message::User(user) => Some(user.content.text("")),
        _ => None,
    }
}

//! Steering a session while a run has it borrowed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinch_agent_core::queue::{MessageQueues, QueueKind, QueueMode, QueuedMessage};
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
use crate::images::{Intake, Treatment};
use crate::prompt::PromptSections as SystemPrompt;
use crate::resources::Commands;
use crate::session_log::roles::{self, BashExecution};
use crate::tools::facts::SessionFacts;

/// A handle of a session; clones share it. Nothing here waits, so that hooks may use it too.
#[derive(Clone, Debug)]
pub struct SessionControl {
    queues: MessageQueues,
    host: Host,
    extensions: Extensions,
    facts: SessionFacts,
    images: Intake,
    shared: Arc<ControlShared>,
}

#[derive(Debug)]
struct ControlShared {
    state: Mutex<ControlState>,
    /// There may be changes; looked at before every event, so that the lock need not be taken.
    has_changes: AtomicBool,
    changed: Notify,
}

#[derive(Debug)]
pub(super) struct ControlState {
    running: Option<RunTokens>,
    /// Messages that come behind the next prompt.
    next_prompt: Vec<Arc<Message>>,
    /// What waits for the run to take it in.
    changes: Vec<Change>,
    /// What the run has taken in and the agent has not.
    adopted: Adopted,
    /// Who wants to look at the session.
    pub(super) observers: Vec<ViewCallback>,
    switches: Switches,
    /// What is known of the session without having it.
    pub(super) now: Arc<SessionSnapshot>,
    /// The slash commands.
    pub(super) commands: Arc<Commands>,
    /// Which tools there are.
    pub(super) tooling: Tooling,
    /// What extensions ask for.
    pub(super) requests: RequestQueue,
    /// The whole system prompt that extensions want for the prompt under way: requests have it, the conversation keeps its own.
    pub(super) forced_system: Option<Arc<str>>,
    /// Entries that extensions want behind the turn under way.
    pub(super) drafted: Option<PendingEntries>,
    /// The entries of the turn under way.
    pub(super) turn: TurnEntries,
}

/// The entries of a turn's messages.
#[derive(Clone, Debug, Default)]
pub(super) struct TurnEntries {
    pub(super) answer: Option<EntryId>,
    pub(super) results: Vec<EntryId>,
}

/// What is switched on or off while the session lives; `None`: as its parts say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Switches {
    pub(super) compaction: Option<bool>,
    /// Repetitions of a failed answer at most.
    pub(super) retries: Option<u32>,
    steering: Option<QueueMode>,
    follow_up: Option<QueueMode>,
}

/// What the next request of a run is made with; `None`: as it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Adopted {
    pub(super) model: Option<Arc<Model>>,
    pub(super) thinking: Option<ThinkingLevel>,
    pub(super) tools: Option<ToolSet>,
    pub(super) system: Option<SystemPrompt>,
}

/// The tokens of the run under way.
#[derive(Clone, Debug)]
struct RunTokens {
    prompt: Cancel,
    wait: Cancel,
}

/// Something that changes a session. A run takes it in between two of its events; while nothing runs, the next prompt does.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Change {
    /// Another model, from the next request on.
    Model(Arc<Model>),
    /// Another thinking level from the next request on, clamped to what the model can.
    Thinking(ThinkingLevel),
    /// Other tools and another prompt, from the next request on; the model is informed of the change.
    Tools(ToolSet, SystemPrompt),
    /// Another name of the session; a blank one clears it.
    Name(String),
    /// An entry that is not a message: an extension's state, a label.
    Entry(EntryBody),
    /// A command the user ran; it comes behind the messages of the run.
    Bash(BashExecution),
    /// A message of an extension that no one is asked to answer; it comes behind the messages of the run.
    Note(CustomMessage),
}

impl ControlState {
    pub(super) fn has_any_change(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Whether there are queries of extensions or observers.
    pub(super) fn has_queries(&self) -> bool {
        self.requests.has_queries() || !self.observers.is_empty()
    }
}

impl Change {
    /// Whether it has to wait for the end of a run.
    fn is_late(&self) -> bool {
        matches!(self, Self::Bash(_) | Self::Note(_))
    }
}

/// What is said while a run is under way goes into a queue, and the caller must say which.
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
            requests: RequestQueue::default(),
            forced_system: None,
            drafted: None,
            turn: TurnEntries::default(),
        };
        let shared =
            ControlShared { state: Mutex::new(state), has_changes: AtomicBool::new(false), changed: Notify::new() };
        let facts = SessionFacts::default();
        let images = Intake::new(Treatment::Untouched);
        Self { queues, host, extensions, facts, images, shared: Arc::new(shared) }
    }

    /// Keeps what tools know of the session as it is.
    pub(super) fn keeping(self, facts: SessionFacts) -> Self {
        self.peek(|state| facts.set(state.now.facts()));
        Self { facts, ..self }
    }

    /// Takes images in as an intake does.
    pub(super) fn taking(self, images: Intake) -> Self {
        Self { images, ..self }
    }

    /// Where images come into the conversation.
    pub fn images(&self) -> &Intake {
        &self.images
    }

    pub(super) fn facts(&self) -> &SessionFacts {
        &self.facts
    }

    /// The session's extensions.
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    pub(super) fn commands(&self) -> Arc<Commands> {
        self.peek(|state| Arc::clone(&state.commands))
    }

    /// Looks at or changes what the handles of the session share, and wakes those who wait for a change of it.
    pub(super) fn share<T>(&self, change: impl FnOnce(&mut ControlState) -> T) -> T {
        let done = change(&mut self.lock());
        self.shared.changed.notify_waiters();
        done
    }

    /// Looks at what the handles of the session share.
    pub(super) fn peek<T>(&self, look: impl FnOnce(&ControlState) -> T) -> T {
        look(&self.lock())
    }

    /// Waits until something holds of what the handles share.
    pub(super) async fn until(&self, holds: impl Fn(&ControlState) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            // What changes between the look and the wait must not be missed.
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

    /// Says something that the model reads at its next turn; while nothing runs, with the next prompt. Skills and prompt templates are expanded.
    pub fn steer(&self, text: impl Into<String>, images: Vec<Image>) {
        self.push(QueueKind::Steering, &text.into(), images);
    }

    /// Says something that the model reads when it would be done. Skills and prompt templates are expanded.
    pub fn follow_up(&self, text: impl Into<String>, images: Vec<Image>) {
        self.push(QueueKind::FollowUp, &text.into(), images);
    }

    /// A prompt that comes while another one runs: it goes into the queue the caller names.
    ///
    /// # Errors
    /// [`SessionBusy`] when the caller names none.
    pub fn prompt(&self, text: &str, images: Vec<Image>, queue: Option<QueueKind>) -> Result<(), SessionBusy> {
        self.push(queue.ok_or(SessionBusy)?, text, images);
        Ok(())
    }

    fn push(&self, kind: QueueKind, text: &str, images: Vec<Image>) {
        let text = expanded(&self.commands(), text);
        self.push_message(kind, user_message(text, images, self.host.now_ms()));
    }

    /// Puts a message into a queue as it is.
    pub(super) fn push_message(&self, kind: QueueKind, message: Message) {
        self.queues.push(kind, message);
    }

    /// Puts a message of an extension into a queue.
    pub fn queue_custom(&self, kind: QueueKind, message: &CustomMessage) {
        self.queues.push(kind, roles::custom(message, Some(self.host.now_ms())));
    }

    /// Puts a message of an extension behind the next prompt of the user.
    pub fn with_next_prompt(&self, message: &CustomMessage) {
        let message = self.custom(message);
        self.lock().next_prompt.push(message);
    }

    /// A message of an extension, of now.
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

    /// Takes the changes that can be made now; commands of the user wait for the end of the run.
    pub(super) fn take_changes(&self, at_end: bool) -> Vec<Change> {
        if !at_end && !self.shared.has_changes.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        self.lock().changes.extract_if(.., |change| at_end || !change.is_late()).collect()
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.host.now_ms()
    }

    /// Changes what the agent uses from its next request on.
    pub(super) fn adopt(&self, news: Adopted) {
        let mut state = self.lock();
        let now = &mut state.adopted;
        now.model = news.model.or(now.model.take());
        now.thinking = news.thinking.or(now.thinking);
        now.tools = news.tools.or(now.tools.take());
        now.system = news.system.or(now.system.take());
    }

    /// Takes a part of what the agent is to use, or all of it.
    pub(super) fn take_adopted<T>(&self, take: impl FnOnce(&mut Adopted) -> T) -> T {
        take(&mut self.lock().adopted)
    }

    /// Waits until there is something for the run under way to do: changes that can be made during a run, queries, observers or drafts.
    pub(super) async fn has_work(&self) {
        let can_change = |state: &ControlState| state.changes.iter().any(|change| !change.is_late());
        self.until(|state| can_change(state) || state.has_queries() || state.drafted.is_some()).await;
    }

    /// Waits until there are queries of extensions or observers.
    pub(super) async fn has_queries(&self) {
        self.until(ControlState::has_queries).await;
    }

    /// Looks at the session as soon as the run under way comes to a wait or to its next event. While nothing runs, look at
    /// [`super::AgentSession::view`] itself; what still waits when a run ends is for [`super::AgentSession::notify_observers`].
    pub fn observe(&self, observe: impl FnOnce(&SessionView<'_>) + Send + 'static) {
        self.share(|state| state.observers.push(ViewCallback::new(observe)));
    }

    /// Switches compactions that happen by themselves on or off.
    pub fn set_auto_compaction(&self, on: bool) {
        self.lock().switches.compaction = Some(on);
    }

    /// Sets how often a failed answer is retried at most; 0: never.
    pub fn set_retries(&self, max_retries: u32) {
        self.lock().switches.retries = Some(max_retries);
    }

    /// Whether compactions happen by themselves, when that was switched.
    pub fn auto_compaction(&self) -> Option<bool> {
        self.lock().switches.compaction
    }

    pub(super) fn switches(&self) -> Switches {
        self.lock().switches
    }

    /// Stops the prompt under way with its retries and compactions. Queues are left alone.
    pub fn cancel(&self, why: CancelReason) {
        if let Some(running) = &self.lock().running {
            running.prompt.cancel(why);
        }
    }

    /// Stops waiting for a retry; the failed answer is the end then.
    pub fn cancel_retry(&self) {
        if let Some(running) = &self.lock().running {
            running.wait.cancel(CancelReason::User);
        }
    }

    /// Whether a prompt is under way.
    pub fn is_running(&self) -> bool {
        self.lock().running.is_some()
    }

    /// Texts of the user that wait: steering, then follow-ups.
    pub fn waiting(&self) -> (Vec<String>, Vec<String>) {
        (self.texts(QueueKind::Steering), self.texts(QueueKind::FollowUp))
    }

    /// How many messages of the user wait.
    pub fn n_waiting(&self) -> usize {
        let count = |kind| self.queues.list(kind).iter().filter(|w| matches!(*w.message, Message::User(_))).count();
        count(QueueKind::Steering) + count(QueueKind::FollowUp)
    }

    /// The messages of the user that wait, with the numbers that [`SessionControl::remove_queued`] takes: steering, then follow-ups.
    pub fn queued(&self) -> Vec<(QueueKind, u64, String)> {
        let of = |kind| {
            let text = move |waiting: QueuedMessage| Some((kind, waiting.id, text_of(&waiting.message)?));
            self.queues.list(kind).into_iter().filter_map(text)
        };
        of(QueueKind::Steering).chain(of(QueueKind::FollowUp)).collect()
    }

    /// Takes one message out of its queue; `None` if it does not wait any more.
    pub fn remove_queued(&self, id: u64) -> Option<Arc<Message>> {
        self.queues.remove(id).map(|waiting| waiting.message)
    }

    /// Empties both queues and returns the texts of the user that were in them.
    pub fn clear_queues(&self) -> (Vec<String>, Vec<String>) {
        let waiting = self.waiting();
        self.queues.clear(QueueKind::Steering);
        self.queues.clear(QueueKind::FollowUp);
        waiting
    }

    /// Empties both queues and returns what was in them: steering first, each queue in order.
    pub fn take_queued(&self) -> Vec<(QueueKind, Arc<Message>)> {
        let kinds = [QueueKind::Steering, QueueKind::FollowUp];
        let take = |kind| self.queues.clear(kind).into_iter().map(move |waiting| (kind, waiting.message));
        kinds.into_iter().flat_map(take).collect()
    }

    /// Sets how many waiting messages are taken at a time.
    pub fn set_queue_mode(&self, kind: QueueKind, mode: QueueMode) {
        self.queues.set_mode(kind, mode);
        let switches = &mut self.lock().switches;
        match kind {
            QueueKind::Steering => switches.steering = Some(mode),
            QueueKind::FollowUp => switches.follow_up = Some(mode),
        }
    }

    /// Sets the default for how many waiting messages are taken at a time.
    pub(super) fn begin_with_queue_modes(&self, steering: QueueMode, follow_up: QueueMode) {
        self.queues.set_mode(QueueKind::Steering, steering);
        self.queues.set_mode(QueueKind::FollowUp, follow_up);
    }

    /// Copies the switches of another session.
    pub(crate) fn keep_switches_of(&self, other: &Self) {
        let switches = other.switches();
        self.lock().switches = switches;
        for (kind, mode) in [(QueueKind::Steering, switches.steering), (QueueKind::FollowUp, switches.follow_up)] {
            mode.into_iter().for_each(|mode| self.queues.set_mode(kind, mode));
        }
    }

    /// How many waiting messages are taken at a time.
    pub fn queue_mode(&self, kind: QueueKind) -> QueueMode {
        self.queues.mode(kind)
    }

    fn texts(&self, kind: QueueKind) -> Vec<String> {
        self.queues.list(kind).iter().filter_map(|waiting| text_of(&waiting.message)).collect()
    }

    /// Notes a run; the guard takes the note back.
    pub(super) fn enter(&self, prompt: &Cancel) -> Entered {
        self.extensions.set_cancel(prompt);
        let before = self.lock().running.replace(RunTokens { prompt: prompt.clone(), wait: prompt.child() });
        Entered { control: self.clone(), before }
    }

    /// A token for one wait between two attempts.
    pub(super) fn new_wait(&self, prompt: &Cancel) -> Cancel {
        let wait = prompt.child();
        self.lock().running = Some(RunTokens { prompt: prompt.clone(), wait: wait.clone() });
        wait
    }
}

/// A run is under way as long as this lives.
pub(super) struct Entered {
    control: SessionControl,
    /// What was under way around this one.
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

/// The text of a message of the user.
fn text_of(message: &Message) -> Option<String> {
    match message {
        Message::User(user) => Some(user.content.text("")),
        _ => None,
    }
}

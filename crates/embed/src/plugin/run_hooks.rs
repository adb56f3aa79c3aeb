//! The hooks of one run.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinch_coding_agent::extension::Extension;
use pinch_coding_agent::prompt::PromptSections;
use pinch_llm::message::Message;
use pinch_ports::ApprovalBroker;
use pinch_stdx::host::Host;
use pinch_stdx::text::utf16_len;

use super::gateway_payloads::{SessionContext, SessionStart};
use super::hook_point::HookPoint;
use super::payloads::{
    AgentBootstrap, AgentEnd, AgentStartChanges, BeforeAgentRun, BeforeModelResolve, BeforePromptBuild, HookContext,
    LlmInput, LlmOutput, ModelOverride, PromptChanges, RunVerdict,
};
use super::registry::PluginSet;
use super::session_hooks::PluginHooks;
use crate::prompt::bootstrap::WorkspaceFile;
use crate::system_events::{SystemEvents, without_marks};

/// The plugins of an engine, as seen by one run. A runtime uses `prepare` and `llm_input`; everything else belongs to the runner.
#[derive(Clone)]
pub struct RunHooks {
    plugins: PluginSet,
    cx: Arc<HookContext>,
    state: Arc<Mutex<HookState>>,
    events: Option<(SystemEvents, String, Host)>,
    approvals: Arc<dyn ApprovalBroker>,
}

#[derive(Default)]
struct HookState {
    /// Answers of older plugins at the start.
    at_start: AgentStartChanges,
    /// Changes to the prompt, once the plugins were asked.
    prompt: Option<PromptChanges>,
    /// System events, once they were taken.
    events: Option<Option<String>>,
    /// Sizes of the prepared prompt.
    turn: Option<TurnSizes>,
    /// Messages that the run added to the conversation.
    messages: Vec<Arc<Message>>,
}

/// Sizes of the message that a run adds to the conversation, in UTF-16 code units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnSizes {
    /// Size of the user's prompt.
    pub prompt: usize,
    /// Size of the system events before it.
    pub runtime_context: usize,
    /// Size of everything before it that only the model sees: system events, and what plugins prepend.
    pub model_only: usize,
}

/// A prompt with the changes of plugins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedPrompt {
    /// The user's prompt with prepended context.
    pub prompt: String,
    /// Whether the system prompt was changed.
    pub changes_system: bool,
}

impl RunHooks {
    /// Creates the hooks of a run. `approvals`: asks a person when a plugin requires that.
    pub(crate) fn new(plugins: PluginSet, cx: HookContext, approvals: Arc<dyn ApprovalBroker>) -> Self {
        Self { plugins, cx: Arc::new(cx), state: Arc::default(), events: None, approvals }
    }

    /// Prepends the waiting events of a session to the prompt.
    pub(crate) fn with_events(mut self, events: &SystemEvents, session: &str, host: &Host) -> Self {
        self.events = Some((events.clone(), session.to_owned(), host.clone()));
        self
    }

    /// Returns the system events of the run. They are taken when the prompt is first needed, so that a run that fails earlier loses none.
    fn events(&self) -> Option<String> {
        let (events, session, host) = self.events.as_ref()?;
        self.state().events.get_or_insert_with(|| events.take(session, host)).clone()
    }

    fn state(&self) -> MutexGuard<'_, HookState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks plugins for a model override.
    pub(crate) async fn choose_model(&self, prompt: &str) -> ModelOverride {
        if self.plugins.is_empty() {
            return ModelOverride::default();
        }
        let event = BeforeModelResolve { prompt: prompt.to_owned() };
        let mut choice: ModelOverride = self
            .plugins
            .ask(HookPoint::BeforeModelResolve, &event, &self.cx, |plugin, event, cx| {
                plugin.before_model_resolve(event, cx)
            })
            .await;
        let start: AgentStartChanges = self
            .plugins
            .ask(HookPoint::BeforeAgentStart, &event, &self.cx, |plugin, event, cx| plugin.on_agent_start(event, cx))
            .await;
        choice.provider.0 = choice.provider.0.or_else(|| start.model.provider.0.clone());
        choice.model.0 = choice.model.0.or_else(|| start.model.model.0.clone());
        self.state().at_start = start;
        choice
    }

    /// Asks plugins whether the run proceeds.
    pub(crate) async fn verdict(&self, prompt: &str, provider: &str, model: &str) -> RunVerdict {
        let event =
            BeforeAgentRun { prompt: prompt.to_owned(), provider: provider.to_owned(), model: model.to_owned() };
        self.plugins.verdict(&event, &self.cx).await
    }

    /// Lets plugins replace the workspace files of the system prompt.
    pub(crate) async fn bootstrap(&self, workspace: &Path, files: Vec<WorkspaceFile>) -> Vec<WorkspaceFile> {
        let mut event = AgentBootstrap { workspace: workspace.to_owned(), files };
        for one in self.plugins.calls(HookPoint::AgentBootstrap) {
            let replaced = one.ask(|plugin| plugin.agent_bootstrap(&event, &self.cx)).await.flatten();
            if let Some(files) = replaced {
                event.files = files;
            }
        }
        event.files
    }

    /// Returns the user's prompt with the session's system events and the context that plugins prepend. Plugins are asked once per run, with the conversation so far.
    pub async fn prepare(&self, prompt: &str, messages: &[Arc<Message>]) -> PreparedPrompt {
        let known = self.state().prompt.clone();
        let changes = match known {
            Some(changes) => changes,
            None if self.plugins.is_empty() => PromptChanges::default(),
            None => {
                let event = BeforePromptBuild { prompt: prompt.to_owned(), messages: messages.to_vec() };
                let hook = HookPoint::BeforePromptBuild;
                let changes: PromptChanges = self
                    .plugins
                    .ask(hook, &event, &self.cx, |plugin, event, cx| plugin.before_prompt_build(event, cx))
                    .await;
                let mut state = self.state();
                let changes = changes.over(state.at_start.clone());
                state.prompt = Some(changes.clone());
                changes
            }
        };
        let changes_system = changes.system_prompt.0.as_ref().is_some_and(|text| !text.trim().is_empty())
            || changes.prepend_system_context.text().is_some()
            || changes.append_system_context.text().is_some();
        let events = self.events();
        let runtime_context = events.as_deref().map_or(0, utf16_len);
        // Only the system itself marks lines as its own.
        let own = without_marks(prompt);
        let own_size = utf16_len(&own);
        let before = changes.prepend_context.text().into_iter().chain(events);
        let whole = before.chain([own.into_owned()]).collect::<Vec<_>>().join("\n\n");
        let model_only = utf16_len(&whole) - own_size;
        self.state().turn = Some(TurnSizes { prompt: utf16_len(prompt), runtime_context, model_only });
        PreparedPrompt { prompt: whole, changes_system }
    }

    /// Returns the sizes of the prepared prompt; `None` if none was prepared.
    pub(crate) fn turn_sizes(&self) -> Option<TurnSizes> {
        self.state().turn
    }

    /// Applies the plugins' changes to a system prompt, if they were asked.
    pub(crate) fn system(&self, usual: PromptSections) -> PromptSections {
        let Some(changes) = self.state().prompt.clone() else { return usual };
        let whole = changes.system_prompt.0.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let (before, after) = (changes.prepend_system_context.text(), changes.append_system_context.text());
        if whole.is_none() && before.is_none() && after.is_none() {
            return usual;
        }
        let mut system = PromptSections::default();
        system.mark_volatile(usual.volatile().iter().map(String::as_str));
        system.push("hooks_before", before.unwrap_or_default());
        match whole {
            Some(text) => system.push("preamble", text),
            None => usual.sections().for_each(|(name, text)| system.push(name, text.to_owned())),
        }
        system.push("hooks_after", after.unwrap_or_default());
        system
    }

    /// Returns the extension of the run's session that calls the plugins.
    pub(crate) fn of_session(&self) -> Option<Arc<dyn Extension>> {
        (!self.plugins.is_empty()).then(|| Arc::new(self.session_hooks()) as Arc<dyn Extension>)
    }

    fn session_hooks(&self) -> PluginHooks {
        PluginHooks::new(self.plugins.clone(), Arc::clone(&self.cx), Arc::clone(&self.approvals))
    }

    /// Returns a message as plugins let it be written. For messages that do not come from a session's run, whose extensions see them.
    pub(crate) async fn written(&self, message: Arc<Message>) -> Arc<Message> {
        self.as_written(message, false).await
    }

    /// Like [`Self::written`], for a result that stands in for a missing one.
    pub(crate) async fn written_placeholder(&self, result: Arc<Message>) -> Arc<Message> {
        self.as_written(result, true).await
    }

    async fn as_written(&self, message: Arc<Message>, is_synthetic: bool) -> Arc<Message> {
        if self.plugins.is_empty() {
            return message;
        }
        self.session_hooks().written(&message, is_synthetic).await.unwrap_or(message)
    }

    /// Notifies plugins of a session that a run created.
    pub(crate) fn session_created(&self) {
        let HookContext { agent_id, session_key, session_id, .. } = &*self.cx;
        let cx = SessionContext {
            agent_id: agent_id.clone(),
            session_key: session_key.clone(),
            session_id: session_id.clone(),
        };
        self.plugins.session_started(SessionStart { resumed_from: None }, cx);
    }

    /// Notifies plugins of a prompt that is about to be sent.
    pub fn llm_input(&self, make: impl FnOnce() -> LlmInput) {
        if !self.plugins.is_empty() {
            self.plugins.notify(HookPoint::LlmInput, make(), &self.cx, |plugin, event, cx| plugin.llm_input(event, cx));
        }
    }

    /// Notifies plugins of the end of an attempt.
    pub(crate) fn llm_output(&self, make: impl FnOnce() -> LlmOutput) {
        if !self.plugins.is_empty() {
            self.plugins
                .notify(HookPoint::LlmOutput, make(), &self.cx, |plugin, event, cx| plugin.llm_output(event, cx));
        }
    }

    /// Records a message that the run added to the conversation.
    pub(crate) fn added(&self, message: &Arc<Message>) {
        if !self.plugins.is_empty() {
            self.state().messages.push(Arc::clone(message));
        }
    }

    /// Returns the number of messages added so far.
    pub(crate) fn n_added(&self) -> usize {
        self.state().messages.len()
    }

    /// Notifies plugins of the end of an attempt or the run, with the messages added since.
    pub(crate) fn agent_end(&self, since: usize, make: impl FnOnce(Vec<Arc<Message>>) -> AgentEnd) {
        if self.plugins.is_empty() {
            return;
        }
        let messages = self.state().messages.get(since..).unwrap_or_default().to_vec();
        self.plugins
            .notify(HookPoint::AgentEnd, make(messages), &self.cx, |plugin, event, cx| plugin.on_agent_end(event, cx));
    }
}

impl fmt::Debug for RunHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHooks").field("plugins", &self.plugins).field("cx", &self.cx).finish_non_exhaustive()
    }
}

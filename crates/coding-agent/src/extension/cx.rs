//! Contexts: how handlers and tools of an extension access the session.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use pinch_agent_core::{Tool, ToolSet};
use pinch_llm::event::EventStream;
use pinch_llm::ids::{ModelId, ProviderId};
use pinch_llm::message::Content;
use pinch_llm::request::{CallOptions, Request};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use serde_json::Value;

use super::actions::{ActionOutcome, DeliverAs, SessionAction, SessionActions, SessionSnapshot};
use super::core::{BusListener, Core};
use super::error::ExtensionError;
use super::limit::Stopwatch;
use super::models::KnownModels;
use super::register::{FlagValue, ProviderChange};
use super::rendering::{RegisteredRenderer, Renderer, RendererKey, ToolLook};
use super::ui::Dialogs;
use crate::compaction::estimate::ContextUsage;
use crate::entry::{CustomMessage, Entry, EntryBody, EntryId, Header};
use crate::extension::exec::{self, ExecOptions, ExecOutput};
use crate::models::ProviderDefinition;
use crate::session_log::Context;

/// A handle to the session that a handler was called for. Cheap to clone. Once the session is replaced or closed, every method that reads
/// or changes it fails with [`ExtensionError::Stale`].
#[derive(Clone)]
pub struct ExtensionCx {
    core: Arc<Core>,
    name: Arc<str>,
    generation: u64,
    watch: Option<Arc<Stopwatch>>,
    cancel: Cancel,
    /// Whether other extensions are notified of dialogs.
    pub(super) is_watched: bool,
}

/// A long-lived handle of an extension, from registration on, that gives contexts of the current session. It keeps nothing alive.
#[derive(Clone)]
pub struct ExtensionHandle {
    core: Weak<Core>,
    name: Arc<str>,
}

impl ExtensionHandle {
    pub(super) fn new(core: &Arc<Core>, name: Arc<str>) -> Self {
        Self { core: Arc::downgrade(core), name }
    }

    /// Returns a context of the current session.
    ///
    /// # Errors
    /// Fails with [`ExtensionError::Stale`] while there is no session.
    pub fn cx(&self) -> Result<ExtensionCx, ExtensionError> {
        let core = self.core.upgrade().ok_or(ExtensionError::Stale)?;
        let (generation, cancel) = core.current().ok_or(ExtensionError::Stale)?;
        Ok(ExtensionCx::new(core, Arc::clone(&self.name), generation, None, cancel))
    }

    /// Returns whether a context belongs to the same extensions.
    #[cfg(feature = "extension-process")]
    pub(super) fn is_of(&self, cx: &ExtensionCx) -> bool {
        std::ptr::eq(self.core.as_ptr(), Arc::as_ptr(&cx.core))
    }

    /// Returns whether its extensions still exist.
    #[cfg(feature = "extension-process")]
    pub(super) fn is_alive(&self) -> bool {
        self.core.strong_count() > 0
    }

    /// Reports a failure that happened outside of handlers.
    pub fn report(&self, event: &str, error: &ExtensionError) {
        if let Some(core) = self.core.upgrade() {
            core.report(&self.name, event, error);
        }
    }
}

impl ExtensionCx {
    pub(super) fn new(
        core: Arc<Core>,
        name: Arc<str>,
        generation: u64,
        watch: Option<Arc<Stopwatch>>,
        cancel: Cancel,
    ) -> Self {
        Self { core, name, generation, watch, cancel, is_watched: true }
    }

    /// Returns the extension's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a handle of the extension that outlives this context.
    #[cfg(feature = "extension-process")]
    pub(super) fn handle(&self) -> ExtensionHandle {
        ExtensionHandle::new(&self.core, Arc::clone(&self.name))
    }

    /// Returns the number of the session this context belongs to; it increases with every session.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Waits for work whose time does not count towards the limit of the handler, such as the answer of a person. Returns `None` if the current
    /// prompt is cancelled first.
    pub async fn wait_untimed<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let _paused = self.watch.as_ref().map(Stopwatch::pause);
        self.cancel.run(work).await.ok()
    }

    /// Returns the token that is cancelled with the current prompt.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Returns the dialogs for asking and informing people.
    pub fn ui(&self) -> Dialogs {
        let mut screen = self.core.screen();
        screen.onlooker.take_if(|_| !self.is_watched);
        Dialogs { screen, watch: self.watch.clone(), cancel: self.cancel.clone() }
    }

    /// Returns whether there is a user interface.
    pub fn has_ui(&self) -> bool {
        self.core.screen().ui.is_present()
    }

    fn actions(&self) -> Result<Arc<dyn SessionActions>, ExtensionError> {
        self.core.actions(self.generation).ok_or(ExtensionError::Stale)
    }

    /// Requests an action of the session.
    ///
    /// # Errors
    /// Fails if the action was not performed.
    pub async fn act(&self, act: SessionAction) -> Result<ActionOutcome, ExtensionError> {
        self.actions()?.act(act).await
    }

    /// Returns the state of the session.
    ///
    /// # Errors
    /// Returns [`ExtensionError::Stale`], like all methods.
    pub fn session(&self) -> Result<Arc<SessionSnapshot>, ExtensionError> {
        Ok(self.actions()?.now())
    }

    /// Returns the working directory.
    ///
    /// # Errors
    /// [`ExtensionError::Stale`].
    pub fn cwd(&self) -> Result<PathBuf, ExtensionError> {
        Ok(self.session()?.cwd.clone())
    }

    /// Returns whether no prompt is running.
    ///
    /// # Errors
    /// [`ExtensionError::Stale`].
    pub fn is_idle(&self) -> Result<bool, ExtensionError> {
        Ok(self.actions()?.is_idle())
    }

    /// Returns whether messages are queued.
    ///
    /// # Errors
    /// [`ExtensionError::Stale`].
    pub fn has_pending_messages(&self) -> Result<bool, ExtensionError> {
        Ok(self.actions()?.n_waiting() > 0)
    }

    /// Sends a message as this extension. During a run it waits according to `delivery`; otherwise it is added to the conversation, and the
    /// model is called if `trigger` is set.
    ///
    /// # Errors
    /// [`ExtensionError`].
    pub async fn send_message(
        &self,
        message: CustomMessage,
        delivery: DeliverAs,
        trigger: bool,
    ) -> Result<(), ExtensionError> {
        self.act(SessionAction::SendMessage { message, delivery, trigger }).await.map(drop)
    }

    /// Sends a message as the user, without expanding templates. Calls the model, or waits according to `delivery`.
    ///
    /// # Errors
    /// [`ExtensionError`].
    pub async fn send_user_message(&self, content: Content, delivery: DeliverAs) -> Result<(), ExtensionError> {
        self.act(SessionAction::SendUserMessage { content, delivery }).await.map(drop)
    }

    /// Appends an entry with this extension's state; the model never sees it.
    ///
    /// # Errors
    /// [`ExtensionError`].
    pub async fn append_entry(&self, custom_type: &str, data: Option<Value>) -> Result<(), ExtensionError> {
        let body = EntryBody::Custom { custom_type: custom_type.to_owned(), data };
        self.act(SessionAction::Append(Box::new(body))).await.map(drop)
    }

    /// Labels an entry, or removes its label.
    ///
    /// # Errors
    /// [`ExtensionError`].
    pub async fn set_label(&self, target: EntryId, label: Option<String>) -> Result<(), ExtensionError> {
        self.act(SessionAction::Append(Box::new(EntryBody::Label { target_id: target, label }))).await.map(drop)
    }

    /// Renames the session.
    ///
    /// # Errors
    /// [`ExtensionError`].
    pub async fn set_session_name(&self, name: &str) -> Result<(), ExtensionError> {
        self.act(SessionAction::Name(name.to_owned())).await.map(drop)
    }

    /// Returns the tools that the model may call.
    ///
    /// # Errors
    /// [`ExtensionError::Stale`].
    pub fn active_tools(&self) -> Result<ToolSet, ExtensionError> {
        Ok(self.session()?.active_tools.clone())
    }

    /// Returns all tools.
    ///
    /// # Errors
    /// [`ExtensionError::Stale`].
    pub fn all_tools(&self) -> Result<ToolSet, ExtensionError> {
        Ok(self.session()?.all_tools.clone())
    }

    /// Sets the tools that the model may call from the next request on; unknown names are ignored.
    ///
    /// # Errors
    /// [`ExtensionError`].
    pub async fn set_active_tools(&self, names: Vec<String>) -> Result<(), ExtensionError> {
        self.act(SessionAction::ActiveTools(names)).await.map(drop)
    }

    /// Registers another tool, which is active from the next request on, unless the session has a list of allowed tools without it.
    ///
    /// # Errors
    /// Returns an [`ExtensionError`], for example if another extension has a tool of that name.
    pub async fn register_tool(&self, tool: Arc<dyn Tool>) -> Result<(), ExtensionError> {
        self.actions()?;
        self.core.add_tool(&self.name, tool).map_err(ExtensionError::new)?;
        self.act(SessionAction::ToolsChanged).await.map(drop)
    }

    /// Registers what draws parts of a tool's calls, unless something does already.
    pub fn register_tool_renderer(&self, tool: impl Into<String>, look: ToolLook, renderer: Arc<dyn Renderer>) {
        let key = RendererKey::Tool(tool.into());
        self.core.registry(|registry| {
            if !registry.renderers.iter().any(|(_, known)| known.key == key) {
                registry.renderers.push((Arc::clone(&self.name), RegisteredRenderer { key, look, renderer }));
            }
        });
    }

    /// Registers or changes a provider. Takes effect at once, unless the owner of the session applies
    /// [`super::Extensions::take_provider_changes`].
    ///
    /// # Errors
    /// Fails if the definition is invalid.
    pub fn register_provider(&self, name: &str, config: impl Into<ProviderDefinition>) -> Result<(), ExtensionError> {
        self.change_provider(ProviderChange::Register { name: name.to_owned(), config: config.into() })
    }

    /// Removes a provider; a built-in one of that name is restored.
    ///
    /// # Errors
    /// [`ExtensionError`].
    pub fn unregister_provider(&self, name: &str) -> Result<(), ExtensionError> {
        self.change_provider(ProviderChange::Unregister { name: name.to_owned() })
    }

    fn change_provider(&self, change: ProviderChange) -> Result<(), ExtensionError> {
        let is_done = match self.actions() {
            Ok(actions) => actions.models().change(&change)?,
            Err(_) => false,
        };
        if !is_done {
            self.core.change_provider(&self.name, change);
        }
        Ok(())
    }

    /// Returns names and descriptions of all commands.
    pub fn commands(&self) -> Vec<(String, Option<String>)> {
        let commands = self.core.commands();
        commands.into_iter().map(|found| (found.name, found.command.description().map(str::to_owned))).collect()
    }

    /// Returns the value of one of this extension's flags.
    pub fn flag(&self, name: &str) -> Option<FlagValue> {
        self.core.flag(&self.name, name)
    }

    /// Returns the models that can be used.
    ///
    /// # Errors
    /// [`ExtensionError::Stale`].
    pub fn models(&self) -> Result<Arc<dyn KnownModels>, ExtensionError> {
        Ok(self.actions()?.models())
    }

    /// Returns the options for [`Self::call`]: those of the session's calls, without what concerns its conversation.
    ///
    /// # Errors
    /// [`ExtensionError::Stale`].
    pub fn call_options(&self) -> Result<CallOptions, ExtensionError> {
        Ok(self.actions()?.call_options())
    }

    /// Calls a model with the session's credentials and environment. The answer is not part of the conversation, its usage not part of the
    /// session's, and it is not retried. Failures are the end of the stream.
    ///
    /// Handlers have a time limit: wait for the answer with [`Self::wait_untimed`].
    ///
    /// # Errors
    /// [`ExtensionError::Stale`].
    pub fn call(&self, request: Request, cancel: Cancel) -> Result<EventStream, ExtensionError> {
        Ok(self.actions()?.call(request, cancel))
    }

    /// Switches to another model from the next request on. Returns false if it is unknown or has no credentials.
    ///
    /// # Errors
    /// [`ExtensionError`].
    pub async fn set_model(&self, provider: ProviderId, model: ModelId) -> Result<bool, ExtensionError> {
        Ok(matches!(self.act(SessionAction::Model(provider, model)).await?, ActionOutcome::Found(true)))
    }

    /// Switches to another thinking level from the next request on, clamped to those the model supports.
    ///
    /// # Errors
    /// [`ExtensionError`].
    pub async fn set_thinking(&self, level: ThinkingLevel) -> Result<(), ExtensionError> {
        self.act(SessionAction::Thinking(level)).await.map(drop)
    }

    /// Cancels the current prompt.
    ///
    /// # Errors
    /// [`ExtensionError`].
    pub async fn abort(&self) -> Result<(), ExtensionError> {
        self.act(SessionAction::Abort).await.map(drop)
    }

    /// Requests the end of the program.
    ///
    /// # Errors
    /// [`ExtensionError`].
    pub async fn shutdown(&self) -> Result<(), ExtensionError> {
        self.act(SessionAction::Shutdown).await.map(drop)
    }

    /// Returns all entries of the session, oldest first.
    ///
    /// # Errors
    /// [`ExtensionError`].
    pub async fn entries(&self) -> Result<Vec<Arc<Entry>>, ExtensionError> {
        Ok(entries(self.act(SessionAction::Entries).await?))
    }

    /// Returns the entries of the active branch, oldest first.
    ///
    /// # Errors
    /// [`ExtensionError`].
    pub async fn branch(&self) -> Result<Vec<Arc<Entry>>, ExtensionError> {
        Ok(entries(self.act(SessionAction::Branch).await?))
    }

    /// Returns the messages of the active branch, with the model and the thinking level.
    ///
    /// # Errors
    /// [`ExtensionError`].
    pub async fn conversation(&self) -> Result<Context, ExtensionError> {
        match self.act(SessionAction::Context).await? {
            ActionOutcome::Context(context) => Ok(*context),
            _ => Ok(Context::default()),
        }
    }

    /// Returns the header of the session.
    ///
    /// # Errors
    /// [`ExtensionError`].
    pub async fn header(&self) -> Result<Header, ExtensionError> {
        match self.act(SessionAction::Header).await? {
            ActionOutcome::Header(header) => Ok(*header),
            _ => Err(ExtensionError::new("The session has no header")),
        }
    }

    /// Returns the context usage, or `None` if the size of the window is unknown.
    ///
    /// # Errors
    /// [`ExtensionError`].
    pub async fn context_usage(&self) -> Result<Option<ContextUsage>, ExtensionError> {
        match self.act(SessionAction::ContextUsage).await? {
            ActionOutcome::Usage(usage) => Ok(usage),
            _ => Ok(None),
        }
    }

    /// Requests a compaction once the session is idle, without waiting for it.
    ///
    /// # Errors
    /// [`ExtensionError`].
    pub async fn request_compaction(&self, focus: Option<String>) -> Result<(), ExtensionError> {
        self.act(SessionAction::Compact { focus, wait: false }).await.map(drop)
    }

    /// Runs a program until it exits.
    ///
    /// # Errors
    /// Fails if it cannot be started, or if the current prompt is cancelled, which stops the program.
    pub async fn exec(
        &self,
        program: &str,
        args: &[String],
        options: ExecOptions,
    ) -> Result<ExecOutput, ExtensionError> {
        let session = self.session()?;
        exec::run(program, args, options, &session.cwd, &self.core.host(), &self.cancel).await
    }

    /// Sends a message to other extensions. Listeners are called before this returns.
    pub fn emit(&self, topic: &str, data: &Value) {
        self.core.emit(topic, data);
    }

    /// Subscribes to messages of other extensions until extensions are reloaded. The listener must not block.
    pub fn on(&self, topic: &str, listener: BusListener) {
        self.core.listen(&self.name, topic, listener);
    }

    /// Returns the stopwatch of the handler that this context was made for.
    #[cfg(feature = "extension-process")]
    pub(super) fn watch(&self) -> Option<Arc<Stopwatch>> {
        self.watch.clone()
    }

    pub(super) fn of_generation(&self, generation: u64) -> Self {
        Self { generation, ..self.clone() }
    }

    /// Returns the context of the current session.
    pub(super) fn newest(&self) -> Self {
        self.core.current().map_or_else(|| self.clone(), |(generation, _)| self.of_generation(generation))
    }
}

fn entries(acted: ActionOutcome) -> Vec<Arc<Entry>> {
    match acted {
        ActionOutcome::Entries(entries) => entries,
        _ => Vec::new(),
    }
}

impl fmt::Debug for ExtensionCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtensionCx")
            .field("name", &self.name)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

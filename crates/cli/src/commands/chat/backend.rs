//! The chat backend: agents of an engine in this process.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use futures::future::BoxFuture;
use pinch_embed::config::Config;
use pinch_embed::config::messages::InboxMode;
use pinch_embed::config::thinking::parse_level;
use pinch_embed::engine::{CompactionOutcome, Engine, RunTarget, Turn};
use pinch_embed::key::{self, AgentId};
use pinch_embed::llm::message::Message;
use pinch_embed::llm::model::{Model, thinking};
use pinch_embed::llm::thinking::ThinkingLevel;
use pinch_embed::ports::{SessionEntry, SessionKey};
use pinch_embed::prompt::report::PromptReport;
use pinch_embed::replies::tool_notes::Verbose;
use pinch_embed::run::request::ElevatedLevel;
use pinch_embed::run::{RunError, RunRequest};
use pinch_embed::stdx::cancel::{Cancel, CancelReason};
use pinch_embed::stdx::host::Host;
use pinch_embed::workspace;
use pinch_embed::{Caller, InboundMessage};
use pinch_tui::chat::{
    AgentAnswer, ChatAgent, ChatBackend, ChatError, ChatEvent, ChatModel, ChatSession, ChatSessionInfo, ChatUpdate,
    CommandDecision, ElevatedMode, GroupActivation, MessageOutcome, OutgoingMessage, PermissionLimit, QueueMode,
    ReasoningMode, SessionPatch, UsageMode, Verbosity,
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::auth_profiles;
use super::history;
use super::login::ChatLogin;
use super::progress::{self, RunProgress};
use super::prompt_sizes;
use super::questions::Questions;
use crate::embedded::{self, FailureContext};

/// The chat's channel in the list of senders who may run elevated commands; the name is OpenClaw's.
const CHANNEL: &str = "webchat";
/// Maximum number of waiting events; beyond that, runs wait.
const MAX_EVENTS: usize = 256;
/// Members of a session entry without their own field.
const QUEUE_MODE: &str = "queueMode";
const ELEVATED_LEVEL: &str = "elevatedLevel";
const PERMISSION_MODE: &str = "permissionMode";
const RESPONSE_USAGE: &str = "responseUsage";
const GROUP_ACTIVATION: &str = "groupActivation";
const MODEL_SOURCE: &str = "modelOverrideSource";

/// The backend.
pub(super) struct EmbeddedChat {
    engine: Engine,
    config: Arc<Config>,
    state_dir: PathBuf,
    host: Host,
    questions: Arc<Questions>,
    login: ChatLogin,
    events: mpsc::Sender<ChatEvent>,
    incoming: tokio::sync::Mutex<mpsc::Receiver<ChatEvent>>,
    /// The last prompt report of each session.
    prompts: Mutex<BTreeMap<String, PromptReport>>,
    /// Cancellation tokens and session keys of active runs, by run id.
    runs: Mutex<BTreeMap<String, (String, Cancel)>>,
}

impl EmbeddedChat {
    /// Creates the backend; `build` creates the engine, which asks the user through the given questions.
    pub(super) async fn new(
        state_dir: PathBuf,
        host: Host,
        build: impl AsyncFnOnce(Arc<Questions>) -> (Engine, Arc<Config>),
    ) -> Self {
        let (events, incoming) = mpsc::channel(MAX_EVENTS);
        let questions = Arc::new(Questions::new(host.clone(), events.clone()));
        let (engine, config) = build(Arc::clone(&questions)).await;
        let incoming = tokio::sync::Mutex::new(incoming);
        Self {
            engine,
            config,
            state_dir,
            host,
            questions,
            login: ChatLogin::default(),
            events,
            incoming,
            prompts: Mutex::default(),
            runs: Mutex::default(),
        }
    }

    /// Returns the login that gets the terminal.
    pub(super) fn login_of_chat(&self) -> ChatLogin {
        self.login.clone()
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    fn error(&self, error: &RunError) -> ChatError {
        let around = FailureContext { documents: self.state_dir.join("agent"), names_model: false };
        ChatError::new(embedded::failure(error, &around).text)
    }

    async fn emit(&self, message: &OutgoingMessage, run_id: &str, update: ChatUpdate) {
        let (session_key, run_id) = (message.session_key.clone(), run_id.to_owned());
        let event = ChatEvent::Run { session_key, run_id, update };
        // There is no receiver while the user is leaving the chat.
        drop(self.events.send(event).await);
    }

    /// Drives a run to its end.
    async fn follow(&self, message: &OutgoingMessage, mut request: RunRequest) {
        let (run_id, cancel) = (request.run_id.clone(), Cancel::new());
        request.think_level = message.thinking.or(request.think_level);
        if let Some(mode) = message.elevated {
            request.elevated_level = ElevatedLevel::parse(mode.as_str());
            request.caller.channel = Some(CHANNEL.to_owned());
        }
        let usage_line = request.usage_line;
        let mut request = request.cancel(cancel.clone());
        // The chat itself shows tool calls, and the reply as it grows.
        request.verbose_level = Verbose::Off;
        request.block_replies = None;
        request.suppress_tool_error_warnings |= message.shows_tools;
        if message.timeout.is_some() {
            request.timeout = message.timeout;
        }
        let _listed = OpenRun::new(self, &run_id, &message.session_key, cancel);
        self.emit(message, &run_id, ChatUpdate::MessageRead(message.id.clone())).await;
        let mut run = self.engine.run(request);
        let mut progress = RunProgress::default();
        while let Some(event) = run.next().await {
            if let Some(update) = progress.update(event, self.host.now_ms()) {
                self.emit(message, &run_id, update).await;
            }
        }
        let end = match run.result() {
            Ok(result) => {
                if let Some(prompt) = &result.meta.system_prompt {
                    let mut prompts = self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
                    prompts.insert(message.session_key.clone(), prompt.report.clone());
                }
                progress::end(result, usage_line)
            }
            Err(RunError::Cancelled(_)) => ChatUpdate::Final { replies: Vec::new(), aborted: true, usage: None },
            Err(error) => ChatUpdate::Failed(self.error(&error).message),
        };
        self.emit(message, &run_id, end).await;
    }

    /// Returns the full form of a key, and its agent.
    fn place(&self, session_key: &str) -> Result<(String, AgentId), ChatError> {
        let (default, _) = workspace::agent_of(&self.config.agents, None, Some(session_key));
        let key = key::canonical(session_key, &default, &self.config.session.main_key)
            .ok_or_else(|| ChatError::new(format!("malformed session key {session_key:?}")))?;
        let agent = key::parse(&key).map_or(default, |parsed| AgentId::normalise(parsed.agent_id));
        Ok((key, agent))
    }

    async fn entry(&self, session_key: &str) -> Result<Option<SessionEntry>, ChatError> {
        let (key, agent) = self.place(session_key)?;
        let mut sessions = self.engine.sessions(agent.as_str()).await.map_err(|error| self.error(&error))?;
        Ok(sessions.remove(key.as_str()))
    }

    /// Returns the model that answers in a session with this entry, and the configured thinking level.
    fn model(
        &self,
        session_key: &str,
        entry: Option<&SessionEntry>,
    ) -> (Result<Arc<Model>, RunError>, Option<ThinkingLevel>) {
        let mut request = self.engine.request("", Some(session_key), None, "");
        if let Some(entry) = entry
            && let Some(model) = &entry.model_override
        {
            request.model = Some(model.clone());
            request.provider.clone_from(&entry.provider_override);
        }
        let models = self.engine.candidates(&request);
        (models.and_then(|models| models.into_iter().next().ok_or(RunError::NoModel)), request.think_level)
    }

    async fn facts(&self, session_key: &str) -> Result<ChatSessionInfo, ChatError> {
        let (key, _) = self.place(session_key)?;
        let entry = self.entry(session_key).await?;
        let (model, configured) = self.model(&key, entry.as_ref());
        let mut facts = ChatSessionInfo { thinking: configured, ..ChatSessionInfo::default() };
        if let Ok(model) = model {
            facts.model = Some(format!("{}/{}", model.provider, model.id));
            facts.thinking_levels = thinking::supported(&model);
            facts.window = Some(model.context_window).filter(|window| *window > 0);
        }
        let Some(entry) = entry else { return Ok(facts) };
        let extra = |name: &str| entry.extra.get(name).and_then(Value::as_str);
        facts.label.clone_from(&entry.label);
        facts.thinking = entry.thinking_level.as_deref().and_then(parse_level).or(facts.thinking);
        facts.verbose = entry.verbose_level.as_deref().and_then(Verbosity::parse).unwrap_or_default();
        facts.reasoning = entry.reasoning_level.as_deref().and_then(ReasoningMode::parse).unwrap_or_default();
        facts.usage = extra(RESPONSE_USAGE).and_then(UsageMode::parse).unwrap_or_default();
        facts.queue = extra(QUEUE_MODE).and_then(InboxMode::parse).map(queue_mode);
        facts.elevated = extra(ELEVATED_LEVEL).and_then(ElevatedMode::parse);
        facts.permissions = extra(PERMISSION_MODE).and_then(PermissionLimit::parse);
        facts.activation = extra(GROUP_ACTIVATION).and_then(GroupActivation::parse);
        facts.tokens = entry.total_tokens;
        facts.window = entry.context_tokens.or(facts.window);
        Ok(facts)
    }

    async fn patch(&self, session_key: &str, patch: SessionPatch) -> Result<(), ChatError> {
        let (key, _) = self.place(session_key)?;
        if let SessionPatch::Elevated(mode) = &patch
            && *mode != ElevatedMode::Off
        {
            self.check_elevated(&key)?;
        }
        let model = match &patch {
            SessionPatch::Model(Some(name)) => {
                let mut request = self.engine.request("", Some(&key), None, "");
                request.model = Some(name.clone());
                let models = self.engine.candidates(&request).map_err(|error| ChatError::new(error.to_string()))?;
                models.into_iter().next()
            }
            _ => None,
        };
        let (session_id, now) = (self.host.ids().uuid_v4(), self.host.now_ms());
        let change = move |entry: Option<SessionEntry>| {
            let mut entry = entry.unwrap_or_else(|| SessionEntry::new(&session_id, now));
            apply(&mut entry, &patch, model.as_deref());
            Some(entry)
        };
        self.engine.update_session(&key, change).await.map(drop).map_err(|error| self.error(&error))
    }

    /// Checks whether the configuration lets a session's commands leave the sandbox.
    fn check_elevated(&self, key: &str) -> Result<(), ChatError> {
        let mut request = self.engine.request("", Some(key), None, "");
        request.caller = Caller::new().owner().channel(CHANNEL);
        let rules = self.engine.elevated_rules(request);
        if !rules.is_enabled {
            return Err(ChatError::new("Elevated commands are off: tools.elevated.enabled is false"));
        }
        let why =
            "Elevated commands are not allowed in this session: tools.elevated.allowFrom.webchat must contain \"*\"";
        rules.is_allowed.then_some(()).ok_or_else(|| ChatError::new(why))
    }

    async fn describe(&self, session_key: &str) -> Result<String, ChatError> {
        let (key, agent) = self.place(session_key)?;
        let entry = self.entry(session_key).await?;
        let (model, _) = self.model(&key, entry.as_ref());
        let model = match model {
            Ok(model) => format!("`{}/{}`", model.provider, model.id),
            Err(error) => error.to_string(),
        };
        let mut text = String::from("**Status**\n\n");
        let config = self.config.file.as_ref().map_or("none".to_owned(), |file| format!("`{}`", file.display()));
        let active = self.engine.active();
        let here = active.iter().filter(|run| run.session_key.as_deref() == Some(&*key)).count();
        let mut item = |name: &str, value: &str| {
            let _infallible = writeln!(text, "- {name}: {value}");
        };
        item("Engine", &format!("local, pinch v{}", env!("CARGO_PKG_VERSION")));
        item("State directory", &format!("`{}`", self.state_dir.display()));
        item("Configuration", &config);
        item("Active runs", &format!("{} ({here} in this session)", active.len()));
        item("Agent", agent.as_str());
        item("Session", &format!("`{key}`"));
        item("Model", &model);
        if let Some(entry) = entry {
            item("Session ID", &format!("`{}`", entry.session_id));
            if let Some(tokens) = entry.total_tokens {
                let window = entry.context_tokens.map(|window| format!(" of {window}")).unwrap_or_default();
                item("Tokens", &format!("{tokens}{window}"));
            }
            item("Compactions", &entry.compaction_count.unwrap_or(0).to_string());
            if let Some(profile) = &entry.auth_profile_override {
                item("Auth profile", &format!("`{profile}`"));
            }
        }
        Ok(text)
    }
}

/// A run that is listed while this is alive.
struct OpenRun<'a> {
    chat: &'a EmbeddedChat,
    run_id: String,
}

impl<'a> OpenRun<'a> {
    fn new(chat: &'a EmbeddedChat, run_id: &str, session: &str, cancel: Cancel) -> Self {
        let mut runs = chat.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.insert(run_id.to_owned(), (session.to_owned(), cancel));
        Self { chat, run_id: run_id.to_owned() }
    }
}

impl Drop for OpenRun<'_> {
    fn drop(&mut self) {
        self.chat.runs.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.run_id);
    }
}

fn queue_mode(mode: InboxMode) -> QueueMode {
    match mode {
        InboxMode::Steer => QueueMode::Steer,
        InboxMode::FollowUp => QueueMode::FollowUp,
        InboxMode::Collect => QueueMode::Collect,
        InboxMode::Interrupt => QueueMode::Interrupt,
    }
}

fn inbox_mode(mode: QueueMode) -> InboxMode {
    match mode {
        QueueMode::Steer => InboxMode::Steer,
        QueueMode::FollowUp => InboxMode::FollowUp,
        QueueMode::Collect => InboxMode::Collect,
        QueueMode::Interrupt => InboxMode::Interrupt,
    }
}

/// Applies a change to a session entry. `model` is the one named by the change.
fn apply(entry: &mut SessionEntry, patch: &SessionPatch, model: Option<&Model>) {
    let mut member = |name: &str, value: Option<&str>| match value {
        Some(value) => drop(entry.extra.insert(name.to_owned(), value.into())),
        None => drop(entry.extra.shift_remove(name)),
    };
    match patch {
        SessionPatch::Model(_) => {
            member(MODEL_SOURCE, model.map(|_| "user"));
            entry.provider_override = model.map(|model| model.provider.to_string());
            entry.model_override = model.map(|model| model.id.to_string());
        }
        SessionPatch::Thinking(level) => entry.thinking_level = level.map(|level| level.as_str().to_owned()),
        SessionPatch::Verbose(level) => entry.verbose_level = Some(level.as_str().to_owned()),
        SessionPatch::Reasoning(mode) => entry.reasoning_level = Some(mode.as_str().to_owned()),
        SessionPatch::Usage(mode) => member(RESPONSE_USAGE, Some(mode.as_str()).filter(|_| *mode != UsageMode::Off)),
        SessionPatch::Elevated(mode) => member(ELEVATED_LEVEL, Some(mode.as_str())),
        SessionPatch::Permissions(limit) => member(PERMISSION_MODE, limit.map(PermissionLimit::as_str)),
        SessionPatch::Activation(activation) => member(GROUP_ACTIVATION, Some(activation.as_str())),
        SessionPatch::Queue(mode) => member(QUEUE_MODE, mode.map(QueueMode::as_str)),
    }
}

impl ChatBackend for EmbeddedChat {
    fn target(&self) -> String {
        "local".to_owned()
    }

    fn send(&self, message: OutgoingMessage) -> BoxFuture<'_, Result<MessageOutcome, ChatError>> {
        Box::pin(async move {
            // Whoever uses this machine's terminal owns the agent.
            let mut inbound = InboundMessage::new(&message.session_key, &message.text)
                .caller(Caller::new().owner())
                .idempotency_key(&message.id);
            inbound.mode = message.queue.map(inbox_mode);
            match self.engine.send(inbound).await {
                Ok(Turn::Run(request)) => {
                    self.follow(&message, *request).await;
                    Ok(MessageOutcome::Ended)
                }
                Ok(Turn::Joined { run_id }) => {
                    self.emit(&message, &run_id, ChatUpdate::MessageRead(message.id.clone())).await;
                    Ok(MessageOutcome::Joined)
                }
                Ok(Turn::Dropped) => Ok(MessageOutcome::Dropped),
                Ok(other) => Err(ChatError::new(format!("the message gets no run: {other:?}"))),
                Err(error) => Err(self.error(&error)),
            }
        })
    }

    fn abort<'a>(&'a self, session_key: &'a str) -> BoxFuture<'a, Result<bool, ChatError>> {
        Box::pin(async move {
            let (key, _) = self.place(session_key)?;
            let n_stopped = self.engine.abort(RunTarget::Session(&key), CancelReason::User);
            // Runs that wait for their session or a slot.
            let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
            let mine: Vec<&Cancel> =
                runs.values().filter(|(session, _)| session == session_key).map(|(_, cancel)| cancel).collect();
            mine.iter().for_each(|cancel| cancel.cancel(CancelReason::User));
            Ok(n_stopped > 0 || !mine.is_empty())
        })
    }

    fn history<'a>(
        &'a self,
        session_key: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<Message>>, ChatError>> {
        Box::pin(async move {
            let messages = self.engine.history(session_key).await.map_err(|error| self.error(&error))?;
            Ok(history::shown(&messages, limit))
        })
    }

    fn decide<'a>(&'a self, question: &'a str, decision: CommandDecision) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(async move { self.questions.decide(question, decision) })
    }

    fn answer<'a>(
        &'a self,
        questions: &'a str,
        answers: Option<Vec<AgentAnswer>>,
    ) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(async move { self.questions.answer(questions, answers) })
    }

    fn session<'a>(&'a self, session_key: &'a str) -> BoxFuture<'a, Result<ChatSessionInfo, ChatError>> {
        Box::pin(self.facts(session_key))
    }

    fn list_sessions<'a>(&'a self, agent: &'a str) -> BoxFuture<'a, Result<Vec<ChatSession>, ChatError>> {
        Box::pin(async move {
            let sessions = self.engine.sessions(agent).await.map_err(|error| self.error(&error))?;
            let session = |(key, entry): (SessionKey, SessionEntry)| ChatSession {
                key: key.into(),
                label: entry.label,
                updated_ms: entry.updated_at,
                tokens: entry.total_tokens,
            };
            let mut sessions: Vec<ChatSession> = sessions.into_iter().map(session).collect();
            sessions.sort_by_key(|session| std::cmp::Reverse(session.updated_ms));
            Ok(sessions)
        })
    }

    fn patch_session<'a>(&'a self, session_key: &'a str, patch: SessionPatch) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(self.patch(session_key, patch))
    }

    fn reset_session<'a>(&'a self, session_key: &'a str) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(async move { self.engine.reset_session(session_key).await.map_err(|error| self.error(&error)) })
    }

    fn compact<'a>(
        &'a self,
        session_key: &'a str,
        instructions: Option<&'a str>,
    ) -> BoxFuture<'a, Result<String, ChatError>> {
        Box::pin(async move {
            let mut request = self.engine.message(session_key, "").await.map_err(|error| self.error(&error))?;
            request.caller.is_owner = true;
            match self.engine.compact(request, instructions).await {
                CompactionOutcome::Compacted(session) => {
                    let after = session.tokens_after.map(|n| format!(" to {n}")).unwrap_or_default();
                    Ok(format!("Compacted from {}{after} tokens", session.tokens_before))
                }
                CompactionOutcome::NotCompacted { reason } => Err(ChatError::new(format!("Not compacted: {reason}"))),
            }
        })
    }

    fn list_agents(&self) -> BoxFuture<'_, Result<Vec<ChatAgent>, ChatError>> {
        Box::pin(async move {
            let agents = &self.config.agents;
            let default = agents.default_id();
            let others = agents.list.iter().map(|agent| agent.id.clone()).filter(|id| *id != default);
            let agent = |id: AgentId| ChatAgent {
                main_session: format!("agent:{id}:{}", self.config.session.main_key),
                id: id.to_string(),
            };
            Ok(std::iter::once(default.clone()).chain(others).map(agent).collect())
        })
    }

    fn list_models<'a>(&'a self, agent: &'a str) -> BoxFuture<'a, Result<Vec<ChatModel>, ChatError>> {
        Box::pin(async move {
            let model = |model: Arc<Model>| ChatModel {
                provider: model.provider.to_string(),
                id: model.id.to_string(),
                name: model.name.clone(),
                window: model.context_window,
            };
            Ok(self.engine.models(agent).into_iter().map(model).collect())
        })
    }

    fn credentials<'a>(
        &'a self,
        agent: &'a str,
        provider: Option<&'a str>,
    ) -> BoxFuture<'a, Result<String, ChatError>> {
        Box::pin(async move {
            let profiles = self.engine.auth_profiles(agent, provider);
            Ok(auth_profiles::describe(&profiles, self.host.now_ms()))
        })
    }

    fn context<'a>(&'a self, session_key: &'a str) -> BoxFuture<'a, Result<String, ChatError>> {
        Box::pin(async move {
            let facts = self.facts(session_key).await?;
            let prompts = self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(prompt_sizes::describe(prompts.get(session_key), facts.tokens, facts.window))
        })
    }

    fn status<'a>(&'a self, session_key: &'a str) -> BoxFuture<'a, Result<String, ChatError>> {
        Box::pin(self.describe(session_key))
    }

    fn login<'a>(&'a self, agent: &'a str, provider: Option<&'a str>) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(async move { self.login.run(&self.engine.login_dir(agent), provider).await })
    }

    fn next_event(&self) -> BoxFuture<'_, Option<ChatEvent>> {
        Box::pin(async move { self.incoming.lock().await.recv().await })
    }
}

//! Handling of session events and of the outcomes of effects.

use std::sync::Arc;

use pinch_llm::message::Message;

use super::{ActiveChatRun, ChatApp, MAX_ENDED, RunActivity};
use crate::chat::backend::{
    ChatError, ChatEvent, ChatReply, ChatUpdate, MessageOutcome, ReasoningMode, SessionPatch, Verbosity,
};
use crate::chat::effect::{ChatEffect, ChatNews};
use crate::terminal::{NotificationKind, ProgramStatus};
use crate::text::one_line;

/// Notification about a question.
const QUESTION_WAITS: &str = "A question waits for you";

impl ChatApp {
    /// Returns the status to report to the terminal.
    pub(super) fn program_status(&self) -> ProgramStatus {
        if self.dialogs.iter().any(|open| open.question.is_some()) {
            return ProgramStatus::Blocked;
        }
        if self.is_working() { ProgramStatus::Working } else { self.outcome }
    }

    /// Returns whether a run of the session or a compaction is active.
    pub(super) fn is_working(&self) -> bool {
        self.run().is_some() || self.compacting.is_some()
    }

    /// Returns the control sequence that notifies the user of events since the last call, as configured.
    pub(crate) fn take_notification(&mut self, usual: NotificationKind) -> Option<Vec<u8>> {
        let name = one_line(self.short_session());
        self.attention.take(&self.setup.notify, usual, &name)
    }

    /// Handles an event.
    pub(crate) fn event(&mut self, event: ChatEvent, now_ms: i64) -> Vec<ChatEffect> {
        let (session_key, run_id, update) = match event {
            ChatEvent::Run { session_key, run_id, update } => (session_key, run_id, update),
            ChatEvent::Question(question) => {
                self.ask(question);
                self.attention.notify(QUESTION_WAITS, now_ms);
                return Vec::new();
            }
            ChatEvent::Asked(questions) => {
                self.ask_for_agent(questions);
                self.attention.notify(QUESTION_WAITS, now_ms);
                return Vec::new();
            }
            ChatEvent::QuestionWithdrawn(id) => {
                self.withdraw_question(&id, now_ms);
                return Vec::new();
            }
        };
        let is_own = match &update {
            ChatUpdate::MessageRead(id) => self.message_read(id),
            _ => false,
        };
        if self.ended_runs.contains(&run_id) {
            return Vec::new();
        }
        let is_here = session_key == self.session;
        let run = self.runs.entry(session_key.clone()).or_insert_with(|| ActiveChatRun::new(now_ms));
        if run.id.as_ref().is_some_and(|id| *id != run_id) {
            *run = ActiveChatRun::new(now_ms);
            if is_here {
                self.transcript.answer_ended();
            }
        }
        run.id.get_or_insert_with(|| run_id.clone());
        run.is_own |= is_own;
        run.follow(&update);
        if is_here && !self.is_loading {
            self.transcript.record_activity(now_ms);
            self.show(&update, now_ms);
        }
        match update {
            ChatUpdate::Final { .. } | ChatUpdate::Failed(_) => self.run_ended(&session_key, update, now_ms),
            _ => Vec::new(),
        }
    }

    /// Shows an update of the session's run.
    fn show(&mut self, update: &ChatUpdate, now_ms: i64) {
        match update {
            ChatUpdate::AnswerStarted => self.transcript.answer_ended(),
            ChatUpdate::Text { at, text } => self.transcript.answer_text(*at, text),
            ChatUpdate::Thinking(text) => self.transcript.answer_thinking(text, now_ms),
            ChatUpdate::ThinkingEnded => self.transcript.thinking_ended(now_ms),
            ChatUpdate::ToolStarted { id, name, arguments } => {
                self.transcript.answer_ended();
                if self.verbosity() != Verbosity::Off {
                    self.transcript.tool_started(id, name, arguments, now_ms);
                }
            }
            ChatUpdate::ToolProgress { id, output } => self.transcript.tool_progress(id, output),
            ChatUpdate::ToolEnded { id, output, duration_ms } => {
                self.transcript.tool_ended(id, output, *duration_ms);
            }
            ChatUpdate::Notice(text) => {
                self.transcript.answer_ended();
                self.transcript.dim(text);
            }
            ChatUpdate::MessageRead(_)
            | ChatUpdate::Started
            | ChatUpdate::Busy { .. }
            | ChatUpdate::Final { .. }
            | ChatUpdate::Failed(_) => {}
        }
    }

    /// Handles that a run has read a message. Returns whether this chat sent it.
    fn message_read(&mut self, id: &str) -> bool {
        if let Some(at) = self.queued.iter().position(|message| message.id == id) {
            let message = self.queued.remove(at);
            if message.session_key == self.session {
                self.transcript.user(&message.text);
            }
            return true;
        }
        id.starts_with(&self.id_prefix)
    }

    /// Shows replies that were not shown as they arrived.
    fn show_replies(&mut self, answers: &[String], replies: Vec<ChatReply>, shows_tools: bool, aborted: bool) {
        let mut shows_something = shows_tools || answers.iter().any(|answer| !answer.trim().is_empty());
        for reply in replies {
            let text = reply.text.trim();
            let is_shown = answers.iter().any(|answer| answer.contains(text));
            if !text.is_empty() && reply.is_error {
                self.error(text);
            } else if !text.is_empty() && !is_shown {
                self.transcript.answer_text(0, text);
                self.transcript.answer_ended();
            }
            for media in &reply.media {
                self.transcript.dim(&format!("Media: {media}"));
            }
            shows_something |= !text.is_empty() || !reply.media.is_empty();
        }
        if aborted {
            self.transcript.dim("The run was stopped");
        } else if !shows_something {
            self.transcript.dim("(no output)");
        }
    }

    /// Handles the end of a run; `end` contains the outcome.
    fn run_ended(&mut self, session: &str, end: ChatUpdate, now_ms: i64) -> Vec<ChatEffect> {
        let Some(run) = self.runs.remove(session) else { return Vec::new() };
        self.ended_runs.extend(run.id);
        if self.ended_runs.len() > MAX_ENDED {
            self.ended_runs.pop_front();
        }
        if session != self.session {
            return Vec::new();
        }
        self.attention.notify("The answer is complete", now_ms);
        self.outcome = match &end {
            ChatUpdate::Failed(_) => ProgramStatus::Failed,
            _ => ProgramStatus::Done,
        };
        self.transcript.answer_ended();
        self.transcript.run_ended();
        match end {
            ChatUpdate::Final { replies, aborted, usage } => {
                let shows_tools = run.has_tools && self.verbosity() != Verbosity::Off;
                self.show_replies(&run.answers, replies, shows_tools, aborted);
                if let Some(usage) = usage {
                    self.transcript.dim(&usage);
                }
            }
            ChatUpdate::Failed(text) => self.error(&text),
            _ => {}
        }
        let session = self.session.clone();
        let mut effects = vec![ChatEffect::Facts { session: session.clone() }];
        if !run.is_own {
            // Messages of others were not shown.
            self.transcript.separate();
            effects.push(ChatEffect::History { session });
        }
        effects
    }

    /// Handles the outcome of an effect.
    pub(crate) fn news(&mut self, news: ChatNews, now_ms: i64) -> Vec<ChatEffect> {
        match news {
            ChatNews::Sent { id, session, outcome } => self.sent(&id, &session, outcome),
            ChatNews::Aborted { session, outcome } if session == self.session => self.aborted(outcome),
            ChatNews::History { session, messages } if session == self.session => {
                self.take_history(messages);
                let message = self.first_message.take();
                return message.map(|text| self.send(text, now_ms)).unwrap_or_default();
            }
            ChatNews::Facts { session, facts } if session == self.session => match facts {
                Ok(facts) => {
                    self.facts = facts;
                    self.take_options();
                }
                Err(error) => self.error(&error.message),
            },
            ChatNews::Patched { session, patch, outcome } if session == self.session => {
                match outcome {
                    Ok(()) => self.patched(&patch),
                    Err(error) => self.error(&error.message),
                }
                return vec![ChatEffect::Facts { session }];
            }
            ChatNews::Reset { session, outcome } if session == self.session => {
                match outcome {
                    Ok(()) => {
                        self.transcript.separate();
                        self.status("The session was reset");
                    }
                    Err(error) => self.error(&error.message),
                }
                return vec![ChatEffect::Facts { session }];
            }
            ChatNews::Compacted { session, outcome } => {
                self.compacting = None;
                match outcome {
                    Ok(text) => self.status(&text),
                    Err(error) => self.error(&error.message),
                }
                return vec![ChatEffect::Facts { session }];
            }
            ChatNews::Decided(Ok(())) => {}
            ChatNews::LoggedIn(Ok(())) => self.status("Logged in; the next run uses the new credentials"),
            ChatNews::Agents(Ok(agents)) => self.choose_agent(agents),
            ChatNews::Sessions { agent, sessions: Ok(sessions) } => self.choose_session(&agent, &sessions, now_ms),
            ChatNews::Models { agent, models: Ok(models) } if agent == self.agent => self.choose_model(&models),
            ChatNews::Status(Ok(text)) => self.transcript.markdown(&text),
            ChatNews::Agents(Err(error))
            | ChatNews::Sessions { sessions: Err(error), .. }
            | ChatNews::Models { models: Err(error), .. }
            | ChatNews::LoggedIn(Err(error))
            | ChatNews::Decided(Err(error))
            | ChatNews::Status(Err(error)) => self.error(&error.message),
            // The user has switched to another session.
            ChatNews::Aborted { .. }
            | ChatNews::History { .. }
            | ChatNews::Facts { .. }
            | ChatNews::Patched { .. }
            | ChatNews::Reset { .. }
            | ChatNews::Models { .. } => {}
        }
        Vec::new()
    }

    fn sent(&mut self, id: &str, session: &str, outcome: Result<MessageOutcome, ChatError>) {
        let waited = self.queued.iter().position(|message| message.id == id).map(|at| self.queued.remove(at));
        // There may be no run left that could report its end.
        if self.runs.get(session).is_some_and(|run| run.id.is_none() && run.message.as_deref() == Some(id)) {
            self.runs.remove(session);
        }
        match outcome {
            Ok(MessageOutcome::Ended | MessageOutcome::Joined) => {}
            Ok(MessageOutcome::Dropped) => {
                let text = waited.map(|message| format!(": {}", message.text)).unwrap_or_default();
                self.warning(&format!("A message was dropped before a run could read it{text}"));
            }
            Err(error) if session == self.session => self.error(&error.message),
            Err(error) => self.error(&format!("{session}: {error}")),
        }
    }

    fn aborted(&mut self, outcome: Result<bool, ChatError>) {
        match outcome {
            Ok(true) => {}
            Ok(false) => {
                if let Some(run) = self.runs.get_mut(&self.session) {
                    run.is_aborting = false;
                }
                self.status("There is no active run");
            }
            Err(error) => self.error(&error.message),
        }
    }

    fn take_history(&mut self, messages: Result<Vec<Arc<Message>>, ChatError>) {
        match messages {
            Ok(messages) => {
                let with_tools = self.verbosity() != Verbosity::Off;
                for text in self.transcript.load_conversation(&messages, with_tools) {
                    self.editor.add_history(&text);
                }
            }
            Err(error) => self.error(&error.message),
        }
        self.is_loading = false;
        // Text that is not in the history yet.
        let open = self.run().filter(|run| run.is_answering).and_then(|run| run.answers.last()).cloned();
        if let Some(text) = open {
            self.transcript.answer_text(0, &text);
        }
    }

    /// Shows tools and thinking according to the session's settings.
    pub(super) fn take_options(&mut self) {
        let reasoning = self.facts.reasoning;
        let mut options = self.transcript.options.clone();
        options.hide_output = self.verbosity() != Verbosity::Full;
        options.hide_thinking = !self.shows_thinking.unwrap_or(reasoning != ReasoningMode::Off);
        options.hide_open_thinking = self.shows_thinking.is_none() && reasoning == ReasoningMode::On;
        if options != self.transcript.options {
            self.transcript.options = options;
            self.transcript.invalidate();
        }
    }

    /// Handles a changed setting of the session.
    fn patched(&mut self, patch: &SessionPatch) {
        let text = match patch {
            SessionPatch::Model(Some(name)) => format!("Model: {name}"),
            SessionPatch::Model(None) => "Model: as configured".to_owned(),
            SessionPatch::Thinking(level) => {
                self.thinking = None;
                format!("Thinking: {}", level.map_or("as configured", |level| level.as_str()))
            }
            SessionPatch::Verbose(level) => {
                self.verbose = None;
                self.facts.verbose = *level;
                format!("Verbose: {level}")
            }
            SessionPatch::Reasoning(mode) => {
                self.shows_thinking = None;
                self.facts.reasoning = *mode;
                format!("Reasoning: {mode}")
            }
            SessionPatch::Usage(mode) => {
                self.facts.usage = *mode;
                format!("Usage: {mode}")
            }
            SessionPatch::Queue(mode) => {
                self.facts.queue = *mode;
                format!("Queue: {}", mode.map_or("as configured", |mode| mode.as_str()))
            }
            SessionPatch::Elevated(mode) => {
                self.facts.elevated = Some(*mode);
                format!("Elevated: {mode}")
            }
            SessionPatch::Permissions(limit) => {
                self.facts.permissions = *limit;
                format!("Permissions: {}", limit.map_or("as configured", |limit| limit.as_str()))
            }
            SessionPatch::Activation(activation) => {
                self.facts.activation = Some(*activation);
                format!("Activation: {activation}")
            }
        };
        self.take_options();
        self.status(&text);
    }

    /// Handles the loss of the backend.
    pub(crate) fn disconnected(&mut self) {
        self.is_disconnected = true;
        self.runs.clear();
        self.dialogs.retain(|open| open.question.is_none());
        self.queued.clear();
        self.transcript.answer_ended();
        self.transcript.run_ended();
        self.error("The engine has stopped");
    }
}

impl ActiveChatRun {
    /// Creates a run about which nothing is known.
    pub(super) fn new(now_ms: i64) -> Self {
        Self {
            id: None,
            message: None,
            since_ms: now_ms,
            activity: RunActivity::Sending,
            is_aborting: false,
            is_own: false,
            answers: Vec::new(),
            is_answering: false,
            has_tools: false,
        }
    }

    /// Tracks the activity of the run.
    fn follow(&mut self, update: &ChatUpdate) {
        match update {
            ChatUpdate::MessageRead(_) if self.activity != RunActivity::Sending => {}
            ChatUpdate::MessageRead(_) | ChatUpdate::Started | ChatUpdate::ToolEnded { .. } => {
                self.activity = RunActivity::Waiting;
            }
            ChatUpdate::AnswerStarted => {
                self.activity = RunActivity::Waiting;
                self.is_answering = false;
            }
            ChatUpdate::Text { at, text } => {
                self.activity = RunActivity::Streaming;
                if !std::mem::replace(&mut self.is_answering, true) {
                    self.answers.push(String::new());
                }
                if let Some(answer) = self.answers.last_mut() {
                    answer.truncate(answer.floor_char_boundary(*at));
                    answer.push_str(text);
                }
            }
            ChatUpdate::Thinking(_) => self.activity = RunActivity::Streaming,
            ChatUpdate::ToolStarted { name, .. } => {
                self.activity = RunActivity::Running { tool: name.clone() };
                self.is_answering = false;
                self.has_tools = true;
            }
            ChatUpdate::Busy { activity, until_ms } => {
                self.activity = RunActivity::Busy { activity: activity.clone(), until_ms: *until_ms };
            }
            ChatUpdate::Notice(_)
            | ChatUpdate::ThinkingEnded
            | ChatUpdate::ToolProgress { .. }
            | ChatUpdate::Final { .. }
            | ChatUpdate::Failed(_) => {}
        }
    }
}

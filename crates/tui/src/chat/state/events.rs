//! Events of sessions, and what came of effects.

use std::sync::Arc;

use pinch_llm::message::Message;

use super::{ActiveChatRun, ChatApp, MAX_ENDED, RunActivity};
use crate::chat::backend::{
    ChatError, ChatEvent, ChatReply, ChatUpdate, MessageOutcome, ReasoningMode, SessionPatch, Verbosity,
};
use crate::chat::effect::{ChatEffect, ChatNews};

impl ChatApp {
    /// Takes an event in.
    pub(crate) fn event(&mut self, event: ChatEvent, now_ms: i64) -> Vec<ChatEffect> {
        let ChatEvent { session_key, run_id, update } = event;
        let is_own = match &update {
            ChatUpdate::MessageRead(id) => self.message_read(id),
            _ => false,
        };
        if session_key != self.session || self.ended_runs.contains(&run_id) {
            return Vec::new();
        }
        self.transcript.heard(now_ms);
        self.follow(&run_id, now_ms);
        let Some(run) = &mut self.run else { return Vec::new() };
        run.is_own |= is_own;
        match update {
            ChatUpdate::MessageRead(_) => {}
            ChatUpdate::Started => run.activity = RunActivity::Waiting,
            ChatUpdate::AnswerStarted => {
                run.activity = RunActivity::Waiting;
                if run.answers.last().is_some_and(|answer| !answer.is_empty()) {
                    run.answers.push(String::new());
                }
                self.transcript.answer_ended();
            }
            ChatUpdate::Text { at, text } => {
                run.activity = RunActivity::Streaming;
                if run.answers.is_empty() {
                    run.answers.push(String::new());
                }
                if let Some(answer) = run.answers.last_mut() {
                    answer.truncate(answer.floor_char_boundary(at));
                    answer.push_str(&text);
                }
                self.transcript.answer_text(at, &text);
            }
            ChatUpdate::Thinking(text) => {
                run.activity = RunActivity::Streaming;
                self.transcript.answer_thinking(&text, now_ms);
            }
            ChatUpdate::ThinkingEnded => self.transcript.thinking_ended(now_ms),
            ChatUpdate::ToolStarted { id, name, arguments } => {
                run.activity = RunActivity::Running { tool: name.clone() };
                self.transcript.answer_ended();
                if self.verbosity() != Verbosity::Off {
                    self.transcript.tool_started(&id, &name, &arguments, now_ms);
                }
            }
            ChatUpdate::ToolProgress { id, output } => self.transcript.tool_progress(&id, &output),
            ChatUpdate::ToolEnded { id, output, duration_ms } => {
                run.activity = RunActivity::Waiting;
                self.transcript.tool_ended(&id, &output, duration_ms);
            }
            ChatUpdate::Busy { activity, until_ms } => run.activity = RunActivity::Busy { activity, until_ms },
            ChatUpdate::Notice(text) => {
                self.transcript.answer_ended();
                self.transcript.dim(&text);
            }
            ChatUpdate::Final { replies, aborted, usage } => {
                let answers = std::mem::take(&mut run.answers);
                self.transcript.answer_ended();
                self.show_replies(&answers, replies, aborted);
                if let Some(usage) = usage {
                    self.transcript.dim(&usage);
                }
                return self.run_ended(run_id);
            }
            ChatUpdate::Failed(text) => {
                self.transcript.answer_ended();
                self.error(&text);
                return self.run_ended(run_id);
            }
        }
        Vec::new()
    }

    /// The events that come now are those of this run.
    fn follow(&mut self, run_id: &str, now_ms: i64) {
        let known = self.run.as_ref().map(|run| run.id.as_deref());
        match known {
            Some(Some(id)) if id == run_id => return,
            Some(None) => {}
            Some(Some(_)) | None => {
                self.transcript.answer_ended();
                self.begin_sending(now_ms);
            }
        }
        if let Some(run) = &mut self.run {
            run.id = Some(run_id.to_owned());
            run.activity = RunActivity::Waiting;
        }
    }

    /// A run of the session is about to begin.
    pub(super) fn begin_sending(&mut self, now_ms: i64) {
        self.run = Some(ActiveChatRun {
            id: None,
            since_ms: now_ms,
            activity: RunActivity::Sending,
            is_aborting: false,
            is_own: false,
            answers: Vec::new(),
        });
    }

    /// A run reads a message. Returns whether this chat has sent it.
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

    /// Shows the replies that were not shown as they arrived.
    fn show_replies(&mut self, answers: &[String], replies: Vec<ChatReply>, aborted: bool) {
        let mut shows_something = answers.iter().any(|answer| !answer.trim().is_empty());
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
            self.warning("The run was stopped");
        } else if !shows_something {
            self.transcript.dim("(no output)");
        }
    }

    fn run_ended(&mut self, run_id: String) -> Vec<ChatEffect> {
        self.transcript.run_ended();
        self.ended_runs.push_back(run_id);
        if self.ended_runs.len() > MAX_ENDED {
            self.ended_runs.pop_front();
        }
        let is_own = self.run.take().is_some_and(|run| run.is_own);
        self.in_flight = None;
        let session = self.session.clone();
        let mut effects = vec![ChatEffect::Facts { session: session.clone() }];
        if !is_own {
            // What others said was not shown.
            self.transcript.separate();
            effects.push(ChatEffect::History { session });
        }
        effects
    }

    /// Takes in what came of an effect.
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
                        self.status("The session starts anew");
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
            ChatNews::Agents(Ok(agents)) => self.choose_agent(agents),
            ChatNews::Sessions { agent, sessions: Ok(sessions) } => self.choose_session(&agent, &sessions, now_ms),
            ChatNews::Models { agent, models: Ok(models) } if agent == self.agent => self.choose_model(&models),
            ChatNews::Status(Ok(text)) => self.transcript.markdown(&text),
            ChatNews::Agents(Err(error))
            | ChatNews::Sessions { sessions: Err(error), .. }
            | ChatNews::Models { models: Err(error), .. }
            | ChatNews::Status(Err(error)) => self.error(&error.message),
            // The user has gone on to another session.
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
        if self.in_flight.as_deref() == Some(id) {
            self.in_flight = None;
            // There is no run that could say that it has ended.
            self.run.take_if(|run| run.id.is_none());
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
                if let Some(run) = &mut self.run {
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
    }

    /// Shows tools and thoughts as the session says.
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

    /// A setting of the session was changed.
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
        };
        self.take_options();
        self.status(&text);
    }

    /// There will be no more events.
    pub(crate) fn disconnected(&mut self) {
        self.is_disconnected = true;
        self.run = None;
        self.transcript.answer_ended();
        self.transcript.run_ended();
        self.error("The engine is gone");
    }
}

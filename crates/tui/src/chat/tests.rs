//! Tests of the chat without a terminal: keys and events in, rows and effects out.

mod agent_questions;
mod commands;
mod conversation;
mod screens;

use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use pinch_llm::message::Message;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::host::{Env, Host};

use super::backend::*;
use super::effect::{ChatEffect, ChatNews, carry_out};
use super::state::{ChatApp, ChatSetup};
use crate::key::KeyPress;
use crate::terminal::{Report, Size, TerminalCapabilities, TerminalInput};

const MAIN: &str = "agent:main:main";

/// A backend with two agents that records calls.
#[derive(Default)]
struct FakeBackend {
    facts: Mutex<ChatSessionInfo>,
    history: Vec<Arc<Message>>,
    calls: Mutex<Vec<String>>,
}

impl FakeBackend {
    fn note(&self, call: String) {
        self.calls.lock().unwrap().push(call);
    }
}

fn now<T: Send + 'static>(value: T) -> BoxFuture<'static, Result<T, ChatError>> {
    async move { Ok(value) }.boxed()
}

impl ChatBackend for FakeBackend {
    fn target(&self) -> String {
        "local".to_owned()
    }

    fn send(&self, _: OutgoingMessage) -> BoxFuture<'_, Result<MessageOutcome, ChatError>> {
        futures::future::pending().boxed()
    }

    fn abort<'a>(&'a self, session_key: &'a str) -> BoxFuture<'a, Result<bool, ChatError>> {
        self.note(format!("abort {session_key}"));
        now(true)
    }

    fn history<'a>(&'a self, _: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Arc<Message>>, ChatError>> {
        now(self.history[self.history.len().saturating_sub(limit)..].to_vec())
    }

    fn decide<'a>(&'a self, question: &'a str, decision: CommandDecision) -> BoxFuture<'a, Result<(), ChatError>> {
        self.note(format!("{question}: {decision}"));
        now(())
    }

    fn answer<'a>(&'a self, id: &'a str, answers: Option<Vec<AgentAnswer>>) -> BoxFuture<'a, Result<(), ChatError>> {
        let answer = |answer: AgentAnswer| format!("{}={}", answer.question, answer.values.join("+"));
        let answers = answers.map(|answers| answers.into_iter().map(answer).collect::<Vec<_>>().join(" "));
        self.note(format!("{id}: {}", answers.as_deref().unwrap_or("no answer")));
        now(())
    }

    fn session<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<ChatSessionInfo, ChatError>> {
        now(self.facts.lock().unwrap().clone())
    }

    fn list_sessions<'a>(&'a self, agent: &'a str) -> BoxFuture<'a, Result<Vec<ChatSession>, ChatError>> {
        let session = |name: &str, updated_ms| ChatSession {
            key: format!("agent:{agent}:{name}"),
            updated_ms,
            tokens: Some(12_345),
            ..ChatSession::default()
        };
        let label = Some("About \u{1b}]52;c;eA==\u{7}taxes".to_owned());
        now(vec![session("main", 0), ChatSession { label, ..session("taxes", -7_200_000) }])
    }

    fn patch_session<'a>(&'a self, key: &'a str, patch: SessionPatch) -> BoxFuture<'a, Result<(), ChatError>> {
        self.note(format!("{key} {patch:?}"));
        let mut facts = self.facts.lock().unwrap();
        match patch {
            SessionPatch::Model(Some(name)) if name == "nope" => {
                return async { Err(ChatError::new("no such model")) }.boxed();
            }
            SessionPatch::Model(name) => facts.model = name,
            SessionPatch::Thinking(level) => facts.thinking = level,
            SessionPatch::Verbose(level) => facts.verbose = level,
            SessionPatch::Reasoning(mode) => facts.reasoning = mode,
            SessionPatch::Usage(mode) => facts.usage = mode,
            SessionPatch::Queue(mode) => facts.queue = mode,
            SessionPatch::Elevated(mode) => facts.elevated = Some(mode),
            SessionPatch::Permissions(limit) => facts.permissions = limit,
            SessionPatch::Activation(activation) => facts.activation = Some(activation),
        }
        now(())
    }

    fn reset_session<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), ChatError>> {
        self.note(format!("reset {key}"));
        now(())
    }

    fn compact<'a>(&'a self, key: &'a str, about: Option<&'a str>) -> BoxFuture<'a, Result<String, ChatError>> {
        self.note(format!("compact {key} {about:?}"));
        now("Compacted from 900 to 90 tokens".to_owned())
    }

    fn list_agents(&self) -> BoxFuture<'_, Result<Vec<ChatAgent>, ChatError>> {
        now(agents())
    }

    fn list_models<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<ChatModel>, ChatError>> {
        let model = |id: &str| ChatModel {
            provider: "local".to_owned(),
            id: id.to_owned(),
            name: format!("Model {id}"),
            window: 200_000,
        };
        now(vec![model("m1"), model("m2")])
    }

    fn credentials<'a>(
        &'a self,
        agent: &'a str,
        provider: Option<&'a str>,
    ) -> BoxFuture<'a, Result<String, ChatError>> {
        self.note(format!("credentials {agent} {provider:?}"));
        now("**Auth profiles**".to_owned())
    }

    fn context<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<String, ChatError>> {
        self.note(format!("context {key}"));
        now("**Context**".to_owned())
    }

    fn status<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<String, ChatError>> {
        now(format!("**Status**\n\n- Session: `{key}`\n"))
    }

    fn login<'a>(&'a self, _: &'a str, _: Option<&'a str>) -> BoxFuture<'a, Result<(), ChatError>> {
        now(())
    }

    fn next_event(&self) -> BoxFuture<'_, Option<ChatEvent>> {
        futures::future::pending().boxed()
    }
}

fn agents() -> Vec<ChatAgent> {
    let agent = |id: &str| ChatAgent { id: id.to_owned(), main_session: format!("agent:{id}:main") };
    vec![agent("main"), agent("ops")]
}

/// A chat on a screen whose contents are recorded.
struct TestChat {
    state: ChatApp,
    backend: FakeBackend,
    now_ms: i64,
    /// Rows moved into the scrollback.
    finished: Vec<String>,
    /// Messages, and effects that do not concern the backend.
    effects: Vec<ChatEffect>,
    /// Agents and sessions stored for the next chat.
    remembered: Vec<String>,
    _dir: tempfile::TempDir,
}

impl TestChat {
    fn new() -> Self {
        Self::with(FakeBackend::default(), |_| {}, "")
    }

    fn with(backend: FakeBackend, change: impl FnOnce(&mut ChatSetup), keys: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        if !keys.is_empty() {
            std::fs::write(dir.path().join("keybindings.json"), keys).unwrap();
        }
        let env: Env = [("PINCH_REDUCED_MOTION", "1"), ("COLORTERM", "truecolor")].into_iter().collect();
        let host = Host::builder().clock(0, 0).seed(7).env(env).home("/home/me").build();
        {
            let mut facts = backend.facts.lock().unwrap();
            facts.model.get_or_insert_with(|| "local/m1".to_owned());
            facts.window.get_or_insert(200_000);
            facts.thinking_levels = vec![ThinkingLevel::Off, ThinkingLevel::Low, ThinkingLevel::High];
        }
        let capabilities = TerminalCapabilities::of(host.env());
        let mut setup = ChatSetup {
            host,
            version: "1.2.3".to_owned(),
            agent_dir: dir.path().to_owned(),
            cwd: "/home/me".into(),
            target: backend.target(),
            agents: agents(),
            agent: "main".to_owned(),
            session: None,
            thinking: None,
            verbose: None,
            timeout: None,
            message: None,
            has_shell: true,
            notify: "auto".to_owned(),
            shows_progress: true,
        };
        change(&mut setup);
        let (mut state, effects) = ChatApp::new(setup, &capabilities);
        state.learn(&Report::Done, &capabilities);
        let mut chat = Self {
            state,
            backend,
            now_ms: 0,
            finished: Vec::new(),
            effects: Vec::new(),
            remembered: Vec::new(),
            _dir: dir,
        };
        chat.perform(effects);
        chat
    }

    fn perform(&mut self, effects: Vec<ChatEffect>) {
        for effect in effects {
            if let ChatEffect::RememberSession { agent, session } = effect {
                self.remembered.push(format!("{agent} {session}"));
                continue;
            }
            match carry_out(&self.backend, effect.clone(), 200).now_or_never() {
                Some(Some(news)) => {
                    let effects = self.state.news(news, self.now_ms);
                    self.perform(effects);
                }
                // It does not concern the backend, or it is a message, which events answer.
                Some(None) | None => self.effects.push(effect),
            }
        }
    }

    fn input(&mut self, input: &TerminalInput) {
        let effects = self.state.input(input, Size::new(80, 24), self.now_ms);
        self.perform(effects);
        if let Some(request) = self.state.take_completion() {
            let found = self.state.completion_sources().complete(&request.query, &request.cancel);
            self.state.offer(&request, found);
        }
    }

    fn press(&mut self, key: &str) {
        self.input(&TerminalInput::Key(KeyPress::of(key.parse().unwrap())));
    }

    /// Types and submits a text, bypassing suggestions.
    fn say(&mut self, text: &str) {
        self.input(&TerminalInput::Paste(text.to_owned()));
        self.press("enter");
    }

    fn event(&mut self, run: &str, update: ChatUpdate) {
        self.event_in(MAIN, run, update);
    }

    fn event_in(&mut self, session: &str, run: &str, update: ChatUpdate) {
        let event = ChatEvent::Run { session_key: session.to_owned(), run_id: run.to_owned(), update };
        let effects = self.state.event(event, self.now_ms);
        self.perform(effects);
    }

    fn text(&mut self, run: &str, at: usize, text: &str) {
        self.event(run, ChatUpdate::Text { at, text: text.to_owned() });
    }

    /// Makes the run read the message that was sent last.
    fn read(&mut self, run: &str) -> String {
        let id = self.sent().last().expect("a message was sent").id.clone();
        self.event(run, ChatUpdate::MessageRead(id.clone()));
        id
    }

    fn sent(&self) -> Vec<OutgoingMessage> {
        let message = |effect: &ChatEffect| match effect {
            ChatEffect::Send(message) => Some(message.clone()),
            _ => None,
        };
        self.effects.iter().filter_map(message).collect()
    }

    fn finish(&mut self, run: &str, reply: &str) {
        let reply = ChatReply { text: reply.to_owned(), ..ChatReply::default() };
        self.event(run, ChatUpdate::Final { replies: vec![reply], aborted: false, usage: None });
    }

    /// Returns everything shown so far, on a screen of this size.
    fn screen(&mut self, columns: u16, rows: u16) -> String {
        let size = Size::new(columns, rows);
        let frame = self.state.view(size, self.now_ms);
        assert!(frame.live.len() <= size.height(), "{} rows", frame.live.len());
        for row in frame.finished.iter().chain(&frame.live) {
            assert!(crate::text::row_width(row) <= size.width(), "{row}");
            assert!(!row.to_string().contains(char::is_control), "{row}");
        }
        self.finished.extend(frame.finished.iter().map(ToString::to_string));
        let live = frame.live.iter().map(ToString::to_string);
        let rows = self.finished.iter().cloned().chain(live);
        rows.map(|row| format!("{}\n", row.trim_end())).collect()
    }

    /// Like `screen`, with a common size.
    fn shown(&mut self) -> String {
        self.screen(80, 24)
    }

    #[track_caller]
    fn shows(&mut self, text: &str) {
        let shown = self.shown();
        assert!(shown.contains(text), "no {text:?} in:\n{shown}");
    }
}

//! An extension that records its calls, and behaves as configured.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pinch_agent_core::hooks::{BeforeTool, FinishedCall, PendingCall, ToolPatch};
use pinch_agent_core::tool::JsonObject;
use pinch_coding_agent::compaction::hooks::{
    BeforeCompaction, BeforeMove, MoveChanges, PendingCompaction, PendingMove,
};
use pinch_coding_agent::compaction::{ByExtension, Summarised};
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::extension::{
    AgentStartAction, BeforeAgentStart, BeforeFork, BeforeSwitch, Boundary, BoundaryAction, ContextAction, Extension,
    ExtensionCx, ExtensionError, HandlerFuture, HeaderChanges, Input, InputAction, MessageAction, Notification,
    PayloadAction, Points, ResourcePaths, ResourcesDiscover, SwitchDecision, TurnEnd, UserBash, UserBashAction,
};
use pinch_coding_agent::prompt::PromptSections as SystemPrompt;
use pinch_coding_agent::tools::bash::UserCommand;
use pinch_llm::message::{Block, Content, Message};
use pinch_llm::model::Model;
use serde_json::{Value, json};

use super::custom;

/// The calls recorded by all extensions of a test, in order.
pub(crate) type ProbeLog = Arc<Mutex<Vec<String>>>;

/// How an extension behaves at one point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Works,
    Fails,
    Panics,
    Sleeps,
    Asks,
}

/// Records its calls, and changes whatever can be changed so that its name shows.
pub(crate) struct Probe {
    pub(crate) name: &'static str,
    pub(crate) points: Points,
    pub(crate) notes: ProbeLog,
    pub(crate) mood: Mood,
}

impl Probe {
    fn note(&self, text: impl AsRef<str>) {
        self.notes.lock().unwrap().push(format!("{} {}", self.name, text.as_ref()));
    }

    /// Behaves according to its mood, then answers.
    fn answer<'a, T: Send + 'a>(&'a self, answer: T, cx: &'a ExtensionCx) -> HandlerFuture<'a, T> {
        Box::pin(async move {
            match self.mood {
                Mood::Works => {}
                Mood::Fails => return Err(ExtensionError::new("no")),
                Mood::Panics => panic!("boom"),
                Mood::Sleeps => tokio::time::sleep(Duration::from_secs(600)).await,
                Mood::Asks => {
                    let yes = cx.ui().confirm("Really?", "", None).await;
                    self.note(format!("answered {yes}"));
                }
            }
            Ok(answer)
        })
    }
}

fn tagged(text: &str, name: &str) -> String {
    format!("{text}+{name}")
}

impl Extension for Probe {
    fn name(&self) -> &str {
        self.name
    }

    fn points(&self) -> Points {
        self.points
    }

    fn notified<'a>(&'a self, notification: Notification<'a>, cx: &'a ExtensionCx) -> HandlerFuture<'a, ()> {
        self.note(match notification {
            Notification::SessionStart { reason, previous } => {
                format!("start {} {}", reason.as_str(), previous.is_some())
            }
            Notification::SessionShutdown { reason, target } => {
                format!("shutdown {} {}", reason.as_str(), target.is_some())
            }
            Notification::Model { model, previous, source } => {
                format!("model {} {} {}", model.id, previous.id, source.as_str())
            }
            Notification::Thinking { level, previous } => format!("level {} {}", level.as_str(), previous.as_str()),
            Notification::TurnStart { turn_index, .. } => format!("turn_start {turn_index}"),
            Notification::Response { status, .. } => format!("response {status}"),
            Notification::Compacted { done, .. } => format!("compacted {}", done.from_extension),
            Notification::CompactFailed { error, .. } => format!("compact failed {error}"),
            Notification::Event(SessionEvent::InfoChanged { name }) => format!("name {name:?}"),
            other => other.point().unwrap().name().to_owned(),
        });
        self.answer((), cx)
    }

    fn resources_discover<'a>(
        &'a self,
        ask: ResourcesDiscover,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, ResourcePaths> {
        self.note(format!("resources {}", ask.reason.as_str()));
        self.answer(ResourcePaths { skills: vec![self.name.into()], ..ResourcePaths::default() }, cx)
    }

    fn session_before_switch<'a>(
        &'a self,
        to: &'a BeforeSwitch,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, SwitchDecision> {
        self.note(format!("before_switch {}", to.reason.as_str()));
        self.answer(SwitchDecision::Cancel, cx)
    }

    fn session_before_fork<'a>(
        &'a self,
        fork: &'a BeforeFork,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, SwitchDecision> {
        self.note(format!("before_fork {}", fork.before));
        self.answer(SwitchDecision::Cancel, cx)
    }

    fn session_before_compact<'a>(
        &'a self,
        _: &'a PendingCompaction<'a>,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, BeforeCompaction> {
        self.note("before_compact");
        let made = Summarised::new(self.name).with_extension(ByExtension::default());
        self.answer(BeforeCompaction::Instead(Box::new(made)), cx)
    }

    fn session_before_tree<'a>(&'a self, ahead: &'a PendingMove, cx: &'a ExtensionCx) -> HandlerFuture<'a, BeforeMove> {
        self.note(format!("before_tree {}", ahead.left.len()));
        let changes = MoveChanges { label: Some(self.name.to_owned()), ..MoveChanges::default() };
        self.answer(BeforeMove::Continue(changes), cx)
    }

    fn context<'a>(&'a self, messages: &'a [Arc<Message>], cx: &'a ExtensionCx) -> HandlerFuture<'a, ContextAction> {
        let roles: Vec<&str> = messages.iter().map(|message| message.role()).collect();
        self.note(format!("context {}", roles.join(",")));
        let more = Arc::new(Message::user(self.name, 0));
        self.answer(ContextAction::Replace(messages.iter().cloned().chain([more]).collect()), cx)
    }

    fn before_provider_request<'a>(
        &'a self,
        body: &'a Value,
        _: &'a Model,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, PayloadAction> {
        self.answer(PayloadAction::Replace(json!([body, self.name])), cx)
    }

    fn before_provider_headers<'a>(
        &'a self,
        headers: &'a [(String, String)],
        _: &'a Model,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, HeaderChanges> {
        let n = headers.len().to_string();
        self.answer(vec![(format!("x-{}", self.name), Some(n)), ("gone".into(), None), ("b d".into(), None)], cx)
    }

    fn before_agent_start<'a>(
        &'a self,
        start: &'a BeforeAgentStart,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, AgentStartAction> {
        self.note(format!("before_start {} {:?}", start.prompt, start.message_type));
        let text: Vec<&str> = start.system.sections().map(|(_, text)| text).collect();
        let system = Some(SystemPrompt::text(tagged(&text.join("\n"), self.name)));
        self.answer(AgentStartAction { messages: vec![custom(self.name)], system, ..AgentStartAction::default() }, cx)
    }

    fn turn_end<'a>(
        &'a self,
        turn: TurnEnd<'a>,
        _: &'a Boundary,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, BoundaryAction> {
        self.note(format!("turn_end {} {}", turn.turn_index, turn.results.len()));
        let again = turn.turn_index == 0 && turn.results.is_empty();
        self.answer(if again { BoundaryAction::continue_run() } else { BoundaryAction::default() }, cx)
    }

    fn message_end<'a>(&'a self, message: &'a Arc<Message>, cx: &'a ExtensionCx) -> HandlerFuture<'a, MessageAction> {
        let mut message = (**message).clone();
        match &mut message {
            Message::User(user) => user.content = Content::Text(tagged(&user.content.text(""), self.name)),
            Message::Assistant(_) => message = Message::user("x", 0),
            Message::ToolResult(result) => result.tool_call_id = "other".into(),
            _ => {}
        }
        self.answer(MessageAction::Replace(Arc::new(message)), cx)
    }

    fn tool_call<'a>(&'a self, call: &'a PendingCall, cx: &'a ExtensionCx) -> HandlerFuture<'a, BeforeTool> {
        let text = call.input.get("text").and_then(Value::as_str).unwrap_or_default();
        let deny = text.contains("stop");
        let input = JsonObject::from_iter([("text".to_owned(), Value::from(tagged(text, self.name)))]);
        let reason = format!("not with {}", self.name);
        self.note("tool_call");
        self.answer(if deny { BeforeTool::deny(reason) } else { BeforeTool::Rewrite(input) }, cx)
    }

    fn tool_result<'a>(&'a self, done: &'a FinishedCall, cx: &'a ExtensionCx) -> HandlerFuture<'a, ToolPatch> {
        let text = tagged(done.output.content[0].as_text().unwrap_or_default(), self.name);
        self.answer(ToolPatch { content: Some(vec![Block::text(text)]), ..ToolPatch::default() }, cx)
    }

    fn user_bash<'a>(&'a self, command: &'a UserBash, cx: &'a ExtensionCx) -> HandlerFuture<'a, UserBashAction> {
        self.note(format!("bash {}", command.command));
        self.answer(UserBashAction::Instead(UserCommand { output: self.name.into(), ..UserCommand::default() }), cx)
    }

    fn input<'a>(&'a self, input: &'a Input, cx: &'a ExtensionCx) -> HandlerFuture<'a, InputAction> {
        self.note(format!("input {} {}", input.source.as_str(), input.queue.is_some()));
        let action = match input.text.as_str() {
            "mine" => InputAction::Handled,
            text => InputAction::Transform { text: tagged(text, self.name), images: None },
        };
        self.answer(action, cx)
    }
}

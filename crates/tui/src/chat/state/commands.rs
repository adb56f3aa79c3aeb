//! Effects of commands.

use super::ChatApp;
use crate::chat::backend::{SessionPatch, UsageMode};
use crate::chat::commands::{self, ChatCommand, DEFAULT};
use crate::chat::effect::ChatEffect;
use crate::text::one_line;

impl ChatApp {
    pub(super) fn command(&mut self, command: ChatCommand, now_ms: i64) -> Vec<ChatEffect> {
        let session = self.session.clone();
        let patch = |patch| vec![ChatEffect::Patch { session: session.clone(), patch }];
        match command {
            ChatCommand::Help => {
                let tmux = self.tmux_keys.map_or_else(String::new, |keys| keys.note(&self.keymap));
                let text = commands::help(&self.keymap) + &tmux;
                self.transcript.markdown(&text);
                Vec::new()
            }
            ChatCommand::Problem(text) => {
                self.warning(&text);
                Vec::new()
            }
            ChatCommand::Status => vec![ChatEffect::Status { session }],
            ChatCommand::Context => vec![ChatEffect::Context { session }],
            ChatCommand::Auth(provider) => vec![ChatEffect::Credentials { agent: self.agent.clone(), provider }],
            ChatCommand::Login(provider) => vec![ChatEffect::Login { agent: self.agent.clone(), provider }],
            ChatCommand::Agent(None) => vec![ChatEffect::Agents],
            ChatCommand::Agent(Some(id)) => self.use_agent(&id),
            ChatCommand::Session(None) => vec![ChatEffect::Sessions { agent: self.agent.clone() }],
            ChatCommand::Session(Some(key)) => self.use_session(&key),
            ChatCommand::Model(None) => vec![ChatEffect::Models { agent: self.agent.clone() }],
            ChatCommand::Model(Some(name)) => patch(SessionPatch::Model((name != DEFAULT).then_some(name))),
            ChatCommand::Think(level) => patch(SessionPatch::Thinking(level)),
            ChatCommand::Verbose(level) => patch(SessionPatch::Verbose(level)),
            ChatCommand::Reasoning(mode) => patch(SessionPatch::Reasoning(mode)),
            ChatCommand::Usage(mode) => {
                let next = match self.facts.usage {
                    UsageMode::Off => UsageMode::Tokens,
                    UsageMode::Tokens => UsageMode::Full,
                    UsageMode::Full => UsageMode::Off,
                };
                patch(SessionPatch::Usage(mode.unwrap_or(next)))
            }
            ChatCommand::Queue(mode) => patch(SessionPatch::Queue(mode)),
            ChatCommand::Elevated(mode) => patch(SessionPatch::Elevated(mode)),
            ChatCommand::Permissions(limit) => patch(SessionPatch::Permissions(limit)),
            ChatCommand::Activation(activation) => patch(SessionPatch::Activation(activation)),
            ChatCommand::Deliver(delivers) => {
                self.set_delivery(delivers);
                Vec::new()
            }
            ChatCommand::Compact(instructions) => {
                if self.compacting.is_some() {
                    self.warning("The session is being compacted");
                    return Vec::new();
                }
                self.compacting = Some(now_ms);
                vec![ChatEffect::Compact { session, instructions }]
            }
            ChatCommand::New(message) => {
                self.first_message = message;
                let id = self.setup.host.ids().uuid_v4();
                let name = format!("chat-{}", id.get(..8).unwrap_or(&id));
                self.use_session(&name)
            }
            ChatCommand::Reset if self.is_busy() => {
                self.warning("Stop the active run before the session is reset");
                Vec::new()
            }
            ChatCommand::Reset => vec![ChatEffect::Reset { session }],
            ChatCommand::Abort => {
                if !self.is_busy() && self.compacting.is_none() {
                    self.status("There is no active run");
                }
                self.stop()
            }
            ChatCommand::Settings => {
                self.open_settings();
                Vec::new()
            }
            ChatCommand::Quit => vec![ChatEffect::Exit],
        }
    }

    /// Switches to another agent, in its main session.
    pub(super) fn use_agent(&mut self, id: &str) -> Vec<ChatEffect> {
        let id = id.to_lowercase();
        let Some(agent) = self.agents.iter().find(|agent| agent.id == id) else {
            let known: Vec<&str> = self.agents.iter().map(|agent| agent.id.as_str()).collect();
            let text = format!("There is no agent {id:?}. Agents: {}", known.join(", "));
            self.warning(&text);
            return Vec::new();
        };
        let key = agent.main_session.clone();
        self.agent = id;
        self.open_session(&key)
    }

    /// Switches to a session named by the user.
    pub(super) fn use_session(&mut self, named: &str) -> Vec<ChatEffect> {
        let key = self.session_key(named);
        if key == self.session {
            self.status("This session is already open");
            return Vec::new();
        }
        self.open_session(&key)
    }

    /// Shows or hides thinking, overriding the session's setting.
    pub(super) fn toggle_thinking(&mut self) {
        let shows = self.transcript.options.hide_thinking;
        self.shows_thinking = Some(shows);
        self.take_options();
        self.status(if shows { "Thinking is shown" } else { "Thinking is hidden" });
    }

    /// Sets whether replies are also delivered to the session's channel, which requires that there is one.
    pub(super) fn set_delivery(&mut self, delivers: bool) {
        match (delivers, &self.facts.channel) {
            (false, _) => {
                self.delivers = false;
                self.status("Replies stay in this chat");
            }
            (true, Some(channel)) => {
                let text = format!("Replies are also delivered to {}", one_line(channel));
                self.delivers = true;
                self.status(&text);
            }
            (true, None) => self.warning("Replies cannot be delivered: this session has no channel"),
        }
    }

    pub(super) fn toggle_tools(&mut self) {
        self.transcript.options.expanded = !self.transcript.options.expanded;
        self.transcript.invalidate();
    }
}

//! Selection dialogs, and the question before the first shell command.

use super::{ChatApp, OpenChatDialog, ShellPermission, short_key};
use crate::chat::agent_question::AgentQuestionDialog;
use crate::chat::backend::{
    AgentQuestions, ChatAgent, ChatModel, ChatSession, CommandDecision, CommandQuestion, SessionPatch,
};
use crate::chat::effect::{ChatChoice, ChatEffect};
use crate::chat::question::QuestionDialog;
use crate::dialog::ChoiceDialog;
use crate::figures::tokens;
use crate::text::{one_line, truncate};
use crate::widget::PickItem;

/// A question withdrawn within this time before its deadline counts as expired, in milliseconds.
const EXPIRED_MS: i64 = 500;
/// Maximum width of a command in the question about it, in columns.
const MAX_COMMAND: usize = 200;

impl ChatApp {
    fn open(&mut self, dialog: ChoiceDialog<ChatChoice>) {
        self.completion.close();
        // Questions with someone waiting stay on top.
        let at = self.first_question();
        self.dialogs.insert(at, OpenChatDialog { dialog: Box::new(dialog), question: None, asked: None });
    }

    fn first_question(&self) -> usize {
        self.dialogs.iter().position(|open| open.question.is_some()).unwrap_or(self.dialogs.len())
    }

    /// Shows a request for approval of a command. Questions are shown one after another.
    pub(super) fn ask(&mut self, question: CommandQuestion) {
        self.completion.close();
        let at = self.first_question();
        let id = question.id.clone();
        let is_here = question.session_key.as_ref().is_none_or(|session| *session == self.session);
        let dialog = Box::new(QuestionDialog::new(question, is_here));
        self.dialogs.insert(at, OpenChatDialog { dialog, question: Some(id), asked: None });
    }

    /// Shows questions of an agent, in turn.
    pub(super) fn ask_for_agent(&mut self, asked: AgentQuestions) {
        if asked.questions.is_empty() {
            return;
        }
        self.completion.close();
        let at = self.first_question();
        let question = Some(asked.id.clone());
        let is_here = asked.session_key.as_ref().is_none_or(|session| *session == self.session);
        let dialog = Box::new(AgentQuestionDialog::new(asked.clone(), is_here, self.is_plain()));
        self.dialogs.insert(at, OpenChatDialog { dialog, question, asked: Some(asked) });
    }

    /// Withdraws a question that no longer needs an answer.
    pub(super) fn withdraw_question(&mut self, id: &str, now_ms: i64) {
        let is_it = |open: &&OpenChatDialog| open.question.as_deref() == Some(id);
        if let Some(asked) = self.dialogs.iter().find(is_it).and_then(|open| open.asked.as_ref()) {
            let why = match now_ms >= asked.expires_ms - EXPIRED_MS {
                true => "Not answered in time",
                false => "The question was withdrawn",
            };
            let text = format!("{why}: {}", first_text(asked));
            self.status(&text);
        }
        self.dialogs.retain(|open| open.question.as_deref() != Some(id));
    }

    fn choose(&mut self, title: &str, choices: Vec<(PickItem, Vec<ChatChoice>)>) {
        self.open(ChoiceDialog::new(title, choices));
    }

    pub(super) fn choose_agent(&mut self, agents: Vec<ChatAgent>) {
        let choices = agents.iter().map(|agent| {
            let item = PickItem::new(&agent.id).current(agent.id == self.agent);
            (item, vec![ChatChoice::Agent(agent.id.clone())])
        });
        let choices = choices.collect();
        self.take_agents(agents);
        self.choose("Agent", choices);
    }

    pub(super) fn choose_session(&mut self, agent: &str, sessions: &[ChatSession], now_ms: i64) {
        if sessions.is_empty() {
            return self.status(&format!("The agent {agent} has no sessions yet"));
        }
        let choices = sessions.iter().map(|session| {
            let mut facts: Vec<String> = session.label.iter().cloned().collect();
            facts.push(ago(now_ms - session.updated_ms));
            facts.extend(session.tokens.map(|n| format!("{} tokens", tokens(n))));
            let item = PickItem::new(short_key(&session.key)).detail(facts.join(" · "));
            (item.current(session.key == self.session), vec![ChatChoice::Session(session.key.clone())])
        });
        let choices = choices.collect();
        self.choose(&format!("Session of {agent}"), choices);
    }

    pub(super) fn choose_model(&mut self, models: &[ChatModel]) {
        if models.is_empty() {
            return self.status("There are no models with credentials");
        }
        let choices = models.iter().map(|model| {
            let name = format!("{}/{}", model.provider, model.id);
            let window = if model.window > 0 { format!(" · {} tokens", tokens(model.window)) } else { String::new() };
            let item = PickItem::new(&model.id)
                .detail(format!("[{}] {}{window}", model.provider, model.name))
                .search(format!("{} {} {name}", model.id, model.provider))
                .current(self.facts.model.as_ref() == Some(&name));
            (item, vec![ChatChoice::Model(name)])
        });
        let choices = choices.collect();
        self.choose("Model of the session", choices);
    }

    pub(super) fn open_settings(&mut self) {
        let options = &self.transcript.options;
        let tools = if options.expanded { "expanded" } else { "collapsed" };
        let thinking = if options.hide_thinking { "hidden" } else { "shown" };
        let delivery = if self.delivers { "on" } else { "off" };
        let choices = vec![
            (PickItem::new("Tool output").detail(tools), vec![ChatChoice::ToggleTools]),
            (PickItem::new("Thinking").detail(thinking), vec![ChatChoice::ToggleThinking]),
            (PickItem::new("Deliver replies").detail(delivery), vec![ChatChoice::ToggleDelivery]),
        ];
        self.open(ChoiceDialog::short("Settings", choices));
    }

    pub(super) fn ask_for_shell(&mut self, command: String) {
        let shown = shortened(&command);
        let title =
            format!("Run shell commands on this computer, with your rights? The agent does not see them.\n$ {shown}");
        let choices = vec![
            (PickItem::new("No").detail("until the chat is restarted"), vec![ChatChoice::DeclineShell]),
            (PickItem::new("Yes").detail("this one and later ones"), vec![ChatChoice::AllowShell { command }]),
        ];
        self.open(ChoiceDialog::short(&title, choices).or_else(ChatChoice::DeclineShell));
    }

    /// Handles a choice.
    pub(super) fn chosen(&mut self, choice: ChatChoice) -> Vec<ChatEffect> {
        match choice {
            ChatChoice::Agent(id) => return self.use_agent(&id),
            ChatChoice::Session(key) => return self.use_session(&key),
            ChatChoice::Model(name) => {
                return vec![ChatEffect::Patch {
                    session: self.session.clone(),
                    patch: SessionPatch::Model(Some(name)),
                }];
            }
            ChatChoice::AllowShell { command } => {
                self.shell = ShellPermission::Allowed;
                return self.run_shell(command);
            }
            ChatChoice::DeclineShell => {
                self.shell = ShellPermission::Declined;
                self.status("Shell commands are off");
            }
            ChatChoice::Decide { question, decision } => {
                let verdict = match decision {
                    CommandDecision::Once => "Allowed once",
                    CommandDecision::Always => "Always allowed",
                    CommandDecision::Deny => "Denied",
                };
                self.transcript.dim(&format!("{verdict}: {}", question.command));
                return vec![ChatEffect::Decide { question: question.id, decision }];
            }
            ChatChoice::Answer { asked, answers } => {
                for question in &asked.questions {
                    let answer = answers.iter().flatten().find(|answer| answer.question == question.id);
                    let text = shortened(&question.text);
                    match answer {
                        Some(answer) => {
                            let values = shortened(&answer.values.join(", "));
                            self.transcript.dim(&format!("Answered: {text} {values}"));
                        }
                        None => self.transcript.dim(&format!("Not answered: {text}")),
                    }
                }
                return vec![ChatEffect::Answer { questions: asked.id, answers }];
            }
            ChatChoice::NameAnOption => {
                self.warning(
                    "Type the number of an option or the beginning of its name; choose Other to type an answer",
                );
            }
            ChatChoice::ToggleTools => {
                self.toggle_tools();
                self.open_settings();
            }
            ChatChoice::ToggleDelivery => {
                self.set_delivery(!self.delivers);
                self.open_settings();
            }
            ChatChoice::ToggleThinking => {
                self.toggle_thinking();
                self.open_settings();
            }
        }
        Vec::new()
    }
}

/// Returns the beginning of a text on one line.
fn shortened(text: &str) -> String {
    truncate(&crate::Row::from(one_line(text)), MAX_COMMAND, "…").to_string()
}

/// Returns the first of several questions.
fn first_text(asked: &AgentQuestions) -> String {
    asked.questions.first().map(|question| shortened(&question.text)).unwrap_or_default()
}

/// Formats how long ago something was.
fn ago(ms: i64) -> String {
    match ms / 1_000 {
        ..60 => "now".to_owned(),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} d ago", seconds / 86_400),
    }
}

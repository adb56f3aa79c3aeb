//! Effects of the chat and their outcomes: the state returns effects, and the loop that owns the backend carries them out.

use std::sync::Arc;

use pinch_llm::message::Message;

use super::backend::{
    AgentAnswer, AgentQuestions, ChatAgent, ChatBackend, ChatError, ChatModel, ChatSession, ChatSessionInfo,
    CommandDecision, CommandQuestion, MessageOutcome, OutgoingMessage, SessionPatch,
};

/// An effect to carry out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChatEffect {
    /// Send a message.
    Send(OutgoingMessage),
    /// Withdraw messages that no run has read, by their ids.
    Withdraw(Vec<String>),
    /// Stop the active run of a session.
    Abort { session: String },
    /// Read the last messages of a session.
    History { session: String },
    /// Look up the state of a session.
    Facts { session: String },
    /// Change a setting of a session.
    Patch { session: String, patch: SessionPatch },
    /// Begin a new session for a key.
    Reset { session: String },
    /// Compact a session.
    Compact { session: String, instructions: Option<String> },
    /// Stop the current compaction.
    StopCompaction,
    /// List the agents.
    Agents,
    /// List the sessions of an agent.
    Sessions { agent: String },
    /// List the models of an agent.
    Models { agent: String },
    /// Describe the state of the backend and of a session.
    Status { session: String },
    /// Describe what takes up the model's context window in a session.
    Context { session: String },
    /// Describe the credentials of an agent.
    Credentials { agent: String, provider: Option<String> },
    /// Hand the terminal over to a login for an agent.
    Login { agent: String, provider: Option<String> },
    /// Store the open session, so that the next chat begins with it.
    RememberSession { agent: String, session: String },
    /// Decide about a command.
    Decide { question: String, decision: CommandDecision },
    /// Answer the questions of an agent.
    Answer { questions: String, answers: Option<Vec<AgentAnswer>> },
    /// Run a shell command of the user.
    Shell(String),
    /// Stop the user's shell command.
    StopShell,
    /// Exit.
    Exit,
    /// Suspend the program.
    Suspend,
    /// Draw everything again.
    Redraw,
}

/// A choice made in a dialog.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChatChoice {
    /// Switch to this agent.
    Agent(String),
    /// Switch to this session.
    Session(String),
    /// Use this model.
    Model(String),
    /// Allow shell commands of the user, and run this one first.
    AllowShell { command: String },
    /// Refuse shell commands.
    DeclineShell,
    /// Decide about a command.
    Decide { question: CommandQuestion, decision: CommandDecision },
    /// Answer the questions of an agent, or decline to.
    Answer { asked: AgentQuestions, answers: Option<Vec<AgentAnswer>> },
    /// Report that a typed line matches none of the options.
    NameAnOption,
    /// Expand or collapse tool results.
    ToggleTools,
    /// Show or hide thinking.
    ToggleThinking,
    /// Deliver replies to the session's channel, or stop that.
    ToggleDelivery,
}

/// Outcome of an effect.
#[derive(Clone, Debug)]
pub(crate) enum ChatNews {
    Sent { id: String, session: String, outcome: Result<MessageOutcome, ChatError> },
    Aborted { session: String, outcome: Result<bool, ChatError> },
    History { session: String, messages: Result<Vec<Arc<Message>>, ChatError> },
    Facts { session: String, facts: Result<ChatSessionInfo, ChatError> },
    Patched { session: String, patch: SessionPatch, outcome: Result<(), ChatError> },
    Reset { session: String, outcome: Result<(), ChatError> },
    Compacted { session: String, outcome: Result<String, ChatError> },
    Agents(Result<Vec<ChatAgent>, ChatError>),
    Sessions { agent: String, sessions: Result<Vec<ChatSession>, ChatError> },
    Models { agent: String, models: Result<Vec<ChatModel>, ChatError> },
    Status(Result<String, ChatError>),
    LoggedIn(Result<(), ChatError>),
    Decided(Result<(), ChatError>),
}

/// Carries out an effect on the backend. `limit`: how many messages of a session are read. `None`: the effect does not concern the backend.
pub(crate) async fn carry_out(backend: &dyn ChatBackend, effect: ChatEffect, limit: usize) -> Option<ChatNews> {
    Some(match effect {
        ChatEffect::Send(message) => {
            let (id, session) = (message.id.clone(), message.session_key.clone());
            let outcome = backend.send(message).await;
            ChatNews::Sent { id, session, outcome }
        }
        ChatEffect::Abort { session } => {
            let outcome = backend.abort(&session).await;
            ChatNews::Aborted { session, outcome }
        }
        ChatEffect::History { session } => {
            let messages = backend.history(&session, limit).await;
            ChatNews::History { session, messages }
        }
        ChatEffect::Facts { session } => {
            let facts = backend.session(&session).await;
            ChatNews::Facts { session, facts }
        }
        ChatEffect::Patch { session, patch } => {
            let outcome = backend.patch_session(&session, patch.clone()).await;
            ChatNews::Patched { session, patch, outcome }
        }
        ChatEffect::Reset { session } => {
            let outcome = backend.reset_session(&session).await;
            ChatNews::Reset { session, outcome }
        }
        ChatEffect::Compact { session, instructions } => {
            let outcome = backend.compact(&session, instructions.as_deref()).await;
            ChatNews::Compacted { session, outcome }
        }
        ChatEffect::Agents => ChatNews::Agents(backend.list_agents().await),
        ChatEffect::Sessions { agent } => {
            let sessions = backend.list_sessions(&agent).await;
            ChatNews::Sessions { agent, sessions }
        }
        ChatEffect::Models { agent } => {
            let models = backend.list_models(&agent).await;
            ChatNews::Models { agent, models }
        }
        ChatEffect::Status { session } => ChatNews::Status(backend.status(&session).await),
        ChatEffect::Context { session } => ChatNews::Status(backend.context(&session).await),
        ChatEffect::Credentials { agent, provider } => {
            ChatNews::Status(backend.credentials(&agent, provider.as_deref()).await)
        }
        ChatEffect::Decide { question, decision } => ChatNews::Decided(backend.decide(&question, decision).await),
        ChatEffect::Answer { questions, answers } => ChatNews::Decided(backend.answer(&questions, answers).await),
        ChatEffect::Withdraw(_)
        | ChatEffect::Login { .. }
        | ChatEffect::RememberSession { .. }
        | ChatEffect::StopCompaction
        | ChatEffect::Shell(_)
        | ChatEffect::StopShell
        | ChatEffect::Exit
        | ChatEffect::Suspend
        | ChatEffect::Redraw => return None,
    })
}

//! Decisions of the chat's user: approval of commands, and questions of agents.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use pinch_embed::ports::{
    ApprovalBroker, ApprovalDecision, ApprovalRequest, ApprovalSeverity, QuestionBroker, QuestionReply,
    QuestionRequest, UserQuestion,
};
use pinch_embed::stdx::host::Host;
use pinch_tui::chat::{
    AgentAnswer, AgentQuestion, AgentQuestions, AnswerOption, ChatError, ChatEvent, CommandDecision, CommandQuestion,
};
use tokio::sync::{mpsc, oneshot};

/// A pending answer.
enum PendingAnswer {
    Command(oneshot::Sender<ApprovalDecision>),
    /// `None` means that the user does not answer.
    Agent(oneshot::Sender<Option<Vec<QuestionReply>>>),
}

/// Asks the user of the chat.
pub(super) struct Questions {
    host: Host,
    events: mpsc::Sender<ChatEvent>,
    /// Pending answers by question id.
    open: Mutex<BTreeMap<String, PendingAnswer>>,
}

impl Questions {
    pub(super) fn new(host: Host, events: mpsc::Sender<ChatEvent>) -> Self {
        Self { host, events, open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<String, PendingAnswer>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a question.
    pub(super) fn decide(&self, question: &str, decision: CommandDecision) -> Result<(), ChatError> {
        let decision = match decision {
            CommandDecision::Once => ApprovalDecision::AllowOnce,
            CommandDecision::Always => ApprovalDecision::AllowAlways,
            CommandDecision::Deny => ApprovalDecision::Deny,
        };
        let waiting = self.open().remove(question);
        let is_taken = match waiting {
            Some(PendingAnswer::Command(waiting)) => waiting.send(decision).is_ok(),
            _ => false,
        };
        let gone = || ChatError::new("the command does not wait for an answer any longer");
        is_taken.then_some(()).ok_or_else(gone)
    }

    /// Answers the questions of an agent.
    pub(super) fn answer(&self, questions: &str, answers: Option<Vec<AgentAnswer>>) -> Result<(), ChatError> {
        let reply = |answer: AgentAnswer| QuestionReply { id: answer.question, values: answer.values };
        let replies = answers.map(|answers| answers.into_iter().map(reply).collect());
        let waiting = self.open().remove(questions);
        let is_taken = match waiting {
            Some(PendingAnswer::Agent(waiting)) => waiting.send(replies).is_ok(),
            _ => false,
        };
        let gone = || ChatError::new("the agent does not wait for an answer any longer");
        is_taken.then_some(()).ok_or_else(gone)
    }
}

/// The reason for an approval; it begins with the severity if that is not the usual one.
fn shown_reason(request: &ApprovalRequest) -> String {
    match request.severity {
        ApprovalSeverity::Warning => request.reason.clone(),
        severity => format!("[{}] {}", severity.name(), request.reason),
    }
}

impl ApprovalBroker for Questions {
    fn request<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(async move {
            let id = self.host.ids().uuid_v4();
            let (answer, answered) = oneshot::channel();
            self.open().insert(id.clone(), PendingAnswer::Command(answer));
            let _waiting = OpenQuestion { questions: self, id: id.clone() };
            let question = CommandQuestion {
                id,
                session_key: request.session_key.clone().map(Into::into),
                command: request.command.clone(),
                cwd: request.cwd.clone(),
                reason: shown_reason(request),
            };
            if self.events.send(ChatEvent::Question(question)).await.is_err() {
                return ApprovalDecision::Deny;
            }
            answered.await.unwrap_or(ApprovalDecision::Deny)
        })
    }
}

impl QuestionBroker for Questions {
    fn ask<'a>(&'a self, request: &'a QuestionRequest) -> BoxFuture<'a, Option<Vec<QuestionReply>>> {
        Box::pin(async move {
            let id = self.host.ids().uuid_v4();
            let (answer, answered) = oneshot::channel();
            self.open().insert(id.clone(), PendingAnswer::Agent(answer));
            let _waiting = OpenQuestion { questions: self, id: id.clone() };
            let limit_ms = i64::try_from(request.expires_in.as_millis()).unwrap_or(i64::MAX);
            let asked = AgentQuestions {
                id,
                session_key: request.session_key.clone().map(Into::into),
                questions: request.questions.iter().map(shown).collect(),
                expires_ms: self.host.now_ms().saturating_add(limit_ms),
            };
            self.events.send(ChatEvent::Asked(asked)).await.ok()?;
            answered.await.ok().flatten()
        })
    }
}

/// Converts a question for the chat.
fn shown(question: &UserQuestion) -> AgentQuestion {
    let options = question.options.iter();
    let options =
        options.map(|option| AnswerOption { label: option.label.clone(), description: option.description.clone() });
    AgentQuestion {
        id: question.id.clone(),
        header: question.header.clone(),
        text: question.question.clone(),
        options: options.collect(),
        is_multiple: question.is_multiple,
    }
}

/// A question that is open while this is alive.
struct OpenQuestion<'a> {
    questions: &'a Questions,
    id: String,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if self.questions.open().remove(&self.id).is_some() {
            // If there is no room for it, the user notices when answering.
            drop(self.questions.events.try_send(ChatEvent::QuestionWithdrawn(std::mem::take(&mut self.id))));
        }
    }
}

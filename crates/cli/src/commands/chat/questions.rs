//! Commands that the user of the chat has to allow.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use pinch_embed::ports::{ApprovalBroker, ApprovalDecision, ApprovalRequest};
use pinch_embed::stdx::host::Host;
use pinch_tui::chat::{ChatError, ChatEvent, CommandDecision, CommandQuestion};
use tokio::sync::{mpsc, oneshot};

/// Asks the user of the chat.
pub(super) struct Questions {
    host: Host,
    events: mpsc::Sender<ChatEvent>,
    /// Who waits for an answer, by the ids of the questions.
    open: Mutex<BTreeMap<String, oneshot::Sender<ApprovalDecision>>>,
}

impl Questions {
    pub(super) fn new(host: Host, events: mpsc::Sender<ChatEvent>) -> Self {
        Self { host, events, open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<String, oneshot::Sender<ApprovalDecision>>> {
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
        waiting
            .and_then(|waiting| waiting.send(decision).ok())
            .ok_or_else(|| ChatError::new("the command does not wait for an answer any longer"))
    }
}

impl ApprovalBroker for Questions {
    fn request<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(async move {
            let id = self.host.ids().uuid_v4();
            let (answer, answered) = oneshot::channel();
            self.open().insert(id.clone(), answer);
            let _waiting = OpenQuestion { questions: self, id: id.clone() };
            let question = CommandQuestion {
                id,
                session_key: request.session_key.clone(),
                command: request.command.clone(),
                cwd: request.cwd.clone(),
                reason: request.reason.clone(),
            };
            if self.events.send(ChatEvent::Question(question)).await.is_err() {
                return ApprovalDecision::Deny;
            }
            answered.await.unwrap_or(ApprovalDecision::Deny)
        })
    }
}

/// A question that is open as long as this lives.
struct OpenQuestion<'a> {
    questions: &'a Questions,
    id: String,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if self.questions.open().remove(&self.id).is_some() {
            // If there is no room for it, the user learns it when they answer.
            drop(self.questions.events.try_send(ChatEvent::QuestionWithdrawn(std::mem::take(&mut self.id))));
        }
    }
}

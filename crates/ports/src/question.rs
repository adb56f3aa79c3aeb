//! Questions of an agent to a person.

use std::time::Duration;

use futures::future::BoxFuture;

use crate::session_key::SessionKey;

/// A question with suggested answers. A person may always give a different answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UserQuestion {
    /// Identifies the question within its request.
    pub id: String,
    /// A short heading: at most 12 characters.
    pub header: String,
    /// The question.
    pub question: String,
    /// Two to four suggested answers; the recommended one is first.
    pub options: Vec<QuestionOption>,
    /// Whether several of them may be chosen.
    pub is_multiple: bool,
}

/// A suggested answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuestionOption {
    /// The answer.
    pub label: String,
    /// An explanation of the answer.
    pub description: Option<String>,
}

/// One to three questions that are asked together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuestionRequest {
    /// The questions.
    pub questions: Vec<UserQuestion>,
    /// The session that they belong to.
    pub session_key: Option<SessionKey>,
    /// How long the requester waits for the answers.
    pub expires_in: Duration,
}

impl QuestionRequest {
    /// Creates a request with these questions.
    pub fn new(questions: Vec<UserQuestion>, expires_in: Duration) -> Self {
        Self { questions, session_key: None, expires_in }
    }
}

/// A person's answer to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionReply {
    /// The id of the question.
    pub id: String,
    /// Labels of the chosen options, or a free-form answer.
    pub values: Vec<String>,
}

/// Asks a person. The requester waits; dropping the future withdraws the questions.
pub trait QuestionBroker: Send + Sync {
    /// Asks the questions and returns the answers, or `None` if the person does not answer or cannot be reached.
    fn ask<'a>(&'a self, request: &'a QuestionRequest) -> BoxFuture<'a, Option<Vec<QuestionReply>>>;
}

//! Asking a person what an agent cannot decide.

use std::time::Duration;

use futures::future::BoxFuture;

/// A question with answers to choose from. A person may always give an answer of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UserQuestion {
    /// Names the question within its request.
    pub id: String,
    /// A few words above it: at most 12 characters.
    pub header: String,
    /// The question.
    pub question: String,
    /// Two to four answers to choose from; the recommended one is the first.
    pub options: Vec<QuestionOption>,
    /// Whether several of them may be chosen.
    pub is_multiple: bool,
}

/// An answer to choose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuestionOption {
    /// The answer.
    pub label: String,
    /// What it means.
    pub description: Option<String>,
}

/// Questions that are asked together: one to three.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuestionRequest {
    /// The questions.
    pub questions: Vec<UserQuestion>,
    /// The session that they belong to.
    pub session_key: Option<String>,
    /// After this time nobody waits for the answers.
    pub expires_in: Duration,
}

impl QuestionRequest {
    /// A request with these questions.
    pub fn new(questions: Vec<UserQuestion>, expires_in: Duration) -> Self {
        Self { questions, session_key: None, expires_in }
    }
}

/// What a person answered to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionReply {
    /// The id of the question.
    pub id: String,
    /// Labels of the options that were chosen, or an answer of their own.
    pub values: Vec<String>,
}

/// Asks a person. Whoever asks waits; dropping the future withdraws the questions.
pub trait QuestionBroker: Send + Sync {
    /// Asks, and returns the answers. `None`: the person does not answer, or cannot be reached.
    fn ask<'a>(&'a self, request: &'a QuestionRequest) -> BoxFuture<'a, Option<Vec<QuestionReply>>>;
}

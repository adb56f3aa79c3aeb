//! Summaries written by a model: building the requests and validating the answers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_llm::event::Finished;
use pinch_llm::message::{Message, StopReason, Usage};
use pinch_llm::provider::Provider;
use pinch_llm::request::Request;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use pinch_stdx::text::utf16_len;

use super::{CompactError, Preparation, Strategy, Summarised, instructions, serialise, stripped};
use crate::recovery::{self, FailedAnswer, RetryDecision, TurnRetry};

/// One summary request, from which the session builds the [`Request`] with model, credentials and thinking level.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SummaryPrompt {
    /// The system prompt.
    pub system: &'static str,
    /// The single user message.
    pub text: String,
    /// Maximum tokens of the answer; lowered to the model's limit if necessary.
    pub max_tokens: u64,
}

/// Builds the request for a summary: no tools, no cache writes, and a separate routing session.
pub type BuildRequest<'a> = &'a (dyn Fn(SummaryPrompt) -> Request + Send + Sync);

/// A [`Strategy`] that lets a model write the summaries.
pub struct SummaryModel<'a> {
    /// The provider that serves the model.
    pub provider: &'a dyn Provider,
    /// Builds the requests.
    pub build: BuildRequest<'a>,
    /// What the summary should focus on.
    pub focus: Option<String>,
    /// Context window of the model in tokens; 0 = unknown. Longer conversations are summarised in parts.
    pub context_window: u64,
    /// Retries for transient failures; `None` disables them.
    pub retry: Option<SummaryRetry<'a>>,
}

/// How failed summary requests are retried.
#[derive(Clone, Copy)]
pub struct SummaryRetry<'a> {
    /// Number of retries and their delays.
    pub plan: TurnRetry,
    /// Source of the random jitter.
    pub host: &'a Host,
    /// Called for every step of a retry.
    pub on_step: &'a (dyn Fn(SummaryStep) -> BoxFuture<'a, ()> + Send + Sync),
}

/// A step in retrying a summary request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SummaryStep {
    /// A retry is scheduled.
    Scheduled {
        /// Number of the retry, starting at 1.
        attempt: u32,
        /// Maximum number of retries.
        max_attempts: u32,
        /// Delay before the retry.
        delay: Duration,
        /// The error that caused it.
        error_message: String,
    },
    /// The retry starts.
    Started,
    /// Retrying ended, successfully or not.
    Finished,
}

impl fmt::Debug for SummaryModel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SummaryModel").field("focus", &self.focus).finish_non_exhaustive()
    }
}

/// Name of the history request in error messages.
const HISTORY: &str = "Summarization";
const PREFIX: &str = "Turn prefix summarization";

impl Strategy for SummaryModel<'_> {
    fn summarise<'a>(
        &'a self,
        preparation: &'a Preparation,
        cancel: &'a Cancel,
    ) -> BoxFuture<'a, Result<Summarised, CompactError>> {
        Box::pin(async move {
            let mut usage = None;
            let summary = self.summarise_all(preparation, cancel, &mut usage).await?;
            Ok(Summarised { summary, usage, ..Summarised::default() })
        })
    }
}

impl SummaryModel<'_> {
    async fn summarise_all(
        &self,
        preparation: &Preparation,
        cancel: &Cancel,
        usage: &mut Option<Usage>,
    ) -> Result<String, CompactError> {
        let previous = preparation.previous_summary.as_deref().map(stripped);
        let reserve = preparation.settings.reserve_tokens;
        let history = if preparation.messages_to_summarise.is_empty() {
            None
        } else {
            let room = self.room(reserve);
            let mut so_far = previous.clone();
            for part in parts(&preparation.messages_to_summarise, room) {
                let text = history_prompt(&part, so_far.as_deref(), self.focus.as_deref());
                so_far = Some(self.ask(HISTORY, text, reserve * 4 / 5, cancel, usage).await?);
            }
            so_far
        };
        if !preparation.is_split_turn || preparation.turn_prefix.is_empty() {
            return Ok(history.or(previous).unwrap_or_else(|| instructions::NO_HISTORY.to_owned()));
        }
        // Sequential: small plans allow one request at a time.
        let history = history.or(previous).unwrap_or_else(|| instructions::NO_HISTORY.to_owned());
        let text = prefix_prompt(&preparation.turn_prefix, self.focus.as_deref());
        let prefix = self.ask(PREFIX, text, reserve / 2, cancel, usage).await?;
        Ok(format!("{history}{}{prefix}", instructions::SPLIT_SEPARATOR))
    }

    /// Returns how many UTF-16 units of conversation fit into one request.
    fn room(&self, reserve: u64) -> usize {
        if self.context_window == 0 {
            return usize::MAX;
        }
        let tokens = self.context_window - reserve.min(self.context_window / 2);
        usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX)
    }

    /// Sends one request and returns the text of the answer. `what` names the request in errors; its usage is added to `usage`.
    ///
    /// # Errors
    /// [`CompactError::Cancelled`], or [`CompactError::Summary`] if the answer failed, is empty or was truncated.
    pub fn ask<'a>(
        &'a self,
        what: &'static str,
        text: String,
        max_tokens: u64,
        cancel: &'a Cancel,
        usage: &'a mut Option<Usage>,
    ) -> BoxFuture<'a, Result<String, CompactError>> {
        Box::pin(async move {
            let prompt = SummaryPrompt { system: instructions::SYSTEM, text, max_tokens };
            let end = self.answer(&prompt, cancel, usage).await?;
            let failed = |message: &str| CompactError::Summary { what, message: message.to_owned(), source: None };
            match end.message.stop_reason {
                _ if cancel.is_cancelled() => return Err(CompactError::Cancelled),
                StopReason::Aborted => return Err(CompactError::Cancelled),
                StopReason::Error => {
                    let message = end.message.error_message.clone().unwrap_or_else(|| "Unknown error".to_owned());
                    return Err(CompactError::Summary { what, message, source: end.error });
                }
                StopReason::Length => return Err(failed("the summary reached the output limit")),
                _ => {}
            }
            let summary = end.message.text("\n");
            if summary.trim().is_empty() { Err(failed("the summary is empty")) } else { Ok(summary) }
        })
    }

    /// Sends a request and retries it until a retry cannot improve the answer.
    async fn answer(
        &self,
        prompt: &SummaryPrompt,
        cancel: &Cancel,
        usage: &mut Option<Usage>,
    ) -> Result<Finished, CompactError> {
        let mut attempt = 0;
        let mut repeats = false;
        loop {
            let end = self.provider.stream((self.build)(prompt.clone()), cancel.clone()).collect_end().await;
            match usage {
                Some(usage) => usage.add(&end.message.usage),
                None => *usage = Some(end.message.usage),
            }
            let next = match &self.retry {
                Some(retry) if !cancel.is_cancelled() && !self.is_overflow(&end) => {
                    retry.plan.retry(&mut attempt, &end.message, end.error.as_deref()).map(|again| (retry, again))
                }
                _ => None,
            };
            let Some((retry, RetryDecision::After { attempt, nominal, at_least })) = next else {
                if repeats && let Some(retry) = &self.retry {
                    (retry.on_step)(SummaryStep::Finished).await;
                }
                return Ok(end);
            };
            repeats = true;
            let error_message = end.message.error_message.clone().unwrap_or_default();
            let max_attempts = retry.plan.max_retries;
            (retry.on_step)(SummaryStep::Scheduled { attempt, max_attempts, delay: nominal, error_message }).await;
            let pause = TurnRetry::wait(nominal, at_least, retry.host.ids().fraction());
            if cancel.run(tokio::time::sleep(pause)).await.is_err() {
                (retry.on_step)(SummaryStep::Finished).await;
                return Err(CompactError::Cancelled);
            }
            (retry.on_step)(SummaryStep::Started).await;
        }
    }

    fn is_overflow(&self, end: &Finished) -> bool {
        let (error, context_window) = (end.error.as_deref(), self.context_window);
        recovery::is_overflow(&FailedAnswer {
            message: &end.message,
            error,
            context_window,
            same_model: true,
            output_limit: 0,
        })
    }
}

/// Splits the text of a conversation into parts that fit, oldest first; returns at least one.
fn parts(messages: &[Arc<Message>], room: usize) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut size = 0;
    for item in serialise::items(messages) {
        let units = utf16_len(&item) + 2;
        match parts.last_mut() {
            Some(part) if size + units <= room => {
                part.push_str("\n\n");
                part.push_str(&item);
                size += units;
            }
            _ => {
                size = units;
                parts.push(item);
            }
        }
    }
    if parts.is_empty() {
        parts.push(String::new());
    }
    parts
}

/// Builds the prompt that summarises a history or updates an earlier summary.
pub fn history_prompt(conversation: &str, previous: Option<&str>, focus: Option<&str>) -> String {
    let mut text = format!("<conversation>\n{conversation}\n</conversation>\n\n");
    if let Some(previous) = previous {
        text.push_str(&format!("<previous-summary>\n{previous}\n</previous-summary>\n\n"));
    }
    text.push_str(if previous.is_some() { instructions::UPDATE } else { instructions::INITIAL });
    focused(text, focus)
}

/// Builds the prompt that summarises the first part of a split turn.
pub fn prefix_prompt(messages: &[Arc<Message>], focus: Option<&str>) -> String {
    let conversation = serialise::conversation(messages);
    focused(format!("# Conversation\n{conversation}\n\n# Instructions\n{}", instructions::TURN_PREFIX), focus)
}

pub(super) fn focused(mut text: String, focus: Option<&str>) -> String {
    if let Some(focus) = focus.filter(|focus| !focus.trim().is_empty()) {
        text.push_str(&format!("\n\nAdditional focus: {focus}"));
    }
    text
}

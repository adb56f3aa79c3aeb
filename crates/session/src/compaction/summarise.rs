//! Summaries by a model: the requests and what makes of an answer a summary.

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
use crate::recovery::{self, Again, FailedAnswer, TurnRetry};

/// One summary request, from which the session builds the [`Request`] with model, credentials and thinking level.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SummaryPrompt {
    /// The system prompt.
    pub system: &'static str,
    /// The only message.
    pub text: String,
    /// Tokens the answer may have; the builder takes the model's limit where that is lower.
    pub max_tokens: u64,
}

/// Builds the request of a summary: no tools, no cache writes, a routing session of its own.
pub type BuildRequest<'a> = &'a (dyn Fn(SummaryPrompt) -> Request + Send + Sync);

/// Lets a model make the summaries.
pub struct SummaryModel<'a> {
    /// Who answers.
    pub provider: &'a dyn Provider,
    /// Builds the requests.
    pub build: BuildRequest<'a>,
    /// What the summary is to look at in particular.
    pub focus: Option<String>,
    /// Tokens of the model's window; 0 = unknown. Longer conversations are summarised in parts.
    pub context_window: u64,
    /// How requests are repeated that failed for a while only; `None`: not at all.
    pub retry: Option<SummaryRetry<'a>>,
}

/// How failed summary requests are repeated.
#[derive(Clone, Copy)]
pub struct SummaryRetry<'a> {
    /// How often, and after which waits.
    pub plan: TurnRetry,
    /// Gives the chance that spreads the waits.
    pub host: &'a Host,
    /// Called for every retry.
    pub on_step: &'a (dyn Fn(SummaryStep) -> BoxFuture<'a, ()> + Send + Sync),
}

/// What happens to a summary request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SummaryStep {
    /// It will be sent again.
    Scheduled {
        /// Which repetition, counted from 1.
        attempt: u32,
        /// How many there may be.
        max_attempts: u32,
        /// How long it waits.
        delay: Duration,
        /// What went wrong.
        error_message: String,
    },
    /// It is sent again.
    Started,
    /// Repeating is over, well or badly.
    Finished,
}

impl fmt::Debug for SummaryModel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SummaryModel").field("focus", &self.focus).finish_non_exhaustive()
    }
}

/// What goes wrong with the history's request is named like this.
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
            Ok(Summarised { summary, usage, by_extension: None })
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
        // One after the other: endpoints of small plans take one request at a time.
        let history = history.or(previous).unwrap_or_else(|| instructions::NO_HISTORY.to_owned());
        let text = prefix_prompt(&preparation.turn_prefix, self.focus.as_deref());
        let prefix = self.ask(PREFIX, text, reserve / 2, cancel, usage).await?;
        Ok(format!("{history}{}{prefix}", instructions::SPLIT_SEPARATOR))
    }

    /// Units of conversation that fit into one request.
    fn room(&self, reserve: u64) -> usize {
        if self.context_window == 0 {
            return usize::MAX;
        }
        let tokens = self.context_window - reserve.min(self.context_window / 2);
        usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX)
    }

    /// Sends one request and takes the text of its answer. `what` names it in errors; what it cost is added to `usage`.
    ///
    /// # Errors
    /// [`CompactError::Cancelled`], or [`CompactError::Summary`] if the answer failed, is empty or was cut off.
    pub async fn ask(
        &self,
        what: &'static str,
        text: String,
        max_tokens: u64,
        cancel: &Cancel,
        usage: &mut Option<Usage>,
    ) -> Result<String, CompactError> {
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
    }

    /// Sends a request until its answer is one that no repetition can better.
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
                    retry.plan.again(&mut attempt, &end.message, end.error.as_deref()).map(|again| (retry, again))
                }
                _ => None,
            };
            let Some((retry, Again::After { attempt, nominal, at_least })) = next else {
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

/// The conversation's text in parts that fit, oldest first; at least one.
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

/// The request for the summary of a history, or for an earlier one brought up to date.
pub fn history_prompt(conversation: &str, previous: Option<&str>, focus: Option<&str>) -> String {
    let mut text = format!("<conversation>\n{conversation}\n</conversation>\n\n");
    if let Some(previous) = previous {
        text.push_str(&format!("<previous-summary>\n{previous}\n</previous-summary>\n\n"));
    }
    text.push_str(if previous.is_some() { instructions::UPDATE } else { instructions::INITIAL });
    focused(text, focus)
}

/// The request for the summary of the first part of a turn.
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

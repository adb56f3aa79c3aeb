//! All texts for people, in one table. A host can replace any of them, for example to translate them.
//!
//! Texts that only programs read, and those of providers and tools, are not included.
//!
//! ```
//! use pinch_replies::texts::{Phrase, TextTable};
//!
//! let texts = TextTable::default().replace(Phrase::Timeout, "Die Anfrage an das Modell dauerte zu lange.")?;
//! assert_eq!(texts.get(Phrase::Timeout), "Die Anfrage an das Modell dauerte zu lange.");
//! assert_eq!(Phrase::parse("error.timeout"), Some(Phrase::Timeout));
//! # Ok::<(), pinch_replies::texts::TextsError>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Declares the phrases: `Name "id" = "English text"`.
macro_rules! phrases {
    ($($name:ident $id:literal = $english:literal;)*) => {
        /// A text for people. `{name}` in it is a placeholder for a value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Phrase {
            $(#[doc = $english] $name,)*
        }

        impl Phrase {
            /// All phrases.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns its id, which translation files use.
            pub fn id(self) -> &'static str {
                match self {
                    $(Self::$name => $id,)*
                }
            }

            /// Returns its English text.
            pub fn english(self) -> &'static str {
                match self {
                    $(Self::$name => $english,)*
                }
            }
        }
    };
}

phrases! {
    ContextOverflow "error.context_overflow" = "Context overflow: prompt too large for the model. Try /reset (or /new) to start a fresh session, or use a larger-context model.";
    RoleOrdering "error.role_ordering" = "Message ordering conflict - please try again. If this persists, use /new to start a fresh session.";
    Overloaded "error.overloaded" = "The AI service is temporarily overloaded. Please try again in a moment.";
    RateLimit "error.rate_limit" = "⚠️ API rate limit reached. Please try again later.";
    Timeout "error.timeout" = "LLM request timed out.";
    UnknownError "error.unknown" = "LLM request failed with an unknown error.";
    ReasoningRequired "error.reasoning_required" = "Reasoning is required for this model endpoint. Use /think minimal (or any non-off level) and try again.";
    InvalidStream "error.invalid_stream" = "LLM request failed: provider returned an invalid streaming response. Please try again.";
    MissingToolInput "error.missing_tool_input" = "Session history looks corrupted (tool call input missing). Use /new to start a fresh session. If this keeps happening, reset the session or delete the corrupted session transcript.";
    AtCapacity "error.at_capacity" = "⚠️ Selected model is at capacity. Try a different model, or wait and retry.";
    DiskFull "error.disk_full" = "The disk is full: session data could not be written. Free some space and try again.";
    LoginExpired "error.login_expired" = "The login has expired and could not be renewed. Log in again, then retry.";
    LoginBusy "error.login_busy" = "The login is being renewed elsewhere. Please try again in a moment.";
    LoginSlow "error.login_slow" = "Renewing the login timed out. Please try again.";
    LoginPage "error.login_page" = "The provider refused the login with a web page. Log in again, then retry.";
    HtmlPage "error.html_page" = "The provider returned an HTML error page instead of an API response. Please try again, or check the provider's status.";
    Proxy "error.proxy" = "A proxy or tunnel blocked the request to the provider. Check the proxy settings.";
    Schema "error.schema" = "LLM request failed: the provider rejected the request schema or tool payload.";
    Replay "error.replay" = "Session history or replay state is invalid. Use /new to start a fresh session.";
    Rejected "error.rejected" = "LLM request rejected: {message}";
    ConnectionRefused "error.connection_refused" = "LLM request failed: connection refused by the provider endpoint.";
    ConnectionLost "error.connection_lost" = "LLM request failed: network connection was interrupted.";
    DnsFailed "error.dns" = "LLM request failed: DNS lookup for the provider endpoint failed.";
    Unreachable "error.unreachable" = "LLM request failed: the provider endpoint is unreachable from this host.";
    NetworkError "error.network" = "LLM request failed: network connection error.";
    Billing "error.billing" = "⚠️ {who} returned a billing error — your API key has run out of credits or has an insufficient balance. Check your {whose} billing dashboard and top up or switch to a different API key.";
    BillingWho "error.billing_who" = "API provider";
    BillingWhose "error.billing_whose" = "provider's";
    ImageSize "error.image_size" = "Image too large for the model. Please compress or resize the image and try again.";
    ImageSizeMax "error.image_size_max" = "Image too large for the model (max {mb}MB). Please compress or resize the image and try again.";
    Cooldown "error.cooldown" = "API temporarily unavailable: all {n} {provider} profiles are cooling down{why}.";
    NextTry "error.next_try" = "Next try possible in {time}.";
    NotStarted "error.not_started" = "The time limit of the run was reached before it could start.";
    Cancelled "error.cancelled" = "The run was cancelled.";
    TimedOut "error.timed_out" = "The request timed out before an answer was ready. Please try again, or raise agents.defaults.timeoutSeconds in the configuration.";
    NoAnswer "error.no_answer" = "The agent couldn't generate a response. Please try again.";
    NoAnswerVerify "error.no_answer_verify" = "The agent couldn't generate a response. Tools that change things have run: please verify what was done before you try again.";
    RunRejected "error.run_rejected" = "The message was not processed: it was rejected by a rule of this agent.";
    Budget "error.budget" = "The limit of this run is reached ({spent}).";
    BudgetTokens "error.budget_tokens" = "tokens: {used} of {limit}";
    BudgetCost "error.budget_cost" = "US dollars: {used} of {limit}";
    BudgetSeconds "error.budget_seconds" = "seconds: {used} of {limit}";
    BudgetAttempts "error.budget_attempts" = "attempts: {used} of {limit}";
    Busy "error.busy" = "{why}";
    Draining "error.draining" = "the engine is shutting down and starts no more runs";
    Config "error.config" = "{why}";
    NoModel "error.no_model" = "No model is configured and no key was found. Set a key such as ANTHROPIC_API_KEY, or name a model with agents.defaults.model.primary in pinch.json";
    UnknownModel "error.unknown_model" = "Unknown model: {name}";
    AmbiguousModel "error.ambiguous_model" = "{why}";
    Internal "error.internal" = "{why}";
    NoCredential "error.no_credential" = "{why}";
    WindowTooSmall "error.window_too_small" = "Model context window too small ({tokens} tokens). Minimum is {min}.";
    RetryLimit "error.retry_limit" = "Request failed after repeated internal retries. Please try again, or use /new to start a fresh session.";
    RequestRateLimited "error.request_rate_limited" = "LLM request rate limited.";
    RequestBilling "error.request_billing" = "LLM request failed: billing.";
    RequestUnauthorized "error.request_unauthorized" = "LLM request unauthorized.";
    RequestFailed "error.request_failed" = "LLM request failed.";
    ProviderError "error.provider" = "LLM error";
    Seconds "time.seconds" = "{n} seconds";
    Second "time.second" = "1 second";
    Minutes "time.minutes" = "{n} minutes";
    Minute "time.minute" = "1 minute";
    Hours "time.hours" = "{n} hours";
    Hour "time.hour" = "1 hour";
    ToolFailed "tool.failed" = "⚠️ {tool} failed";
    ToolFailedWhy "tool.failed_why" = "⚠️ {tool} failed: {error}";
    NoOutput "tool.no_output" = "(no output)";
    Reasoning "reply.reasoning" = "Reasoning:";
    FileTooLarge "reply.file_too_large" = "⚠️ {file} is larger than {mb} MB and was not sent.";
    Usage "reply.usage" = "Usage: {input} in / {output} out";
    UsageCost "reply.usage_cost" = "Usage: {input} in / {output} out · est. ${cost}";
    Queued "notice.queued" = "Waiting for an earlier run of this conversation to finish.";
    Retrying "notice.retrying" = "The model is not available right now. Trying again in {time}.";
    FailedOver "notice.failed_over" = "The model failed. Continuing with {model}.";
    Compacting "notice.compacting" = "The conversation is getting long and is being summarized.";
    Compacted "notice.compacted" = "Earlier parts of the conversation were summarized.";
}

impl Phrase {
    /// Finds a phrase by its id.
    pub fn parse(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|phrase| phrase.id() == id)
    }
}

/// Why a text cannot replace a phrase.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextsError {
    /// No phrase has this id.
    #[error("there is no text with the id \"{0}\"")]
    UnknownId(String),
    /// The placeholders of the text differ from those of the phrase.
    #[error("the text of \"{id}\" must contain the placeholders {expected}, and no others")]
    Values {
        /// Id of the phrase.
        id: &'static str,
        /// The placeholders it must contain.
        expected: String,
    },
}

/// The texts of an engine; English unless replaced. Clones share the replacements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextTable(Arc<BTreeMap<Phrase, String>>);

impl TextTable {
    /// Replaces a text.
    ///
    /// # Errors
    /// [`TextsError::Values`] if its placeholders differ from those of the phrase.
    pub fn replace(mut self, phrase: Phrase, text: impl Into<String>) -> Result<Self, TextsError> {
        let text = text.into();
        let expected = values_of(phrase.english());
        if values_of(&text) != expected {
            let expected = expected.iter().map(|name| format!("{{{name}}}")).collect::<Vec<_>>().join(", ");
            let expected = if expected.is_empty() { "(none)".to_owned() } else { expected };
            return Err(TextsError::Values { id: phrase.id(), expected });
        }
        Arc::make_mut(&mut self.0).insert(phrase, text);
        Ok(self)
    }

    /// Replaces texts by the ids of their phrases, as in translation files.
    ///
    /// # Errors
    /// The [`TextsError`] of the first invalid text.
    pub fn replace_all<'a>(self, texts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, TextsError> {
        texts.into_iter().try_fold(self, |all, (id, text)| {
            let phrase = Phrase::parse(id).ok_or_else(|| TextsError::UnknownId(id.to_owned()))?;
            all.replace(phrase, text)
        })
    }

    /// Returns the text of a phrase with its placeholders.
    pub fn get(&self, phrase: Phrase) -> &str {
        self.0.get(&phrase).map_or(phrase.english(), String::as_str)
    }

    /// Returns the text of a phrase with its values filled in.
    pub fn fill<const N: usize>(&self, phrase: Phrase, values: [(&str, &str); N]) -> String {
        let mut rest = self.get(phrase);
        let mut text = String::with_capacity(rest.len() + 32);
        // A value is never searched for placeholders.
        while let Some((start, name, end)) = next_value(rest) {
            text.push_str(&rest[..start]);
            match values.iter().find(|(known, _)| *known == name) {
                Some((_, value)) => text.push_str(value),
                None => text.push_str(&rest[start..end]),
            }
            rest = &rest[end..];
        }
        text.push_str(rest);
        text
    }
}

/// Returns the first `{name}` in a text: its start, its name, and its end.
fn next_value(text: &str) -> Option<(usize, &str, usize)> {
    let start = text.find('{')?;
    let end = start + text[start..].find('}')?;
    Some((start, &text[start + 1..end], end + 1))
}

fn values_of(text: &str) -> BTreeSet<&str> {
    let (mut rest, mut names) = (text, BTreeSet::new());
    while let Some((_, name, end)) = next_value(rest) {
        names.insert(name);
        rest = &rest[end..];
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_name_their_phrases() {
        for phrase in Phrase::ALL {
            assert_eq!(Phrase::parse(phrase.id()), Some(*phrase));
        }
    }

    #[test]
    fn a_text_must_have_the_placeholders_of_its_phrase() {
        let wrong = TextTable::default().replace(Phrase::NextTry, "Bald.").unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "the text of \"error.next_try\" must contain the placeholders {time}, and no others"
        );
        let unknown = TextTable::default().replace_all([("error.typo", "x")]).unwrap_err();
        assert_eq!(unknown, TextsError::UnknownId("error.typo".into()));
        let texts = TextTable::default().replace_all([("error.next_try", "Nochmal in {time}.")]).unwrap();
        assert_eq!(texts.fill(Phrase::NextTry, [("time", "{time} 3")]), "Nochmal in {time} 3.");
    }
}

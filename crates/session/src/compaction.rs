//! Compaction: replacing the part of a conversation that no longer fits into a model's context with a summary.
//!
//! [`due`] decides when to compact, [`prepare()`] what, and a [`Strategy`] how; [`compact`] runs them and appends the entry. Nothing is
//! removed from the log: the entry names the first entry that the model still sees unchanged.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_llm::message::Usage;
use pinch_stdx::cancel::Cancel;
use serde_json::Value;

pub mod estimate;
pub mod file_list;
pub mod cut;
pub mod prepare;
pub mod instructions;
pub mod serialise;
pub mod summarise;
pub mod branch;
pub mod hooks;
pub mod rules;

pub use hooks::{NoSummaryHooks, SummaryHooks};
pub use prepare::{Preparation, prepare, prepare_log};
pub use rules::{CompactionRules, ModelCompaction};
pub use summarise::{SummaryModel, SummaryPrompt, SummaryRetry, SummaryStep};

use crate::entry::{Compaction, EntryBody, EntryId};
use crate::session_log::SessionLog;
use crate::store::StoreError;

/// When to compact, and how much to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionSettings {
    /// Whether compaction runs automatically. Manual compaction always works.
    pub enabled: bool,
    /// What triggers automatic compaction.
    pub mode: CompactionMode,
    /// Tokens of the window reserved for the next answer.
    pub reserve_tokens: u64,
    /// Tokens of recent messages that are kept verbatim.
    pub keep_recent_tokens: u64,
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self { enabled: true, mode: CompactionMode::Threshold, reserve_tokens: 16_384, keep_recent_tokens: 20_000 }
    }
}

/// What triggers automatic compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompactionMode {
    /// A context that approaches or overflows the window.
    #[default]
    Threshold,
    /// Only a context that overflows the window.
    Overflow,
}

/// Returns whether a context of `tokens` should be compacted before the next request. A window of 0 means unknown and never triggers
/// compaction.
pub fn due(settings: &CompactionSettings, tokens: u64, context_window: u64) -> bool {
    settings.enabled
        && settings.mode == CompactionMode::Threshold
        && context_window > 0
        && tokens > threshold(settings, context_window)
}

/// Returns the largest context that needs no compaction: the window without the reserve, which is at most half of it.
fn threshold(settings: &CompactionSettings, context_window: u64) -> u64 {
    context_window - settings.reserve_tokens.min(context_window / 2)
}

/// Why a session is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionReason {
    /// The user or the host requested it.
    Manual,
    /// The context approached the window.
    Threshold,
    /// The provider rejected a request as too long.
    Overflow,
}

impl CompactionReason {
    /// Returns the name used in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Threshold => "threshold",
            Self::Overflow => "overflow",
        }
    }
}

/// Why a compaction failed; the log is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// The last entry already is a compaction.
    #[error("Already compacted")]
    AlreadyCompacted,
    /// Everything is recent enough to keep.
    #[error("Nothing to compact (session too small)")]
    NothingToCompact,
    /// The caller or an extension cancelled it.
    #[error("Compaction cancelled")]
    Cancelled,
    /// The summary request failed.
    #[error("{what} failed: {message}")]
    Summary {
        /// Which summary request failed.
        what: &'static str,
        /// The provider's error message.
        message: String,
        /// The typed error, if a request failed.
        #[source]
        source: Option<Arc<pinch_llm::error::LlmError>>,
    },
    /// The entry could not be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A summary, made by a model or an extension.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Summarised {
    /// The text of the summary.
    pub summary: String,
    /// Tokens and cost of making it.
    pub usage: Option<Usage>,
    /// Overrides from an extension; an extension's summary is stored unchanged.
    pub by_extension: Option<ByExtension>,
    /// Rules that follow the summary and its file lists, in `<workspace-critical-rules>`.
    pub rules: Option<String>,
}

impl Summarised {
    /// Creates a summary without usage.
    pub fn new(summary: impl Into<String>) -> Self {
        Self { summary: summary.into(), ..Self::default() }
    }

    /// Marks the summary as made by an extension.
    #[must_use]
    pub fn with_extension(mut self, by_extension: ByExtension) -> Self {
        self.by_extension = Some(by_extension);
        self
    }
}

/// Overrides that an extension supplies with its summary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByExtension {
    /// The first entry to keep, instead of the prepared one.
    pub first_kept_entry_id: Option<EntryId>,
    /// Token count before compaction, instead of the estimate.
    pub tokens_before: Option<u64>,
    /// Machine-readable details.
    pub details: Option<Value>,
}

/// Makes summaries; implemented by [`SummaryModel`] and by extensions.
pub trait Strategy: Send + Sync {
    /// Summarises the prepared messages.
    fn summarise<'a>(
        &'a self,
        preparation: &'a Preparation,
        cancel: &'a Cancel,
    ) -> BoxFuture<'a, Result<Summarised, CompactError>>;
}

/// A completed compaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Compacted {
    /// Id of the compaction entry.
    pub entry_id: EntryId,
    /// What triggered it.
    pub reason: CompactionReason,
    /// The summary, as stored.
    pub summary: String,
    /// The first entry that is kept.
    pub first_kept_entry_id: EntryId,
    /// Tokens of the context before compaction.
    pub tokens_before: u64,
    /// Estimated tokens of the context after compaction.
    pub estimated_tokens_after: u64,
    /// Messages of the context after compaction, without system messages.
    pub messages_after: usize,
    /// Machine-readable details.
    pub details: Option<Value>,
    /// Tokens and cost of the summary.
    pub usage: Option<Usage>,
    /// Whether an extension made the summary.
    pub from_extension: bool,
}

/// Compacts the active branch of a log.
///
/// # Errors
/// See [`CompactError`]; on failure nothing is appended.
pub fn compact<'a>(
    log: &'a mut SessionLog,
    settings: &'a CompactionSettings,
    strategy: &'a dyn Strategy,
    reason: CompactionReason,
    cancel: &'a Cancel,
) -> BoxFuture<'a, Result<Compacted, CompactError>> {
    Box::pin(async move {
        let preparation = prepare_log(log, settings)?;
        let made = strategy.summarise(&preparation, cancel).await?;
        if cancel.is_cancelled() {
            return Err(CompactError::Cancelled);
        }
        store(log, preparation, made, reason).await
    })
}

/// Appends a compaction entry.
///
/// # Errors
/// Fails if the entry cannot be written.
pub fn store(
    log: &mut SessionLog,
    preparation: Preparation,
    made: Summarised,
    reason: CompactionReason,
) -> BoxFuture<'_, Result<Compacted, CompactError>> {
    Box::pin(async move {
        let from_extension = made.by_extension.is_some();
        let (summary, details) = match &made.by_extension {
            Some(by) => (made.summary, by.details.clone()),
            None => {
                let mut text = finished(&made.summary, &preparation);
                if let Some(rules) = &made.rules {
                    text.push_str(&format!("\n\n<{RULES_BLOCK}>\n{rules}\n</{RULES_BLOCK}>"));
                }
                (text, Some(preparation.files.details()))
            }
        };
        let by = made.by_extension.unwrap_or_default();
        let first_kept_entry_id = by.first_kept_entry_id.unwrap_or(preparation.first_kept_entry_id);
        let tokens_before = by.tokens_before.unwrap_or(preparation.tokens_before);
        let before = estimate::estimated_tokens(&log.context().messages);
        let entry = Compaction {
            summary: summary.clone(),
            first_kept_entry_id: Some(first_kept_entry_id.clone()),
            tokens_before,
            details: details.clone(),
            from_hook: Some(from_extension),
            usage: made.usage,
            system_message: prepare::system_state(&log.context().messages),
        };
        let entry_id = log.append(EntryBody::Compaction(entry)).await?;
        let context = log.context();
        let estimated_tokens_after = estimate::tokens_of(&context).tokens;
        let estimated_tokens_saved = before.saturating_sub(estimate::estimated_tokens(&context.messages));
        let messages_after = prepare::n_messages(&context.messages);
        // Less than a tenth of the context, which includes the system prompt and the tools.
        log.note_saving(estimated_tokens_saved < tokens_before / 10);
        tracing::info!(reason = reason.as_str(), tokens_before, tokens_after = estimated_tokens_after, "compacted");
        Ok(Compacted {
            entry_id,
            reason,
            summary,
            first_kept_entry_id,
            tokens_before,
            estimated_tokens_after,
            messages_after,
            details,
            usage: made.usage,
            from_extension,
        })
    })
}

/// Name of the block with the rules of a workspace.
const RULES_BLOCK: &str = "workspace-critical-rules";
/// UTF-16 units of the last request that the summary repeats; a longer one is shortened in the middle.
const MAX_REQUEST: usize = 4_000;
const REQUEST_HEAD: usize = 3_000;
const REQUEST_TAIL: usize = 1_000;

/// Returns the summary with the verbatim text and file lists appended.
pub fn finished(summary: &str, preparation: &Preparation) -> String {
    let mut text = summary.to_owned();
    for pinned in &preparation.verbatim.pinned {
        text.push_str(&format!("\n\n<pinned>\n{pinned}\n</pinned>"));
    }
    if let Some(request) = &preparation.verbatim.last_user_request {
        let request = shortened(request);
        text.push_str(&format!("\n\n<last-user-request>\n{request}\n</last-user-request>"));
    }
    text.push_str(&preparation.files.text());
    text
}

fn shortened(request: &str) -> String {
    let n_chars = request.chars().count();
    if n_chars <= MAX_REQUEST {
        return request.to_owned();
    }
    let head: String = request.chars().take(REQUEST_HEAD).collect();
    let tail: String = request.chars().skip(n_chars - REQUEST_TAIL).collect();
    format!("{head}[... {} characters omitted ...]{tail}", n_chars - REQUEST_HEAD - REQUEST_TAIL)
}

/// Strips the blocks that were appended to an earlier summary; they are rebuilt each time.
pub fn stripped(summary: &str) -> String {
    let without_rules = cut_blocks(summary, &[RULES_BLOCK]);
    cut_blocks(&file_list::strip(&without_rules), &["pinned", "last-user-request"])
}

/// Cuts trailing blocks with these names off a text, in any order.
fn cut_blocks(text: &str, names: &[&str]) -> String {
    let mut rest = text.trim_end();
    let mut at_end = true;
    while at_end {
        at_end = false;
        for name in names {
            let Some(inside) = rest.strip_suffix(&format!("\n</{name}>")) else { continue };
            let Some(start) = inside.rfind(&format!("<{name}>\n")) else { continue };
            rest = rest[..start].trim_end();
            at_end = true;
        }
    }
    if rest.len() == text.trim_end().len() { text.to_owned() } else { rest.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compaction_is_due_at_the_reserve() {
        let settings = CompactionSettings { reserve_tokens: 100, ..Default::default() };
        assert!(!due(&settings, 900, 1000));
        assert!(due(&settings, 901, 1000));
        assert!(!due(&settings, 901, 0), "an unknown window is never full");
        assert!(!due(&settings, 50, 100) && due(&settings, 51, 100), "the reserve is at most half of the window");
        assert!(!due(&CompactionSettings { enabled: false, ..settings }, 901, 1000));
        assert!(!due(&CompactionSettings { mode: CompactionMode::Overflow, ..settings }, 901, 1000));
    }

    #[test]
    fn added_blocks_are_cut_off_again() {
        let text = "S\n\n<pinned>\na\n</pinned>\n\n<pinned>\nb\n</pinned>\n\n<last-user-request>\nc\n</last-user-request>\n\n<read-files>\nx\n</read-files>\n\n<modified-files>\ny\n</modified-files>";
        assert_eq!(stripped(text), "S");
        assert_eq!(stripped("S <pinned>\n"), "S <pinned>\n");
    }

    #[test]
    fn long_requests_are_shortened_in_the_middle() {
        let text = format!("{}{}", "a".repeat(3000), "b".repeat(1500));
        let short = shortened(&text);
        assert!(short.starts_with('a') && short.ends_with('b') && short.contains("[... 500 characters omitted ...]"));
    }
}

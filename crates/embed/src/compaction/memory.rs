//! Memory flush: when an agent is asked to save memories before a compaction, and how.

use crate::config::memory_flush::MemoryFlushConfig;
use crate::replies::tokens::SILENT;

/// Size of a session before its next run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionSize {
    /// Tokens in its context after the last run.
    pub(crate) total_tokens: u64,
    /// The window of the model.
    pub(crate) window: u64,
    /// Tokens that are always reserved.
    pub(crate) reserve_tokens: u64,
    /// Number of compactions so far.
    pub(crate) n_compactions: u64,
    /// Number of compactions when the agent was last asked.
    pub(crate) asked_at: Option<u64>,
    /// Length of its transcript, in bytes, now and when the agent was last asked.
    pub(crate) transcript_bytes: u64,
    pub(crate) asked_at_bytes: u64,
}

/// Returns whether to ask the agent now: a compaction is near or much was said, and the agent has not been asked since the last compaction.
pub(crate) fn is_due(config: &MemoryFlushConfig, session: SessionSize) -> bool {
    let threshold = session.window.saturating_sub(session.reserve_tokens).saturating_sub(config.soft_threshold_tokens);
    let is_near = threshold > 0 && session.total_tokens >= threshold;
    let new_bytes = session.transcript_bytes.saturating_sub(session.asked_at_bytes);
    let is_much = config.force_transcript_bytes > 0 && new_bytes >= config.force_transcript_bytes;
    config.enabled && (is_near || is_much) && session.asked_at != Some(session.n_compactions)
}

/// Placeholder for the date in texts.
const DATE: &str = "YYYY-MM-DD";

/// Prompts for the agent.
pub(crate) struct FlushTexts {
    pub(crate) prompt: String,
    pub(crate) system_prompt: String,
    /// The file it may append to, relative to the workspace.
    pub(crate) path: String,
}

impl FlushTexts {
    pub(crate) fn new(config: &MemoryFlushConfig, date: &str) -> Self {
        let path = format!("memory/{date}.md");
        let prompt = config.prompt.as_deref().map(|text| with_token(text, date)).unwrap_or_else(|| {
            format!(
                "This conversation will soon be replaced by a summary. Save what must outlast it: facts about the user, decisions, open tasks, \
                 names and numbers that will be needed again. Append your notes to {path} with write, in short lines; what is there already \
                 stays. Then reply with {SILENT} alone. If there is nothing to save, reply with {SILENT} at once."
            )
        });
        let system_prompt = config.system_prompt.as_deref().map(|text| with_token(text, date)).unwrap_or_else(|| {
            format!(
                "## Saving memories\nThe user does not see this turn. Its only purpose is to save lasting notes before the conversation is \
                 compacted. The only file that can be written is {path}, and what you write is appended to it. Answer with {SILENT} unless the \
                 user must be told something."
            )
        });
        Self { prompt, system_prompt, path }
    }
}

/// Returns a configured text with the date filled in, and with a sentence about the silent token if the text does not mention it.
fn with_token(text: &str, date: &str) -> String {
    let text = text.trim().replace(DATE, date);
    match text.contains(SILENT) {
        true => text,
        false => format!("{text}\n\nIf the user need not read anything, reply with {SILENT} alone."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_texts_get_the_date_and_the_silent_token() {
        let config = MemoryFlushConfig {
            prompt: Some(" Save to notes-YYYY-MM-DD.md ".into()),
            system_prompt: Some("Say NO_REPLY.".into()),
            ..MemoryFlushConfig::default()
        };
        let texts = FlushTexts::new(&config, "2026-01-02");
        assert_eq!(
            texts.prompt,
            "Save to notes-2026-01-02.md\n\nIf the user need not read anything, reply with NO_REPLY alone."
        );
        assert_eq!(texts.system_prompt, "Say NO_REPLY.");
        assert_eq!(texts.path, "memory/2026-01-02.md");
        let own = FlushTexts::new(&MemoryFlushConfig::default(), "2026-01-02");
        assert!(own.prompt.contains("memory/2026-01-02.md") && own.prompt.contains(SILENT));
    }

    #[test]
    fn the_agent_is_asked_once_between_two_compactions() {
        let config = MemoryFlushConfig::default();
        let session =
            SessionSize { total_tokens: 176_000, window: 200_000, reserve_tokens: 20_000, ..Default::default() };
        assert!(is_due(&config, session));
        assert!(!is_due(&config, SessionSize { total_tokens: 175_999, ..session }));
        assert!(!is_due(&config, SessionSize { asked_at: Some(0), ..session }));
        assert!(is_due(&config, SessionSize { asked_at: Some(0), n_compactions: 1, ..session }));
        assert!(
            !is_due(&config, SessionSize { window: 24_000, ..session }),
            "so small a window is never far from full"
        );
        assert!(!is_due(&MemoryFlushConfig { enabled: false, ..config }, session));
    }

    #[test]
    fn the_agent_is_asked_when_much_was_said_since_it_last_was() {
        let config = MemoryFlushConfig::default();
        let session = SessionSize { window: 200_000, transcript_bytes: 2 << 20, ..Default::default() };
        assert!(is_due(&config, session));
        assert!(!is_due(&config, SessionSize { transcript_bytes: (2 << 20) - 1, ..session }));
        assert!(!is_due(&config, SessionSize { asked_at: Some(0), ..session }));
        let later = SessionSize { asked_at: Some(0), n_compactions: 1, asked_at_bytes: 2 << 20, ..session };
        assert!(!is_due(&config, later));
        assert!(is_due(&config, SessionSize { transcript_bytes: 4 << 20, ..later }));
        assert!(!is_due(&MemoryFlushConfig { force_transcript_bytes: 0, ..config }, session));
    }
}

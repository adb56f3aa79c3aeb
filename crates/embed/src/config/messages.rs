//! `messages` and `replies`: handling of messages that arrive while a run of their session is active, and the texts of replies.

use std::collections::BTreeMap;
use std::time::Duration;

use pinch_coding_agent::document::Problem;

use super::node::Node;
use crate::replies::directives::TagForms;

/// Handling of a message that arrives while a run of its session is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboxMode {
    /// The run reads it in its next turn. If that is impossible, it is handled as with [`InboxMode::Collect`].
    Steer,
    /// It gets its own run afterwards.
    FollowUp,
    /// A single run afterwards reads all messages that have arrived by then from the same conversation.
    Collect,
    /// The run is stopped, waiting messages are dropped, and this one starts a run immediately.
    Interrupt,
}

impl InboxMode {
    /// Parses the name used in configurations. `queue` and `steer-backlog` are former names of `steer`.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "steer" | "queue" | "steer-backlog" => Self::Steer,
            "followup" => Self::FollowUp,
            "collect" => Self::Collect,
            "interrupt" => Self::Interrupt,
            _ => return None,
        })
    }
}

/// Which message is dropped when too many are waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DropPolicy {
    /// The oldest.
    Old,
    /// The newest.
    New,
    /// The oldest; the model sees its first line with the next message.
    #[default]
    Summarize,
}

impl DropPolicy {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "old" => Self::Old,
            "new" => Self::New,
            "summarize" => Self::Summarize,
            _ => return None,
        })
    }
}

/// `messages.queue`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Mode for channels that are not in `by_channel`.
    pub mode: InboxMode,
    /// Modes of individual channels, by lower-case name.
    pub by_channel: BTreeMap<String, InboxMode>,
    /// How long a session must be quiet before waiting messages start a run.
    pub debounce: Duration,
    /// Maximum number of messages waiting per session.
    pub cap: usize,
    /// Which message is dropped when more arrive.
    pub drop: DropPolicy,
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            mode: InboxMode::Collect,
            by_channel: BTreeMap::new(),
            debounce: Duration::from_millis(1000),
            cap: 20,
            drop: DropPolicy::default(),
        }
    }
}

/// The texts of replies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyTexts {
    /// The text before each reply (`messages.responsePrefix`), unless the channel or account has one of its own.
    pub prefix: Option<String>,
    /// Which forms of reply tags are directives (`replies.shortTags`).
    pub tags: TagForms,
    /// Whether failed tools without side effects are never reported (`messages.suppressToolErrors`).
    pub suppress_tool_errors: bool,
}

impl ReplyTexts {
    /// Reads the settings from the whole document.
    pub(super) fn read(document: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        let messages = document.get("messages");
        let replies = document.get("replies");
        replies.object(problems);
        Self {
            prefix: messages.get("responsePrefix").text(problems),
            tags: match replies.get("shortTags").flag(problems) {
                Some(false) => TagForms::Long,
                Some(true) | None => TagForms::All,
            },
            suppress_tool_errors: messages.get("suppressToolErrors").flag(problems).unwrap_or(false),
        }
    }
}

const MODES: [&str; 6] = ["steer", "followup", "collect", "interrupt", "queue", "steer-backlog"];

impl QueueConfig {
    /// Returns the mode for a channel.
    pub fn mode_of(&self, channel: Option<&str>) -> InboxMode {
        channel.and_then(|channel| self.by_channel.get(&channel.to_lowercase())).copied().unwrap_or(self.mode)
    }

    pub(super) fn read(messages: &Node<'_>, default: &Self, problems: &mut Vec<Problem>) -> Self {
        let queue = messages.get("queue");
        queue.object(problems);
        let channels = queue.get("byChannel").members(problems).into_iter();
        let by_channel = channels
            .filter_map(|(name, mode)| Some((name.to_lowercase(), mode.word(problems, &MODES, InboxMode::parse)?)))
            .collect();
        let cap = queue.get("cap").count(problems).and_then(|cap| usize::try_from(cap).ok());
        Self {
            mode: queue.get("mode").word(problems, &MODES, InboxMode::parse).unwrap_or(default.mode),
            by_channel,
            debounce: queue.get("debounceMs").count(problems).map_or(default.debounce, Duration::from_millis),
            cap: cap.map_or(default.cap, |cap| cap.max(1)),
            drop: queue.get("drop").word(problems, &["old", "new", "summarize"], DropPolicy::parse).unwrap_or_default(),
        }
    }
}

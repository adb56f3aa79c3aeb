//! Folding of long sessions: an entry stands for messages that are not shown until the user scrolls there or searches.

use std::ops::Range;
use std::sync::Arc;

use pinch_llm::message::{Block, Message};

use super::entry::{self, TranscriptEntry};
use super::{Cached, TranscriptView};

/// Number of messages shown when a session is opened, and unfolded at a time.
pub(super) const MAX_SHOWN: usize = 100;
/// Number of bytes of text shown when a session is opened; more would delay the first frame that has it.
const MAX_SHOWN_BYTES: usize = 48 * 1024;
/// Number of messages searched for a better place to begin.
const MAX_MORE: usize = 50;

/// Returns the last index up to `at` where a part of a conversation can begin: at a user message, if one is near, and never between a call
/// and its result.
fn beginning_before(messages: &[Arc<Message>], at: usize) -> usize {
    let before = || messages.iter().take(at + 1).rev().enumerate();
    let user = before().take(MAX_MORE).find(|(_, message)| matches!(***message, Message::User(_)));
    let whole = || before().find(|(_, message)| !matches!(***message, Message::ToolResult(_)));
    user.or_else(whole).map_or(0, |(above, _)| at - above)
}

/// Returns the end of a part that contains at least the messages before `at`.
fn end_after(messages: &[Arc<Message>], at: usize) -> usize {
    at + messages.iter().skip(at).take_while(|message| matches!(***message, Message::ToolResult(_))).count()
}

/// Returns the end of a conversation: a limited number of messages, and of bytes if there is more than one.
fn last_part(messages: &[Arc<Message>]) -> Range<usize> {
    let mut n_bytes = 0;
    let fits = |message: &&Arc<Message>| {
        n_bytes += text_length(message);
        n_bytes <= MAX_SHOWN_BYTES
    };
    let n = messages.iter().rev().take(MAX_SHOWN).take_while(fits).count().max(1);
    beginning_before(messages, messages.len().saturating_sub(n))..messages.len()
}

/// Returns the length of the text that is laid out for a message; of output, only a few lines are.
fn text_length(message: &Message) -> usize {
    match message {
        Message::User(user) => user.content.text("").len(),
        Message::Assistant(answer) => {
            let length = |block: &Arc<Block>| match &**block {
                Block::Text(text) => text.text.len(),
                Block::Thinking(thinking) => thinking.thinking.len(),
                Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => 0,
            };
            answer.content.iter().map(length).sum()
        }
        _ => 0,
    }
}

/// Which of the folded messages to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfold {
    First,
    Last,
    /// Those around this one.
    Around(usize),
}

impl Unfold {
    fn part(self, messages: &[Arc<Message>]) -> Range<usize> {
        let end = |at: usize| end_after(messages, at.min(messages.len()));
        match self {
            Self::First => 0..end(MAX_SHOWN),
            Self::Last => last_part(messages),
            Self::Around(at) => {
                let begin = beginning_before(messages, at.saturating_sub(MAX_SHOWN / 2));
                begin..end(at + MAX_SHOWN / 2)
            }
        }
    }
}

impl TranscriptView {
    /// Shows the end of a session; an entry stands for the messages above it.
    pub(crate) fn load(&mut self, messages: &[Arc<Message>]) {
        let (earlier, shown) = messages.split_at(last_part(messages).start);
        if !earlier.is_empty() {
            self.folded.push(self.entries.len());
            self.push(TranscriptEntry::Earlier(earlier.to_vec()));
        }
        for entry in entry::of_messages(shown) {
            self.push(entry);
        }
    }

    /// Returns the messages that an entry stands for, if it is folded.
    pub(super) fn messages_behind(&self, at: usize) -> Option<&[Arc<Message>]> {
        match &self.entries.get(at)?.entry {
            TranscriptEntry::Earlier(messages) => Some(messages),
            _ => None,
        }
    }

    /// Replaces folded messages with entries. Returns by how much later entries move; `None`: there was nothing to unfold.
    pub(super) fn unfold(&mut self, at: usize, which: Unfold) -> Option<isize> {
        let Some(TranscriptEntry::Earlier(messages)) = self.entries.get_mut(at).map(|cached| &mut cached.entry) else {
            return None;
        };
        let mut above = std::mem::take(messages);
        let part = which.part(&above);
        let below = above.split_off(part.end);
        let shown = above.split_off(part.start);
        let rest = |messages: Vec<_>| (!messages.is_empty()).then_some(TranscriptEntry::Earlier(messages));
        let (above, below) = (rest(above), rest(below));
        let mut folded = Vec::new();
        folded.extend(above.is_some().then_some(at));
        let entries: Vec<TranscriptEntry> = above.into_iter().chain(entry::of_messages(&shown)).collect();
        folded.extend(below.is_some().then_some(at + entries.len()));
        let entries = entries.into_iter().chain(below).map(|entry| Cached { entry, rows: None });
        let n_before = self.entries.len();
        self.entries.splice(at..=at, entries);
        let moved = self.entries.len().cast_signed() - n_before.cast_signed();
        let nth = self.folded.partition_point(|folded| *folded < at);
        for other in self.folded.iter_mut().skip(nth + 1) {
            *other = other.saturating_add_signed(moved);
        }
        self.folded.splice(nth..=nth, folded);
        if self.n_committed > at {
            // The scrollback is past this position.
            self.n_committed = self.n_committed.saturating_add_signed(moved);
        }
        self.viewport.entries_moved(at, moved);
        Some(moved)
    }

    /// Returns the number of messages before an entry, including those of the program itself.
    pub(super) fn n_messages_before(&self, at: usize) -> usize {
        let before = self.folded.iter().take_while(|folded| **folded < at);
        at + before.map(|at| self.messages_behind(*at).map_or(0, |messages| messages.len() - 1)).sum::<usize>()
    }
}

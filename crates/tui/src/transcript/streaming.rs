//! Streaming content: answers whose text may be truncated, and tool calls.

use std::sync::Arc;

use pinch_agent_core::tool::{JsonObject, ToolOutput};
use pinch_llm::message::Message;

use super::entry::{self, TranscriptEntry};
use super::{TranscriptView, prompts_in};

impl TranscriptView {
    /// Shows the messages of a session, with or without its tool calls. Returns the user's texts in it.
    pub(crate) fn load_conversation(&mut self, messages: &[Arc<Message>], with_tools: bool) -> Vec<String> {
        let is_shown = |entry: &TranscriptEntry| with_tools || !matches!(entry, TranscriptEntry::Tool(_));
        entry::of_messages(messages).into_iter().filter(is_shown).for_each(|entry| self.push(entry));
        prompts_in(messages)
    }

    /// Shows a user message.
    pub(crate) fn user(&mut self, text: &str) {
        self.push(TranscriptEntry::User { text: text.to_owned(), images: Vec::new() });
    }

    /// Truncates the text of the answer at a byte, and appends another text.
    pub(crate) fn answer_text(&mut self, at: usize, text: &str) {
        if let Some(answer) = self.answer_to_continue() {
            answer.put_text(at, text);
        }
    }

    /// Appends thinking.
    pub(crate) fn answer_thinking(&mut self, text: &str, now_ms: i64) {
        if let Some(answer) = self.answer_to_continue() {
            answer.put_thinking(text, now_ms);
        }
    }

    /// Ends thinking.
    pub(crate) fn thinking_ended(&mut self, now_ms: i64) {
        if let Some(answer) = self.open_answer() {
            answer.end_thinking(Some(now_ms));
        }
    }

    /// Ends the answer.
    pub(crate) fn answer_ended(&mut self) {
        while let Some(answer) = self.open_answer() {
            answer.finish(None, false);
        }
    }

    fn open_answer(&mut self) -> Option<&mut entry::AnswerView> {
        self.entries.iter_mut().skip(self.n_committed).rev().find_map(|cached| cached.entry.open_answer())
    }

    /// Returns the open answer, or a new one.
    fn answer_to_continue(&mut self) -> Option<&mut entry::AnswerView> {
        if self.open_answer().is_none() {
            self.push(TranscriptEntry::answer());
        }
        self.open_answer()
    }

    pub(crate) fn tool_started(&mut self, id: &str, name: &str, arguments: &JsonObject, now_ms: i64) {
        match self.tool_mut(id) {
            Some(tool) => tool.start_tool(arguments, now_ms),
            None => {
                let mut entry = TranscriptEntry::tool(id, name);
                entry.set_arguments(arguments);
                entry.start_tool(arguments, now_ms);
                self.push(entry);
            }
        }
    }

    pub(crate) fn tool_progress(&mut self, id: &str, so_far: &ToolOutput) {
        if let Some(tool) = self.tool_mut(id) {
            tool.update_tool(so_far);
        }
    }

    pub(crate) fn tool_ended(&mut self, id: &str, output: &ToolOutput, duration_ms: Option<i64>) {
        if let Some(tool) = self.tool_mut(id) {
            tool.end_tool(output, duration_ms);
        }
    }
}

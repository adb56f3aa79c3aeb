//! What the owner of the pipeline reads from it.

use crate::piece::ReplySpan;
use crate::scan::FinalTag;
use crate::sent::Sent;
use crate::tool_notes::{LastToolError, ToolMeta};
use crate::{ReasoningLevel, Replies, ReplyOptions};

impl Replies {
    /// Returns the options of the replies.
    pub fn options(&self) -> &ReplyOptions {
        &self.options
    }

    /// Returns whether only text inside final tags is for people.
    pub fn enforces_final_tag(&self) -> bool {
        self.final_tag == FinalTag::Enforced
    }

    /// Returns what happens to the reasoning of the last answer.
    pub fn reasoning_level(&self) -> ReasoningLevel {
        match self.hides_reasoning() {
            true => ReasoningLevel::Off,
            false => self.options.reasoning,
        }
    }

    /// Returns the visible texts of the run, including directives, from which the final payloads are made.
    pub fn assistant_texts(&self) -> &[String] {
        self.blocks.texts()
    }

    /// Takes the visible texts with their spans at the end of a run, so that a long answer is not copied into the result.
    pub fn take_assistant_texts(&mut self) -> Vec<(String, ReplySpan)> {
        self.blocks.take_texts()
    }

    /// Returns finished tool calls, in order.
    pub fn tool_metas(&self) -> &[ToolMeta] {
        self.tools.metas()
    }

    /// Returns the last tool failure that no later success resolved.
    pub fn last_tool_error(&self) -> Option<&LastToolError> {
        self.tools.last_error()
    }

    /// Returns how many jobs the tool `cron` added.
    pub fn cron_adds(&self) -> u32 {
        self.tools.n_cron_adds()
    }

    /// Returns what messaging tools sent.
    pub fn sent(&self) -> &Sent {
        self.tools.sent()
    }
}

//! The conversation on the screen: finished rows go into the scrollback, and the rest is redrawn with each frame.

mod texts;
mod mark;
mod pattern;
mod place;
mod drawing;
mod entry;
mod expand;
mod fold;
mod layout;
mod search;
mod select;
mod window;
mod streaming;

use std::path::PathBuf;
use std::sync::{Arc, MutexGuard};

use pinch_agent_core::event::AgentEvent;
use pinch_agent_core::tool::ToolError;
use pinch_coding_agent::entry::EntryBody;
use pinch_coding_agent::tools::bash::UserCommand;
use pinch_llm::event::StreamEvent;
use pinch_llm::message::Message;

use self::drawing::SharedDrawings;
pub(crate) use self::drawing::{DrawingRequest, DrawingTicket};
pub(crate) use self::entry::{NoticeKind, typed_prompt};
use self::entry::{TranscriptEntry, ViewCx};
pub(crate) use self::place::Scroll;
pub(crate) use self::search::{SearchDirection, SearchStatus};
pub(crate) use self::select::SelectionUnit;
use self::window::Viewport;
pub(crate) use self::window::{Remaining, TranscriptWindow};
use crate::Row;
use crate::image::{ImageBoard, ImageSource, SharedImages};
use crate::keymap::Keymap;
use crate::theme::Palette;

/// Display options of the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TranscriptOptions {
    /// Whether tool output is expanded.
    pub(crate) expanded: bool,
    /// Whether one line replaces the model's thinking.
    pub(crate) hide_thinking: bool,
    /// Whether one line replaces thinking that is still in progress.
    pub(crate) hide_open_thinking: bool,
    /// The line in place of hidden thinking; `None`: how long the model thought.
    pub(crate) thinking_label: Option<String>,
    /// Whether tool results are only shown when expanded.
    pub(crate) hide_output: bool,
    /// Whether output is plain lines, in which each entry names its role.
    pub(crate) plain: bool,
    /// Prefix of the lines of code blocks.
    pub(crate) code_indent: String,
    /// Home directory, shown as `~`.
    pub(crate) home: Option<PathBuf>,
    /// Base directory of relative paths, if paths are links to files.
    pub(crate) link_base: Option<PathBuf>,
    /// The images; layouts record in it what the terminal must be sent.
    pub(crate) images: SharedImages,
    /// What extensions draw; layouts record in it what is to be drawn.
    pub(crate) drawings: SharedDrawings,
}

/// Cached rows of an entry.
struct Cached {
    entry: TranscriptEntry,
    rows: Option<(usize, Vec<Row>)>,
}

/// Maximum number of entries that extensions draw at the same time before they go into the scrollback.
const MAX_DRAWN_AHEAD: usize = 64;
/// Maximum number of prompts that an editor recalls.
const MAX_PROMPTS: usize = 100;

/// Returns the last prompts of the user in a conversation, oldest first, for the editor's history.
pub(crate) fn prompts_in(messages: &[Arc<Message>]) -> Vec<String> {
    let prompts = messages.iter().rev().filter_map(|message| match &**message {
        Message::User(user) => Some(typed_prompt(&user.content.text("\n"))),
        _ => None,
    });
    let mut prompts: Vec<String> = prompts.take(MAX_PROMPTS).collect();
    prompts.reverse();
    prompts
}

/// The conversation.
#[derive(Default)]
pub(crate) struct TranscriptView {
    pub(crate) options: TranscriptOptions,
    entries: Vec<Cached>,
    /// Number of entries that are entirely in the scrollback.
    n_committed: usize,
    is_fullscreen: bool,
    /// Indices of the entries for messages that are not shown yet, in order.
    folded: Vec<usize>,
    viewport: Viewport,
    /// When something last arrived from the session, in Unix milliseconds.
    last_activity_ms: i64,
}

impl TranscriptView {
    /// Forgets everything; what is in the scrollback stays there.
    pub(crate) fn clear(&mut self) {
        self.entries.retain(|cached| cached.entry.is_notice());
        self.n_committed = self.n_committed.min(self.entries.len());
        self.folded.clear();
        self.viewport = Viewport::default();
    }

    /// Returns whether nothing has been shown yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Shows that another conversation begins.
    pub(crate) fn separate(&mut self) {
        self.push(TranscriptEntry::Rule);
    }

    fn push(&mut self, entry: TranscriptEntry) {
        self.entries.push(Cached { entry, rows: None });
    }

    /// Called when the theme or the display options have changed. The scrollback stays as it is.
    pub(crate) fn invalidate(&mut self) {
        for cached in &mut self.entries {
            cached.rows = None;
            cached.entry.release();
        }
        self.viewport.selection = None;
    }

    /// Expands or collapses the last tool.
    pub(crate) fn toggle_last(&mut self) {
        if let Some(cached) = self.entries.iter_mut().rev().find(|cached| cached.entry.can_expand()) {
            cached.entry.toggle();
            cached.rows = None;
        }
    }

    pub(crate) fn is_fullscreen(&self) -> bool {
        self.is_fullscreen
    }

    /// Called when the mode changes. In fullscreen mode nothing goes into the scrollback; new rows are added to it afterwards.
    pub(crate) fn mode_changed(&mut self, is_fullscreen: bool) {
        self.is_fullscreen = is_fullscreen;
        self.viewport = Viewport::default();
        self.screen_lost();
    }

    /// Called when the terminal has lost the contents of its alternate screen.
    pub(crate) fn screen_lost(&mut self) {
        self.images().screen_changed(self.is_fullscreen);
        self.forget_rows();
    }

    /// Returns the images, to configure the terminal and to get what it must be sent.
    pub(crate) fn images(&self) -> MutexGuard<'_, ImageBoard> {
        self.options.images.lock()
    }

    /// Called when an image was converted, or could not be.
    pub(crate) fn converted(&mut self, image: &ImageSource, png: Option<ImageSource>) {
        self.images().converted(image, png);
        self.forget_rows();
    }

    fn forget_rows(&mut self) {
        for cached in &mut self.entries {
            cached.rows = None;
        }
        self.viewport.selection = None;
    }

    /// Returns the rows that became final since the last call, for the scrollback.
    pub(crate) fn take_finished(&mut self, columns: usize, theme: &Palette, keymap: &Keymap) -> Vec<Row> {
        let mut finished = Vec::new();
        let options = self.options.clone();
        let cx = ViewCx { columns, theme, keymap, options: &options, now_ms: self.last_activity_ms, is_final: true };
        while let Some(cached) = self.entries.get_mut(self.n_committed) {
            // Request all of them at once.
            let waiting = cached.entry.images().iter().filter(|image| options.images.lock().is_waiting(image));
            let waits = waiting.count() > 0;
            if waits || cached.entry.awaits_drawing(cx) {
                break;
            }
            finished.extend(cached.entry.take_rows(cx, self.n_committed == 0));
            if !cached.entry.is_settled() {
                break;
            }
            cached.entry.release();
            self.n_committed += 1;
        }
        // Those that follow are drawn at the same time.
        for cached in self.entries.iter_mut().skip(self.n_committed).take(MAX_DRAWN_AHEAD) {
            cached.entry.awaits_drawing(cx);
        }
        finished
    }

    /// Takes what an extension has drawn; `None`: it is shown as usual.
    pub(crate) fn drawn(&mut self, ticket: &DrawingTicket, lines: &Option<Vec<String>>) {
        if let Some(cached) =
            self.entries.iter_mut().rev().find_map(|cached| cached.entry.arrived(ticket, lines).then_some(cached))
        {
            cached.rows = None;
        }
    }

    /// Has a tool call drawn again.
    pub(crate) fn redraw_call(&mut self, call_id: &str) {
        if let Some(cached) = self.entries.iter_mut().rev().find(|cached| cached.entry.call_id() == Some(call_id)) {
            cached.entry.redraw_call();
            cached.rows = None;
        }
    }

    /// Returns the rows that are not final.
    pub(crate) fn live(&mut self, columns: usize, theme: &Palette, keymap: &Keymap, now_ms: i64) -> Vec<Row> {
        let options = self.options.clone();
        let cx = ViewCx { columns, theme, keymap, options: &options, now_ms, is_final: false };
        let mut rows = Vec::new();
        for (at, cached) in self.entries.iter_mut().enumerate().skip(self.n_committed) {
            rows.extend(cached.entry.remaining_rows(cx, at == 0));
        }
        rows
    }

    /// Records that something arrived from the session.
    pub(crate) fn record_activity(&mut self, now_ms: i64) {
        self.last_activity_ms = now_ms;
    }

    /// Returns how long nothing has arrived from the session, in milliseconds.
    pub(crate) fn silent_ms(&self, now_ms: i64) -> i64 {
        if self.running_tool().is_some() { 0 } else { now_ms - self.last_activity_ms }
    }

    /// Returns the name of a running tool.
    pub(crate) fn running_tool(&self) -> Option<&str> {
        self.entries.iter().skip(self.n_committed).find_map(|cached| cached.entry.running_tool())
    }

    /// Returns whether a user command is running.
    pub(crate) fn runs_bash(&self) -> bool {
        self.entries.iter().skip(self.n_committed).any(|cached| cached.entry.is_running_bash())
    }

    /// Returns the text of the last answer that has one.
    pub(crate) fn last_answer(&self) -> Option<String> {
        self.entries.iter().rev().find_map(|cached| cached.entry.answer_text())
    }

    /// Handles an event of a run.
    pub(crate) fn agent_event(&mut self, event: &AgentEvent, now_ms: i64) {
        match event {
            AgentEvent::MessageStart(message) => {
                if let Message::Assistant(_) = &**message {
                    self.push(TranscriptEntry::answer());
                }
            }
            AgentEvent::MessageUpdate(update) => self.answer_update(update, now_ms),
            AgentEvent::MessageEnd { message, .. } => self.message_ended(message),
            AgentEvent::ToolStart(start) => self.tool_started(start.id.as_str(), &start.name, &start.args, now_ms),
            AgentEvent::ToolUpdate { start, so_far } => self.tool_progress(start.id.as_str(), so_far),
            AgentEvent::ToolEnd { start, output, duration_ms } => {
                self.tool_ended(start.id.as_str(), output, *duration_ms);
            }
            _ => {}
        }
    }

    fn answer_update(&mut self, update: &StreamEvent, now_ms: i64) {
        use pinch_llm::event::BlockKind;
        if let StreamEvent::BlockStart { kind: BlockKind::ToolCall { id, name }, index } = update {
            let mut entry = TranscriptEntry::tool(id.as_str(), name);
            entry.set_block(*index);
            self.push(entry);
            return;
        }
        let open = self.entries.iter_mut().skip(self.n_committed).rev();
        match update {
            StreamEvent::Delta { index, text } => {
                for cached in open {
                    if cached.entry.takes_arguments(*index) {
                        return cached.entry.push_arguments(text);
                    }
                    if cached.entry.is_open_answer() {
                        return cached.entry.push_delta(*index, text);
                    }
                }
            }
            StreamEvent::BlockStart { index, kind } => {
                for cached in open {
                    if cached.entry.is_open_answer() {
                        return cached.entry.begin_block(*index, kind, now_ms);
                    }
                }
            }
            StreamEvent::BlockEnd { index, block } => {
                for cached in open {
                    if cached.entry.takes_arguments(*index) {
                        return cached.entry.end_call(block);
                    }
                    if cached.entry.is_open_answer() {
                        return cached.entry.end_block(*index, block, now_ms);
                    }
                }
            }
            StreamEvent::Start(_) | StreamEvent::Usage(_) | StreamEvent::End(_) => {}
        }
    }

    fn message_ended(&mut self, message: &Arc<Message>) {
        match &**message {
            Message::Assistant(answer) => {
                let from = self.n_committed;
                let open = self.entries.iter_mut().skip(from);
                let mut failed = Vec::new();
                for cached in open {
                    if cached.entry.is_open_answer() {
                        cached.entry.end_answer(answer);
                    } else if let Some(id) = cached.entry.open_call() {
                        failed.push(id.to_owned());
                    }
                }
                let text = entry::failure_of(answer);
                for id in failed {
                    match (&text, self.tool_mut(&id)) {
                        (Some(text), Some(tool)) => tool.fail_tool(text),
                        (None, Some(tool)) => {
                            if let Some(call) = answer.tool_calls().find(|call| call.id.as_str() == id) {
                                tool.set_arguments(&call.arguments);
                            }
                        }
                        (_, None) => {}
                    }
                }
            }
            Message::ToolResult(result) => {
                if let Some(tool) = self.tool_mut(result.tool_call_id.as_str()) {
                    tool.set_result(result, ImageSource::in_message(message));
                }
            }
            _ => {
                for entry in TranscriptEntry::of_message(message) {
                    self.push(entry);
                }
            }
        }
    }

    fn tool_mut(&mut self, id: &str) -> Option<&mut TranscriptEntry> {
        let open = self.entries.iter_mut().skip(self.n_committed).rev();
        open.map(|cached| &mut cached.entry).find(|entry| entry.call_id() == Some(id))
    }

    /// Ends the run: unfinished entries stay unfinished.
    pub(crate) fn run_ended(&mut self) {
        for cached in self.entries.iter_mut().skip(self.n_committed) {
            cached.entry.settle();
        }
    }

    /// Shows that the conversation was compacted.
    pub(crate) fn compacted(&mut self, summary: &str, tokens_before: u64) {
        self.push(TranscriptEntry::compaction(summary, tokens_before));
    }

    /// Shows an entry that was appended outside the messages of a run.
    pub(crate) fn appended(&mut self, body: &EntryBody) {
        if let Some(entry) = TranscriptEntry::of_entry(body) {
            self.push(entry);
        }
    }

    /// Shows a notice of the interface. A status replaces a directly preceding one, unless that is already in the scrollback.
    pub(crate) fn notice(&mut self, kind: NoticeKind, text: &str) {
        let is_open = self.entries.len() > self.n_committed;
        if kind == NoticeKind::Status
            && is_open
            && let Some(last) = self.entries.last_mut()
            && last.entry.is_status()
        {
            last.entry = TranscriptEntry::notice(kind, text);
            last.rows = None;
            return;
        }
        self.push(TranscriptEntry::notice(kind, text));
    }

    /// Shows a Markdown text of the interface.
    pub(crate) fn markdown(&mut self, text: &str) {
        self.push(TranscriptEntry::text(text));
    }

    /// Shows the header.
    pub(crate) fn header(&mut self, name: &str, hints: &str) {
        self.push(TranscriptEntry::Header { name: name.to_owned(), hints: hints.to_owned() });
    }

    /// Shows lines that an extension has drawn as its header. They are not trusted.
    pub(crate) fn drawn_header(&mut self, lines: Vec<String>) {
        self.push(TranscriptEntry::DrawnHeader(lines));
    }

    /// Shows unimportant lines.
    pub(crate) fn dim(&mut self, text: &str) {
        self.push(TranscriptEntry::notice(NoticeKind::Resources, text));
    }

    pub(crate) fn bash_started(&mut self, command: &str, exclude: bool) {
        self.push(TranscriptEntry::bash(command, exclude));
    }

    pub(crate) fn bash_output(&mut self, text: &str) {
        if let Some(cached) = self.entries.iter_mut().rev().find(|cached| cached.entry.is_running_bash()) {
            cached.entry.push_output(text);
        }
    }

    pub(crate) fn bash_finished(&mut self, end: &Result<UserCommand, ToolError>) {
        if let Some(cached) = self.entries.iter_mut().rev().find(|cached| cached.entry.is_running_bash()) {
            cached.entry.end_bash(end);
        }
    }
}

#[cfg(test)]
mod tests;

//! The stage that removes leaked markup from a text while it grows.

use super::bracket_blocks::bracket_block_at;
use super::channels::ChannelState;
use super::downgraded::downgraded_at;
use super::internal::internal_block_at;
use super::tool_xml::{XmlExamples, tool_xml_at};
use super::trace_lines::trace_line_at;
use super::{
    Leak, and_then, memories_at, minimax_at, strip_channels, strip_internal_blocks, strip_memories, strip_minimax,
    strip_tool_text, strip_tool_xml,
};
use crate::Stage;
use crate::code::CodeState;
use crate::piece::{Piece, Pieces};

/// Up to this many bytes, text that is held back is looked at again with each delta.
const OFTEN: usize = 1_024;
/// Longer text is looked at again when so many times its length has been read, so that the work stays linear.
const CREDIT: usize = 16;

/// Removes leaked markup before text is cut into blocks. Markup is held back until it is complete, and text that may become markup until
/// that is ruled out.
#[derive(Clone, Debug, Default)]
pub struct MarkupGuard {
    code: CodeState,
    /// Text that may be markup from its start.
    held: String,
    credit: usize,
    /// Whether the current line has more than white space.
    in_line: bool,
    /// The last character passed on, and the number of line breaks at the end.
    last: Option<char>,
    n_breaks: usize,
    gap: MarkupGap,
    examples: XmlExamples,
    has_minimax: bool,
    channel: ChannelState,
}

/// What is left out or added after removed markup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum MarkupGap {
    #[default]
    None,
    /// One space is left out.
    Space,
    /// One line break is left out.
    Newline,
    /// Blank lines are left out.
    Blank,
    /// Two words must not be joined.
    Words,
}

impl MarkupGuard {
    fn text(&mut self, text: String) -> String {
        // After a token, there is a gap until text for people follows.
        let is_plain = self.held.is_empty()
            && self.gap == MarkupGap::None
            && self.in_line
            && !text.bytes().any(|byte| matches!(byte, b'<' | b'[' | b'\n' | b'`'))
            && self.code.push_plain(&text).is_some();
        if is_plain {
            self.last = text.chars().next_back().or(self.last);
            self.n_breaks = 0;
            return text;
        }
        let mut shown = String::with_capacity(text.len());
        if self.held.is_empty() {
            self.process(&text, &mut shown);
        } else {
            self.held.push_str(&text);
            self.credit += CREDIT * text.len();
            if self.held.len() <= OFTEN || self.credit >= self.held.len() {
                self.credit = self.credit.saturating_sub(self.held.len());
                let held = std::mem::take(&mut self.held);
                self.process(&held, &mut shown);
            }
        }
        shown
    }

    /// Passes on text up to the first part that is undecided, which is held back.
    fn process(&mut self, text: &str, shown: &mut String) {
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            match self.decide(&text[at..], c) {
                Leak::None => {
                    self.pass(c, shown);
                    at += c.len_utf8();
                }
                Leak::Whole(len) => at += len,
                Leak::Undecided => {
                    text[at..].clone_into(&mut self.held);
                    return;
                }
            }
        }
    }

    fn decide(&mut self, text: &str, c: char) -> Leak {
        let header = self.channel.header_at(text);
        if header != Leak::None {
            return header;
        }
        let is_line_start = !self.in_line && !c.is_whitespace();
        if is_line_start && !self.channel.is_hidden && !self.code.in_fence() && !self.code.in_inline() {
            let line = trace_line_at(text);
            if line != Leak::None {
                self.leave_gap(line, MarkupGap::Blank);
                return line;
            }
            let block = internal_block_at(text);
            if block != Leak::None {
                return block;
            }
        }
        if !matches!(c, '<' | '[') || self.code.clone().push(c) {
            return Leak::None;
        }
        if c == '<' { self.at_angle(text) } else { self.at_bracket(text) }
    }

    fn at_angle(&mut self, text: &str) -> Leak {
        let token = self.channel.token_at(text);
        if token != Leak::None || self.channel.is_hidden {
            self.leave_gap(token, MarkupGap::Words);
            return token;
        }
        let tags = [minimax_at(text, &mut self.has_minimax), memories_at(text)];
        if let Some(tag) = tags.into_iter().find(|tag| *tag != Leak::None) {
            return tag;
        }
        let call = tool_xml_at(text, &mut self.examples);
        if self.last == Some(' ') {
            self.leave_gap(call, MarkupGap::Space);
        }
        call
    }

    fn at_bracket(&mut self, text: &str) -> Leak {
        if self.channel.is_hidden {
            return Leak::None;
        }
        let call = downgraded_at(text);
        if call != Leak::None {
            if self.last.is_none_or(|last| last == '\n') {
                self.leave_gap(call, MarkupGap::Newline);
            }
            return call;
        }
        bracket_block_at(text)
    }

    fn leave_gap(&mut self, leak: Leak, gap: MarkupGap) {
        if matches!(leak, Leak::Whole(_)) {
            self.gap = gap;
        }
    }

    fn pass(&mut self, c: char, shown: &mut String) {
        if self.channel.is_hidden {
            return;
        }
        let is_left_out = match self.gap {
            MarkupGap::None => false,
            MarkupGap::Space => c == ' ',
            MarkupGap::Newline => matches!(c, '\r' | '\n'),
            MarkupGap::Blank => c == '\n' && !self.in_line && (self.last.is_none() || self.n_breaks >= 2),
            MarkupGap::Words => {
                if c.is_alphanumeric() && self.last.is_some_and(char::is_alphanumeric) {
                    self.emit(' ', shown);
                }
                false
            }
        };
        let stays = match self.gap {
            MarkupGap::Blank => c.is_whitespace() && (is_left_out || c != '\n'),
            MarkupGap::Newline => c == '\r',
            MarkupGap::None | MarkupGap::Space | MarkupGap::Words => false,
        };
        if !stays {
            self.gap = MarkupGap::None;
        }
        if !is_left_out {
            self.emit(c, shown);
        }
    }

    fn emit(&mut self, c: char, shown: &mut String) {
        self.code.push(c);
        self.in_line = c != '\n' && (self.in_line || !c.is_whitespace());
        self.n_breaks = if c == '\n' { self.n_breaks + 1 } else { 0 };
        self.last = Some(c);
        shown.push(c);
    }

    /// Ends the text: incomplete markup is removed, and what only might have become markup is passed on.
    fn settle(&mut self) -> String {
        let mut shown = String::new();
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return shown;
        }
        self.process(&held, &mut shown);
        let rest = std::mem::take(&mut self.held);
        self.credit = 0;
        let rest = and_then(and_then(strip_minimax(&rest), strip_channels), strip_memories);
        let rest = and_then(and_then(rest, strip_tool_xml), strip_tool_text);
        for c in and_then(rest, strip_internal_blocks).chars() {
            self.pass(c, &mut shown);
        }
        shown
    }
}

impl Stage for MarkupGuard {
    fn push(&mut self, piece: Piece, out: &mut Pieces) {
        match piece {
            Piece::Visible(text) => {
                let shown = self.text(text);
                if !shown.is_empty() {
                    out.push(Piece::Visible(shown));
                }
            }
            Piece::MessageStart | Piece::Restart => {
                *self = Self::default();
                out.push(piece);
            }
            Piece::TextEnd | Piece::Flush | Piece::MessageEnd(_) => {
                self.finish(out);
                out.push(piece);
            }
            other => out.push(other),
        }
    }

    fn finish(&mut self, out: &mut Pieces) {
        let shown = self.settle();
        if !shown.is_empty() {
            out.push(Piece::Visible(shown));
        }
    }
}

#[cfg(test)]
mod tests;

//! Splits a text into pieces that are laid out once.
//!
//! Each line is matched against the open quotes and lists down to its text block, as in CommonMark. A piece ends where nothing that follows
//! can change its meaning: at the end of a paragraph, and after each line of a code block. The end of a piece depends only on the text, not
//! on how it arrived.

use super::cursor::LineCursor;
use super::leaf::{ItemHead, LeafKind, MarkdownPiece, OpenLeaf, PieceKind};
use super::line::{HEAD, HtmlEnd, LineHead, LineStart};

/// Maximum nesting of quotes and items; deeper markers are text.
const MAX_DEPTH: usize = 24;

/// Finds the pieces of a growing text.
#[derive(Clone, Debug)]
pub(super) struct Splitter {
    pieces: Vec<MarkdownPiece>,
    /// Number of pieces before these that were dropped.
    n_dropped: usize,
    state: SplitState,
}

impl Splitter {
    pub(super) fn new() -> Self {
        Self { pieces: Vec::new(), n_dropped: 0, state: SplitState::default() }
    }

    /// Returns the finished pieces from the nth one on; `None` if some of them were dropped.
    pub(super) fn pieces_from(&self, n: usize) -> Option<&[MarkdownPiece]> {
        Some(self.pieces.get(n.checked_sub(self.n_dropped)?..).unwrap_or_default())
    }

    /// Returns the number of finished pieces.
    pub(super) fn n_pieces(&self) -> usize {
        self.n_dropped + self.pieces.len()
    }

    /// Drops the finished pieces. They can be found in the text again.
    pub(super) fn drop_pieces(&mut self) {
        self.n_dropped = self.n_pieces();
        self.pieces = Vec::new();
    }

    /// Processes new text.
    pub(super) fn advance(&mut self, text: &str) {
        self.state.advance(text);
        self.pieces.append(&mut self.state.out);
    }

    /// Ends the text.
    pub(super) fn finish(&mut self, text: &str) {
        self.state.finish(text);
        self.pieces.append(&mut self.state.out);
    }

    /// Returns the pieces after the finished ones if the text ends here. A code block stays open.
    pub(super) fn rest(&self, text: &str) -> Vec<MarkdownPiece> {
        let mut state = self.state.clone();
        state.end_last_line(text);
        state.leaf = state.leaf.filter(|leaf| !leaf.is_code());
        state.close_to(0);
        state.out
    }
}

/// A container of blocks.
#[derive(Clone, Copy, Debug)]
enum SplitContainer {
    Quote,
    Item {
        /// Columns from the item's possible start to its text.
        indent: usize,
        /// Whether it only has its marker so far.
        is_bare: bool,
    },
}

/// The list at the end of a container.
#[derive(Clone, Copy, Debug)]
struct LastList {
    mark: u8,
    number: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct SplitState {
    /// New pieces.
    out: Vec<MarkdownPiece>,
    /// Open containers, outermost first, each with the list that it is the last item of.
    containers: Vec<(SplitContainer, Option<LastList>)>,
    /// The last list outside all containers.
    root_list: Option<LastList>,
    leaf: Option<OpenLeaf>,
    /// Start of the first incomplete line.
    line: usize,
    /// Whether its beginning was examined.
    is_begun: bool,
    /// Whether the rest of the line does not belong to the block.
    is_muted: bool,
    /// How much of the line was examined.
    at: usize,
    /// Whether the current line, and the one before it, are blank except for quote markers.
    is_blank: bool,
    after_blank: bool,
}

impl SplitState {
    fn advance(&mut self, text: &str) {
        while self.line < text.len() {
            let from = self.at.max(self.line);
            let end = text[from..].find('\n').map(|at| from + at);
            let known = end.unwrap_or(text.len());
            if !self.is_begun {
                if end.is_none() && known - self.line <= HEAD {
                    return;
                }
                self.begin_line(&text[self.line..known]);
            }
            self.append(&text[self.at..known]);
            self.at = known;
            let Some(end) = end else { return };
            self.end_line(end + 1);
        }
    }

    /// Treats the available text as the last line.
    fn end_last_line(&mut self, text: &str) {
        if self.line < text.len() {
            if !self.is_begun {
                self.begin_line(&text[self.line..]);
            }
            self.append(&text[self.at..]);
            self.end_line(text.len());
        }
    }

    fn finish(&mut self, text: &str) {
        self.end_last_line(text);
        self.close_to(0);
    }

    fn append(&mut self, text: &str) {
        if let Some(leaf) = self.leaf.as_mut().filter(|_| !self.is_muted) {
            leaf.append(text, &mut self.out);
        }
    }

    fn end_line(&mut self, next: usize) {
        if let Some(leaf) = self.leaf.as_mut().filter(|_| !self.is_muted)
            && !leaf.end_line(&mut self.out)
        {
            self.leaf = None;
        }
        self.line = next;
        self.at = next;
        self.is_begun = false;
        self.is_muted = false;
    }

    /// Examines the beginning of a line, and moves past the markers of blocks.
    fn begin_line(&mut self, line: &str) {
        let is_whole = line.len() <= HEAD;
        let line = &line[..line.floor_char_boundary(HEAD)];
        self.after_blank = self.is_blank;
        self.is_blank = is_whole && line.bytes().all(|byte| matches!(byte, b'>' | b' ' | b'\t'));
        let mut cursor = LineCursor::new(line);
        let n_open = self.enter(&mut cursor, is_whole);
        let head = LineHead::of(&cursor, is_whole);
        if head.start == LineStart::Blank {
            self.blank_line(n_open, &mut cursor);
        } else {
            self.text_line(n_open, &mut cursor, is_whole);
        }
        if self.leaf.as_ref().is_some_and(OpenLeaf::is_code) {
            self.append(cursor.spare());
        } else {
            // After a marker, tabs are narrower than at the beginning of a line, where the parser will see them.
            let indent = " ".repeat(cursor.skip(usize::MAX));
            self.append(&indent);
        }
        self.is_begun = true;
        self.at = self.line + line.len() - cursor.rest().len();
    }

    /// Passes the markers of open containers, and returns how many were present.
    fn enter(&self, cursor: &mut LineCursor<'_>, is_whole: bool) -> usize {
        for (at, (container, _)) in self.containers.iter().enumerate() {
            match container {
                SplitContainer::Quote => {
                    let mut next = *cursor;
                    if next.skip(4) > 3 || !next.rest().starts_with('>') {
                        return at;
                    }
                    next.advance(1);
                    next.skip(1);
                    *cursor = next;
                }
                SplitContainer::Item { indent, .. } => {
                    let is_blank = is_whole && cursor.rest().trim_matches([' ', '\t']).is_empty();
                    if cursor.indent() < *indent && !is_blank {
                        return at;
                    }
                    cursor.skip(*indent);
                }
            }
        }
        self.containers.len()
    }

    fn blank_line(&mut self, n_open: usize, cursor: &mut LineCursor<'_>) {
        if n_open < self.containers.len() {
            self.close_to(n_open);
        }
        match self.leaf.as_mut().map(|leaf| &mut leaf.kind) {
            Some(LeafKind::Fence { indent, .. }) => {
                cursor.skip(*indent);
                return;
            }
            Some(LeafKind::Html { end, .. }) if *end != HtmlEnd::Blank => return,
            Some(LeafKind::Indented { n_blank }) => *n_blank += 1,
            _ => self.close_leaf(),
        }
        self.is_muted = true;
        // An item can begin with at most one blank line.
        if let Some((SplitContainer::Item { is_bare: true, .. }, _)) = self.containers.last() {
            self.close_to(self.containers.len() - 1);
        }
    }

    fn text_line(&mut self, n_open: usize, cursor: &mut LineCursor<'_>, is_whole: bool) {
        let is_lazy = n_open < self.containers.len();
        let has_paragraph = self.leaf.as_ref().is_some_and(OpenLeaf::is_paragraph);
        if !is_lazy && self.continue_block(cursor, is_whole) {
            return;
        }
        if !has_paragraph {
            self.close_to(n_open);
        }
        let mut is_new = false;
        let head = loop {
            let head = LineHead::of(cursor, is_whole);
            if head.indent >= 4 || self.containers.len() >= MAX_DEPTH {
                break head;
            }
            let is_in_paragraph = has_paragraph && !is_new;
            match head.start {
                LineStart::Quote if self.interrupt(is_in_paragraph, n_open) => self.open_quote(cursor),
                LineStart::Item { mark, len, number, interrupts } if !is_in_paragraph || is_lazy || interrupts => {
                    self.interrupt(is_in_paragraph, n_open);
                    if self.open_item(cursor, is_whole, (mark, len, number)) {
                        return;
                    }
                }
                _ => break head,
            }
            is_new = true;
        };
        if has_paragraph && !is_new {
            if head.indent >= 4 || !head.interrupts(is_lazy) {
                self.continue_paragraph(&head, is_lazy);
                return;
            }
            self.close_to(n_open);
        }
        if head.start == LineStart::Blank {
            // An empty quote so far.
            self.is_muted = true;
        } else {
            self.open_leaf(cursor, &head);
        }
    }

    /// Ends a paragraph. Returns true.
    fn interrupt(&mut self, is_in_paragraph: bool, n_open: usize) -> bool {
        if is_in_paragraph {
            self.close_to(n_open);
        }
        true
    }

    /// Handles a line that has the markers of all containers and continues their block.
    fn continue_block(&mut self, cursor: &mut LineCursor<'_>, is_whole: bool) -> bool {
        let head = LineHead::of(cursor, is_whole);
        let Some(leaf) = &mut self.leaf else { return false };
        if leaf.is_paragraph() && head.may_be_delimiter_row() && leaf.begin_table(&head, &mut self.out) {
            leaf.next_line();
            return true;
        }
        match &leaf.kind {
            LeafKind::Line => false,
            LeafKind::Html { .. } => true,
            LeafKind::Fence { mark, len, indent } => {
                if head.closes_fence(*mark, *len) {
                    self.close_leaf();
                } else {
                    cursor.skip(*indent);
                }
                true
            }
            LeafKind::Indented { .. } if head.indent >= 4 => {
                leaf.show_blank_lines(&mut self.out);
                cursor.skip(4);
                true
            }
            LeafKind::Table if !head.interrupts(true) && head.text != "|" => {
                leaf.next_line();
                true
            }
            LeafKind::Indented { .. } | LeafKind::Table => {
                self.close_leaf();
                false
            }
            LeafKind::Paragraph if head.is_underline() && leaf.is_heading_with(&head) => {
                leaf.next_line();
                leaf.kind = LeafKind::Line;
                true
            }
            LeafKind::Paragraph => false,
        }
    }

    fn continue_paragraph(&mut self, head: &LineHead<'_>, is_lazy: bool) {
        let Some(leaf) = &mut self.leaf else { return };
        let may_mislead = is_lazy && head.is_underline() || head.may_be_delimiter_row() && (is_lazy || leaf.is_rest());
        leaf.next_line();
        if may_mislead {
            // It is neither; the parser recognises this by the indentation.
            leaf.append("    ", &mut self.out);
        }
    }

    /// Returns the list at the end of the innermost container, before something is added to it.
    fn add_block(&mut self) -> &mut Option<LastList> {
        match self.containers.last_mut() {
            None => &mut self.root_list,
            Some((container, list)) => {
                if let SplitContainer::Item { is_bare, .. } = container {
                    *is_bare = false;
                }
                list
            }
        }
    }

    fn push(&mut self, kind: PieceKind) {
        let after_blank = self.after_blank;
        self.out.push(MarkdownPiece { kind, source: String::new(), after_blank, is_open: false });
    }

    fn open_quote(&mut self, cursor: &mut LineCursor<'_>) {
        *self.add_block() = None;
        cursor.skip(3);
        cursor.advance(1);
        cursor.skip(1);
        self.push(PieceKind::QuoteStart);
        self.containers.push((SplitContainer::Quote, None));
    }

    /// Opens an item. Returns whether nothing else can begin on the line.
    fn open_item(&mut self, cursor: &mut LineCursor<'_>, is_whole: bool, marker: (u8, usize, Option<u64>)) -> bool {
        let (mark, len, number) = marker;
        let list = self.add_block();
        let last = list.filter(|list| list.mark == mark);
        let number = last.map_or(number, |list| list.number.map(|number| number.saturating_add(1)));
        *list = Some(LastList { mark, number });
        let mut indent = cursor.skip(3) + len;
        cursor.advance(len);
        let is_blank = |cursor: &LineCursor<'_>| is_whole && cursor.rest().trim_matches([' ', '\t']).is_empty();
        let (mut is_bare, mut task) = (is_blank(cursor), None);
        if is_bare {
            indent += 1;
        } else {
            // Wide space belongs to an indented code block.
            let space = cursor.indent();
            indent += cursor.skip(if space > 4 { 1 } else { space });
            task = task_box(cursor);
            is_bare = task.is_some() && is_blank(cursor);
        }
        self.push(PieceKind::ItemStart(ItemHead { number, continues: last.is_some(), task }));
        self.containers.push((SplitContainer::Item { indent, is_bare }, None));
        self.is_muted = is_bare;
        if task.is_some() && !is_bare {
            cursor.skip(usize::MAX);
            let is_text = LineHead::of(cursor, is_whole).start == LineStart::Text && !cursor.rest().starts_with('[');
            self.leaf = Some(match is_text {
                true => OpenLeaf::new(LeafKind::Paragraph, false),
                false => OpenLeaf::plain_paragraph(false),
            });
        }
        is_bare || task.is_some()
    }

    fn open_leaf(&mut self, cursor: &mut LineCursor<'_>, head: &LineHead<'_>) {
        *self.add_block() = None;
        let after_blank = self.after_blank;
        let new = |kind| OpenLeaf::new(kind, after_blank);
        if head.indent >= 4 {
            let mut leaf = new(LeafKind::Indented { n_blank: 0 });
            leaf.start_code(&mut self.out);
            cursor.skip(4);
            self.leaf = Some(leaf);
            return;
        }
        if let Some(end) = head.html(false) {
            self.leaf = Some(new(LeafKind::Html { end, is_ended: false, tail: String::new() }));
            return;
        }
        cursor.skip(3);
        self.leaf = Some(match head.start {
            LineStart::Fence { mark, len } => {
                cursor.advance(len);
                new(LeafKind::Fence { mark, len, indent: head.indent })
            }
            LineStart::Heading | LineStart::Rule => new(LeafKind::Line),
            // Nested too deeply.
            LineStart::Quote | LineStart::Item { .. } => OpenLeaf::plain_paragraph(after_blank),
            LineStart::Blank | LineStart::Tag | LineStart::Text => new(LeafKind::Paragraph),
        });
    }

    fn close_leaf(&mut self) {
        if let Some(leaf) = self.leaf.take() {
            leaf.close(&mut self.out);
        }
    }

    /// Ends the text block, and the containers from `n_containers` on.
    fn close_to(&mut self, n_containers: usize) {
        self.close_leaf();
        while self.containers.len() > n_containers {
            self.containers.pop();
            self.push(PieceKind::ContainerEnd);
        }
    }
}

/// Passes the checkbox of a task.
fn task_box(cursor: &mut LineCursor<'_>) -> Option<bool> {
    let mut next = *cursor;
    next.skip(3);
    let is_checked = match next.rest().as_bytes() {
        [b'[', b' ' | b'\t', b']', ..] => false,
        [b'[', b'x' | b'X', b']', ..] => true,
        _ => return None,
    };
    next.advance(3);
    if !next.rest().is_empty() && !next.rest().starts_with([' ', '\t']) {
        return None;
    }
    *cursor = next;
    Some(is_checked)
}

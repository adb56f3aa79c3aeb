//! Blocks of Markdown as values, with the styles of their text.

use std::collections::HashMap;
use std::iter::Peekable;
use std::ops::Range;

use pulldown_cmark::{
    Alignment, BrokenLink, CodeBlockKind, CowStr, Event, OffsetIter, Parser, Tag, TagEnd, TextMergeWithOffset,
};
use ratatui_core::style::{Modifier, Style};

use super::cut::MIDDLE;
use super::inline::{InlineWriter, StyledLines};
use super::options::{EXTENSIONS, MarkdownOptions};
use crate::text::{SanitizeMode, sanitize};
use crate::theme::{ColorRole, Palette};

/// Containers inside one another that are shown as such.
const MAX_DEPTH: usize = 24;

/// One block.
#[derive(Debug)]
pub(super) enum MarkdownBlock {
    Paragraph(StyledLines),
    Heading {
        level: usize,
        text: StyledLines,
    },
    Code {
        info: String,
        text: String,
    },
    List {
        first: Option<u64>,
        items: Vec<ListItem>,
    },
    Quote(Vec<PlacedBlock>),
    Table(Table),
    Rule,
    Html(String),
    /// Where a link by reference leads.
    Definition {
        label: String,
        url: String,
    },
}

/// A block where it stands.
#[derive(Debug)]
pub(super) struct PlacedBlock {
    /// There is a blank line before it.
    pub(super) after_blank: bool,
    pub(super) block: MarkdownBlock,
}

/// An item of a list.
#[derive(Debug)]
pub(super) struct ListItem {
    /// There is a blank line before it.
    pub(super) after_blank: bool,
    /// Whether its box is checked, when it has one.
    pub(super) task: Option<bool>,
    pub(super) blocks: Vec<PlacedBlock>,
}

/// A table.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    pub(super) head: Vec<StyledLines>,
    pub(super) rows: Vec<Vec<StyledLines>>,
}

/// Targets of links by reference.
pub(super) type Definitions = HashMap<String, String>;

/// What blocks are read with.
#[derive(Clone, Copy)]
pub(super) struct ReadContext<'a> {
    pub(super) theme: &'a Palette,
    pub(super) options: &'a MarkdownOptions,
    /// Definitions of earlier pieces.
    pub(super) definitions: &'a Definitions,
}

impl ReadContext<'_> {
    /// The style of text.
    pub(super) fn base(&self) -> Style {
        let style = self.theme.fg(self.options.text);
        if self.options.italic { style.add_modifier(Modifier::ITALIC) } else { style }
    }
}

/// The blocks of a text. A text from the middle of a paragraph begins with a paragraph, whatever it looks like.
pub(super) fn read(source: &str, is_middle: bool, context: &ReadContext<'_>) -> Vec<PlacedBlock> {
    let text = if is_middle { format!("{MIDDLE}{source}") } else { source.to_owned() };
    let mut resolve = |link: BrokenLink<'_>| {
        let url = context.definitions.get(&label_key(&link.reference))?;
        Some((CowStr::from(url.clone()), CowStr::from("")))
    };
    let parser = Parser::new_with_broken_link_callback(&text, EXTENSIONS, Some(&mut resolve));
    let mut definitions: Vec<(Range<usize>, MarkdownBlock)> = parser
        .reference_definitions()
        .iter()
        .map(|(label, definition)| {
            let clean = |text: &str| sanitize(text, SanitizeMode::Output).replace(['\n', '\t'], " ");
            let block = MarkdownBlock::Definition { label: clean(label), url: clean(&definition.dest) };
            (definition.span.clone(), block)
        })
        .collect();
    let events = TextMergeWithOffset::new(parser.into_offset_iter()).peekable();
    let mut reader = BlockReader { text: &text, events, context, depth: 0, skipped: 0 };
    let mut blocks = reader.blocks(context.base());
    if is_middle && let Some((_, first)) = blocks.first_mut() {
        remove_prefix(&mut first.block);
    }
    // What is defined inside of another block is not shown, as the block's own text is.
    definitions.retain(|(span, _)| !blocks.iter().any(|(range, _)| range.contains(&span.start)));
    let placed = |(range, block): (Range<usize>, MarkdownBlock)| {
        (range.clone(), PlacedBlock { after_blank: is_after_blank(&text, range.start), block })
    };
    blocks.extend(definitions.into_iter().map(placed));
    blocks.sort_by_key(|(range, _)| range.start);
    blocks.into_iter().map(|(_, block)| block).collect()
}

/// How a label of a definition is compared.
pub(super) fn label_key(label: &str) -> String {
    label.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

fn remove_prefix(block: &mut MarkdownBlock) {
    if let MarkdownBlock::Paragraph(lines) | MarkdownBlock::Heading { text: lines, .. } = block
        && let Some(span) = lines.first_mut().and_then(|line| line.first_mut())
        && let Some(rest) = span.content.strip_prefix(MIDDLE)
    {
        span.content = rest.to_owned().into();
    }
}

/// Whether the line before that of a place is blank, leaving aside the marks of quotes.
fn is_after_blank(text: &str, at: usize) -> bool {
    let line_start = text[..at].rfind('\n').unwrap_or(0);
    let before = text[..line_start].rsplit('\n').next().unwrap_or_default();
    line_start > 0 && before.chars().all(|c| c == '>' || c.is_whitespace())
}

struct BlockReader<'a, F: pulldown_cmark::BrokenLinkCallback<'a>> {
    text: &'a str,
    events: Peekable<TextMergeWithOffset<'a, OffsetIter<'a, F>>>,
    context: &'a ReadContext<'a>,
    depth: usize,
    /// Containers that are open and too deep to be shown.
    skipped: usize,
}

impl<'a, F: pulldown_cmark::BrokenLinkCallback<'a>> BlockReader<'a, F> {
    /// Reads blocks up to the end of the container that is open.
    fn blocks(&mut self, style: Style) -> Vec<(Range<usize>, PlacedBlock)> {
        let mut blocks = Vec::new();
        while let Some((event, range)) = self.events.peek() {
            let range = range.clone();
            if InlineWriter::is_inline(event) {
                let text = self.inlines(style);
                blocks.push(self.placed(range, MarkdownBlock::Paragraph(text)));
                continue;
            }
            if let Event::End(_) = event {
                if self.skipped == 0 {
                    return blocks;
                }
                self.skipped -= 1;
                self.events.next();
                continue;
            }
            let Some((event, _)) = self.events.next() else { break };
            let block = match event {
                Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::Item) if self.depth >= MAX_DEPTH => {
                    self.skipped += 1;
                    continue;
                }
                Event::Start(tag) => self.block(tag, style),
                Event::Rule => MarkdownBlock::Rule,
                Event::Html(html) => MarkdownBlock::Html(html.into_string()),
                _ => continue,
            };
            blocks.push(self.placed(range, block));
        }
        blocks
    }

    fn placed(&self, range: Range<usize>, block: MarkdownBlock) -> (Range<usize>, PlacedBlock) {
        let after_blank = is_after_blank(self.text, range.start);
        (range, PlacedBlock { after_blank, block })
    }

    fn children(&mut self, style: Style) -> Vec<PlacedBlock> {
        self.depth += 1;
        let skipped = std::mem::take(&mut self.skipped);
        let blocks = self.blocks(style);
        self.skipped = skipped;
        self.depth -= 1;
        self.events.next();
        blocks.into_iter().map(|(_, block)| block).collect()
    }

    /// Reads a block behind its start.
    fn block(&mut self, tag: Tag<'a>, style: Style) -> MarkdownBlock {
        let theme = self.context.theme;
        match tag {
            Tag::Heading { level, .. } => {
                let mut style = theme.bold(ColorRole::MdHeading);
                if level as usize == 1 {
                    style = style.add_modifier(Modifier::UNDERLINED);
                }
                let text = self.inlines(style);
                self.events.next();
                MarkdownBlock::Heading { level: level as usize, text }
            }
            Tag::CodeBlock(kind) => {
                let info = match kind {
                    CodeBlockKind::Fenced(info) => sanitize(&info, SanitizeMode::Output).into_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                MarkdownBlock::Code { info, text: self.raw() }
            }
            Tag::HtmlBlock => MarkdownBlock::Html(self.raw()),
            Tag::BlockQuote(_) => {
                let style = style.patch(theme.fg(ColorRole::MdQuote)).add_modifier(Modifier::ITALIC);
                MarkdownBlock::Quote(self.children(style))
            }
            Tag::List(first) => self.list(first, style),
            Tag::Table(alignments) => self.table(alignments, style),
            // A paragraph, and what is not enabled.
            _ => {
                let text = self.inlines(style);
                self.events.next();
                MarkdownBlock::Paragraph(text)
            }
        }
    }

    fn inlines(&mut self, style: Style) -> StyledLines {
        let mut writer = InlineWriter::new(self.context.theme, style);
        while let Some((event, range)) = self.events.next_if(|(event, _)| InlineWriter::is_inline(event)) {
            writer.event(event, &self.text[range]);
        }
        writer.finish()
    }

    /// The text up to the end of a block that has no markup.
    fn raw(&mut self) -> String {
        let mut text = String::new();
        for (event, _) in self.events.by_ref() {
            match event {
                Event::Text(part) | Event::Html(part) | Event::InlineHtml(part) => text.push_str(&part),
                Event::End(TagEnd::CodeBlock | TagEnd::HtmlBlock) => break,
                _ => {}
            }
        }
        text
    }

    fn list(&mut self, first: Option<u64>, style: Style) -> MarkdownBlock {
        let mut items = Vec::new();
        while let Some((event, range)) = self.events.next() {
            match event {
                Event::Start(Tag::Item) => {
                    let task = self.events.next_if(|(event, _)| matches!(event, Event::TaskListMarker(_)));
                    let mut task = task.and_then(|(event, _)| is_checked(&event));
                    if task.is_none() {
                        task = self.task_in_paragraph();
                    }
                    let after_blank = is_after_blank(self.text, range.start);
                    items.push(ListItem { after_blank, task, blocks: self.children(style) });
                }
                Event::End(_) => break,
                _ => {}
            }
        }
        MarkdownBlock::List { first, items }
    }

    /// The box at the beginning of an item whose text is a paragraph. The start of the paragraph is dropped with it, and its end is skipped.
    fn task_in_paragraph(&mut self) -> Option<bool> {
        let (Event::Start(Tag::Paragraph), range) = self.events.peek()? else { return None };
        let text = &self.text.as_bytes()[range.start..];
        if !matches!(text, [b'[', b' ' | b'x' | b'X', b']', ..]) {
            return None;
        }
        let (start, range) = self.events.next()?;
        let marker = self.events.next_if(|(event, _)| matches!(event, Event::TaskListMarker(_)));
        let Some((event, _)) = marker else {
            drop((start, range));
            return None;
        };
        is_checked(&event)
    }

    fn table(&mut self, alignments: Vec<Alignment>, style: Style) -> MarkdownBlock {
        let mut table = Table { alignments, ..Table::default() };
        let mut is_head = false;
        while let Some((event, _)) = self.events.next() {
            match event {
                Event::Start(Tag::TableHead) => is_head = true,
                Event::End(TagEnd::TableHead) => is_head = false,
                Event::Start(Tag::TableRow) => table.rows.push(Vec::new()),
                Event::Start(Tag::TableCell) if is_head => {
                    let text = self.inlines(style.add_modifier(Modifier::BOLD));
                    table.head.push(text);
                }
                Event::Start(Tag::TableCell) => {
                    let text = self.inlines(style);
                    if let Some(row) = table.rows.last_mut() {
                        row.push(text);
                    }
                }
                Event::End(TagEnd::Table) => break,
                _ => {}
            }
        }
        MarkdownBlock::Table(table)
    }
}

fn is_checked(event: &Event<'_>) -> Option<bool> {
    match event {
        Event::TaskListMarker(is_checked) => Some(*is_checked),
        _ => None,
    }
}

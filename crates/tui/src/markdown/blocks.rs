//! Parses blocks of text into values, with the styles of their text.

use std::collections::HashMap;
use std::iter::Peekable;

use pulldown_cmark::{Alignment, BrokenLink, CowStr, Event, OffsetIter, Parser, Tag, TagEnd, TextMergeWithOffset};
use ratatui_core::style::{Modifier, Style};

use super::cut::{MIDDLE, count_work};
use super::inline::{InlineWriter, StyledLines};
use super::options::EXTENSIONS;
use crate::text::{SanitizeMode, sanitize};
use crate::theme::{ColorRole, Palette};

/// One block.
#[derive(Debug)]
pub(super) enum MarkdownBlock {
    Paragraph(StyledLines),
    Heading {
        level: usize,
        text: StyledLines,
    },
    Table(Table),
    Rule,
    /// A link reference definition.
    Definition {
        label: String,
        url: String,
    },
}

/// A table.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    pub(super) head: Vec<StyledLines>,
    pub(super) rows: Vec<Vec<StyledLines>>,
}

/// Targets of reference links.
pub(super) type Definitions = HashMap<String, String>;

/// Context for parsing blocks.
#[derive(Clone, Copy)]
pub(super) struct ReadContext<'a> {
    pub(super) theme: &'a Palette,
    /// The style of text.
    pub(super) style: Style,
    /// Definitions in earlier pieces.
    pub(super) definitions: &'a Definitions,
}

/// Parses the blocks of a piece's text. Text from the middle of a paragraph is parsed as a paragraph, whatever it looks like.
pub(super) fn read(source: &str, is_middle: bool, context: &ReadContext<'_>) -> Vec<MarkdownBlock> {
    count_work(source.len());
    let text = if is_middle { format!("{MIDDLE}{source}") } else { source.to_owned() };
    let mut resolve = |link: BrokenLink<'_>| {
        let url = context.definitions.get(&label_key(&link.reference))?;
        Some((CowStr::from(url.clone()), CowStr::from("")))
    };
    let parser = Parser::new_with_broken_link_callback(&text, EXTENSIONS, Some(&mut resolve));
    let definitions: Vec<MarkdownBlock> = parser
        .reference_definitions()
        .iter()
        .map(|(label, definition)| {
            let clean = |text: &str| sanitize(text, SanitizeMode::Output).replace(['\n', '\t'], " ");
            MarkdownBlock::Definition { label: clean(label), url: clean(&definition.dest) }
        })
        .collect();
    let events = TextMergeWithOffset::new(parser.into_offset_iter()).peekable();
    let mut reader = BlockReader { text: &text, events, context };
    let mut blocks = reader.blocks();
    if is_middle && let Some(first) = blocks.first_mut() {
        remove_prefix(first);
    }
    blocks.extend(definitions);
    blocks
}

/// Normalises a label for comparison.
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

struct BlockReader<'a, F: pulldown_cmark::BrokenLinkCallback<'a>> {
    text: &'a str,
    events: Peekable<TextMergeWithOffset<'a, OffsetIter<'a, F>>>,
    context: &'a ReadContext<'a>,
}

impl<'a, F: pulldown_cmark::BrokenLinkCallback<'a>> BlockReader<'a, F> {
    fn blocks(&mut self) -> Vec<MarkdownBlock> {
        let style = self.context.style;
        let mut blocks = Vec::new();
        while let Some((event, _)) = self.events.peek() {
            if InlineWriter::is_inline(event) {
                blocks.push(MarkdownBlock::Paragraph(self.inlines(style)));
                continue;
            }
            match self.events.next() {
                Some((Event::Start(Tag::Heading { level, .. }), _)) => {
                    let mut style = self.context.theme.bold(ColorRole::MdHeading);
                    if level as usize == 1 {
                        style = style.add_modifier(Modifier::UNDERLINED);
                    }
                    blocks.push(MarkdownBlock::Heading { level: level as usize, text: self.inlines(style) });
                }
                Some((Event::Start(Tag::Table(alignments)), _)) => blocks.push(self.table(alignments)),
                Some((Event::Rule, _)) => blocks.push(MarkdownBlock::Rule),
                Some((Event::Html(html), _)) => {
                    let mut writer = InlineWriter::new(self.context.theme, style);
                    writer.event(Event::Text(html), "");
                    blocks.push(MarkdownBlock::Paragraph(writer.finish()));
                }
                // All other text is that of paragraphs.
                _ => {}
            }
        }
        blocks
    }

    fn inlines(&mut self, style: Style) -> StyledLines {
        let mut writer = InlineWriter::new(self.context.theme, style);
        while let Some((event, range)) = self.events.next_if(|(event, _)| InlineWriter::is_inline(event)) {
            writer.event(event, &self.text[range]);
        }
        writer.finish()
    }

    fn table(&mut self, alignments: Vec<Alignment>) -> MarkdownBlock {
        let mut table = Table { alignments, ..Table::default() };
        let mut is_head = false;
        while let Some((event, _)) = self.events.next() {
            match event {
                Event::Start(Tag::TableHead) => is_head = true,
                Event::End(TagEnd::TableHead) => is_head = false,
                Event::Start(Tag::TableRow) => table.rows.push(Vec::new()),
                Event::Start(Tag::TableCell) if is_head => {
                    let text = self.inlines(self.context.style.add_modifier(Modifier::BOLD));
                    table.head.push(text);
                }
                Event::Start(Tag::TableCell) => {
                    let text = self.inlines(self.context.style);
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

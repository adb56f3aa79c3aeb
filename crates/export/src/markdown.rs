//! Markdown rendering. HTML is shown as text, links lead to the web or nowhere, and images are never fetched.

use std::io;

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, LinkType, Options, Parser, Tag, TextMergeStream};

use super::images;
use super::out::PageWriter;
use super::syntax;

/// Maximum bytes of text rendered as Markdown; longer texts are shown verbatim.
const MAX_BYTES: usize = 1024 * 1024;
/// Maximum nesting of elements; deeper ones lose their formatting, but not their text.
const MAX_DEPTH: usize = 40;

/// Writes a Markdown text.
pub(super) fn markdown(out: &mut PageWriter<'_>, text: &str) -> io::Result<()> {
    if text.len() > MAX_BYTES {
        out.html("<pre class=\"plain\">")?;
        out.text(text)?;
        return out.html("</pre>");
    }
    out.html("<div class=\"md\">")?;
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer =
        Writer { out, open: Vec::new(), links: 0, table: Vec::new(), column: 0, in_head: false, code: None };
    for event in TextMergeStream::new(Parser::new_ext(text, options)) {
        writer.event(event)?;
    }
    out.html("</div>")
}

struct Writer<'w, 'o> {
    out: &'w mut PageWriter<'o>,
    /// Closing tags of the open elements, innermost last.
    open: Vec<&'static str>,
    /// Number of open links.
    links: usize,
    table: Vec<Alignment>,
    column: usize,
    in_head: bool,
    /// Language and text of the current code block.
    code: Option<(String, String)>,
}

impl Writer<'_, '_> {
    fn event(&mut self, event: Event<'_>) -> io::Result<()> {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(_) => self.end(),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => {
                    code.push_str(&text);
                    Ok(())
                }
                None if self.links > 0 => self.out.text(&text),
                None => self.linked(&text),
            },
            Event::Html(text) | Event::InlineHtml(text) | Event::FootnoteReference(text) => self.out.text(&text),
            Event::Code(code) | Event::InlineMath(code) | Event::DisplayMath(code) => {
                self.out.html("<code>")?;
                self.out.text(&code)?;
                self.out.html("</code>")
            }
            Event::SoftBreak => self.out.html("\n"),
            Event::HardBreak => self.out.html("<br>"),
            Event::Rule => self.out.html("<hr>"),
            Event::TaskListMarker(true) => self.out.html("<span class=\"task\">\u{2611}</span> "),
            Event::TaskListMarker(false) => self.out.html("<span class=\"task\">\u{2610}</span> "),
        }
    }

    fn start(&mut self, tag: Tag<'_>) -> io::Result<()> {
        if self.open.len() >= MAX_DEPTH && !matches!(tag, Tag::CodeBlock(_)) {
            self.open.push("");
            return Ok(());
        }
        match tag {
            Tag::Paragraph => self.element("<p>", "</p>\n"),
            Tag::Heading { level, .. } => match level {
                HeadingLevel::H1 => self.element("<h3 class=\"h1\">", "</h3>\n"),
                HeadingLevel::H2 => self.element("<h4 class=\"h2\">", "</h4>\n"),
                HeadingLevel::H3 => self.element("<h5>", "</h5>\n"),
                _ => self.element("<h6>", "</h6>\n"),
            },
            Tag::BlockQuote(_) => self.element("<blockquote>", "</blockquote>\n"),
            Tag::CodeBlock(kind) => {
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => info.split([' ', ',', '{']).next().unwrap_or_default(),
                    CodeBlockKind::Indented => "",
                };
                self.code = Some((language.to_owned(), String::new()));
                Ok(())
            }
            Tag::HtmlBlock => self.element("<p class=\"raw\">", "</p>\n"),
            Tag::List(None) => self.element("<ul>", "</ul>\n"),
            Tag::List(Some(first)) => {
                self.out.html("<ol start=\"")?;
                self.out.number(usize::try_from(first).unwrap_or(1))?;
                self.element("\">", "</ol>\n")
            }
            Tag::Item => self.element("<li>", "</li>\n"),
            Tag::Table(columns) => {
                self.table = columns;
                self.element("<div class=\"table\"><table>", "</table></div>\n")
            }
            Tag::TableHead => {
                (self.column, self.in_head) = (0, true);
                self.element("<thead><tr>", "</tr></thead>\n")
            }
            Tag::TableRow => {
                (self.column, self.in_head) = (0, false);
                self.element("<tr>", "</tr>\n")
            }
            Tag::TableCell => self.cell(),
            Tag::Emphasis => self.element("<em>", "</em>"),
            Tag::Strong => self.element("<strong>", "</strong>"),
            Tag::Strikethrough => self.element("<del>", "</del>"),
            Tag::Link { link_type, dest_url, .. } => self.link(link_type == LinkType::Email, &dest_url),
            Tag::Image { dest_url, .. } => self.image(&dest_url),
            // Disabled in the options above.
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => self.element("", ""),
        }
    }

    fn element(&mut self, open: &'static str, close: &'static str) -> io::Result<()> {
        self.open.push(close);
        self.out.html(open)
    }

    fn end(&mut self) -> io::Result<()> {
        if let Some((language, code)) = self.code.take() {
            return code_block(self.out, &language, &code);
        }
        let close = self.open.pop().unwrap_or_default();
        if close.ends_with("</a>") {
            self.links -= 1;
        }
        self.out.html(close)
    }

    fn cell(&mut self) -> io::Result<()> {
        let align = self.table.get(self.column).copied().unwrap_or(Alignment::None);
        self.column += 1;
        let (open, close) = match (self.in_head, align) {
            (true, Alignment::Right) => ("<th class=\"right\">", "</th>"),
            (true, Alignment::Center) => ("<th class=\"center\">", "</th>"),
            (true, _) => ("<th>", "</th>"),
            (false, Alignment::Right) => ("<td class=\"right\">", "</td>"),
            (false, Alignment::Center) => ("<td class=\"center\">", "</td>"),
            (false, _) => ("<td>", "</td>"),
        };
        self.element(open, close)
    }

    fn link(&mut self, is_email: bool, to: &str) -> io::Result<()> {
        if self.links > 0 || !(is_email || is_safe(to)) {
            self.out.html("<span class=\"link\" title=\"")?;
            self.out.text(to)?;
            return self.element("\">", "</span>");
        }
        self.open_link(is_email, to)?;
        self.open.push("</a>");
        Ok(())
    }

    fn open_link(&mut self, is_email: bool, to: &str) -> io::Result<()> {
        self.links += 1;
        self.out.html("<a rel=\"noopener noreferrer nofollow\" target=\"_blank\" href=\"")?;
        if is_email {
            self.out.html("mailto:")?;
        }
        self.out.text(to)?;
        self.out.html("\">")
    }

    /// Writes an image if it is embedded as data, or a link otherwise.
    fn image(&mut self, to: &str) -> io::Result<()> {
        if images::data_url(self.out, to)? {
            return self.element("<span class=\"alt\">", "</span>");
        }
        if self.links > 0 || !is_safe(to) {
            self.out.html("<span class=\"link\" title=\"")?;
            self.out.text(to)?;
            return self.element("\">picture: ", "</span>");
        }
        self.open_link(false, to)?;
        self.element("picture: ", "</a>")
    }

    /// Writes text, turning web addresses into links.
    fn linked(&mut self, text: &str) -> io::Result<()> {
        let mut rest = text;
        while let Some(at) = rest.find("http") {
            let (before, from) = rest.split_at(at);
            self.out.text(before)?;
            let address = address(from);
            if address.is_empty() {
                self.out.html("http")?;
                rest = &from[4..];
                continue;
            }
            self.open_link(false, address)?;
            self.out.text(address)?;
            self.links -= 1;
            self.out.html("</a>")?;
            rest = &from[address.len()..];
        }
        self.out.text(rest)
    }
}

/// Returns the URL that a text starts with, or an empty string.
fn address(text: &str) -> &str {
    let Some(host) = ["https://", "http://"].iter().find_map(|scheme| text.strip_prefix(scheme)) else { return "" };
    let end = host.find(|c: char| c.is_whitespace() || c.is_control() || "<>\"'`|".contains(c)).unwrap_or(host.len());
    let host = host[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', '*', ']', '}']);
    // A closing parenthesis belongs to the address if it was opened within it.
    let host = if host.contains('(') { host } else { host.trim_end_matches(')') };
    if host.is_empty() { "" } else { &text[..text.len() - text[text.find("//").unwrap_or(0) + 2..].len() + host.len()] }
}

/// Returns whether a link may be followed: only to the web and to mail addresses. Anything else could run something, or refer to the
/// reader's files.
fn is_safe(to: &str) -> bool {
    ["http://", "https://", "mailto:"]
        .iter()
        .any(|scheme| to.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
}

/// Writes a code block.
pub(super) fn code_block(out: &mut PageWriter<'_>, language: &str, code: &str) -> io::Result<()> {
    out.html(if syntax::is_diff(language) { "<pre class=\"diff\"><code" } else { "<pre><code" })?;
    if !language.is_empty() {
        out.html(" title=\"")?;
        out.text(language)?;
        out.html("\"")?;
    }
    out.html(">")?;
    syntax::code(out, language, code)?;
    out.html("</code></pre>\n")
}

#[cfg(test)]
mod tests;

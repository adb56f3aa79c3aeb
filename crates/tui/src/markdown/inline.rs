//! Inline text: emphasis, code, links.

use pulldown_cmark::{CowStr, Event, LinkType, Tag, TagEnd};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::Span;

use crate::Row;
use crate::text::{SanitizeMode, sanitize, wrap};
use crate::theme::{ColorRole, Palette};

/// Lines of styled text, wrapped separately.
pub(super) type StyledLines = Vec<Vec<Span<'static>>>;

/// Collects the inline text of a block.
pub(super) struct InlineWriter<'a> {
    theme: &'a Palette,
    lines: StyledLines,
    styles: Vec<Style>,
    /// Open links.
    links: Vec<OpenLink>,
}

struct OpenLink {
    url: String,
    /// Its text so far.
    text: String,
    /// Its style, if it is clickable.
    clickable: Option<Style>,
}

impl<'a> InlineWriter<'a> {
    /// Creates a writer for text in a style.
    pub(super) fn new(theme: &'a Palette, style: Style) -> Self {
        Self { theme, lines: vec![Vec::new()], styles: vec![style], links: Vec::new() }
    }

    /// Returns the collected lines.
    pub(super) fn finish(self) -> StyledLines {
        self.lines
    }

    /// Returns whether an event is part of inline text.
    pub(super) fn is_inline(event: &Event<'_>) -> bool {
        match event {
            Event::Start(tag) => is_inline(&tag.to_end()),
            Event::End(tag) => is_inline(tag),
            Event::Html(_) | Event::Rule | Event::TaskListMarker(_) => false,
            _ => true,
        }
    }

    /// Handles an event. `source` is its source text.
    pub(super) fn event(&mut self, event: Event<'_>, source: &str) {
        match event {
            Event::Start(tag) => self.open(tag, source),
            Event::End(tag) => self.close(tag, source),
            Event::Text(text) => self.text(&text),
            Event::Code(code) => self.push(&code, self.style().patch(self.theme.fg(ColorRole::MdCode))),
            Event::InlineHtml(html) => match html.to_ascii_lowercase().as_str() {
                "<br>" | "<br/>" | "<br />" => self.break_line(),
                _ => self.push(&html, self.style()),
            },
            // A line break in a model's text is intentional.
            Event::SoftBreak | Event::HardBreak => self.break_line(),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => self.text(&text),
            Event::Html(_) | Event::Rule | Event::TaskListMarker(_) => {}
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn open(&mut self, tag: Tag<'_>, source: &str) {
        let style = match tag {
            Tag::Emphasis => self.style().add_modifier(Modifier::ITALIC),
            Tag::Strong => self.style().add_modifier(Modifier::BOLD),
            Tag::Strikethrough if source.starts_with("~~") => self.style().add_modifier(Modifier::CROSSED_OUT),
            Tag::Strikethrough => {
                self.push("~", self.style());
                self.style()
            }
            Tag::Link { link_type, dest_url, .. } => self.open_link(link_type, &dest_url),
            Tag::Image { link_type, dest_url, .. } => self.open_link(link_type, &dest_url),
            _ => self.style(),
        };
        self.styles.push(style);
    }

    fn open_link(&mut self, link_type: LinkType, url: &str) -> Style {
        let (shown, target) = match link_type {
            LinkType::Email => {
                let address = url.strip_prefix("mailto:").unwrap_or(url);
                (address, format!("mailto:{address}"))
            }
            _ => (url, url.to_owned()),
        };
        let style = self.link_style();
        let clickable = self.theme.link(&target, style);
        self.links.push(OpenLink {
            url: sanitize(shown, SanitizeMode::Output).replace(['\n', '\t'], " "),
            text: String::new(),
            clickable,
        });
        clickable.unwrap_or(style)
    }

    fn link_style(&self) -> Style {
        self.style().patch(self.theme.fg(ColorRole::MdLink)).add_modifier(Modifier::UNDERLINED)
    }

    fn close(&mut self, tag: TagEnd, source: &str) {
        if tag == TagEnd::Strikethrough && !source.ends_with("~~") {
            self.push("~", self.style());
        }
        if self.styles.len() > 1 {
            self.styles.pop();
        }
        if !matches!(tag, TagEnd::Link | TagEnd::Image) {
            return;
        }
        let Some(link) = self.links.pop() else { return };
        let target = link.url.strip_prefix("mailto:").unwrap_or(&link.url);
        // A text that could be mistaken for another URL must not hide the link's target.
        let needs_no_address =
            link.clickable.is_some() && !link.text.trim().is_empty() && !is_like_an_address(&link.text);
        if link.text != link.url && link.text != target && !link.url.is_empty() && !needs_no_address {
            let style = self.style().patch(self.theme.fg(ColorRole::MdLinkUrl));
            let style = Style { underline_color: link.clickable.and_then(|link| link.underline_color), ..style };
            let before = if link.text.is_empty() { "" } else { " " };
            self.push(&format!("{before}({})", link.url), style);
        }
    }

    /// Adds text, and links the URLs in it.
    fn text(&mut self, text: &CowStr<'_>) {
        let style = self.style();
        let mut rest: &str = text;
        while self.links.is_empty()
            && let Some(start) = bare_url(rest)
        {
            let url = url_at(&rest[start..]);
            self.push(&rest[..start], style);
            let link = self.link_style();
            self.push(url, self.theme.link(url, link).unwrap_or(link));
            rest = &rest[start + url.len()..];
        }
        self.push(rest, style);
    }

    fn push(&mut self, text: &str, style: Style) {
        // Entities may have become control characters.
        let text = sanitize(text, SanitizeMode::Prose);
        if let Some(link) = self.links.last_mut() {
            link.text.push_str(&text);
        }
        for (at, part) in text.split('\n').enumerate() {
            if at > 0 {
                self.break_line();
            }
            let Some(line) = self.lines.last_mut().filter(|_| !part.is_empty()) else { continue };
            match line.last_mut() {
                Some(last) if last.style == style => last.content.to_mut().push_str(part),
                _ => line.push(Span::styled(part.to_owned(), style)),
            }
        }
    }

    fn break_line(&mut self) {
        self.lines.push(Vec::new());
    }
}

fn is_inline(tag: &TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::Link
            | TagEnd::Image
    )
}

/// Returns whether a text could be mistaken for a URL.
fn is_like_an_address(text: &str) -> bool {
    let is_dot = |at: usize| {
        let before = text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        before && text[at + 1..].starts_with(char::is_alphanumeric)
    };
    text.contains("://") || text.contains('@') || text.match_indices('.').any(|(at, _)| is_dot(at))
}

/// Returns the start of the first URL in a text.
fn bare_url(text: &str) -> Option<usize> {
    let is_start = |at: &usize| {
        let before = text[..*at].chars().next_back();
        let rest = &text[*at..];
        !before.is_some_and(char::is_alphanumeric)
            && ["http://", "https://"]
                .iter()
                .any(|scheme| rest.starts_with(scheme) && url_at(rest).len() > scheme.len())
    };
    text.match_indices("http").map(|(at, _)| at).find(is_start)
}

/// Returns the URL at the beginning of a text, without trailing punctuation.
fn url_at(text: &str) -> &str {
    let end = text.find(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"' | '`'));
    let mut url = &text[..end.unwrap_or(text.len())];
    while let Some(last) = url.chars().next_back() {
        let is_unbalanced = |open, close| last == close && url.matches(close).count() > url.matches(open).count();
        let is_punctuation = matches!(last, '.' | ',' | ':' | ';' | '!' | '?' | '\'' | '*' | '_' | '~');
        if !is_punctuation && !is_unbalanced('(', ')') && !is_unbalanced('[', ']') && !is_unbalanced('{', '}') {
            break;
        }
        url = &url[..url.len() - last.len_utf8()];
    }
    url
}

/// Wraps lines separately.
pub(super) fn wrapped(lines: &StyledLines, columns: usize) -> Vec<Row> {
    lines.iter().flat_map(|line| wrap(line, columns)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_end_before_punctuation() {
        for (text, url) in [
            ("see https://a.b/c, and", "https://a.b/c"),
            ("(https://a.b/c_(d)).", "https://a.b/c_(d)"),
            ("http://x", "http://x"),
            ("日本https://x.y。", "https://x.y。"),
        ] {
            let start = text.find("http").unwrap();
            assert_eq!(url_at(&text[start..]), url);
        }
        for (text, start) in [("https:// x", None), ("xhttps://a", None), ("a https://b", Some(2)), ("http", None)] {
            assert_eq!(bare_url(text), start, "{text}");
        }
    }
}

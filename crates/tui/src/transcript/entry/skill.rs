//! The text of a skill in a prompt.

use pinch_coding_agent::export::html::SkillPrompt;
use ratatui_core::text::Span;

use super::ViewCx;
use super::frame::{boxed, inner_columns};
use crate::Row;
use crate::markdown::{Markdown, MarkdownOptions};
use crate::text::{one_line, wrap};
use crate::theme::ColorRole;

/// View of a skill.
pub(crate) struct SkillView {
    name: String,
    body: String,
    expanded: bool,
}

impl SkillView {
    pub(super) fn new(name: &str, body: &str) -> Self {
        Self { name: name.to_owned(), body: body.to_owned(), expanded: false }
    }

    pub(super) fn toggle(&mut self) {
        self.expanded = !self.expanded;
    }

    pub(super) fn texts(&self, each: &mut dyn FnMut(&str)) {
        [&self.name, &self.body].into_iter().for_each(|text| each(text));
    }

    pub(super) fn rows(&self, cx: ViewCx<'_>) -> Vec<Row> {
        let columns = inner_columns(cx);
        let is_expanded = self.expanded || cx.options.expanded;
        let mut rows = folded(&self.name, !is_expanded, columns, cx);
        if is_expanded {
            let options = MarkdownOptions::colored(ColorRole::CustomMessageText);
            rows.extend(Markdown::of(&self.body, options).rows(columns, cx.theme));
        }
        boxed(rows, ColorRole::CustomMessageBg, cx)
    }
}

/// Returns the line that stands for the text of a skill.
pub(super) fn folded(name: &str, with_hint: bool, columns: usize, cx: ViewCx<'_>) -> Vec<Row> {
    let theme = cx.theme;
    let hint = if with_hint { format!(" ({})", cx.expand_hint()) } else { String::new() };
    let line = [
        Span::styled("[skill] ", theme.bold(ColorRole::CustomMessageLabel)),
        Span::styled(one_line(name), theme.fg(ColorRole::CustomMessageText)),
        Span::styled(hint, theme.fg(ColorRole::Muted)),
    ];
    wrap(&line, columns)
}

/// Returns a prompt as the user typed it, with the command of a skill in place of its text.
pub(crate) fn typed_prompt(text: &str) -> String {
    SkillPrompt::parse(text).map_or_else(|| text.to_owned(), |skill| skill.command())
}

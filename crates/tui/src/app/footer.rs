//! The footer: directory, cost, context usage, and model.

use pinch_coding_agent::session::stats::UsageTotals;
use ratatui_core::text::Span;
use std::collections::BTreeMap;

use super::branch::Head;
use crate::Row;
use crate::figures::tokens;
use crate::sgr;
use crate::text::{SanitizeMode, one_line, row_width, sanitize, truncate, width};
use crate::theme::{ColorRole, Palette};

/// Columns of the model's name for which other figures make room.
const MIN_MODEL: usize = 12;

/// Contents of the footer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Footer {
    /// The working directory, with `~` for the home directory.
    pub(crate) cwd: String,
    pub(crate) head: Option<Head>,
    pub(crate) session_name: Option<String>,
    pub(crate) spent: UsageTotals,
    /// Whether the model is paid for by a subscription.
    pub(crate) subscription: bool,
    /// Tokens in the context window; `None`: unknown since the last compaction.
    pub(crate) context_tokens: Option<u64>,
    /// Size of the window in tokens; 0: unknown.
    pub(crate) context_window: u64,
    pub(crate) auto_compaction: bool,
    pub(crate) provider: Option<String>,
    /// Number of providers with usable models. If there are several, the model's is shown, if there is room.
    pub(crate) n_providers: usize,
    pub(crate) model: String,
    /// Thinking level; `None`: the model does not support thinking.
    pub(crate) thinking: Option<String>,
    /// Texts of extensions, by key.
    pub(crate) statuses: BTreeMap<String, String>,
}

impl Footer {
    /// Formats the footer: two rows, and a third one if extensions have set statuses.
    pub(crate) fn rows(&self, columns: usize, theme: &Palette) -> Vec<Row> {
        let dim = theme.fg(ColorRole::Dim);
        let mut place = self.cwd.clone();
        match &self.head {
            Some(Head::Branch(name)) => place.push_str(&format!(" ({})", sanitize(name, SanitizeMode::Output))),
            Some(Head::Detached) => place.push_str(" (detached)"),
            None => {}
        }
        if let Some(name) = &self.session_name {
            place.push_str(&format!(" • {}", one_line(name)));
        }
        let mut rows = vec![truncate(&Row::styled(place, dim), columns, "..."), self.figures(columns, theme)];
        if !self.statuses.is_empty() {
            let mut row = Row::default();
            for text in self.statuses.values() {
                if !row.spans.is_empty() {
                    row.spans.push(Span::raw(" "));
                }
                row.spans.extend(sgr::spans_on(dim, text, theme));
            }
            rows.push(truncate(&row, columns, "..."));
        }
        rows
    }

    fn figures(&self, columns: usize, theme: &Palette) -> Row {
        let dim = theme.fg(ColorRole::Dim);
        let thinking = match self.thinking.as_deref() {
            None => String::new(),
            Some("off") => " • thinking off".to_owned(),
            Some(level) => format!(" • {level}"),
        };
        let model = one_line(&format!("{}{thinking}", self.model));
        let needed = width(&model).min(MIN_MODEL) + 2;
        // On a narrow screen, the model and the context usage take precedence.
        let mut left = self.spent_figures(theme);
        left.extend(self.context_figure(theme));
        let is_wide = |figures: &[Span<'static>]| row_width(&joined(figures)) + needed > columns;
        if self.auto_compaction && self.context_window > 0 {
            left.push(Span::styled("(auto)", dim));
            if is_wide(&left) {
                left.pop();
            }
        }
        while left.len() > 1 && is_wide(&left) {
            left.remove(0);
        }
        let left = joined(&left);
        let used = row_width(&left);
        let with_provider = self
            .provider
            .as_ref()
            .filter(|_| self.n_providers > 1)
            .map(|provider| one_line(&format!("({provider}) {model}")));
        let fits = |text: &String| used + 2 + width(text) <= columns;
        let right = with_provider.filter(fits).unwrap_or(model);
        let room = columns.saturating_sub(used + 2);
        if room == 0 {
            return truncate(&left, columns, "...");
        }
        let right = truncate(&Row::styled(right, dim), room, "");
        let gap = columns.saturating_sub(used + row_width(&right));
        let mut spans = left.spans;
        spans.push(Span::raw(" ".repeat(gap)));
        spans.extend(right.spans.into_iter().map(|span| span.style(dim)));
        Row::from(spans)
    }

    /// Formats what the session has used so far.
    fn spent_figures(&self, theme: &Palette) -> Vec<Span<'static>> {
        let dim = theme.fg(ColorRole::Dim);
        let mut figures = Vec::new();
        let mut add = |text: String| figures.push(Span::styled(text, dim));
        let spent = &self.spent;
        for (sign, n) in [("↑", spent.input), ("↓", spent.output), ("R", spent.cache_read), ("W", spent.cache_write)]
        {
            if n > 0 {
                add(format!("{sign}{}", tokens(n)));
            }
        }
        if spent.cost > 0.0 || self.subscription {
            add(format!("${:.3}{}", spent.cost, if self.subscription { " (sub)" } else { "" }));
        }
        figures
    }

    /// Formats how full the context window is.
    fn context_figure(&self, theme: &Palette) -> Option<Span<'static>> {
        if self.context_window == 0 {
            return None;
        }
        let dim = theme.fg(ColorRole::Dim);
        let window = tokens(self.context_window);
        let Some(used) = self.context_tokens else { return Some(Span::styled(format!("?/{window}"), dim)) };
        let percent = used as f64 * 100.0 / self.context_window as f64;
        let style = match percent {
            90.0.. => theme.fg(ColorRole::Error),
            70.0.. => theme.fg(ColorRole::Warning),
            _ => dim,
        };
        Some(Span::styled(format!("{percent:.1}%/{window}"), style))
    }
}

/// Joins figures by spaces.
fn joined(figures: &[Span<'static>]) -> Row {
    let spaced = figures
        .iter()
        .enumerate()
        .flat_map(|(at, figure)| (at > 0).then(|| Span::raw(" ")).into_iter().chain([figure.clone()]));
    Row::from(spaced.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::ColorDepth;

    fn footer() -> Footer {
        let mut spent = UsageTotals::default();
        (spent.input, spent.output, spent.cache_read, spent.cost) = (12_345, 950, 1_200_000, 0.1234);
        Footer {
            cwd: "~/src/pinch".to_owned(),
            head: Some(Head::Branch("main".to_owned())),
            session_name: Some("fix \u{1b}]0;x\u{7}it".to_owned()),
            spent,
            context_tokens: Some(150_000),
            context_window: 200_000,
            auto_compaction: true,
            provider: Some("anthropic".to_owned()),
            n_providers: 2,
            model: "claude-sonnet-4-5".to_owned(),
            thinking: Some("high".to_owned()),
            ..Footer::default()
        }
    }

    fn shown(footer: &Footer, columns: usize) -> String {
        let theme = Palette::builtin("dark", ColorDepth::True);
        let rows = footer.rows(columns, &theme);
        assert!(rows.iter().all(|row| row_width(row) <= columns));
        rows.iter().map(|row| format!("{row}|\n")).collect()
    }

    #[test]
    fn the_provider_is_named_only_if_there_are_several() {
        let shown = |n_providers| shown(&Footer { n_providers, ..footer() }, 100);
        assert!(shown(2).contains("(anthropic) claude-sonnet-4-5 • high"));
        assert!(!shown(1).contains("anthropic"));
    }

    #[test]
    fn the_provider_is_dropped_first_and_then_the_right_side_is_truncated() {
        insta::assert_snapshot!([100, 80, 60, 20].map(|columns| shown(&footer(), columns)).join("\n"));
    }
}

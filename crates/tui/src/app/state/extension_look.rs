//! What extensions change about the interface, apart from their own rows; and what they can look up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pinch_coding_agent::extension::rendering::Renderers;
use pinch_coding_agent::extension::snapshot::{ThemeColors, UiSnapshot, WorkingIndicator};
use pinch_coding_agent::services::Services;
use ratatui_core::text::Span;

use super::App;
use crate::Row;
use crate::keymap::KeyAction;
use crate::sgr;
use crate::theme::{ColorRole, Palette};
use crate::transcript::{DrawingRequest, DrawingTicket};
use crate::widget::Loader;

/// Maximum number of frames of a sign of activity.
const MAX_FRAMES: usize = 100;

/// How the row looks that is shown while the model works.
#[derive(Default)]
pub(super) struct WorkingLook {
    pub(super) message: Option<String>,
    pub(super) is_hidden: bool,
    indicator: Option<Loader>,
}

impl WorkingLook {
    /// Sets the sign of activity; `usual`: the one of the interface.
    pub(super) fn set_indicator(&mut self, indicator: Option<WorkingIndicator>, usual: &Loader) {
        self.indicator = indicator.map(|WorkingIndicator { mut frames, interval }| {
            // Where nothing moves, this does not move either.
            frames.truncate(if usual.interval().is_some() { MAX_FRAMES } else { 1 });
            Loader::with_frames(frames, interval.or(usual.interval()).unwrap_or_default())
        });
    }

    /// Returns how long each frame is shown; `None`: nothing moves.
    pub(super) fn interval(&self, usual: &Loader) -> Option<Duration> {
        self.indicator.as_ref().unwrap_or(usual).interval()
    }

    /// Returns the message to show in this row, which tells of an activity.
    pub(super) fn message(&self, is_working: bool) -> Option<&str> {
        self.message.as_deref().filter(|_| is_working)
    }

    /// Returns the row: the sign, the message if there is one, and the rest.
    pub(super) fn row(&self, usual: &Loader, elapsed: Duration, text: (Option<&str>, &str), theme: &Palette) -> Row {
        let (message, rest) = text;
        let mut row = match &self.indicator {
            None => usual.row(elapsed, "", theme),
            Some(indicator) => {
                let frame = indicator.frame(elapsed).map(|frame| sgr::row(frame, theme));
                frame.map_or_else(Row::default, |mut frame| {
                    frame.spans.push(Span::raw(" "));
                    frame
                })
            }
        };
        let muted = theme.fg(ColorRole::Muted);
        if let Some(message) = message {
            row.spans.extend(sgr::spans_on(muted, message, theme));
        }
        row.spans.push(Span::styled(rest.to_owned(), muted));
        row
    }
}

/// What extensions were last told.
#[derive(Default)]
pub(super) struct ToldScreen {
    /// Revision of the editor.
    revision: Option<u64>,
    snapshot: Arc<UiSnapshot>,
    /// The themes that can be chosen.
    themes: Arc<Vec<ThemeColors>>,
    keys: Arc<BTreeMap<String, String>>,
    /// Why something was not drawn, as shown last.
    drawing_problem: Option<String>,
}

impl App {
    /// Sets the line in place of hidden thinking.
    pub(super) fn set_thinking_label(&mut self, label: Option<String>) {
        if self.transcript.options.thinking_label != label {
            self.transcript.options.thinking_label = label;
            self.transcript.invalidate();
        }
    }

    /// Sets what extensions draw of the conversation; nothing in plain output.
    pub(super) fn set_renderers(&mut self, renderers: Renderers) {
        if !self.is_plain() {
            self.transcript.options.drawings.lock().set_renderers(renderers);
            self.transcript.invalidate();
        }
    }

    /// Returns what extensions are to draw since the last call.
    pub(crate) fn take_drawing_requests(&mut self) -> Vec<DrawingRequest> {
        self.transcript.options.drawings.lock().take_requests()
    }

    /// Takes what an extension has drawn. A problem is shown once.
    pub(crate) fn drawn(&mut self, ticket: &DrawingTicket, lines: Result<Option<Vec<String>>, String>) {
        let lines = lines.unwrap_or_else(|problem| {
            let problem = format!("An extension did not draw a part of the conversation: {problem}");
            if self.told.drawing_problem.as_ref() != Some(&problem) {
                self.warning(&problem);
                self.told.drawing_problem = Some(problem);
            }
            None
        });
        self.transcript.drawn(ticket, &lines);
    }

    /// Describes the themes for extensions.
    pub(super) fn describe_themes(&mut self, services: &Services) {
        let resources = services.resources();
        let themes = resources.themes.iter().map(|theme| {
            let file = self.theme_files.latest(theme);
            let mut colors = colors(&Palette::new(file, self.depth));
            colors.name.clone_from(&file.name);
            colors.path = Some(file.info.path.clone()).filter(|path| path.is_absolute());
            colors
        });
        let themes: Vec<_> = themes.collect();
        if *self.told.themes != themes {
            self.told.themes = Arc::new(themes);
        }
    }

    /// Describes the keys for extensions.
    pub(super) fn describe_keys(&mut self) {
        let key = |action: &KeyAction| (action.id().to_owned(), self.keymap.hint(*action));
        self.told.keys = Arc::new(KeyAction::ALL.iter().map(key).collect());
    }

    /// Returns what is on the screen for extensions, if it has changed.
    pub(crate) fn take_snapshot(&mut self) -> Option<Arc<UiSnapshot>> {
        if self.told.themes.is_empty() {
            // Until the resources are loaded.
            self.told.themes = Arc::new(vec![colors(&self.theme)]);
        }
        let (told, is_expanded) = (&mut self.told, self.transcript.options.expanded);
        let revision = self.editor.revision();
        let is_same = told.revision == Some(revision)
            && told.snapshot.tools_expanded == is_expanded
            && told.snapshot.theme == self.theme.name()
            && Arc::ptr_eq(&told.snapshot.keys, &told.keys)
            && Arc::ptr_eq(&told.snapshot.themes, &told.themes);
        if is_same {
            return None;
        }
        let mut snapshot = UiSnapshot::default();
        snapshot.editor_text = match told.revision == Some(revision) {
            true => told.snapshot.editor_text.clone(),
            false => self.editor.text(),
        };
        snapshot.tools_expanded = is_expanded;
        self.theme.name().clone_into(&mut snapshot.theme);
        snapshot.keys = Arc::clone(&told.keys);
        snapshot.themes = Arc::clone(&told.themes);
        told.revision = Some(revision);
        told.snapshot = Arc::new(snapshot);
        Some(Arc::clone(&told.snapshot))
    }
}

/// Returns the colours of a palette.
fn colors(palette: &Palette) -> ThemeColors {
    let mut colors = ThemeColors::default();
    palette.name().clone_into(&mut colors.name);
    colors.foreground = sgr::colors(palette, true);
    colors.background = sgr::colors(palette, false);
    colors
}

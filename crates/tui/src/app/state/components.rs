//! Components of extensions: in place of the editor, the header or the footer, next to the editor, and above everything.

use pinch_coding_agent::extension::component::{
    ComponentAction, ComponentEvent, ComponentPlace, ComponentView, FooterFacts, WidgetPlace,
};
use pinch_coding_agent::extension::overlay::OverlayBounds;
use ratatui_core::style::Style;

use super::App;
use super::view::MAX_WIDGET;
use crate::Row;
use crate::app::branch::Head;
use crate::component_pane::ComponentPane;
use crate::compose::{self, RowsWithCursor};
use crate::dialog::{CLOSE, ComponentDialog, DOUBLE_PRESS_MS};
use crate::effect::Effect;
use crate::key::KeyPress;
use crate::sgr;
use crate::terminal::{Size, TerminalInput, parse_input};
use crate::text::{pad, skip_columns, truncate};

/// Maximum number of lines of a footer of an extension.
const MAX_FOOTER: usize = 10;
/// Maximum number of widgets.
const MAX_WIDGETS: usize = 64;
/// Maximum bytes of what was typed that are kept for pinch's own editor, in case that of an extension hangs.
const MAX_UNHEARD: usize = 1 << 20;
/// What the user is told when the editor of an extension hangs.
const UNRESPONSIVE: &str = "The editor of an extension does not respond; pinch's own editor has taken its place";

/// The components on the screen, apart from dialogs.
#[derive(Default)]
pub(super) struct Components {
    /// Number of components so far.
    count: u64,
    editor: Option<EditorPane>,
    /// The header, and whether it is written into the conversation.
    header: Option<(ComponentPane, bool)>,
    footer: Option<ComponentPane>,
    widgets: Vec<(String, WidgetPlace, ComponentPane)>,
}

/// A component in place of the editor. The hidden editor has the same text, and handles the keys that the component passes on.
struct EditorPane {
    pane: ComponentPane,
    /// The text that the component knows, and the lines of pinch's own editor.
    text: String,
    lines: Vec<String>,
    /// What was typed, and when the key that closes was last pressed, since the component last reacted.
    unheard: String,
    close_at: Option<i64>,
}

impl EditorPane {
    /// Called when the component has reacted.
    fn heard(&mut self) {
        self.unheard.clear();
        self.close_at = None;
    }
}

impl Components {
    /// Closes all.
    pub(super) fn clear(&mut self) {
        *self = Self { count: self.count, ..Self::default() };
    }
}

impl App {
    /// Shows a component of an extension. Returns its number; `None`: plain output cannot show it.
    pub(crate) fn open_component(&mut self, view: ComponentView) -> Option<u64> {
        if self.is_plain() {
            self.warning("An extension wants to draw on the screen, which is not possible here");
            return None;
        }
        let components = &mut self.components;
        components.count += 1;
        let id = components.count;
        match view.place().clone() {
            ComponentPlace::Editor => {
                self.completion.close();
                let pane = ComponentPane::new(id, view);
                components.editor = Some(EditorPane {
                    pane,
                    text: String::new(),
                    lines: Vec::new(),
                    unheard: String::new(),
                    close_at: None,
                });
            }
            ComponentPlace::Header => components.header = Some((ComponentPane::new(id, view), false)),
            ComponentPlace::Footer => components.footer = Some(ComponentPane::new(id, view)),
            ComponentPlace::Widget { key, place } => {
                self.widgets.retain(|widget| widget.key != key);
                components.widgets.retain(|(known, ..)| *known != key);
                if components.widgets.len() >= MAX_WIDGETS {
                    return None;
                }
                components.widgets.push((key, place, ComponentPane::new(id, view)));
            }
            _ => self.open(Box::new(ComponentDialog::new(id, view))),
        }
        Some(id)
    }

    /// Closes a component that its extension has ended.
    pub(crate) fn close_component(&mut self, id: u64) {
        self.dialogs.retain_mut(|open| open.dialog.component().is_none_or(|component| component.id() != id));
        let components = &mut self.components;
        components.editor.take_if(|editor| editor.pane.id == id);
        components.header.take_if(|(pane, _)| pane.id == id);
        components.footer.take_if(|pane| pane.id == id);
        components.widgets.retain(|(.., pane)| pane.id != id);
    }

    /// Removes the component of a widget, because lines take its place, or nothing.
    pub(super) fn close_widget_component(&mut self, key: &str) {
        self.components.widgets.retain(|(known, ..)| known != key);
    }

    /// Called when a component has drawn.
    pub(crate) fn component_drawn(&mut self, id: u64) {
        if let Some(editor) = self.components.editor.as_mut().filter(|editor| editor.pane.id == id) {
            editor.heard();
            // A change that the component has not been told of yet takes precedence; it will draw again when it is.
            if let Some(text) = editor.pane.text().filter(|text| *text != editor.text)
                && self.editor.text() == editor.text
            {
                self.editor.set_text(&text);
                editor.text = text;
            }
        }
        // What is in the scrollback cannot be changed, so only the first lines count.
        if let Some((pane, is_written @ false)) = &mut self.components.header
            && pane.id == id
            && pane.n_lines() > 0
        {
            *is_written = true;
            self.transcript.drawn_header(pane.lines());
        }
    }

    /// Does what a component asks for.
    pub(crate) fn component_acted(&mut self, id: u64, action: ComponentAction, size: Size, now_ms: i64) -> Vec<Effect> {
        let Some(editor) = self.components.editor.as_mut().filter(|editor| editor.pane.id == id) else {
            let of_dialogs = self.dialogs.iter_mut().filter_map(|open| open.dialog.component());
            if let Some(component) = of_dialogs.into_iter().find(|component| component.id() == id) {
                component.act(action);
            }
            return Vec::new();
        };
        editor.heard();
        match action {
            ComponentAction::Key(data) => {
                parse_input(&data).iter().flat_map(|input| self.passed_on(input, size, now_ms)).collect()
            }
            ComponentAction::Submit(text) => {
                editor.text.clone_from(&text);
                self.editor.set_text(&text);
                let submission = self.editor.submit();
                self.submitted(submission.text.clone(), &submission, false)
            }
            _ => Vec::new(),
        }
    }

    /// Handles what the component in place of the editor has not.
    fn passed_on(&mut self, input: &TerminalInput, size: Size, now_ms: i64) -> Vec<Effect> {
        match input {
            TerminalInput::Key(press) => self.own_key(press, size, now_ms),
            TerminalInput::Paste(text) => self.pasted(text),
            _ => Vec::new(),
        }
    }

    /// Passes a key to the component in place of the editor. Returns false if there is none.
    pub(super) fn editor_component_key(&mut self, press: &KeyPress, now_ms: i64) -> bool {
        let Some(editor) = &mut self.components.editor else { return false };
        if press.key != CLOSE {
            self.clear_at = None;
        }
        let is_stuck =
            press.key == CLOSE && editor.close_at.replace(now_ms).is_some_and(|at| now_ms - at < DOUBLE_PRESS_MS);
        editor.unheard.extend(press.text.filter(|_| editor.unheard.len() < MAX_UNHEARD));
        if is_stuck || !editor.pane.key(press, &self.keymap) {
            let unheard = std::mem::take(&mut editor.unheard);
            self.components.editor = None;
            self.editor.paste(&unheard);
            self.warning(UNRESPONSIVE);
        }
        true
    }

    /// Passes pasted text to the component in place of the editor. Returns false if it does not take it.
    pub(super) fn editor_component_paste(&mut self, text: &str) -> bool {
        let Some(editor) = &mut self.components.editor else { return false };
        let is_taken = editor.pane.paste(text);
        if is_taken && editor.unheard.len() + text.len() <= MAX_UNHEARD {
            editor.unheard.push_str(text);
        }
        is_taken
    }

    /// Returns the component in place of the editor, with suggestions for its text; `None`: there is none, or it has not drawn yet.
    pub(super) fn editor_component_rows(&mut self, size: Size, room: usize, rule: Style) -> Option<RowsWithCursor> {
        let editor = self.components.editor.as_mut()?;
        let suggestions = self.completion.rows(size.width(), &self.theme);
        let own = compose::editor_rows(&mut self.editor, &self.completion, size, room, (&self.theme, rule));
        let (mut rows, cursor) = own;
        rows.truncate(rows.len().saturating_sub(suggestions.len()));
        compose::place_cursor(&mut rows, cursor, false, true);
        let text = Some(self.editor.text()).filter(|text| *text != editor.text);
        let lines: Vec<String> = rows.iter().map(sgr::line).collect();
        let is_news = text.is_some() || lines != editor.lines;
        if is_news && editor.pane.send(ComponentEvent::Editor { text: text.clone(), lines: lines.clone() }) {
            editor.lines = lines;
            editor.text = text.unwrap_or_else(|| std::mem::take(&mut editor.text));
        }
        let mut drawn = editor.pane.rows((size.width(), room), &self.theme);
        if drawn.is_empty() {
            return None;
        }
        let left = room.saturating_sub(drawn.len());
        drawn.extend(suggestions.into_iter().take(left));
        Some((drawn, None))
    }

    /// Returns the footer: that of an extension once it has drawn, or pinch's own.
    pub(super) fn footer_rows(&mut self, columns: usize) -> Vec<Row> {
        if let Some(pane) = &mut self.components.footer {
            let mut facts = FooterFacts::default();
            facts.branch = self.footer.head.as_ref().map(|head| match head {
                Head::Branch(name) => name.clone(),
                Head::Detached => "detached".to_owned(),
            });
            facts.statuses = self.footer.statuses.clone();
            facts.n_providers = self.footer.n_providers;
            pane.show_facts(facts);
            let rows = pane.rows((columns, MAX_FOOTER), &self.theme);
            if !rows.is_empty() {
                return rows;
            }
        }
        self.footer.rows(columns, &self.theme)
    }

    /// Tells the header of its room, so that it draws.
    pub(super) fn ask_header(&mut self, columns: usize) {
        if let Some((pane, _)) = &mut self.components.header {
            pane.rows((columns, usize::from(u16::MAX)), &self.theme);
        }
    }

    /// Returns the widgets that draw themselves.
    pub(super) fn widget_component_rows(&mut self, place: WidgetPlace, columns: usize) -> Vec<Row> {
        let widgets = self.components.widgets.iter_mut().filter(|(_, at, _)| *at == place);
        widgets.flat_map(|(.., pane)| pane.rows((columns, MAX_WIDGET), &self.theme)).collect()
    }

    /// Draws the overlays over the live area, which grows if they do not fit. Returns the number of rows added above it.
    pub(super) fn draw_overlays(&mut self, live: &mut Vec<Row>, size: Size) -> usize {
        let screen = (size.width(), size.height());
        let mut added = 0;
        // A dialog that was opened later hides those below it until it closes.
        let first = self.dialogs.iter().rposition(|open| !open.dialog.is_overlay()).map_or(0, |at| at + 1);
        for open in &mut self.dialogs[first..] {
            let Some((bounds, rows)) = open.dialog.overlay_rows(screen, live.len(), &self.theme) else { continue };
            let missing = (bounds.row + rows.len()).min(screen.1).saturating_sub(live.len());
            live.splice(0..0, std::iter::repeat_n(Row::default(), missing));
            added += missing;
            let OverlayBounds { column, row: first, columns: width, .. } = bounds;
            for (at, over) in rows.into_iter().enumerate() {
                let Some(under) = live.get_mut(first + at) else { break };
                let mut row = pad(truncate(under, column, ""), column, Style::new());
                row.spans.extend(pad(over, width, Style::new()).spans);
                row.spans.extend(skip_columns(under, column + width).spans);
                *under = row;
            }
        }
        added
    }
}

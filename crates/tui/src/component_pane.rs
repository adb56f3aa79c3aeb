//! The front end's side of a component: draws its lines, and tells it of its room and of keys.

use pinch_coding_agent::extension::component::{ComponentEvent, ComponentLayout, ComponentView, FooterFacts};

use crate::Row;
use crate::key::KeyPress;
use crate::key_sequence::key_sequence;
use crate::keymap::{KeyAction, KeyChord, Keymap};
use crate::sgr;
use crate::text::{row_width, truncate};
use crate::theme::Palette;

/// A component on the screen.
pub(crate) struct ComponentPane {
    pub(crate) id: u64,
    view: ComponentView,
    /// What the component knows.
    layout: Option<ComponentLayout>,
    facts: Option<FooterFacts>,
}

impl ComponentPane {
    pub(crate) fn new(id: u64, view: ComponentView) -> Self {
        Self { id, view, layout: None, facts: None }
    }

    /// Returns the text of an editor that has its own.
    pub(crate) fn text(&self) -> Option<String> {
        self.view.text()
    }

    /// Returns the lines. They are not trusted.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.view.lines()
    }

    /// Returns the number of lines.
    pub(crate) fn n_lines(&self) -> usize {
        self.view.lines().len()
    }

    /// Returns the lines as rows for this room.
    pub(crate) fn rows(&mut self, room: (usize, usize), theme: &Palette) -> Vec<Row> {
        self.rows_on(None, room, theme)
    }

    /// Returns the lines of an overlay as rows, on a screen of these columns and rows.
    pub(crate) fn rows_on(
        &mut self,
        screen: Option<(usize, usize)>,
        (columns, rows): (usize, usize),
        theme: &Palette,
    ) -> Vec<Row> {
        let mut layout = ComponentLayout::default();
        layout.screen = screen;
        (layout.columns, layout.rows) = (columns, rows);
        layout.foreground = sgr::colors(theme, true);
        layout.background = sgr::colors(theme, false);
        if self.layout.as_ref() != Some(&layout) && self.view.send(ComponentEvent::Layout(layout.clone())) {
            self.layout = Some(layout);
        }
        let row = |line: &String| {
            let row = sgr::row(line, theme);
            if row_width(&row) > columns { truncate(&row, columns, "") } else { row }
        };
        self.view.lines().iter().take(rows).map(row).collect()
    }

    /// Passes a key on. Returns false if the component does not take it: it has ended, or leaves too many unread.
    pub(crate) fn key(&self, press: &KeyPress, keymap: &Keymap) -> bool {
        let chord = KeyChord::from(press.key);
        let bound = KeyAction::ALL.iter().filter(|action| keymap.keys(**action).contains(&chord));
        let actions = bound.map(|action| action.id().to_owned()).collect();
        self.view.send(ComponentEvent::Input { data: key_sequence(press), actions })
    }

    /// Passes pasted text on, as a terminal with bracketed paste sends it. Returns false if the component does not take it.
    pub(crate) fn paste(&self, text: &str) -> bool {
        // The text must not end the paste itself.
        let data = format!("\x1b[200~{}\x1b[201~", text.replace("\x1b[201~", ""));
        self.view.send(ComponentEvent::Input { data, actions: Vec::new() })
    }

    /// Passes an event on. Returns false if the component does not take it.
    pub(crate) fn send(&self, event: ComponentEvent) -> bool {
        self.view.send(event)
    }

    /// Tells a footer what it may show, unless it knows.
    pub(crate) fn show_facts(&mut self, facts: FooterFacts) {
        if self.facts.as_ref() != Some(&facts) && self.send(ComponentEvent::Footer(facts.clone())) {
            self.facts = Some(facts);
        }
    }
}

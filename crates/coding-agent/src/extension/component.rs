//! Components: lines of text that an extension draws itself, in place of the editor, and the keys that it gets meanwhile.
//!
//! A front end holds the [`ComponentView`], the extension the [`Component`]. Either side ends the component by dropping its half.

use std::collections::BTreeMap;
use std::fmt;

use pinch_stdx::cancel::Cancel;
use tokio::sync::{mpsc, watch};

use super::limit::Paused;

/// Maximum number of events that wait for the extension; further ones are dropped.
const MAX_WAITING: usize = 256;
/// Maximum number of lines, and of bytes in a line, that are kept.
const MAX_LINES: usize = 500;
const MAX_LINE: usize = 64 * 1024;

/// The room for a component, and the colours of the theme.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComponentLayout {
    /// Maximum width of a line; longer ones are cut off.
    pub columns: usize,
    /// Maximum number of lines.
    pub rows: usize,
    /// Foreground colours by their names in theme files, as parameters of SGR sequences (`38;2;1;2;3`).
    pub foreground: BTreeMap<String, String>,
    /// Background colours.
    pub background: BTreeMap<String, String>,
}

/// A change that a component is told about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ComponentEvent {
    /// It has other room or colours than before. This is the first event.
    Layout(ComponentLayout),
    /// A key was pressed, or a text pasted.
    Input {
        /// What a terminal sends for it: characters, or an escape sequence as of xterm.
        data: String,
        /// Ids of the actions that the key is bound to.
        actions: Vec<String>,
    },
}

/// The extension's half of a component. It stays on the screen until it is dropped.
pub struct Component {
    lines: watch::Sender<Vec<String>>,
    events: mpsc::Receiver<ComponentEvent>,
    cancel: Cancel,
    /// Pauses the time limit of the handler that shows it.
    pub(super) paused: Option<Paused>,
}

/// The front end's half of a component. Dropping it tells the extension that the component is closed.
#[derive(Debug)]
pub struct ComponentView {
    lines: watch::Receiver<Vec<String>>,
    events: mpsc::Sender<ComponentEvent>,
}

/// Waits for changes of a component without keeping it open.
#[derive(Debug)]
pub struct ComponentWatcher(watch::Receiver<Vec<String>>);

/// Draws the lines of a component.
#[derive(Clone, Debug)]
pub struct ComponentPen(watch::Sender<Vec<String>>);

impl Component {
    /// Creates both halves. Once `cancel` is cancelled, there are no more events.
    pub fn new(cancel: Cancel) -> (Self, ComponentView) {
        let (lines, shown) = watch::channel(Vec::new());
        let (sender, events) = mpsc::channel(MAX_WAITING);
        (Self { lines, events, cancel, paused: None }, ComponentView { lines: shown, events: sender })
    }

    /// Waits for the next event; `None`: the user or the session has closed the component.
    pub async fn next(&mut self) -> Option<ComponentEvent> {
        self.cancel.run(self.events.recv()).await.ok().flatten()
    }

    /// Returns a pen for the lines.
    pub fn pen(&self) -> ComponentPen {
        ComponentPen(self.lines.clone())
    }
}

impl ComponentPen {
    /// Replaces the lines. Their control sequences are removed, except for colours and attributes of text (SGR).
    pub fn draw(&self, mut lines: Vec<String>) {
        lines.truncate(MAX_LINES);
        for line in &mut lines {
            line.truncate(line.floor_char_boundary(MAX_LINE));
        }
        self.0.send_replace(lines);
    }
}

impl ComponentView {
    /// Returns the lines. They are not trusted.
    pub fn lines(&self) -> Vec<String> {
        self.lines.borrow().clone()
    }

    /// Passes an event to the extension. Returns false if too many wait, or the component has ended.
    pub fn send(&self, event: ComponentEvent) -> bool {
        self.events.try_send(event).is_ok()
    }

    /// Returns a watcher.
    pub fn watcher(&self) -> ComponentWatcher {
        ComponentWatcher(self.lines.clone())
    }
}

impl ComponentWatcher {
    /// Waits until the lines change. Returns false if the component has ended.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Component").field("pauses", &self.paused.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn either_side_ends_a_component() {
        let (mut component, view) = Component::new(Cancel::new());
        let mut watcher = view.watcher();
        assert!(view.send(ComponentEvent::Layout(ComponentLayout::default())));
        assert_eq!(component.next().await, Some(ComponentEvent::Layout(ComponentLayout::default())));
        component.pen().draw(vec!["one".to_owned()]);
        assert!(watcher.changed().await);
        assert_eq!(view.lines(), ["one"]);
        drop(component);
        assert!(!watcher.changed().await && !view.send(ComponentEvent::Layout(ComponentLayout::default())));

        let (mut component, view) = Component::new(Cancel::new());
        drop(view);
        assert_eq!(component.next().await, None);
    }

    #[test]
    fn lines_are_limited() {
        let (component, view) = Component::new(Cancel::new());
        component.pen().draw(vec!["ä".repeat(MAX_LINE); MAX_LINES + 1]);
        assert_eq!((view.lines().len(), view.lines()[0].len()), (MAX_LINES, MAX_LINE));
    }
}

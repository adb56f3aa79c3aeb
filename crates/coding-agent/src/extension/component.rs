//! Components: lines of text that an extension draws itself, and the keys that it gets meanwhile.
//!
//! A front end holds the [`ComponentView`], the extension the [`Component`]. Either side ends the component by dropping its half.

use std::collections::BTreeMap;
use std::fmt;

use pinch_stdx::cancel::Cancel;
use tokio::sync::{mpsc, watch};

use super::limit::Paused;
use super::overlay::OverlayOptions;

/// Maximum number of events that wait for the extension; further ones are dropped.
const MAX_WAITING: usize = 256;
/// Maximum number of lines, and of bytes in a line, that are kept.
const MAX_LINES: usize = 500;
const MAX_LINE: usize = 64 * 1024;

/// The position of a widget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WidgetPlace {
    /// Above the editor.
    AboveEditor,
    /// Below the editor.
    BelowEditor,
}

impl WidgetPlace {
    /// Returns the name used in the protocols.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AboveEditor => "aboveEditor",
            Self::BelowEditor => "belowEditor",
        }
    }

    /// Parses the name.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::AboveEditor, Self::BelowEditor].into_iter().find(|place| place.as_str() == word)
    }
}

/// Where a component is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ComponentPlace {
    /// In place of the editor, as a dialog: all keys are for the component.
    #[default]
    Dialog,
    /// Above everything else, like a dialog.
    Overlay(OverlayOptions),
    /// As the editor: it gets the keys that no dialog takes, and passes on those that it does not handle ([`ComponentAction::Key`]).
    Editor,
    /// In place of the footer.
    Footer,
    /// In place of the header: written into the conversation when it is first drawn.
    Header,
    /// Next to the editor.
    Widget {
        /// Identifies the widget.
        key: String,
        /// Its position.
        place: WidgetPlace,
    },
}

impl ComponentPlace {
    /// Returns whether the user has to deal with the component before anything else.
    pub fn is_dialog(&self) -> bool {
        matches!(self, Self::Dialog | Self::Overlay(_))
    }
}

/// The room for a component, and the colours of the theme.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComponentLayout {
    /// Maximum width of a line; longer ones are cut off.
    pub columns: usize,
    /// Maximum number of lines.
    pub rows: usize,
    /// Columns and rows of the whole screen, for overlays.
    pub screen: Option<(usize, usize)>,
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
    /// For components in place of the editor: what pinch's own editor would show now. It has the text, and handles the keys that are passed
    /// on.
    Editor {
        /// The text, if something else than the component has changed it.
        text: Option<String>,
        /// The lines, with the cursor, as SGR sequences.
        lines: Vec<String>,
    },
    /// For components in place of the footer: what they may show.
    Footer(FooterFacts),
}

/// What a footer shows and extensions cannot know otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FooterFacts {
    /// Branch of the Git repository; `detached` without one.
    pub branch: Option<String>,
    /// Texts of extensions for the status line, by key.
    pub statuses: BTreeMap<String, String>,
    /// Number of providers whose models can be used.
    pub n_providers: usize,
}

/// What a component asks its front end to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ComponentAction {
    /// In place of the editor: handle this key, or pasted text, as if there was no component. In the form of [`ComponentEvent::Input`].
    Key(String),
    /// In place of the editor: submit this text.
    Submit(String),
    /// Change size and position of the overlay.
    Move(OverlayOptions),
    /// Hide the overlay, or show it again.
    Hide(bool),
    /// Pass keys to the overlay, or to what is below it.
    Focus(bool),
}

/// The extension's half of a component. It stays on the screen until it is dropped.
pub struct Component {
    content: watch::Sender<Drawing>,
    events: mpsc::Receiver<ComponentEvent>,
    actions: mpsc::Sender<ComponentAction>,
    cancel: Cancel,
    /// Pauses the time limit of the handler that shows it.
    pub(super) paused: Option<Paused>,
}

/// The front end's half of a component. Dropping it tells the extension that the component is closed.
#[derive(Debug)]
pub struct ComponentView {
    place: ComponentPlace,
    content: watch::Receiver<Drawing>,
    events: mpsc::Sender<ComponentEvent>,
    actions: Option<mpsc::Receiver<ComponentAction>>,
}

/// What a component shows.
#[derive(Clone, Debug, Default)]
struct Drawing {
    lines: Vec<String>,
    text: Option<String>,
}

/// Waits for changes of a component without keeping it open.
#[derive(Debug)]
pub struct ComponentWatcher {
    content: watch::Receiver<Drawing>,
    actions: Option<mpsc::Receiver<ComponentAction>>,
}

/// A change that a front end is told about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComponentChange {
    /// Its lines or its text have changed.
    Drawn,
    /// It asks for something.
    Action(ComponentAction),
}

/// Draws the lines of a component, and acts for it.
#[derive(Clone, Debug)]
pub struct ComponentPen {
    content: watch::Sender<Drawing>,
    actions: mpsc::Sender<ComponentAction>,
}

impl Component {
    /// Creates both halves. Once `cancel` is cancelled, there are no more events.
    pub fn new(place: ComponentPlace, cancel: Cancel) -> (Self, ComponentView) {
        let (content, shown) = watch::channel(Drawing::default());
        let (sender, events) = mpsc::channel(MAX_WAITING);
        let (actions, asked) = mpsc::channel(MAX_WAITING);
        let view = ComponentView { place, content: shown, events: sender, actions: Some(asked) };
        (Self { content, events, actions, cancel, paused: None }, view)
    }

    /// Waits for the next event; `None`: the user or the session has closed the component.
    pub async fn next(&mut self) -> Option<ComponentEvent> {
        self.cancel.run(self.events.recv()).await.ok().flatten()
    }

    /// Returns a pen for the lines.
    pub fn pen(&self) -> ComponentPen {
        ComponentPen { content: self.content.clone(), actions: self.actions.clone() }
    }
}

impl ComponentPen {
    /// Replaces the lines. Their control sequences are removed, except for colours and attributes of text (SGR).
    pub fn draw(&self, mut lines: Vec<String>) {
        lines.truncate(MAX_LINES);
        for line in &mut lines {
            line.truncate(line.floor_char_boundary(MAX_LINE));
        }
        self.content.send_modify(|content| content.lines = lines);
    }

    /// In place of the editor: sets the text that the component has now. Components that pass all keys on need not do it.
    pub fn set_text(&self, text: String) {
        self.content.send_modify(|content| content.text = Some(text));
    }

    /// Asks for something. Returns false if too much waits, or the component has ended.
    pub fn act(&self, action: ComponentAction) -> bool {
        self.actions.try_send(action).is_ok()
    }
}

impl ComponentView {
    /// Returns where it is to be shown.
    pub fn place(&self) -> &ComponentPlace {
        &self.place
    }

    /// Returns the lines. They are not trusted.
    pub fn lines(&self) -> Vec<String> {
        self.content.borrow().lines.clone()
    }

    /// Returns the text of an editor that has its own.
    pub fn text(&self) -> Option<String> {
        self.content.borrow().text.clone()
    }

    /// Passes an event to the extension. Returns false if too many wait, or the component has ended.
    pub fn send(&self, event: ComponentEvent) -> bool {
        self.events.try_send(event).is_ok()
    }

    /// Returns a watcher. Only the first one gets the actions.
    pub fn watcher(&mut self) -> ComponentWatcher {
        ComponentWatcher { content: self.content.clone(), actions: self.actions.take() }
    }
}

impl ComponentWatcher {
    /// Waits for a change; `None`: the component has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<ComponentChange> {
        let action = async {
            let action = match &mut self.actions {
                Some(actions) => actions.recv().await,
                None => None,
            };
            match action {
                Some(action) => action,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            action = action => Some(ComponentChange::Action(action)),
            changed = self.content.changed() => changed.ok().map(|()| ComponentChange::Drawn),
        }
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
        let (mut component, mut view) = Component::new(ComponentPlace::Dialog, Cancel::new());
        let mut watcher = view.watcher();
        assert!(view.send(ComponentEvent::Layout(ComponentLayout::default())));
        assert_eq!(component.next().await, Some(ComponentEvent::Layout(ComponentLayout::default())));
        component.pen().draw(vec!["one".to_owned()]);
        assert_eq!(watcher.next().await, Some(ComponentChange::Drawn));
        assert_eq!(view.lines(), ["one"]);
        drop(component);
        assert!(watcher.next().await.is_none() && !view.send(ComponentEvent::Layout(ComponentLayout::default())));

        let (mut component, view) = Component::new(ComponentPlace::Dialog, Cancel::new());
        drop(view);
        assert_eq!(component.next().await, None);
    }

    #[tokio::test]
    async fn an_editor_has_text_and_passes_keys_on() {
        let (component, mut view) = Component::new(ComponentPlace::Editor, Cancel::new());
        let mut watcher = view.watcher();
        let pen = component.pen();
        assert!(pen.act(ComponentAction::Key("a".to_owned())) && pen.act(ComponentAction::Submit("done".to_owned())));
        pen.set_text("done".to_owned());
        let action = |action| Some(ComponentChange::Action(action));
        assert_eq!(watcher.next().await, action(ComponentAction::Key("a".to_owned())));
        assert_eq!(watcher.next().await, action(ComponentAction::Submit("done".to_owned())));
        assert_eq!((watcher.next().await, view.text()), (Some(ComponentChange::Drawn), Some("done".to_owned())));
        drop((component, pen));
        assert_eq!(watcher.next().await, None);
    }

    #[test]
    fn lines_are_limited() {
        let (component, view) = Component::new(ComponentPlace::Dialog, Cancel::new());
        component.pen().draw(vec!["ä".repeat(MAX_LINE); MAX_LINES + 1]);
        assert_eq!((view.lines().len(), view.lines()[0].len()), (MAX_LINES, MAX_LINE));
    }
}

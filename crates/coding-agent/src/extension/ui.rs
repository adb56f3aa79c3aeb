//! Dialogs with the user.
//!
//! A program with a user interface implements [`Ui`]: two methods. Extensions use [`Dialogs`], which has a method per kind of dialog,
//! enforces time limits, and shows one dialog after another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::tool::JsonObject;
use pinch_stdx::cancel::Cancel;
use tokio::sync::Mutex;

pub use super::component::WidgetPlace;
use super::component::{Component, ComponentPlace, ComponentView};
use super::limit::Stopwatch;
use super::snapshot::{UiSnapshot, WorkingIndicator};

/// A question to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dialog {
    /// The question.
    pub title: String,
    /// The kind of answer.
    pub kind: DialogKind,
    /// Time limit. The caller enforces it; a front end may show the remaining time.
    pub timeout: Option<Duration>,
}

impl Dialog {
    /// Creates a question without a time limit.
    pub fn new(title: impl Into<String>, kind: DialogKind) -> Self {
        Self { title: title.into(), kind, timeout: None }
    }
}

/// A kind of dialog.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DialogKind {
    /// A choice among several options.
    Select {
        /// The options.
        options: Vec<String>,
    },
    /// Yes or no.
    Confirm {
        /// Details of the question.
        message: String,
    },
    /// A line of text.
    Input {
        /// Shown while the input is empty.
        placeholder: Option<String>,
    },
    /// A multi-line text.
    Editor {
        /// The initial text.
        prefill: Option<String>,
    },
}

impl DialogKind {
    /// Returns the name used in the protocols.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Select { .. } => "select",
            Self::Confirm { .. } => "confirm",
            Self::Input { .. } => "input",
            Self::Editor { .. } => "editor",
        }
    }
}

/// The user's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialogReply {
    /// The selected or entered text.
    Text(String),
    /// Yes or no.
    Yes(bool),
}

/// Severity of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoteKind {
    /// Information.
    Info,
    /// A possible problem.
    Warning,
    /// An error.
    Error,
}

impl NoteKind {
    /// Returns the name used in the protocols.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    /// Parses the name.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Info, Self::Warning, Self::Error].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Something to show that needs no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UiUpdate {
    /// A note.
    Note {
        /// The text.
        message: String,
        /// Its severity, if specified.
        kind: Option<NoteKind>,
    },
    /// A text in the status line.
    Status {
        /// Identifies the text.
        key: String,
        /// The text; `None` removes it.
        text: Option<String>,
    },
    /// Lines next to the editor.
    Widget {
        /// Identifies the lines.
        key: String,
        /// The lines; `None` removes them.
        lines: Option<Vec<String>>,
        /// Their position.
        place: Option<WidgetPlace>,
    },
    /// The title of the window.
    Title(String),
    /// The editor's text.
    EditorText(String),
    /// A text that the user seems to have pasted into the editor.
    EditorPaste(String),
    /// What the row says while the model works; `None`: the usual text.
    WorkingMessage(Option<String>),
    /// Whether there is such a row.
    WorkingVisible(bool),
    /// The sign of activity in it; `None`: the usual one.
    WorkingIndicator(Option<WorkingIndicator>),
    /// The line in place of hidden thinking; `None`: the usual one.
    HiddenThinkingLabel(Option<String>),
    /// Whether tool output is expanded.
    ToolsExpanded(bool),
    /// The theme, by name; saved in the settings.
    Theme(String),
    /// What an extension has drawn of a tool call is to be drawn again, because something else than the call has changed.
    RedrawCall {
        /// Id of the call.
        call_id: String,
    },
    /// A session begins: everything that the extensions of the previous one show is removed, apart from the editor's text and the theme. Comes
    /// before what extensions show when they learn of the session.
    Reset,
}

/// A tool call that may need the user's approval.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ToolApproval<'a> {
    /// Id of the session.
    pub session_id: &'a str,
    /// Id of the call.
    pub call_id: &'a str,
    /// Name of the tool.
    pub tool: &'a str,
    /// The arguments it would run with.
    pub args: &'a JsonObject,
}

/// Whether a call may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// It may run.
    Granted,
    /// It may not run.
    Denied {
        /// The reason, for the model.
        reason: String,
    },
}

/// A user interface for asking and informing people.
pub trait Ui: Send + Sync {
    /// Returns whether there is a user. Otherwise nothing is asked.
    fn is_present(&self) -> bool {
        true
    }

    /// Shows a dialog and returns the answer, or `None` if the user dismissed it. Dropping the future closes the dialog, because it timed
    /// out or its caller was cancelled.
    fn ask<'a>(&'a self, dialog: &'a Dialog) -> BoxFuture<'a, Option<DialogReply>>;

    /// Shows something. Must not block.
    fn show(&self, show: UiUpdate);

    /// Shows a component at its place ([`ComponentView::place`]) until it ends. Returns whether there is a place for it; by default there is
    /// none. Must not block.
    fn show_component(&self, component: ComponentView) -> bool {
        drop(component);
        false
    }

    /// Returns what it shows now; `None`: nothing that extensions can look up. Must not block.
    fn snapshot(&self) -> Option<Arc<UiSnapshot>> {
        None
    }

    /// Decides whether a call may run. Called before every call that hooks and extensions allow; by default, all calls are granted. Dropped
    /// if the current prompt is cancelled; the call does not run then.
    fn approve<'a>(&'a self, call: ToolApproval<'a>) -> BoxFuture<'a, Approval> {
        let _ = call;
        Box::pin(async { Approval::Granted })
    }
}

/// The absence of a user interface: dialogs are never answered, and nothing is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoUi;

impl Ui for NoUi {
    fn is_present(&self) -> bool {
        false
    }

    fn ask<'a>(&'a self, _: &'a Dialog) -> BoxFuture<'a, Option<DialogReply>> {
        Box::pin(async { None })
    }

    fn show(&self, _: UiUpdate) {}
}

/// Observes dialogs.
pub(super) trait Onlooker: Send + Sync {
    /// Called when a dialog is opened or closed.
    fn dialog<'a>(&'a self, dialog: &'a Dialog, is_over: bool) -> BoxFuture<'a, ()>;
}

/// Serializes the dialogs of a session.
#[derive(Clone)]
pub(super) struct Screen {
    pub(super) ui: Arc<dyn Ui>,
    turn: Arc<Mutex<()>>,
    pub(super) onlooker: Option<Arc<dyn Onlooker>>,
}

impl Screen {
    pub(super) fn new(ui: Arc<dyn Ui>) -> Self {
        Self { ui, turn: Arc::default(), onlooker: None }
    }

    /// Shows a dialog when its turn comes. The observer is notified concurrently, so the dialog does not wait for it; dialogs that the
    /// observer opens come after this one.
    async fn ask(&self, dialog: &Dialog, has_begun: &AtomicBool) -> Option<DialogReply> {
        let shown = async {
            let answer = self.ui.ask(dialog);
            match dialog.timeout {
                Some(limit) => tokio::time::timeout(limit, answer).await.ok().flatten(),
                None => answer.await,
            }
        };
        let turn = self.turn.lock().await;
        has_begun.store(true, Ordering::Relaxed);
        let shown = async move {
            let reply = shown.await;
            drop(turn);
            reply
        };
        match &self.onlooker {
            None => shown.await,
            Some(onlooker) => futures::join!(shown, onlooker.dialog(dialog, false)).0,
        }
    }
}

/// Dialogs for an extension. A dialog waits for earlier ones before its own time limit starts. While it is waiting or open, the time limit
/// of the calling handler is paused. If the current run is cancelled, the dialog is unanswered.
#[derive(Clone)]
pub struct Dialogs {
    pub(super) screen: Screen,
    pub(super) watch: Option<Arc<Stopwatch>>,
    pub(super) cancel: Cancel,
}

impl Dialogs {
    /// Returns whether there are people to ask.
    pub fn are_present(&self) -> bool {
        self.screen.ui.is_present()
    }

    /// Asks the user to choose an option; `None` if unanswered.
    pub async fn select(&self, title: &str, options: &[String], timeout: Option<Duration>) -> Option<String> {
        text(self.ask(title, DialogKind::Select { options: options.to_vec() }, timeout).await)
    }

    /// Asks a yes-or-no question; false if unanswered.
    pub async fn confirm(&self, title: &str, message: &str, timeout: Option<Duration>) -> bool {
        let kind = DialogKind::Confirm { message: message.to_owned() };
        self.ask(title, kind, timeout).await == Some(DialogReply::Yes(true))
    }

    /// Asks for a line of text.
    pub async fn input(&self, title: &str, placeholder: Option<&str>, timeout: Option<Duration>) -> Option<String> {
        text(self.ask(title, DialogKind::Input { placeholder: placeholder.map(str::to_owned) }, timeout).await)
    }

    /// Asks for a multi-line text.
    pub async fn editor(&self, title: &str, prefill: Option<&str>) -> Option<String> {
        text(self.ask(title, DialogKind::Editor { prefill: prefill.map(str::to_owned) }, None).await)
    }

    /// Shows a component that the extension draws itself, until it is dropped; there are no more events once the user or the session has
    /// closed it. `None`: there is no place for it.
    ///
    /// A component in place of the editor or above everything else ([`ComponentPlace::is_dialog`]) also ends when the current run is
    /// cancelled. Meanwhile, the time limit of the calling handler is paused. The others stay when their handler has returned, until another
    /// one takes their place, the session is left, or extensions are reloaded.
    pub fn component(&self, place: ComponentPlace) -> Option<Component> {
        let is_dialog = place.is_dialog();
        let cancel = if is_dialog { self.cancel.clone() } else { Cancel::new() };
        let (mut component, view) = Component::new(place, cancel);
        component.paused = self.watch.as_ref().filter(|_| is_dialog).map(|watch| watch.pause());
        (self.are_present() && self.screen.ui.show_component(view)).then_some(component)
    }

    async fn ask(&self, title: &str, kind: DialogKind, timeout: Option<Duration>) -> Option<DialogReply> {
        if !self.are_present() {
            return None;
        }
        let _paused = self.watch.as_ref().map(|watch| watch.pause());
        let dialog = Dialog { title: title.to_owned(), kind, timeout };
        let has_begun = AtomicBool::new(false);
        let reply = self.cancel.run(self.screen.ask(&dialog, &has_begun)).await.ok().flatten();
        if let Some(onlooker) = &self.screen.onlooker
            && has_begun.into_inner()
        {
            onlooker.dialog(&dialog, true).await;
        }
        reply
    }

    /// Shows a note.
    pub fn notify(&self, message: impl Into<String>, kind: NoteKind) {
        self.show(UiUpdate::Note { message: message.into(), kind: Some(kind) });
    }

    /// Sets a text in the status line, or removes it.
    pub fn set_status(&self, key: impl Into<String>, text: Option<String>) {
        self.show(UiUpdate::Status { key: key.into(), text });
    }

    /// Sets lines next to the editor, or removes them.
    pub fn set_widget(&self, key: impl Into<String>, lines: Option<Vec<String>>, place: Option<WidgetPlace>) {
        self.show(UiUpdate::Widget { key: key.into(), lines, place });
    }

    /// Sets the title of the window.
    pub fn set_title(&self, title: impl Into<String>) {
        self.show(UiUpdate::Title(title.into()));
    }

    /// Sets the editor's text.
    pub fn set_editor_text(&self, text: impl Into<String>) {
        self.show(UiUpdate::EditorText(text.into()));
    }

    /// Inserts a text into the editor as if the user had pasted it. Long texts are shown as a marker.
    pub fn paste_to_editor(&self, text: impl Into<String>) {
        self.show(UiUpdate::EditorPaste(text.into()));
    }

    /// Returns what is on the screen: the editor's text, themes, and whether tool output is expanded; `None`: there is no terminal.
    pub fn snapshot(&self) -> Option<Arc<UiSnapshot>> {
        self.screen.ui.snapshot()
    }

    /// Shows something.
    pub fn show(&self, show: UiUpdate) {
        if self.are_present() {
            self.screen.ui.show(show);
        }
    }
}

fn text(reply: Option<DialogReply>) -> Option<String> {
    match reply? {
        DialogReply::Text(text) => Some(text),
        DialogReply::Yes(_) => None,
    }
}

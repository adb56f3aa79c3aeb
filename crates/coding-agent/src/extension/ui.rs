//! Asking and showing people something.
//!
//! A program that has people in front of it implements [`Ui`]: two methods. Extensions use [`Dialogs`], which has a method for each thing, keeps
//! the time limits, and shows one dialog after another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::tool::JsonObject;
use pinch_stdx::cancel::Cancel;
use tokio::sync::Mutex;

use super::limit::Stopwatch;

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dialog {
    /// The question.
    pub title: String,
    /// What kind of answer is wanted.
    pub kind: DialogKind,
    /// How long it is shown. The caller enforces the limit; a front end may show the remaining time.
    pub timeout: Option<Duration>,
}

impl Dialog {
    /// A question without a time limit.
    pub fn new(title: impl Into<String>, kind: DialogKind) -> Self {
        Self { title: title.into(), kind, timeout: None }
    }
}

/// A kind of dialog.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DialogKind {
    /// One of several texts.
    Select {
        /// The texts.
        options: Vec<String>,
    },
    /// Yes or no.
    Confirm {
        /// More about the question.
        message: String,
    },
    /// A line of text.
    Input {
        /// Shown while nothing is typed.
        placeholder: Option<String>,
    },
    /// A text of many lines.
    Editor {
        /// The initial text.
        prefill: Option<String>,
    },
}

impl DialogKind {
    /// The word used in the protocols.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Select { .. } => "select",
            Self::Confirm { .. } => "confirm",
            Self::Input { .. } => "input",
            Self::Editor { .. } => "editor",
        }
    }
}

/// What a person answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialogReply {
    /// A text that was chosen or written.
    Text(String),
    /// Yes or no.
    Yes(bool),
}

/// How important a note is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoteKind {
    /// It is good to know.
    Info,
    /// Something may be wrong.
    Warning,
    /// Something is wrong.
    Error,
}

impl NoteKind {
    /// The word used in the protocols.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Info, Self::Warning, Self::Error].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// The position of a widget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WidgetPlace {
    /// Above the editor.
    AboveEditor,
    /// Below it.
    BelowEditor,
}

impl WidgetPlace {
    /// The word used in the protocols.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AboveEditor => "aboveEditor",
            Self::BelowEditor => "belowEditor",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::AboveEditor, Self::BelowEditor].into_iter().find(|place| place.as_str() == word)
    }
}

/// Something to show without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UiUpdate {
    /// A note.
    Note {
        /// The text.
        message: String,
        /// Its level; `None`: unspecified.
        kind: Option<NoteKind>,
    },
    /// A text of the status line.
    Status {
        /// Identifies the text.
        key: String,
        /// The text; `None` takes it away.
        text: Option<String>,
    },
    /// Lines beside the editor.
    Widget {
        /// Identifies the lines.
        key: String,
        /// The lines; `None` takes them away.
        lines: Option<Vec<String>>,
        /// Their position.
        place: Option<WidgetPlace>,
    },
    /// The title of the window.
    Title(String),
    /// The editor's text.
    EditorText(String),
}

/// A call that a person may be asked about before it runs.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ToolApproval<'a> {
    /// The session it is made in.
    pub session_id: &'a str,
    /// The call.
    pub call_id: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The arguments it would run with.
    pub args: &'a JsonObject,
}

/// Whether a call may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// It may.
    Granted,
    /// It may not.
    Denied {
        /// Why, for the model.
        reason: String,
    },
}

/// A user interface: asks and shows things to people.
pub trait Ui: Send + Sync {
    /// Whether there is a user. Where there is none, nothing is asked.
    fn is_present(&self) -> bool {
        true
    }

    /// Shows a dialog. `None`: the user dismissed it. Dropping the future closes the dialog: it timed out, or its caller was cancelled.
    fn ask<'a>(&'a self, dialog: &'a Dialog) -> BoxFuture<'a, Option<DialogReply>>;

    /// Shows something. Must not wait.
    fn show(&self, show: UiUpdate);

    /// Decides whether a call may run: called before every call that hooks and extensions allow. Calls need no approval unless this says
    /// otherwise. Dropped when the prompt under way is cancelled; the call does not run then.
    fn approve<'a>(&'a self, call: ToolApproval<'a>) -> BoxFuture<'a, Approval> {
        let _ = call;
        Box::pin(async { Approval::Granted })
    }
}

/// No user interface: every dialog is unanswered at once, and nothing is shown.
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
    /// A dialog begins to be shown, or is over.
    fn dialog<'a>(&'a self, dialog: &'a Dialog, is_over: bool) -> BoxFuture<'a, ()>;
}

/// The one place at which a session's dialogs wait for each other.
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

    /// Shows a dialog when it is its turn. The observer is notified concurrently, so that the dialog does not wait for it; it may ask something
    /// itself, which comes after this.
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

/// What an extension asks and shows people with. A dialog waits for those before it; then its own time limit begins. While it waits or is shown,
/// the time limit of the asking handler is paused. When the run under way is cancelled, the answer is none.
#[derive(Clone)]
pub struct Dialogs {
    pub(super) screen: Screen,
    pub(super) watch: Option<Arc<Stopwatch>>,
    pub(super) cancel: Cancel,
}

impl Dialogs {
    /// Whether there are people to ask.
    pub fn are_present(&self) -> bool {
        self.screen.ui.is_present()
    }

    /// Lets a person choose; `None` when they do not.
    pub async fn select(&self, title: &str, options: &[String], timeout: Option<Duration>) -> Option<String> {
        text(self.ask(title, DialogKind::Select { options: options.to_vec() }, timeout).await)
    }

    /// Asks yes or no; no answer is a no.
    pub async fn confirm(&self, title: &str, message: &str, timeout: Option<Duration>) -> bool {
        let kind = DialogKind::Confirm { message: message.to_owned() };
        self.ask(title, kind, timeout).await == Some(DialogReply::Yes(true))
    }

    /// Asks for a line of text.
    pub async fn input(&self, title: &str, placeholder: Option<&str>, timeout: Option<Duration>) -> Option<String> {
        text(self.ask(title, DialogKind::Input { placeholder: placeholder.map(str::to_owned) }, timeout).await)
    }

    /// Asks for a text of many lines.
    pub async fn editor(&self, title: &str, prefill: Option<&str>) -> Option<String> {
        text(self.ask(title, DialogKind::Editor { prefill: prefill.map(str::to_owned) }, None).await)
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

    /// Sets a text of the status line, or takes it away.
    pub fn set_status(&self, key: impl Into<String>, text: Option<String>) {
        self.show(UiUpdate::Status { key: key.into(), text });
    }

    /// Sets lines beside the editor, or takes them away.
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

//! What the interface wants done: keys and dialogs only say it, the loop that owns the session does it.

use std::path::PathBuf;
use std::sync::Arc;

use pinch_agent_core::queue::QueueKind;
use pinch_coding_agent::entry::EntryId;
use pinch_coding_agent::session::CycleDirection;
use pinch_llm::model::Model;
use pinch_llm::thinking::ThinkingLevel;
use serde_json::Value;

use crate::editor::PastedImage;

/// A message of the user that is to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SubmittedMessage {
    /// The text, with the labels of images.
    pub(crate) text: String,
    /// The images, whose files are read when it is sent.
    pub(crate) images: Vec<PastedImage>,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Send a text of the user: a prompt, or a message that steers the run under way.
    Submit(SubmittedMessage),
    /// Send a text when the model would be done.
    FollowUp(SubmittedMessage),
    /// Run a command of the user.
    Bash {
        command: String,
        /// The model does not see it.
        exclude: bool,
    },
    /// Keep a submission for later sessions of the project.
    Remember(String),
    /// Stop what is under way: the run, a compaction, a wait, a command of the user.
    Abort,
    /// Put the messages that wait back into the editor.
    Dequeue,
    /// Take one message out of its queue, to edit it or for good.
    Unqueue { message: WaitingMessage, edit: bool },
    /// End the program.
    Exit,
    /// Draw the screen again.
    Redraw,
    /// Stop the program until the shell continues it.
    Suspend,
    /// Edit the text of the editor in another program.
    ExternalEditor,
    /// Go on to the next or previous model.
    CycleModel(CycleDirection),
    /// Go on to the next thinking level.
    CycleThinking,
    /// Use a model from the next request on; `save` makes it the default.
    SetModel { model: Arc<Model>, save: bool },
    /// Use a thinking level from the next request on.
    SetThinking { level: ThinkingLevel, save: bool },
    /// Cycle through these models; empty: through all of them.
    SetScope { models: Vec<String>, save: bool },
    /// Decide whether the project is trusted, and load everything again.
    Trust(bool),
    /// Open a dialog.
    Open(DialogName),
    /// Begin a new session.
    NewSession,
    /// Continue another session.
    SwitchSession(PathBuf),
    /// Delete the file of a session.
    DeleteSession(PathBuf),
    /// Name the session of a file.
    RenameSession { path: PathBuf, name: String },
    /// Look for sessions in all directories.
    ListAllSessions,
    /// Copy the session up to before a message of the user into a new one.
    Fork(EntryId),
    /// Copy the session into a new one.
    Clone,
    /// Go to another entry of the tree.
    Navigate { target: EntryId, summarise: bool, focus: Option<String> },
    /// Mark an entry; no label clears its mark.
    Label { target: EntryId, label: Option<String> },
    /// Compact the conversation.
    Compact(Option<String>),
    /// Load settings, resources and extensions again.
    Reload,
    /// Write the session to a file.
    Export(Option<String>),
    /// Continue a copy of a session file.
    Import(String),
    /// Put the image of the clipboard into a file, and the image into the editor.
    PasteImage,
    /// Put the image of this file into the editor; the text that was pasted, if it is none.
    InsertImage { path: PathBuf, pasted: String },
    /// Copy the last answer.
    Copy,
    /// Copy a text that was selected.
    CopyText(String),
    /// Take the mouse, or leave it to the terminal.
    Mouse(bool),
    /// Name the session; `None` shows the name.
    Name(Option<String>),
    /// Show what the session has come to.
    ShowSession,
    /// Change a setting.
    Set { key: &'static str, value: Value },
    /// Use a theme; `save` keeps it.
    Theme { name: String, save: bool },
    /// Log a provider in.
    Login(String),
    /// Remove the credentials of a provider.
    Logout(String),
    /// DialogAnswer the question of an extension.
    DialogAnswer(DialogAnswer),
    /// Change between the regular and the fullscreen mode.
    ToggleFullscreen,
}

/// A message of the user that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitingMessage {
    /// Its number in the session's queues; `None`: it waits for the end of a compaction.
    pub(crate) id: Option<u64>,
    pub(crate) kind: QueueKind,
    pub(crate) text: String,
}

/// A dialog that is made from what the session knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DialogName {
    Models { search: String },
    ScopedModels,
    Sessions,
    Tree,
    Fork,
    Settings,
    Themes,
    Thinking,
    Login,
    Logout,
    Trust,
    Queue,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DialogAnswer {
    Text(String),
    Yes(bool),
    Dismissed,
}

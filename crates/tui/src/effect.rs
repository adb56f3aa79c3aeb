//! Effects of the interface: keys and dialogs return them, and the loop that owns the session carries them out.

use std::path::PathBuf;
use std::sync::Arc;

use pinch_agent_core::queue::QueueKind;
use pinch_coding_agent::entry::EntryId;
use pinch_coding_agent::session::CycleDirection;
use pinch_llm::model::Model;
use pinch_llm::thinking::ThinkingLevel;
use serde_json::Value;

use crate::editor::PastedImage;
use crate::key::Key;

/// A user message to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SubmittedMessage {
    /// The text, with image labels.
    pub(crate) text: String,
    /// The images, whose files are read when the message is sent.
    pub(crate) images: Vec<PastedImage>,
}

/// An effect to carry out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Send a text of the user: a prompt, or a message that steers the current run.
    Submit(SubmittedMessage),
    /// Send a text when the model would otherwise finish.
    FollowUp(SubmittedMessage),
    /// Run a shell command of the user.
    Bash {
        command: String,
        /// Whether it is hidden from the model.
        exclude: bool,
    },
    /// Run the command that an extension has bound to this key.
    Shortcut(Key),
    /// Store a submission for later sessions of the project.
    Remember(String),
    /// Stop the current activity: the run, a compaction, a wait, or a user command.
    Abort,
    /// Move waiting messages back into the editor.
    Dequeue,
    /// Remove a message from its queue, optionally to edit it.
    Unqueue { message: WaitingMessage, edit: bool },
    /// Exit the program.
    Exit,
    /// Redraw the screen.
    Redraw,
    /// Suspend the program until the shell continues it.
    Suspend,
    /// Edit the text in an external editor.
    ExternalEditor,
    /// Switch to the next or previous model.
    CycleModel(CycleDirection),
    /// Switch to the next thinking level.
    CycleThinking,
    /// Use a model from the next request on; `save` makes it the default.
    SetModel { model: Arc<Model>, save: bool },
    /// Use a thinking level from the next request on.
    SetThinking { level: ThinkingLevel, save: bool },
    /// Set the models to cycle through; empty: all.
    SetScope { models: Vec<String>, save: bool },
    /// Decide whether the project is trusted, and reload everything.
    Trust(bool),
    /// Open a dialog.
    Open(DialogName),
    /// Begin a new session.
    NewSession,
    /// Continue another session.
    SwitchSession(PathBuf),
    /// Delete the file of a session.
    DeleteSession(PathBuf),
    /// Set the name of the session in a file.
    RenameSession { path: PathBuf, name: String },
    /// List the sessions of all directories.
    ListAllSessions,
    /// Copy the session up to just before a user message into a new one.
    Fork(EntryId),
    /// Copy the session into a new one.
    Clone,
    /// Move to another entry of the tree.
    Navigate { target: EntryId, summarise: bool, focus: Option<String> },
    /// Label an entry; `None` clears its label.
    Label { target: EntryId, label: Option<String> },
    /// Compact the conversation.
    Compact(Option<String>),
    /// Reload settings, resources and extensions.
    Reload,
    /// Write the session to a file.
    Export(Option<String>),
    /// Write a page of the session for others, to this path or one in the working directory.
    ShareAsFile(Option<String>),
    /// Continue a copy of a session file.
    Import(String),
    /// Save the clipboard image to a file, and insert it into the editor.
    PasteImage,
    /// Insert the image in this file into the editor, or the pasted text if it is not an image.
    InsertImage { path: PathBuf, pasted: String },
    /// Copy the last answer.
    Copy,
    /// Copy a selected text.
    CopyText(String),
    /// Enable or disable mouse reporting.
    Mouse(bool),
    /// Set the name of the session; `None` shows it.
    Name(Option<String>),
    /// Show the statistics of the session.
    ShowSession,
    /// Change a setting.
    Set { key: &'static str, value: Value },
    /// Use a theme; `save` makes it permanent.
    Theme { name: String, save: bool },
    /// Log in to a provider.
    Login(String),
    /// Use the model server at this base URL, on this machine.
    UseLocalServer(String),
    /// Remove the credentials of a provider.
    Logout(String),
    /// Answer the question of an extension.
    DialogAnswer(DialogAnswer),
    /// Switch between regular and fullscreen mode.
    ToggleFullscreen,
    /// Enter fullscreen mode, which has the whole conversation.
    ShowTranscript,
    /// Write what is on the screen, and the conversation, to a file.
    WriteDebugLog,
}

/// A waiting message of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitingMessage {
    /// Its number in the session's queues; `None`: it waits for the end of a compaction.
    pub(crate) id: Option<u64>,
    pub(crate) kind: QueueKind,
    pub(crate) text: String,
}

/// A dialog that is created from the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DialogName {
    Models {
        search: String,
    },
    ScopedModels,
    Sessions,
    /// The session tree, with this entry selected, or else the current one.
    Tree {
        at: Option<EntryId>,
    },
    Fork,
    Settings,
    Themes,
    Thinking,
    Login,
    Logout,
    Trust,
    Queue,
    Doctor,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DialogAnswer {
    Text(String),
    Yes(bool),
    Dismissed,
}

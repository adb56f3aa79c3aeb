//! Actions for key bindings: each with its id, default keys, and context.

/// Where keys apply. The focused part of the interface looks keys up in its own context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyContext {
    /// Moving and editing in a text.
    Editor,
    /// Line breaks, submission and completion of an input.
    Input,
    /// Lists.
    Select,
    /// The application as a whole.
    App,
    /// The chat with agents.
    Chat,
    /// The list of sessions.
    SessionPicker,
    /// The tree of a session.
    Tree,
    /// The list of models to cycle through.
    ScopedModels,
}

impl KeyContext {
    /// Returns the contexts searched for a key, in order.
    pub(super) fn chain(self) -> &'static [Self] {
        match self {
            Self::Editor => &[Self::Editor, Self::Input],
            Self::Input => &[Self::Input],
            Self::Select => &[Self::Select],
            Self::App => &[Self::App],
            Self::Chat => &[Self::Chat, Self::App],
            Self::SessionPicker => &[Self::SessionPicker, Self::Select],
            Self::Tree => &[Self::Tree, Self::Select],
            Self::ScopedModels => &[Self::ScopedModels, Self::Select],
        }
    }

    /// Returns whether a key in one context can hide it from the other.
    pub(super) fn overlaps(self, other: Self) -> bool {
        let is_text = |context| matches!(context, Self::Editor | Self::Input | Self::App | Self::Chat);
        self.chain().contains(&other) || other.chain().contains(&self) || (is_text(self) && is_text(other))
    }
}

macro_rules! actions {
    ($($context:ident { $($action:ident $id:literal [$($key:literal),*] $description:literal;)* })*) => {
        /// An action that keys can be bound to.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(usize)]
        pub enum KeyAction { $($(#[doc = $description] $action,)*)* }

        impl KeyAction {
            /// All actions, in display order.
            pub const ALL: &[Self] = &[$($(Self::$action,)*)*];

            /// Returns the id of the action in `keybindings.json`.
            pub const fn id(self) -> &'static str {
                match self { $($(Self::$action => $id,)*)* }
            }

            /// Returns the description for people.
            pub const fn description(self) -> &'static str {
                match self { $($(Self::$action => $description,)*)* }
            }

            /// Returns the context in which it applies.
            pub const fn context(self) -> KeyContext {
                match self { $($(Self::$action => KeyContext::$context,)*)* }
            }

            /// Returns the default keys.
            pub(super) const fn default_keys(self) -> &'static [&'static str] {
                match self {
                    // The Windows console pastes with ctrl+v, and does not support suspension.
                    Self::Suspend if cfg!(windows) => &[],
                    Self::PasteImage if cfg!(windows) => &["alt+v"],
                    $($(Self::$action => &[$($key),*],)*)*
                }
            }
        }
    };
}

actions! {
    Editor {
        CursorUp "tui.editor.cursorUp" ["up"] "Move the cursor up";
        CursorDown "tui.editor.cursorDown" ["down"] "Move the cursor down";
        CursorLeft "tui.editor.cursorLeft" ["left", "ctrl+b"] "Move the cursor left";
        CursorRight "tui.editor.cursorRight" ["right", "ctrl+f"] "Move the cursor right";
        CursorWordLeft "tui.editor.cursorWordLeft" ["alt+left", "ctrl+left", "alt+b"] "Move the cursor a word to the left";
        CursorWordRight "tui.editor.cursorWordRight" ["alt+right", "ctrl+right", "alt+f"] "Move the cursor a word to the right";
        CursorLineStart "tui.editor.cursorLineStart" ["home", "ctrl+a"] "Move to the start of the line";
        CursorLineEnd "tui.editor.cursorLineEnd" ["end", "ctrl+e"] "Move to the end of the line";
        JumpForward "tui.editor.jumpForward" ["ctrl+]"] "Jump forward to a character";
        JumpBackward "tui.editor.jumpBackward" ["ctrl+alt+]"] "Jump backward to a character";
        PageUp "tui.editor.pageUp" ["pageUp"] "Move up by a page";
        PageDown "tui.editor.pageDown" ["pageDown"] "Move down by a page";
        DeleteCharBackward "tui.editor.deleteCharBackward" ["backspace"] "Delete the character before the cursor";
        DeleteCharForward "tui.editor.deleteCharForward" ["delete", "ctrl+d"] "Delete the character at the cursor";
        DeleteWordBackward "tui.editor.deleteWordBackward" ["ctrl+w", "alt+backspace"] "Delete the word before the cursor";
        DeleteWordForward "tui.editor.deleteWordForward" ["alt+d", "alt+delete"] "Delete the word after the cursor";
        DeleteToLineStart "tui.editor.deleteToLineStart" ["ctrl+u"] "Delete to the start of the line";
        DeleteToLineEnd "tui.editor.deleteToLineEnd" ["ctrl+k"] "Delete to the end of the line";
        Yank "tui.editor.yank" ["ctrl+y"] "Insert the last deleted text";
        YankPop "tui.editor.yankPop" ["alt+y"] "Replace the inserted text with earlier deleted text";
        Undo "tui.editor.undo" ["ctrl+-"] "Undo the last change";
        Redo "tui.editor.redo" ["alt+-"] "Redo the last undone change";
        HistorySearch "tui.editor.historySearch" [] "Search the history of prompts";
    }
    Input {
        NewLine "tui.input.newLine" ["shift+enter", "ctrl+j"] "Insert a new line";
        Submit "tui.input.submit" ["enter"] "Submit the input";
        Tab "tui.input.tab" ["tab"] "Complete the word before the cursor";
        Copy "tui.input.copy" ["ctrl+c"] "Copy the selection";
    }
    Select {
        SelectUp "tui.select.up" ["up"] "Move the selection up";
        SelectDown "tui.select.down" ["down"] "Move the selection down";
        SelectPageUp "tui.select.pageUp" ["pageUp"] "Move the selection up by a page";
        SelectPageDown "tui.select.pageDown" ["pageDown"] "Move the selection down by a page";
        SelectConfirm "tui.select.confirm" ["enter"] "Confirm the selection";
        SelectCancel "tui.select.cancel" ["escape", "ctrl+c"] "Cancel the selection";
    }
    App {
        Interrupt "app.interrupt" ["escape"] "Cancel or abort";
        Clear "app.clear" ["ctrl+c"] "Clear the editor";
        Exit "app.exit" ["ctrl+d"] "Exit when the editor is empty";
        Suspend "app.suspend" ["ctrl+z"] "Suspend to the background";
        ThinkingCycle "app.thinking.cycle" ["shift+tab"] "Cycle the thinking level";
        ThinkingToggle "app.thinking.toggle" ["ctrl+t"] "Show or hide thinking";
        ModelCycleForward "app.model.cycleForward" ["ctrl+p"] "Switch to the next model";
        ModelCycleBackward "app.model.cycleBackward" ["shift+ctrl+p"] "Switch to the previous model";
        ModelSelect "app.model.select" ["ctrl+l"] "Choose a model";
        ToolsExpand "app.tools.expand" ["ctrl+o"] "Expand or collapse tool output";
        ToolsExpandOne "app.tools.expandOne" [] "Expand or collapse the output of one tool";
        ExternalEditor "app.editor.external" ["ctrl+g"] "Open an external editor";
        MessageFollowUp "app.message.followUp" ["alt+enter"] "Queue a follow-up message";
        MessageCopy "app.message.copy" ["ctrl+x"] "Copy the last answer";
        MessageDequeue "app.message.dequeue" ["alt+up"] "Edit all queued messages";
        QueueEdit "app.queue.edit" [] "Edit or remove one queued message";
        PasteImage "app.clipboard.pasteImage" ["ctrl+v"] "Paste an image from the clipboard";
        PasteExpand "app.paste.expand" [] "Show the pasted text behind a marker";
        SessionNew "app.session.new" [] "Start a new session";
        SessionTree "app.session.tree" [] "Open the session tree";
        SessionFork "app.session.fork" [] "Fork the session";
        SessionResume "app.session.resume" [] "Resume a session";
        Transcript "app.transcript" ["ctrl+r"] "Show the transcript";
        TranscriptSearch "app.transcript.search" ["ctrl+s", "ctrl+shift+f"] "Search the transcript";
        TranscriptPageUp "app.transcript.pageUp" ["shift+pageUp"] "Scroll up by a page in fullscreen mode";
        TranscriptPageDown "app.transcript.pageDown" ["shift+pageDown"] "Scroll down by a page in fullscreen mode";
        TranscriptTop "app.transcript.top" ["ctrl+home"] "Scroll to the beginning in fullscreen mode";
        TranscriptEnd "app.transcript.end" ["ctrl+end"] "Scroll to the end in fullscreen mode";
        Redraw "app.redraw" [] "Redraw the screen";
        Debug "app.debug" ["shift+ctrl+d"] "Write the debug log";
    }
    Chat {
        ChatAgents "chat.agents" ["ctrl+g"] "Choose an agent";
        ChatSessions "chat.sessions" ["ctrl+p"] "Choose a session of the agent";
        ChatModels "chat.models" ["ctrl+l"] "Choose a model for the session";
    }
    SessionPicker {
        SessionTogglePath "app.session.togglePath" ["ctrl+p"] "Show or hide paths";
        SessionToggleSort "app.session.toggleSort" ["ctrl+s"] "Change the order of sessions";
        SessionToggleNamedFilter "app.session.toggleNamedFilter" ["ctrl+n"] "Show named sessions only";
        SessionRename "app.session.rename" ["ctrl+r"] "Rename the session";
        SessionDelete "app.session.delete" ["ctrl+d"] "Delete the session";
        SessionDeleteNoninvasive "app.session.deleteNoninvasive" ["ctrl+backspace"] "Delete the session when the search is empty";
    }
    Tree {
        TreeFoldOrUp "app.tree.foldOrUp" ["ctrl+left", "alt+left"] "Fold the branch, or move up a segment";
        TreeUnfoldOrDown "app.tree.unfoldOrDown" ["ctrl+right", "alt+right"] "Unfold the branch, or move down a segment";
        TreeEditLabel "app.tree.editLabel" ["shift+l"] "Edit the label of the entry";
        TreeToggleLabelTimestamp "app.tree.toggleLabelTimestamp" ["shift+t"] "Show or hide the time of labels";
        TreeFilterDefault "app.tree.filter.default" ["ctrl+d"] "Show the default entries";
        TreeFilterNoTools "app.tree.filter.noTools" ["ctrl+t"] "Hide tool results";
        TreeFilterUserOnly "app.tree.filter.userOnly" ["ctrl+u"] "Show user messages only";
        TreeFilterLabeledOnly "app.tree.filter.labeledOnly" ["ctrl+l"] "Show labeled entries only";
        TreeFilterAll "app.tree.filter.all" ["ctrl+a"] "Show all entries";
        TreeFilterCycleForward "app.tree.filter.cycleForward" ["ctrl+o"] "Switch to the next filter";
        TreeFilterCycleBackward "app.tree.filter.cycleBackward" ["shift+ctrl+o"] "Switch to the previous filter";
    }
    ScopedModels {
        ModelsSave "app.models.save" ["ctrl+s"] "Save the list";
        ModelsEnableAll "app.models.enableAll" ["ctrl+a"] "Enable all models";
        ModelsClearAll "app.models.clearAll" ["ctrl+x"] "Disable all models";
        ModelsToggleProvider "app.models.toggleProvider" ["ctrl+p"] "Enable or disable all models of the provider";
        ModelsReorderUp "app.models.reorderUp" ["alt+up"] "Move the model up";
        ModelsReorderDown "app.models.reorderDown" ["alt+down"] "Move the model down";
    }
}

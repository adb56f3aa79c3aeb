//! What a person sees.

use serde_json::Value;

use super::SettingsReader;

/// How a terminal interface looks and behaves.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Interface {
    /// Name of the theme; `None` = by the terminal.
    pub theme: Option<String>,
    /// The way the screen is used, in the words of the document.
    pub tui_mode: Option<String>,
    /// Plain lines are written one below the other.
    pub plain: bool,
    /// What is shown at the start.
    pub quiet_startup: QuietStartup,
    /// What is new is shown in one line.
    pub collapse_changelog: bool,
    /// The version whose changes were shown last.
    pub last_changelog_version: Option<String>,
    /// The server that names the latest version.
    pub version_check_url: Option<String>,
    /// Thoughts of models are not shown.
    pub hide_thinking: bool,
    /// What two presses of Escape do.
    pub double_escape: DoubleEscape,
    /// What a session's tree shows at first: `default`, `no-tools`, `user-only`, `labeled-only` or `all`.
    pub tree_filter: String,
    /// Columns left and right of the editor.
    pub editor_padding: u64,
    /// Prompts are kept for later sessions of the project.
    pub history_file: bool,
    /// Lines of suggestions at most.
    pub autocomplete_max_visible: u64,
    /// The terminal's own cursor is shown.
    pub hardware_cursor: bool,
    /// The command of another editor.
    pub external_editor: Option<String>,
    /// Space around output, in the words of the document.
    pub output_pad: Option<Value>,
    /// In front of the lines of code blocks.
    pub code_block_indent: String,
    /// How diagrams are shown, in the words of the document.
    pub mermaid: Option<Value>,
    /// A person is warned when a subscription is billed by use.
    pub warn_extra_usage: bool,
    /// Report when a provider's cache was missed.
    pub show_cache_misses: bool,
    /// What the terminal can do.
    pub terminal: Terminal,
}

/// What is shown at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuietStartup {
    /// All of it.
    Off,
    /// Nothing.
    On,
    /// The header alone.
    Header,
}

/// What two presses of Escape do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DoubleEscape {
    /// The session's tree opens.
    Tree,
    /// The session is forked.
    Fork,
    /// Nothing.
    Nothing,
}

/// What a terminal is asked to do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Terminal {
    /// Pictures are shown.
    pub show_images: bool,
    /// Columns of a picture.
    pub image_width: u64,
    /// The screen is cleared when there is less to show.
    pub clear_on_shrink: bool,
    /// Show progress in the terminal.
    pub show_progress: bool,
    /// How it notifies the user: `auto`, `off`, `bell`, `osc9` or `osc777`.
    pub notify: String,
    /// Whether links can be clicked; `None`: where the terminal is known to have such links.
    pub hyperlinks: Option<bool>,
    /// How pictures are sent: `auto`, `kitty`, `iterm2` or `off`.
    pub images: Option<Value>,
    /// Whether there are all colours, in the words of the document.
    pub true_color: Option<Value>,
}

impl SettingsReader<'_> {
    pub(super) fn interface(&self) -> Interface {
        Interface {
            theme: self.text("theme"),
            tui_mode: self.text("tuiMode"),
            plain: self.flag("ui.plain"),
            quiet_startup: match self.value("quietStartup") {
                Some(Value::Bool(true)) => QuietStartup::On,
                Some(Value::String(_)) => QuietStartup::Header,
                _ => QuietStartup::Off,
            },
            collapse_changelog: self.flag("collapseChangelog"),
            last_changelog_version: self.text("lastChangelogVersion"),
            version_check_url: self.text("versionCheckUrl"),
            hide_thinking: self.flag("hideThinkingBlock"),
            double_escape: match self.str("doubleEscapeAction") {
                Some("fork") => DoubleEscape::Fork,
                Some("none") => DoubleEscape::Nothing,
                _ => DoubleEscape::Tree,
            },
            tree_filter: self.text("treeFilterMode").unwrap_or_default(),
            editor_padding: self.number("editorPaddingX"),
            history_file: self.flag("editor.historyFile"),
            autocomplete_max_visible: self.number("autocompleteMaxVisible"),
            hardware_cursor: self.flag("showHardwareCursor"),
            external_editor: self.text("externalEditor"),
            output_pad: self.value("outputPad").cloned(),
            code_block_indent: self.text("markdown.codeBlockIndent").unwrap_or_default(),
            mermaid: self.value("markdown.mermaid").cloned(),
            warn_extra_usage: self.flag("warnings.anthropicExtraUsage"),
            show_cache_misses: self.flag("showCacheMissNotices"),
            terminal: Terminal {
                show_images: self.flag("terminal.showImages"),
                image_width: self.number("terminal.imageWidthCells"),
                clear_on_shrink: self.flag("terminal.clearOnShrink"),
                show_progress: self.flag("terminal.showTerminalProgress"),
                notify: self.text("terminal.notify").unwrap_or_default(),
                hyperlinks: match self.value("terminal.hyperlinks") {
                    Some(Value::Bool(on)) => Some(*on),
                    Some(Value::String(word)) if word == "on" => Some(true),
                    Some(Value::String(word)) if word == "off" => Some(false),
                    _ => None,
                },
                images: self.value("terminal.images").cloned(),
                true_color: self.value("terminal.trueColor").cloned(),
            },
        }
    }
}

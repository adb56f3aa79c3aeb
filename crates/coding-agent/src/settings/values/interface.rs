//! User interface settings.

use serde_json::Value;

use super::SettingsReader;

/// Appearance and behavior of a terminal interface.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Interface {
    /// Name of the theme; `None` follows the terminal.
    pub theme: Option<String>,
    /// How the screen is used, uninterpreted.
    pub tui_mode: Option<String>,
    /// Whether to write plain lines one below the other.
    pub plain: bool,
    /// What to show at startup.
    pub quiet_startup: QuietStartup,
    /// Whether to show release notes in a single line.
    pub collapse_changelog: bool,
    /// The version whose release notes were shown last.
    pub last_changelog_version: Option<String>,
    /// URL of the server that knows the latest version.
    pub version_check_url: Option<String>,
    /// Whether to hide the models' thinking.
    pub hide_thinking: bool,
    /// What a double Escape does.
    pub double_escape: DoubleEscape,
    /// Initial filter of a session's tree: `default`, `no-tools`, `user-only`, `labeled-only` or `all`.
    pub tree_filter: String,
    /// Columns to the left and right of the editor.
    pub editor_padding: u64,
    /// Whether to keep prompts for later sessions of the project.
    pub history_file: bool,
    /// Maximum lines of suggestions.
    pub autocomplete_max_visible: u64,
    /// Whether to show the terminal's own cursor.
    pub hardware_cursor: bool,
    /// Command of an external editor.
    pub external_editor: Option<String>,
    /// Space around output, uninterpreted.
    pub output_pad: Option<Value>,
    /// Indentation of code blocks.
    pub code_block_indent: String,
    /// How to show diagrams, uninterpreted.
    pub mermaid: Option<Value>,
    /// Whether to warn when a subscription is billed by usage.
    pub warn_extra_usage: bool,
    /// Whether to report that a provider's cache was missed.
    pub show_cache_misses: bool,
    /// Terminal settings.
    pub terminal: Terminal,
}

/// What to show at startup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuietStartup {
    /// Everything.
    Off,
    /// Nothing.
    On,
    /// Only the header.
    Header,
}

/// What a double Escape does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DoubleEscape {
    /// Opens the session's tree.
    Tree,
    /// Forks the session.
    Fork,
    /// Nothing.
    Nothing,
}

/// Terminal settings.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Terminal {
    /// Whether to show images.
    pub show_images: bool,
    /// Width of an image in columns.
    pub image_width: u64,
    /// Whether to clear the screen when its content shrinks.
    pub clear_on_shrink: bool,
    /// Whether to show progress in the terminal.
    pub show_progress: bool,
    /// How to notify the user: `auto`, `off`, `bell`, `osc9` or `osc777`.
    pub notify: String,
    /// Whether to emit clickable links; `None` does so in terminals known to support them.
    pub hyperlinks: Option<bool>,
    /// Image protocol: `auto`, `kitty`, `iterm2` or `off`.
    pub images: Option<Value>,
    /// Whether true color is supported, uninterpreted.
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

//! Options for parsing and displaying Markdown.

use pulldown_cmark::Options;

use crate::theme::ColorRole;

/// Supported extensions of CommonMark.
pub(super) const EXTENSIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// Options for displaying Markdown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MarkdownOptions {
    /// Colour of text.
    pub text: ColorRole,
    /// Whether text is italic.
    pub italic: bool,
    /// Prefix of the lines of code blocks.
    pub code_indent: String,
}

impl Default for MarkdownOptions {
    fn default() -> Self {
        Self { text: ColorRole::Text, italic: false, code_indent: "  ".to_owned() }
    }
}

impl MarkdownOptions {
    /// Creates options for text in a colour, with other defaults.
    pub fn colored(text: ColorRole) -> Self {
        Self { text, ..Self::default() }
    }

    /// Makes text italic.
    #[must_use]
    pub fn italic(self) -> Self {
        Self { italic: true, ..self }
    }

    /// Sets the prefix of the lines of code blocks, usually spaces.
    #[must_use]
    pub fn code_indent(self, indent: impl Into<String>) -> Self {
        Self { code_indent: indent.into(), ..self }
    }
}

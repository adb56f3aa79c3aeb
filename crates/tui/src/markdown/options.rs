//! How Markdown is read and shown.

use pulldown_cmark::Options;

use crate::theme::ColorRole;

/// What is understood beyond CommonMark.
pub(super) const EXTENSIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// How Markdown is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MarkdownOptions {
    /// The colour of text.
    pub text: ColorRole,
    /// Whether text is italic.
    pub italic: bool,
    /// What stands before every line of a code block.
    pub code_indent: String,
}

impl Default for MarkdownOptions {
    fn default() -> Self {
        Self { text: ColorRole::Text, italic: false, code_indent: "  ".to_owned() }
    }
}

impl MarkdownOptions {
    /// Text in a colour, else as usual.
    pub fn colored(text: ColorRole) -> Self {
        Self { text, ..Self::default() }
    }

    /// The same with text in italics.
    #[must_use]
    pub fn italic(self) -> Self {
        Self { italic: true, ..self }
    }

    /// The same with something else before the lines of code blocks: spaces, as a rule.
    #[must_use]
    pub fn code_indent(self, indent: impl Into<String>) -> Self {
        Self { code_indent: indent.into(), ..self }
    }
}

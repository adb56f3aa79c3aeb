//! Files with instructions for the model: when it reads them, one line is shown.

use std::path::Path;

use ratatui_core::text::Span;

use super::{ViewCx, skill};
use crate::Row;
use crate::text::{one_line, wrap};
use crate::theme::ColorRole;

/// A file with instructions.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadResource {
    /// A skill: the name of its directory.
    Skill(String),
    /// A context file: its name.
    Context(String),
}

impl ReadResource {
    /// Returns what a path names, by its last part.
    pub(super) fn of(path: &str) -> Option<Self> {
        let path = Path::new(path);
        let name = path.file_name()?.to_str()?;
        match name {
            "SKILL.md" => Some(Self::Skill(path.parent()?.file_name()?.to_str()?.to_owned())),
            "AGENTS.override.md" | "AGENTS.md" | "AGENTS.MD" | "CLAUDE.md" | "CLAUDE.MD" => {
                Some(Self::Context(name.to_owned()))
            }
            _ => None,
        }
    }

    /// Returns the line for it.
    pub(super) fn rows(&self, columns: usize, cx: ViewCx<'_>) -> Vec<Row> {
        match self {
            Self::Skill(name) => skill::folded(name, true, columns, cx),
            Self::Context(name) => {
                let line = [
                    Span::styled("read resource ", cx.theme.bold(ColorRole::ToolTitle)),
                    Span::styled(one_line(name), cx.theme.fg(ColorRole::Accent)),
                    Span::styled(format!(" ({})", cx.expand_hint()), cx.theme.fg(ColorRole::Muted)),
                ];
                wrap(&line, columns)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_instructions_are_recognized_by_their_names() {
        let skill = |name: &str| Some(ReadResource::Skill(name.to_owned()));
        assert_eq!(ReadResource::of("/home/u/.pi/agent/skills/pdf/SKILL.md"), skill("pdf"));
        assert_eq!(ReadResource::of("SKILL.md"), None, "a skill without a directory");
        assert_eq!(ReadResource::of("src/CLAUDE.md"), Some(ReadResource::Context("CLAUDE.md".to_owned())));
        assert_eq!(ReadResource::of("docs/skill.md"), None);
        assert_eq!(ReadResource::of("README.md"), None, "a file of the project");
    }
}

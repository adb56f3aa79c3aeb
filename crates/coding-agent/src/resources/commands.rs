//! Expanding slash commands at the start of a prompt: skills and prompt templates.

use std::borrow::Cow;

use super::info::Diagnostic;
use super::skills::{self, Skill};
use super::templates::Templates;

/// Skills and prompt templates by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// `/skill:name`.
    pub skills: Vec<Skill>,
    /// `/name`.
    pub templates: Templates,
}

/// An expanded prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expanded<'a> {
    /// The text.
    pub text: Cow<'a, str>,
    /// Why a skill could not be read; the text is unchanged then.
    pub problem: Option<Diagnostic>,
}

impl Commands {
    /// Expands a prompt. Unknown names are left unchanged.
    pub fn expand<'a>(&self, text: &'a str) -> Expanded<'a> {
        if let Some((skill, arguments)) = self.named(text) {
            return match skills::expand(skill, arguments) {
                Ok(expanded) => Expanded { text: expanded.into(), problem: None },
                Err(problem) => Expanded { text: text.into(), problem: Some(problem) },
            };
        }
        Expanded { text: self.templates.expand(text), problem: None }
    }

    fn named<'a>(&self, text: &'a str) -> Option<(&Skill, &'a str)> {
        let command = text.strip_prefix("/skill:")?;
        let (name, arguments) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        Some((self.skills.iter().find(|skill| skill.name == name)?, arguments.trim()))
    }
}

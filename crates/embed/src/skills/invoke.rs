//! What people invoke in their messages: skills by their command, as `/skill:<name>` or as `$<name>`, and the task templates of skills as
//! `/<skill>:<template>`.

use std::collections::HashMap;
use std::path::Path;

use pinch_coding_agent::resources::skills::Skill;
use pinch_coding_agent::resources::templates::{Template, Templates};
use pinch_coding_agent::resources::{Commands, skill_templates};

use super::agent_skills::{AgentSkills, SkillStatus};

/// The call of a tool by the command of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillCall {
    /// Name of the tool.
    pub tool: String,
    /// The command, without its slash.
    pub command: String,
    /// Name of the skill.
    pub skill: String,
    /// What followed the command.
    pub arguments: String,
}

/// Maximum number of skills that one message can mention.
const MAX_MENTIONED: usize = 8;

/// Returns the names after a `$` that begins a word.
fn mentions(message: &str) -> impl Iterator<Item = &str> {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    message.match_indices('$').filter_map(move |(at, _)| {
        let begins =
            message[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '"' | '\''));
        let rest = &message[at + 1..];
        let name = &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())];
        (begins && !name.is_empty()).then(|| name.trim_end_matches('-'))
    })
}

impl AgentSkills {
    /// Returns the task templates of the skills that people may use. Reads their files; unreadable ones are left out.
    pub fn templates(&self) -> Vec<Template> {
        self.all_templates().iter().cloned().collect()
    }

    /// Expands a message that begins with a command, or that mentions skills; `None` if it does neither, or if the files cannot be read.
    pub(crate) fn expand(&self, message: &str) -> Option<String> {
        let Some(command) = message.strip_prefix('/') else { return self.with_mentioned(message) };
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let message = match self.invocable().find(|status| status.command.as_deref() == Some(name)) {
            Some(status) => format!("/skill:{} {rest}", status.skill.name),
            None => message.to_owned(),
        };
        let commands = Commands { skills: self.invocable().map(as_command).collect(), templates: self.all_templates() };
        let expanded = commands.expand(&message);
        if let Some(problem) = expanded.problem {
            tracing::warn!(path = %problem.path.display(), why = problem.message, "a skill cannot be read");
            return None;
        }
        (expanded.text != message).then(|| expanded.text.into_owned())
    }

    /// Returns the tool that a message calls by the command of a skill.
    pub(crate) fn called(&self, message: &str) -> Option<SkillCall> {
        let command = message.strip_prefix('/')?;
        let (name, arguments) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let SkillStatus { skill, .. } = self.invocable().find(|status| status.command.as_deref() == Some(name))?;
        Some(SkillCall {
            tool: skill.called_tool.clone()?,
            command: name.to_owned(),
            skill: skill.name.clone(),
            arguments: arguments.trim().to_owned(),
        })
    }

    /// Puts the skills that a message mentions before it.
    fn with_mentioned(&self, message: &str) -> Option<String> {
        let mut names = mentions(message).peekable();
        names.peek()?;
        // A long message may have a name in every word. Of equal names, that of the first skill counts.
        let mut known: HashMap<&str, &SkillStatus> = HashMap::new();
        for status in self.invocable() {
            for name in [Some(status.skill.name.as_str()), status.command.as_deref()].into_iter().flatten() {
                known.entry(name).or_insert(status);
            }
        }
        let mut mentioned: Vec<&SkillStatus> = Vec::new();
        for status in names.filter_map(|name| known.get(name).copied()) {
            if mentioned.len() == MAX_MENTIONED {
                break;
            }
            if !mentioned.iter().any(|other| other.skill.name == status.skill.name) {
                mentioned.push(status);
            }
        }
        let expanded = mentioned.iter().filter_map(|status| self.expand(&format!("/skill:{}", status.skill.name)));
        let mut texts: Vec<String> = expanded.collect();
        if texts.is_empty() {
            return None;
        }
        texts.push(message.to_owned());
        Some(texts.join("\n\n"))
    }

    fn invocable(&self) -> impl Iterator<Item = &SkillStatus> {
        self.skills.iter().filter(|status| status.command.is_some())
    }

    fn all_templates(&self) -> Templates {
        let skills: Vec<Skill> = self.invocable().map(as_command).collect();
        let (templates, problems) = skill_templates(&skills);
        for problem in problems {
            tracing::warn!(path = %problem.path.display(), why = problem.message, "a task template cannot be used");
        }
        templates
    }
}

fn as_command(status: &SkillStatus) -> Skill {
    let skill = &status.skill;
    Skill {
        name: skill.name.clone(),
        description: skill.description.clone(),
        path: skill.path.clone(),
        base_dir: skill.path.parent().unwrap_or(Path::new("")).to_owned(),
        ..Skill::default()
    }
}

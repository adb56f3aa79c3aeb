//! Slash commands of people: skills by their command or as `/skill:<name>`, and the task templates of skills as `/<skill>:<template>`.

use std::path::Path;

use pinch_coding_agent::resources::skills::Skill;
use pinch_coding_agent::resources::templates::{Template, Templates};
use pinch_coding_agent::resources::{Commands, skill_templates};

use super::agent_skills::{AgentSkills, SkillStatus};

impl AgentSkills {
    /// Returns the task templates of the skills that people may use. Reads their files; unreadable ones are left out.
    pub fn templates(&self) -> Vec<Template> {
        self.all_templates().iter().cloned().collect()
    }

    /// Expands a message that begins with a command; `None` if it does not, or if the files cannot be read.
    pub(crate) fn expand(&self, message: &str) -> Option<String> {
        let command = message.strip_prefix('/')?;
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

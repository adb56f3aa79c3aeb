//! Skill text embedded in a prompt, delimited by tags in the session.

/// A prompt with an embedded skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkillPrompt<'a> {
    /// The name of the skill.
    pub name: &'a str,
    /// The text of the skill.
    pub body: &'a str,
    /// The rest of the user's message.
    pub rest: &'a str,
}

impl<'a> SkillPrompt<'a> {
    /// Splits a prompt. Returns `None` if it does not start with a skill.
    pub fn parse(prompt: &'a str) -> Option<Self> {
        let (name, rest) = prompt.strip_prefix("<skill name=\"")?.split_once("\" location=\"")?;
        let (_, rest) = rest.split_once("\">\n")?;
        // The skill's text may mention the tags itself, so use the last closing one.
        let end = rest.rfind("\n</skill>")?;
        let after = &rest[end + "\n</skill>".len()..];
        let is_name = !name.contains(['"', '\n']) && (after.is_empty() || after.starts_with("\n\n"));
        is_name.then(|| Self { name, body: &rest[..end], rest: after.trim_start() })
    }

    /// Returns the command that the user typed.
    pub fn command(&self) -> String {
        format!("/skill:{} {}", self.name, self.rest).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skills_are_split_from_prompts() {
        let text = "<skill name=\"pdf\" location=\"/s/SKILL.md\">\nBody\n</skill> more\n</skill>\n\ndo it";
        assert_eq!(
            SkillPrompt::parse(text),
            Some(SkillPrompt { name: "pdf", body: "Body\n</skill> more", rest: "do it" })
        );
        assert_eq!(
            SkillPrompt::parse("<skill name=\"a\" location=\"b\">\nx\n</skill>").map(|skill| skill.rest),
            Some("")
        );
        for text in [
            "",
            "<skill name=\"a\">",
            "x <skill name=\"a\" location=\"b\">\nx\n</skill>",
            "<skill name=\"a\" location=\"b\">\nx",
        ] {
            assert_eq!(SkillPrompt::parse(text), None, "{text}");
        }
    }
}

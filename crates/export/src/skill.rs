//! The text of a skill that a prompt named: it is in the session with marks around it.

/// A prompt with a skill in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SkillPrompt<'a> {
    pub(super) name: &'a str,
    /// The skill's text.
    pub(super) body: &'a str,
    /// What the user said besides.
    pub(super) rest: &'a str,
}

/// Splits a prompt; `None` when it does not start with a skill.
pub(super) fn skill(prompt: &str) -> Option<SkillPrompt<'_>> {
    let (name, rest) = prompt.strip_prefix("<skill name=\"")?.split_once("\" location=\"")?;
    let (_, rest) = rest.split_once("\">\n")?;
    // The skill's text may speak of such marks too: the last one is the end.
    let end = rest.rfind("\n</skill>")?;
    let after = &rest[end + "\n</skill>".len()..];
    let is_name = !name.contains(['"', '\n']) && (after.is_empty() || after.starts_with("\n\n"));
    is_name.then(|| SkillPrompt { name, body: &rest[..end], rest: after.trim_start() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_with_skills() {
        let text = "<skill name=\"pdf\" location=\"/s/SKILL.md\">\nBody\n</skill> more\n</skill>\n\ndo it";
        assert_eq!(skill(text), Some(SkillPrompt { name: "pdf", body: "Body\n</skill> more", rest: "do it" }));
        assert_eq!(skill("<skill name=\"a\" location=\"b\">\nx\n</skill>").map(|skill| skill.rest), Some(""));
        for text in [
            "",
            "<skill name=\"a\">",
            "x <skill name=\"a\" location=\"b\">\nx\n</skill>",
            "<skill name=\"a\" location=\"b\">\nx",
        ] {
            assert_eq!(skill(text), None, "{text}");
        }
    }
}

//! What the system prompt says about skills.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

use super::load::LoadedSkill;
use crate::config::skills::SkillLimits;

const INTRO: &str = "These skills describe how to do particular kinds of work.\n\
     When a task fits a description, read the file at its location before you begin, and follow it.";
/// Characters that the note about what was left out may take.
const NOTE: usize = 150;

/// The list of skills, within the limits: without descriptions if it is too long, and then the first ones only. Empty without skills. `home` is
/// written as `~`.
pub(super) fn listing<'a>(
    skills: impl IntoIterator<Item = &'a LoadedSkill>,
    limits: &SkillLimits,
    home: Option<&Path>,
) -> String {
    let skills: Vec<&LoadedSkill> = skills.into_iter().filter(|skill| skill.invocation.by_model).collect();
    let shown = &skills[..skills.len().min(limits.in_prompt)];
    if shown.is_empty() {
        return String::new();
    }
    let full = block(shown, home, true);
    if full.chars().count() <= limits.prompt_chars {
        return match shown.len() == skills.len() {
            true => full,
            false => with_note(&full, shown.len(), skills.len(), false),
        };
    }
    let max = limits.prompt_chars.saturating_sub(NOTE);
    let fits = |n: &usize| block(&shown[..*n], home, false).chars().count() <= max;
    // Longer lists are longer texts: the longest that fits is found by halving.
    let (mut fitting, mut too_many) = (0, shown.len() + 1);
    while too_many - fitting > 1 {
        let middle = fitting.midpoint(too_many);
        if fits(&middle) {
            fitting = middle;
        } else {
            too_many = middle;
        }
    }
    if fitting == 0 {
        return String::new();
    }
    with_note(&block(&shown[..fitting], home, false), fitting, skills.len(), true)
}

fn with_note(block: &str, n_shown: usize, n_skills: usize, is_compact: bool) -> String {
    let form = if is_compact { ", without descriptions" } else { "" };
    format!("Skills are left out: {n_shown} of {n_skills} are listed{form}.\n{block}")
}

fn block(skills: &[&LoadedSkill], home: Option<&Path>, with_descriptions: bool) -> String {
    let mut text = format!("{INTRO}\n\n<available_skills>\n");
    for skill in skills {
        let location = match home.and_then(|home| skill.path.strip_prefix(home).ok()) {
            Some(rest) => format!("~/{}", rest.display()),
            None => skill.path.display().to_string(),
        };
        let description = match with_descriptions {
            true => format!("    <description>{}</description>\n", escape(&skill.description)),
            false => String::new(),
        };
        // Writing into a text cannot fail.
        let _written = write!(
            text,
            "  <skill>\n    <name>{}</name>\n{description}    <location>{}</location>\n  </skill>\n",
            escape(&skill.name),
            escape(&location)
        );
    }
    text.push_str("</available_skills>");
    text
}

fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return text.into();
    }
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&apos;").into()
}

#[cfg(test)]
mod tests {
    use super::super::head::SkillInvocation;
    use super::super::load::SkillOrigin;
    use super::*;

    fn skill(name: &str, description: &str) -> LoadedSkill {
        LoadedSkill {
            name: name.to_owned(),
            description: description.to_owned(),
            path: format!("/home/u/skills/{name}/SKILL.md").into(),
            origin: SkillOrigin::Workspace,
            metadata: Default::default(),
            invocation: SkillInvocation { by_user: true, by_model: true },
        }
    }

    #[test]
    fn long_lists_lose_descriptions_and_then_skills() {
        let home = Some(Path::new("/home/u"));
        let few = [skill("a", "say <hi> & \"bye\"")];
        let text = listing(&few, &SkillLimits::default(), home);
        assert!(text.ends_with(
            "<available_skills>\n  <skill>\n    <name>a</name>\n    <description>say &lt;hi&gt; &amp; &quot;bye&quot;</description>\n    \
             <location>~/skills/a/SKILL.md</location>\n  </skill>\n</available_skills>"
        ));
        let many: Vec<LoadedSkill> = (0..100).map(|n| skill(&format!("s{n}"), &"d".repeat(300))).collect();
        let text = listing(&many, &SkillLimits::default(), home);
        assert!(text.starts_with("Skills are left out: 100 of 100 are listed, without descriptions.\n"), "{text}");
        assert!(!text.contains("<description>") && text.chars().count() <= 18_000);
        let limits = SkillLimits { prompt_chars: 2_000, ..SkillLimits::default() };
        let text = listing(&many, &limits, home);
        assert!(text.chars().count() <= 2_000 && text.contains("s0/SKILL.md") && !text.contains("s99/"), "{text}");
        let limits = SkillLimits { in_prompt: 2, ..SkillLimits::default() };
        assert!(listing(&many, &limits, home).starts_with("Skills are left out: 2 of 100 are listed.\n"));
        assert_eq!(listing(&[], &limits, home), "");
    }
}

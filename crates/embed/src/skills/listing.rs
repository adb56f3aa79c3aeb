//! The skill list in the system prompt.

use std::fmt::Write as _;
use std::path::Path;

use pinch_coding_agent::resources::skills::escape_xml;
use pinch_stdx::text::utf16_len;

use super::load::LoadedSkill;
use crate::config::skills::SkillLimits;

const INTRO: &str = "These skills describe how to do particular kinds of work.\n\
     When a task fits a description, read the file at its location before you begin, and follow it.";
/// Characters reserved for the note about omitted skills.
const NOTE: usize = 150;

/// The skill list as included in the system prompt.
#[derive(Default)]
pub(super) struct SkillListing {
    pub(super) text: String,
    /// Names of the listed skills, and the length of the text of each in UTF-16 code units.
    pub(super) sizes: Vec<(String, usize)>,
}

/// Formats the skill list within the limits: without descriptions if it is too long, and then only the first skills. Empty if there are
/// none. `home` is written as `~`.
pub(super) fn listing<'a>(
    skills: impl IntoIterator<Item = &'a LoadedSkill>,
    limits: &SkillLimits,
    home: Option<&Path>,
) -> SkillListing {
    let skills: Vec<&LoadedSkill> = skills.into_iter().filter(|skill| skill.invocation.by_model).collect();
    let shown = &skills[..skills.len().min(limits.in_prompt)];
    if shown.is_empty() {
        return SkillListing::default();
    }
    let full = block(shown, home, true);
    if full.text.chars().count() <= limits.prompt_chars {
        return match shown.len() == skills.len() {
            true => full,
            false => with_note(full, skills.len(), false),
        };
    }
    let max = limits.prompt_chars.saturating_sub(NOTE);
    let fits = |n: &usize| block(&shown[..*n], home, false).text.chars().count() <= max;
    // Longer lists are longer texts, so the longest that fits is found by bisection.
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
        return SkillListing::default();
    }
    with_note(block(&shown[..fitting], home, false), skills.len(), true)
}

fn with_note(listing: SkillListing, n_skills: usize, is_compact: bool) -> SkillListing {
    let form = if is_compact { ", without descriptions" } else { "" };
    let n_shown = listing.sizes.len();
    let text = format!("Skills are left out: {n_shown} of {n_skills} are listed{form}.\n{}", listing.text);
    SkillListing { text, ..listing }
}

fn block(skills: &[&LoadedSkill], home: Option<&Path>, with_descriptions: bool) -> SkillListing {
    let mut sizes = Vec::new();
    let mut text = format!("{INTRO}\n\n<available_skills>\n");
    for skill in skills {
        let location = match home.and_then(|home| skill.path.strip_prefix(home).ok()) {
            Some(rest) => format!("~/{}", rest.display()),
            None => skill.path.display().to_string(),
        };
        let description = match with_descriptions {
            true => format!("    <description>{}</description>\n", escape_xml(&skill.description)),
            false => String::new(),
        };
        let part = format!(
            "<skill>\n    <name>{}</name>\n{description}    <location>{}</location>\n  </skill>",
            escape_xml(&skill.name),
            escape_xml(&location)
        );
        sizes.push((skill.name.clone(), utf16_len(&part)));
        // Writing to a string cannot fail.
        let _written = writeln!(text, "  {part}");
    }
    text.push_str("</available_skills>");
    SkillListing { text, sizes }
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
        let SkillListing { text, .. } = listing(&few, &SkillLimits::default(), home);
        assert!(text.ends_with(
            "<available_skills>\n  <skill>\n    <name>a</name>\n    <description>say &lt;hi&gt; &amp; &quot;bye&quot;</description>\n    \
             <location>~/skills/a/SKILL.md</location>\n  </skill>\n</available_skills>"
        ));
        let many: Vec<LoadedSkill> = (0..100).map(|n| skill(&format!("s{n}"), &"d".repeat(300))).collect();
        let SkillListing { text, .. } = listing(&many, &SkillLimits::default(), home);
        assert!(text.starts_with("Skills are left out: 100 of 100 are listed, without descriptions.\n"), "{text}");
        assert!(!text.contains("<description>") && text.chars().count() <= 18_000);
        let limits = SkillLimits { prompt_chars: 2_000, ..SkillLimits::default() };
        let SkillListing { text, .. } = listing(&many, &limits, home);
        assert!(text.chars().count() <= 2_000 && text.contains("s0/SKILL.md") && !text.contains("s99/"), "{text}");
        let limits = SkillLimits { in_prompt: 2, ..SkillLimits::default() };
        assert!(listing(&many, &limits, home).text.starts_with("Skills are left out: 2 of 100 are listed.\n"));
        assert_eq!(listing(&[], &limits, home).text, "");
    }
}

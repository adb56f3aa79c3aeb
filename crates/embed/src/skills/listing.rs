//! The skill list in the system prompt.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

use pinch_coding_agent::resources::skills::escape_xml;
use pinch_stdx::text::utf16_len;

use super::load::LoadedSkill;
use crate::config::skills::SkillLimits;

const INTRO: &str = "These skills describe how to do particular kinds of work.\n\
     When a task fits a description, read the file at its location before you begin, and follow it.";
/// Characters reserved for the note about what was omitted.
const NOTE: usize = 150;
/// Characters of a description that are worth listing.
const SHORTEST: usize = 20;

/// The skill list as included in the system prompt.
#[derive(Default)]
pub(super) struct SkillListing {
    pub(super) text: String,
    /// Names of the listed skills, and the length of the text of each in UTF-16 code units.
    pub(super) sizes: Vec<(String, usize)>,
}

/// Formats the skill list within the limits: with shortened descriptions if it is too long, then without, and then only the first skills.
/// Empty if there are none. `home` is written as `~`.
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
    let full = block(shown, home, usize::MAX);
    if full.text.chars().count() <= limits.prompt_chars {
        return match shown.len() == skills.len() {
            true => full,
            false => with_note(full, skills.len(), ""),
        };
    }
    let max = limits.prompt_chars.saturating_sub(NOTE);
    let fits = |n: usize, description: usize| block(&shown[..n], home, description).text.chars().count() <= max;
    let longest = shown.iter().map(|skill| skill.description.chars().count()).max().unwrap_or_default();
    if fits(shown.len(), SHORTEST) {
        let length = largest(longest, |length| fits(shown.len(), length));
        return with_note(block(shown, home, length), skills.len(), ", with shortened descriptions");
    }
    let fitting = largest(shown.len(), |n| fits(n, 0));
    if fitting == 0 {
        return SkillListing::default();
    }
    with_note(block(&shown[..fitting], home, 0), skills.len(), ", without descriptions")
}

/// Returns the largest number up to `max` that fits, if all smaller ones do; 0 if none does.
fn largest(max: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut fitting, mut too_many) = (0, max.saturating_add(1));
    while too_many - fitting > 1 {
        let middle = fitting.midpoint(too_many);
        if fits(middle) {
            fitting = middle;
        } else {
            too_many = middle;
        }
    }
    fitting
}

fn with_note(listing: SkillListing, n_skills: usize, form: &str) -> SkillListing {
    let n_shown = listing.sizes.len();
    let text = format!("The list of skills is too long: {n_shown} of {n_skills} are listed{form}.\n{}", listing.text);
    SkillListing { text, ..listing }
}

/// Formats skills with at most this many characters of each description.
fn block(skills: &[&LoadedSkill], home: Option<&Path>, max_description: usize) -> SkillListing {
    let mut sizes = Vec::new();
    let mut text = format!("{INTRO}\n\n<available_skills>\n");
    for skill in skills {
        let location = match home.and_then(|home| skill.path.strip_prefix(home).ok()) {
            Some(rest) => format!("~/{}", rest.display()),
            None => skill.path.display().to_string(),
        };
        let description = match max_description {
            0 => String::new(),
            max => format!("    <description>{}</description>\n", escape_xml(&beginning(&skill.description, max))),
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

/// Returns a text, or as much of its beginning as fits into `max` characters with an ellipsis.
fn beginning(text: &str, max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max) {
        Some(_) => Cow::Owned(text.chars().take(max.saturating_sub(1)).chain(['…']).collect()),
        None => Cow::Borrowed(text),
    }
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
            called_tool: None,
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
        let note = "The list of skills is too long: 100 of 100 are listed, with shortened descriptions.\n";
        assert!(text.starts_with(note) && text.contains("ddd…</description>"), "{text}");
        let length = text.chars().count();
        assert!((17_700..=18_000).contains(&length), "{length}");
        // One short description is listed whole.
        let mixed: Vec<LoadedSkill> = many.iter().cloned().chain([skill("z", "say hi")]).collect();
        assert!(listing(&mixed, &SkillLimits::default(), home).text.contains("<description>say hi</description>"));
        let limits = SkillLimits { prompt_chars: 9_500, ..SkillLimits::default() };
        let SkillListing { text, .. } = listing(&many, &limits, home);
        let note = "The list of skills is too long: 100 of 100 are listed, without descriptions.\n";
        assert!(text.starts_with(note) && !text.contains("<description>"), "{text}");
        let limits = SkillLimits { prompt_chars: 2_000, ..SkillLimits::default() };
        let SkillListing { text, .. } = listing(&many, &limits, home);
        assert!(text.chars().count() <= 2_000 && text.contains("s0/SKILL.md") && !text.contains("s99/"), "{text}");
        let limits = SkillLimits { in_prompt: 2, ..SkillLimits::default() };
        assert!(
            listing(&many, &limits, home).text.starts_with("The list of skills is too long: 2 of 100 are listed.\n")
        );
        assert_eq!(listing(&[], &limits, home).text, "");
    }
}

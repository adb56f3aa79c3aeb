//! The complete default prompt, and what changes it.

use std::path::Path;
use std::sync::Arc;

use pinch_agent_core::tool::ToolSet;
use pinch_coding_agent::machine::LocalMachine;
use pinch_coding_agent::prompt::{PromptParts, PromptSections, ToolPrompt};
use pinch_coding_agent::resources::context_files::ContextFile;
use pinch_coding_agent::resources::skills::Skill;
use pinch_coding_agent::tools::bash::Shell;
use pinch_coding_agent::tools::path::WorkingDirectory;
use pinch_coding_agent::tools::{ToolParts, all_tools};

fn tools(names: &[&str]) -> ToolSet {
    let shell = Shell { program: "/bin/sh".into(), prefix: None, env: Vec::new(), temp: "/tmp".into() };
    let all =
        all_tools(&ToolParts::new(Arc::new(LocalMachine), WorkingDirectory { cwd: "/w".into(), home: None }, shell));
    all.filter(|tool| names.contains(&tool.spec().name.as_str()))
}

fn skills() -> [Skill; 2] {
    let skill = |name: &str, hidden| Skill {
        name: name.into(),
        description: "does <that>".into(),
        path: format!("/s/{name}/SKILL.md").into(),
        hidden,
        ..Skill::default()
    };
    [skill("seen", false), skill("unseen", true)]
}

#[test]
fn the_whole_prompt() {
    let tools = tools(&["read", "bash", "edit", "write"]);
    let files = [ContextFile { path: "/w/AGENTS.md".into(), text: "Use tabs.".into() }];
    let skills = skills();
    let parts = PromptParts {
        addendum: Some("Mind the gap."),
        docs: "/usr/share/doc/pinch",
        context_files: &files,
        skills: &skills,
        ..PromptParts::new(&tools, Path::new("/w"))
    };
    let prompt = PromptSections::coding(&parts);
    insta::assert_snapshot!(prompt.whole());
    assert_eq!(PromptSections::coding(&parts), prompt, "equal parts give an equal prompt");
}

fn names(prompt: &PromptSections) -> Vec<&str> {
    prompt.sections().map(|(name, _)| name).collect()
}

#[test]
fn a_custom_prompt_replaces_four_sections() {
    let skills = skills();
    let tools = tools(&["read"]);
    let parts = PromptParts { custom: Some("Mine."), skills: &skills, ..PromptParts::new(&tools, Path::new("/w")) };
    let prompt = PromptSections::coding(&parts);
    assert_eq!(names(&prompt), ["preamble", "skills", "cwd"]);
    assert!(prompt.whole().starts_with("Mine.\n\n<skills>\n"));
}

#[test]
fn skills_are_listed_only_if_they_can_be_read() {
    let skills = skills();
    for (active, is_listed) in [(&["read"][..], true), (&["bash"], true), (&["write", "ls"], false), (&[], false)] {
        let tools = tools(active);
        let prompt =
            PromptSections::coding(&PromptParts { skills: &skills, ..PromptParts::new(&tools, Path::new("/w")) });
        assert_eq!(names(&prompt).contains(&"skills"), is_listed, "{active:?}");
    }
    let tools = tools(&["read"]);
    let hidden =
        PromptSections::coding(&PromptParts { skills: &skills[1..], ..PromptParts::new(&tools, Path::new("/w")) });
    assert!(!names(&hidden).contains(&"skills"));
}

fn section(tools: &ToolSet, notes: &[ToolPrompt], name: &str) -> String {
    let prompt = PromptSections::coding(&PromptParts { notes, ..PromptParts::new(tools, Path::new("/w")) });
    prompt.sections().find(|(section, _)| *section == name).unwrap().1.to_owned()
}

#[test]
fn tools_contribute_descriptions_and_guidelines() {
    let read = tools(&["read"]);
    let note = ToolPrompt {
        name: "read".into(),
        snippet: Some(" look\n into  it ".into()),
        guidelines: vec![" Twice. ".into(), "Twice.".into(), String::new()],
    };
    assert!(section(&read, std::slice::from_ref(&note), "tools").starts_with("<tools>\n- read: look into it\n\n"));
    let rules = section(&read, &[note], "rules");
    assert_eq!(rules, "<rules>\n- Twice.\n- Be brief.\n- Name files by their paths.\n</rules>");
    assert!(section(&ToolSet::new(), &[], "tools").starts_with("<tools>\n(none)\n\n"));
}

#[cfg(feature = "search")]
#[test]
fn exploration_rules_depend_on_the_available_tools() {
    let exploring = |names: &[&str]| section(&tools(names), &[], "rules").lines().nth(1).unwrap().to_owned();
    assert_eq!(exploring(&["bash"]), "- List folders and search files with bash: ls, rg, find.");
    let text = |tools: &str, are: &str, leave: &str| {
        format!(
            "- Look for files and text with {tools} rather than with bash: {are} fast and {leave} ignored files out."
        )
    };
    assert_eq!(exploring(&["bash", "grep"]), text("grep", "it is", "leaves"));
    assert_eq!(exploring(&["bash", "find", "ls"]), text("find and ls", "they are", "leave"));
    assert_eq!(exploring(&["bash", "grep", "find", "ls"]), text("grep, find and ls", "they are", "leave"));
    assert_eq!(exploring(&["grep"]), "- Be brief.");
}

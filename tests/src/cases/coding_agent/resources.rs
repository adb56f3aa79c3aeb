//! Kinds for resources and the system prompt.

use std::path::Path;

use pinch_coding_agent::agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSet, ToolSpec};
use pinch_coding_agent::prompt::{self, PromptParts, PromptSections, ToolPrompt};
use pinch_coding_agent::resources::context_files::ContextFile;
use pinch_coding_agent::resources::info::SourceInfo;
use pinch_coding_agent::resources::skills::{self, Intent, Skill};
use pinch_coding_agent::resources::{ResourceInputs, ResourceLoader};
use pinch_coding_agent::tools::CODING;
use pinch_llm::schema::Schema;
use pinch_testing::cases::compare::{contains, same};
use regex::Regex;
use serde_json::{Value, json};

use super::files;
use super::pure::texts;
use crate::cases::{Case, CaseOutcome};

/// Runs a case; `None` if it is of another kind.
pub(super) fn run(case: &Case<'_>) -> Option<CaseOutcome> {
    let input = &case.case["input"];
    let ours = &case.case["ours"];
    let wanted = if ours.is_null() { &case.case["expect"] } else { ours };
    let done = match case.kind {
        "skills" => load_skills(input, wanted),
        "context_files" => load_context(input, wanted),
        "skills_prompt" => fits(&wanted["value"], &with_gap(&skills::prompt_block(&given_skills(&input["skills"])))),
        "system_prompt" => fits(&wanted["value"], &whole_prompt(input)),
        "system_prompt_lists" => lists(input, &wanted["value"]),
        _ => return None,
    };
    Some(done.into())
}

/// Writes the files of a case to a directory that the case calls `$CWD`.
fn in_folder(input: &Value, look: impl FnOnce(&Path) -> Value) -> Result<Value, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let root = folder.path().canonicalize().map_err(|error| error.to_string())?;
    files::write(&root, &input["files"])?;
    let found = look(&root).to_string().replace(&*root.to_string_lossy(), "$CWD");
    serde_json::from_str(&found).map_err(|error| error.to_string())
}

fn load_skills(input: &Value, wanted: &Value) -> Result<(), String> {
    let got = in_folder(input, |root| {
        let mut problems = Vec::new();
        let mut found = Vec::new();
        for path in texts(&input["skillPaths"]) {
            let path = root.join(path);
            match skills::find_at(&path) {
                Ok(files) => found.extend(files.into_iter().map(|file| {
                    let meant = if path.is_file() { Intent::Certain } else { skills::meant(&file.path) };
                    (file, meant, SourceInfo::default())
                })),
                Err(problem) => problems.push(problem),
            }
        }
        let skills = skills::load(found, &mut problems);
        let skills: Vec<Value> = skills
            .iter()
            .map(|skill| {
                json!({
                    "name": skill.name, "description": skill.description, "filePath": skill.path.to_string_lossy(),
                    "baseDir": skill.base_dir.to_string_lossy(), "disableModelInvocation": skill.hidden,
                })
            })
            .collect();
        json!({"skills": skills, "diagnostics": problems.iter().map(|problem| problem.to_value()).collect::<Vec<_>>()})
    })?;
    contains(&wanted["skills"], &got["skills"])?;
    let mut expected = wanted["diagnostics"].clone();
    for (expected, got) in
        expected.as_array_mut().into_iter().flatten().zip(got["diagnostics"].as_array().into_iter().flatten())
    {
        // The wording of a YAML parser may differ; that of our own checks may not.
        if !is_own(&expected["message"]) && !is_own(&got["message"]) && got["message"] != "" {
            expected["message"] = got["message"].clone();
        }
    }
    same(&expected, &got["diagnostics"])
}

fn is_own(message: &Value) -> bool {
    let message = message.as_str().unwrap_or_default();
    ["name ", "description ", "skill path "].iter().any(|start| message.starts_with(start))
}

fn load_context(input: &Value, wanted: &Value) -> Result<(), String> {
    let text = |name: &str| input[name].as_str().unwrap_or_default().to_owned();
    let got = in_folder(input, |root| {
        let inputs = ResourceInputs::new(root.join(text("cwd")), root.join(text("agentDir")), None);
        let resources = ResourceLoader::load(inputs);
        let files = &resources.resources().context_files;
        files.iter().map(|file| json!({"path": file.path.to_string_lossy(), "content": file.text})).collect()
    })?;
    same(wanted, &got)
}

fn given_skills(given: &Value) -> Vec<Skill> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let skill = |one: &Value| Skill {
        name: text(&one["name"]),
        description: text(&one["description"]),
        path: text(&one["filePath"]).into(),
        hidden: one["disableModelInvocation"] == true,
        ..Skill::default()
    };
    given.as_array().into_iter().flatten().map(skill).collect()
}

/// Cases contain the block the way it is appended to a text.
fn with_gap(block: &str) -> String {
    if block.is_empty() { String::new() } else { format!("\n\n{block}") }
}

fn whole_prompt(input: &Value) -> String {
    let notes = notes(input);
    let file = |one: &Value| ContextFile {
        path: one["path"].as_str().unwrap_or_default().into(),
        text: one["content"].as_str().unwrap_or_default().to_owned(),
    };
    let context_files: Vec<ContextFile> = input["contextFiles"].as_array().into_iter().flatten().map(file).collect();
    let tools: ToolSet = notes.iter().map(|note| std::sync::Arc::new(NameOnlyTool::new(&note.name)) as _).collect();
    let cwd = Path::new(input["cwd"].as_str().unwrap_or_default());
    let skills = given_skills(&input["skills"]);
    let parts = PromptParts {
        custom: input["customPrompt"].as_str(),
        addendum: input["appendSystemPrompt"].as_str(),
        notes: &notes,
        context_files: &context_files,
        skills: &skills,
        ..PromptParts::new(&tools, cwd)
    };
    PromptSections::coding(&parts).whole()
}

/// The tools of a case with their descriptions; the case's guidelines belong to the last one.
fn notes(input: &Value) -> Vec<ToolPrompt> {
    let names = match input["selectedTools"].is_array() {
        true => texts(&input["selectedTools"]),
        false => CODING.map(str::to_owned).to_vec(),
    };
    let snippet = |name: &str| input["toolSnippets"][name].as_str().map(str::to_owned);
    let mut notes: Vec<ToolPrompt> = names
        .iter()
        .map(|name| ToolPrompt { name: name.clone(), snippet: snippet(name), guidelines: Vec::new() })
        .collect();
    let guidelines = texts(&input["promptGuidelines"]);
    if !guidelines.is_empty() {
        notes.push(ToolPrompt { name: "advice".to_owned(), snippet: None, guidelines });
    }
    notes
}

fn lists(input: &Value, wanted: &Value) -> Result<(), String> {
    let notes = notes(input);
    let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>().join("\n");
    let expected = |name: &str| texts(&wanted[name]).join("\n");
    fits(&expected("tools").into(), &lines(prompt::tool_lines(&notes)))?;
    fits(&expected("guidelines").into(), &lines(prompt::rule_lines(&notes)))
}

/// Whether a text is what a case expects; `{{NAME}}` matches our own wording.
fn fits(expected: &Value, got: &str) -> Result<(), String> {
    let expected = expected.as_str().unwrap_or_default();
    let mut pattern = String::from("^");
    let mut rest = expected;
    while let Some((before, inside)) = rest.split_once("{{") {
        let (name, behind) = inside.split_once("}}").ok_or("an open placeholder")?;
        pattern += &regex::escape(before);
        pattern += if name == "SKILLS_INTRO" { "(?s:.+?)" } else { "[^\n]+" };
        rest = behind;
    }
    pattern += &regex::escape(rest);
    pattern.push('$');
    let regex = Regex::new(&pattern).map_err(|error| error.to_string())?;
    if regex.is_match(got) { Ok(()) } else { Err(format!("expected {expected:?}, got {got:?}")) }
}

/// A tool of which only the name matters.
struct NameOnlyTool(ToolSpec);

impl NameOnlyTool {
    fn new(name: &str) -> Self {
        let schema = Schema::new(json!({"type": "object", "properties": {}}));
        Self(ToolSpec::new(name, "", schema))
    }
}

impl Tool for NameOnlyTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run<'a>(
        &'a self,
        _: JsonObject,
        _: &'a ToolCx<'a>,
    ) -> futures::future::BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Err(ToolError::new("it is only named")) })
    }
}

//! A user with many resources: skills, templates, models, and a project with instructions in every directory.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::transcript::TranscriptSetup;

const N_SKILLS: usize = 200;
const N_TEMPLATES: usize = 50;
const N_CONTEXT_FILES: usize = 40;
/// Size of models.json in bytes.
const MODELS_JSON: usize = 5_000_000;
/// Number of models per provider.
const MODELS_OF_PROVIDER: usize = 300;

/// Fills the user's agent directory, and moves the user to the innermost directory of a project.
pub(super) fn furnish(setup: &mut TranscriptSetup) -> anyhow::Result<()> {
    let agent = setup.folder().join("agent");
    let body = "Do this, then that, and look at what came of it before you go on.\n".repeat(120);
    for n in 0..N_SKILLS {
        let head = format!("---\nname: skill-{n}\ndescription: Use this for work of the kind {n} only.\n---\n\n");
        write(&agent.join(format!("skills/skill-{n}/SKILL.md")), &(head + &body))?;
    }
    for n in 0..N_TEMPLATES {
        let text = format!("---\ndescription: Template {n}\nargument-hint: FILE\n---\nLook at $1.\n{}", &body[..2_000]);
        write(&agent.join(format!("prompts/template-{n}.md")), &text)?;
    }
    write_models(&agent.join("models.json"))?;
    let mut folder = setup.folder().join("project");
    for n in 0..N_CONTEXT_FILES {
        // Short names, because the name of a session's directory contains all of them.
        folder.push(format!("f{n}"));
        write(&folder.join("AGENTS.md"), &format!("# Folder {n}\n\n{}", &body[..1_000]))?;
    }
    setup.work_in(folder);
    Ok(())
}

/// Adds providers before and after the existing ones until the document is large.
fn write_models(path: &Path) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(path)?;
    let known: Value = serde_json::from_str(&text)?;
    let provider = |n: usize| {
        let models: Vec<Value> = (0..MODELS_OF_PROVIDER).map(|m| model(n, m)).collect();
        let value = json!({
            "baseUrl": format!("https://models-{n}.example.com/v1"), "api": "openai-completions",
            "apiKey": format!("$MODELS_{n}_KEY"), "models": models,
        });
        (format!("provider-{n}"), value)
    };
    // Formatted the way people and their scripts do.
    let document = |n_providers: usize| {
        let mut providers: Map<String, Value> = (0..n_providers / 2).map(provider).collect();
        providers.extend(known["providers"].as_object().cloned().unwrap_or_default());
        providers.extend((n_providers / 2..n_providers).map(provider));
        serde_json::to_string_pretty(&json!({"providers": providers}))
    };
    let size = document(1)?.len();
    write(path, &document(MODELS_JSON.div_ceil(size))?)
}

fn model(provider: usize, n: usize) -> Value {
    json!({
        "id": format!("vendor-{provider}/model-{n}"), "name": format!("Model {n} of vendor {provider}"), "reasoning": n.is_multiple_of(2),
        "input": ["text", "image"], "cost": {"input": 0.5, "output": 1.5, "cacheRead": 0.05, "cacheWrite": 0.6},
        "contextWindow": 131_072, "maxTokens": 16_384, "compat": {"supportsDeveloperRole": false},
    })
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    Ok(std::fs::write(path, text)?)
}

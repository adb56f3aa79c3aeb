//! Resources besides the prompt: context files, prompts, skills, templates, project settings.

use serde_json::json;

use super::{ModeScenario, scenario};

pub(super) fn all() -> Vec<ModeScenario> {
    let skill =
        |name: &str, more: &str| format!("---\nname: {name}\ndescription: Knows {name}\n{more}---\nDo {name}.\n");
    vec![
        scenario(
            "context files",
            "--mode json -p x",
            json!({"files": {"AGENTS.md": "RULE\n", "sub/AGENTS.md": "no"}, "agentFiles": {"AGENTS.md": "GLOBAL\n"}}),
        ),
        scenario("a context file of claude", "--mode json -p x", json!({"files": {"CLAUDE.md": "CLAUDE RULE"}})),
        scenario(
            "a context file in the place of another",
            "--mode json -p x",
            json!({"files": {"AGENTS.md": "RULE", "AGENTS.override.md": "OTHER", "CLAUDE.md": "C"}}),
        ),
        scenario("no context files", "--mode json -nc -p x", json!({"files": {"AGENTS.md": "RULE"}})),
        scenario(
            "an own prompt",
            "--mode json --system-prompt 'Be brief.' -p x",
            json!({"files": {"AGENTS.md": "RULE"}}),
        ),
        scenario(
            "an own prompt from a file",
            "--mode json --system-prompt brief.txt -p x",
            json!({"files": {"brief.txt": "Be brief.\n"}}),
        ),
        scenario(
            "more for the prompt",
            "--mode json --append-system-prompt 'More one.' --append-system-prompt more.txt -p x",
            json!({"files": {"more.txt": "More two.\n"}}),
        ),
        scenario(
            "an own prompt and more",
            "--model c1 --system-prompt Brief. --append-system-prompt More. -p x",
            json!({}),
        ),
        scenario(
            "prompts of the user",
            "--mode json -p x",
            json!({"agentFiles": {"SYSTEM.md": "OWN SYSTEM\n", "APPEND_SYSTEM.md": "OWN MORE\n"}}),
        ),
        scenario(
            "prompts of a project that is not trusted",
            "--mode json -p x",
            json!({"files": {".pi/SYSTEM.md": "PROJECT"}}),
        ),
        scenario(
            "prompts of a project that is approved",
            "--mode json -a -p x",
            json!({"files": {".pi/SYSTEM.md": "PROJECT", ".pi/APPEND_SYSTEM.md": "MORE"}}),
        ),
        scenario(
            "prompts of a project by settings",
            "--mode json -p x",
            json!({"settings": {"defaultProjectTrust": "always"}, "files": {".pi/SYSTEM.md": "PROJECT"}}),
        ),
        scenario(
            "settings of a project",
            "--mode json -a -p x",
            json!({"files": {".pi/settings.json": "{\"defaultModel\": \"m2\", \"defaultThinkingLevel\": \"low\"}"}}),
        ),
        scenario("settings that are none", "-p x", json!({"agentFiles": {"settings.json": "{no json"}})),
        scenario("models that are none", "-p x", json!({"agentFiles": {"models.json": "{no json"}})),
        scenario(
            "skills",
            "--mode json -p x",
            json!({"agentFiles": {"skills/spell/SKILL.md": skill("spell", ""), "skills/quiet/SKILL.md": skill("quiet", "disable-model-invocation: true\n"), "skills/bad/SKILL.md": "---\nname: bad\n---\nNo description"}}),
        ),
        scenario(
            "skills of a project",
            "--mode json -a -p x",
            json!({"files": {".pi/skills/own/SKILL.md": skill("own", ""), ".agents/skills/agent/SKILL.md": skill("agent", "")}, "agentFiles": {"skills/own/SKILL.md": skill("own", "")}}),
        ),
        scenario(
            "a skill that is called",
            "--mode json -p '/skill:spell some words'",
            json!({"agentFiles": {"skills/spell/SKILL.md": skill("spell", "")}}),
        ),
        scenario("a skill that nobody has", "-p '/skill:nothing some words'", json!({})),
        scenario(
            "no skills",
            "--mode json -ns -p x",
            json!({"agentFiles": {"skills/spell/SKILL.md": skill("spell", "")}}),
        ),
        scenario(
            "a skill by its path",
            "--mode json -ns --skill more/SKILL.md -p x",
            json!({"files": {"more/SKILL.md": skill("more", "")}}),
        ),
        scenario(
            "skills without read",
            "--mode json -t ls -p x",
            json!({"agentFiles": {"skills/spell/SKILL.md": skill("spell", "")}}),
        ),
        scenario(
            "a template",
            "-p '/greet World \"and you\"'",
            json!({"agentFiles": {"prompts/greet.md": "---\ndescription: Greets\n---\nGreet $1 and $2, all: $@, ${@:2}, ${3:-nobody}\n"}}),
        ),
        scenario(
            "a template without a head",
            "-p /plain 'and more'",
            json!({"agentFiles": {"prompts/plain.md": "Say $ARGUMENTS plainly."}, "serverScript": [{"text": "1"}, {"text": "2"}]}),
        ),
        scenario("no templates", "-np -p '/greet World'", json!({"agentFiles": {"prompts/greet.md": "Greet $1"}})),
        scenario(
            "a template by its path",
            "-np --prompt-template more.md -p '/more World'",
            json!({"files": {"more.md": "More $1"}}),
        ),
        scenario("a template that nobody has", "-p '/nothing World'", json!({})),
        scenario(
            "extra headers and keys",
            "-p x",
            json!({"env": {"MYKEY": "v1"}, "modelsJson": {"providers": {"fake": {"baseUrl": "http://127.0.0.1:<port>/v1", "api": "openai-completions", "apiKey": "$MYKEY", "models": [{"id": "m1", "samplingParams": {"temperature": 0.2}}]}}}}),
        ),
        scenario(
            "no model at all",
            "-p x",
            json!({"modelsJson": {"providers": {}}, "settings": {"defaultProvider": null, "defaultModel": null}}),
        ),
        scenario("a model without a key", "--model openai/gpt-5.1 -p x", json!({})),
        scenario(
            "a key in auth.json",
            "--model c1 -p x",
            json!({"agentFiles": {"auth.json": "{\"claude\": {\"type\": \"api_key\", \"key\": \"stored\"}}"}}),
        ),
    ]
}

//! Reports the size of each part of a system prompt.

use pinch_agent_core::tool::ToolSet;
use pinch_coding_agent::prompt::PromptSections;
use pinch_stdx::text::utf16_len;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::bootstrap::{InjectedFile, is_near};
use super::sections::{DIRECTORY, PROJECT_CONTEXT, SKILLS, TOOLING};
use crate::config::prompt::{BootstrapLimits, TruncationWarning};

/// Sizes of a system prompt, in UTF-16 code units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptReport {
    /// When the prompt was built, in milliseconds since the epoch.
    pub made_at_ms: i64,
    /// Size of the whole prompt.
    pub chars: usize,
    /// SHA-256 hash of the whole prompt as it is sent, in hexadecimal.
    pub hash: String,
    /// Size of the workspace files in it.
    pub project_context_chars: usize,
    /// Size of the tool list.
    pub tool_list_chars: usize,
    /// Size of the directory of deferred tools; 0: there is none.
    pub tool_directory_chars: usize,
    /// Size of the skill list.
    pub skills_chars: usize,
    /// SHA-256 hash of the skill list, in hexadecimal; empty if there is none.
    pub skills_hash: String,
    /// Size of each skill in that list, by name.
    pub skills: Vec<(String, usize)>,
    /// Which runs of the agent are sandboxed: `off`, `non-main` or `all`.
    pub sandbox_mode: &'static str,
    /// Whether this run is sandboxed.
    pub is_sandboxed: bool,
    /// Limits of the files.
    pub limits: BootstrapLimits,
    /// Whether the prompt names shortened files.
    pub truncation_warning: TruncationWarning,
    /// Each file: its name, path, length, and how much of it is in the prompt.
    pub files: Vec<InjectedFile>,
    /// Size of each tool.
    pub tools: Vec<ToolSize>,
}

/// The sizes of a tool's declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolSize {
    /// Name of the tool.
    pub name: String,
    /// Size of its description.
    pub summary_chars: usize,
    /// Size of its schema as JSON.
    pub schema_chars: usize,
    /// Number of its arguments; `None` if the schema names none.
    pub n_properties: Option<usize>,
}

impl PromptReport {
    pub(crate) fn new(
        made_at_ms: i64,
        prompt: &PromptSections,
        tools: &ToolSet,
        (files, limits, truncation_warning): (&[InjectedFile], BootstrapLimits, TruncationWarning),
        (skills, listed): (&str, &[(String, usize)]),
        sandbox: (&'static str, bool),
    ) -> Self {
        // The host may have left them out.
        let has = |name: &str| prompt.sections().any(|(id, _)| id == name);
        let (skills, listed) = if has(SKILLS) { (skills, listed) } else { ("", &[][..]) };
        let files = if has(PROJECT_CONTEXT) { files } else { &[] };
        let chars = |name: &str| prompt.sections().find(|(id, _)| *id == name).map_or(0, |(_, text)| utf16_len(text));
        let whole = prompt.as_sent();
        Self {
            made_at_ms,
            chars: utf16_len(&whole),
            hash: hash_of(&whole),
            project_context_chars: chars(PROJECT_CONTEXT),
            tool_list_chars: chars(TOOLING),
            tool_directory_chars: chars(DIRECTORY),
            skills_chars: utf16_len(skills),
            skills_hash: if skills.is_empty() { String::new() } else { hash_of(skills) },
            skills: listed.to_vec(),
            sandbox_mode: sandbox.0,
            is_sandboxed: sandbox.1,
            limits,
            truncation_warning,
            files: files.to_vec(),
            tools: tools.iter().map(|tool| ToolSize::of(tool.spec())).collect(),
        }
    }

    /// Returns the JSON form without session, model and workspace, which the run adds.
    pub(crate) fn to_json(&self) -> Value {
        let files = self.files.iter().map(|file| {
            json!({
                "name": file.name,
                "path": file.path.display().to_string(),
                "missing": file.is_missing,
                "rawChars": file.raw_chars,
                "injectedChars": utf16_len(&file.text),
                "truncated": file.is_truncated,
            })
        });
        let tools = self.tools.iter().map(|tool| {
            json!({
                "name": tool.name,
                "summaryChars": tool.summary_chars,
                "schemaChars": tool.schema_chars,
                "propertiesCount": tool.n_properties,
            })
        });
        let skills = self.skills.iter().map(|(name, chars)| json!({"name": name, "blockChars": chars}));
        let mut report = json!({
            "source": "run",
            "generatedAt": self.made_at_ms,
            "bootstrapMaxChars": self.limits.file,
            "bootstrapTotalMaxChars": self.limits.total,
            "bootstrapTruncation": self.truncation(),
            "sandbox": {"mode": self.sandbox_mode, "sandboxed": self.is_sandboxed},
            "systemPrompt": {
                "chars": self.chars,
                "hash": self.hash,
                "projectContextChars": self.project_context_chars,
                "nonProjectContextChars": self.chars - self.project_context_chars,
            },
            "injectedWorkspaceFiles": files.collect::<Vec<_>>(),
            "skills": {"promptChars": self.skills_chars, "entries": skills.collect::<Vec<_>>()},
            "tools": {
                "listChars": self.tool_list_chars,
                "schemaChars": self.tools.iter().map(|tool| tool.schema_chars).sum::<usize>(),
                "entries": tools.collect::<Vec<_>>(),
            },
        });
        if !self.skills_hash.is_empty() {
            report["skills"]["hash"] = self.skills_hash.as_str().into();
        }
        if self.tool_directory_chars > 0 {
            report["tools"]["directoryChars"] = self.tool_directory_chars.into();
        }
        report
    }
}

impl PromptReport {
    fn truncation(&self) -> Value {
        let n_truncated = self.files.iter().filter(|file| file.is_truncated).count();
        let injected = self.files.iter().map(|file| utf16_len(&file.text)).sum();
        json!({
            "warningMode": self.truncation_warning.as_str(),
            "warningShown": n_truncated > 0 && self.truncation_warning != TruncationWarning::Off,
            "truncatedFiles": n_truncated,
            "nearLimitFiles": self.files.iter().filter(|file| file.is_near_limit).count(),
            "totalNearLimit": is_near(injected, self.limits.total),
        })
    }
}

fn hash_of(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl ToolSize {
    fn of(spec: &pinch_agent_core::tool::ToolSpec) -> Self {
        let schema = spec.parameters.raw();
        Self {
            name: spec.name.clone(),
            summary_chars: utf16_len(&spec.description),
            schema_chars: utf16_len(&schema.to_string()),
            n_properties: schema["properties"].as_object().map(serde_json::Map::len),
        }
    }
}

//! What a system prompt is made of.

use super::bootstrap::InjectedFile;
use super::runtime_line::RuntimeInfo;
use crate::replies::ReasoningLevel;

/// How much of the system prompt an agent gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromptMode {
    /// All sections.
    #[default]
    Full,
    /// Those that an agent needs that works for another one.
    Minimal,
    /// One line that says who it is.
    None,
}

impl PromptMode {
    /// The mode with this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "full" => Some(Self::Full),
            "minimal" => Some(Self::Minimal),
            "none" => Some(Self::None),
            _ => None,
        }
    }
}

/// How often an agent reacts to messages with emoji.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReactionLevel {
    /// Seldom.
    Minimal,
    /// Freely.
    Extensive,
}

impl ReactionLevel {
    /// The level with this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "minimal" => Some(Self::Minimal),
            "extensive" => Some(Self::Extensive),
            _ => None,
        }
    }
}

/// A tool as the system prompt lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolSummary {
    /// Its name, as it is registered.
    pub name: String,
    /// What it does; of well-known tools the prompt says it in its own words.
    pub summary: Option<String>,
}

impl ToolSummary {
    /// A tool of which only the name is known.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), summary: None }
    }
}

/// What an agent is told about the sandbox that its tools run in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxPrompt {
    /// The workspace as the sandbox sees it.
    pub workspace: Option<String>,
    /// What of the agent's workspace can be reached: `none`, `ro` or `rw`.
    pub access: Option<String>,
    /// Where the agent's workspace is mounted.
    pub mount: Option<String>,
    /// Whether the browser of the host may be controlled; `None`: there is none.
    pub host_browser: Option<bool>,
    /// The level at which commands may leave the sandbox; `None`: they may not.
    pub elevated: Option<String>,
    /// What confines the tools, e.g. `landlock`.
    pub backend: Option<String>,
}

/// What a system prompt is made of. The default is that of an agent about which nothing is known.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SystemPromptParams {
    /// The product that the agent is a part of; `None`: `OpenClaw`.
    pub product: Option<String>,
    /// How much is said.
    pub mode: PromptMode,
    /// The directory that tools work in.
    pub workspace_dir: String,
    /// Lines about the workspace.
    pub workspace_notes: Vec<String>,
    /// The tools; `None`: they are not known.
    pub tools: Option<Vec<ToolSummary>>,
    /// What is said about skills; blank: nothing.
    pub skills: String,
    /// Whether an answer names the memories that it is based on.
    pub cites_memories: bool,
    /// Lines about the aliases of models.
    pub model_aliases: Vec<String>,
    /// The user's time zone.
    pub time_zone: Option<String>,
    /// Where the documentation is.
    pub docs: Option<String>,
    /// The sandbox, if there is one.
    pub sandbox: Option<SandboxPrompt>,
    /// Phone numbers or ids of the owners.
    pub owners: Vec<String>,
    /// Lines about sending messages.
    pub message_hints: Vec<String>,
    /// What is said about voice messages.
    pub voice_hint: Option<String>,
    /// What the request adds.
    pub extra: Option<String>,
    /// How often the agent reacts to messages, and in which channel.
    pub reactions: Option<(ReactionLevel, String)>,
    /// Whether reasoning and answer are marked by tags.
    pub reasoning_tags: bool,
    /// The files of the workspace.
    pub files: Vec<InjectedFile>,
    /// What the agent is sent when it is woken up.
    pub heartbeat: Option<String>,
    /// Where it runs.
    pub runtime: RuntimeInfo,
    /// How hard the model thinks.
    pub thinking: String,
    /// How much of the reasoning the user sees.
    pub reasoning: ReasoningLevel,
}

impl SystemPromptParams {
    pub(super) fn product(&self) -> &str {
        self.product.as_deref().unwrap_or("OpenClaw")
    }

    /// The name by which a tool is registered.
    pub(super) fn tool(&self, name: &str) -> Option<&str> {
        let tools = self.tools.iter().flatten();
        tools.map(|tool| tool.name.as_str()).find(|tool| tool.eq_ignore_ascii_case(name))
    }
}

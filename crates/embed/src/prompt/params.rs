//! Parameters of a system prompt.

use super::bootstrap::InjectedFile;
use super::runtime_line::RuntimeInfo;
use crate::config::prompt::TruncationWarning;
use crate::replies::ReasoningLevel;

/// Which parts of the system prompt an agent gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromptMode {
    /// All sections.
    #[default]
    Full,
    /// The sections for an agent that works for another one.
    Minimal,
    /// A single line that says who it is.
    None,
}

impl PromptMode {
    /// Parses the name of a mode.
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
    /// Rarely.
    Minimal,
    /// Freely.
    Extensive,
}

impl ReactionLevel {
    /// Parses the name of a level.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "minimal" => Some(Self::Minimal),
            "extensive" => Some(Self::Extensive),
            _ => None,
        }
    }
}

/// A tool as listed in the system prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolSummary {
    /// Its registered name.
    pub name: String,
    /// What it does; for well-known tools, the prompt uses its own wording.
    pub summary: Option<String>,
}

impl ToolSummary {
    /// Creates an entry for a tool of which only the name is known.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), summary: None }
    }
}

/// Description of the sandbox for the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxPrompt {
    /// Path of the workspace inside the sandbox.
    pub workspace: Option<String>,
    /// Access to the agent's workspace: `none`, `ro` or `rw`.
    pub access: Option<String>,
    /// Mount point of the agent's workspace.
    pub mount: Option<String>,
    /// Whether the browser of the host may be controlled; `None`: there is none.
    pub host_browser: Option<bool>,
    /// Level at which commands may leave the sandbox; `None`: they may not.
    pub elevated: Option<String>,
    /// Sandbox backend, e.g. `landlock`.
    pub backend: Option<String>,
}

/// Parameters of a system prompt. The default is for an agent about which nothing is known.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SystemPromptParams {
    /// Product that the agent is part of; `None`: `OpenClaw`.
    pub product: Option<String>,
    /// Which sections to include.
    pub mode: PromptMode,
    /// Working directory of the tools.
    pub workspace_dir: String,
    /// Lines about the workspace.
    pub workspace_notes: Vec<String>,
    /// The tools; `None`: unknown.
    pub tools: Option<Vec<ToolSummary>>,
    /// Tools that are called through `tool_call`, except those of plugins and extensions; `None`: no tools are deferred.
    pub deferred_tools: Option<Vec<ToolSummary>>,
    /// Text about skills; blank: omitted.
    pub skills: String,
    /// Whether answers cite the memories they are based on.
    pub cites_memories: bool,
    /// Lines about model aliases.
    pub model_aliases: Vec<String>,
    /// The user's time zone.
    pub time_zone: Option<String>,
    /// The day on which the run began, there.
    pub today: Option<String>,
    /// Location of the documentation.
    pub docs: Option<String>,
    /// The sandbox, if there is one.
    pub sandbox: Option<SandboxPrompt>,
    /// Phone numbers or ids of the owners.
    pub owners: Vec<String>,
    /// Lines about sending messages.
    pub message_hints: Vec<String>,
    /// Text about voice messages.
    pub voice_hint: Option<String>,
    /// Additional text from the request.
    pub extra: Option<String>,
    /// How often the agent reacts to messages, and the channel.
    pub reactions: Option<(ReactionLevel, String)>,
    /// Whether reasoning and answer are marked by tags.
    pub reasoning_tags: bool,
    /// Workspace files.
    pub files: Vec<InjectedFile>,
    /// Whether to name the files that were shortened.
    pub truncation_warning: TruncationWarning,
    /// Prompt that wakes the agent up.
    pub heartbeat: Option<String>,
    /// Runtime information.
    pub runtime: RuntimeInfo,
    /// Thinking level of the model.
    pub thinking: String,
    /// How reasoning is shown to the user.
    pub reasoning: ReasoningLevel,
}

impl SystemPromptParams {
    pub(super) fn product(&self) -> &str {
        self.product.as_deref().unwrap_or("OpenClaw")
    }

    /// Returns the registered name of a tool, which may be deferred.
    pub(super) fn tool(&self, name: &str) -> Option<&str> {
        let tools = self.tools.iter().flatten().chain(self.deferred_tools.iter().flatten());
        tools.map(|tool| tool.name.as_str()).find(|tool| tool.eq_ignore_ascii_case(name))
    }
}

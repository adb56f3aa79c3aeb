//! The parts that a session is created from.

use std::sync::Arc;

use pinch_agent_core::hooks::{Hooks, NoHooks};
use pinch_agent_core::tool::ToolSet;
use pinch_llm::model::Model;
use pinch_llm::provider::Provider;
use pinch_llm::request::CallOptions;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::copy_on_write::CopyOnWrite;
use pinch_stdx::host::Host;

use super::models::FindModel;
use super::tooling::{ArrangeTools, PromptFor};
use crate::auth::RequestAuth;
use crate::compaction::{CompactionRules, NoSummaryHooks, SummaryHooks};
use crate::extension::models::KnownModels;
use crate::extension::{Extensions, SessionReason};
use crate::images::{ImageIntake, ImageProcessing};
use crate::prompt::PromptSections as SystemPrompt;
use crate::recovery::RecoveryPlan;
use crate::resources::skills::Skill;
use crate::resources::templates::Templates;
use crate::resources::{Commands, ExtraPaths};
use crate::session_log::SessionLog;
use crate::tools::facts::SessionFacts;

/// Default number of window tokens to reserve when a branch is summarised.
const BRANCH_RESERVE_TOKENS: u64 = 16_384;

/// Loads the resources that extensions have found, replacing earlier ones. Returns all slash commands.
pub type LoadFound = Arc<dyn Fn(&[ExtraPaths]) -> Commands + Send + Sync>;

/// The parts of a session. [`SessionParts::new`] sets defaults for all but four.
#[non_exhaustive]
pub struct SessionParts {
    /// Clock, ids and environment.
    pub host: Host,
    /// The log, new or opened.
    pub log: SessionLog,
    /// The model.
    pub model: Arc<Model>,
    /// The thinking level, clamped to those the model supports. `None`: as in the log, or else `off`.
    pub thinking: Option<ThinkingLevel>,
    /// The default level after switching from a model without thinking.
    pub usual_thinking: Option<ThinkingLevel>,
    /// Finds the model of a branch to move to; `None` keeps the current model.
    pub find_model: Option<FindModel>,
    /// The models that extensions can look up; `None` shows them the session's own.
    pub models: Option<Arc<dyn KnownModels>>,
    /// Whether resources of the project are used, for extensions.
    pub is_project_trusted: bool,
    /// The provider, which handles credentials itself.
    pub provider: Arc<dyn Provider>,
    /// Checked before a prompt is accepted, so that a missing key is an error rather than a failed answer. `None` skips the check.
    pub auth: Option<Arc<dyn RequestAuth>>,
    /// The active tools.
    pub tools: ToolSet,
    /// The facts shown to tools, kept up to date by the session.
    pub facts: SessionFacts,
    /// All tools that can be enabled, including those above; `None` if there are no others. If set, a resumed conversation gets its
    /// previous tools back.
    pub all_tools: Option<ToolSet>,
    /// Names of the only tools that may exist, including those of extensions; `None` allows all.
    pub allowed_tools: Option<Vec<String>>,
    /// Arranges the active tools, including those of extensions, before the model is offered them; `None` offers them as they are.
    pub arrange_tools: Option<ArrangeTools>,
    /// The system prompt.
    pub system: SystemPrompt,
    /// Rebuilds the system prompt for the offered tools when extensions change them; `None` keeps it.
    pub prompt_for: Option<PromptFor>,
    /// Extensions, used by this session only.
    pub extensions: Extensions,
    /// Why the session starts, reported to extensions.
    pub reason: SessionReason,
    /// Prompt templates, used as `/name` in a prompt.
    pub templates: Templates,
    /// Skills, used as `/skill:name` in a prompt.
    pub skills: Vec<Skill>,
    /// Loads the skills, prompts and themes found by extensions; `None` only reports them, with
    /// [`AgentSession::discovered`](super::AgentSession::discovered).
    pub load_found: Option<LoadFound>,
    /// The owner's hooks.
    pub hooks: Arc<dyn Hooks>,
    /// Whether to replace all images with a note instead of sending them to the model.
    pub block_images: bool,
    /// How to process images that enter the conversation. If tools share it, their images are not decoded again.
    pub images: ImageIntake,
    /// When the conversation is compacted.
    pub compaction: CompactionRules,
    /// The owner's hooks for compactions and moves in the tree.
    pub summaries: Arc<dyn SummaryHooks>,
    /// Tokens of the window reserved when a branch is summarised.
    pub branch_reserve_tokens: u64,
    /// What to retry.
    pub plan: RecoveryPlan,
    /// Options of every request.
    pub options: CopyOnWrite<CallOptions>,
}

impl SessionParts {
    /// Creates the parts of a session without tools, prompt and hooks, with pi's defaults.
    pub fn new(host: Host, log: SessionLog, model: Arc<Model>, provider: Arc<dyn Provider>) -> Self {
        Self {
            host,
            log,
            model,
            thinking: None,
            usual_thinking: None,
            find_model: None,
            models: None,
            is_project_trusted: true,
            provider,
            auth: None,
            tools: ToolSet::new(),
            facts: SessionFacts::default(),
            all_tools: None,
            allowed_tools: None,
            arrange_tools: None,
            system: SystemPrompt::default(),
            prompt_for: None,
            extensions: Extensions::default(),
            reason: SessionReason::Startup,
            templates: Templates::default(),
            skills: Vec::new(),
            load_found: None,
            hooks: Arc::new(NoHooks),
            block_images: false,
            images: ImageIntake::new(ImageProcessing::Untouched),
            compaction: CompactionRules::default(),
            summaries: Arc::new(NoSummaryHooks),
            branch_reserve_tokens: BRANCH_RESERVE_TOKENS,
            plan: RecoveryPlan::default(),
            options: CopyOnWrite::default(),
        }
    }
}

//! What a session is made of.

use std::sync::Arc;

use pinch_agent_core::hooks::{Hooks, NoHooks};
use pinch_agent_core::tool::ToolSet;
use pinch_llm::model::Model;
use pinch_llm::provider::Provider;
use pinch_llm::request::CallOptions;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::host::Host;

use super::models::FindModel;
use super::tooling::PromptFor;
use crate::auth::RequestAuth;
use crate::compaction::{CompactionRules, NoSummaryHooks, SummaryHooks};
use crate::extension::{Extensions, SessionReason};
use crate::images::{Intake, Treatment};
use crate::prompt::PromptSections as SystemPrompt;
use crate::recovery::RecoveryPlan;
use crate::resources::skills::Skill;
use crate::resources::templates::Templates;
use crate::resources::{Commands, ExtraPaths};
use crate::session_log::SessionLog;
use crate::tools::facts::SessionFacts;

/// Default for the tokens of the window to keep free when a branch is summarized.
const BRANCH_RESERVE_TOKENS: u64 = 16_384;

/// Loads the resources that extensions have found, replacing earlier ones; returns all slash commands.
pub type LoadFound = Arc<dyn Fn(&[ExtraPaths]) -> Commands + Send + Sync>;

/// What a session is made of. [`SessionParts::new`] has the usual values of all but four.
#[non_exhaustive]
pub struct SessionParts {
    /// Clock, ids and environment.
    pub host: Host,
    /// The log, new or opened.
    pub log: SessionLog,
    /// The model.
    pub model: Arc<Model>,
    /// The thinking level, clamped to what the model supports. `None`: as the log says, else `off`.
    pub thinking: Option<ThinkingLevel>,
    /// The level for models that can think after one that cannot.
    pub usual_thinking: Option<ThinkingLevel>,
    /// Finds the model of a branch that is gone to; `None`: the model stays.
    pub find_model: Option<FindModel>,
    /// The provider, which adds credentials itself.
    pub provider: Arc<dyn Provider>,
    /// Checked before a prompt is accepted, so that a missing key is an error and not an answer. `None`: no check.
    pub auth: Option<Arc<dyn RequestAuth>>,
    /// The active tools.
    pub tools: ToolSet,
    /// What the tools know of the session; the session keeps it as it is now.
    pub facts: SessionFacts,
    /// All tools that can be enabled, including those above; `None`: there are no others. Where it is given, a conversation that is
    /// taken up gets back the tools it had.
    pub all_tools: Option<ToolSet>,
    /// Names of the only tools that may exist, those of extensions too; `None`: all.
    pub allowed_tools: Option<Vec<String>>,
    /// The system prompt.
    pub system: SystemPrompt,
    /// Builds the system prompt again when extensions change the tools; `None`: it does not change.
    pub prompt_for: Option<PromptFor>,
    /// Extensions. They serve this session only.
    pub extensions: Extensions,
    /// Why the session starts, for extensions.
    pub reason: SessionReason,
    /// Prompt templates, used as `/name` in a prompt.
    pub templates: Templates,
    /// Skills, used as `/skill:name` in a prompt.
    pub skills: Vec<Skill>,
    /// Loads the skills, prompts and themes that extensions know of; `None`: they are only reported, by [`AgentSession::discovered`](super::AgentSession::discovered).
    pub load_found: Option<LoadFound>,
    /// Hooks of the owner.
    pub hooks: Arc<dyn Hooks>,
    /// No image is sent to the model; a note replaces each.
    pub block_images: bool,
    /// What is done to images that enter the conversation, whichever way they come. What the tools bring is not decoded again when they share
    /// it.
    pub images: Intake,
    /// When the conversation is compacted.
    pub compaction: CompactionRules,
    /// Hooks of the owner into compactions and moves in the tree.
    pub summaries: Arc<dyn SummaryHooks>,
    /// Tokens of the window that stay free when a branch is summarised.
    pub branch_reserve_tokens: u64,
    /// What is retried.
    pub plan: RecoveryPlan,
    /// Settings of every request.
    pub options: CallOptions,
}

impl SessionParts {
    /// A session without tools, prompt and hooks, with pi's settings.
    pub fn new(host: Host, log: SessionLog, model: Arc<Model>, provider: Arc<dyn Provider>) -> Self {
        Self {
            host,
            log,
            model,
            thinking: None,
            usual_thinking: None,
            find_model: None,
            provider,
            auth: None,
            tools: ToolSet::new(),
            facts: SessionFacts::default(),
            all_tools: None,
            allowed_tools: None,
            system: SystemPrompt::default(),
            prompt_for: None,
            extensions: Extensions::default(),
            reason: SessionReason::Startup,
            templates: Templates::default(),
            skills: Vec::new(),
            load_found: None,
            hooks: Arc::new(NoHooks),
            block_images: false,
            images: Intake::new(Treatment::Untouched),
            compaction: CompactionRules::default(),
            summaries: Arc::new(NoSummaryHooks),
            branch_reserve_tokens: BRANCH_RESERVE_TOKENS,
            plan: RecoveryPlan::default(),
            options: CallOptions::default(),
        }
    }
}

//! The system prompt of a run.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pinch_agent_core::tool::ToolSet;
use pinch_coding_agent::prompt::PromptSections;
use pinch_coding_agent::session::PromptFor;
use pinch_llm::model::Model;
use pinch_sandbox::scope::SandboxMode;
use pinch_stdx::host::Host;
use pinch_stdx::text::TextPool;

use super::request::RunRequest;
use crate::config::prompt::BootstrapLimits;
use crate::plugin::RunHooks;
use crate::prompt::{PromptReport, SystemPromptParams, ToolSummary};

/// Input for a system prompt.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PromptInputs<'a> {
    /// The request, with its caller completed.
    pub request: &'a RunRequest,
    /// The active tools.
    pub tools: &'a ToolSet,
    /// Working directory of the tools.
    pub workspace: &'a Path,
    /// The model that the prompt is for.
    pub model: &'a Model,
    params: &'a SystemPromptParams,
}

impl PromptInputs<'_> {
    /// Returns the parameters of the default system prompt. A host can change them and build its prompt with
    /// [`SystemPromptParams::sections`].
    pub fn params(&self) -> SystemPromptParams {
        let mut params = self.params.clone();
        let summary = |spec: &pinch_agent_core::tool::ToolSpec| {
            let text = Some(spec.description.clone()).filter(|text| !text.trim().is_empty());
            ToolSummary { name: spec.name.clone(), summary: text }
        };
        params.tools = Some(self.tools.iter().map(|tool| summary(tool.spec())).collect());
        let mut gateways = self.tools.gateways().peekable();
        params.deferred_tools = gateways
            .peek()
            .is_some()
            .then(|| gateways.flat_map(|gateway| gateway.listed().iter()).map(|tool| summary(tool.spec())).collect());
        params.reasoning_tags |= self.model.dialect.replies.final_tags;
        params.runtime.model = Some(format!("{}/{}", self.model.provider, self.model.id));
        params
    }

    /// Returns the default system prompt.
    pub fn default_prompt(&self) -> PromptSections {
        self.params().sections()
    }
}

/// Builds the system prompt of a run.
pub(crate) type PromptMaker = Arc<dyn Fn(&PromptInputs<'_>) -> PromptSections + Send + Sync>;

/// Facts for the system prompt that are known before a model is chosen.
pub(crate) struct PromptFacts {
    pub(crate) request: Arc<RunRequest>,
    pub(crate) workspace: PathBuf,
    pub(crate) params: SystemPromptParams,
    pub(crate) limits: BootstrapLimits,
    /// Which runs of the agent are sandboxed.
    pub(crate) sandbox_mode: SandboxMode,
    /// Skills listed in the prompt, and the size of each.
    pub(crate) listed: Vec<(String, usize)>,
    /// The complete prompt, if the request contains one.
    pub(crate) whole: Option<PromptSections>,
    /// Prompt function registered by the host.
    pub(crate) make: Option<PromptMaker>,
    pub(crate) hooks: RunHooks,
    pub(crate) texts: Arc<TextPool>,
    pub(crate) host: Host,
}

/// Builds the system prompt of a run: once per model, and again whenever the tools change.
#[derive(Clone)]
pub struct RunPrompt {
    facts: Arc<PromptFacts>,
    last: Arc<Mutex<Option<LastPrompt>>>,
}

/// The most recent prompt, for the report.
struct LastPrompt {
    prompt: PromptSections,
    tools: ToolSet,
    made_at_ms: i64,
}

impl RunPrompt {
    pub(crate) fn new(facts: PromptFacts) -> Self {
        Self { facts: Arc::new(facts), last: Arc::default() }
    }

    /// Returns the prompt function for a model. It is called with the active tools, and again when they change.
    pub fn for_model(&self, model: &Arc<Model>) -> PromptFor {
        let (this, model) = (self.clone(), Arc::clone(model));
        Arc::new(move |tools| this.make(tools, &model))
    }

    /// Returns whether a model is asked for its answer inside final tags. A prompt from the request asks for them only if the request
    /// says so.
    pub(crate) fn asks_for_final_tags(&self, model: &Model) -> bool {
        let PromptFacts { params, whole, .. } = &*self.facts;
        params.reasoning_tags || (whole.is_none() && model.dialect.replies.final_tags)
    }

    fn make(&self, tools: &ToolSet, model: &Model) -> PromptSections {
        let PromptFacts { request, workspace, params, whole, make, hooks, texts, host, .. } = &*self.facts;
        let inputs = PromptInputs { request, tools, workspace, model, params };
        let mut prompt = hooks.system(match (whole, make) {
            (Some(whole), _) => whole.clone(),
            (None, Some(make)) => make(&inputs),
            (None, None) => inputs.default_prompt(),
        });
        prompt.share(|text| texts.shared(text));
        let last = LastPrompt { prompt: prompt.clone(), tools: tools.clone(), made_at_ms: host.now_ms() };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
        prompt
    }

    /// Returns the sizes of the most recent prompt; `None` if none was built.
    pub(crate) fn report(&self) -> Option<PromptReport> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let LastPrompt { prompt, tools, made_at_ms } = last.as_ref()?;
        let PromptFacts { params, limits, listed, sandbox_mode, .. } = &*self.facts;
        let skills = (params.skills.as_str(), listed.as_slice());
        let sandbox = (sandbox_mode.as_str(), params.sandbox.is_some());
        let files = (params.files.as_slice(), *limits, params.truncation_warning);
        Some(PromptReport::new(*made_at_ms, prompt, tools, files, skills, sandbox))
    }
}

impl fmt::Debug for RunPrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunPrompt").field("params", &self.facts.params).finish_non_exhaustive()
    }
}

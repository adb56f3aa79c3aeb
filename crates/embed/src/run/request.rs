//! What one run is asked to do.

use std::path::PathBuf;
use std::time::Duration;

use pinch_llm::message::Image;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;

use crate::profiles::ProfileId;
pub use crate::profiles::choice::{ProfileChoice, ProfileSource};
use crate::replies::ReasoningLevel;
use crate::replies::blocks::BlockBreak;
use crate::replies::chunk::Chunking;
use crate::replies::tool_notes::Verbose;

/// One prompt with everything that belongs to it. Built with [`RunRequest::new`] and the methods named like the fields.
///
/// ```
/// use pinch_embed::run::RunRequest;
///
/// let request = RunRequest::new("s1", "/tmp/s1.jsonl", "/tmp", "hello").model("anthropic", "claude-opus-4-6");
/// assert_eq!(request.run_id, "s1");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunRequest {
    /// Names the conversation; any text but an empty one. Ids that start with `probe-` log no failures.
    pub session_id: String,
    /// Routing bucket: also the key of the lane. Without it the session id stands in.
    pub session_key: Option<String>,
    /// The agent, in place of the one the key names.
    pub agent_id: Option<String>,
    /// The transcript.
    pub session_file: PathBuf,
    /// Where tools work.
    pub workspace_dir: PathBuf,
    /// What the user says.
    pub prompt: String,
    /// Images behind the prompt.
    pub images: Vec<Image>,
    /// The provider; without it the configured one.
    pub provider: Option<String>,
    /// The model; without it the configured one.
    pub model: Option<String>,
    /// The credentials to use, or to begin with.
    pub auth_profile: Option<ProfileChoice>,
    /// How hard the model thinks.
    pub think_level: Option<ThinkingLevel>,
    /// How much of the tools the user sees.
    pub verbose_level: Verbose,
    /// How much of the thinking the user sees.
    pub reasoning_level: ReasoningLevel,
    /// Wall clock of the whole run, from the grant of the lanes on, with all attempts, repairs and waits; `None` = no limit.
    pub timeout: Option<Duration>,
    /// Correlates all events; the session id unless given.
    pub run_id: String,
    /// Name of the global lane; without it `main`.
    pub lane: Option<String>,
    /// A further section of the system prompt.
    pub extra_system_prompt: Option<String>,
    /// When and in which pieces replies are handed out while the run goes on; `None` = only with the result.
    pub block_replies: Option<BlockReplies>,
    /// The model gets no tools.
    pub disable_tools: bool,
    /// Parameters of the model for this run alone.
    pub stream_params: StreamParams,
    /// Limits of the whole run.
    pub budget: Budget,
    /// Stops the run.
    pub cancel: Cancel,
    /// Lets one attempt be made though all profiles cool down.
    pub allow_cooldown_probe: bool,
}

/// When and in which pieces replies are handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockReplies {
    /// What ends a piece.
    pub break_at: BlockBreak,
    /// Sizes of the pieces; `None` = whole blocks.
    pub chunking: Option<Chunking>,
}

/// Parameters of the model for one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamParams {
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Tokens of an answer.
    pub max_tokens: Option<u64>,
}

/// Limits of a whole run, checked between attempts. Passing one ends the run with [`RunErrorKind::Budget`](crate::run::RunErrorKind::Budget).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// Attempts at most.
    pub attempts: Option<u32>,
    /// Tokens at most, of all calls together.
    pub tokens: Option<u64>,
    /// US dollars at most.
    pub cost_usd: Option<f64>,
    /// Wall clock at most.
    pub deadline: Option<Duration>,
}

impl RunRequest {
    /// A request with everything that has no default. The run takes the session's name as its own until [`Self::run_id`] gives another.
    pub fn new(
        session_id: impl Into<String>,
        session_file: impl Into<PathBuf>,
        workspace_dir: impl Into<PathBuf>,
        prompt: impl Into<String>,
    ) -> Self {
        let session_id = session_id.into();
        Self {
            run_id: session_id.clone(),
            session_id,
            session_key: None,
            agent_id: None,
            session_file: session_file.into(),
            workspace_dir: workspace_dir.into(),
            prompt: prompt.into(),
            images: Vec::new(),
            provider: None,
            model: None,
            auth_profile: None,
            think_level: None,
            verbose_level: Verbose::default(),
            reasoning_level: ReasoningLevel::default(),
            timeout: Some(Duration::from_secs(600)),
            lane: None,
            extra_system_prompt: None,
            block_replies: None,
            disable_tools: false,
            stream_params: StreamParams::default(),
            budget: Budget::default(),
            cancel: Cancel::new(),
            allow_cooldown_probe: false,
        }
    }

    /// Sets the routing bucket.
    #[must_use]
    pub fn session_key(mut self, key: impl Into<String>) -> Self {
        self.session_key = Some(key.into());
        self
    }

    /// Sets the agent.
    #[must_use]
    pub fn agent_id(mut self, id: impl Into<String>) -> Self {
        self.agent_id = Some(id.into());
        self
    }

    /// Sets the images.
    #[must_use]
    pub fn images(mut self, images: Vec<Image>) -> Self {
        self.images = images;
        self
    }

    /// Sets provider and model.
    #[must_use]
    pub fn model(mut self, provider: impl Into<String>, model: impl Into<String>) -> Self {
        self.provider = Some(provider.into());
        self.model = Some(model.into());
        self
    }

    /// Sets the credentials to use (`User`) or to begin with (`Auto`).
    #[must_use]
    pub fn auth_profile(mut self, id: impl Into<ProfileId>, source: ProfileSource) -> Self {
        self.auth_profile = Some(ProfileChoice { id: id.into(), source });
        self
    }

    /// Sets how hard the model thinks.
    #[must_use]
    pub fn think_level(mut self, level: ThinkingLevel) -> Self {
        self.think_level = Some(level);
        self
    }

    /// Sets how much of the tools the user sees.
    #[must_use]
    pub fn verbose_level(mut self, level: Verbose) -> Self {
        self.verbose_level = level;
        self
    }

    /// Sets how much of the thinking the user sees.
    #[must_use]
    pub fn reasoning_level(mut self, level: ReasoningLevel) -> Self {
        self.reasoning_level = level;
        self
    }

    /// Sets the wall clock of the whole run; `None` = no limit.
    #[must_use]
    pub fn timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the name that correlates all events.
    #[must_use]
    pub fn run_id(mut self, id: impl Into<String>) -> Self {
        self.run_id = id.into();
        self
    }

    /// Sets the global lane.
    #[must_use]
    pub fn lane(mut self, lane: impl Into<String>) -> Self {
        self.lane = Some(lane.into());
        self
    }

    /// Adds a section to the system prompt.
    #[must_use]
    pub fn extra_system_prompt(mut self, text: impl Into<String>) -> Self {
        self.extra_system_prompt = Some(text.into());
        self
    }

    /// Sets when and in which pieces replies are handed out.
    #[must_use]
    pub fn block_replies(mut self, replies: BlockReplies) -> Self {
        self.block_replies = Some(replies);
        self
    }

    /// Gives the model no tools.
    #[must_use]
    pub fn without_tools(mut self) -> Self {
        self.disable_tools = true;
        self
    }

    /// Sets parameters of the model.
    #[must_use]
    pub fn stream_params(mut self, params: StreamParams) -> Self {
        self.stream_params = params;
        self
    }

    /// Sets the limits of the whole run.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets what stops the run.
    #[must_use]
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Lets one attempt be made though all profiles cool down.
    #[must_use]
    pub fn allow_cooldown_probe(mut self) -> Self {
        self.allow_cooldown_probe = true;
        self
    }

    /// Whether failures of this run are expected and not logged.
    pub fn is_probe(&self) -> bool {
        self.session_id.starts_with("probe-")
    }
}

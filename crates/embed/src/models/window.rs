//! The context window of a run, and whether it is large enough to work in.

/// The window when nobody knows it.
pub const DEFAULT_WINDOW: u64 = 200_000;

/// No run is made below this.
pub const MIN_WINDOW: u64 = 16_000;

/// Below this a run is made with a warning.
pub const WARN_WINDOW: u64 = 32_000;

/// A context window and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Tokens.
    pub tokens: u64,
    /// Who says so.
    pub source: WindowSource,
}

/// Who says how large a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowSource {
    /// `models.providers`.
    ModelsConfig,
    /// The model's own record.
    Model,
    /// `agents.defaults.contextTokens`.
    AgentContextTokens,
    /// Nobody.
    Default,
}

impl WindowSource {
    /// The word used in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ModelsConfig => "modelsConfig",
            Self::Model => "model",
            Self::AgentContextTokens => "agentContextTokens",
            Self::Default => "default",
        }
    }
}

impl Window {
    /// The window of a run. Zero counts as unknown; a smaller `cap` wins.
    pub fn resolve(configured: Option<u64>, model: Option<u64>, cap: Option<u64>) -> Self {
        let known = |tokens: Option<u64>, source| tokens.filter(|n| *n > 0).map(|tokens| Self { tokens, source });
        let window = known(configured, WindowSource::ModelsConfig)
            .or_else(|| known(model, WindowSource::Model))
            .unwrap_or(Self { tokens: DEFAULT_WINDOW, source: WindowSource::Default });
        known(cap, WindowSource::AgentContextTokens).filter(|cap| cap.tokens < window.tokens).unwrap_or(window)
    }

    /// Whether the user should be warned.
    pub fn is_small(&self) -> bool {
        self.tokens > 0 && self.tokens < WARN_WINDOW
    }

    /// Whether it is too small for any run.
    pub fn is_too_small(&self) -> bool {
        self.tokens > 0 && self.tokens < MIN_WINDOW
    }
}

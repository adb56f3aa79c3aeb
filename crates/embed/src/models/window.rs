//! The context window of a run, and whether it is large enough.

/// Window of a model whose window is unknown, in tokens.
pub const DEFAULT_WINDOW: u64 = 200_000;

/// Runs with a smaller window are refused, in tokens.
pub const MIN_WINDOW: u64 = 16_000;

/// A warning is logged for a smaller window, in tokens.
pub const WARN_WINDOW: u64 = 32_000;

/// A context window and the source of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Tokens.
    pub tokens: u64,
    /// The source of the size.
    pub source: WindowSource,
}

/// The source of a window's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowSource {
    /// `models.providers`.
    ModelsConfig,
    /// The model's entry in the catalog.
    Model,
    /// `agents.defaults.contextTokens`.
    AgentContextTokens,
    /// None: a default is used.
    #[default]
    Default,
}

impl WindowSource {
    /// Returns the identifier used in events.
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
    /// Determines the window of a run. Zero counts as unknown; a smaller `cap` takes precedence.
    pub fn resolve(configured: Option<u64>, model: Option<u64>, cap: Option<u64>) -> Self {
        let known = |tokens: Option<u64>, source| tokens.filter(|n| *n > 0).map(|tokens| Self { tokens, source });
        let window = known(configured, WindowSource::ModelsConfig)
            .or_else(|| known(model, WindowSource::Model))
            .unwrap_or(Self { tokens: DEFAULT_WINDOW, source: WindowSource::Default });
        known(cap, WindowSource::AgentContextTokens).filter(|cap| cap.tokens < window.tokens).unwrap_or(window)
    }

    /// Returns whether the user should be warned.
    pub fn is_small(&self) -> bool {
        self.tokens > 0 && self.tokens < WARN_WINDOW
    }

    /// Returns whether it is too small to run at all.
    pub fn is_too_small(&self) -> bool {
        self.tokens > 0 && self.tokens < MIN_WINDOW
    }
}

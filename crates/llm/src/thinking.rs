//! Thinking levels of models.

use std::fmt;

/// How much a model is asked to think. Ordered from lowest to highest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThinkingLevel {
    /// No thinking.
    #[default]
    Off,
    /// The least thinking.
    Minimal,
    /// Little thinking.
    Low,
    /// Moderate thinking.
    Medium,
    /// Much thinking.
    High,
    /// Very much thinking; only for models that map it.
    XHigh,
    /// Maximum thinking; only for models that map it.
    Max,
}

impl ThinkingLevel {
    /// All levels from lowest to highest.
    pub const ALL: [Self; 7] = [Self::Off, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::XHigh, Self::Max];

    /// Returns the word used in JSON and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// Parses the word; returns `None` for an unknown one.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == word)
    }
}

impl fmt::Display for ThinkingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

//! How freely commands run, and when a person is asked.

use std::str::FromStr;

/// Which commands may run. The order is from the strictest to the freest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExecSecurity {
    /// None.
    #[default]
    Deny,
    /// Those on the allow list, and harmless ones.
    Allowlist,
    /// All.
    Full,
}

/// When a person is asked. The order is from never to always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExecAsk {
    /// Never: what is not allowed is denied.
    Off,
    /// When the allow list does not cover a command.
    #[default]
    OnMiss,
    /// For every command.
    Always,
}

/// A word that names no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown mode {word:?}; expected one of {expected}")]
pub struct UnknownMode {
    /// The word.
    pub word: String,
    /// The words that are known.
    pub expected: &'static str,
}

impl FromStr for ExecSecurity {
    type Err = UnknownMode;

    fn from_str(word: &str) -> Result<Self, UnknownMode> {
        Ok(match word.trim().to_ascii_lowercase().as_str() {
            "deny" => Self::Deny,
            "allowlist" => Self::Allowlist,
            "full" => Self::Full,
            _ => return Err(UnknownMode { word: word.to_owned(), expected: "deny, allowlist, full" }),
        })
    }
}

impl FromStr for ExecAsk {
    type Err = UnknownMode;

    fn from_str(word: &str) -> Result<Self, UnknownMode> {
        Ok(match word.trim().to_ascii_lowercase().as_str() {
            "off" => Self::Off,
            "on-miss" => Self::OnMiss,
            "always" => Self::Always,
            _ => return Err(UnknownMode { word: word.to_owned(), expected: "off, on-miss, always" }),
        })
    }
}

impl ExecSecurity {
    /// The word in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allowlist => "allowlist",
            Self::Full => "full",
        }
    }

    /// The stricter of two modes.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        self.min(other)
    }
}

impl ExecAsk {
    /// The word in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::OnMiss => "on-miss",
            Self::Always => "always",
        }
    }

    /// The mode of the two that asks more often.
    #[must_use]
    pub fn more_demanding(self, other: Self) -> Self {
        self.max(other)
    }
}

/// `tools.exec.mode`: both modes in one word.
pub fn combined_mode(word: &str) -> Result<(ExecSecurity, ExecAsk), UnknownMode> {
    Ok(match word.trim().to_ascii_lowercase().as_str() {
        "deny" => (ExecSecurity::Deny, ExecAsk::Off),
        "allowlist" => (ExecSecurity::Allowlist, ExecAsk::Off),
        "ask" => (ExecSecurity::Allowlist, ExecAsk::OnMiss),
        "full" => (ExecSecurity::Full, ExecAsk::Off),
        _ => return Err(UnknownMode { word: word.to_owned(), expected: "deny, allowlist, ask, full" }),
    })
}

/// Whether a person has to be asked about a command.
pub fn requires_approval(ask: ExecAsk, security: ExecSecurity, is_understood: bool, is_satisfied: bool) -> bool {
    match ask {
        ExecAsk::Always => true,
        ExecAsk::OnMiss => security == ExecSecurity::Allowlist && !(is_understood && is_satisfied),
        ExecAsk::Off => false,
    }
}

//! How freely commands run, and when a person is asked.

use std::str::FromStr;

use serde_json::Value;

use crate::policy::PermissionMode;

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

/// Why the modes of a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModeError {
    /// Both ways of setting them are used.
    #[error("tools.exec.mode replaces tools.exec.security and tools.exec.ask; remove either")]
    Mixed,
    /// A word is not known.
    #[error("tools.exec.{key}: {error}")]
    Unknown {
        /// The key.
        key: &'static str,
        /// Which word it is.
        error: UnknownMode,
    },
}

/// Reads `tools.exec`: `mode`, or `security` and `ask`. Without any of them the allow list holds, and a person is asked on a miss.
///
/// # Errors
/// When both ways are used, or a word is not known.
pub fn configured_modes(exec: &Value) -> Result<(ExecSecurity, ExecAsk), ModeError> {
    let word = |key: &'static str| match &exec[key] {
        Value::Null => Ok(None),
        Value::String(word) => Ok(Some(word.trim().to_ascii_lowercase())),
        other => {
            let error = UnknownMode { word: other.to_string(), expected: "a word" };
            Err(ModeError::Unknown { key, error })
        }
    };
    let (mode, security, ask) = (word("mode")?, word("security")?, word("ask")?);
    let Some(mode) = mode else {
        let unknown = |key| move |error| ModeError::Unknown { key, error };
        let security =
            security.map_or(Ok(ExecSecurity::Allowlist), |word| word.parse().map_err(unknown("security")))?;
        let ask = ask.map_or(Ok(ExecAsk::OnMiss), |word| word.parse().map_err(unknown("ask")))?;
        return Ok((security, ask));
    };
    if security.is_some() || ask.is_some() {
        return Err(ModeError::Mixed);
    }
    Ok(match mode.as_str() {
        "deny" => (ExecSecurity::Deny, ExecAsk::Off),
        "allowlist" => (ExecSecurity::Allowlist, ExecAsk::Off),
        // Without a reviewer a person decides.
        "ask" | "auto" => (ExecSecurity::Allowlist, ExecAsk::OnMiss),
        "full" => (ExecSecurity::Full, ExecAsk::Off),
        _ => {
            let error = UnknownMode { word: mode, expected: "deny, allowlist, ask, auto, full" };
            return Err(ModeError::Unknown { key: "mode", error });
        }
    })
}

/// What holds for commands in a session with a mode; `configured`: what the configuration says, if anything. A mode loosens nothing that is
/// configured.
pub fn modes_of_session(
    mode: Option<PermissionMode>,
    configured: Option<(ExecSecurity, ExecAsk)>,
) -> (ExecSecurity, ExecAsk) {
    let usual = (ExecSecurity::Allowlist, ExecAsk::OnMiss);
    match (mode, configured) {
        (Some(PermissionMode::ReadOnly), _) => (ExecSecurity::Deny, ExecAsk::Off),
        (Some(PermissionMode::Guarded | PermissionMode::Workspace), Some((ExecSecurity::Full, ask))) => {
            (ExecSecurity::Allowlist, ask.more_demanding(ExecAsk::OnMiss))
        }
        (Some(PermissionMode::Full), None) => (ExecSecurity::Full, ExecAsk::Off),
        (_, configured) => configured.unwrap_or(usual),
    }
}

/// Whether a person has to be asked about a command.
pub fn requires_approval(ask: ExecAsk, security: ExecSecurity, is_understood: bool, is_satisfied: bool) -> bool {
    match ask {
        ExecAsk::Always => true,
        ExecAsk::OnMiss => security == ExecSecurity::Allowlist && !(is_understood && is_satisfied),
        ExecAsk::Off => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_mode_of_a_session_loosens_nothing_that_is_configured() {
        use PermissionMode::{Full, Guarded, ReadOnly, Workspace};
        let full = (ExecSecurity::Full, ExecAsk::Off);
        let list = (ExecSecurity::Allowlist, ExecAsk::Off);
        let ask = (ExecSecurity::Allowlist, ExecAsk::OnMiss);
        let deny = (ExecSecurity::Deny, ExecAsk::Off);
        for (mode, configured, expect) in [
            (None, None, ask),
            (None, Some(full), full),
            (Some(ReadOnly), Some(full), deny),
            (Some(Guarded), None, ask),
            (Some(Guarded), Some(full), ask),
            (Some(Guarded), Some(list), list),
            (Some(Workspace), Some(full), ask),
            (Some(Workspace), Some(deny), deny),
            (Some(Full), None, full),
            (Some(Full), Some(ask), ask),
            (Some(Full), Some(deny), deny),
        ] {
            assert_eq!(modes_of_session(mode, configured), expect, "{mode:?} {configured:?}");
        }
    }

    #[test]
    fn one_way_of_setting_the_modes_is_used() {
        let read = |exec: Value| configured_modes(&exec).map_err(|error| error.to_string());
        assert_eq!(read(json!({})), Ok((ExecSecurity::Allowlist, ExecAsk::OnMiss)));
        assert_eq!(read(json!({"mode": "Full"})), Ok((ExecSecurity::Full, ExecAsk::Off)));
        assert_eq!(read(json!({"security": "deny"})), Ok((ExecSecurity::Deny, ExecAsk::OnMiss)));
        let mixed = "tools.exec.mode replaces tools.exec.security and tools.exec.ask; remove either";
        assert_eq!(read(json!({"mode": "full", "ask": "off"})), Err(mixed.to_owned()));
        let unknown = "tools.exec.security: unknown mode \"most\"; expected one of deny, allowlist, full";
        assert_eq!(read(json!({"security": "most"})), Err(unknown.to_owned()));
        assert!(read(json!({"ask": 1})).is_err());
    }
}

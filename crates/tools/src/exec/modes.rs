//! Modes that control which commands run and when to ask a person.

use std::str::FromStr;

use serde_json::Value;

use crate::policy::PermissionMode;

/// Which commands may run, ordered from strictest to most permissive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExecSecurity {
    /// None.
    #[default]
    Deny,
    /// Those on the allow list, and safe ones.
    Allowlist,
    /// All.
    Full,
}

/// When to ask a person, ordered from never to always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExecAsk {
    /// Never: commands that are not allowed are denied.
    Off,
    /// If the allow list does not cover a command.
    #[default]
    OnMiss,
    /// For every command.
    Always,
}

/// An unknown mode name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown mode {word:?}; expected one of {expected}")]
pub struct UnknownMode {
    /// The unknown name.
    pub word: String,
    /// The known names.
    pub expected: &'static str,
}

/// Returns the names known for a configuration key.
fn expected(key: &str) -> &'static str {
    match key {
        "security" => "deny, allowlist, full",
        "ask" => "off, on-miss, always",
        _ => "deny, allowlist, ask, auto, full",
    }
}

impl FromStr for ExecSecurity {
    type Err = UnknownMode;

    fn from_str(word: &str) -> Result<Self, UnknownMode> {
        Ok(match word.trim().to_ascii_lowercase().as_str() {
            "deny" => Self::Deny,
            "allowlist" => Self::Allowlist,
            "full" => Self::Full,
            _ => return Err(UnknownMode { word: word.to_owned(), expected: expected("security") }),
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
            _ => return Err(UnknownMode { word: word.to_owned(), expected: expected("ask") }),
        })
    }
}

impl ExecSecurity {
    /// Returns the name used in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allowlist => "allowlist",
            Self::Full => "full",
        }
    }

    /// Returns the stricter of two modes.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        self.min(other)
    }
}

impl ExecAsk {
    /// Returns the name used in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::OnMiss => "on-miss",
            Self::Always => "always",
        }
    }

    /// Returns the mode that asks more often.
    #[must_use]
    pub fn more_demanding(self, other: Self) -> Self {
        self.max(other)
    }
}

/// Why the modes in a configuration are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModeError {
    /// Both ways of setting them are used.
    #[error("tools.exec.mode replaces tools.exec.security and tools.exec.ask; set one or the other")]
    Mixed,
    /// A mode is not a text.
    #[error("tools.exec.{key}: {value} is not a text; expected one of {expected}")]
    NoText {
        /// The configuration key.
        key: &'static str,
        /// The value as JSON.
        value: String,
        /// The known names.
        expected: &'static str,
    },
    /// A mode name is unknown.
    #[error("tools.exec.{key}: {error}")]
    Unknown {
        /// The configuration key.
        key: &'static str,
        /// The unknown name.
        error: UnknownMode,
    },
}

/// Reads `tools.exec`: either `mode`, or `security` and `ask`. Without any of them, the allow list applies and a person is asked on a miss.
///
/// # Errors
/// Fails if both ways are used, or a name is unknown.
pub fn configured_modes(exec: &Value) -> Result<(ExecSecurity, ExecAsk), ModeError> {
    let word = |key: &'static str| match &exec[key] {
        Value::Null => Ok(None),
        Value::String(word) => Ok(Some(word.trim().to_ascii_lowercase())),
        other => Err(ModeError::NoText { key, value: other.to_string(), expected: expected(key) }),
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
        // Without a reviewer, a person decides.
        "ask" | "auto" => (ExecSecurity::Allowlist, ExecAsk::OnMiss),
        "full" => (ExecSecurity::Full, ExecAsk::Off),
        _ => {
            let error = UnknownMode { word: mode, expected: expected("mode") };
            return Err(ModeError::Unknown { key: "mode", error });
        }
    })
}

/// Returns the modes for a session with a permission mode; `configured` holds the modes from the configuration, if any. A permission mode
/// never loosens the configuration.
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

/// Returns whether a person must approve a command.
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
    fn a_session_mode_never_loosens_the_configuration() {
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
    fn modes_cannot_be_set_in_both_ways() {
        let read = |exec: Value| configured_modes(&exec).map_err(|error| error.to_string());
        assert_eq!(read(json!({})), Ok((ExecSecurity::Allowlist, ExecAsk::OnMiss)));
        assert_eq!(read(json!({"mode": "Full"})), Ok((ExecSecurity::Full, ExecAsk::Off)));
        assert_eq!(read(json!({"security": "deny"})), Ok((ExecSecurity::Deny, ExecAsk::OnMiss)));
        let mixed = "tools.exec.mode replaces tools.exec.security and tools.exec.ask; set one or the other";
        assert_eq!(read(json!({"mode": "full", "ask": "off"})), Err(mixed.to_owned()));
        let number = "tools.exec.security: 5 is not a text; expected one of deny, allowlist, full";
        assert_eq!(read(json!({"security": 5})).unwrap_err().to_string(), number);
        let unknown = "tools.exec.security: unknown mode \"most\"; expected one of deny, allowlist, full";
        assert_eq!(read(json!({"security": "most"})), Err(unknown.to_owned()));
        assert!(read(json!({"ask": 1})).is_err());
    }
}

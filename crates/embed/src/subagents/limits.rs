//! What a host sets for one run of a session, as far as it limits the session's sub-agents, and the runs in which they report.

use std::path::PathBuf;

use pinch_tools::exec::modes::{ExecAsk, ExecSecurity};
use pinch_tools::policy::PermissionMode;
use pinch_tools::process::ConfiguredHost;
use serde::{Deserialize, Serialize};

use crate::run::RunRequest;

/// The limits, and the directories of the run. A word that is not known stands for the strictest one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RequesterLimits {
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_dir: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_dir: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_mode: Option<String>,
    requires_sandbox: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    exec_host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exec_security: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exec_ask: Option<String>,
    disable_message_tool: bool,
}

impl RequesterLimits {
    /// Returns the limits of a request.
    pub(crate) fn of(request: &RunRequest) -> Self {
        let exec = &request.exec_overrides;
        Self {
            workspace_dir: request.workspace_dir.clone(),
            agent_dir: request.agent_dir.clone(),
            permission_mode: request.permission_mode.map(|mode| mode.name().to_owned()),
            requires_sandbox: request.requires_sandbox,
            exec_host: exec.host.map(|host| word_of(host).to_owned()),
            exec_security: exec.security.map(|security| security.name().to_owned()),
            exec_ask: exec.ask.map(|ask| ask.name().to_owned()),
            disable_message_tool: request.disable_message_tool,
        }
    }

    /// Limits another request. `is_same_agent`: whether it is for the same agent; another one has directories of its own.
    pub(crate) fn apply(&self, request: &mut RunRequest, is_same_agent: bool) {
        if is_same_agent {
            request.workspace_dir.clone_from(&self.workspace_dir);
            request.agent_dir.clone_from(&self.agent_dir);
        }
        if let Some(mode) = self.permission_mode() {
            request.permission_mode = Some(request.permission_mode.map_or(mode, |own| own.stricter(mode)));
        }
        request.requires_sandbox |= self.requires_sandbox;
        request.disable_message_tool |= self.disable_message_tool;
        let exec = &mut request.exec_overrides;
        exec.host = self.exec_host.as_deref().map(|word| match word {
            "auto" => ConfiguredHost::Auto,
            "gateway" => ConfiguredHost::Gateway,
            _ => ConfiguredHost::Sandbox,
        });
        exec.security = self.exec_security.as_deref().map(|word| word.parse().unwrap_or(ExecSecurity::Deny));
        exec.ask = self.exec_ask.as_deref().map(|word| word.parse().unwrap_or(ExecAsk::Always));
    }

    /// Returns the upper limit for permissions.
    pub(crate) fn permission_mode(&self) -> Option<PermissionMode> {
        self.permission_mode.as_deref().map(|name| PermissionMode::parse(name).unwrap_or(PermissionMode::ReadOnly))
    }
}

fn word_of(host: ConfiguredHost) -> &'static str {
    match host {
        ConfiguredHost::Auto => "auto",
        ConfiguredHost::Sandbox => "sandbox",
        ConfiguredHost::Gateway => "gateway",
    }
}

#[cfg(test)]
mod tests {
    use pinch_coding_agent::store::SessionRef;

    use super::*;

    fn request() -> RunRequest {
        RunRequest::new("s1", SessionRef::Path("/tmp/s1.jsonl".into()), "hello")
    }

    #[test]
    fn limits_are_stored_and_never_loosen_a_request() {
        let mut strict = request().permission_mode(PermissionMode::Guarded).workspace_dir("/w").without_message_tool();
        strict.exec_overrides.security = Some(ExecSecurity::Allowlist);
        strict.exec_overrides.host = Some(ConfiguredHost::Gateway);
        strict.requires_sandbox = true;
        let limits: RequesterLimits =
            serde_json::from_value(serde_json::to_value(RequesterLimits::of(&strict)).unwrap()).unwrap();
        let mut other = request();
        limits.apply(&mut other, true);
        assert_eq!((other.permission_mode, other.requires_sandbox), (Some(PermissionMode::Guarded), true));
        assert_eq!((other.exec_overrides, other.workspace_dir), (strict.exec_overrides, strict.workspace_dir));
        assert!(other.disable_message_tool);
        let mut stricter = request().permission_mode(PermissionMode::ReadOnly);
        limits.apply(&mut stricter, false);
        assert_eq!((stricter.permission_mode, stricter.workspace_dir), (Some(PermissionMode::ReadOnly), None));
    }

    #[test]
    fn unknown_words_are_the_strictest() {
        let words =
            serde_json::json!({"permissionMode": "wild", "execSecurity": "some", "execAsk": "x", "execHost": "moon"});
        let limits: RequesterLimits = serde_json::from_value(words).unwrap();
        let mut limited = request();
        limits.apply(&mut limited, true);
        let exec = limited.exec_overrides;
        assert_eq!(limited.permission_mode, Some(PermissionMode::ReadOnly));
        let expect = (Some(ConfiguredHost::Sandbox), Some(ExecSecurity::Deny), Some(ExecAsk::Always));
        assert_eq!((exec.host, exec.security, exec.ask), expect);
    }
}

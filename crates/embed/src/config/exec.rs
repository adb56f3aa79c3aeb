//! `tools.exec`: which commands may run, and how.

use std::path::PathBuf;
use std::time::Duration;

use pinch_coding_agent::document::Problem;
use pinch_tools::exec::modes::{ExecAsk, ExecSecurity, ModeError, configured_modes};
use pinch_tools::process::{ConfiguredHost, ExitNotices};
use serde_json::{Map, Value};

use super::node::Node;

/// Command settings, for all agents or for one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecConfig {
    /// Where commands run (`host`); `None`: in the run's sandbox, if it has one.
    pub host: Option<ConfiguredHost>,
    /// `mode`, `security` and `ask`, unparsed: an invalid value must not be ignored.
    modes: Map<String, Value>,
    /// Time limit of commands (`timeoutSeconds`); zero: none; `None`: 30 minutes.
    pub timeout: Option<Duration>,
    /// How long finished commands are kept (`cleanupMs`); `None`: 30 minutes.
    pub keep: Option<Duration>,
    /// Whether scripts can run without an approval, rather than only programs, pipes and `&&`, `||` and `;` (`scripts`); `None`: yes.
    pub scripts: Option<bool>,
    /// Whether code on an interpreter's command line always needs an approval (`strictInlineEval`); `None`: no.
    pub strict_inline_eval: Option<bool>,
    /// Time after which a call moves its command to the background (`backgroundMs`); `None`: ten seconds.
    pub yield_after: Option<Duration>,
    /// Whether the session learns about the end of its background commands (`notifyOnExit`); `None`: yes.
    pub notify_on_exit: Option<bool>,
    /// Whether that includes successes without output (`notifyOnExitEmptySuccess`); `None`: no.
    pub notify_on_silence: Option<bool>,
    /// Directories prepended to `PATH` (`pathPrepend`).
    pub path_prepend: Option<Vec<String>>,
    /// Host variables passed to commands in addition to the usual ones (`passEnv`).
    pub pass_env: Option<Vec<String>>,
    /// Programs that need no approval as long as they only read stdin (`safeBins`); `None`: OpenClaw's list.
    pub safe_bins: Option<Vec<String>>,
    /// Directories that may contain safe programs, in addition to `/bin` and `/usr/bin` (`safeBinTrustedDirs`).
    pub safe_bin_dirs: Option<Vec<PathBuf>>,
    /// Whether patches may only change files in the workspace (`applyPatch.workspaceOnly`); `None`: yes.
    pub patch_workspace_only: Option<bool>,
    /// Which models may apply patches.
    pub patches: PatchModels,
}

/// Which models are offered `apply_patch`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchModels {
    /// Whether any is (`applyPatch.enabled`); `None`: yes.
    pub enabled: Option<bool>,
    /// Models, with or without their provider, that are (`applyPatch.allowModels`); `None` or empty: all.
    pub allow: Option<Vec<String>>,
}

impl PatchModels {
    fn over(self, all: &Self) -> Self {
        Self { enabled: self.enabled.or(all.enabled), allow: self.allow.or_else(|| all.allow.clone()) }
    }

    /// Returns the setting that keeps patches from a model.
    pub(crate) fn denied_by(&self, provider: &str, model: &str) -> Option<&'static str> {
        if self.enabled == Some(false) {
            return Some("tools.exec.applyPatch.enabled");
        }
        let allow = self.allow.as_ref().filter(|allow| !allow.is_empty())?;
        let names = [model.to_lowercase(), format!("{provider}/{model}").to_lowercase()];
        let is_allowed = allow.iter().any(|entry| names.contains(&entry.trim().to_lowercase()));
        (!is_allowed).then_some("tools.exec.applyPatch.allowModels")
    }
}

/// Settings of one run that replace the configured ones (`execOverrides`). `None` keeps the configured value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecOverrides {
    /// Where commands run.
    pub host: Option<ConfiguredHost>,
    /// Which commands may run.
    pub security: Option<ExecSecurity>,
    /// When a person is asked.
    pub ask: Option<ExecAsk>,
}

/// Keys that decide which commands may run.
const MODE_KEYS: [&str; 3] = ["mode", "security", "ask"];

impl ExecConfig {
    pub(super) fn read(exec: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        let modes = MODE_KEYS.into_iter().filter_map(|key| Some((key.to_owned(), exec.get(key).value()?.clone())));
        let modes = modes.collect();
        let seconds = exec.get("timeoutSeconds").seconds(problems);
        Self {
            host: exec.get("host").value().and_then(Value::as_str).and_then(|word| match word.trim() {
                "auto" => Some(ConfiguredHost::Auto),
                "sandbox" => Some(ConfiguredHost::Sandbox),
                "gateway" => Some(ConfiguredHost::Gateway),
                _ => None,
            }),
            modes,
            timeout: seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            keep: exec.get("cleanupMs").count(problems).map(Duration::from_millis),
            scripts: exec.get("scripts").flag(problems),
            strict_inline_eval: exec.get("strictInlineEval").flag(problems),
            yield_after: exec.get("backgroundMs").count(problems).map(Duration::from_millis),
            notify_on_exit: exec.get("notifyOnExit").flag(problems),
            notify_on_silence: exec.get("notifyOnExitEmptySuccess").flag(problems),
            path_prepend: exec.get("pathPrepend").texts(problems),
            pass_env: exec.get("passEnv").texts(problems),
            safe_bins: exec.get("safeBins").texts(problems),
            safe_bin_dirs: exec
                .get("safeBinTrustedDirs")
                .texts(problems)
                .map(|dirs| dirs.into_iter().map(PathBuf::from).collect()),
            patch_workspace_only: exec.get("applyPatch").get("workspaceOnly").flag(problems),
            patches: PatchModels {
                enabled: exec.get("applyPatch").get("enabled").flag(problems),
                allow: exec.get("applyPatch").get("allowModels").texts(problems),
            },
        }
    }

    /// Returns these settings, with those for all agents filling the gaps. The two notations for modes (`mode`, or `security` and `ask`)
    /// replace each other.
    #[must_use]
    pub fn over(&self, all: &Self) -> Self {
        let mut modes = all.modes.clone();
        if self.modes.contains_key("mode") {
            modes.clear();
        } else if !self.modes.is_empty() {
            modes.remove("mode");
        }
        modes.extend(self.modes.clone());
        let own = self.clone();
        Self {
            host: own.host.or(all.host),
            modes,
            timeout: own.timeout.or(all.timeout),
            keep: own.keep.or(all.keep),
            scripts: own.scripts.or(all.scripts),
            strict_inline_eval: own.strict_inline_eval.or(all.strict_inline_eval),
            yield_after: own.yield_after.or(all.yield_after),
            notify_on_exit: own.notify_on_exit.or(all.notify_on_exit),
            notify_on_silence: own.notify_on_silence.or(all.notify_on_silence),
            path_prepend: own.path_prepend.or_else(|| all.path_prepend.clone()),
            pass_env: own.pass_env.or_else(|| all.pass_env.clone()),
            safe_bins: own.safe_bins.or_else(|| all.safe_bins.clone()),
            safe_bin_dirs: own.safe_bin_dirs.or_else(|| all.safe_bin_dirs.clone()),
            patch_workspace_only: own.patch_workspace_only.or(all.patch_workspace_only),
            patches: own.patches.over(&all.patches),
        }
    }

    /// Returns these settings with those of one run.
    ///
    /// # Errors
    /// If the run only changes one of `security` and `ask`, and the configured modes are invalid.
    pub fn overridden(mut self, by: &ExecOverrides) -> Result<Self, ModeError> {
        self.host = by.host.or(self.host);
        if by.security.is_some() || by.ask.is_some() {
            let known = match (by.security, by.ask) {
                (Some(_), Some(_)) => None,
                _ => self.configured_modes()?,
            };
            let security = by.security.or(known.map(|(security, _)| security)).map(ExecSecurity::name);
            let ask = by.ask.or(known.map(|(_, ask)| ask)).map(ExecAsk::name);
            let modes = [("security", security), ("ask", ask)];
            self.modes = modes.into_iter().filter_map(|(key, name)| Some((key.to_owned(), name?.into()))).collect();
        }
        Ok(self)
    }

    /// Returns which ends of background commands are reported.
    pub fn exit_notices(&self) -> ExitNotices {
        match (self.notify_on_exit.unwrap_or(true), self.notify_on_silence.unwrap_or(false)) {
            (false, _) => ExitNotices::Off,
            (true, false) => ExitNotices::Usual,
            (true, true) => ExitNotices::All,
        }
    }

    /// Returns whether these settings restrict which commands run without asking.
    pub fn has_rules(&self) -> bool {
        self.sets_modes() || self.strict_inline_eval == Some(true)
    }

    /// Returns the keys that have no effect unless `exec` is offered.
    pub(crate) fn keys_of_exec(&self) -> impl Iterator<Item = &'static str> {
        let keys = [
            ("host", self.host.is_some()),
            ("timeoutSeconds", self.timeout.is_some()),
            ("cleanupMs", self.keep.is_some()),
            ("backgroundMs", self.yield_after.is_some()),
            ("notifyOnExit", self.notify_on_exit.is_some()),
            ("notifyOnExitEmptySuccess", self.notify_on_silence.is_some()),
            ("pathPrepend", self.path_prepend.is_some()),
            ("passEnv", self.pass_env.is_some()),
            ("scripts", self.scripts.is_some()),
            ("safeBins", self.safe_bins.is_some()),
            ("safeBinTrustedDirs", self.safe_bin_dirs.is_some()),
        ];
        keys.into_iter().filter(|(_, is_set)| *is_set).map(|(key, _)| key)
    }

    /// Returns whether these settings decide which commands may run.
    pub fn sets_modes(&self) -> bool {
        !self.modes.is_empty()
    }

    /// Returns which commands may run, and when a person is asked; `None` if not configured.
    ///
    /// # Errors
    /// If both notations are used, or a value is unknown.
    pub fn configured_modes(&self) -> Result<Option<(ExecSecurity, ExecAsk)>, ModeError> {
        self.sets_modes().then(|| configured_modes(&Value::Object(self.modes.clone()))).transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::super::node::UsedKeys;
    use super::*;

    fn read(exec: &Value) -> ExecConfig {
        let used = UsedKeys::default();
        let mut problems = Vec::new();
        let config = ExecConfig::read(&Node::root(exec, Path::new("pinch.json"), &used), &mut problems);
        assert_eq!(problems, []);
        config
    }

    #[test]
    fn an_agent_overrides_single_members_and_either_notation_for_modes_replaces_the_other() {
        let all = read(&json!({"security": "full", "ask": "off", "timeoutSeconds": 5, "safeBins": ["jq"]}));
        assert_eq!(all.configured_modes(), Ok(Some((ExecSecurity::Full, ExecAsk::Off))));
        let own = read(&json!({"ask": "always", "safeBins": []})).over(&all);
        assert_eq!(own.configured_modes(), Ok(Some((ExecSecurity::Full, ExecAsk::Always))));
        assert_eq!((own.timeout, own.safe_bins), (Some(Duration::from_secs(5)), Some(Vec::new())));
        let own = read(&json!({"mode": "deny"})).over(&all);
        assert_eq!(own.configured_modes(), Ok(Some((ExecSecurity::Deny, ExecAsk::Off))));
        let back = read(&json!({"security": "allowlist"})).over(&own);
        assert_eq!(back.configured_modes(), Ok(Some((ExecSecurity::Allowlist, ExecAsk::OnMiss))));
        assert!(!ExecConfig::default().sets_modes());
    }

    #[test]
    fn a_negative_time_limit_is_reported() {
        let used = UsedKeys::default();
        let mut problems = Vec::new();
        let value = json!({"timeoutSeconds": -5});
        let config = ExecConfig::read(&Node::root(&value, Path::new("pinch.json"), &used), &mut problems);
        assert_eq!((config.timeout, problems.len()), (None, 1));
        let text = problems[0].to_string();
        assert!(text.contains("timeoutSeconds: must be a non-negative number of seconds"), "{text}");
    }

    #[test]
    fn patches_can_be_limited_to_some_models() {
        let all = read(&json!({"applyPatch": {"allowModels": [" GPT-5.2 ", "local/small"]}})).patches;
        for (provider, model, is_allowed) in
            [("openai", "gpt-5.2", true), ("local", "Small", true), ("other", "small", false)]
        {
            assert_eq!(all.denied_by(provider, model).is_none(), is_allowed, "{provider}/{model}");
        }
        let off = read(&json!({"applyPatch": {"enabled": false, "allowModels": []}}));
        assert_eq!(off.patches.denied_by("openai", "gpt-5.2"), Some("tools.exec.applyPatch.enabled"));
        let own = read(&json!({"applyPatch": {"enabled": true}})).over(&off).patches;
        assert_eq!(own.denied_by("openai", "gpt-5.2"), None);
    }

    #[test]
    fn mixed_notations_and_unknown_values_are_errors() {
        assert_eq!(read(&json!({"mode": "full", "ask": "off"})).configured_modes(), Err(ModeError::Mixed));
        assert!(read(&json!({"security": "none"})).configured_modes().is_err());
        assert!(read(&json!({"ask": 5})).configured_modes().is_err());
    }
}

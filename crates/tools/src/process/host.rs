//! Choosing where a command runs: in its session's sandbox, or outside.

use std::sync::Arc;

use pinch_agent_core::tool::{JsonObject, ToolError};
use pinch_machine::Machine;
use serde_json::Value;

use crate::exec::modes::{ExecAsk, ExecSecurity};

/// Where commands run according to the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfiguredHost {
    /// In the sandbox, if there is one.
    #[default]
    Auto,
    /// Only in the sandbox.
    Sandbox,
    /// On the host application's machine.
    Gateway,
}

/// Whether commands may leave the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ElevatedLevel {
    /// Never.
    #[default]
    Off,
    /// Those on the allow list may; a person is asked about others.
    Ask,
    /// Yes, under the rules for all commands.
    Full,
}

impl ElevatedLevel {
    /// Parses the value of a configuration or call: `off`, `on` or `ask`, `full`.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word.trim().to_ascii_lowercase().as_str() {
            "off" => Self::Off,
            "on" | "ask" => Self::Ask,
            "full" => Self::Full,
            _ => return None,
        })
    }

    /// Returns the name of the level.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Ask => "ask",
            Self::Full => "full",
        }
    }
}

/// Who may run commands outside the sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElevatedRules {
    /// Whether it is enabled (`tools.elevated.enabled`).
    pub is_enabled: bool,
    /// Whether the sender is allowed to (`tools.elevated.allowFrom`).
    pub is_allowed: bool,
    /// Level of calls that do not specify one. Explicit requests get at least `ask`.
    pub level: ElevatedLevel,
    /// The sender's channel.
    pub provider: Option<String>,
}

impl ElevatedRules {
    /// Returns the level of a call, based on its argument `elevated`.
    fn level_of(&self, asked: Option<bool>, is_sandboxed: bool, session: &str) -> Result<ElevatedLevel, ToolError> {
        let usual = if self.is_enabled && self.is_allowed { self.level } else { ElevatedLevel::Off };
        match asked {
            None => Ok(usual),
            Some(false) => Ok(ElevatedLevel::Off),
            Some(true) if self.is_enabled && self.is_allowed => Ok(usual.max(ElevatedLevel::Ask)),
            Some(true) => Err(ToolError::new(self.refusal(is_sandboxed, session))),
        }
    }

    fn refusal(&self, is_sandboxed: bool, session: &str) -> String {
        let provider = self.provider.as_deref().unwrap_or("<provider>");
        let enabled = (!self.is_enabled).then(|| "enabled (tools.elevated.enabled)".to_owned());
        let allowed = (!self.is_allowed).then(|| format!("allowFrom (tools.elevated.allowFrom.{provider})"));
        let gates: Vec<String> = enabled.into_iter().chain(allowed).collect();
        let context = self.provider.iter().map(|provider| format!("provider={provider} ")).collect::<String>();
        format!(
            "elevated is not available right now (runtime={}).\n\
             Failing gates: {}\n\
             Context: {context}session={session}\n\
             Fix-it keys:\n\
             - tools.elevated.enabled\n\
             - tools.elevated.allowFrom.{provider}\n\
             - agents.list[].tools.elevated.enabled\n\
             - agents.list[].tools.elevated.allowFrom.{provider}",
            if is_sandboxed { "sandboxed" } else { "direct" },
            gates.join(", "),
        )
    }
}

/// Where commands of a session can run.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct CommandHosts {
    /// The machine outside, if commands usually run in a sandbox; `None` if there is no sandbox.
    pub outside: Option<Arc<dyn Machine>>,
    /// Whether other programs are installed in the sandbox than outside, as in a container. Allow lists and approvals name this machine's
    /// programs, so every program inside needs an approval then.
    pub has_own_programs: bool,
    /// The configured host.
    pub configured: ConfiguredHost,
    /// Whether commands may leave the sandbox.
    pub elevated: ElevatedRules,
}

/// Where one command runs, and under which rules.
pub(super) struct ChosenHost {
    /// The machine outside the sandbox; `None` for the usual one.
    pub(super) outside: Option<Arc<dyn Machine>>,
    pub(super) security: ExecSecurity,
    pub(super) ask: ExecAsk,
}

/// Returns the rules for a call that requests stricter ones with `security` and `ask`. Looser and unknown values have no effect.
pub(super) fn tightened(input: &JsonObject, (security, ask): (ExecSecurity, ExecAsk)) -> (ExecSecurity, ExecAsk) {
    let requested = |key: &str| input.get(key).and_then(Value::as_str).unwrap_or_default();
    (
        requested("security").parse().map_or(security, |requested| security.stricter(requested)),
        requested("ask").parse().map_or(ask, |requested| ask.more_demanding(requested)),
    )
}

impl CommandHosts {
    /// Chooses where a call runs. Unavailable hosts are rejected; unknown names are ignored.
    pub(super) fn choose(
        &self,
        input: &JsonObject,
        (security, ask): (ExecSecurity, ExecAsk),
        session: &str,
    ) -> Result<ChosenHost, ToolError> {
        let is_sandboxed = self.outside.is_some();
        let asked = input.get("elevated").and_then(Value::as_bool);
        let level = self.elevated.level_of(asked, is_sandboxed, session)?;
        let requested = input.get("host").and_then(Value::as_str).map(str::trim).unwrap_or_default();
        if requested == "node" {
            return Err(ToolError::new("exec host=node is not available: no node is connected to this program."));
        }
        if self.configured == ConfiguredHost::Sandbox && !is_sandboxed && level == ElevatedLevel::Off {
            return Err(ToolError::new("exec host=sandbox is not available: this session is in no sandbox."));
        }
        let usual_is_outside = is_sandboxed && self.configured == ConfiguredHost::Gateway;
        let is_outside = match (requested, level) {
            (_, ElevatedLevel::Ask | ElevatedLevel::Full) => is_sandboxed,
            ("sandbox", _) if !is_sandboxed => {
                return Err(ToolError::new("exec host=sandbox is not available: this session is in no sandbox."));
            }
            ("sandbox", _) if usual_is_outside => return Err(not_allowed("sandbox")),
            ("gateway", _) if is_sandboxed && !usual_is_outside => return Err(not_allowed("gateway")),
            _ => usual_is_outside,
        };
        let (security, ask) = match level {
            ElevatedLevel::Ask => (
                security.stricter(ExecSecurity::Allowlist),
                match security {
                    // Ask even if nothing is asked normally; an allow list that nobody may extend stays unchanged.
                    ExecSecurity::Full => ask.more_demanding(ExecAsk::OnMiss),
                    ExecSecurity::Allowlist | ExecSecurity::Deny => ask,
                },
            ),
            ElevatedLevel::Off | ElevatedLevel::Full => (security, ask),
        };
        Ok(ChosenHost { outside: self.outside.clone().filter(|_| is_outside), security, ask })
    }
}

impl CommandHosts {
    /// Returns where a command that failed in the sandbox may run once more, if a person approves: outside, for senders who may leave the
    /// sandbox, unless the call or the configuration rules that out.
    pub(super) fn retry(&self, input: &JsonObject, (security, ask): (ExecSecurity, ExecAsk)) -> Option<ChosenHost> {
        let may_leave =
            self.elevated.is_enabled && self.elevated.is_allowed && self.configured != ConfiguredHost::Sandbox;
        let stays = input.get("elevated") == Some(&Value::Bool(false))
            || input.get("host").and_then(Value::as_str).map(str::trim) == Some("sandbox");
        // Where nobody is asked about commands off the allow list, nobody is asked about this one.
        let can_ask = security == ExecSecurity::Full || (security == ExecSecurity::Allowlist && ask != ExecAsk::Off);
        let outside = self.outside.clone().filter(|_| may_leave && !stays && can_ask)?;
        Some(ChosenHost { outside: Some(outside), security: ExecSecurity::Allowlist, ask: ExecAsk::Always })
    }
}

fn not_allowed(requested: &str) -> ToolError {
    ToolError::new(format!(
        "exec host not allowed (requested {requested}; configure tools.exec.host={requested} to allow)."
    ))
}

#[cfg(test)]
mod tests {
    use pinch_machine::LocalMachine;
    use serde_json::json;

    use super::*;

    const FULL: (ExecSecurity, ExecAsk) = (ExecSecurity::Full, ExecAsk::Off);

    fn chosen(hosts: &CommandHosts, input: Value, rules: (ExecSecurity, ExecAsk)) -> String {
        match hosts.choose(input.as_object().unwrap(), rules, "s1") {
            Ok(chosen) => {
                let place = if chosen.outside.is_some() { "outside" } else { "usual" };
                format!("{place} {} {}", chosen.security.name(), chosen.ask.name())
            }
            Err(error) => error.text.lines().next().unwrap_or_default().to_owned(),
        }
    }

    fn hosts(is_sandboxed: bool, configured: ConfiguredHost, level: Option<ElevatedLevel>) -> CommandHosts {
        let outside = is_sandboxed.then(|| Arc::new(LocalMachine) as Arc<dyn Machine>);
        let is_allowed = level.is_some();
        let level = level.unwrap_or_default();
        CommandHosts {
            outside,
            has_own_programs: false,
            configured,
            elevated: ElevatedRules { is_enabled: true, is_allowed, level, provider: Some("telegram".into()) },
        }
    }

    #[test]
    fn no_command_leaves_the_sandbox_without_permission() {
        use ConfiguredHost::{Auto, Gateway, Sandbox};
        let refused = "elevated is not available right now (runtime=sandboxed).";
        let gateway = "exec host not allowed (requested gateway; configure tools.exec.host=gateway to allow).";
        let none = "exec host=sandbox is not available: this session is in no sandbox.";
        let node = "exec host=node is not available: no node is connected to this program.";
        for (is_sandboxed, configured, level, input, expect) in [
            (true, Auto, None, json!({}), "usual full off"),
            (true, Auto, None, json!({"host": "sandbox"}), "usual full off"),
            (true, Auto, None, json!({"host": "gateway"}), gateway),
            (true, Sandbox, None, json!({"host": "gateway"}), gateway),
            (true, Auto, None, json!({"host": "node"}), node),
            (true, Auto, None, json!({"host": "moon"}), "usual full off"),
            (true, Auto, None, json!({"elevated": true}), refused),
            (true, Auto, None, json!({"elevated": true, "host": "gateway"}), refused),
            (true, Gateway, None, json!({}), "outside full off"),
            (true, Auto, Some(ElevatedLevel::Off), json!({}), "usual full off"),
            (true, Auto, Some(ElevatedLevel::Off), json!({"elevated": true}), "outside allowlist on-miss"),
            (true, Auto, Some(ElevatedLevel::Ask), json!({}), "outside allowlist on-miss"),
            (true, Auto, Some(ElevatedLevel::Ask), json!({"elevated": false}), "usual full off"),
            (true, Auto, Some(ElevatedLevel::Full), json!({"elevated": true}), "outside full off"),
            (false, Auto, None, json!({}), "usual full off"),
            (false, Auto, None, json!({"host": "gateway"}), "usual full off"),
            (false, Auto, None, json!({"host": "sandbox"}), none),
            (false, Sandbox, None, json!({}), none),
        ] {
            let hosts = hosts(is_sandboxed, configured, level);
            assert_eq!(chosen(&hosts, input.clone(), FULL), expect, "{is_sandboxed} {configured:?} {level:?} {input}");
        }
    }

    #[test]
    fn elevated_commands_are_under_rules_at_least_as_strict() {
        let hosts = hosts(true, ConfiguredHost::Auto, Some(ElevatedLevel::Ask));
        for (security, ask, expect) in [
            (ExecSecurity::Deny, ExecAsk::Off, "outside deny off"),
            (ExecSecurity::Allowlist, ExecAsk::Off, "outside allowlist off"),
            (ExecSecurity::Allowlist, ExecAsk::Always, "outside allowlist always"),
            (ExecSecurity::Full, ExecAsk::Always, "outside allowlist always"),
        ] {
            assert_eq!(chosen(&hosts, json!({}), (security, ask)), expect);
        }
    }
}

//! `tools.loopDetection`.

use serde_json::Value;

/// How to handle a repeated call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRepeat {
    /// Run the call and append a warning to its result.
    #[default]
    Warn,
    /// Block the call.
    Block,
}

/// When calls count as a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopConfig {
    /// Whether detection is enabled.
    pub enabled: bool,
    /// How to handle a warning about repeated or alternating calls.
    pub on_repeat: OnRepeat,
    /// Number of calls to remember.
    pub history_size: usize,
    /// Repetitions that trigger a warning.
    pub warning: usize,
    /// Calls of a nonexistent tool after which it is blocked.
    pub unknown_tool: usize,
    /// Repetitions without progress that are blocked.
    pub critical: usize,
    /// Repetitions without progress that are blocked regardless of which detectors are enabled.
    pub breaker: usize,
    /// Whether to detect repeated calls.
    pub generic_repeat: bool,
    /// Whether to detect polling without progress.
    pub poll_no_progress: bool,
    /// Whether to detect alternating calls.
    pub ping_pong: bool,
}

impl Default for LoopConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            on_repeat: OnRepeat::Warn,
            history_size: 30,
            warning: 10,
            unknown_tool: 10,
            critical: 20,
            breaker: 30,
            generic_repeat: true,
            poll_no_progress: true,
            ping_pong: true,
        }
    }
}

impl LoopConfig {
    /// Reads `loopDetection` of all agents and of one agent, whose members take precedence. Unreadable members keep their defaults.
    /// Thresholds are raised where necessary so that they increase.
    pub fn read(global: &Value, agent: &Value) -> Self {
        let member = |path: &str| agent.pointer(path).or_else(|| global.pointer(path));
        let flag = |path: &str, default: bool| member(path).and_then(Value::as_bool).unwrap_or(default);
        let number = |path: &str, default: usize| {
            let n = member(path).and_then(Value::as_f64).filter(|n| *n >= 1.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 1; a cast saturates")]
            n.map_or(default, |n| n as usize)
        };
        let default = Self::default();
        let warning = number("/warningThreshold", default.warning);
        let critical = number("/criticalThreshold", default.critical).max(warning.saturating_add(1));
        let breaker = number("/globalCircuitBreakerThreshold", default.breaker).max(critical.saturating_add(1));
        Self {
            enabled: flag("/enabled", default.enabled),
            on_repeat: match member("/onRepeat").and_then(Value::as_str) {
                Some("block") => OnRepeat::Block,
                _ => OnRepeat::Warn,
            },
            history_size: number("/historySize", default.history_size).min(MAX_HISTORY),
            warning,
            unknown_tool: number("/unknownToolThreshold", default.unknown_tool),
            critical,
            breaker,
            generic_repeat: flag("/detectors/genericRepeat", default.generic_repeat),
            poll_no_progress: flag("/detectors/knownPollNoProgress", default.poll_no_progress),
            ping_pong: flag("/detectors/pingPong", default.ping_pong),
        }
    }
}

/// Maximum number of remembered calls, since every call scans them all.
const MAX_HISTORY: usize = 10_000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agent_overrides_single_members_and_thresholds_increase() {
        let global = json!({"enabled": false, "warningThreshold": 25, "detectors": {"pingPong": false}});
        let agent = json!({"enabled": true, "detectors": {"genericRepeat": false}, "historySize": "many"});
        let read = LoopConfig::read(&global, &agent);
        let expect = LoopConfig {
            warning: 25,
            critical: 26,
            breaker: 30,
            ping_pong: false,
            generic_repeat: false,
            ..LoopConfig::default()
        };
        assert_eq!(read, expect);
        assert_eq!(LoopConfig::read(&Value::Null, &Value::Null), LoopConfig::default());
        assert_eq!(LoopConfig::read(&json!({"criticalThreshold": 40}), &Value::Null).breaker, 41);
    }
}

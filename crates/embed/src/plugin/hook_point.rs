//! The hooks of plugins, and the rules by which a plugin's hook is called.

use std::time::Duration;

use super::guard::{ASK_LIMIT, WATCH_LIMIT, WRITE_LIMIT};

/// A hook of plugins, with OpenClaw's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HookPoint {
    /// [`Plugin::before_model_resolve`](super::Plugin::before_model_resolve).
    BeforeModelResolve,
    /// [`Plugin::on_agent_start`](super::Plugin::on_agent_start).
    BeforeAgentStart,
    /// [`Plugin::before_agent_run`](super::Plugin::before_agent_run).
    BeforeAgentRun,
    /// [`Plugin::before_prompt_build`](super::Plugin::before_prompt_build).
    BeforePromptBuild,
    /// [`Plugin::agent_bootstrap`](super::Plugin::agent_bootstrap).
    AgentBootstrap,
    /// [`Plugin::llm_input`](super::Plugin::llm_input).
    LlmInput,
    /// [`Plugin::llm_output`](super::Plugin::llm_output).
    LlmOutput,
    /// [`Plugin::on_agent_end`](super::Plugin::on_agent_end).
    AgentEnd,
    /// [`Plugin::on_before_compaction`](super::Plugin::on_before_compaction).
    BeforeCompaction,
    /// [`Plugin::on_after_compaction`](super::Plugin::on_after_compaction).
    AfterCompaction,
    /// [`Plugin::on_before_reset`](super::Plugin::on_before_reset).
    BeforeReset,
    /// [`Plugin::before_tool_call`](super::Plugin::before_tool_call).
    BeforeToolCall,
    /// [`Plugin::on_approval_resolved`](super::Plugin::on_approval_resolved).
    ApprovalResolved,
    /// [`Plugin::on_after_tool_call`](super::Plugin::on_after_tool_call).
    AfterToolCall,
    /// [`Plugin::tool_result_persist`](super::Plugin::tool_result_persist).
    ToolResultPersist,
    /// [`Plugin::before_message_write`](super::Plugin::before_message_write).
    BeforeMessageWrite,
    /// [`Plugin::on_message_received`](super::Plugin::on_message_received).
    MessageReceived,
    /// [`Plugin::message_sending`](super::Plugin::message_sending).
    MessageSending,
    /// [`Plugin::on_message_sent`](super::Plugin::on_message_sent).
    MessageSent,
    /// [`Plugin::on_session_start`](super::Plugin::on_session_start).
    SessionStart,
    /// [`Plugin::on_session_end`](super::Plugin::on_session_end).
    SessionEnd,
    /// [`Plugin::on_gateway_start`](super::Plugin::on_gateway_start).
    GatewayStart,
    /// [`Plugin::on_gateway_stop`](super::Plugin::on_gateway_stop).
    GatewayStop,
}

impl HookPoint {
    /// All hooks.
    pub const ALL: [Self; 23] = [
        Self::BeforeModelResolve,
        Self::BeforeAgentStart,
        Self::BeforeAgentRun,
        Self::BeforePromptBuild,
        Self::AgentBootstrap,
        Self::LlmInput,
        Self::LlmOutput,
        Self::AgentEnd,
        Self::BeforeCompaction,
        Self::AfterCompaction,
        Self::BeforeReset,
        Self::BeforeToolCall,
        Self::ApprovalResolved,
        Self::AfterToolCall,
        Self::ToolResultPersist,
        Self::BeforeMessageWrite,
        Self::MessageReceived,
        Self::MessageSending,
        Self::MessageSent,
        Self::SessionStart,
        Self::SessionEnd,
        Self::GatewayStart,
        Self::GatewayStop,
    ];

    /// Returns OpenClaw's name, used in logs and by processes. `approval_resolved` is our own: OpenClaw's plugins pass a function
    /// (`onResolution`) with the approval that they require.
    pub fn name(self) -> &'static str {
        match self {
            Self::BeforeModelResolve => "before_model_resolve",
            Self::BeforeAgentStart => "before_agent_start",
            Self::BeforeAgentRun => "before_agent_run",
            Self::BeforePromptBuild => "before_prompt_build",
            Self::AgentBootstrap => "agent:bootstrap",
            Self::LlmInput => "llm_input",
            Self::LlmOutput => "llm_output",
            Self::AgentEnd => "agent_end",
            Self::BeforeCompaction => "before_compaction",
            Self::AfterCompaction => "after_compaction",
            Self::BeforeReset => "before_reset",
            Self::BeforeToolCall => "before_tool_call",
            Self::ApprovalResolved => "approval_resolved",
            Self::AfterToolCall => "after_tool_call",
            Self::ToolResultPersist => "tool_result_persist",
            Self::BeforeMessageWrite => "before_message_write",
            Self::MessageReceived => "message_received",
            Self::MessageSending => "message_sending",
            Self::MessageSent => "message_sent",
            Self::SessionStart => "session_start",
            Self::SessionEnd => "session_end",
            Self::GatewayStart => "gateway_start",
            Self::GatewayStop => "gateway_stop",
        }
    }

    /// Parses a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| hook.name() == name)
    }

    /// Returns whether the hook returns an answer, which the engine waits for. The others only observe.
    pub fn has_answer(self) -> bool {
        matches!(
            self,
            Self::BeforeModelResolve
                | Self::BeforeAgentStart
                | Self::BeforeAgentRun
                | Self::BeforePromptBuild
                | Self::AgentBootstrap
                | Self::BeforeToolCall
                | Self::ToolResultPersist
                | Self::BeforeMessageWrite
                | Self::MessageSending
        )
    }
}

/// How a plugin's hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookRules {
    /// Plugins with a higher priority are called first, those with the same priority in order of registration.
    pub priority: i32,
    /// Whether a failure blocks what the hook guards: the run for [`HookPoint::BeforeAgentRun`], the call for
    /// [`HookPoint::BeforeToolCall`]. Without effect for other hooks.
    pub blocks_on_error: bool,
    /// How long it may take.
    pub limit: Duration,
}

impl HookRules {
    /// Returns the default rules of a hook: only failures of [`HookPoint::BeforeToolCall`] block, and the limit is [`ASK_LIMIT`], for
    /// hooks about every message [`WRITE_LIMIT`], and for those that only observe [`WATCH_LIMIT`].
    pub fn of(hook: HookPoint) -> Self {
        let limit = match hook {
            HookPoint::ToolResultPersist | HookPoint::BeforeMessageWrite => WRITE_LIMIT,
            _ if hook.has_answer() => ASK_LIMIT,
            _ => WATCH_LIMIT,
        };
        Self { priority: 0, blocks_on_error: hook == HookPoint::BeforeToolCall, limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hook_has_a_name() {
        for hook in HookPoint::ALL {
            assert_eq!(HookPoint::parse(hook.name()), Some(hook));
        }
        assert_eq!(HookPoint::parse("before_lunch"), None);
    }
}

//! The points at which extensions are called, and sets of them.

/// A point at which extensions are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Point {
    /// A project's trust is decided.
    ProjectTrust,
    /// Additional skills, prompts and themes are collected.
    ResourcesDiscover,
    /// A session started or replaced another one.
    SessionStart,
    /// The session is about to be replaced.
    SessionBeforeSwitch,
    /// The session is about to be forked.
    SessionBeforeFork,
    /// The conversation is about to be compacted.
    SessionBeforeCompact,
    /// The conversation was compacted.
    SessionCompact,
    /// A compaction failed or was cancelled.
    SessionCompactFailed,
    /// The session ends or is replaced.
    SessionShutdown,
    /// The leaf is about to move to another branch.
    SessionBeforeTree,
    /// The leaf moved.
    SessionTree,
    /// The session's name changed.
    SessionInfoChanged,
    /// A request's messages are selected.
    Context,
    /// The messages are complete, including prompt and tools.
    ContextWithSystem,
    /// A request's body is built.
    BeforeProviderRequest,
    /// A request's headers are built.
    BeforeProviderHeaders,
    /// A provider responded.
    AfterProviderResponse,
    /// A prompt is about to be processed.
    BeforeAgentStart,
    /// A run starts.
    AgentStart,
    /// A run ended.
    AgentEnd,
    /// The session is about to become idle.
    AgentBeforeSettle,
    /// The session is idle.
    AgentSettled,
    /// A dialog was opened.
    UiPromptStart,
    /// A dialog was closed.
    UiPromptEnd,
    /// A turn starts.
    TurnStart,
    /// A turn ended.
    TurnEnd,
    /// A message starts.
    MessageStart,
    /// An answer grew.
    MessageUpdate,
    /// A message is complete.
    MessageEnd,
    /// A tool call starts.
    ToolExecutionStart,
    /// A tool call reports progress.
    ToolExecutionUpdate,
    /// A tool call ended.
    ToolExecutionEnd,
    /// A tool call is about to run.
    ToolCall,
    /// A tool call has finished.
    ToolResult,
    /// The model changed.
    ModelSelect,
    /// The thinking level changed.
    ThinkingLevelSelect,
    /// The user runs a shell command.
    UserBash,
    /// The user sends input.
    Input,
}

impl Point {
    /// All points.
    pub const ALL: [Self; 38] = [
        Self::ProjectTrust,
        Self::ResourcesDiscover,
        Self::SessionStart,
        Self::SessionBeforeSwitch,
        Self::SessionBeforeFork,
        Self::SessionBeforeCompact,
        Self::SessionCompact,
        Self::SessionCompactFailed,
        Self::SessionShutdown,
        Self::SessionBeforeTree,
        Self::SessionTree,
        Self::SessionInfoChanged,
        Self::Context,
        Self::ContextWithSystem,
        Self::BeforeProviderRequest,
        Self::BeforeProviderHeaders,
        Self::AfterProviderResponse,
        Self::BeforeAgentStart,
        Self::AgentStart,
        Self::AgentEnd,
        Self::AgentBeforeSettle,
        Self::AgentSettled,
        Self::UiPromptStart,
        Self::UiPromptEnd,
        Self::TurnStart,
        Self::TurnEnd,
        Self::MessageStart,
        Self::MessageUpdate,
        Self::MessageEnd,
        Self::ToolExecutionStart,
        Self::ToolExecutionUpdate,
        Self::ToolExecutionEnd,
        Self::ToolCall,
        Self::ToolResult,
        Self::ModelSelect,
        Self::ThinkingLevelSelect,
        Self::UserBash,
        Self::Input,
    ];

    /// Returns the name used in reports and in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::ProjectTrust => "project_trust",
            Self::ResourcesDiscover => "resources_discover",
            Self::SessionStart => "session_start",
            Self::SessionBeforeSwitch => "session_before_switch",
            Self::SessionBeforeFork => "session_before_fork",
            Self::SessionBeforeCompact => "session_before_compact",
            Self::SessionCompact => "session_compact",
            Self::SessionCompactFailed => "session_compact_failed",
            Self::SessionShutdown => "session_shutdown",
            Self::SessionBeforeTree => "session_before_tree",
            Self::SessionTree => "session_tree",
            Self::SessionInfoChanged => "session_info_changed",
            Self::Context => "context",
            Self::ContextWithSystem => "context_with_system",
            Self::BeforeProviderRequest => "before_provider_request",
            Self::BeforeProviderHeaders => "before_provider_headers",
            Self::AfterProviderResponse => "after_provider_response",
            Self::BeforeAgentStart => "before_agent_start",
            Self::AgentStart => "agent_start",
            Self::AgentEnd => "agent_end",
            Self::AgentBeforeSettle => "agent_before_settle",
            Self::AgentSettled => "agent_settled",
            Self::UiPromptStart => "ui_prompt_start",
            Self::UiPromptEnd => "ui_prompt_end",
            Self::TurnStart => "turn_start",
            Self::TurnEnd => "turn_end",
            Self::MessageStart => "message_start",
            Self::MessageUpdate => "message_update",
            Self::MessageEnd => "message_end",
            Self::ToolExecutionStart => "tool_execution_start",
            Self::ToolExecutionUpdate => "tool_execution_update",
            Self::ToolExecutionEnd => "tool_execution_end",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
            Self::ModelSelect => "model_select",
            Self::ThinkingLevelSelect => "thinking_level_select",
            Self::UserBash => "user_bash",
            Self::Input => "input",
        }
    }

    /// Parses the name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|point| point.name() == word)
    }
}

/// A set of points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Points(u64);

impl Points {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Creates a set of these points.
    pub fn of(points: impl IntoIterator<Item = Point>) -> Self {
        points.into_iter().fold(Self::NONE, Self::with)
    }

    /// Returns the set with one more point.
    #[must_use]
    pub fn with(self, point: Point) -> Self {
        Self(self.0 | 1 << point as u8)
    }

    /// Returns whether the set contains a point.
    pub fn has(self, point: Point) -> bool {
        self.0 & 1 << point as u8 != 0
    }

    /// Returns the union of two sets.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_a_unique_name_and_bit() {
        for (at, point) in Point::ALL.into_iter().enumerate() {
            assert_eq!(Point::parse(point.name()), Some(point));
            assert_eq!(
                Point::ALL.map(|other| Points::NONE.with(point).has(other)).iter().position(|has| *has),
                Some(at)
            );
        }
        assert_eq!(Point::parse("frob"), None);
    }
}

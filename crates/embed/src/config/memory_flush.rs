//! `agents.defaults.compaction.memoryFlush`: memories that an agent saves before its conversation is compacted.

use pinch_coding_agent::document::Problem;

use super::node::Node;

/// `agents.defaults.compaction.memoryFlush`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryFlushConfig {
    /// Whether the agent is asked to save memories (`enabled`).
    pub enabled: bool,
    /// Number of tokens before the compaction threshold at which it is asked (`softThresholdTokens`).
    pub soft_threshold_tokens: u64,
    /// Prompt, instead of the default (`prompt`). `YYYY-MM-DD` stands for the date.
    pub prompt: Option<String>,
    /// Addition to its system prompt, instead of the default (`systemPrompt`). `YYYY-MM-DD` stands for the date.
    pub system_prompt: Option<String>,
}

impl MemoryFlushConfig {
    pub(super) fn read(node: &Node<'_>, default: &Self, problems: &mut Vec<Problem>) -> Self {
        node.object(problems);
        let mut text = |name: &str| node.get(name).text(problems).filter(|text| !text.trim().is_empty());
        let (prompt, system_prompt) = (text("prompt"), text("systemPrompt"));
        Self {
            enabled: node.get("enabled").flag(problems).unwrap_or(default.enabled),
            soft_threshold_tokens: (node.get("softThresholdTokens").count(problems))
                .unwrap_or(default.soft_threshold_tokens),
            prompt: prompt.or_else(|| default.prompt.clone()),
            system_prompt: system_prompt.or_else(|| default.system_prompt.clone()),
        }
    }
}

impl Default for MemoryFlushConfig {
    fn default() -> Self {
        Self { enabled: true, soft_threshold_tokens: 4_000, prompt: None, system_prompt: None }
    }
}

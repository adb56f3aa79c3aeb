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
    /// Number of bytes of a transcript, since memories were last saved, at which it is asked whatever its tokens; 0 for never
    /// (`forceFlushTranscriptBytes`).
    pub force_transcript_bytes: u64,
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
            force_transcript_bytes: transcript_bytes(&node.get("forceFlushTranscriptBytes"), problems)
                .unwrap_or(default.force_transcript_bytes),
            prompt: prompt.or_else(|| default.prompt.clone()),
            system_prompt: system_prompt.or_else(|| default.system_prompt.clone()),
        }
    }
}

impl Default for MemoryFlushConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            soft_threshold_tokens: 4_000,
            force_transcript_bytes: 2 << 20,
            prompt: None,
            system_prompt: None,
        }
    }
}

/// Reads a number of bytes, or a text such as `2mb`.
fn transcript_bytes(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<u64> {
    if !node.is_text() {
        return node.count(problems);
    }
    let text = node.text(problems)?;
    let bytes = bytes_of(&text);
    if bytes.is_none() {
        problems.push(
            node.problem(format!("{text:?} is not a size such as 2mb")).remedy("Correct it; until then it is ignored"),
        );
    }
    bytes
}

/// Returns the number of bytes that a text means. Units are those of OpenClaw, each 1024 times the one before.
fn bytes_of(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let factor = match unit.trim() {
        "" | "b" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1024.0 * 1024.0,
        "g" | "gb" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes = number.parse::<f64>().ok()? * factor;
    // Conversion from a float saturates.
    bytes.is_finite().then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let sizes = [("2mb", 2 << 20), ("1.5 KB", 1536), ("10", 10), (" 3b ", 3), ("1g", 1 << 30), ("0", 0)];
        for (text, bytes) in sizes {
            assert_eq!(bytes_of(text), Some(bytes), "{text}");
        }
        for text in ["", "mb", "-1", "2 miles", "1.2.3"] {
            assert_eq!(bytes_of(text), None, "{text}");
        }
    }
}

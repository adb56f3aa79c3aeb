//! Thinking levels as OpenClaw's files and commands name them.

use pinch_coding_agent::document::Problem;
use pinch_llm::thinking::ThinkingLevel;

use super::node::Node;

/// All words, from least to most thinking. `adaptive` leaves the amount to models that decide it themselves, and is `medium` for others;
/// `ultra` is the most that a model offers.
pub const LEVELS: [&str; 9] = ["off", "minimal", "low", "medium", "adaptive", "high", "xhigh", "max", "ultra"];

/// Parses a level; returns `None` for an unknown word.
pub fn parse_level(word: &str) -> Option<ThinkingLevel> {
    match word {
        "adaptive" => Some(ThinkingLevel::Medium),
        "ultra" => Some(ThinkingLevel::Max),
        word => ThinkingLevel::parse(word),
    }
}

/// Reads a level and reports an unknown one.
pub(super) fn read_level(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<ThinkingLevel> {
    node.word(problems, &LEVELS, parse_level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_a_level() {
        assert!(LEVELS.iter().all(|word| parse_level(word).is_some()));
        assert_eq!((parse_level("ultra"), parse_level("much")), (Some(ThinkingLevel::Max), None));
    }
}

//! Selects another thinking level if a provider reports which ones it supports.

use pinch_llm::thinking::ThinkingLevel;

use crate::config::thinking::parse_level;

/// Returns the first supported level in an error text that was not tried yet.
pub fn next_level(text: &str, tried: &[ThinkingLevel]) -> Option<ThinkingLevel> {
    named_levels(text).into_iter().find(|level| !tried.contains(level))
}

/// Returns the levels after `supported values are:` or `supported values:`, up to the end of the line or sentence. If a text rejects a
/// level and names no others, thinking is turned off.
fn named_levels(text: &str) -> Vec<ThinkingLevel> {
    let lower = text.to_lowercase();
    let Some(list) = ["supported values are:", "supported values:"]
        .into_iter()
        .find_map(|marker| lower.find(marker).map(|at| &lower[at + marker.len()..]))
    else {
        let refused =
            lower.find("think value").is_some_and(|at| lower[at..].contains("is not supported for this model"));
        return if refused { vec![ThinkingLevel::Off] } else { Vec::new() };
    };
    let list = list.split(['\n', '.']).next().unwrap_or("");
    let quoted: Vec<&str> = list.split(['\'', '"', '`']).skip(1).step_by(2).collect();
    let words = if quoted.is_empty() { list.split(',').flat_map(|part| part.split(" and ")).collect() } else { quoted };
    let bare = |word: &'_ str| {
        let word = word.trim();
        let word = word.strip_prefix("and ").unwrap_or(word);
        word.trim_matches(|c: char| !c.is_ascii_alphabetic()).to_owned()
    };
    words.into_iter().filter_map(|word| level(&bare(word))).collect()
}

/// Parses a level as spelled by providers and users. Unknown words, such as `none`, are skipped.
fn level(word: &str) -> Option<ThinkingLevel> {
    let packed: String = word.chars().filter(|c| !matches!(c, ' ' | '_' | '-')).collect();
    Some(match packed.as_str() {
        "min" | "think" => ThinkingLevel::Minimal,
        "on" | "enable" | "enabled" | "thinkhard" => ThinkingLevel::Low,
        "mid" | "med" | "thinkharder" | "harder" => ThinkingLevel::Medium,
        "ultrathink" | "thinkhardest" | "highest" => ThinkingLevel::High,
        "extrahigh" => ThinkingLevel::XHigh,
        packed => return parse_level(packed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_untried_level_of_a_text_is_chosen() {
        use ThinkingLevel::{High, Low, Medium, Off, XHigh};
        let rows: &[(&str, &[ThinkingLevel], Option<ThinkingLevel>)] = &[
            ("Unsupported value. Supported values are: 'low', 'high'.", &[Off], Some(Low)),
            ("Supported values are: 'low', 'high'.", &[Off, Low], Some(High)),
            ("Supported values are: 'low'.", &[Low], None),
            ("supported values: low, medium and high", &[Low], Some(Medium)),
            ("supported values: \"x\", none\nhigh", &[], None),
            ("supported values: none", &[], None),
            ("Supported values are: none, x-high, and extra high.", &[], Some(XHigh)),
            ("supported values: on, mid", &[Low], Some(Medium)),
            ("think value \"low\" is not supported for this model", &[Low], Some(Off)),
            ("think value \"low\" is not supported for this model", &[Off], None),
            ("use high", &[], None),
        ];
        for (text, tried, expected) in rows {
            assert_eq!(next_level(text, tried), *expected, "{text}");
        }
    }
}

//! Selects another thinking level if a provider reports which ones it supports.

use pinch_llm::thinking::ThinkingLevel;

/// The first supported level in an error text that was not tried yet.
pub fn next_level(text: &str, tried: &[ThinkingLevel]) -> Option<ThinkingLevel> {
    named_levels(text).into_iter().find(|level| !tried.contains(level))
}

/// The levels after `supported values are:` or `supported values:`, up to the end of the line or sentence.
fn named_levels(text: &str) -> Vec<ThinkingLevel> {
    let lower = text.to_ascii_lowercase();
    let Some(list) = ["supported values are:", "supported values:"]
        .into_iter()
        .find_map(|marker| lower.find(marker).map(|at| &lower[at + marker.len()..]))
    else {
        return Vec::new();
    };
    let list = list.split(['\n', '.']).next().unwrap_or("");
    let quoted: Vec<&str> = list.split(['\'', '"', '`']).skip(1).step_by(2).collect();
    let words = if quoted.is_empty() { list.split(',').flat_map(|part| part.split(" and ")).collect() } else { quoted };
    words.into_iter().filter_map(|word| level(word.trim().trim_start_matches("and ").trim())).collect()
}

/// Parses a level as providers and users spell it.
fn level(word: &str) -> Option<ThinkingLevel> {
    match word {
        "none" | "disabled" => Some(ThinkingLevel::Off),
        "min" => Some(ThinkingLevel::Minimal),
        "mid" | "med" => Some(ThinkingLevel::Medium),
        "extra-high" | "extra_high" | "x-high" => Some(ThinkingLevel::XHigh),
        _ => ThinkingLevel::parse(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_untried_level_of_a_text_is_chosen() {
        use ThinkingLevel::{High, Low, Medium, Off};
        let rows: &[(&str, &[ThinkingLevel], Option<ThinkingLevel>)] = &[
            ("Unsupported value. Supported values are: 'low', 'high'.", &[Off], Some(Low)),
            ("Supported values are: 'low', 'high'.", &[Off, Low], Some(High)),
            ("Supported values are: 'low'.", &[Low], None),
            ("supported values: low, medium and high", &[Low], Some(Medium)),
            ("supported values: \"x\", none\nhigh", &[], None),
            ("supported values: none", &[], Some(Off)),
            ("use high", &[], None),
        ];
        for (text, tried, expected) in rows {
            assert_eq!(next_level(text, tried), *expected, "{text}");
        }
    }
}

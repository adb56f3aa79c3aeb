//! Ranking of tools by the words of a query (BM25).

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use pinch_stdx::text::prefix;

use super::words::{query_stems, stems};

/// How fast repetitions of a word count less.
const K1: f64 = 1.2;
/// How much the length of a text matters.
const B: f64 = 0.75;
/// Weight of a word in a name: more than any number of mentions, which count at most `K1 + 1`.
const IN_NAME: f64 = 2.0 * (K1 + 1.0);

/// Maximum bytes of a description and of a query that are considered.
const MAX_TEXT: usize = 8 * 1024;
const MAX_QUERY: usize = 1024;
/// Maximum number of different words of a query.
const MAX_WORDS: usize = 32;

/// What is known about a tool.
#[derive(Clone, Copy, Debug)]
pub struct SearchText<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it does.
    pub description: &'a str,
    /// Names of its parameters.
    pub parameters: &'a [&'a str],
}

/// An index of tools. A tool is named by its position.
#[derive(Clone, Debug, Default)]
pub struct ToolIndex {
    tools: Vec<IndexedTool>,
    /// Number of tools with each stem.
    frequencies: HashMap<String, usize>,
    average_length: f64,
}

#[derive(Clone, Debug)]
struct IndexedTool {
    name: String,
    of_name: HashSet<String>,
    /// Stems of the description and the parameters, and how often they occur.
    mentions: HashMap<String, f64>,
    length: f64,
}

impl IndexedTool {
    fn new(text: SearchText<'_>) -> Self {
        let mut mentions: HashMap<String, f64> = HashMap::new();
        let mut length = 0.0;
        let description = prefix(text.description, MAX_TEXT);
        for stem in stems(description).into_iter().chain(text.parameters.iter().flat_map(|name| stems(name))) {
            *mentions.entry(stem).or_default() += 1.0;
            length += 1.0;
        }
        let of_name = stems(prefix(text.name, MAX_TEXT)).into_iter().collect();
        Self { name: text.name.to_owned(), of_name, mentions, length }
    }

    fn has(&self, stem: &str) -> bool {
        self.of_name.contains(stem) || self.mentions.contains_key(stem)
    }
}

impl ToolIndex {
    /// Indexes tools.
    pub fn new<'a>(texts: impl IntoIterator<Item = SearchText<'a>>) -> Self {
        let tools: Vec<IndexedTool> = texts.into_iter().map(IndexedTool::new).collect();
        let mut frequencies: HashMap<String, usize> = HashMap::new();
        for tool in &tools {
            let only_in_name = tool.of_name.iter().filter(|stem| !tool.mentions.contains_key(*stem));
            for stem in tool.mentions.keys().chain(only_in_name) {
                *frequencies.entry(stem.clone()).or_default() += 1;
            }
        }
        let total: f64 = tools.iter().map(|tool| tool.length).sum();
        let average_length = (total / float(tools.len().max(1))).max(1.0);
        Self { tools, frequencies, average_length }
    }

    /// Returns the positions of the tools that have words of a query, best first. A tool whose name is the query comes first; equally good
    /// ones are sorted by name.
    pub fn search(&self, query: &str, limit: usize) -> Vec<usize> {
        let query = prefix(query, MAX_QUERY).trim();
        let words: Vec<(String, f64)> = query_stems(query, MAX_WORDS)
            .into_iter()
            .filter_map(|stem| {
                let n = *self.frequencies.get(&stem)?;
                Some((stem, self.rarity(n)))
            })
            .collect();
        let mut found: Vec<(bool, f64, usize)> = Vec::new();
        for (at, tool) in self.tools.iter().enumerate() {
            let is_named = !query.is_empty() && tool.name.eq_ignore_ascii_case(query);
            if is_named || words.iter().any(|(stem, _)| tool.has(stem)) {
                found.push((is_named, self.score(tool, &words), at));
            }
        }
        found.sort_by(|(named, score, at), (other_named, other_score, other)| {
            other_named.cmp(named).then_with(|| other_score.total_cmp(score)).then_with(|| self.by_name(*at, *other))
        });
        found.into_iter().take(limit).map(|(_, _, at)| at).collect()
    }

    fn by_name(&self, one: usize, other: usize) -> Ordering {
        self.tools[one].name.cmp(&self.tools[other].name).then(one.cmp(&other))
    }

    /// Returns the weight of a word that `n` tools have; rare words count more.
    fn rarity(&self, n: usize) -> f64 {
        let n = float(n);
        ((float(self.tools.len()) - n + 0.5) / (n + 0.5)).ln_1p()
    }

    fn score(&self, tool: &IndexedTool, words: &[(String, f64)]) -> f64 {
        let norm = K1 * (1.0 - B + B * tool.length / self.average_length);
        let of_word = |(stem, rarity): &(String, f64)| {
            let n = tool.mentions.get(stem).copied().unwrap_or_default();
            let in_name = if tool.of_name.contains(stem) { IN_NAME } else { 0.0 };
            rarity * (in_name + n * (K1 + 1.0) / (n + norm))
        };
        words.iter().map(of_word).sum()
    }
}

/// Converts a count, of which no more than 2^53 are possible in memory.
#[expect(clippy::cast_precision_loss, reason = "counts of tools and words are small")]
fn float(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the names of the best hits among tools given as name, description and parameter.
    fn found<'a>(tools: &[(&'a str, &str, &str)], query: &str) -> Vec<&'a str> {
        let parameters: Vec<[&str; 1]> = tools.iter().map(|(_, _, parameter)| [*parameter]).collect();
        let texts = tools.iter().zip(&parameters);
        let index = ToolIndex::new(texts.map(|((name, description, _), parameters)| SearchText {
            name,
            description,
            parameters,
        }));
        index.search(query, 20).into_iter().map(|at| tools[at].0).collect()
    }

    #[test]
    fn forms_of_words_match() {
        let tools =
            [("file_searching", "Looks through documents", "text"), ("weather", "Returns the forecast", "city")];
        assert_eq!(found(&tools, "search files"), ["file_searching"]);
        assert_eq!(found(&tools, "forecasts for cities"), ["weather"]);
        assert_eq!(found(&tools, "nothing like it"), [""; 0]);
    }

    #[test]
    fn a_word_in_the_name_counts_more_than_any_number_of_mentions() {
        let mentions = "mail ".repeat(500);
        let tools = [("archive", mentions.as_str(), "mail"), ("mail_send", "Sends something to somebody", "to")];
        assert_eq!(found(&tools, "mail"), ["mail_send", "archive"]);
        assert_eq!(found(&tools, "archive"), ["archive"]);
    }

    #[test]
    fn a_query_that_is_a_name_finds_it_first() {
        let tools = [("mail_mail_list", "mail list", "mail"), ("mail", "Everything", "x"), ("do", "Does it", "x")];
        assert_eq!(found(&tools, "Mail")[0], "mail");
        assert_eq!(found(&tools, "do")[0], "do");
    }

    #[test]
    fn every_script_is_searched() {
        let tools = [
            ("weather_jp", "今日の天気予報を返します", "都市"),
            ("notes", "メモを保存します", "本文"),
            ("погода", "Возвращает прогноз", "город"),
        ];
        assert_eq!(found(&tools, "天気"), ["weather_jp"]);
        assert_eq!(found(&tools, "保存")[0], "notes");
        assert_eq!(found(&tools, "ПОГОДА"), ["погода"]);
        assert_eq!(found(&tools, "都市"), ["weather_jp"]);
    }

    #[test]
    fn equal_tools_are_sorted_by_name() {
        let tools = [("c_run", "Runs", "x"), ("a_run", "Runs", "x"), ("b_run", "Runs", "x")];
        assert_eq!(found(&tools, "run"), ["a_run", "b_run", "c_run"]);
    }

    #[test]
    fn empty_and_huge_queries_are_answered() {
        let tools = [("alpha", "first", "x"), ("beta", "second", "x")];
        assert_eq!(found(&tools, ""), [""; 0]);
        assert_eq!(found(&tools, &format!("alpha {}", "beta ".repeat(200_000)))[0], "alpha");
        assert_eq!(found(&tools, &"é".repeat(500_000)), [""; 0]);
        assert_eq!(found(&[], "alpha"), [""; 0]);
    }

    proptest! {
        #[test]
        fn the_order_of_the_tools_does_not_matter(
            names in proptest::collection::btree_set("[a-c]{1,3}(_[a-c]{1,2})?", 1..12), query in "[a-c ]{0,8}",
        ) {
            let texts: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), &name[..1])).collect();
            let search = |texts: &[(&str, &str)]| -> Vec<String> {
                let index = ToolIndex::new(texts.iter().map(|(name, description)| SearchText {
                    name, description, parameters: &[],
                }));
                index.search(&query, 5).into_iter().map(|at| texts[at].0.to_owned()).collect()
            };
            let reversed: Vec<(&str, &str)> = texts.iter().rev().copied().collect();
            prop_assert_eq!(search(&texts), search(&reversed));
        }
    }
}

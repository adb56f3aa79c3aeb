//! Searching sessions by their text.
//!
//! A query is a list of words, each matched as letters in order, and of `"phrases"`, each matched literally; or `re:` and a regular
//! expression. All parts must match in a session's id, name, texts and working directory.

use pinch_stdx::text::{fuzzy, utf16_len};
use regex::{Regex, RegexBuilder};

use super::SessionSummary;

/// Maximum bytes of a compiled expression.
const MAX_PATTERN: usize = 1 << 20;

/// A search query.
#[derive(Clone, Debug)]
pub enum SearchQuery {
    /// All of these must match; an empty list matches every session.
    Tokens(Vec<SearchToken>),
    /// A case-insensitive regular expression.
    Regex(Pattern),
    /// An invalid regular expression and its error. Matches nothing.
    Broken(String),
}

/// One part of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchToken {
    /// Letters in this order, with anything in between.
    Fuzzy(String),
    /// These words literally, ignoring case and whitespace.
    Phrase(String),
}

/// A regular expression.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// Returns the source of the expression.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// The order of search results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SortMode {
    /// As given.
    #[default]
    Recent,
    /// Best match first; ties are ordered by most recent change.
    Relevance,
}

/// Which sessions to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameFilter {
    /// All sessions.
    #[default]
    All,
    /// Only sessions with a name.
    Named,
}

/// Returns the sessions that match a query. An empty query matches all and keeps their order; an invalid one matches none.
pub fn search(
    mut sessions: Vec<SessionSummary>,
    query: &str,
    sort: SortMode,
    names: NameFilter,
) -> Vec<SessionSummary> {
    if names == NameFilter::Named {
        sessions.retain(|session| session.name.as_deref().is_some_and(|name| !name.trim().is_empty()));
    }
    if query.trim().is_empty() {
        return sessions;
    }
    let query = SearchQuery::parse(query);
    let mut found: Vec<(f64, SessionSummary)> =
        sessions.into_iter().filter_map(|session| Some((query.rank(&session)?, session))).collect();
    if sort == SortMode::Relevance {
        found.sort_by(|(a, one), (b, other)| a.total_cmp(b).then(other.modified.cmp(&one.modified)));
    }
    found.into_iter().map(|(_, session)| session).collect()
}

impl SearchQuery {
    /// Parses a query. If a quote is not closed, the text is split at whitespace, quotes included.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        match text.strip_prefix("re:").map(str::trim) {
            None => Self::Tokens(tokens(text)),
            Some("") => Self::Broken("empty regular expression".to_owned()),
            Some(pattern) => match RegexBuilder::new(pattern).case_insensitive(true).size_limit(MAX_PATTERN).build() {
                Ok(regex) => Self::Regex(Pattern(regex)),
                Err(error) => Self::Broken(error.to_string()),
            },
        }
    }

    /// Scores how well a session matches; lower is better. Returns `None` if it does not match.
    pub fn rank(&self, session: &SessionSummary) -> Option<f64> {
        let name = session.name.as_deref().unwrap_or_default();
        let text = format!("{} {name} {} {}", session.id, session.search_text, session.cwd);
        match self {
            Self::Tokens(tokens) => {
                let lower = text.to_lowercase();
                let folded = tokens.iter().any(|token| matches!(token, SearchToken::Phrase(_))).then(|| folded(&lower));
                tokens.iter().try_fold(0.0, |sum, token| {
                    Some(
                        sum + match token {
                            SearchToken::Fuzzy(word) => fuzzy::rank_word(word, &lower)?,
                            SearchToken::Phrase(phrase) => {
                                let text = folded.as_deref().unwrap_or_default();
                                of_place(text, text.find(&self::folded(&phrase.to_lowercase()))?)
                            }
                        },
                    )
                })
            }
            Self::Regex(pattern) => pattern.0.find(&text).map(|found| of_place(&text, found.start())),
            Self::Broken(_) => None,
        }
    }
}

/// Scores the byte offset of a match; earlier is better.
fn of_place(text: &str, at: usize) -> f64 {
    0.1 * utf16_len(&text[..at]) as f64
}

fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn tokens(text: &str) -> Vec<SearchToken> {
    if text.matches('"').count() % 2 == 1 {
        return text.split_whitespace().map(|word| SearchToken::Fuzzy(word.to_owned())).collect();
    }
    let mut tokens = Vec::new();
    for (n, part) in text.split('"').enumerate() {
        if n % 2 == 0 {
            tokens.extend(part.split_whitespace().map(|word| SearchToken::Fuzzy(word.to_owned())));
        } else if !part.trim().is_empty() {
            tokens.push(SearchToken::Phrase(part.trim().to_owned()));
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, name: Option<&str>, text: &str, modified: i64) -> SessionSummary {
        SessionSummary {
            path: id.into(),
            id: id.into(),
            cwd: "/w".to_owned(),
            name: name.map(str::to_owned),
            parent_session: None,
            created: None,
            modified,
            file_modified: 0,
            message_count: 1,
            first_message: text.to_owned(),
            search_text: text.into(),
        }
    }

    fn sessions() -> Vec<SessionSummary> {
        vec![
            session("1", None, "please fix the  Parser\nof nodes", 30),
            session("2", Some("release"), "write the release notes", 20),
            session("3", Some("parser"), "the parser is slow", 10),
        ]
    }

    #[track_caller]
    fn check(query: &str, sort: SortMode, names: NameFilter, expected: &[&str]) {
        let found = search(sessions(), query, sort, names);
        let ids: Vec<_> = found.iter().map(|session| session.id.as_str()).collect();
        assert_eq!(ids, expected, "{query}");
    }

    #[test]
    fn every_token_must_match() {
        let check = |query, expected: &[&str]| check(query, SortMode::Recent, NameFilter::All, expected);
        check("", &["1", "2", "3"]);
        check("parser", &["1", "3"]);
        check("prsr", &["1", "3"]);
        check("parser nodes", &["1"]);
        check("\"the parser\"", &["1", "3"]);
        check("\"parser of  NODES\"", &["1"]);
        check("\"parser nodes\"", &[]);
        check("re:fix.*parser", &["1"]);
        check("re:(", &[]);
        check("re:", &[]);
        check("\"the", &[]);
        check("/w", &["1", "2", "3"]);
    }

    #[test]
    fn the_best_match_comes_first_and_ties_are_ordered_by_change() {
        check("\"the parser\"", SortMode::Relevance, NameFilter::All, &["3", "1"]);
        check("re:/w$", SortMode::Relevance, NameFilter::All, &["3", "2", "1"]);
        let same = vec![session("a", None, "x", 1), session("b", None, "x", 2)];
        let found = search(same, "\"x\"", SortMode::Relevance, NameFilter::All);
        assert_eq!(found[0].id, "b");
    }

    #[test]
    fn the_name_filter_keeps_only_named_sessions() {
        check("", SortMode::Recent, NameFilter::Named, &["2", "3"]);
        check("parser", SortMode::Relevance, NameFilter::Named, &["3"]);
    }
}

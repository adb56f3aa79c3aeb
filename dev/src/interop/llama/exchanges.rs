//! Recorded requests of a conversation and their responses, and the laws they must follow.

use std::sync::LazyLock;

use anyhow::{Context, bail, ensure};
use pinch_testing::server::{Exchange, Recorded};
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Marks that tell Anthropic's servers what to cache. They move to the newest message with every request.
static CACHE_MARK: LazyLock<Result<Regex, regex::Error>> =
    LazyLock::new(|| Regex::new(r#",?"cache_control":\{[^{}]*\}"#));

/// Returns whether a request is a turn of the conversation, which has tools; a request for a summary has none.
pub(super) fn is_turn(request: &Recorded) -> bool {
    serde_json::from_slice::<BodyParts<'_>>(&request.body).is_ok_and(|parts| parts.tools.is_some())
}

/// The parts of a request body that a server caches, as bytes.
#[derive(Deserialize)]
struct BodyParts<'b> {
    #[serde(borrow)]
    system: Option<&'b RawValue>,
    #[serde(borrow)]
    instructions: Option<&'b RawValue>,
    #[serde(borrow)]
    tools: Option<&'b RawValue>,
    #[serde(borrow, alias = "input")]
    messages: Vec<&'b RawValue>,
}

/// The prompt of a request as text: what precedes the messages, then one text for each message.
#[derive(Debug)]
struct PromptText(Vec<String>);

impl PromptText {
    fn of(request: &Recorded) -> anyhow::Result<Self> {
        let parts: BodyParts<'_> = serde_json::from_slice(&request.body).context("a request without messages")?;
        let mark = CACHE_MARK.as_ref().map_err(Clone::clone)?;
        let fixed = [parts.system, parts.instructions, parts.tools].map(|part| part.map_or("", RawValue::get)).concat();
        let messages = parts.messages.iter().map(|message| message.get());
        let all = std::iter::once(fixed.as_str()).chain(messages);
        Ok(Self(all.map(|part| mark.replace_all(part, "").into_owned()).collect()))
    }

    /// Returns the first part that differs, if another prompt does not begin with this one. The last message may get further content:
    /// consecutive messages of the user are sent as one.
    fn changed_in(&self, next: &Self) -> Option<usize> {
        let changed = (0..self.0.len()).find(|nth| self.0.get(*nth) != next.0.get(*nth))?;
        let grown = self.0.get(changed).zip(next.0.get(changed)).is_some_and(|(old, new)| {
            old.strip_suffix("]}").is_some_and(|old| new.strip_prefix(old).is_some_and(|rest| rest.starts_with(',')))
        });
        (!grown || changed + 1 < self.0.len()).then_some(changed)
    }

    fn contains(&self, text: &str) -> bool {
        // Escaped in the body, as in a JSON text.
        let strings = self.0.iter().skip(1).filter_map(|part| serde_json::from_str::<Value>(part).ok());
        strings.into_iter().any(|value| any_string(&value, &|string| string.contains(text)))
    }
}

fn any_string(value: &Value, matches: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(string) => matches(string),
        Value::Array(items) => items.iter().any(|item| any_string(item, matches)),
        Value::Object(members) => members.values().any(|member| any_string(member, matches)),
        _ => false,
    }
}

/// A stored compaction.
#[derive(Clone, Debug)]
pub(super) struct StoredSummary {
    pub(super) text: String,
    /// Number of requests before it was stored.
    pub(super) n_requests: usize,
}

/// Checks that the first turn after each compaction contains its summary; returns how many were found. Only the last compaction may have no
/// turn after it.
pub(super) fn check_summaries(exchanges: &[Exchange], summaries: &[StoredSummary]) -> anyhow::Result<usize> {
    let mut n_found = 0;
    for (nth, summary) in summaries.iter().enumerate() {
        let after = exchanges.iter().skip(summary.n_requests).find(|exchange| is_turn(&exchange.request));
        match after {
            Some(turn) => {
                let prompt = PromptText::of(&turn.request)?;
                ensure!(prompt.contains(&summary.text), "summary {} is not in the next request", nth + 1);
                n_found += 1;
            }
            None if nth + 1 == summaries.len() => {}
            None => bail!("no turn after compaction {}", nth + 1),
        }
    }
    Ok(n_found)
}

/// Checks that each turn begins with the prompt of the previous one, unless the conversation was compacted in between; returns how many do.
pub(super) fn check_prefixes(exchanges: &[Exchange], summaries: &[StoredSummary]) -> anyhow::Result<usize> {
    let mut previous: Option<(usize, PromptText)> = None;
    let mut n_same = 0;
    for (nth, exchange) in exchanges.iter().enumerate().filter(|(_, exchange)| is_turn(&exchange.request)) {
        let prompt = PromptText::of(&exchange.request)?;
        if let Some((before, of_before)) = previous
            && !summaries.iter().any(|summary| (before + 1..=nth).contains(&summary.n_requests))
        {
            if let Some(part) = of_before.changed_in(&prompt) {
                let text = |prompt: &PromptText| prompt.0.get(part).map_or_else(|| "nothing".to_owned(), Clone::clone);
                let (old, new) = (text(&of_before), text(&prompt));
                bail!("request {nth} changes part {part} of the prompt of request {before}:\n  {old}\n  {new}");
            }
            n_same += 1;
        }
        previous = Some((nth, prompt));
    }
    Ok(n_same)
}

/// Tokens that the server reported for one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportedTokens {
    /// Tokens of the prompt, including those in the cache.
    pub(super) prompt: u64,
    /// Tokens of the prompt that were in the cache.
    pub(super) cached: u64,
    /// Tokens of the answer.
    pub(super) answer: u64,
}

impl ReportedTokens {
    /// Reads the events of a response, in any of the formats. Later events repeat or complete earlier ones.
    pub(super) fn of(exchange: &Exchange) -> Self {
        let body = String::from_utf8_lossy(&exchange.body);
        let mut tokens = Self::default();
        let mut uncached = None;
        for event in body.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok()) {
            let places = [&event["usage"], &event["message"]["usage"], &event["response"]["usage"]];
            for usage in places.into_iter().filter(|usage| usage.is_object()) {
                let count = |name: &str| usage[name].as_u64();
                let details = |name: &str| usage[name]["cached_tokens"].as_u64();
                // Anthropic's format counts cached tokens separately.
                if let Some(cached) = count("cache_read_input_tokens") {
                    tokens.cached = cached;
                    uncached = count("input_tokens").or(uncached);
                } else if let Some(prompt) = count("prompt_tokens").or_else(|| count("input_tokens")) {
                    tokens.prompt = prompt;
                    let cached = details("prompt_tokens_details").or_else(|| details("input_tokens_details"));
                    tokens.cached = cached.unwrap_or(0);
                }
                let answer = count("completion_tokens").or_else(|| count("output_tokens"));
                tokens.answer = tokens.answer.max(answer.unwrap_or(0));
            }
        }
        if let Some(uncached) = uncached {
            tokens.prompt = uncached + tokens.cached;
        }
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(body: &str, response: &str) -> Exchange {
        let request = Recorded { method: "POST".into(), path: "/".into(), headers: Vec::new(), body: body.into() };
        Exchange { request, status: 200, body: response.into() }
    }

    fn turn(messages: &str) -> Exchange {
        exchange(&format!(r#"{{"tools":[],"messages":[{messages}]}}"#), "")
    }

    fn summary(text: &str, n_requests: usize) -> StoredSummary {
        StoredSummary { text: text.to_owned(), n_requests }
    }

    #[test]
    fn only_a_compaction_may_change_the_prefix() {
        let grown = [turn(r#"{"a":1}"#), turn(r#"{"a":1},{"b":2}"#)];
        assert_eq!(check_prefixes(&grown, &[]).unwrap(), 1);
        let respaced = [turn(r#"{"a":1}"#), turn(r#"{"a": 1},{"b":2}"#)];
        assert!(check_prefixes(&respaced, &[]).is_err());
        let shorter = [turn(r#"{"a":1},{"b":2}"#), turn(r#"{"a":1}"#)];
        assert!(check_prefixes(&shorter, &[]).is_err());
        assert_eq!(check_prefixes(&shorter, &[summary("s", 1)]).unwrap(), 0);
        let merged = [turn(r#"{"c":[1]},{"c":[2]}"#), turn(r#"{"c":[1]},{"c":[2,3]},{"a":4}"#)];
        assert_eq!(check_prefixes(&merged, &[]).unwrap(), 1);
        let earlier = [turn(r#"{"c":[1]},{"c":[2]}"#), turn(r#"{"c":[1,3]},{"c":[2]}"#)];
        assert!(check_prefixes(&earlier, &[]).is_err());
        let marked = r#"{"a":1,"cache_control":{"type":"ephemeral"}}"#;
        assert_eq!(check_prefixes(&[turn(marked), turn(r#"{"a":1},{"b":2}"#)], &[]).unwrap(), 1);
    }

    #[test]
    fn requests_for_summaries_do_not_belong_to_the_conversation() {
        let asked = exchange(r#"{"messages":[{"c":3}]}"#, "");
        let all = [turn(r#"{"a":1}"#), asked, turn(r#"{"a":1},{"b":2}"#)];
        assert_eq!(check_prefixes(&all, &[]).unwrap(), 1);
    }

    #[test]
    fn the_first_turn_after_a_compaction_contains_the_summary() {
        let all = [turn(r#"{"a":1}"#), turn(r#"{"content":[{"text":"<summary>\nline \"one\"\n</summary>"}]}"#)];
        assert_eq!(check_summaries(&all, &[summary("line \"one\"", 1)]).unwrap(), 1);
        assert!(check_summaries(&all, &[summary("line two", 1)]).is_err());
        assert!(check_summaries(&all, &[summary("line \"one\"", 0)]).is_err(), "the next one, not a later one");
        assert_eq!(check_summaries(&all, &[summary("x", 2)]).unwrap(), 0, "no turn follows");
    }

    #[test]
    fn tokens_are_read_in_each_format() {
        let tokens = |response: &str| ReportedTokens::of(&exchange("", response));
        let expected = ReportedTokens { prompt: 30, cached: 20, answer: 5 };
        let completions = r#"data: {"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":20}}}"#;
        assert_eq!(tokens(completions), expected);
        let anthropic = concat!(
            r#"data: {"message":{"usage":{"input_tokens":10,"cache_read_input_tokens":20,"output_tokens":0}}}"#,
            "\n\n",
            r#"data: {"type":"message_delta","usage":{"output_tokens":5}}"#,
        );
        assert_eq!(tokens(anthropic), expected);
        let responses = r#"data: {"response":{"usage":{"input_tokens":30,"output_tokens":5,"input_tokens_details":{"cached_tokens":20}}}}"#;
        assert_eq!(tokens(responses), expected);
    }
}

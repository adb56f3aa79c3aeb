//! Checks that a summary has its sections, contains the required identifiers verbatim, and reflects the newest request.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use pinch_llm::message::Message;
use regex::Regex;

use crate::config::compaction::IdentifierPolicy;

/// Headings that a summary must have, each on its own line.
pub(crate) const HEADINGS: [&str; 5] =
    ["## Decisions", "## Open TODOs", "## Constraints/Rules", "## Pending user asks", "## Exact identifiers"];

/// Number of newest messages whose identifiers are checked.
const RECENT: usize = 10;
/// Maximum number of identifiers checked.
const MAX_IDENTIFIERS: usize = 12;
/// Maximum number of words of the newest request that are checked.
const MAX_WORDS: usize = 12;

/// Hashes, addresses, paths, hosts with a port, and long numbers.
#[expect(clippy::unwrap_used, reason = "the pattern is constant, and a test uses it")]
static IDENTIFIER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x) https?://[^\s<>()\x22'`]+ | (?:/[\w.@+-]+){2,} | \b[\w-]+(?:\.[\w-]+)*:\d{2,5}\b | \b[0-9a-fA-F]{8,}\b | \b\d{6,}\b",
    )
    .unwrap()
});

/// Words that carry no meaning in a request.
const STOP_WORDS: [&str; 32] = [
    "the", "a", "an", "and", "or", "but", "to", "of", "in", "on", "at", "for", "with", "is", "are", "was", "be", "it",
    "this", "that", "please", "can", "could", "you", "me", "my", "we", "do", "does", "what", "how", "i",
];

/// Returns what a summary of these messages lacks, as feedback for the model; empty if it lacks nothing.
pub(crate) fn lacks(summary: &str, messages: &[Arc<Message>], identifiers: &IdentifierPolicy) -> Vec<String> {
    let mut lacks: Vec<String> = Vec::new();
    let lines: HashSet<&str> = summary.lines().map(str::trim).collect();
    for heading in HEADINGS.iter().filter(|heading| !lines.contains(**heading)) {
        lacks.push(format!("The heading \"{heading}\" is missing."));
    }
    let lower = summary.to_lowercase();
    if *identifiers == IdentifierPolicy::Strict {
        for identifier in identifiers_of(messages).iter().filter(|text| !lower.contains(&text.to_lowercase())) {
            lacks.push(format!("The identifier {identifier} is missing."));
        }
    }
    let words = words_of_request(messages);
    let wanted = if words.len() < 3 { words.len().min(1) } else { 2 };
    if words.iter().filter(|word| lower.contains(word.as_str())).count() < wanted {
        lacks.push("The newest request of the user is not reflected.".to_owned());
    }
    lacks
}

fn identifiers_of(messages: &[Arc<Message>]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for message in messages.iter().rev().take(RECENT).rev() {
        let text = message.text("\n");
        for matched in IDENTIFIER.find_iter(&text) {
            let matched = matched.as_str().trim_end_matches(['.', ',', ';', ':', ')', ']']);
            if found.len() < MAX_IDENTIFIERS && !found.iter().any(|known| known == matched) {
                found.push(matched.to_owned());
            }
        }
    }
    found
}

fn words_of_request(messages: &[Arc<Message>]) -> Vec<String> {
    let newest = messages.iter().rev().find(|message| matches!(***message, Message::User(_)));
    let text = newest.map(|message| message.text("\n").to_lowercase()).unwrap_or_default();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 1);
    words.filter(|word| !STOP_WORDS.contains(word)).take(MAX_WORDS).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages_with(text: &str) -> Vec<Arc<Message>> {
        vec![Arc::new(Message::user(text, 0))]
    }

    #[test]
    fn a_summary_lacks_headings_identifiers_and_the_request() {
        let complete = HEADINGS.join("\n");
        let strict = IdentifierPolicy::Strict;
        assert_eq!(lacks(&complete, &[], &strict), Vec::<String>::new());
        assert_eq!(lacks("nothing", &[], &strict).len(), HEADINGS.len());
        let asked = messages_with(
            "Please restart the nginx proxy at 10.0.0.5:8443, see /etc/nginx/site.conf and commit DEADBEEF01.",
        );
        let found = lacks(&complete, &asked, &strict);
        let named = ["10.0.0.5:8443", "/etc/nginx/site.conf", "DEADBEEF01", "newest request"];
        assert!(named.iter().all(|name| found.iter().any(|text| text.contains(name))), "{found:?}");
        let good = format!("{complete}\nrestart nginx: 10.0.0.5:8443, /etc/nginx/site.conf, deadbeef01");
        assert_eq!(lacks(&good, &asked, &strict), Vec::<String>::new());
        assert_eq!(lacks(&format!("{complete}\nrestart proxy"), &asked, &IdentifierPolicy::Off).len(), 0);
    }
}

//! Ids of agents.

use std::fmt;
use std::ops::Deref;

/// Id of the default agent.
pub const DEFAULT_AGENT_ID: &str = "main";

const MAX_CHARS: usize = 64;

/// Id of an agent: lower-case letters, digits, `_` and `-`, at most 64 characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentId(String);

impl AgentId {
    /// Normalises a text to an id: lower case, with all other characters replaced by dashes; `main` if nothing is left.
    pub fn normalise(text: &str) -> Self {
        let text = text.trim().to_lowercase();
        let mut id = String::new();
        for c in text.chars() {
            if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                id.push(c);
            } else if !id.ends_with('-') {
                id.push('-');
            }
        }
        let id: String = id.trim_matches('-').chars().take(MAX_CHARS).collect();
        Self(if id.is_empty() { DEFAULT_AGENT_ID.into() } else { id })
    }

    /// Returns the text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for AgentId {
    fn default() -> Self {
        Self(DEFAULT_AGENT_ID.into())
    }
}

impl Deref for AgentId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for AgentId {
    /// Normalises the text.
    fn from(text: &str) -> Self {
        Self::normalise(text)
    }
}

impl From<String> for AgentId {
    /// Normalises the text.
    fn from(text: String) -> Self {
        Self::normalise(&text)
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalised() {
        for (text, expected) in [("Ops_1", "ops_1"), (" My Agent! ", "my-agent"), ("***", "main"), ("", "main")] {
            assert_eq!(AgentId::normalise(text).as_str(), expected, "{text}");
        }
    }
}

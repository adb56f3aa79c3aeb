//! Describes what fills a model's window, in Markdown.

use std::fmt::Write as _;

use pinch_embed::prompt::report::PromptReport;

/// Approximate number of characters per token.
const CHARS_PER_TOKEN: usize = 4;
/// Maximum number of tools and skills listed individually.
const MAX_LISTED: usize = 10;

/// Describes the conversation, and the prompt of its last run in this chat.
pub(super) fn describe(prompt: Option<&PromptReport>, tokens: Option<u64>, window: Option<u64>) -> String {
    let mut text = String::from("**Context**\n\n");
    let mut line = |line: String| {
        let indent = line.len() - line.trim_start().len();
        let _infallible = writeln!(text, "{:indent$}- {}", "", line.trim_start());
    };
    line(match (tokens, window) {
        (Some(tokens), Some(window)) => {
            format!("Conversation: {tokens} of {window} tokens ({} %)", tokens * 100 / window.max(1))
        }
        (Some(tokens), None) => format!("Conversation: {tokens} tokens"),
        (None, Some(window)) => format!("Conversation: unknown, of {window} tokens"),
        (None, None) => "Conversation: unknown".to_owned(),
    });
    let Some(prompt) = prompt else {
        line("Prompt: known after the first message of this chat".to_owned());
        return text;
    };
    let schemas: usize = prompt.tools.iter().map(|tool| tool.schema_chars).sum();
    line(format!("System prompt: {}", size(prompt.chars)));
    line(format!("Files of the workspace: {}", size(prompt.project_context_chars)));
    for file in prompt.files.iter().filter(|file| !file.is_missing) {
        let cut = if file.is_truncated { ", cut" } else { "" };
        line(format!("    `{}`: {}{cut}", file.name, size(file.text.chars().count())));
    }
    line(format!("Skills: {} ({})", size(prompt.skills_chars), prompt.skills.len()));
    largest(prompt.skills.iter().map(|(name, chars)| (name.as_str(), *chars)), &mut line);
    line(format!("List of tools: {} ({})", size(prompt.tool_list_chars), prompt.tools.len()));
    line(format!("Schemas of tools: {}", size(schemas)));
    largest(prompt.tools.iter().map(|tool| (tool.name.as_str(), tool.schema_chars)), &mut line);
    text
}

/// Lists the largest parts, and the number of others.
fn largest<'a>(parts: impl Iterator<Item = (&'a str, usize)>, line: &mut impl FnMut(String)) {
    let mut parts: Vec<_> = parts.collect();
    parts.sort_by_key(|(name, chars)| (std::cmp::Reverse(*chars), *name));
    for (name, chars) in parts.iter().take(MAX_LISTED) {
        line(format!("    `{name}`: {}", size(*chars)));
    }
    if let Some(n_more) = parts.len().checked_sub(MAX_LISTED).filter(|n_more| *n_more > 0) {
        line(format!("    {n_more} more"));
    }
}

fn size(chars: usize) -> String {
    format!("about {} tokens", chars.div_ceil(CHARS_PER_TOKEN))
}

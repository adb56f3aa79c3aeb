//! The directory of deferred tools in the system prompt.
//!
//! Only tools that the host or this project provides are in it. A name or a description from elsewhere would be text of a stranger in the
//! part of the prompt that a model trusts most.

use pinch_stdx::text::shortened;
use pinch_tools::tool_search::{TOOL_CALL, TOOL_DESCRIBE, TOOL_SEARCH};

use super::params::{SystemPromptParams, ToolSummary};

/// Heading of the section.
pub(super) const HEADING: &str = "## Tool Directory";
/// Maximum characters of the section.
const MAX_CHARS: usize = 18_000;
/// Characters reserved for the heading and the last line.
const RESERVED: usize = 120;
/// Maximum length of a description, in bytes.
const MAX_SUMMARY: usize = 160;

/// Returns the text of the section; empty if no tool is deferred.
pub(super) fn directory(params: &SystemPromptParams) -> String {
    let Some(deferred) = &params.deferred_tools else { return String::new() };
    let is_offered = |name: &str| params.tools.iter().flatten().any(|tool| tool.name == name);
    let searches = is_offered(TOOL_SEARCH);
    let mut text = format!("More tools are called with {TOOL_CALL}, not by their names.");
    if is_offered(TOOL_DESCRIBE) {
        text.push_str(&format!(" {TOOL_DESCRIBE} returns their parameters."));
    }
    if searches {
        text.push_str(&format!(" {TOOL_SEARCH} also finds tools that are not listed here."));
    }
    let mut tools: Vec<&ToolSummary> = deferred.iter().collect();
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    let mut room = MAX_CHARS - RESERVED - text.chars().count();
    for (at, tool) in tools.iter().enumerate() {
        let line = line(tool);
        let n = line.chars().count();
        if n > room {
            let left = tools.len() - at;
            let way = if searches { format!("; find them with {TOOL_SEARCH}") } else { String::new() };
            text.push_str(&format!("\n({left} more{way})"));
            break;
        }
        room -= n;
        text.push_str(&line);
    }
    text
}

fn line(tool: &ToolSummary) -> String {
    let first = tool.summary.as_deref().and_then(|text| text.lines().map(str::trim).find(|line| !line.is_empty()));
    match first {
        Some(summary) => format!("\n- {}: {}", tool.name, shortened(summary, MAX_SUMMARY)),
        None => format!("\n- {}", tool.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(tools: &[&str], deferred: impl Into<Option<Vec<ToolSummary>>>) -> String {
        directory(&SystemPromptParams {
            tools: Some(tools.iter().map(|name| ToolSummary::named(*name)).collect()),
            deferred_tools: deferred.into(),
            ..SystemPromptParams::default()
        })
    }

    #[test]
    fn deferred_tools_are_sorted_with_one_line_each() {
        let summary = Some("\n Returns the forecast.\nFor a city.".to_owned());
        let deferred = vec![ToolSummary { name: "weather".into(), summary }, ToolSummary::named("mail")];
        let expect = "More tools are called with tool_call, not by their names. tool_describe returns their parameters. \
                      tool_search also finds tools that are not listed here.\n- mail\n- weather: Returns the forecast.";
        assert_eq!(text(&["read", "tool_search", "tool_describe", "tool_call"], deferred.clone()), expect);
        let expect =
            "More tools are called with tool_call, not by their names.\n- mail\n- weather: Returns the forecast.";
        assert_eq!(text(&["tool_call"], deferred), expect);
        // A tool of the host may have the name if none is deferred.
        assert_eq!(text(&["read", "tool_call"], None), "");
    }

    #[test]
    fn a_long_directory_is_cut_between_tools_and_says_so() {
        let tool = |n: usize| ToolSummary { name: format!("tool_{n:03}"), summary: Some("é".repeat(100)) };
        let text = text(&["tool_search", "tool_call"], (0..400).rev().map(tool).collect::<Vec<_>>());
        let n = text.lines().filter(|line| line.starts_with("- tool_")).count();
        assert!(HEADING.len() + 1 + text.chars().count() <= MAX_CHARS && n > 150, "{n}");
        assert!(text.ends_with(&format!("({} more; find them with tool_search)", 400 - n)));
        assert!(text.lines().nth(1).unwrap().starts_with("- tool_000: "));
    }
}

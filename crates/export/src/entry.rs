//! One entry as an article of the page.

use std::io;
use std::sync::Arc;

use pinch_llm::message::{
    AssistantMessage, Block, Content, Message, StopReason, SystemMessage, Thinking, ToolResult, Usage,
};
use pinch_stdx::text::strip_ansi;
use serde_json::{Map, Value};

use super::markdown::markdown;
use super::out::PageWriter;
use super::skill::SkillPrompt;
use super::words::{dollars, grouped, one_line};
use super::{images, syntax, tool};
use pinch_session::entry::{Entry, EntryBody};
use pinch_session::session_log::roles;

/// A tool result shown with its call: the index of its entry, and the entry.
pub(super) type ShownResult = (usize, Arc<Entry>);

/// Writes the content of an entry. `answers` are the results of its calls.
pub(super) fn body(out: &mut PageWriter<'_>, entry: &Entry, answers: &[ShownResult]) -> io::Result<()> {
    match &entry.body {
        EntryBody::Message(message) => of_message(out, message, answers),
        EntryBody::ThinkingLevelChange { thinking_level } => note(out, "Thinking level: ", thinking_level),
        EntryBody::ModelChange { provider, model_id } => note(out, "Model: ", &format!("{provider}/{model_id}")),
        EntryBody::Compaction(compaction) => {
            let before = format!("{} tokens before", grouped(compaction.tokens_before));
            summary(out, "Earlier messages were summarized", &before, &compaction.summary)?;
            match compaction.system_message.as_deref() {
                Some(Message::System(message)) => system(out, message),
                _ => Ok(()),
            }
        }
        EntryBody::BranchSummary(branch) => summary(out, "Summary of an abandoned branch", "", &branch.summary),
        EntryBody::Custom { custom_type, .. } => note(out, "Extension state: ", custom_type),
        EntryBody::CustomMessage(message) if message.display => {
            out.html("<p class=\"who\">")?;
            out.text(&message.custom_type)?;
            out.html("</p>")?;
            content(out, &message.content)
        }
        EntryBody::CustomMessage(message) => note(out, "Hidden message from an extension: ", &message.custom_type),
        EntryBody::Label { label: Some(label), .. } => note(out, "Label: ", label),
        EntryBody::Label { label: None, .. } => note(out, "Label removed", ""),
        EntryBody::SessionInfo { name } => note(out, "Session name: ", name),
        EntryBody::ContextEdit { replacement: None, .. } => {
            note(out, "From here on, an entry is hidden from the model", "")
        }
        EntryBody::ContextEdit { replacement: Some(replacement), .. } => {
            note(out, "From here on, the model sees this instead of an entry:", "")?;
            content(out, replacement)
        }
        EntryBody::Usage(usage) => {
            note(
                out,
                "Usage outside the conversation: ",
                &format!("{} ({}/{})", usage.kind, usage.provider, usage.model),
            )?;
            spent(out, &usage.usage)
        }
        EntryBody::Other(raw) => unknown(out, entry.body.type_name(), raw),
    }
}

fn of_message(out: &mut PageWriter<'_>, message: &Message, answers: &[ShownResult]) -> io::Result<()> {
    match message {
        Message::System(message) => system(out, message),
        Message::User(user) => user_message(out, &user.content),
        Message::Assistant(answer) => assistant(out, answer, answers),
        Message::ToolResult(result) => tool::result(out, result),
        Message::Other(other) => match other.role() {
            roles::BASH_EXECUTION => bash(out, &other.raw),
            roles::CUSTOM => content(out, &roles::custom_content(other)),
            role => unknown(out, role, &other.raw),
        },
    }
}

/// Writes a one-line note about an entry that is not a message.
fn note(out: &mut PageWriter<'_>, what: &'static str, text: &str) -> io::Result<()> {
    out.html("<p class=\"note\">")?;
    out.html(what)?;
    out.text(text)?;
    out.html("</p>")
}

fn unknown(out: &mut PageWriter<'_>, name: &str, raw: &Map<String, Value>) -> io::Result<()> {
    out.html("<details class=\"plain\"><summary>")?;
    out.text(if name.is_empty() { "(unknown)" } else { name })?;
    out.html("</summary>")?;
    tool::json(out, &Value::Object(raw.clone()))?;
    out.html("</details>")
}

fn summary(out: &mut PageWriter<'_>, what: &'static str, more: &str, text: &str) -> io::Result<()> {
    out.html("<details class=\"summary\"><summary>")?;
    out.html(what)?;
    if !more.is_empty() {
        out.html(" <span class=\"small\">")?;
        out.text(more)?;
        out.html("</span>")?;
    }
    out.html("</summary>")?;
    markdown(out, text)?;
    out.html("</details>")
}

/// Writes a user message, with the text of an embedded skill collapsed.
fn user_message(out: &mut PageWriter<'_>, message: &Content) -> io::Result<()> {
    let text = match message {
        Content::Text(text) => Some(text),
        Content::Blocks(blocks) => match &blocks[..] {
            [Block::Text(text)] => Some(&text.text),
            _ => None,
        },
    };
    let Some(skill) = text.and_then(|text| SkillPrompt::parse(text)) else { return content(out, message) };
    out.html("<details class=\"plain\"><summary>Skill <b>")?;
    out.text(skill.name)?;
    out.html("</b></summary>")?;
    markdown(out, skill.body)?;
    out.html("</details>")?;
    if skill.rest.is_empty() { Ok(()) } else { markdown(out, skill.rest) }
}

fn content(out: &mut PageWriter<'_>, content: &Content) -> io::Result<()> {
    match content {
        Content::Text(text) => markdown(out, text),
        Content::Blocks(list) => list.iter().try_for_each(|one| block(out, one)),
    }
}

/// Writes a block that is not a tool call.
fn block(out: &mut PageWriter<'_>, block: &Block) -> io::Result<()> {
    match block {
        Block::Text(text) if text.text.trim().is_empty() => Ok(()),
        Block::Text(text) => markdown(out, &text.text),
        Block::Image(image) => images::image(out, image),
        Block::Thinking(thinking) => thought(out, thinking),
        Block::ToolCall(call) => tool::call(out, call, None),
        Block::Other(block) => tool::json(out, &block.raw),
    }
}

fn thought(out: &mut PageWriter<'_>, thinking: &Thinking) -> io::Result<()> {
    if thinking.redacted {
        return out.html("<p class=\"gone\">[thinking hidden by the provider]</p>");
    }
    if thinking.thinking.trim().is_empty() {
        return Ok(());
    }
    out.html("<details class=\"thinking\"><summary>Thinking</summary>")?;
    markdown(out, &thinking.thinking)?;
    out.html("</details>")
}

fn assistant(out: &mut PageWriter<'_>, answer: &AssistantMessage, answers: &[ShownResult]) -> io::Result<()> {
    let mut answers = answers.iter().filter_map(|(at, entry)| Some((*at, result_of(entry)?))).collect::<Vec<_>>();
    for one in &answer.content {
        let Block::ToolCall(call) = &**one else {
            block(out, one)?;
            continue;
        };
        match answers.iter().position(|(_, result)| result.tool_call_id == call.id) {
            Some(found) => {
                let (at, result) = answers.remove(found);
                out.html("<div id=\"e")?;
                out.number(at)?;
                out.html("\">")?;
                tool::call(out, call, Some(result))?;
                out.html("</div>")?;
            }
            None => tool::call(out, call, None)?,
        }
    }
    let why = match answer.stop_reason {
        StopReason::Stop | StopReason::ToolUse | StopReason::Pending => None,
        StopReason::Error => Some("The answer failed. "),
        StopReason::Aborted => Some("The answer was cancelled. "),
        StopReason::Length => Some("The answer was truncated: the model reached its limit. "),
        StopReason::Deferred => Some("The answer was deferred. "),
    };
    if let Some(why) = why {
        out.html("<p class=\"error\">")?;
        out.html(why)?;
        out.text(answer.error_message.as_deref().unwrap_or_default())?;
        out.html("</p>")?;
    }
    spent(out, &answer.usage)
}

/// Returns the tool result in an entry.
pub(super) fn result_of(entry: &Entry) -> Option<&ToolResult> {
    match &**entry.body.as_message()? {
        Message::ToolResult(result) => Some(result),
        _ => None,
    }
}

/// Writes one line with tokens and cost.
fn spent(out: &mut PageWriter<'_>, usage: &Usage) -> io::Result<()> {
    if usage.is_zero() {
        return Ok(());
    }
    let mut parts = vec![format!("↑{} ↓{}", grouped(usage.input), grouped(usage.output))];
    if usage.cache_read > 0 || usage.cache_write > 0 {
        parts.push(format!("cache {} read, {} written", grouped(usage.cache_read), grouped(usage.cache_write)));
    }
    if usage.cost.total > 0.0 {
        parts.push(dollars(usage.cost.total));
    }
    out.html("<p class=\"spent\">")?;
    out.text(&parts.join(" · "))?;
    out.html("</p>")
}

fn system(out: &mut PageWriter<'_>, message: &SystemMessage) -> io::Result<()> {
    out.html("<details class=\"system\"><summary>System: prompt and tools</summary>")?;
    content(out, &message.content)?;
    for (name, text) in &message.sections {
        out.html("<p class=\"who\">")?;
        out.text(name)?;
        out.html("</p>")?;
        match text {
            Some(text) => markdown(out, text)?,
            None => out.html("<p class=\"gone\">[removed]</p>")?,
        }
    }
    for name in &message.tools_removed {
        note(out, "Tool removed: ", name)?;
    }
    for declared in &message.tools_added {
        out.html("<details class=\"plain\"><summary>Tool <b>")?;
        out.text(&declared.name)?;
        out.html("</b></summary>")?;
        markdown(out, &declared.description)?;
        tool::json(out, declared.parameters.raw())?;
        out.html("</details>")?;
    }
    out.html("</details>")
}

fn bash(out: &mut PageWriter<'_>, raw: &Map<String, Value>) -> io::Result<()> {
    let text = |name: &str| raw.get(name).and_then(Value::as_str).unwrap_or_default();
    let is = |name: &str| raw.get(name).and_then(Value::as_bool).unwrap_or(false);
    out.html("<details class=\"tool bash\"><summary><b>$</b> <code>")?;
    out.text(&one_line(text("command")))?;
    out.html("</code>")?;
    if is("excludeFromContext") {
        out.html(" <span class=\"small\">excluded from context</span>")?;
    }
    match raw.get("exitCode").and_then(Value::as_i64) {
        _ if is("cancelled") => out.html(" <span class=\"error\">cancelled</span>")?,
        Some(code) if code != 0 => {
            out.html(" <span class=\"error\">")?;
            out.text(&format!("exit code {code}"))?;
            out.html("</span>")?;
        }
        _ => {}
    }
    out.html("</summary><pre><code>")?;
    syntax::code(out, "sh", text("command"))?;
    out.html("</code></pre><pre class=\"output\"><code>")?;
    out.text(&strip_ansi(text("output")))?;
    out.html("</code></pre>")?;
    if is("truncated") {
        note(out, "Output truncated. Full output: ", text("fullOutputPath"))?;
    }
    out.html("</details>")
}

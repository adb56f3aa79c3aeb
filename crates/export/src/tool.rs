//! Tool calls and their results, collapsed.

use std::io;

use pinch_llm::message::{Block, Message, ToolCall, ToolResult};
use serde_json::{Map, Value};

use super::languages::of_path;
use super::out::PageWriter;
use super::words::one_line;
use super::{images, syntax};

/// Arguments that best describe a call, in order of preference.
const MAIN_ARGUMENTS: [&str; 9] =
    ["command", "path", "file_path", "pattern", "query", "url", "name", "prompt", "description"];

/// Describes a call in one line.
pub(super) fn main_argument(call: &ToolCall) -> String {
    let named = MAIN_ARGUMENTS.iter().find_map(|name| call.arguments.get(*name)?.as_str());
    let first = || call.arguments.values().find_map(Value::as_str);
    one_line(named.or_else(first).unwrap_or_default())
}

/// Returns the lengths of the pieces of code in a message's tool calls or result.
pub(super) fn lengths(message: &Message) -> Vec<usize> {
    let of_call = |call: &ToolCall| {
        let name = match call.name.as_str() {
            "bash" | "powershell" => "command",
            "write" => "content",
            _ => return 0,
        };
        call.arguments.get(name).and_then(Value::as_str).unwrap_or_default().len()
    };
    let mut lengths: Vec<usize> = match message {
        Message::Assistant(answer) => answer.tool_calls().map(of_call).collect(),
        Message::ToolResult(result) if result.tool_name == "read" => {
            result.content.iter().filter_map(Block::as_text).map(str::len).collect()
        }
        _ => Vec::new(),
    };
    lengths.retain(|length| *length > 0);
    lengths
}

/// Writes a call, with its result if known.
pub(super) fn call(out: &mut PageWriter<'_>, call: &ToolCall, result: Option<&ToolResult>) -> io::Result<()> {
    out.html(match result {
        None => "<details class=\"tool\">",
        Some(result) if result.is_error => "<details class=\"tool failed\">",
        Some(_) => "<details class=\"tool done\">",
    })?;
    out.html("<summary><b>")?;
    out.text(&call.name)?;
    out.html("</b> <code>")?;
    out.text(&main_argument(call))?;
    out.html("</code>")?;
    if let Some(result) = result {
        took(out, result)?;
    }
    out.html("</summary>")?;
    let diff = result.and_then(|result| result.details.as_ref()?.get("diff")?.as_str());
    arguments(out, call, diff)?;
    if let Some(error) = &call.arguments_error {
        out.html("<p class=\"error\">")?;
        out.text(error)?;
        out.html("</p>")?;
    }
    match result {
        Some(result) => output(out, result, path_of(call))?,
        None => out.html("<p class=\"gone\">[no result]</p>")?,
    }
    out.html("</details>")
}

/// Writes a result that is not shown with its call.
pub(super) fn result(out: &mut PageWriter<'_>, result: &ToolResult) -> io::Result<()> {
    out.html(if result.is_error { "<details class=\"tool failed\">" } else { "<details class=\"tool done\">" })?;
    out.html("<summary>Result of <b>")?;
    out.text(&result.tool_name)?;
    out.html("</b>")?;
    took(out, result)?;
    out.html("</summary>")?;
    if let Some(diff) = result.details.as_ref().and_then(|details| details.get("diff")?.as_str()) {
        diff_block(out, diff)?;
    }
    output(out, result, None)?;
    out.html("</details>")
}

/// Writes the duration of a call, and whether it failed.
fn took(out: &mut PageWriter<'_>, result: &ToolResult) -> io::Result<()> {
    if result.is_error {
        out.html(" <span class=\"error\">failed</span>")?;
    }
    if let Some(ms) = result.duration_ms.filter(|ms| *ms >= 1000) {
        out.html(" <span class=\"small\">")?;
        out.text(&format!("{:.1} s", ms as f64 / 1000.0))?;
        out.html("</span>")?;
    }
    Ok(())
}

/// Returns the path in a call's arguments if its name determines a language.
fn path_of(call: &ToolCall) -> Option<&str> {
    let has_file = matches!(call.name.as_str(), "read" | "write" | "edit");
    ["path", "file_path"].iter().find_map(|name| call.arguments.get(*name)?.as_str()).filter(|_| has_file)
}

/// Writes the arguments of a call: commands, file contents and edits in a suitable form, the rest as JSON.
fn arguments(out: &mut PageWriter<'_>, call: &ToolCall, diff: Option<&str>) -> io::Result<()> {
    let text = |name: &str| call.arguments.get(name).and_then(Value::as_str);
    let mut rest: Map<String, Value> = call.arguments.clone();
    match call.name.as_str() {
        "bash" | "powershell" => {
            if let Some(command) = text("command") {
                code(out, "sh", command)?;
                rest.shift_remove("command");
            }
        }
        "write" => {
            if let Some(content) = text("content") {
                code(out, path_of(call).map_or("", of_path), content)?;
                rest.shift_remove("content");
            }
        }
        "edit" => {
            if let Some(diff) = diff {
                diff_block(out, diff)?;
                rest.retain(|name, _| name == "path");
            } else if let Some(edits) = text_pairs(&call.arguments) {
                for (old, new) in edits {
                    diff_block(out, &signed(old, new))?;
                }
                rest.shift_remove("edits");
            }
        }
        _ => {}
    }
    // Omit what the summary already shows completely.
    rest.retain(|name, value| {
        !(MAIN_ARGUMENTS.contains(&name.as_str()) && value.as_str() == Some(&main_argument(call)))
    });
    if rest.is_empty() {
        return Ok(());
    }
    json(out, &Value::Object(rest))
}

/// Returns the replacements of an edit, or `None` if any is malformed.
fn text_pairs(arguments: &Map<String, Value>) -> Option<Vec<(&str, &str)>> {
    let edits = arguments.get("edits")?.as_array()?;
    edits.iter().map(|edit| Some((edit.get("oldText")?.as_str()?, edit.get("newText")?.as_str()?))).collect()
}

fn signed(old: &str, new: &str) -> String {
    let lines = |sign: char, text: &str| text.lines().map(|line| format!("{sign}{line}\n")).collect::<String>();
    lines('-', old) + &lines('+', new)
}

fn diff_block(out: &mut PageWriter<'_>, diff: &str) -> io::Result<()> {
    out.html("<pre class=\"diff\"><code>")?;
    syntax::diff(out, diff)?;
    out.html("</code></pre>")
}

fn code(out: &mut PageWriter<'_>, language: &str, code: &str) -> io::Result<()> {
    out.html("<pre><code>")?;
    syntax::code(out, language, code)?;
    out.html("</code></pre>")
}

/// Writes a value as indented JSON.
pub(super) fn json(out: &mut PageWriter<'_>, value: &Value) -> io::Result<()> {
    code(out, "json", &serde_json::to_string_pretty(value).unwrap_or_default())
}

/// Writes the output of a tool, highlighting a file that was read.
fn output(out: &mut PageWriter<'_>, result: &ToolResult, path: Option<&str>) -> io::Result<()> {
    let language = path.filter(|_| result.tool_name == "read" && !result.is_error).map_or("", of_path);
    for block in &result.content {
        match block {
            Block::Text(text) if text.text.is_empty() => {}
            Block::Text(text) => {
                out.html("<pre class=\"output\"><code>")?;
                syntax::code(out, language, &pinch_stdx::text::strip_ansi(&text.text))?;
                out.html("</code></pre>")?;
            }
            Block::Image(image) => images::image(out, image)?,
            Block::Other(block) => json(out, &block.raw)?,
            Block::Thinking(_) | Block::ToolCall(_) => {}
        }
    }
    if result.content.is_empty() {
        out.html("<p class=\"gone\">[no output]</p>")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::written;
    use serde_json::json;

    fn page(name: &str, arguments: Value, answer: Option<(&str, bool, Option<Value>)>) -> String {
        let call = ToolCall::new("c1", name, arguments.as_object().unwrap().clone());
        let result = answer.map(|(text, is_error, details)| ToolResult {
            details,
            duration_ms: Some(1250),
            ..ToolResult::text(&call, text, is_error, 0)
        });
        written(|out| super::call(out, &call, result.as_ref()))
    }

    #[test]
    fn calls_and_results_are_shown_together() {
        insta::assert_snapshot!(page("bash", json!({"command": "ls 'a'", "timeout": 5}), Some(("\x1b[1mx\x1b[0m <y>", false, None))), @r#"<details class="tool done"><summary><b>bash</b> <code>ls &#39;a&#39;</code> <span class="small">1.2 s</span></summary><pre><code>ls <span class="ss">&#39;a&#39;</span></code></pre><pre><code>{
  <span class="sv">&quot;timeout&quot;</span>: <span class="sn">5</span>
}</code></pre><pre class="output"><code>x &lt;y&gt;</code></pre></details>"#);
        let edit = json!({"path": "a.rs", "edits": [{"oldText": "a\nb", "newText": "c"}]});
        insta::assert_snapshot!(page("edit", edit.clone(), None), @r#"<details class="tool"><summary><b>edit</b> <code>a.rs</code></summary><pre class="diff"><code><span class="dr">-a
-b
</span><span class="da">+c
</span></code></pre><p class="gone">[no result]</p></details>"#);
        let diff = Some(json!({"diff": "-1 a\n+1 c", "patch": ""}));
        insta::assert_snapshot!(page("edit", edit, Some(("done", false, diff))), @r#"<details class="tool done"><summary><b>edit</b> <code>a.rs</code> <span class="small">1.2 s</span></summary><pre class="diff"><code><span class="dr">-1 a
</span><span class="da">+1 c</span></code></pre><pre class="output"><code>done</code></pre></details>"#);
        insta::assert_snapshot!(page("<t>", json!({"\"x": null}), Some(("no", true, None))), @r#"<details class="tool failed"><summary><b>&lt;t&gt;</b> <code></code> <span class="error">failed</span> <span class="small">1.2 s</span></summary><pre><code>{
  <span class="sv">&quot;\&quot;x&quot;</span>: <span class="sk">null</span>
}</code></pre><pre class="output"><code>no</code></pre></details>"#);
        assert!(
            page("read", json!({"path": "a.rs"}), Some(("fn f", false, None)))
                .contains("<span class=\"sk\">fn</span> f")
        );
        assert!(
            page("write", json!({"path": "a.py", "content": "None"}), None).contains("<span class=\"sk\">None</span>")
        );
    }
}

//! Tracks the tool calls of a run: announcements, the last failure, and what messaging tools sent.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use pinch_agent_core::event::ToolStart;
use pinch_agent_core::tool::{JsonObject, ToolOutput};
use pinch_llm::message::Block;
use serde_json::{Value, json};

use super::directives::media::{MediaRoots, media_target};
use super::piece::{AgentNote, AgentStream, Piece, Pieces, ToolNote};
use super::preview::CommandText;
use super::sent::{Sent, SentTarget, is_send, media_of, plain_target, target_of, text_of};
use crate::texts::{Phrase, TextTable};

use super::tool_display::{aggregate, normal_name, tool_meta};

pub mod mutating;

use mutating::{Fingerprint, is_mutating};

/// How much of the tool activity the user sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbose {
    /// Nothing.
    #[default]
    Off,
    /// The running tool and its description.
    On,
    /// Its output as well.
    Full,
}

impl Verbose {
    /// Parses the name used in configurations and on the command line.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "off" => Self::Off,
            "on" => Self::On,
            "full" => Self::Full,
            _ => return None,
        })
    }
}

/// Decides anew before each message about a tool how much the user sees, for levels that change during a run.
#[derive(Clone)]
pub struct VerboseNow(Arc<dyn Fn() -> Verbose + Send + Sync>);

impl VerboseNow {
    /// Creates it from a function, which must return quickly.
    pub fn new(decide: impl Fn() -> Verbose + Send + Sync + 'static) -> Self {
        Self(Arc::new(decide))
    }

    /// Returns the level that applies now.
    pub fn level(&self) -> Verbose {
        (self.0)()
    }
}

impl fmt::Debug for VerboseNow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerboseNow").finish_non_exhaustive()
    }
}

/// Format of messages about tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolFormat {
    /// With backticks and fences.
    #[default]
    Markdown,
    /// Without markup.
    Plain,
}

/// A finished call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolMeta {
    /// The tool.
    pub tool_name: String,
    /// Description of the call.
    pub meta: Option<String>,
}

/// The last tool failure that no later success resolved.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LastToolError {
    /// The tool.
    pub tool_name: String,
    /// Description of the call.
    pub meta: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// Whether the call would have changed something; `None` if only the tool's name is known.
    pub mutating: Option<bool>,
    /// What it would have changed.
    pub fingerprint: Option<Fingerprint>,
}

/// State of a call between its start and its end.
#[derive(Clone, Debug)]
struct PendingTool {
    meta: Option<String>,
    args: JsonObject,
    text: Option<String>,
    media_urls: Vec<String>,
    target: Option<SentTarget>,
}

/// Tracks the tool calls of a run.
#[derive(Clone, Debug, Default)]
pub struct ToolNotes {
    /// How much the user sees, unless it is decided anew.
    pub verbose: Verbose,
    verbose_now: Option<VerboseNow>,
    /// Format of the messages.
    pub format: ToolFormat,
    /// The home directory, shown as `~`.
    pub home: Option<String>,
    /// Records files reported by tools, which the model may then name.
    media_roots: MediaRoots,
    texts: TextTable,
    pending: HashMap<String, PendingTool>,
    announced: HashSet<String>,
    metas: Vec<ToolMeta>,
    last_error: Option<LastToolError>,
    sent: Sent,
    n_cron_adds: u32,
}

impl ToolNotes {
    /// Creates the state of a new run. `home` is the home directory, shown as `~`.
    pub fn new(verbose: Verbose, format: ToolFormat, home: Option<String>, media_roots: MediaRoots) -> Self {
        Self { verbose, format, home, media_roots, ..Self::default() }
    }

    /// Sets the texts for people.
    #[must_use]
    pub fn with_texts(self, texts: TextTable) -> Self {
        Self { texts, ..self }
    }

    /// Lets a function decide anew before each message how much the user sees.
    #[must_use]
    pub fn with_verbose_now(self, verbose_now: Option<VerboseNow>) -> Self {
        Self { verbose_now, ..self }
    }

    fn verbose(&self) -> Verbose {
        self.verbose_now.as_ref().map_or(self.verbose, VerboseNow::level)
    }

    /// Handles the start of a call.
    pub fn start(&mut self, start: &ToolStart, out: &mut Pieces) {
        let name = normal_name(&start.name);
        let args = Value::Object((*start.args).clone());
        let meta = tool_meta(&name, &args, self.home.as_deref());
        let sends = is_send(&name, &start.args);
        let pending = PendingTool {
            meta: meta.clone(),
            args: (*start.args).clone(),
            text: text_of(&start.args).filter(|_| sends),
            media_urls: if sends { media_of(&start.args) } else { Vec::new() },
            target: target_of(&name, &start.args, &plain_target),
        };
        let id = start.id.as_str();
        self.pending.insert(id.to_owned(), pending);
        let base = json!({"phase": "start", "name": name, "toolCallId": id});
        out.push(note(base, [("args", args)]));
        if self.verbose() >= Verbose::On && self.announced.insert(id.to_owned()) {
            let text = self.aggregate(&name, meta);
            Self::emit_note(text, id, false, out);
        }
    }

    /// Describes a running call in one line.
    pub fn summary(&self, start: &ToolStart, commands: CommandText) -> String {
        let name = normal_name(&start.name);
        let pending = self.pending.get(start.id.as_str()).filter(|_| name != "exec" || commands == CommandText::Raw);
        let metas: Vec<String> = pending.and_then(|pending| pending.meta.clone()).into_iter().collect();
        aggregate(&name, &metas, false)
    }

    /// Handles a partial result.
    pub fn update(&self, start: &ToolStart, so_far: &ToolOutput, out: &mut Pieces) {
        let base = json!({"phase": "update", "name": normal_name(&start.name), "toolCallId": start.id.as_str()});
        out.push(note(base, [("partialResult", sanitised(so_far))]));
    }

    /// Handles the end of a call.
    pub fn end(&mut self, start: &ToolStart, output: &ToolOutput, out: &mut Pieces) {
        let (name, id) = (normal_name(&start.name), start.id.as_str());
        let pending = self.pending.remove(id);
        self.announced.remove(id);
        let meta = pending.as_ref().and_then(|pending| pending.meta.clone());
        self.metas.push(ToolMeta { tool_name: name.clone(), meta: meta.clone() });
        let failed = output.failed || status_failed(output);
        let args = pending.as_ref().map_or(&*start.args, |pending| &pending.args);
        let mutating = is_mutating(&name, args);
        let fingerprint = mutating.then(|| Fingerprint::of(&name, args, meta.as_deref()));
        if failed {
            let (tool_name, meta, error) = (name.clone(), meta.clone(), error_text(output));
            self.last_error = Some(LastToolError { tool_name, meta, error, mutating: Some(mutating), fingerprint });
        } else if self.last_error.as_ref().is_some_and(|error| is_resolved_by(error, fingerprint.as_ref())) {
            self.last_error = None;
        }
        if let Some(pending) = pending.filter(|_| !failed) {
            if let Some(text) = &pending.text {
                out.push(Piece::Sent(text.clone()));
            }
            if name == "cron" && pending.args.get("action").and_then(Value::as_str).map(str::trim) == Some("add") {
                self.n_cron_adds += 1;
            }
            self.sent.add(pending.text, pending.media_urls, pending.target);
        }
        let mut base = json!({"phase": "result", "name": name, "toolCallId": id, "isError": failed});
        if let Some(meta) = &meta {
            base["meta"] = json!(meta);
        }
        out.push(note(base, [("result", sanitised(output))]));
        let media_urls = if failed { Vec::new() } else { self.media_of(output) };
        let text = if self.verbose() == Verbose::Full { joined_text(output) } else { String::new() };
        if !text.trim().is_empty() {
            let text = format!(
                "{}\n{}",
                self.aggregate(&name, meta),
                output_block(&text, self.format, self.texts.get(Phrase::NoOutput))
            );
            Self::emit_note(text, id, true, out);
        }
        if !media_urls.is_empty() {
            let note = ToolNote { media_urls, call_id: id.to_owned(), is_output: true, ..ToolNote::default() };
            out.push(Piece::ToolResult(note));
        }
    }

    /// Returns the media of a result that may be sent: those that the tool itself names in `details.mediaUrl` or `details.mediaUrls`. The
    /// text of a result may come from anywhere, so that it allows nothing.
    fn media_of(&self, output: &ToolOutput) -> Vec<String> {
        let Some(details) = &output.details else { return Vec::new() };
        let several = details["mediaUrls"].as_array().into_iter().flatten();
        let named = details.get("mediaUrl").into_iter().chain(several).filter_map(Value::as_str);
        let mut urls: Vec<String> = Vec::new();
        for named in named {
            self.media_roots.report(named);
            let url = media_target(named, true, &self.media_roots);
            urls.extend(url.filter(|url| !urls.contains(url)));
        }
        urls
    }

    /// Forgets all calls, because the run starts again after a compaction.
    pub fn reset(&mut self) {
        let (verbose, format, home) = (self.verbose, self.format, self.home.take());
        let (media_roots, texts) = (std::mem::take(&mut self.media_roots), std::mem::take(&mut self.texts));
        // Added jobs stay added.
        let (verbose_now, n_cron_adds) = (self.verbose_now.take(), self.n_cron_adds);
        *self = Self { verbose, verbose_now, format, home, media_roots, texts, n_cron_adds, ..Self::default() };
    }

    /// Returns finished calls in order.
    pub fn metas(&self) -> &[ToolMeta] {
        &self.metas
    }

    /// Returns the last failure that no later success resolved.
    pub fn last_error(&self) -> Option<&LastToolError> {
        self.last_error.as_ref()
    }

    /// Returns how many jobs the tool `cron` added.
    pub fn n_cron_adds(&self) -> u32 {
        self.n_cron_adds
    }

    /// Returns what messaging tools sent.
    pub fn sent(&self) -> &Sent {
        &self.sent
    }

    fn aggregate(&self, name: &str, meta: Option<String>) -> String {
        let metas: Vec<String> = meta.into_iter().collect();
        aggregate(name, &metas, self.format == ToolFormat::Markdown)
    }

    /// Emits tool output unchanged: directives are only honoured in the model's own text.
    fn emit_note(text: String, id: &str, is_output: bool, out: &mut Pieces) {
        out.push(Piece::ToolResult(ToolNote { text, call_id: id.to_owned(), is_output, ..ToolNote::default() }));
    }
}

/// Returns whether a successful call resolves an earlier failure.
fn is_resolved_by(error: &LastToolError, done: Option<&Fingerprint>) -> bool {
    match (error.mutating, &error.fingerprint) {
        (Some(true), Some(failed)) => done == Some(failed),
        (Some(true), None) => false,
        _ => true,
    }
}

/// Creates an event with members that only the engine's listeners receive.
fn note<const N: usize>(base: Value, more: [(&str, Value); N]) -> Piece {
    let mut full = base.clone();
    for (name, value) in more {
        full[name] = value;
    }
    let mut note = AgentNote::new(AgentStream::Tool, full);
    note.reduced = Some(base.into());
    Piece::Agent(note)
}

fn status_failed(output: &ToolOutput) -> bool {
    let status = output.details.as_ref().and_then(|details| details["status"].as_str());
    status.is_some_and(|status| matches!(status.trim().to_lowercase().as_str(), "error" | "timeout"))
}

fn joined_text(output: &ToolOutput) -> String {
    pinch_llm::message::block::join_text(&output.content, "\n")
}

/// Formats output in a fence that its content cannot close.
fn output_block(text: &str, format: ToolFormat, nothing: &str) -> String {
    let text = text.trim();
    let text = if text.is_empty() { nothing } else { text };
    if format == ToolFormat::Plain {
        return text.to_owned();
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}txt\n{text}\n{fence}")
}

const MAX_RESULT: usize = 8000;

/// Returns a result for listeners: long texts truncated, images without their data.
pub(crate) fn sanitised(output: &ToolOutput) -> Value {
    let blocks = output.content.iter().map(|block| match block {
        Block::Text(text) => json!({"type": "text", "text": text.text}),
        // Image data is large, so it is not even copied.
        Block::Image(image) => json!({"type": "image", "mimeType": image.mime_type, "bytes": image.data.len()}),
        Block::Other(raw) => raw.raw.clone(),
        Block::Thinking(_) | Block::ToolCall(_) => Value::Null,
    });
    let mut result = json!({"content": blocks.filter(|block| !block.is_null()).collect::<Vec<_>>()});
    if let Some(details) = &output.details {
        result["details"] = details.clone();
    }
    sanitised_value(result)
}

/// Truncates long texts of a JSON result and removes the data of its images.
pub fn sanitised_value(mut result: Value) -> Value {
    for block in result.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
        if block["type"] == "text" {
            if let Some(text) = block["text"].as_str() {
                block["text"] = cut_result(text).into();
            }
        } else if block["type"] == "image" {
            let n_bytes = block["data"].as_str().map(str::len);
            if let Some(image) = block.as_object_mut() {
                image.shift_remove("data");
                if let Some(n_bytes) = n_bytes {
                    image.insert("bytes".into(), n_bytes.into());
                }
                image.insert("omitted".into(), true.into());
            }
        }
    }
    result
}

fn cut_result(text: &str) -> String {
    if text.chars().count() <= MAX_RESULT {
        return text.to_owned();
    }
    text.chars().take(MAX_RESULT).collect::<String>() + "\n…(truncated)…"
}

const MAX_ERROR: usize = 400;

/// Returns the error in one line.
fn error_text(output: &ToolOutput) -> Option<String> {
    let found = output.details.as_ref().and_then(error_in);
    let found = found.or_else(|| {
        let text = joined_text(output);
        let parsed: Option<Value> = serde_json::from_str(text.trim()).ok();
        parsed.as_ref().and_then(error_in).or(Some(text))
    })?;
    let line = found.trim().lines().next()?.trim();
    if line.is_empty() {
        return None;
    }
    let cut: String = line.chars().take(MAX_ERROR).collect();
    Some(if cut.len() < line.len() { cut + "…" } else { cut })
}

fn error_in(value: &Value) -> Option<String> {
    let named = ["error", "message", "reason"].iter().find_map(|name| {
        let found = &value[*name];
        let inner = || found["message"].as_str().or_else(|| found["error"].as_str());
        found.as_str().or_else(inner).map(str::trim).filter(|text| !text.is_empty())
    });
    named.or_else(|| value["status"].as_str()).map(str::to_owned)
}

/// Returns the progress that a running tool reports to people.
pub(super) fn progress_of(so_far: &ToolOutput) -> Option<&str> {
    let progress = &so_far.details.as_ref()?["progress"];
    progress["text"].as_str().filter(|_| progress["visibility"] == "channel")
}

#[cfg(test)]
mod tests;

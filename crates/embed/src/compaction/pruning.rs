//! Shortens old tool results in requests once the provider's prompt cache has expired.
//!
//! The transcript keeps the full results. A shortened result stays shortened, in this run and later ones, so that requests keep a common
//! prefix: the entry `openclaw.cache-ttl` lists results by call id and hash, never by text.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use pinch_llm::message::{Block, Message, ToolResult};
use pinch_llm::model::Model;
use pinch_stdx::host::Host;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::config::pruning::{PruningConfig, SoftTrim};

/// Type of the entry that records when a session's prompt was last cached, and which results are shortened in it.
pub(crate) const CACHE_TTL: &str = "openclaw.cache-ttl";

/// Characters counted for an image.
const IMAGE_CHARS: usize = 8_000;
/// Characters counted for any other message.
const OTHER_CHARS: usize = 256;
/// Characters per token.
const CHARS_PER_TOKEN: u64 = 4;
/// Number of newest results with images that are never cleared.
const PROTECTED_IMAGES: usize = 3;

/// How a result is shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortening {
    /// Its beginning and end are kept.
    Trimmed,
    /// Its text is replaced by the placeholder.
    Cleared,
}

impl Shortening {
    fn as_str(self) -> &'static str {
        match self {
            Self::Trimmed => "trimmed",
            Self::Cleared => "cleared",
        }
    }
}

/// Returns whether the provider has the kind of prompt cache that pruning is designed for.
pub fn is_eligible(provider: &str, model: &str, api: &str) -> bool {
    match provider.to_lowercase().as_str() {
        "anthropic" | "moonshot" | "zai" => true,
        "openrouter" => model.to_lowercase().starts_with("anthropic/"),
        _ => api == "anthropic-messages",
    }
}

/// Returns whether the cache has expired: the prompt was sent before, but not within the last `ttl_ms`.
pub fn is_due(last_touch: Option<i64>, ttl_ms: i64, now: i64) -> bool {
    ttl_ms > 0 && last_touch.is_some_and(|touched| now.saturating_sub(touched) >= ttl_ms)
}

/// Decides which results of a request to shorten, by call id. `window` is in tokens; if it is 0 (unknown), nothing is shortened.
pub fn plan(messages: &[Arc<Message>], config: &PruningConfig, window: u64) -> BTreeMap<String, Shortening> {
    let mut planned = BTreeMap::new();
    let is_answer = |at: &usize| matches!(*messages[*at], Message::Assistant(_));
    let end = match config.keep_last_assistants {
        0 => Some(messages.len()),
        keep => (0..messages.len()).rev().filter(is_answer).nth(keep - 1),
    };
    let start = messages.iter().position(|message| matches!(**message, Message::User(_)));
    let (Some(start), Some(end)) = (start, end) else { return planned };
    let room = window.saturating_mul(CHARS_PER_TOKEN) as f64;
    if room <= 0.0 || start >= end {
        return planned;
    }
    let mut total: usize = messages.iter().map(|message| chars(message)).sum();
    if (total as f64) / room < config.soft_trim_ratio {
        return planned;
    }
    let mut images = messages.iter().rev().filter_map(|message| result(message)).filter(|result| has_image(result));
    let protected: Vec<&str> =
        images.by_ref().take(PROTECTED_IMAGES).map(|result| result.tool_call_id.as_str()).collect();
    let mut candidates: Vec<(&ToolResult, usize)> = messages[start..end]
        .iter()
        .filter_map(|message| result(message))
        .filter(|result| config.tools.allows(&result.tool_name) && !protected.contains(&result.tool_call_id.as_str()))
        .map(|result| (result, result_chars(result)))
        .collect();
    for (result, size) in &mut candidates {
        if let Some(text) = trimmed(result, config.soft_trim) {
            let left = text.chars().count();
            total = total - *size + left;
            *size = left;
            planned.insert(result.tool_call_id.as_str().to_owned(), Shortening::Trimmed);
        }
    }
    let Some(placeholder) = &config.placeholder else { return planned };
    let prunable: usize = candidates.iter().map(|(_, size)| size).sum();
    if prunable < config.min_prunable_chars {
        return planned;
    }
    for (result, size) in candidates {
        if (total as f64) / room < config.hard_clear_ratio {
            break;
        }
        total = total - size + placeholder.chars().count();
        planned.insert(result.tool_call_id.as_str().to_owned(), Shortening::Cleared);
    }
    planned
}

/// Returns a tool result in its shortened form, or `None` if there is nothing to shorten.
pub fn shorten(result: &ToolResult, how: Shortening, config: &PruningConfig) -> Option<ToolResult> {
    let text = match how {
        Shortening::Trimmed => trimmed(result, config.soft_trim)?,
        Shortening::Cleared => config.placeholder.clone()?,
    };
    let mut short = result.clone();
    short.content = vec![Block::text(text)];
    Some(short)
}

/// Returns the beginning and end of a text that is too long, with a note.
fn trimmed(result: &ToolResult, rule: SoftTrim) -> Option<String> {
    if has_image(result) {
        return None;
    }
    let text = pinch_llm::message::block::join_text(&result.content, "\n");
    let length = text.chars().count();
    let SoftTrim { max_chars, head_chars, tail_chars } = rule;
    if length <= max_chars || head_chars + tail_chars >= length {
        return None;
    }
    let head: String = text.chars().take(head_chars).collect();
    let tail: String = text.chars().skip(length - tail_chars).collect();
    Some(format!(
        "{head}\n...\n{tail}\n\n[Shortened: the first {head_chars} and the last {tail_chars} of {length} characters.]"
    ))
}

fn result(message: &Message) -> Option<&ToolResult> {
    match message {
        Message::ToolResult(result) => Some(result),
        _ => None,
    }
}

fn has_image(result: &ToolResult) -> bool {
    result.content.iter().any(|block| matches!(block, Block::Image(_)))
}

fn result_chars(result: &ToolResult) -> usize {
    let of = |block: &Block| match block {
        Block::Image(_) => IMAGE_CHARS,
        block => block.as_text().map_or(0, |text| text.chars().count()),
    };
    result.content.iter().map(of).sum()
}

fn chars(message: &Message) -> usize {
    match message {
        Message::User(user) => user.content.text("").chars().count() + IMAGE_CHARS * user.content.images().count(),
        Message::Assistant(answer) => {
            let of = |block: &Arc<Block>| match &**block {
                Block::Thinking(thinking) => thinking.thinking.chars().count(),
                Block::ToolCall(call) => serde_json::to_string(&call.arguments).map_or(0, |text| text.chars().count()),
                block => block.as_text().map_or(0, |text| text.chars().count()),
            };
            answer.content.iter().map(of).sum()
        }
        Message::ToolResult(result) => result_chars(result),
        Message::System(_) | Message::Other(_) => OTHER_CHARS,
    }
}

/// Shortens the results of one session's requests.
pub(crate) struct Pruner {
    config: PruningConfig,
    window: u64,
    host: Host,
    state: Mutex<PrunerState>,
}

#[derive(Default)]
struct PrunerState {
    /// When the prompt was last sent.
    last_touch: Option<i64>,
    /// Shortened results, each with a hash of the full result.
    shortened: BTreeMap<String, (Shortening, String)>,
}

impl Pruner {
    /// Creates a pruner that continues from the last entry of a session; `None` if the model's provider does not cache prompts.
    pub(crate) fn new(config: &PruningConfig, model: &Model, last: Option<&Value>, host: &Host) -> Option<Self> {
        if !is_eligible(model.provider.as_str(), model.id.as_str(), model.api.as_str())
            || (config.is_default && model.provider != *"anthropic")
        {
            return None;
        }
        let listed = last.and_then(|last| last["shortened"].as_object()).into_iter().flatten();
        let shortened = listed.filter_map(|(id, entry)| {
            let how =
                [Shortening::Trimmed, Shortening::Cleared].into_iter().find(|how| entry["how"] == how.as_str())?;
            Some((id.clone(), (how, entry["hash"].as_str()?.to_owned())))
        });
        let state = PrunerState {
            last_touch: last.and_then(|last| last["timestamp"].as_i64()),
            shortened: shortened.collect(),
        };
        Some(Self {
            config: config.clone(),
            window: model.context_window,
            host: host.clone(),
            state: Mutex::new(state),
        })
    }

    /// Shortens old results in the messages of a request.
    pub(crate) fn prune(&self, messages: &mut [Arc<Message>]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.host.now_ms();
        let ttl = i64::try_from(self.config.ttl.as_millis()).unwrap_or(i64::MAX);
        if !state.shortened.is_empty() {
            // What has been compacted away needs no memory.
            let there: HashSet<&str> = messages
                .iter()
                .filter_map(|message| result(message))
                .map(|result| result.tool_call_id.as_str())
                .collect();
            state.shortened.retain(|id, _| there.contains(id.as_str()));
        }
        self.apply(&state, messages);
        if is_due(state.last_touch, ttl, now) {
            let planned = plan(messages, &self.config, self.window);
            if !planned.is_empty() {
                for message in messages.iter_mut() {
                    let Some(result) = result(message) else { continue };
                    let id = result.tool_call_id.as_str();
                    let Some(how) = planned.get(id) else { continue };
                    // If a result is already shortened, compare the hash of the full one.
                    let known = state.shortened.get(id).map(|(_, whole)| whole.clone());
                    let whole = known.unwrap_or_else(|| hash(result));
                    let Some(short) = shorten(result, *how, &self.config) else { continue };
                    state.shortened.insert(id.to_owned(), (*how, whole));
                    *message = Arc::new(Message::ToolResult(short));
                }
                state.last_touch = Some(now);
            }
        }
    }

    /// Reapplies earlier shortenings. A result that has changed since is left alone.
    fn apply(&self, state: &PrunerState, messages: &mut [Arc<Message>]) {
        if state.shortened.is_empty() {
            return;
        }
        for message in messages {
            let short = result(message).and_then(|result| {
                let (how, whole) = state.shortened.get(result.tool_call_id.as_str())?;
                (hash(result) == *whole).then(|| shorten(result, *how, &self.config))?
            });
            if let Some(short) = short {
                *message = Arc::new(Message::ToolResult(short));
            }
        }
    }

    /// Returns the entry to write after an attempt; the next run continues from it.
    pub(crate) fn stamp(&self, model: &Model) -> Value {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.host.now_ms();
        state.last_touch = Some(now);
        let mut stamp = json!({"timestamp": now, "provider": model.provider.as_str(), "modelId": model.id.as_str()});
        let entry = |(id, (how, hash)): (&String, &(Shortening, String))| {
            (id.clone(), json!({"how": how.as_str(), "hash": hash}))
        };
        let shortened: Map<String, Value> = state.shortened.iter().map(entry).collect();
        if !shortened.is_empty() {
            stamp["shortened"] = Value::Object(shortened);
        }
        stamp
    }
}

/// Returns a hash of a result's text.
fn hash(result: &ToolResult) -> String {
    let digest = Sha256::digest(pinch_llm::message::block::join_text(&result.content, "\n").as_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

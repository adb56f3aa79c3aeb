//! Tool call ids in the alphabet of a server.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use sha1::{Digest, Sha1};

use super::calls;
use super::edit::{self, BlockEdit};
use crate::ids::ToolCallId;
use crate::message::{Block, Message, RawBlock, ToolCall, ToolResult};
use crate::model::transcript::CallIdRule;

/// Maximum length of an id under the strict rule.
const MAX_STRICT: usize = 40;
const STRICT9: usize = 9;

/// Returns the id without forbidden characters. Two ids may become equal: [`rewrite`] keeps them distinct.
pub fn sanitise(id: &str, rule: CallIdRule) -> String {
    let kept: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
    match rule {
        CallIdRule::Strict if id.is_empty() => "defaulttoolid".to_owned(),
        CallIdRule::Strict if kept.is_empty() => "sanitizedtoolid".to_owned(),
        CallIdRule::Strict => kept,
        CallIdRule::Strict9 if id.is_empty() => "defaultid".to_owned(),
        CallIdRule::Strict9 if kept.len() >= STRICT9 => kept[..STRICT9].to_owned(),
        CallIdRule::Strict9 if kept.is_empty() => hash("sanitized", STRICT9),
        CallIdRule::Strict9 => hash(&kept, STRICT9),
    }
}

/// Returns the conversation with ids that the rule accepts. Equal ids stay equal, and different ids stay different.
pub fn rewrite(messages: &[Arc<Message>], rule: CallIdRule) -> Vec<Arc<Message>> {
    let mut ids = CallIdMap { rule, new: HashMap::new(), used: HashSet::new() };
    let each = |message: &Arc<Message>| match &**message {
        Message::Assistant(answer) => {
            let edited = edit::answer(answer, |block| ids.block(block).map_or(BlockEdit::Keep, BlockEdit::Put));
            edited.map_or_else(|| Arc::clone(message), |answer| Arc::new(Message::Assistant(answer)))
        }
        Message::ToolResult(result) => match ids.renamed(result.tool_call_id.as_str()) {
            None => Arc::clone(message),
            Some(id) => Arc::new(Message::ToolResult(ToolResult { tool_call_id: id.into(), ..result.clone() })),
        },
        _ => Arc::clone(message),
    };
    messages.iter().map(each).collect()
}

struct CallIdMap {
    rule: CallIdRule,
    /// New ids by original id.
    new: HashMap<String, String>,
    used: HashSet<String>,
}

impl CallIdMap {
    fn block(&mut self, block: &Block) -> Option<Block> {
        match block {
            Block::ToolCall(call) => {
                let id = ToolCallId::from(self.renamed(call.id.as_str())?);
                Some(Block::ToolCall(ToolCall { id, ..call.clone() }))
            }
            Block::Other(raw) if calls::is_call(&raw.raw) => {
                let id = self.renamed(raw.raw["id"].as_str()?)?;
                let mut raw = raw.raw.clone();
                raw["id"] = Value::from(id);
                Some(Block::Other(RawBlock { raw }))
            }
            _ => None,
        }
    }

    /// Returns the new id, or `None` if the original one stays.
    fn renamed(&mut self, id: &str) -> Option<String> {
        let key = id.trim();
        if !self.new.contains_key(key) {
            let fresh = self.fresh(key);
            self.used.insert(fresh.clone());
            self.new.insert(key.to_owned(), fresh);
        }
        self.new.get(key).filter(|new| *new != id).cloned()
    }

    fn fresh(&self, id: &str) -> String {
        let is_free = |id: &String| !self.used.contains(id);
        let base = sanitise(id, self.rule);
        match self.rule {
            CallIdRule::Strict => {
                let base = head(&base, MAX_STRICT);
                let mark = hash(id, 8);
                let marked = format!("{}{mark}", head(base, MAX_STRICT - mark.len()));
                let numbered = |n: u32| {
                    let suffix = format!("x{n}");
                    format!("{}{suffix}", head(&marked, MAX_STRICT - suffix.len()))
                };
                let all = [base.to_owned(), marked.clone()].into_iter().chain((2..).map(numbered));
                all.into_iter().find(is_free).unwrap_or(marked)
            }
            CallIdRule::Strict9 => {
                let hashed = (0_u32..).map(|n| hash(&format!("{id}:{n}"), STRICT9));
                std::iter::once(base.clone()).chain(hashed).find(is_free).unwrap_or(base)
            }
        }
    }
}

/// Returns the first `max` bytes of an ASCII id.
fn head(id: &str, max: usize) -> &str {
    id.get(..max).unwrap_or(id)
}

/// Returns the first digits of a text's SHA-1.
fn hash(text: &str, n_digits: usize) -> String {
    let digest = Sha1::digest(text.as_bytes());
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    head(&digits, n_digits).to_owned()
}

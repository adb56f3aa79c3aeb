//! Messages in the form that cases use: fields may be missing, and signatures have the names that other programs give them.

use std::sync::Arc;

use pinch_llm::message::Message;
use serde_json::{Map, Value, json};

/// The field in which pinch stores a signature, by block type.
const SIGNATURES: [(&str, &str); 3] =
    [("text", "textSignature"), ("thinking", "thinkingSignature"), ("toolCall", "thoughtSignature")];

/// Messages of a case, and how it spells them.
#[derive(Default)]
pub(super) struct CaseMessages {
    pub(super) messages: Vec<Arc<Message>>,
    /// Signatures under another name: block type, name, text.
    spelled: Vec<(String, String, String)>,
    /// Signatures that are objects, as text.
    objects: Vec<String>,
    /// Contents of answers that are strings.
    strings: Vec<String>,
    /// Field names of the results' IDs.
    result_ids: Vec<String>,
    /// Whether signatures are also written under our name.
    pub(super) copies_signatures: bool,
    /// Whether results are written with only what a model receives.
    pub(super) hides_details: bool,
}

impl CaseMessages {
    pub(super) fn read(raw: &Value) -> Result<Self, String> {
        let mut read = Self::default();
        for message in raw.as_array().into_iter().flatten() {
            let message = read.message(message)?;
            read.messages.push(Arc::new(message));
        }
        Ok(read)
    }

    fn message(&mut self, raw: &Value) -> Result<Message, String> {
        let mut raw = raw.clone();
        match raw["role"].as_str() {
            Some("assistant") => {
                if let Some(word) = raw["stopReason"].as_str().map(str::to_owned) {
                    // The word is kept so that it can be written again.
                    raw["rawStopReason"] = word.as_str().into();
                    let known = ["stop", "length", "toolUse", "error", "aborted"];
                    raw["stopReason"] = if known.contains(&word.as_str()) { word } else { "stop".to_owned() }.into();
                } else {
                    let has_call = raw["content"].as_array().is_some_and(|c| c.iter().any(|b| b["type"] == "toolCall"));
                    raw["stopReason"] = if has_call { "toolUse" } else { "stop" }.into();
                }
                self.strings.extend(raw["content"].as_str().map(str::to_owned));
                let blocks = raw["content"].as_array_mut().map_or(&mut [][..], |blocks| &mut blocks[..]);
                blocks.iter_mut().for_each(|block| self.block(block));
            }
            Some("toolResult") => {
                let named = ["toolCallId", "toolUseId"].into_iter().filter(|name| raw.get(*name).is_some());
                self.result_ids.extend(named.map(str::to_owned));
            }
            _ => {}
        }
        Message::from_value(&raw).map_err(|error| error.to_string())
    }

    fn block(&mut self, block: &mut Value) {
        let kind = block["type"].as_str().unwrap_or_default().to_owned();
        let Some((_, ours)) = SIGNATURES.iter().find(|(of, _)| *of == kind) else { return };
        if block[*ours].is_object() {
            self.objects.push(block[*ours].to_string());
        }
        let others = ["signature", "thought_signature", "thoughtSignature"].into_iter().filter(|name| name != ours);
        for name in others {
            let Some(signature) = block[name].as_str().map(str::to_owned) else { continue };
            self.spelled.push((kind.clone(), name.to_owned(), signature.clone()));
            // Thinking is read under all these names.
            if kind != "thinking" && block[*ours].is_null() {
                block[*ours] = signature.into();
            }
        }
    }

    /// The messages in the form that the case uses, without the defaults that we add.
    pub(super) fn write(&self, messages: &[Arc<Message>]) -> Value {
        messages.iter().map(|message| self.written(message)).collect()
    }

    fn written(&self, message: &Message) -> Value {
        let mut raw = message.to_value();
        let is_ours = raw["content"] == "(session bootstrap)"
            || raw["content"][0]["text"].as_str() == Some(super::repair::MISSING_RESULT);
        let Some(members) = raw.as_object_mut() else { return raw };
        if members.get("timestamp").is_some_and(|time| *time == json!(0)) || is_ours {
            members.remove("timestamp");
        }
        // Provenance is for our own use, not for a model.
        members.remove("provenance");
        for name in ["api", "provider", "model", "toolName"] {
            if members.get(name).is_some_and(|text| *text == json!("")) {
                members.remove(name);
            }
        }
        match message {
            Message::Assistant(answer) => {
                let reason = members.remove("rawStopReason");
                members.remove("stopReason");
                members.extend(reason.map(|word| ("stopReason".to_owned(), word)));
                if let Some(usage) = members.get_mut("usage").and_then(Value::as_object_mut) {
                    usage.retain(|name, value| name != "cost" && value.as_f64() != Some(0.0));
                }
                if answer.usage.is_zero() {
                    members.remove("usage");
                }
                let text =
                    answer.content.first().and_then(|block| block.as_text()).filter(|_| answer.content.len() == 1);
                match text.filter(|text| self.strings.iter().any(|given| given == text)) {
                    Some(text) => drop(members.insert("content".to_owned(), text.into())),
                    None => {
                        let blocks = members.get_mut("content").and_then(Value::as_array_mut);
                        blocks.into_iter().flatten().for_each(|block| self.write_block(block));
                    }
                }
            }
            Message::ToolResult(result) => {
                if self.hides_details {
                    members.remove("details");
                }
                for name in &self.result_ids {
                    members.insert(name.clone(), result.tool_call_id.as_str().into());
                }
                if !self.result_ids.is_empty() && !self.result_ids.iter().any(|name| name == "toolCallId") {
                    members.remove("toolCallId");
                }
            }
            _ => {}
        }
        raw
    }

    fn write_block(&self, block: &mut Value) {
        let kind = block["type"].as_str().unwrap_or_default().to_owned();
        let Some((_, ours)) = SIGNATURES.iter().find(|(of, _)| *of == kind) else { return };
        let Some(signature) = block[*ours].as_str().map(str::to_owned) else { return };
        let Some(members) = block.as_object_mut() else { return };
        if self.objects.contains(&signature) {
            members.insert((*ours).to_owned(), serde_json::from_str(&signature).unwrap_or_default());
        }
        let spelled: Map<String, Value> = self
            .spelled
            .iter()
            .filter(|(of, _, text)| *of == kind && *text == signature)
            .map(|(_, name, text)| (name.clone(), text.as_str().into()))
            .collect();
        if !spelled.is_empty() && !self.copies_signatures {
            members.remove(*ours);
        }
        members.extend(spelled);
    }
}

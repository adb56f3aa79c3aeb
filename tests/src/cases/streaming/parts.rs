//! Individual parts: directives, tokens, visible text, reasoning, tool display, duplicates.

use std::sync::Arc;

use pinch_agent_core::event::ToolStart;
use pinch_agent_core::tool::ToolOutput;
use pinch_embed::replies::directives::TagForms;
use pinch_embed::replies::directives::threading::{ReplyToMode, ThreadFilter, apply_reply_tags};
use pinch_embed::replies::directives::{self, Accumulator, ChunkKind, Parsed};
use pinch_embed::replies::markup::{self, Unclosed};
use pinch_embed::replies::piece::BlockReply;
use pinch_embed::replies::scan::{self, FinalTag};
use pinch_embed::replies::tokens::{self, HeartbeatMode};
use pinch_embed::replies::tool_notes::ToolNotes;
use pinch_embed::replies::{reasoning, sent, tool_display, tool_notes, user_text};
use pinch_embed::texts::{Phrase, TextTable};
use serde_json::{Map, Value, json};

use super::{assistant, strings, text};

/// The result of an operation; `None` for other operations.
pub(super) fn run(op: &str, input: &Value) -> Option<Result<Value, String>> {
    let given = text(&input["text"]);
    Some(Ok(match op {
        "parse_reply_directives" => {
            parsed_value(&directives::parse(text(&input["raw"]), input["options"]["currentMessageId"].as_str()), true)
        }
        "directive_accumulator" => accumulate(input),
        "apply_reply_tags" => {
            let mut reply = reply(&input["payload"]);
            apply_reply_tags(&mut reply, input["currentMessageId"].as_str(), TagForms::All);
            payload_value(&reply, &input["payload"])
        }
        "reply_to_mode_filter" => {
            let mode = match text(&input["mode"]) {
                "off" => ReplyToMode::Off { tags_allowed: input["allowTagsWhenOff"] == true },
                "first" => ReplyToMode::First,
                _ => ReplyToMode::All,
            };
            let payloads = input["payloads"].as_array().cloned().unwrap_or_default();
            let mut replies: Vec<BlockReply> = payloads.iter().map(reply).collect();
            let mut threads = ThreadFilter::new(mode);
            replies.iter_mut().for_each(|reply| threads.filter(reply));
            replies.iter().zip(&payloads).map(|(reply, given)| payload_value(reply, given)).collect()
        }
        "is_silent_reply" => tokens::is_silent(given).into(),
        "is_silent_prefix" => tokens::may_become(tokens::SILENT, given).into(),
        "strip_silent_token" => tokens::strip_silent(given).into(),
        "strip_heartbeat" => {
            let stripped = tokens::strip_heartbeat(text(&input["raw"]), heartbeat_mode(&input["options"]));
            json!({"shouldSkip": stripped.skip, "text": stripped.text, "didStrip": stripped.stripped})
        }
        "normalize_reply_payload" => normalise(input),
        "extract_assistant_text" => match assistant(&input["message"]) {
            Ok(message) => user_text::visible_text(&message.content, FinalTag::Optional, &TextTable::default()).into(),
            Err(why) => return Some(Err(why)),
        },
        "strip_reasoning_tags" => {
            let preserve = input["options"]["mode"] == "preserve";
            let shown = markup::strip_reasoning(given, if preserve { Unclosed::Preserve } else { Unclosed::Strict });
            match text(&input["options"]["trim"]) {
                "both" | "" => shown.trim().into(),
                "start" => shown.trim_start().into(),
                _ => shown.into(),
            }
        }
        "strip_downgraded_tool_text" => markup::strip_downgraded(given).into(),
        "visible_text_delivery" => markup::visible_of_block(given, FinalTag::Optional).into(),
        "format_reasoning" => reasoning::format_reasoning(given, Phrase::Reasoning.english()).into(),
        "thinking_from_tagged_stream" => scan::thinking(given).into(),
        "normalize_for_comparison" => sent::normal_form(given).into(),
        "is_messaging_tool_duplicate" => sent::is_duplicate(given, &strings(&input["sent"])).into(),
        "messaging_tool_target" => {
            let args = input["args"].as_object().cloned().unwrap_or_default();
            let found = sent::target_of(text(&input["toolName"]), &args, &sent::plain_target);
            found.map_or(Value::Null, |target| {
                json!({"tool": target.tool, "provider": target.provider, "accountId": target.account_id, "to": target.to})
            })
        }
        "later_success_clears_tool_error" => {
            let mut notes = ToolNotes::default();
            for (id, failed) in [("failed", true), ("then_succeeded", false)] {
                let start = ToolStart {
                    id: id.into(),
                    name: text(&input[id]["toolName"]).to_owned(),
                    args: Arc::new(input[id]["args"].as_object().cloned().unwrap_or_default()),
                };
                notes.start(&start, &mut Vec::new());
                notes.end(&start, &ToolOutput { failed, ..ToolOutput::text("done") }, &mut Vec::new());
            }
            notes.last_error().is_none().into()
        }
        "tool_aggregate" => {
            tool_display::aggregate(text(&input["toolName"]), &strings(&input["metas"]), input["markdown"] == true)
                .into()
        }
        "tool_meta" => tool_display::tool_meta(text(&input["toolName"]), &input["args"], None).into(),
        "sanitize_tool_result" => tool_notes::sanitised_value(input["result"].clone()),
        _ => return None,
    }))
}

fn parsed_value(parsed: &Parsed, with_silent: bool) -> Value {
    let media = (!parsed.media_urls.is_empty()).then_some(&parsed.media_urls);
    json!({"text": parsed.text, "mediaUrls": media, "replyToId": parsed.reply_to_id,
        "replyToCurrent": parsed.reply_to_current, "replyToTag": parsed.reply_to_tag,
        "audioAsVoice": parsed.audio_as_voice, "isSilent": with_silent && parsed.is_silent})
}

fn accumulate(input: &Value) -> Value {
    let mut accumulator = Accumulator::default();
    let chunks = input["chunks"].as_array().into_iter().flatten();
    chunks
        .map(|chunk| {
            let kind = if chunk["final"] == true { ChunkKind::Final } else { ChunkKind::Partial };
            let parsed = accumulator.consume(text(&chunk["text"]), kind);
            parsed.map_or(Value::Null, |parsed| parsed_value(&parsed, false))
        })
        .collect()
}

/// A payload as read from a case.
pub(super) fn reply(payload: &Value) -> BlockReply {
    BlockReply {
        text: text(&payload["text"]).to_owned(),
        media_urls: strings(&payload["mediaUrls"]),
        audio_as_voice: payload["audioAsVoice"] == true,
        reply_to_id: payload["replyToId"].as_str().map(str::to_owned),
        reply_to_tag: payload["replyToTag"] == true,
        reply_to_current: payload["replyToCurrent"] == true,
        ..BlockReply::default()
    }
}

/// A payload in the form that cases use; fields that we do not touch stay as they were.
pub(super) fn payload_value(reply: &BlockReply, given: &Value) -> Value {
    let mut value: Map<String, Value> = given.as_object().cloned().unwrap_or_default();
    let text = (!reply.text.is_empty()).then(|| reply.text.clone());
    let media = (!reply.media_urls.is_empty()).then(|| reply.media_urls.clone());
    for (name, member) in [
        ("text", json!(text)),
        ("mediaUrls", json!(media)),
        ("audioAsVoice", reply.audio_as_voice.into()),
        ("replyToId", json!(reply.reply_to_id)),
        ("replyToTag", reply.reply_to_tag.into()),
        ("replyToCurrent", reply.reply_to_current.into()),
    ] {
        value.insert(name.into(), member);
    }
    value.into()
}

fn heartbeat_mode(options: &Value) -> HeartbeatMode {
    if text(&options["mode"]) != "heartbeat" {
        return HeartbeatMode::Message;
    }
    let max = &options["maxAckChars"];
    let number = max.as_f64().or_else(|| max.as_str().and_then(|text| text.trim().parse().ok()));
    // As in the limit itself, only whole characters of a fraction count.
    let max_ack_chars = number.map_or(tokens::MAX_ACK_CHARS, |number: f64| number.max(0.0) as usize);
    HeartbeatMode::Heartbeat { max_ack_chars }
}

fn normalise(input: &Value) -> Value {
    let payload = &input["payload"];
    let mut reply = reply(payload);
    let has_media = !reply.media_urls.is_empty() || payload["mediaUrl"].is_string();
    let has_more = has_media || payload.get("channelData").is_some_and(|data| !data.is_null());
    match pinch_embed::replies::normalise::normalise_reply(
        reply.text.clone(),
        has_more,
        input["options"]["responsePrefix"].as_str(),
        &TextTable::default(),
    ) {
        Some(text) => reply.text = text,
        None => return Value::Null,
    }
    payload_value(&reply, payload)
}

//! Whole runs: session events in, callbacks and results out.

use std::sync::Arc;

use pinch_agent_core::event::{AgentEvent, EndReason, RunEnd, ToolStart};
use pinch_agent_core::tool::ToolOutput;
use pinch_coding_agent::compaction::{Compacted, CompactionReason};
use pinch_coding_agent::entry::EntryId;
use pinch_coding_agent::event::SessionEvent;
use pinch_embed::delivery::ReplySnapshot;
use pinch_embed::replies::blocks::BlockBreak;
use pinch_embed::replies::piece::Piece;
use pinch_embed::replies::reasoning::promoted;
use pinch_embed::replies::tool_notes::{ToolFormat, Verbose};
use pinch_embed::replies::{ReasoningLevel, Replies, ReplyOptions};
use pinch_embed::run::facts::Facts;
use pinch_llm::event::{BlockKind, StreamEvent};
use pinch_llm::message::{Block, Message, Thinking};
use serde_json::{Map, Value, json};

use super::super::runner::engine;
use super::chunks::chunking;
use super::{assistant, content_value, outputs, strings, text};

/// The result of an operation; `None` for other operations.
pub(super) fn run(op: &str, input: &Value) -> Option<Result<Value, String>> {
    match op {
        "subscribe.run" => Some(subscribe(input)),
        "subscribe.wait_after_unsubscribe" => Some(wait_after_unsubscribe(input)),
        _ => None,
    }
}

/// A run's subscription ends when the run is stopped.
fn wait_after_unsubscribe(input: &Value) -> Result<Value, String> {
    let (mut feed, mut contents, mut events) = (Feed { open: None }, Vec::new(), Vec::new());
    for event in input["events"].as_array().into_iter().flatten() {
        events.extend(feed.events(event, &mut contents)?);
    }
    engine::wait_after_stop(events, input["session"]["isCompacting"] == true).map(outputs)
}

fn subscribe(input: &Value) -> Result<Value, String> {
    let options = &input["options"];
    let callbacks = strings(&options["callbacks"]);
    let has = |name: &str| callbacks.iter().any(|callback| callback == name);
    let mut replies = Replies::new(reply_options(options, has("onBlockReply")));
    replies.enforce_final_tag(options["enforceFinalTag"] == true);
    let mut facts = Facts::default();
    let mut feed = Feed { open: None };
    let (mut calls, mut agent_events, mut contents) = (Vec::new(), Vec::new(), Vec::new());
    let mut snapshot = ReplySnapshot::default();
    for event in input["events"].as_array().into_iter().flatten() {
        for event in feed.events(event, &mut contents)? {
            let mut out = Vec::new();
            replies.push(&event, &mut out);
            facts.observe(&event, |_| false);
            for piece in out {
                record_calls(&piece, &mut snapshot, &mut calls, &mut agent_events);
            }
        }
    }
    calls.retain(|call| has(text(&call["cb"])));
    let mut counts = Map::new();
    for call in &calls {
        let name = text(&call["cb"]).to_owned();
        let count = counts.get(&name).and_then(Value::as_u64).unwrap_or(0) + 1;
        counts.insert(name, count.into());
    }
    let error = replies.last_tool_error();
    let metas = replies.tool_metas().iter().map(|meta| json!({"toolName": meta.tool_name, "meta": meta.meta}));
    let targets = replies.sent().targets().iter().map(|target| {
        json!({"tool": target.tool, "provider": target.provider, "accountId": target.account_id, "to": target.to})
    });
    let some = |n: u64| (n > 0).then_some(n);
    let usage = facts.last_call_usage.map(|_| facts.usage).map(|usage| {
        json!({"input": some(usage.input), "output": some(usage.output), "cacheRead": some(usage.cache_read),
            "cacheWrite": some(usage.cache_write), "total": some(usage.total_tokens)})
    });
    let compaction = facts.compactions;
    Ok(outputs(json!({
        "calls": calls,
        "call_counts": counts,
        "assistantTexts": replies.assistant_texts(),
        "toolMetas": metas.collect::<Vec<_>>(),
        "lastToolError": error.map(|e| json!({"toolName": e.tool_name, "meta": e.meta, "error": e.error})),
        "lastToolErrorTool": error.map(|e| e.tool_name.clone()),
        "messagingToolSentTexts": replies.sent().texts(),
        "messagingToolSentTargets": targets.collect::<Vec<_>>(),
        "didSendViaMessagingTool": replies.sent().any(),
        "usageTotals": usage,
        "compactionCount": compaction.count,
        "lastCompactionTokensAfter": compaction.last_tokens_after,
        "isCompacting": compaction.is_compacting(),
        "finalMessageContent": contents,
        "agentEvents": agent_events,
    })))
}

fn reply_options(options: &Value, block_streaming: bool) -> ReplyOptions {
    let verbose = match text(&options["verboseLevel"]) {
        "full" => Verbose::Full,
        "on" => Verbose::On,
        _ => Verbose::Off,
    };
    let chunks = &options["blockReplyChunking"];
    ReplyOptions {
        block_streaming,
        block_reply_break: match text(&options["blockReplyBreak"]) {
            "message_end" => BlockBreak::MessageEnd,
            "paragraph" => BlockBreak::Paragraph,
            _ => BlockBreak::TextEnd,
        },
        chunking: chunks.is_object().then(|| chunking(chunks)),
        reasoning: match text(&options["reasoningMode"]) {
            "on" => ReasoningLevel::On,
            "stream" => ReasoningLevel::Stream,
            _ => ReasoningLevel::Off,
        },
        verbose: match (options["shouldEmitToolResult"].as_bool(), options["shouldEmitToolOutput"].as_bool()) {
            (_, Some(true)) => Verbose::Full,
            (Some(false), _) => Verbose::Off,
            (Some(true), _) => verbose.max(Verbose::On),
            (None, _) => verbose,
        },
        tool_result_format: match text(&options["toolResultFormat"]) {
            "plain" => ToolFormat::Plain,
            _ => ToolFormat::Markdown,
        },
        ..ReplyOptions::default()
    }
}

/// The callbacks for a piece, in the form that cases use.
fn record_calls(piece: &Piece, snapshot: &mut ReplySnapshot, calls: &mut Vec<Value>, agent_events: &mut Vec<Value>) {
    match piece {
        Piece::Partial(growth) => {
            snapshot.grow(growth);
            let data = snapshot.partial().to_value();
            agent_events.push(json!({"stream": "assistant", "data": data}));
            calls.push(json!({"cb": "onAgentEvent", "stream": "assistant", "data": data}));
            if growth.shown {
                let reply = snapshot.partial();
                let media = (!reply.media_urls.is_empty()).then_some(reply.media_urls);
                calls.push(json!({"cb": "onPartialReply", "text": reply.text, "mediaUrls": media}));
            }
        }
        Piece::Block(block) => {
            let mut call = super::parts::payload_value(block, &Value::Null);
            call["cb"] = "onBlockReply".into();
            calls.push(call);
        }
        Piece::Flushed => calls.push(json!({"cb": "onBlockReplyFlush"})),
        Piece::AssistantStart => calls.push(json!({"cb": "onAssistantMessageStart"})),
        Piece::Reasoning(growth) => {
            snapshot.grow_reasoning(growth);
            agent_events.push(json!({"stream": "thinking", "data": snapshot.partial_reasoning().to_value()}));
            calls.push(json!({"cb": "onReasoningStream", "text": snapshot.reasoning().formatted}));
        }
        Piece::ReasoningEnd => calls.push(json!({"cb": "onReasoningEnd"})),
        Piece::ToolResult(note) => {
            let media = (!note.media_urls.is_empty()).then_some(&note.media_urls);
            let text = (!note.text.is_empty()).then_some(&note.text);
            calls.push(
                json!({"cb": "onToolResult", "text": text, "mediaUrls": media, "audioAsVoice": note.audio_as_voice}),
            );
        }
        Piece::Agent(note) => {
            agent_events.push(json!({"stream": note.stream.as_str(), "data": note.data}));
            if !note.for_caller().is_null() {
                calls.push(json!({"cb": "onAgentEvent", "stream": note.stream.as_str(), "data": note.for_caller()}));
            }
        }
        _ => {}
    }
}

/// Converts upstream events into ours.
struct Feed {
    /// The index and kind of the open block.
    open: Option<(usize, &'static str)>,
}

impl Feed {
    fn events(&mut self, event: &Value, contents: &mut Vec<Value>) -> Result<Vec<SessionEvent>, String> {
        let agent = |event| vec![SessionEvent::Agent(event)];
        let message = &event["message"];
        let is_assistant = message["role"] == "assistant";
        Ok(match text(&event["type"]) {
            "agent_start" => agent(AgentEvent::AgentStart),
            "agent_end" => {
                let end =
                    RunEnd { messages: Vec::new(), reason: EndReason::Done, error: None, pending_calls: Vec::new() };
                vec![SessionEvent::RunEnd { end, will_retry: false }]
            }
            "message_start" if is_assistant => {
                self.open = None;
                agent(AgentEvent::MessageStart(Arc::new(Message::Assistant(assistant(message)?))))
            }
            "message_start" => agent(AgentEvent::MessageStart(Arc::new(Message::user(text(&message["content"]), 0)))),
            "message_update" if is_assistant => self.update(message, &event["assistantMessageEvent"]),
            "message_end" if is_assistant => {
                let message = Message::Assistant(assistant(message)?);
                let message = promoted(&message).unwrap_or_else(|| Arc::new(message));
                contents.extend(message.as_assistant().map(|ended| content_value(&ended.content)));
                agent(AgentEvent::MessageEnd { message, error: None, queued: None })
            }
            "tool_execution_start" => agent(AgentEvent::ToolStart(tool_start(event))),
            "tool_execution_update" => agent(AgentEvent::ToolUpdate {
                start: tool_start(event),
                so_far: Box::new(tool_output(&event["partialResult"], false)),
            }),
            "tool_execution_end" => agent(AgentEvent::ToolEnd {
                start: tool_start(event),
                output: Box::new(tool_output(&event["result"], event["isError"] == true)),
                duration_ms: None,
            }),
            "auto_compaction_start" | "compaction_start" => {
                vec![SessionEvent::CompactionStart { reason: CompactionReason::Threshold }]
            }
            "auto_compaction_end" | "compaction_end" | "compaction_done" => vec![compaction_end(event)],
            _ => Vec::new(),
        })
    }

    fn update(&mut self, message: &Value, inner: &Value) -> Vec<SessionEvent> {
        let index = inner["contentIndex"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let (kind, phase) = text(&inner["type"]).split_once('_').unwrap_or(("", ""));
        let block_kind = match kind {
            "text" => BlockKind::Text,
            "thinking" => BlockKind::Thinking { redacted: false },
            _ => return Vec::new(),
        };
        let kind = if kind == "text" { "text" } else { "thinking" };
        let mut events = Vec::new();
        if self.open != Some((index, kind)) {
            self.open = Some((index, kind));
            events.push(StreamEvent::BlockStart { index, kind: block_kind });
        }
        let delta = text(&inner["delta"]);
        let content = text(&inner["content"]);
        let brought = if delta.is_empty() && phase == "start" { content } else { delta };
        if !brought.is_empty() {
            events.push(StreamEvent::Delta { index, text: brought.into() });
        }
        if phase == "end" {
            let block = if kind == "text" {
                Block::text(if delta.is_empty() { content } else { "" })
            } else {
                let thinking = message["content"][index]["thinking"].as_str().unwrap_or(content);
                Block::Thinking(Thinking { thinking: thinking.to_owned(), ..Thinking::default() })
            };
            events.push(StreamEvent::BlockEnd { index, block: Arc::new(block) });
        }
        events.into_iter().map(|event| SessionEvent::Agent(AgentEvent::MessageUpdate(event))).collect()
    }
}

fn tool_start(event: &Value) -> ToolStart {
    ToolStart {
        id: text(&event["toolCallId"]).into(),
        name: text(&event["toolName"]).to_owned(),
        args: Arc::new(event["args"].as_object().cloned().unwrap_or_default()),
    }
}

/// A result in upstream's form: content and details, or any object.
fn tool_output(result: &Value, failed: bool) -> ToolOutput {
    let blocks = result["content"].as_array().into_iter().flatten();
    let content = blocks.filter_map(|block| block["text"].as_str()).map(Block::text).collect();
    let details = match result.get("details") {
        Some(details) => Some(details.clone()),
        None if result.is_object() && result.get("content").is_none() => Some(result.clone()),
        None => None,
    };
    ToolOutput { content, details, failed, ..ToolOutput::default() }
}

fn compaction_end(event: &Value) -> SessionEvent {
    let reason = CompactionReason::Threshold;
    let result = event["result"].is_object().then(|| {
        Box::new(Compacted {
            entry_id: EntryId::new(""),
            reason,
            summary: text(&event["result"]["summary"]).to_owned(),
            first_kept_entry_id: EntryId::new(""),
            tokens_before: 0,
            estimated_tokens_after: event["result"]["tokensAfter"].as_u64().unwrap_or(0),
            messages_after: 0,
            details: None,
            usage: None,
            from_extension: false,
        })
    });
    let aborted = event["aborted"] == true;
    SessionEvent::CompactionEnd { reason, result, aborted, will_retry: event["willRetry"] == true, error_message: None }
}

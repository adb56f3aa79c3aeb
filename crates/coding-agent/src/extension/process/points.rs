//! Payloads and answers of the points as JSON.

use std::sync::Arc;

use pinch_agent_core::hooks::{BeforeTool, ToolPatch};
use pinch_agent_core::queue::QueueKind;
use pinch_agent_core::tool::{JsonObject, ToolOutput};
use pinch_llm::message::{Block, Content, Image, Message};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::compaction::hooks::{BeforeCompaction, BeforeMove, MoveChanges, PendingCompaction, PendingMove};
use crate::compaction::{ByExtension, CompactError, Compacted, Summarised};
use crate::entry::{CustomMessage, EntryId};
use crate::extension::actions::SessionSnapshot;
use crate::extension::{
    AgentStartAction, AnswerOutcome, BeforeAgentStart, Boundary, BoundaryAction, ContextAction, Draft, ExtensionError,
    Input, InputAction, MessageAction, Notification, ResourcePaths, SwitchDecision, TrustAction, TurnEnd,
    UserBashAction,
};
use crate::prompt::PromptSections;
use crate::tools::bash::UserCommand;

type HandlerResult<T> = Result<T, ExtensionError>;

/// Builds an object, omitting members without a value.
pub(super) fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let given = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(given.collect())
}

/// Parses a member of an answer, or returns `None` if it is missing or null.
pub(super) fn member<T: DeserializeOwned>(answer: &Value, name: &str) -> HandlerResult<Option<T>> {
    match answer.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => serde_json::from_value(value.clone())
            .map(Some)
            .map_err(|error| ExtensionError::new(format!("Invalid \"{name}\": {error}"))),
    }
}

/// Parses a required member.
pub(super) fn needed<T: DeserializeOwned>(params: &Value, name: &str) -> HandlerResult<T> {
    member(params, name)?.ok_or_else(|| ExtensionError::new(format!("\"{name}\" is missing")))
}

/// Serializes an array or object; a value that cannot be serialized becomes null.
pub(super) fn value<T: serde::Serialize + ?Sized>(from: &T) -> Value {
    serde_json::to_value(from).unwrap_or_default()
}

pub(super) fn images(images: &[Image]) -> Option<Value> {
    let blocks: Vec<Block> = images.iter().cloned().map(Block::Image).collect();
    (!blocks.is_empty()).then(|| value(&blocks))
}

fn images_of(blocks: Option<Vec<Block>>) -> Option<Vec<Image>> {
    let image = |block| match block {
        Block::Image(image) => Some(image),
        _ => None,
    };
    Some(blocks?.into_iter().filter_map(image).collect())
}

/// Parses a custom message from `{customType, content, display, details}`.
pub(super) fn custom(from: &Value) -> HandlerResult<CustomMessage> {
    Ok(CustomMessage {
        custom_type: needed(from, "customType")?,
        content: member(from, "content")?.unwrap_or_else(|| Content::Text(String::new())),
        display: member(from, "display")?.unwrap_or(true),
        details: from.get("details").filter(|details| !details.is_null()).cloned(),
    })
}

/// Returns the payload of a notification that is not a session event.
pub(super) fn notification(notification: &Notification<'_>) -> Option<Value> {
    let path = |path: Option<&std::path::PathBuf>| path.map(|path| value(&path.to_string_lossy()));
    Some(match notification {
        Notification::Event(_) => return None,
        Notification::TurnStart { turn_index, timestamp } => json!({"turnIndex": turn_index, "timestamp": timestamp}),
        Notification::SessionStart { reason, previous } => {
            object([("reason", Some(reason.as_str().into())), ("previousSessionFile", path(*previous))])
        }
        Notification::SessionShutdown { reason, target } => {
            object([("reason", Some(reason.as_str().into())), ("targetSessionFile", path(*target))])
        }
        Notification::Compacted { done, entry, will_retry } => json!({
            "compactionEntry": entry.to_value(),
            "fromExtension": done.from_extension,
            "reason": done.reason.as_str(),
            "willRetry": will_retry,
        }),
        Notification::CompactFailed { reason, error, message, from_extension } => {
            let is_aborted = matches!(error, CompactError::Cancelled);
            object([
                ("reason", Some(reason.as_str().into())),
                ("errorMessage", (!is_aborted).then(|| Value::from(*message))),
                ("aborted", Some(is_aborted.into())),
                ("willRetry", Some(false.into())),
                ("fromExtension", Some((*from_extension).into())),
            ])
        }
        Notification::Moved(moved) => object([
            ("newLeafId", Some(value(&moved.new_leaf.as_ref().map(EntryId::as_str)))),
            ("oldLeafId", Some(value(&moved.old_leaf.as_ref().map(EntryId::as_str)))),
            ("summaryEntryId", moved.summary.as_ref().map(|id| id.as_str().into())),
            ("fromExtension", Some(moved.from_hook.into())),
        ]),
        Notification::Response { status, headers } => {
            let headers: Map<String, Value> =
                headers.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
            json!({"status": status, "headers": headers})
        }
        Notification::Model { model, previous, source } => {
            json!({"model": model.to_record(), "previousModel": previous.to_record(), "source": source.as_str()})
        }
        Notification::Thinking { level, previous } => {
            json!({"level": level.as_str(), "previousLevel": previous.as_str()})
        }
        Notification::DialogStart(dialog) | Notification::DialogEnd(dialog) => {
            json!({"reason": "ui_prompt", "kind": dialog.kind.as_str(), "title": dialog.title})
        }
    })
}

/// Serializes the result of a compaction.
pub(super) fn compacted(done: &Compacted) -> Value {
    object([
        ("summary", Some(done.summary.as_str().into())),
        ("firstKeptEntryId", Some(done.first_kept_entry_id.as_str().into())),
        ("tokensBefore", Some(done.tokens_before.into())),
        ("estimatedTokensAfter", Some(done.estimated_tokens_after.into())),
        ("usage", done.usage.as_ref().map(value)),
        ("details", done.details.clone()),
    ])
}

pub(super) fn trust_answer(answer: &Value) -> HandlerResult<TrustAction> {
    let trusted = match member::<String>(answer, "trusted")?.as_deref() {
        None | Some("undecided") => return Ok(TrustAction::Undecided),
        Some("yes") => true,
        Some("no") => false,
        Some(other) => return Err(ExtensionError::new(format!("Unknown decision: {other}"))),
    };
    Ok(TrustAction::Decided { trusted, remember: member(answer, "remember")?.unwrap_or(false) })
}

pub(super) fn resources(answer: &Value) -> HandlerResult<ResourcePaths> {
    let paths = |name| Ok::<_, ExtensionError>(member(answer, name)?.unwrap_or_default());
    Ok(ResourcePaths { skills: paths("skillPaths")?, prompts: paths("promptPaths")?, themes: paths("themePaths")? })
}

pub(super) fn is_cancelled(answer: &Value) -> HandlerResult<bool> {
    Ok(member(answer, "cancel")?.unwrap_or(false))
}

pub(super) fn leave(answer: &Value) -> HandlerResult<SwitchDecision> {
    Ok(if is_cancelled(answer)? { SwitchDecision::Cancel } else { SwitchDecision::Proceed })
}

pub(super) fn compaction(ahead: &PendingCompaction<'_>) -> Value {
    let made = ahead.preparation;
    let preparation = object([
        ("firstKeptEntryId", Some(made.first_kept_entry_id.as_str().into())),
        ("messagesToSummarize", Some(value(&made.messages_to_summarise))),
        ("turnPrefixMessages", Some(value(&made.turn_prefix))),
        ("isSplitTurn", Some(made.is_split_turn.into())),
        ("tokensBefore", Some(made.tokens_before.into())),
        ("previousSummary", made.previous_summary.as_deref().map(Value::from)),
    ]);
    object([
        ("preparation", Some(preparation)),
        ("customInstructions", ahead.focus.map(Value::from)),
        ("reason", Some(ahead.reason.as_str().into())),
        ("willRetry", Some(ahead.will_retry.into())),
    ])
}

pub(super) fn compaction_answer(answer: &Value) -> HandlerResult<BeforeCompaction> {
    if is_cancelled(answer)? {
        return Ok(BeforeCompaction::Cancel);
    }
    let Some(made) = answer.get("compaction").filter(|made| !made.is_null()) else {
        return Ok(BeforeCompaction::Continue);
    };
    let first: Option<String> = member(made, "firstKeptEntryId")?;
    let by_extension = ByExtension {
        first_kept_entry_id: first.as_deref().map(EntryId::new),
        tokens_before: member(made, "tokensBefore")?,
        details: made.get("details").cloned(),
    };
    let summary: String = needed(made, "summary")?;
    let made = Summarised::new(summary).with_extension(by_extension);
    Ok(BeforeCompaction::Instead(Box::new(made)))
}

pub(super) fn tree(ahead: &PendingMove) -> Value {
    let left: Vec<Value> = ahead.left.iter().map(|entry| entry.to_value()).collect();
    let id = |id: &Option<EntryId>| Some(value(&id.as_ref().map(EntryId::as_str)));
    let preparation = object([
        ("targetId", Some(ahead.target.as_str().into())),
        ("oldLeafId", id(&ahead.old_leaf)),
        ("commonAncestorId", id(&ahead.common_ancestor)),
        ("entriesToSummarize", Some(left.into())),
        ("userWantsSummary", Some(ahead.summarise.into())),
        ("customInstructions", ahead.focus.as_deref().map(Value::from)),
        ("replaceInstructions", Some(ahead.replace_instructions.into())),
        ("label", ahead.label.as_deref().map(Value::from)),
    ]);
    json!({"preparation": preparation})
}

pub(super) fn tree_answer(answer: &Value) -> HandlerResult<BeforeMove> {
    if is_cancelled(answer)? {
        return Ok(BeforeMove::Cancel);
    }
    let summary = match answer.get("summary").filter(|summary| !summary.is_null()) {
        Some(summary) => Some((needed(summary, "summary")?, summary.get("details").cloned())),
        None => None,
    };
    Ok(BeforeMove::Continue(MoveChanges {
        summary,
        focus: member(answer, "customInstructions")?,
        replace_instructions: member(answer, "replaceInstructions")?,
        label: member(answer, "label")?,
    }))
}

/// Parses changed messages. An unchanged message stays the same value, so that attached data is preserved.
pub(super) fn context_answer(answer: &Value, before: &[Arc<Message>]) -> HandlerResult<ContextAction> {
    let Some(messages) = member::<Vec<Message>>(answer, "messages")? else { return Ok(ContextAction::Keep) };
    let known = |(at, message): (usize, Message)| match before.get(at) {
        Some(same) if **same == message => Arc::clone(same),
        _ => Arc::new(message),
    };
    Ok(ContextAction::Replace(messages.into_iter().enumerate().map(known).collect()))
}

/// Serializes what the system prompt is made of, as far as sessions know it.
pub(super) fn prompt_options(session: &SessionSnapshot) -> Value {
    let tools: Value = session.active_tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    json!({"cwd": session.cwd.to_string_lossy(), "selectedTools": tools})
}

pub(super) fn agent_start(start: &BeforeAgentStart, session: &SessionSnapshot) -> Value {
    let custom = start.message_type.as_deref().map(|custom_type| {
        let blocks = std::iter::once(Block::text(&*start.prompt)).chain(start.images.iter().cloned().map(Block::Image));
        json!({"role": "custom", "customType": custom_type, "content": blocks.collect::<Vec<_>>()})
    });
    let system: Vec<&str> = start.system.sections().map(|(_, text)| text).collect();
    object([
        ("prompt", Some(start.prompt.as_str().into())),
        ("images", images(&start.images)),
        ("systemPrompt", Some(system.join("\n\n").into())),
        ("systemPromptOptions", Some(prompt_options(session))),
        ("messageType", Some(if custom.is_some() { "custom" } else { "user" }.into())),
        ("message", custom),
    ])
}

pub(super) fn agent_start_answer(answer: &Value) -> HandlerResult<AgentStartAction> {
    let one = answer.get("message").filter(|message| !message.is_null());
    let more: Vec<Value> = member(answer, "messages")?.unwrap_or_default();
    let messages = one.into_iter().chain(&more).map(custom).collect::<HandlerResult<_>>()?;
    let system: Option<String> = member(answer, "systemPrompt")?;
    let sections = member(answer, "sections")?.unwrap_or_default();
    Ok(AgentStartAction { messages, system: system.map(PromptSections::text), sections })
}

/// Serializes the combined result so far, after a turn or before the session becomes idle.
pub(super) fn boundary(so_far: &Boundary, outcome: AnswerOutcome) -> Value {
    let entries: Vec<Value> = so_far.drafts.iter().map(Draft::to_value).collect();
    json!({"entries": entries, "continue": so_far.continues, "outcome": outcome.as_str()})
}

pub(super) fn turn_end(turn: &TurnEnd<'_>, so_far: &Boundary) -> Value {
    let mut payload = boundary(so_far, turn.outcome);
    payload["turnIndex"] = turn.turn_index.into();
    payload["message"] = value(&**turn.message);
    payload["toolResults"] = value(turn.results);
    payload["toolResultEntryIds"] = turn.result_entries.iter().map(EntryId::as_str).collect();
    if let Some(id) = turn.message_entry {
        payload["messageEntryId"] = id.as_str().into();
    }
    payload
}

pub(super) fn boundary_answer(answer: &Value) -> HandlerResult<BoundaryAction> {
    let drafts = member::<Vec<Value>>(answer, "entries")?;
    let drafts = drafts.map(|drafts| drafts.iter().map(Draft::from_value).collect::<Result<Vec<_>, _>>()).transpose();
    let drafts = drafts.map_err(|why| ExtensionError::new(format!("Invalid \"entries\": {why}")))?;
    Ok(BoundaryAction { drafts, continues: member(answer, "continue")? })
}

pub(super) fn message_answer(answer: &Value) -> HandlerResult<MessageAction> {
    let message: Option<Message> = member(answer, "message")?;
    Ok(message.map_or(MessageAction::Keep, |message| MessageAction::Replace(Arc::new(message))))
}

pub(super) fn tool_call_answer(answer: &Value) -> HandlerResult<BeforeTool> {
    if member(answer, "block")?.unwrap_or(false) {
        let reason = member(answer, "reason")?.unwrap_or_default();
        return Ok(BeforeTool::Deny { reason, end_run: member(answer, "terminate")?.unwrap_or(false), details: None });
    }
    Ok(member::<JsonObject>(answer, "input")?.map_or(BeforeTool::Allow, BeforeTool::Rewrite))
}

pub(super) fn tool_result_answer(answer: &Value) -> HandlerResult<ToolPatch> {
    Ok(ToolPatch {
        content: member(answer, "content")?,
        details: answer.get("details").filter(|details| !details.is_null()).cloned(),
        structured: answer.get("structuredContent").filter(|value| !value.is_null()).cloned(),
        failed: member(answer, "isError")?,
        end_run: member(answer, "terminate")?,
    })
}

/// Parses the output of a tool.
pub(super) fn tool_output(answer: &Value) -> HandlerResult<ToolOutput> {
    let content = match member::<Content>(answer, "content")? {
        Some(Content::Text(text)) => vec![Block::text(text)],
        Some(Content::Blocks(blocks)) => blocks,
        None => Vec::new(),
    };
    Ok(ToolOutput {
        content,
        details: answer.get("details").filter(|details| !details.is_null()).cloned(),
        structured: answer.get("structuredContent").filter(|value| !value.is_null()).cloned(),
        failed: member(answer, "isError")?.unwrap_or(false),
        end_run: member(answer, "terminate")?.unwrap_or(false),
        usage: member(answer, "usage")?,
    })
}

pub(super) fn user_bash_answer(answer: &Value) -> HandlerResult<UserBashAction> {
    if member(answer, "block")?.unwrap_or(false) {
        return Ok(UserBashAction::Block { reason: member(answer, "reason")?.unwrap_or_default() });
    }
    let Some(ran) = answer.get("result").filter(|ran| !ran.is_null()) else { return Ok(UserBashAction::Run) };
    Ok(UserBashAction::Instead(UserCommand {
        output: member(ran, "output")?.unwrap_or_default(),
        exit_code: member(ran, "exitCode")?,
        cancelled: member(ran, "cancelled")?.unwrap_or(false),
        truncated: member(ran, "truncated")?.unwrap_or(false),
        full_output_path: member(ran, "fullOutputPath")?,
    }))
}

pub(super) fn input(input: &Input) -> Value {
    let queue = input.queue.map(|queue| match queue {
        QueueKind::Steering => Value::from("steer"),
        QueueKind::FollowUp => Value::from("followUp"),
    });
    object([
        ("text", Some(input.text.as_str().into())),
        ("images", images(&input.images)),
        ("source", Some(input.source.as_str().into())),
        ("streamingBehavior", queue),
    ])
}

pub(super) fn input_answer(answer: &Value) -> HandlerResult<InputAction> {
    match member::<String>(answer, "action")?.as_deref() {
        None | Some("continue") => Ok(InputAction::Continue),
        Some("handled") => Ok(InputAction::Handled),
        Some("transform") => {
            Ok(InputAction::Transform { text: needed(answer, "text")?, images: images_of(member(answer, "images")?) })
        }
        Some(other) => Err(ExtensionError::new(format!("Unknown action: {other}"))),
    }
}

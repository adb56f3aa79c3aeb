//! Events of hooks as JSON, and answers from JSON, with OpenClaw's member names.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pinch_coding_agent::extension::ExtensionError;
use pinch_coding_agent::extension::process::MAX_LINE;
use pinch_llm::message::{Message, ToolResult, block};
use pinch_ports::ApprovalSeverity;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::plugin::{
    AfterToolCall, AgentBootstrap, AgentEnd, AgentStartChanges, ApprovalResolved, BeforeReset, BeforeToolCall,
    CompactionFinished, CompactionStarting, FirstAnswer, HookContext, JoinedText, LastAnswer, LlmInput, LlmOutput,
    MessageChanges, MessageContext, MessageReceived, MessageSending, MessageSent, MessageWrite, ModelOverride,
    PromptChanges, RequiredApproval, ResetReason, RunVerdict, SessionContext, SessionEnd, SessionStart,
    ToolCallChanges, ToolResultPersist, WorkspaceFile,
};

/// Maximum bytes of messages in an event, leaving room for the rest of the line.
const MAX_MESSAGES: usize = MAX_LINE - (2 << 20);

/// A process answers with an object, or with null for no answer.
type HookAnswer<T> = Result<T, ExtensionError>;

/// Builds an object, omitting members without a value.
fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let given = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(given.collect())
}

fn text(text: Option<&str>) -> Option<Value> {
    text.map(Value::from)
}

fn path(path: Option<&PathBuf>) -> Option<Value> {
    path.map(|path| path.to_string_lossy().into())
}

fn value(of: &impl serde::Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

/// Sets a member to the newest messages that fit into a line; `messagesOmitted` is the number of the others.
fn set_messages(event: &mut Value, name: &str, messages: &[Arc<Message>]) {
    let mut room = MAX_MESSAGES;
    let mut sent = Vec::new();
    for message in messages.iter().rev() {
        let message = value(&**message);
        let Some(left) = room.checked_sub(message.to_string().len() + 1) else { break };
        room = left;
        sent.push(message);
    }
    sent.reverse();
    if sent.len() < messages.len() {
        event["messagesOmitted"] = (messages.len() - sent.len()).into();
    }
    event[name] = sent.into();
}

pub(super) fn run_context(cx: &HookContext) -> Value {
    let channel = text(cx.channel.as_deref());
    object([
        ("runId", Some(cx.run_id.as_str().into())),
        ("agentId", Some(cx.agent_id.as_str().into())),
        ("sessionKey", cx.session_key.as_ref().map(|key| key.as_str().into())),
        ("sessionId", Some(cx.session_id.as_str().into())),
        ("workspaceDir", path(cx.workspace.as_ref())),
        ("messageProvider", channel.clone()),
        ("channelId", channel),
        ("trigger", Some(cx.trigger.as_str().into())),
    ])
}

pub(super) fn message_context(cx: &MessageContext) -> Value {
    object([
        ("channelId", text(cx.channel.as_deref())),
        ("accountId", text(cx.account.as_deref())),
        ("conversationId", text(cx.conversation.as_deref())),
        ("sessionKey", cx.session_key.as_ref().map(|key| key.as_str().into())),
        ("runId", cx.run_id.as_ref().map(|run| run.as_str().into())),
    ])
}

pub(super) fn session_context(cx: &SessionContext) -> Value {
    object([
        ("agentId", Some(cx.agent_id.as_str().into())),
        ("sessionKey", cx.session_key.as_ref().map(|key| key.as_str().into())),
        ("sessionId", Some(cx.session_id.as_str().into())),
    ])
}

pub(super) fn prompt_build(prompt: &str, messages: &[Arc<Message>]) -> Value {
    let mut event = json!({"prompt": prompt});
    set_messages(&mut event, "messages", messages);
    event
}

pub(super) fn llm_input(event: &LlmInput, cx: &HookContext) -> Value {
    let mut sent = object([
        ("runId", Some(cx.run_id.as_str().into())),
        ("sessionId", Some(cx.session_id.as_str().into())),
        ("provider", Some(event.provider.as_str().into())),
        ("model", Some(event.model.as_str().into())),
        ("systemPrompt", text(event.system_prompt.as_deref())),
        ("prompt", Some(event.prompt.as_str().into())),
        ("imagesCount", Some(event.n_images.into())),
    ]);
    set_messages(&mut sent, "historyMessages", &event.history);
    sent
}

pub(super) fn llm_output(event: &LlmOutput, cx: &HookContext) -> Value {
    object([
        ("runId", Some(cx.run_id.as_str().into())),
        ("sessionId", Some(cx.session_id.as_str().into())),
        ("provider", Some(event.provider.as_str().into())),
        ("model", Some(event.model.as_str().into())),
        ("assistantTexts", Some(value(&event.assistant_texts))),
        ("lastAssistant", event.last_assistant.clone().map(|last| value(&Message::Assistant(last)))),
        ("usage", Some(value(&event.usage))),
    ])
}

pub(super) fn agent_end(event: &AgentEnd) -> Value {
    let mut sent = object([
        ("success", Some(event.success.into())),
        ("error", text(event.error.as_deref())),
        ("durationMs", Some(event.duration_ms.into())),
        ("attempt", event.attempt.map(Value::from)),
        ("final", Some(event.is_final.into())),
        ("outcome", Some(event.outcome.as_str().into())),
    ]);
    set_messages(&mut sent, "messages", &event.messages);
    sent
}

pub(super) fn compaction_starting(event: &CompactionStarting) -> Value {
    let mut sent = object([
        ("messageCount", Some(event.n_messages.into())),
        ("compactingCount", Some(event.n_compacting.into())),
        ("tokenCount", Some(event.n_tokens.into())),
        ("sessionFile", path(event.session_file.as_ref())),
    ]);
    set_messages(&mut sent, "messages", &event.messages);
    sent
}

pub(super) fn compaction_finished(event: &CompactionFinished) -> Value {
    object([
        // -1 means unknown.
        ("messageCount", Some(event.n_messages.map_or_else(|| (-1).into(), Value::from))),
        ("tokenCount", event.n_tokens.map(Value::from)),
        ("compactedCount", Some(event.n_compacted.into())),
        ("error", text(event.error.as_deref())),
        ("sessionFile", path(event.session_file.as_ref())),
    ])
}

pub(super) fn before_tool_call(event: &BeforeToolCall, cx: &HookContext) -> Value {
    json!({
        "toolName": event.tool, "toolCallId": event.call_id, "params": event.params, "runId": cx.run_id.as_str(),
    })
}

pub(super) fn approval_resolved(event: &ApprovalResolved, cx: &HookContext) -> Value {
    json!({
        "toolName": event.tool, "toolCallId": event.call_id, "resolution": event.resolution.name(),
        "runId": cx.run_id.as_str(),
    })
}

pub(super) fn after_tool_call(event: &AfterToolCall, cx: &HookContext) -> Value {
    object([
        ("toolName", Some(event.tool.as_str().into())),
        ("toolCallId", Some(event.call_id.as_str().into())),
        ("runId", Some(cx.run_id.as_str().into())),
        ("params", Some(value(&event.params))),
        ("result", Some(json!({"content": event.content}))),
        ("error", text(event.error.as_deref())),
        ("durationMs", Some(event.duration_ms.into())),
    ])
}

pub(super) fn tool_result(event: &ToolResultPersist) -> Value {
    let result = &event.result;
    json!({
        "toolName": result.tool_name.as_str(), "toolCallId": result.tool_call_id.as_str(),
        "message": Message::ToolResult(result.clone()), "isSynthetic": event.is_synthetic,
    })
}

pub(super) fn message_write(message: &Message, cx: &HookContext) -> Value {
    object([
        ("message", Some(value(message))),
        ("sessionKey", cx.session_key.as_ref().map(|key| key.as_str().into())),
        ("agentId", Some(cx.agent_id.as_str().into())),
    ])
}

pub(super) fn received(event: &MessageReceived) -> Value {
    let sender = &event.caller.sender;
    let metadata = object([
        ("senderId", text(sender.id.as_deref())),
        ("senderName", text(sender.name.as_deref())),
        ("senderUsername", text(sender.user_name.as_deref())),
        ("imagesCount", Some(event.n_images.into())),
    ]);
    object([
        ("from", text(event.from.as_deref())),
        ("content", Some(event.content.as_str().into())),
        ("timestamp", Some(event.timestamp_ms.into())),
        ("metadata", Some(metadata)),
    ])
}

pub(super) fn sending(event: &MessageSending) -> Value {
    object([
        ("to", text(event.to.as_deref())),
        ("content", Some(event.content.as_str().into())),
        ("metadata", Some(json!({"mediaUrls": event.media}))),
    ])
}

pub(super) fn sent(event: &MessageSent) -> Value {
    object([
        ("to", text(event.to.as_deref())),
        ("content", Some(event.content.as_str().into())),
        ("success", Some(event.success.into())),
        ("error", text(event.error.as_deref())),
    ])
}

pub(super) fn before_reset(event: &BeforeReset) -> Value {
    let reason = match event.reason {
        ResetReason::Asked => "reset",
        ResetReason::Rules => "rules",
    };
    let mut sent = object([("sessionFile", path(event.session_file.as_ref())), ("reason", Some(reason.into()))]);
    set_messages(&mut sent, "messages", &event.messages);
    sent
}

pub(super) fn session_start(event: &SessionStart, cx: &SessionContext) -> Value {
    object([
        ("sessionId", Some(cx.session_id.as_str().into())),
        ("resumedFrom", event.resumed_from.as_ref().map(|before| before.as_str().into())),
    ])
}

pub(super) fn session_end(event: &SessionEnd, cx: &SessionContext) -> Value {
    object([
        ("sessionId", Some(cx.session_id.as_str().into())),
        ("messageCount", Some(event.n_messages.into())),
        ("durationMs", event.duration_ms.map(Value::from)),
    ])
}

/// Parses a member of an answer; missing and null mean none.
fn member<T: DeserializeOwned>(answer: &Value, name: &str) -> HookAnswer<Option<T>> {
    match answer.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(given) => T::deserialize(given)
            .map(Some)
            .map_err(|error| ExtensionError::new(format!("Invalid \"{name}\" in the answer: {error}"))),
    }
}

fn joined(answer: &Value, name: &str) -> HookAnswer<JoinedText> {
    Ok(member::<String>(answer, name)?.map(JoinedText::from).unwrap_or_default())
}

/// Refuses answers that are neither an object nor null.
pub(super) fn checked(answer: Value) -> HookAnswer<Value> {
    match answer {
        Value::Null | Value::Object(_) => Ok(answer),
        _ => Err(ExtensionError::new("The answer is not an object")),
    }
}

pub(super) fn model_override(answer: &Value) -> HookAnswer<ModelOverride> {
    Ok(ModelOverride {
        provider: FirstAnswer(member(answer, "providerOverride")?),
        model: FirstAnswer(member(answer, "modelOverride")?),
    })
}

pub(super) fn start_changes(answer: &Value) -> HookAnswer<AgentStartChanges> {
    Ok(AgentStartChanges {
        model: model_override(answer)?,
        system_prompt: LastAnswer(member(answer, "systemPrompt")?),
        prepend_context: joined(answer, "prependContext")?,
    })
}

pub(super) fn verdict(answer: &Value) -> HookAnswer<RunVerdict> {
    Ok(match member(answer, "reject")?.unwrap_or(false) {
        false => RunVerdict::Proceed,
        true => RunVerdict::Reject {
            reason: member(answer, "rejectReason")?,
            user_message: member(answer, "rejectUserMessage")?,
        },
    })
}

pub(super) fn prompt_changes(answer: &Value) -> HookAnswer<PromptChanges> {
    Ok(PromptChanges {
        system_prompt: LastAnswer(member(answer, "systemPrompt")?),
        prepend_context: joined(answer, "prependContext")?,
        prepend_system_context: joined(answer, "prependSystemContext")?,
        append_system_context: joined(answer, "appendSystemContext")?,
    })
}

pub(super) fn call_changes(answer: &Value) -> HookAnswer<ToolCallChanges> {
    let is_blocked = member(answer, "block")?.unwrap_or(false);
    let reason: Option<String> = member(answer, "blockReason")?;
    Ok(ToolCallChanges {
        block: is_blocked.then(|| reason.unwrap_or_default()),
        params: member::<Map<String, Value>>(answer, "params")?.unwrap_or_default(),
        approval: match answer.get("requireApproval") {
            None | Some(Value::Null) => None,
            Some(asked) => Some(required_approval(asked)?),
        },
    })
}

/// How long to wait for an approval unless the plugin says otherwise.
const APPROVAL_MS: u64 = 120_000;

fn required_approval(asked: &Value) -> HookAnswer<RequiredApproval> {
    if !asked.is_object() {
        return Err(ExtensionError::new("requireApproval in the answer is not an object"));
    }
    let behavior: Option<String> = member(asked, "timeoutBehavior")?;
    let severity: Option<String> = member(asked, "severity")?;
    Ok(RequiredApproval {
        title: member(asked, "title")?.unwrap_or_default(),
        description: member(asked, "description")?.unwrap_or_default(),
        severity: severity.as_deref().and_then(ApprovalSeverity::parse).unwrap_or_default(),
        timeout: Duration::from_millis(member(asked, "timeoutMs")?.unwrap_or(APPROVAL_MS)),
        allows_on_timeout: behavior.as_deref() == Some("allow"),
    })
}

/// Parses a changed tool result: a message, or a text in its place.
pub(super) fn persisted(answer: &Value, before: &ToolResult) -> HookAnswer<Option<ToolResult>> {
    if let Some(Value::String(text)) = answer.get("message") {
        let mut changed = before.clone();
        changed.content = vec![block::Block::text(text.as_str())];
        return Ok(Some(changed));
    }
    match member::<Message>(answer, "message")? {
        None => Ok(None),
        Some(Message::ToolResult(changed)) => Ok(Some(changed)),
        Some(_) => Err(ExtensionError::new("The message in the answer is not a tool result")),
    }
}

pub(super) fn bootstrap(event: &AgentBootstrap) -> Value {
    let file = |file: &WorkspaceFile| {
        object([
            ("name", Some(file.name.as_str().into())),
            ("path", path(Some(&file.path))),
            ("content", text(file.text.as_deref())),
            ("missing", Some(file.text.is_none().into())),
        ])
    };
    let files: Vec<Value> = event.files.iter().map(file).collect();
    json!({"workspaceDir": path(Some(&event.workspace)), "bootstrapFiles": files})
}

/// Returns the files in an answer. A file without a path has that of its name in the workspace.
pub(super) fn bootstrap_files(answer: &Value, event: &AgentBootstrap) -> HookAnswer<Option<Vec<WorkspaceFile>>> {
    let Some(files) = member::<Vec<Map<String, Value>>>(answer, "bootstrapFiles")? else { return Ok(None) };
    let text = |file: &Map<String, Value>, name: &str| file.get(name).and_then(Value::as_str).map(str::to_owned);
    let files = files.iter().map(|file| {
        let name = text(file, "name").filter(|name| !name.trim().is_empty());
        let name = name.ok_or_else(|| ExtensionError::new("A file in the answer has no name"))?;
        let path = text(file, "path").map_or_else(|| event.workspace.join(&name), PathBuf::from);
        Ok(WorkspaceFile { text: text(file, "content"), name, path })
    });
    files.collect::<HookAnswer<Vec<_>>>().map(Some)
}

pub(super) fn write(answer: &Value) -> HookAnswer<MessageWrite> {
    if member(answer, "block")?.unwrap_or(false) {
        return Ok(MessageWrite::Block);
    }
    let message: Option<Message> = member(answer, "message")?;
    Ok(message.map_or(MessageWrite::Keep, |message| MessageWrite::Replace(Arc::new(message))))
}

pub(super) fn message_changes(answer: &Value) -> HookAnswer<MessageChanges> {
    Ok(MessageChanges {
        content: LastAnswer(member(answer, "content")?),
        cancel: LastAnswer(member(answer, "cancel")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_holds_the_newest_messages_that_fit() {
        let big: Vec<_> = (0..5).map(|n| Arc::new(Message::user(n.to_string().repeat(4 << 20), 0))).collect();
        let event = prompt_build("p", &big);
        assert_eq!((event["messages"].as_array().unwrap().len(), &event["messagesOmitted"]), (3, &json!(2)));
        assert!(event["messages"][2].to_string().contains("444") && event.to_string().len() < MAX_LINE);
        let small = prompt_build("p", &big[..1]);
        assert_eq!((&small["messagesOmitted"], &small["prompt"]), (&Value::Null, &json!("p")));
    }

    #[test]
    fn answers_of_the_wrong_type_are_errors() {
        for answer in [json!(["a"]), json!("a"), json!(1)] {
            assert!(checked(answer).is_err());
        }
        let why = |error: ExtensionError| error.to_string();
        let error = why(verdict(&json!({"reject": "yes"})).unwrap_err());
        assert!(error.starts_with("Invalid \"reject\" in the answer"), "{error}");
        assert!(call_changes(&json!({"params": 3})).is_err() && write(&json!({"message": 4})).is_err());
        assert_eq!(call_changes(&json!({"block": true})).unwrap().block.as_deref(), Some(""));
        assert_eq!(verdict(&Value::Null).unwrap(), RunVerdict::Proceed);
    }
}

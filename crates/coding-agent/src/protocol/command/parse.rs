//! Parsing commands from JSON lines.

use std::time::Duration;

use pinch_agent_core::queue::{QueueKind, QueueMode};
use pinch_llm::message::Image;
use pinch_stdx::json;
use pinch_stdx::json::partial::PartialJson;
use serde_json::{Map, Value};

use super::{
    ClientLine, ControlCommand, ExclusiveCommand, Hello, Mutation, QueryCommand, RejectedLine, RpcCommand, RpcRequest,
    RunCommand, ToolDecision, ToolReply, UiAnswer, UiReply, UserInput,
};
use crate::entry::EntryId;

/// The type of an answer to an approval request.
const TOOL_REPLY: &str = "tool_approval_response";

/// Parses a line without its line break.
///
/// # Errors
/// The response to send for an invalid line.
pub fn parse(line: &[u8]) -> Result<ClientLine, RejectedLine> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let of_line = |error: String| RejectedLine::no_command(&error);
    // As in JavaScript: lone surrogates and invalid UTF-8 become U+FFFD.
    let value: Value =
        json::from_slice(line).map_err(|error| RejectedLine { id: id_of(line), ..of_line(error.to_string()) })?;
    let Value::Object(fields) = value else { return Err(of_line("a command is a JSON object".into())) };
    let id = fields.get("id").cloned();
    let Some(name) = fields.get("type").and_then(Value::as_str).map(str::to_owned) else {
        return Err(RejectedLine { id, ..of_line("\"type\" must be a string".into()) });
    };
    if name == "extension_ui_response" {
        return Ok(ClientLine::UiReply(ui_reply(&fields)));
    }
    if name == TOOL_REPLY {
        return match tool_reply(&Fields(&fields)) {
            Ok(reply) => Ok(ClientLine::ToolReply(reply)),
            Err(why) => Err(RejectedLine { id, error: format!("Invalid command: {why}"), name }),
        };
    }
    match command(&name, &Fields(&fields)) {
        Ok(Some(command)) => Ok(ClientLine::Command(Box::new(RpcRequest { id, name, command }))),
        Ok(None) => Err(RejectedLine { id, error: format!("Unknown command: {name}"), name }),
        Err(why) => Err(RejectedLine { id, error: format!("Invalid command: {why}"), name }),
    }
}

/// Recovers the id from a malformed line, unless it may be truncated itself.
fn id_of(line: &[u8]) -> Option<Value> {
    let mut read = PartialJson::new();
    read.push(&String::from_utf8_lossy(line));
    let id = read.object().remove("id").filter(|id| id.is_string() || id.is_number())?;
    // If a number or string is unterminated, it absorbs this digit.
    read.push("0");
    (read.object().get("id") == Some(&id)).then_some(id)
}

fn command(name: &str, fields: &Fields<'_>) -> Result<Option<RpcCommand>, String> {
    let of_class = match name {
        "export_html" => Some(RpcCommand::ExportHtml { path: fields.optional_text("outputPath")? }),
        _ => control(name, fields)?.map(RpcCommand::Control).or(query(name, fields)?.map(RpcCommand::Query)),
    };
    if of_class.is_some() {
        return Ok(of_class);
    }
    let of_run = run_command(name, fields)?.map(RpcCommand::Run);
    Ok(of_run
        .or(mutation(name, fields)?.map(RpcCommand::Mutation))
        .or(exclusive(name, fields)?.map(RpcCommand::Exclusive)))
}

fn control(name: &str, fields: &Fields<'_>) -> Result<Option<ControlCommand>, String> {
    Ok(Some(match name {
        "hello" => ControlCommand::Hello(Hello {
            capabilities: fields.texts("capabilities")?,
            approval_limit: fields.millis("toolApprovalTimeout")?,
        }),
        "get_commands" => ControlCommand::GetCommands,
        "get_available_models" => ControlCommand::GetAvailableModels,
        "set_steering_mode" => ControlCommand::SetQueueMode { kind: QueueKind::Steering, mode: fields.queue_mode()? },
        "set_follow_up_mode" => ControlCommand::SetQueueMode { kind: QueueKind::FollowUp, mode: fields.queue_mode()? },
        "set_auto_compaction" => ControlCommand::SetAutoCompaction { enabled: fields.flag("enabled")? },
        "set_auto_retry" => ControlCommand::SetAutoRetry { enabled: fields.flag("enabled")? },
        _ => return Ok(None),
    }))
}

fn query(name: &str, fields: &Fields<'_>) -> Result<Option<QueryCommand>, String> {
    Ok(Some(match name {
        "get_state" => QueryCommand::GetState,
        "get_messages" => QueryCommand::GetMessages,
        "get_entries" => QueryCommand::GetEntries { since: fields.optional_text("since")?.map(EntryId::new) },
        "get_tree" => QueryCommand::GetTree,
        "get_fork_messages" => QueryCommand::GetForkMessages,
        "get_last_assistant_text" => QueryCommand::GetLastAssistantText,
        "get_session_stats" => QueryCommand::GetSessionStats,
        "get_available_thinking_levels" => QueryCommand::GetAvailableThinkingLevels,
        _ => return Ok(None),
    }))
}

fn run_command(name: &str, fields: &Fields<'_>) -> Result<Option<RunCommand>, String> {
    Ok(Some(match name {
        "prompt" => RunCommand::Prompt {
            input: fields.input()?,
            queue: fields.word("streamingBehavior", queue_kind, "steer or followUp")?,
        },
        "steer" => RunCommand::Steer(fields.input()?),
        "follow_up" => RunCommand::FollowUp(fields.input()?),
        "clear_queue" => RunCommand::ClearQueue,
        "abort" => RunCommand::Abort,
        "abort_retry" => RunCommand::AbortRetry,
        "bash" => RunCommand::Bash {
            command: fields.text("command")?,
            exclude: fields.optional_flag("excludeFromContext")?.unwrap_or_default(),
        },
        "abort_bash" => RunCommand::AbortBash,
        _ => return Ok(None),
    }))
}

fn mutation(name: &str, fields: &Fields<'_>) -> Result<Option<Mutation>, String> {
    Ok(Some(match name {
        "set_model" => Mutation::SetModel { provider: fields.text("provider")?, model: fields.text("modelId")? },
        "cycle_model" => Mutation::CycleModel,
        "set_thinking_level" => Mutation::SetThinkingLevel { level: fields.text("level")? },
        "cycle_thinking_level" => Mutation::CycleThinkingLevel,
        "set_session_name" => Mutation::SetSessionName { name: fields.text("name")? },
        _ => return Ok(None),
    }))
}

fn exclusive(name: &str, fields: &Fields<'_>) -> Result<Option<ExclusiveCommand>, String> {
    Ok(Some(match name {
        "compact" => ExclusiveCommand::Compact { focus: fields.optional_text("customInstructions")? },
        "new_session" => ExclusiveCommand::NewSession { parent: fields.optional_text("parentSession")? },
        "switch_session" => ExclusiveCommand::SwitchSession { path: fields.text("sessionPath")? },
        "fork" => ExclusiveCommand::Fork { entry: EntryId::new(fields.text("entryId")?) },
        "clone" => ExclusiveCommand::Clone,
        _ => return Ok(None),
    }))
}

fn queue_kind(word: &str) -> Option<QueueKind> {
    match word {
        "steer" => Some(QueueKind::Steering),
        "followUp" => Some(QueueKind::FollowUp),
        _ => None,
    }
}

fn ui_reply(fields: &Map<String, Value>) -> UiReply {
    let id = fields.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_cancelled = fields.get("cancelled") == Some(&Value::Bool(true));
    let value = fields.get("value").and_then(Value::as_str).map(|text| UiAnswer::Value(text.to_owned()));
    let confirmed = fields.get("confirmed").and_then(Value::as_bool).map(UiAnswer::Confirmed);
    UiReply { id, answer: value.or(confirmed).filter(|_| !is_cancelled) }
}

fn tool_reply(fields: &Fields<'_>) -> Result<ToolReply, String> {
    let decision = match fields.text("decision")?.as_str() {
        "approve" => ToolDecision::Approve,
        "approve_for_session" => ToolDecision::ApproveForSession,
        "deny" => ToolDecision::Deny { reason: fields.optional_text("reason")? },
        _ => return Err("decision: must be approve, approve_for_session or deny".to_owned()),
    };
    Ok(ToolReply { id: fields.text("id")?, decision })
}

/// The members of a command. `null` counts as absent.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Result<String, String> {
        self.optional_text(name)?.ok_or_else(|| format!("{name}: is required"))
    }

    fn optional_text(&self, name: &str) -> Result<Option<String>, String> {
        let text = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(|| format!("{name}: must be a string"));
        self.get(name).map(text).transpose()
    }

    fn flag(&self, name: &str) -> Result<bool, String> {
        self.optional_flag(name)?.ok_or_else(|| format!("{name}: is required"))
    }

    fn optional_flag(&self, name: &str) -> Result<Option<bool>, String> {
        let flag = |value: &Value| value.as_bool().ok_or_else(|| format!("{name}: must be true or false"));
        self.get(name).map(flag).transpose()
    }

    fn texts(&self, name: &str) -> Result<Option<Vec<String>>, String> {
        let wrong = || format!("{name}: must be a list of strings");
        let text = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(wrong);
        let list = |value: &Value| value.as_array().ok_or_else(wrong)?.iter().map(text).collect();
        self.get(name).map(list).transpose()
    }

    fn millis(&self, name: &str) -> Result<Option<Duration>, String> {
        let millis = |value: &Value| match value.as_u64().filter(|ms| *ms > 0) {
            Some(ms) => Ok(Duration::from_millis(ms)),
            None => Err(format!("{name}: must be a number of milliseconds above 0")),
        };
        self.get(name).map(millis).transpose()
    }

    fn word<T>(&self, name: &str, parse: impl Fn(&str) -> Option<T>, choices: &str) -> Result<Option<T>, String> {
        let word = |value: &Value| value.as_str().and_then(&parse).ok_or_else(|| format!("{name}: must be {choices}"));
        self.get(name).map(word).transpose()
    }

    fn queue_mode(&self) -> Result<QueueMode, String> {
        self.word("mode", QueueMode::parse, "all or one-at-a-time")?.ok_or_else(|| "mode: is required".to_owned())
    }

    fn input(&self) -> Result<UserInput, String> {
        let text = self.text("message")?;
        let images = match self.get("images") {
            None => Vec::new(),
            Some(Value::Array(list)) => {
                list.iter().enumerate().map(|(at, image)| read_image(at, image)).collect::<Result<_, _>>()?
            }
            Some(_) => return Err("images: must be a list".to_owned()),
        };
        Ok(UserInput { text, images })
    }
}

fn read_image(at: usize, image: &Value) -> Result<Image, String> {
    let text = |name: &str| match image.get(name).and_then(Value::as_str) {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("images.{at}.{name}: must be a non-empty string")),
    };
    Ok(Image { data: text("data")?, mime_type: text("mimeType")? })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(line: &Value) -> Result<ClientLine, RejectedLine> {
        parse(line.to_string().as_bytes())
    }

    fn error(line: &Value) -> String {
        read(line).unwrap_err().error
    }

    #[test]
    fn commands_are_parsed() {
        let line = json!({"id": "1", "type": "prompt", "message": "x", "streamingBehavior": "followUp",
            "images": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]});
        let Ok(ClientLine::Command(request)) = read(&line) else { panic!() };
        let images = vec![Image { data: "AA==".into(), mime_type: "image/png".into() }];
        let input = UserInput { text: "x".into(), images };
        assert_eq!(request.command, RpcCommand::Run(RunCommand::Prompt { input, queue: Some(QueueKind::FollowUp) }));
        assert_eq!(request.id, Some(json!("1")));
        let Ok(ClientLine::Command(request)) = parse(b"{\"type\":\"get_state\"}\r") else { panic!() };
        assert_eq!((request.id, request.command), (None, RpcCommand::Query(QueryCommand::GetState)));
    }

    #[test]
    fn lines_are_parsed_as_in_javascript_and_ids_are_recovered() {
        let Ok(ClientLine::Command(request)) =
            parse(b"{\"id\":\"7\",\"type\":\"prompt\",\"message\":\"a\\ud83d \xff\"}")
        else {
            panic!()
        };
        let input = UserInput { text: "a\u{fffd} \u{fffd}".into(), images: Vec::new() };
        assert_eq!(
            (request.id, request.command),
            (Some(json!("7")), RpcCommand::Run(RunCommand::Prompt { input, queue: None }))
        );
        let id = |line: &str| parse(line.as_bytes()).unwrap_err().id;
        assert_eq!(id(r#"{"id":"7","type":"prompt","message":"x"#), Some(json!("7")));
        assert_eq!(id(r#"{"id":7,"type":}"#), Some(json!(7)));
        assert_eq!(["{\"id\":\"7", "{oops", "{\"id\":[7],\"type\":}", "[1"].map(id), [const { None }; 4]);
    }

    #[test]
    fn errors_include_their_position() {
        let refused = parse(b"{oops").unwrap_err();
        assert!(refused.name == "parse" && refused.error.starts_with("Failed to parse command: "), "{refused:?}");
        assert!(parse(b"null").unwrap_err().error.starts_with("Failed to parse command: "));
        assert_eq!(read(&json!({"id": "7", "type": "bogus"})).unwrap_err().id, Some(json!("7")));
        assert_eq!(error(&json!({"type": "bogus"})), "Unknown command: bogus");
        assert_eq!(error(&json!({"type": "prompt"})), "Invalid command: message: is required");
        assert_eq!(error(&json!({"type": "prompt", "message": 1})), "Invalid command: message: must be a string");
        let image = json!({"type": "steer", "message": "x", "images": [{"data": "AA=="}]});
        assert_eq!(error(&image), "Invalid command: images.0.mimeType: must be a non-empty string");
        assert_eq!(error(&json!({"type": "set_auto_retry"})), "Invalid command: enabled: is required");
        let mode = json!({"type": "set_steering_mode", "mode": "some"});
        assert_eq!(error(&mode), "Invalid command: mode: must be all or one-at-a-time");
    }

    #[test]
    fn approvals_are_parsed() {
        let reply = |value: Value| match read(&value) {
            Ok(ClientLine::ToolReply(reply)) => reply.decision,
            other => panic!("{other:?}"),
        };
        let base =
            |decision: &str| json!({"type": "tool_approval_response", "id": "u", "decision": decision, "reason": "r"});
        assert_eq!(reply(base("approve")), ToolDecision::Approve);
        assert_eq!(reply(base("approve_for_session")), ToolDecision::ApproveForSession);
        assert_eq!(reply(base("deny")), ToolDecision::Deny { reason: Some("r".into()) });
        let wrong = "Invalid command: decision: must be approve, approve_for_session or deny";
        assert_eq!(error(&base("perhaps")), wrong);
        assert_eq!(
            error(&json!({"type": "hello", "capabilities": [1]})),
            "Invalid command: capabilities: must be a list of strings"
        );
        let limit = "Invalid command: toolApprovalTimeout: must be a number of milliseconds above 0";
        assert_eq!(error(&json!({"type": "hello", "toolApprovalTimeout": 0})), limit);
    }

    #[test]
    fn replies_to_extensions_are_not_commands() {
        let reply = |value: Value| match read(&value) {
            Ok(ClientLine::UiReply(reply)) => reply.answer,
            other => panic!("{other:?}"),
        };
        let base = |name: &str, value: Value| json!({"type": "extension_ui_response", "id": "u", name: value});
        assert_eq!(reply(base("value", json!("b"))), Some(UiAnswer::Value("b".into())));
        assert_eq!(reply(base("confirmed", json!(false))), Some(UiAnswer::Confirmed(false)));
        assert_eq!(reply(base("cancelled", json!(true))), None);
    }
}

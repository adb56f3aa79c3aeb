//! Commands of RPC mode, read from lines of JSON. The names are pi's.

use std::time::Duration;

use pinch_agent_core::queue::{QueueKind, QueueMode};
use pinch_llm::message::Image;
use pinch_stdx::json;
use pinch_stdx::json::partial::PartialJson;
use serde_json::{Map, Value};

use crate::entry::EntryId;

/// The type of a line that answers a request for approval.
const TOOL_REPLY: &str = "tool_approval_response";

/// A line that was understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What the answer is told apart by; given back as it came.
    pub id: Option<Value>,
    /// The command's name.
    pub name: String,
    /// What is to be done.
    pub command: Command,
}

/// A line that was not understood, as its answer says it.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The id, where there was one.
    pub id: Option<Value>,
    /// The command's name; `parse` for lines that hold none.
    pub name: String,
    /// Why.
    pub error: String,
}

impl Refused {
    /// A line that holds no command.
    pub fn no_command(why: &str) -> Self {
        Self { id: None, name: "parse".to_owned(), error: format!("Failed to parse command: {why}") }
    }
}

/// What a client can ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// What this program speaks, and what the client wants of it; a command of ours.
    Hello(Hello),
    /// Something the user says.
    Prompt {
        /// The text.
        said: Said,
        /// Where it waits while another prompt runs.
        queue: Option<QueueKind>,
    },
    /// Something the model reads at its next turn.
    Steer(Said),
    /// Something the model reads when it would be done.
    FollowUp(Said),
    /// Stops what is under way.
    Abort,
    /// Stops waiting for a retry.
    AbortRetry,
    /// Stops commands of the user.
    AbortBash,
    /// Takes what waits out of the queues.
    ClearQueue,
    /// Begins a new session.
    NewSession {
        /// The session it follows.
        parent: Option<String>,
    },
    /// Takes another session up.
    SwitchSession {
        /// Its file.
        path: String,
    },
    /// Goes over to a copy that ends before a message of the user.
    Fork {
        /// The message.
        entry: EntryId,
    },
    /// Goes over to a copy of the branch.
    Clone,
    /// What the session is like.
    GetState,
    /// The conversation.
    GetMessages,
    /// Entries in file order.
    GetEntries {
        /// Only those behind this one.
        since: Option<EntryId>,
    },
    /// Entries as a tree.
    GetTree,
    /// Messages that can be forked before.
    GetForkMessages,
    /// The text of the last answer.
    GetLastAssistantText,
    /// Counts, tokens, money.
    GetSessionStats,
    /// What can be written after a `/`.
    GetCommands,
    /// Models that can be used.
    GetAvailableModels,
    /// Thinking levels that the model has.
    GetAvailableThinkingLevels,
    /// Another model.
    SetModel {
        /// Who serves it.
        provider: String,
        /// Its name.
        model: String,
    },
    /// The next model.
    CycleModel,
    /// Another thinking level.
    SetThinkingLevel {
        /// The level's name.
        level: String,
    },
    /// The next thinking level.
    CycleThinkingLevel,
    /// How many waiting messages are taken at a time.
    SetQueueMode {
        /// Of which queue.
        kind: QueueKind,
        /// How many.
        mode: QueueMode,
    },
    /// Compacts the conversation.
    Compact {
        /// What the summary is to look at in particular.
        focus: Option<String>,
    },
    /// Switches compactions that happen by themselves.
    SetAutoCompaction {
        /// On or off.
        enabled: bool,
    },
    /// Switches the repetition of failed answers.
    SetAutoRetry {
        /// On or off.
        enabled: bool,
    },
    /// Runs a command of the user.
    Bash {
        /// The command.
        command: String,
        /// The model is not to see it.
        exclude: bool,
    },
    /// Writes the session as a page.
    ExportHtml {
        /// The file; `None`: one in the working directory.
        path: Option<String>,
    },
    /// Gives the session a name.
    SetSessionName {
        /// The name.
        name: String,
    },
}

/// What a client wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// Names of capabilities that are off until a client asks for them; `None`: they stay as they are.
    pub capabilities: Option<Vec<String>>,
    /// How long a call waits for its approval; `None`: the usual time.
    pub approval_limit: Option<Duration>,
}

/// Text and images.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// The text.
    pub text: String,
    /// The images.
    pub images: Vec<Image>,
}

/// The answer of a client to a request of an extension.
#[derive(Clone, Debug, PartialEq)]
pub struct UiReply {
    /// The request's id.
    pub id: String,
    /// What was answered; `None` when the user answered nothing.
    pub answer: Option<UiAnswer>,
}

/// What a user answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UiAnswer {
    /// A text.
    Value(String),
    /// Yes or no.
    Confirmed(bool),
}

/// The answer of a client to a request for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolReply {
    /// The request's id.
    pub id: String,
    /// What was answered.
    pub decision: ToolDecision,
}

/// What a user says of a call that is about to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolDecision {
    /// It may run.
    Approve,
    /// It may run, and so may all later calls of its tool in this session.
    ApproveForSession,
    /// It may not.
    Deny {
        /// Why, for the model.
        reason: Option<String>,
    },
}

/// One line of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientLine {
    /// A command.
    Command(Box<Request>),
    /// An answer to an extension; nothing is answered to it.
    UiReply(UiReply),
    /// An answer to a request for approval; nothing is answered to it.
    ToolReply(ToolReply),
}

/// Reads a line, without its line end.
///
/// # Errors
/// What is to be answered to a line that cannot be understood.
pub fn parse(line: &[u8]) -> Result<ClientLine, Refused> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let of_line = |error: String| Refused::no_command(&error);
    // As JavaScript reads it: halves of surrogate pairs and bytes that are no UTF-8 become U+FFFD.
    let value: Value =
        json::from_slice(line).map_err(|error| Refused { id: id_of(line), ..of_line(error.to_string()) })?;
    let Value::Object(fields) = value else { return Err(of_line("a command is a JSON object".into())) };
    let id = fields.get("id").cloned();
    let Some(name) = fields.get("type").and_then(Value::as_str).map(str::to_owned) else {
        return Err(Refused { id, ..of_line("\"type\" must be a string".into()) });
    };
    if name == "extension_ui_response" {
        return Ok(ClientLine::UiReply(ui_reply(&fields)));
    }
    if name == TOOL_REPLY {
        return match tool_reply(&Fields(&fields)) {
            Ok(reply) => Ok(ClientLine::ToolReply(reply)),
            Err(why) => Err(Refused { id, error: format!("Invalid command: {why}"), name }),
        };
    }
    match command(&name, &Fields(&fields)) {
        Ok(Some(command)) => Ok(ClientLine::Command(Box::new(Request { id, name, command }))),
        Ok(None) => Err(Refused { id, error: format!("Unknown command: {name}"), name }),
        Err(why) => Err(Refused { id, error: format!("Invalid command: {why}"), name }),
    }
}

/// The id of a line that is broken behind it. One that may be cut off itself is none.
fn id_of(line: &[u8]) -> Option<Value> {
    let mut read = PartialJson::new();
    read.push(&String::from_utf8_lossy(line));
    let id = read.object().remove("id").filter(|id| id.is_string() || id.is_number())?;
    // A number or a text that is still open takes a digit in.
    read.push("0");
    (read.object().get("id") == Some(&id)).then_some(id)
}

fn command(name: &str, fields: &Fields<'_>) -> Result<Option<Command>, String> {
    let entry = |name| fields.text(name).map(EntryId::new);
    Ok(Some(match name {
        "hello" => Command::Hello(Hello {
            capabilities: fields.texts("capabilities")?,
            approval_limit: fields.millis("toolApprovalTimeout")?,
        }),
        "prompt" => Command::Prompt {
            said: fields.said()?,
            queue: fields.word("streamingBehavior", queue_kind, "steer or followUp")?,
        },
        "steer" => Command::Steer(fields.said()?),
        "follow_up" => Command::FollowUp(fields.said()?),
        "abort" => Command::Abort,
        "abort_retry" => Command::AbortRetry,
        "abort_bash" => Command::AbortBash,
        "clear_queue" => Command::ClearQueue,
        "new_session" => Command::NewSession { parent: fields.optional_text("parentSession")? },
        "switch_session" => Command::SwitchSession { path: fields.text("sessionPath")? },
        "fork" => Command::Fork { entry: entry("entryId")? },
        "clone" => Command::Clone,
        "get_state" => Command::GetState,
        "get_messages" => Command::GetMessages,
        "get_entries" => Command::GetEntries { since: fields.optional_text("since")?.map(EntryId::new) },
        "get_tree" => Command::GetTree,
        "get_fork_messages" => Command::GetForkMessages,
        "get_last_assistant_text" => Command::GetLastAssistantText,
        "get_session_stats" => Command::GetSessionStats,
        "get_commands" => Command::GetCommands,
        "get_available_models" => Command::GetAvailableModels,
        "get_available_thinking_levels" => Command::GetAvailableThinkingLevels,
        "set_model" => Command::SetModel { provider: fields.text("provider")?, model: fields.text("modelId")? },
        "cycle_model" => Command::CycleModel,
        "set_thinking_level" => Command::SetThinkingLevel { level: fields.text("level")? },
        "cycle_thinking_level" => Command::CycleThinkingLevel,
        "set_steering_mode" => Command::SetQueueMode { kind: QueueKind::Steering, mode: fields.queue_mode()? },
        "set_follow_up_mode" => Command::SetQueueMode { kind: QueueKind::FollowUp, mode: fields.queue_mode()? },
        "compact" => Command::Compact { focus: fields.optional_text("customInstructions")? },
        "set_auto_compaction" => Command::SetAutoCompaction { enabled: fields.flag("enabled")? },
        "set_auto_retry" => Command::SetAutoRetry { enabled: fields.flag("enabled")? },
        "bash" => Command::Bash {
            command: fields.text("command")?,
            exclude: fields.optional_flag("excludeFromContext")?.unwrap_or_default(),
        },
        "export_html" => Command::ExportHtml { path: fields.optional_text("outputPath")? },
        "set_session_name" => Command::SetSessionName { name: fields.text("name")? },
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

    fn said(&self) -> Result<Said, String> {
        let text = self.text("message")?;
        let images = match self.get("images") {
            None => Vec::new(),
            Some(Value::Array(list)) => {
                list.iter().enumerate().map(|(at, image)| read_image(at, image)).collect::<Result<_, _>>()?
            }
            Some(_) => return Err("images: must be a list".to_owned()),
        };
        Ok(Said { text, images })
    }
}

fn read_image(at: usize, image: &Value) -> Result<Image, String> {
    let text = |name: &str| match image.get(name).and_then(Value::as_str) {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("images.{at}.{name}: must be a string that is not empty")),
    };
    Ok(Image { data: text("data")?, mime_type: text("mimeType")? })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(line: &Value) -> Result<ClientLine, Refused> {
        parse(line.to_string().as_bytes())
    }

    fn error(line: &Value) -> String {
        read(line).unwrap_err().error
    }

    #[test]
    fn commands_are_read() {
        let line = json!({"id": "1", "type": "prompt", "message": "x", "streamingBehavior": "followUp",
            "images": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]});
        let Ok(ClientLine::Command(request)) = read(&line) else { panic!() };
        let images = vec![Image { data: "AA==".into(), mime_type: "image/png".into() }];
        let said = Said { text: "x".into(), images };
        assert_eq!(request.command, Command::Prompt { said, queue: Some(QueueKind::FollowUp) });
        assert_eq!(request.id, Some(json!("1")));
        let Ok(ClientLine::Command(request)) = parse(b"{\"type\":\"get_state\"}\r") else { panic!() };
        assert_eq!((request.id, request.command), (None, Command::GetState));
    }

    #[test]
    fn lines_are_read_as_javascript_reads_them_and_ids_are_recovered() {
        let Ok(ClientLine::Command(request)) =
            parse(b"{\"id\":\"7\",\"type\":\"prompt\",\"message\":\"a\\ud83d \xff\"}")
        else {
            panic!()
        };
        let said = Said { text: "a\u{fffd} \u{fffd}".into(), images: Vec::new() };
        assert_eq!((request.id, request.command), (Some(json!("7")), Command::Prompt { said, queue: None }));
        let id = |line: &str| parse(line.as_bytes()).unwrap_err().id;
        assert_eq!(id(r#"{"id":"7","type":"prompt","message":"x"#), Some(json!("7")));
        assert_eq!(id(r#"{"id":7,"type":}"#), Some(json!(7)));
        assert_eq!(["{\"id\":\"7", "{oops", "{\"id\":[7],\"type\":}", "[1"].map(id), [const { None }; 4]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let refused = parse(b"{oops").unwrap_err();
        assert!(refused.name == "parse" && refused.error.starts_with("Failed to parse command: "), "{refused:?}");
        assert!(parse(b"null").unwrap_err().error.starts_with("Failed to parse command: "));
        assert_eq!(read(&json!({"id": "7", "type": "bogus"})).unwrap_err().id, Some(json!("7")));
        assert_eq!(error(&json!({"type": "bogus"})), "Unknown command: bogus");
        assert_eq!(error(&json!({"type": "prompt"})), "Invalid command: message: is required");
        assert_eq!(error(&json!({"type": "prompt", "message": 1})), "Invalid command: message: must be a string");
        let image = json!({"type": "steer", "message": "x", "images": [{"data": "AA=="}]});
        assert_eq!(error(&image), "Invalid command: images.0.mimeType: must be a string that is not empty");
        assert_eq!(error(&json!({"type": "set_auto_retry"})), "Invalid command: enabled: is required");
        let mode = json!({"type": "set_steering_mode", "mode": "some"});
        assert_eq!(error(&mode), "Invalid command: mode: must be all or one-at-a-time");
    }

    #[test]
    fn approvals_are_read() {
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
    fn replies_to_extensions_are_no_commands() {
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

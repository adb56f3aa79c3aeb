//! Roles that only this layer knows, and their conversion for models.
//!
//! `bashExecution`, `custom`, `branchSummary` and `compactionSummary` are carried as [`Message::Other`]; [`convert_to_llm`] turns them into
//! user messages.

use std::sync::Arc;

use pinch_llm::message::{Block, Content, Message, OtherMessage, UserMessage};
use serde_json::{Map, Value};

use crate::entry::{BranchSummary, Compaction, CustomMessage, EntryBody};

/// Precedes a compaction's summary when it is sent. The text is pi's, so that a session gives the same prompt in both programs.
pub const COMPACTION_PREFIX: &str =
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n";

/// Follows a compaction's summary when it is sent.
pub const COMPACTION_SUFFIX: &str = "\n</summary>";

/// Precedes a branch's summary when it is sent; also pi's text.
pub const BRANCH_PREFIX: &str =
    "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n";

/// Follows a branch's summary when it is sent.
pub const BRANCH_SUFFIX: &str = "</summary>";

/// Role of a message for the user's own shell command.
pub const BASH_EXECUTION: &str = "bashExecution";
/// Role of an extension's message.
pub const CUSTOM: &str = "custom";
/// Role of a branch's summary.
pub const BRANCH_SUMMARY: &str = "branchSummary";
/// Role of a compaction's summary.
pub const COMPACTION_SUMMARY: &str = "compactionSummary";

/// A shell command the user ran, as a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BashExecution {
    /// The command.
    pub command: String,
    /// Its output, possibly truncated.
    pub output: String,
    /// Its exit code; `None` if it was killed.
    pub exit_code: Option<i64>,
    /// Whether the user cancelled it.
    pub cancelled: bool,
    /// Whether `output` is truncated.
    pub truncated: bool,
    /// File with the complete output.
    pub full_output_path: Option<String>,
    /// Unix time in milliseconds.
    pub timestamp: i64,
    /// Whether the model should not see it.
    pub exclude_from_context: bool,
}

impl BashExecution {
    /// Converts the command into a message.
    pub fn into_message(self) -> Message {
        let mut raw = object(BASH_EXECUTION);
        raw.insert("command".into(), self.command.into());
        raw.insert("output".into(), self.output.into());
        raw.extend(self.exit_code.map(|code| ("exitCode".to_owned(), code.into())));
        raw.insert("cancelled".into(), self.cancelled.into());
        raw.insert("truncated".into(), self.truncated.into());
        raw.extend(self.full_output_path.map(|path| ("fullOutputPath".to_owned(), path.into())));
        raw.insert("timestamp".into(), self.timestamp.into());
        if self.exclude_from_context {
            raw.insert("excludeFromContext".into(), true.into());
        }
        Message::Other(OtherMessage { raw })
    }
}

fn object(role: &str) -> Map<String, Value> {
    Map::from_iter([("role".to_owned(), role.into())])
}

fn value_of(content: &Content) -> Value {
    serde_json::to_value(content).unwrap_or_default()
}

/// Creates the message of a compaction's summary. An invalid time becomes null, as in JavaScript.
pub(crate) fn compaction_summary(compaction: &Compaction, time: Option<i64>) -> Message {
    let mut raw = object(COMPACTION_SUMMARY);
    raw.insert("summary".into(), compaction.summary.as_str().into());
    raw.insert("tokensBefore".into(), compaction.tokens_before.into());
    raw.insert("timestamp".into(), time.into());
    Message::Other(OtherMessage { raw })
}

/// Creates the message of a branch's summary; `None` if the summary is empty.
pub(crate) fn branch_summary(branch: &BranchSummary, time: Option<i64>) -> Option<Message> {
    if branch.summary.is_empty() {
        return None;
    }
    let mut raw = object(BRANCH_SUMMARY);
    raw.insert("summary".into(), branch.summary.as_str().into());
    raw.insert("fromId".into(), branch.from_id.as_str().into());
    raw.insert("timestamp".into(), time.into());
    Some(Message::Other(OtherMessage { raw }))
}

/// Creates the message of an extension's entry.
pub fn custom(message: &CustomMessage, time: Option<i64>) -> Message {
    let mut raw = object(CUSTOM);
    raw.insert("customType".into(), message.custom_type.as_str().into());
    raw.insert("content".into(), value_of(&message.content));
    raw.insert("display".into(), message.display.into());
    raw.extend(message.details.clone().map(|details| ("details".to_owned(), details)));
    raw.insert("timestamp".into(), time.into());
    Message::Other(OtherMessage { raw })
}

/// Returns the entry that stores a message; extension messages have a separate entry type.
pub fn entry_of(message: &Arc<Message>) -> EntryBody {
    match &**message {
        Message::Other(other) if other.role() == CUSTOM => {
            let text = |name: &str| other.raw.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            EntryBody::CustomMessage(CustomMessage {
                custom_type: text("customType"),
                content: custom_content(other),
                display: other.raw.get("display").and_then(Value::as_bool).unwrap_or(false),
                details: other.raw.get("details").cloned(),
            })
        }
        _ => EntryBody::Message(Arc::clone(message)),
    }
}

/// Returns the content of a message of role `custom`.
pub fn custom_content(message: &OtherMessage) -> Content {
    crate::entry::content(message.raw.get("content"))
}

/// Returns a message with its content replaced, as a context edit does. Roles without content stay unchanged.
pub fn with_content(message: &Message, content: &Content) -> Message {
    let blocks = || match content {
        Content::Text(text) => vec![Block::text(text.clone())],
        Content::Blocks(blocks) => blocks.clone(),
    };
    match message {
        Message::User(user) => Message::User(UserMessage { content: content.clone(), ..user.clone() }),
        Message::Assistant(assistant) => {
            let mut edited = (**assistant).clone();
            edited.content = blocks().into_iter().map(Arc::new).collect();
            Message::Assistant(Arc::new(edited))
        }
        Message::ToolResult(result) => {
            let mut edited = result.clone();
            edited.content = blocks();
            Message::ToolResult(edited)
        }
        Message::Other(other) if other.role() == CUSTOM => {
            let mut raw = other.raw.clone();
            raw.insert("content".into(), value_of(content));
            Message::Other(OtherMessage { raw })
        }
        Message::System(_) | Message::Other(_) => message.clone(),
    }
}

/// Turns a context into what a model is sent: our roles become messages of the user, unknown ones are dropped.
pub fn convert_to_llm(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    messages.iter().filter_map(convert).collect()
}

fn convert(message: &Arc<Message>) -> Option<Arc<Message>> {
    let Message::Other(other) = &**message else { return Some(Arc::clone(message)) };
    let content = match other.role() {
        BASH_EXECUTION => bash_text(&other.raw).map(|text| Content::Blocks(vec![Block::text(text)]))?,
        CUSTOM => match custom_content(other) {
            Content::Text(text) => Content::Blocks(vec![Block::text(text)]),
            blocks => blocks,
        },
        BRANCH_SUMMARY => wrapped(BRANCH_PREFIX, other, BRANCH_SUFFIX),
        COMPACTION_SUMMARY => wrapped(COMPACTION_PREFIX, other, COMPACTION_SUFFIX),
        _ => return None,
    };
    Some(Arc::new(Message::User(UserMessage::new(content, message.timestamp()))))
}

fn wrapped(prefix: &str, message: &OtherMessage, suffix: &str) -> Content {
    let summary = message.raw.get("summary").and_then(Value::as_str).unwrap_or_default();
    Content::Blocks(vec![Block::text(format!("{prefix}{summary}{suffix}"))])
}

/// Returns the text of a user's command for the model; `None` when it is excluded from the context.
fn bash_text(raw: &Map<String, Value>) -> Option<String> {
    let text = |name: &str| raw.get(name).and_then(Value::as_str).unwrap_or_default();
    let flag = |name: &str| raw.get(name).and_then(Value::as_bool).unwrap_or(false);
    if flag("excludeFromContext") {
        return None;
    }
    let mut out = format!("Ran `{}`\n", text("command"));
    match text("output") {
        "" => out.push_str("(no output)"),
        output => out.push_str(&format!("```\n{output}\n```")),
    }
    if flag("cancelled") {
        out.push_str("\n\n(command cancelled)");
    } else if let Some(code) = raw.get("exitCode").and_then(Value::as_i64).filter(|code| *code != 0) {
        out.push_str(&format!("\n\nCommand exited with code {code}"));
    }
    match text("fullOutputPath") {
        "" => {}
        path if flag("truncated") => out.push_str(&format!("\n\n[Output truncated. Full output: {path}]")),
        _ => {}
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bash: BashExecution, expected: Option<&str>) {
        let sent = convert_to_llm(&[Arc::new(bash.into_message())]);
        let text = sent.first().map(|message| match &**message {
            Message::User(user) => user.content.text(""),
            other => panic!("{other:?}"),
        });
        assert_eq!(text.as_deref(), expected);
    }

    #[test]
    fn the_users_commands_become_user_messages() {
        let ran = BashExecution { command: "ls".into(), output: "a".into(), exit_code: Some(0), ..Default::default() };
        check(ran.clone(), Some("Ran `ls`\n```\na\n```"));
        let failed = BashExecution { output: String::new(), exit_code: Some(2), ..ran.clone() };
        check(failed, Some("Ran `ls`\n(no output)\n\nCommand exited with code 2"));
        let cut =
            BashExecution { cancelled: true, truncated: true, full_output_path: Some("/t".into()), ..ran.clone() };
        check(cut, Some("Ran `ls`\n```\na\n```\n\n(command cancelled)\n\n[Output truncated. Full output: /t]"));
        check(BashExecution { exclude_from_context: true, ..ran }, None);
    }

    #[test]
    fn unknown_roles_are_dropped() {
        let unknown = Message::from_json(r#"{"role":"future","content":"x"}"#).unwrap();
        assert!(convert_to_llm(&[Arc::new(unknown)]).is_empty());
    }
}

//! Results shown in both events and responses.

use serde_json::{Value, json};

use crate::compaction::Compacted;
use crate::tools::bash::UserCommand;

/// Serializes the result of a compaction.
pub fn compacted(result: &Compacted) -> Value {
    let mut value = json!({
        "summary": result.summary,
        "firstKeptEntryId": result.first_kept_entry_id.as_str(),
        "tokensBefore": result.tokens_before,
        "estimatedTokensAfter": result.estimated_tokens_after,
    });
    if let Some(details) = &result.details {
        value["details"] = details.clone();
    }
    if let Some(usage) = &result.usage {
        value["usage"] = serde_json::to_value(usage).unwrap_or(Value::Null);
    }
    value
}

/// Serializes the result of a user command.
pub fn user_command(ran: &UserCommand) -> Value {
    let mut value = json!({"output": ran.output});
    if let Some(code) = ran.exit_code {
        value["exitCode"] = code.into();
    }
    value["cancelled"] = ran.cancelled.into();
    value["truncated"] = ran.truncated.into();
    if let Some(path) = &ran.full_output_path {
        value["fullOutputPath"] = path.to_string_lossy().into();
    }
    value
}

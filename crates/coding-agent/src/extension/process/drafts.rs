//! Drafts of entries in the process protocol.

use serde_json::Value;

use crate::entry::{Entry, EntryBody, EntryId};
use crate::extension::Draft;

impl Draft {
    /// Parses a draft, which is written like an entry without an id.
    ///
    /// # Errors
    /// Describes what is invalid.
    pub(super) fn from_value(value: &Value) -> Result<Self, String> {
        let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
        if !["custom", "custom_message", "context_edit", "compaction"].contains(&kind) {
            return Err(format!("an entry of type \"{kind}\" cannot be drafted"));
        }
        let mut whole = value.clone();
        whole["id"] = "draft".into();
        match Entry::from_value(&whole).map(|entry| entry.body) {
            Some(EntryBody::Custom { custom_type, data }) => Ok(Self::Custom { custom_type, data }),
            Some(EntryBody::CustomMessage(message)) => Ok(Self::Message(message)),
            Some(EntryBody::ContextEdit { target_id, replacement }) => {
                Ok(Self::Edit { target: target_id, replacement })
            }
            Some(EntryBody::Compaction(made)) => Ok(Self::Compaction {
                summary: made.summary,
                first_kept: made.first_kept_entry_id,
                details: made.details,
                usage: made.usage,
            }),
            _ => Err(format!("the members of a \"{kind}\" do not fit")),
        }
    }

    /// Serializes a draft like an entry without id, parent and time.
    pub(super) fn to_value(&self) -> Value {
        let body = match self.clone() {
            Self::Custom { custom_type, data } => EntryBody::Custom { custom_type, data },
            Self::Message(message) => EntryBody::CustomMessage(message),
            Self::Edit { target, replacement } => EntryBody::ContextEdit { target_id: target, replacement },
            Self::Compaction { summary, first_kept, details, usage } => {
                EntryBody::Compaction(crate::entry::Compaction {
                    summary,
                    first_kept_entry_id: first_kept,
                    details,
                    usage,
                    ..Default::default()
                })
            }
        };
        let mut value = Entry::new(EntryId::new(""), None, "", body).to_value();
        if let Some(members) = value.as_object_mut() {
            members.retain(|name, _| !["id", "parentId", "timestamp", "tokensBefore"].contains(&name.as_str()));
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn drafts_survive_a_round_trip() {
        for draft in [
            json!({"type": "custom", "customType": "c", "data": {"a": 1}}),
            json!({"type": "custom_message", "customType": "c", "content": "x", "display": true, "details": [1]}),
            json!({"type": "context_edit", "targetId": "a", "replacement": null}),
            json!({"type": "context_edit", "targetId": "a", "replacement": {"content": "y"}}),
            json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "a"}),
            json!({"type": "compaction", "summary": "s"}),
        ] {
            assert_eq!(Draft::from_value(&draft).unwrap().to_value(), draft);
        }
        let error = |draft: Value| Draft::from_value(&draft).unwrap_err();
        assert_eq!(error(json!({"type": "message"})), "an entry of type \"message\" cannot be drafted");
        assert_eq!(error(json!(7)), "an entry of type \"\" cannot be drafted");
        assert_eq!(error(json!({"type": "compaction"})), "the members of a \"compaction\" do not fit");
    }
}

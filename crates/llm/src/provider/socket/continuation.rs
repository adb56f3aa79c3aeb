//! The server's state of a conversation, which allows sending only new items.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::message::AssistantMessage;
use crate::request::Request;
use crate::wire::codex::request::answer_items;

type Hash = [u8; 32];

/// The server's state after a successful answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Continuation {
    /// Hash of the request without its items.
    frame: Hash,
    /// Hash of the items so far, including those of the answer.
    items: Hash,
    n_items: usize,
    response_id: String,
}

/// The part of a request to send: all of it, or the items since a response.
#[derive(Debug, PartialEq)]
pub(super) struct SentRequest {
    pub(super) body: Value,
    /// Number of items in the whole request.
    pub(super) n_items: usize,
    /// Number of sent items, and the response they follow, if not all are sent.
    pub(super) delta: Option<(usize, String)>,
}

impl Continuation {
    /// Returns the server's state after it answered a request, or `None` if it is unknown.
    pub(super) fn after(request: &Request, body: &Value, answer: &AssistantMessage) -> Option<Self> {
        let response_id = answer.response_id.clone()?;
        let own = answer_items(request, answer)?;
        let items = items_of(body);
        Some(Self {
            frame: hash_frame(body),
            items: hash(items.iter().chain(&own)),
            n_items: items.len() + own.len(),
            response_id,
        })
    }

    /// Returns whether a request continues from the server's state, so that only new items are sent.
    fn covers(&self, body: &Value) -> bool {
        let items = items_of(body);
        items.len() > self.n_items && hash(&items[..self.n_items]) == self.items && hash_frame(body) == self.frame
    }
}

/// Returns the part of a request to send, given the server's state.
pub(super) fn to_send(body: &Value, known: Option<&Continuation>) -> SentRequest {
    let n_items = items_of(body).len();
    let Some(known) = known.filter(|known| known.covers(body)) else {
        return SentRequest { body: body.clone(), n_items, delta: None };
    };
    let members = body.as_object().into_iter().flatten().filter(|(name, _)| *name != "input");
    let mut delta: serde_json::Map<String, Value> =
        members.map(|(name, value)| (name.clone(), value.clone())).collect();
    delta.insert("input".into(), items_of(body)[known.n_items..].into());
    delta.insert("previous_response_id".into(), known.response_id.as_str().into());
    let n_new = n_items - known.n_items;
    SentRequest { body: Value::Object(delta), n_items, delta: Some((n_new, known.response_id.clone())) }
}

fn items_of(body: &Value) -> &[Value] {
    body["input"].as_array().map_or(&[], Vec::as_slice)
}

fn hash<'v>(values: impl IntoIterator<Item = &'v Value>) -> Hash {
    let mut hasher = Sha256::new();
    for value in values {
        let text = value.to_string();
        hasher.update(text.len().to_le_bytes());
        hasher.update(text);
    }
    hasher.finalize().into()
}

fn hash_frame(body: &Value) -> Hash {
    let mut hasher = Sha256::new();
    for (name, value) in body.as_object().into_iter().flatten() {
        if !matches!(name.as_str(), "input" | "previous_response_id") {
            hasher.update(name);
            hasher.update(hash([value]));
        }
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn body(items: &[u8], instructions: &str) -> Value {
        json!({"model": "m", "instructions": instructions, "input": items})
    }

    fn known(items: &[u8]) -> Continuation {
        let body = body(items, "S");
        Continuation {
            frame: hash_frame(&body),
            items: hash(items_of(&body)),
            n_items: items.len(),
            response_id: "r".into(),
        }
    }

    #[test]
    fn only_new_items_are_sent() {
        let sent = to_send(&body(&[1, 2, 3, 4], "S"), Some(&known(&[1, 2])));
        let expected = json!({"model": "m", "instructions": "S", "input": [3, 4], "previous_response_id": "r"});
        assert_eq!(sent, SentRequest { body: expected, n_items: 4, delta: Some((2, "r".into())) });
    }

    #[test]
    fn a_request_that_differs_is_sent_whole() {
        for (items, instructions) in [(&[1, 9, 3][..], "S"), (&[1, 2, 3], "T"), (&[1, 2], "S"), (&[1], "S")] {
            let whole = body(items, instructions);
            let sent = to_send(&whole, Some(&known(&[1, 2])));
            assert_eq!(sent, SentRequest { body: whole, n_items: items.len(), delta: None });
        }
        assert_eq!(to_send(&body(&[1], "S"), None).delta, None);
    }
}

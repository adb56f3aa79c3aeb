//! Responses of RPC mode as JSON lines.

use pinch_stdx::json::write;
use serde::Serialize;
use serde_json::Value;

use super::command::{RejectedLine, RpcRequest};

/// Identifies the request that a response belongs to.
#[derive(Clone, Debug)]
pub struct Answerer {
    id: Option<Value>,
    name: String,
}

impl Answerer {
    /// Returns the id of the request.
    pub fn id(&self) -> Option<&Value> {
        self.id.as_ref()
    }

    /// Creates the answerer of a request.
    pub fn of(request: &RpcRequest) -> Self {
        Self { id: request.id.clone(), name: request.name.clone() }
    }

    /// Responds that the command succeeded.
    pub fn done(&self) -> Vec<u8> {
        self.line(true, |_| {})
    }

    /// Responds that the command succeeded, with a result.
    pub fn with<T: Serialize + ?Sized>(&self, data: &T) -> Vec<u8> {
        match write::to_vec(data) {
            Ok(json) => self.with_json(&json),
            Err(error) => self.failed(&format!("The answer cannot be written: {error}")),
        }
    }

    /// Responds that the command succeeded, with a result already serialized as JSON.
    pub fn with_json(&self, data: &[u8]) -> Vec<u8> {
        self.line(true, |line| {
            line.extend_from_slice(b",\"data\":");
            line.extend_from_slice(data);
        })
    }

    /// Responds that the command failed.
    pub fn failed(&self, error: &str) -> Vec<u8> {
        self.line(false, |line| {
            line.extend_from_slice(b",\"error\":");
            append(line, error);
        })
    }

    fn line(&self, success: bool, rest: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut line = vec![b'{'];
        if let Some(id) = &self.id {
            line.extend_from_slice(b"\"id\":");
            append(&mut line, id);
            line.push(b',');
        }
        line.extend_from_slice(b"\"type\":\"response\",\"command\":");
        append(&mut line, &self.name);
        line.extend_from_slice(if success { b",\"success\":true" } else { b",\"success\":false" });
        rest(&mut line);
        line.extend_from_slice(b"}\n");
        line
    }
}

impl RejectedLine {
    /// Returns the response to an invalid line.
    pub fn line(&self) -> Vec<u8> {
        Answerer { id: self.id.clone(), name: self.name.clone() }.failed(&self.error)
    }
}

/// Appends a value. Cannot fail for strings and values parsed from JSON.
fn append<T: Serialize + ?Sized>(line: &mut Vec<u8>, value: &T) {
    let before = line.len();
    if write::append(line, value).is_err() {
        line.truncate(before);
        line.extend_from_slice(b"null");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_in_pis_order() {
        let answer = Answerer { id: Some(json!("7")), name: "get_state".into() };
        let line = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        assert_eq!(
            line(answer.done()),
            "{\"id\":\"7\",\"type\":\"response\",\"command\":\"get_state\",\"success\":true}\n"
        );
        let with = line(answer.with(&json!({"a": 1})));
        assert!(with.ends_with(",\"success\":true,\"data\":{\"a\":1}}\n"), "{with}");
        let anonymous = Answerer { id: None, name: "x".into() };
        let failed = line(anonymous.failed("no \"x\""));
        assert_eq!(failed, "{\"type\":\"response\",\"command\":\"x\",\"success\":false,\"error\":\"no \\\"x\\\"\"}\n");
    }
}

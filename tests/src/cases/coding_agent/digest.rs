//! Long texts, which cases contain as digests.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The actual value, with a digest wherever the expected value has one, so that they can be compared.
pub(super) fn like(expected: &Value, actual: Value) -> Value {
    match (expected, actual) {
        (expected, Value::String(text)) if expected["digest"] == true => of(expected, &text),
        (Value::Object(expected), Value::Object(actual)) => {
            let member = |(name, value): (String, Value)| {
                let value = like(expected.get(&name).unwrap_or(&Value::Null), value);
                (name, value)
            };
            Value::Object(actual.into_iter().map(member).collect())
        }
        (Value::Array(expected), Value::Array(actual)) => {
            let element = |(at, value)| like(expected.get(at).unwrap_or(&Value::Null), value);
            Value::Array(actual.into_iter().enumerate().map(element).collect())
        }
        (_, actual) => actual,
    }
}

/// The digest of a text, with a head and tail as long as those of another digest.
fn of(other: &Value, text: &str) -> Value {
    let hash: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let units: Vec<u16> = text.encode_utf16().collect();
    let length = |name: &str| other[name].as_str().map_or(0, |part| part.encode_utf16().count()).min(units.len());
    let head = String::from_utf16_lossy(&units[..length("head")]);
    let tail = String::from_utf16_lossy(&units[units.len() - length("tail")..]);
    json!({"digest": true, "sha256": hash, "chars": units.len(), "head": head, "tail": tail})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_stand_where_they_are_expected() {
        let expected = json!({"a": {"digest": true, "head": "hé", "tail": "o"}, "b": "x"});
        let sha256 = "3c48591d8d098a4538f5e013dfcf406e948eac4d3277b10bf614e295d6068179";
        let digest = json!({"digest": true, "sha256": sha256, "chars": 5, "head": "hé", "tail": "o"});
        assert_eq!(like(&expected, json!({"a": "héllo", "b": "y"})), json!({"a": digest, "b": "y"}));
    }
}

//! Normalizes program output to the form of the cases.

use serde_json::{Map, Value, json};

/// Members of later pi versions, which pinch writes too; compared only if a case has them.
const LATER: [&str; 6] =
    ["structuredContent", "durationMs", "thinkingLevel", "totalFromProvider", "aborted", "disposition"];

/// Normalizes both sides: the order of sections matters, declared tools become names, and later members are removed.
pub fn compared(expected: &Value, mut actual: Value) -> (Value, Value) {
    let mut expected = expected.clone();
    drop_later(&expected, &mut actual);
    each_object(&mut actual, &name_tools);
    each_object(&mut expected, &order_sections);
    each_object(&mut actual, &order_sections);
    (expected, actual)
}

/// Removes later members that the case lacks. Those of a session entry exist in every version.
fn drop_later(expected: &Value, actual: &mut Value) {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            let is_message = actual.contains_key("role") || actual.contains_key("total");
            let is_event = actual.get("type") == Some(&"agent_settled".into())
                || actual.get("type") == Some(&"tool_execution_end".into());
            let counts = |name: &str| expected.contains_key(name) || !LATER.contains(&name);
            let is_result = actual.contains_key("content");
            actual.retain(|name, _| !(is_message || is_event || is_result) || counts(name));
            // A response that only reports the disposition of a message.
            if !expected.contains_key("data") && actual.get("data").and_then(|data| data.get("disposition")).is_some() {
                actual.remove("data");
            }
            for (name, value) in actual {
                drop_later(expected.get(name).unwrap_or(&Value::Null), value);
            }
        }
        (Value::Array(expected), Value::Array(actual)) => {
            for (at, value) in actual.iter_mut().enumerate() {
                drop_later(expected.get(at).unwrap_or(&Value::Null), value);
            }
        }
        _ => {}
    }
}

fn each_object(value: &mut Value, change: &impl Fn(&mut Map<String, Value>)) {
    match value {
        Value::Object(map) => {
            change(map);
            map.values_mut().for_each(|value| each_object(value, change));
        }
        Value::Array(list) => list.iter_mut().for_each(|value| each_object(value, change)),
        _ => {}
    }
}

fn name_tools(map: &mut Map<String, Value>) {
    for tool in map.get_mut("toolsAdded").and_then(Value::as_array_mut).into_iter().flatten() {
        *tool = format!("$tool {}", tool["name"].as_str().unwrap_or_default()).into();
    }
}

/// Converts sections to a list, because objects are compared without order.
fn order_sections(map: &mut Map<String, Value>) {
    if let Some(sections) = map.get_mut("sections")
        && let Some(members) = sections.as_object()
    {
        *sections = members.iter().map(|(name, text)| json!([name, text])).collect();
    }
}

//! Lines of events in the short form of the pi087 cases.

use serde_json::{Value, json};

/// Shortens the lines that a program wrote.
pub fn shortened(lines: &[Value]) -> Vec<Value> {
    let mut started = Value::Null;
    let mut last_answer = Value::Null;
    let mut short = Vec::new();
    for line in lines {
        let mut line = line.clone();
        let kind = line["type"].as_str().unwrap_or_default().to_owned();
        match kind.as_str() {
            "tool_execution_update" => continue,
            "message_update" if line["usage"].is_object() => line["usage"] = "$usage".into(),
            "message_start" => started = line["message"].clone(),
            "message_end" => {
                if line["message"]["role"] == "assistant" {
                    last_answer = line["message"].clone();
                } else if line["message"] == started {
                    line["message"] = "$same".into();
                }
            }
            "turn_end" => {
                if line["message"] == last_answer {
                    line["message"] = "$last".into();
                }
                let ids = line["toolResults"].as_array().into_iter().flatten();
                line["toolResults"] = ids
                    .map(|result| json!(format!("$result {}", result["toolCallId"].as_str().unwrap_or("?"))))
                    .collect();
            }
            "agent_end" => {
                let messages = line["messages"].as_array().into_iter().flatten();
                line["messages"] =
                    messages.map(|message| json!(format!("${}", message["role"].as_str().unwrap_or("?")))).collect();
            }
            _ => {}
        }
        short.push(line);
    }
    short
}

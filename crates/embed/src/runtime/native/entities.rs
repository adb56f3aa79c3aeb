//! HTML entities in the arguments of tool calls.

use std::sync::Arc;

use pinch_llm::message::{Block, Message};
use serde_json::Value;

/// Returns an answer with the texts in its tool calls decoded; `None` if they contain no entities.
pub(super) fn decoded(message: &Message) -> Option<Arc<Message>> {
    let answer = message.as_assistant()?;
    let mut changed = None;
    for (at, block) in answer.content.iter().enumerate() {
        let Block::ToolCall(call) = &**block else { continue };
        let arguments = Value::Object(call.arguments.clone());
        if !arguments.to_string().contains('&') {
            continue;
        }
        let Value::Object(decoded) = decoded_value(arguments) else { continue };
        if decoded != call.arguments {
            let mut call = call.clone();
            call.arguments = decoded;
            let changed = changed.get_or_insert_with(|| Arc::clone(answer));
            Arc::make_mut(changed).content[at] = Arc::new(Block::ToolCall(call));
        }
    }
    changed.map(|answer| Arc::new(Message::Assistant(answer)))
}

fn decoded_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(decoded_text(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(decoded_value).collect()),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(name, value)| (name, decoded_value(value))).collect())
        }
        other => other,
    }
}

/// Replaces the five entities of XML, the apostrophe of HTML, and numbers.
fn decoded_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        // The longest is `&#x10ffff;`.
        let end = rest.bytes().take(10).position(|byte| byte == b';');
        match end.and_then(|end| Some((character(rest.get(1..end)?)?, end))) {
            Some((c, end)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

fn character(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        name => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_become_characters_once() {
        for (text, expect) in [
            ("a &lt; b &amp;&amp; c &gt; d", "a < b && c > d"),
            ("&quot;x&quot; &#39;y&#x27; &apos;", "\"x\" 'y' '"),
            ("&amp;lt;", "&lt;"),
            ("a & b; &unknown; &#xzz; &#99999999;", "a & b; &unknown; &#xzz; &#99999999;"),
            ("&", "&"),
            ("&ü;", "&ü;"),
        ] {
            assert_eq!(decoded_text(text), expect, "{text}");
        }
    }
}

//! The notation of case files: repeated characters, placeholders for values created at run time, and our own wording.

use std::collections::HashMap;

use regex::Regex;
use serde_json::Value;

/// Expands `@repeat:c:n` anywhere.
pub fn expand(value: &mut Value) {
    each_text(value, &mut |text| {
        if let Some(repeated) = text.strip_prefix("@repeat:").and_then(repeat) {
            return Some(repeated);
        }
        if !text.contains("@repeat:") {
            return None;
        }
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("@repeat:") {
            let (before, after) = rest.split_at(at);
            out.push_str(before);
            let part = after.find(';').and_then(|end| Some((repeat(&after["@repeat:".len()..end])?, end)));
            match part {
                Some((repeated, end)) => {
                    out.push_str(&repeated);
                    rest = &after[end + 1..];
                }
                None => {
                    out.push_str("@repeat:");
                    rest = &after["@repeat:".len()..];
                }
            }
        }
        out.push_str(rest);
        Some(out)
    });
}

/// Expands `c:n` to the character n times.
fn repeat(spec: &str) -> Option<String> {
    let mut chars = spec.chars();
    let c = chars.next()?;
    let n: usize = chars.as_str().strip_prefix(':')?.parse().ok()?;
    Some(c.to_string().repeat(n))
}

/// Replaces texts, also inside longer ones.
pub fn put_in(value: &mut Value, texts: &[(&str, &str)]) {
    each_text(value, &mut |text| {
        let mut out = None;
        for (name, put) in texts {
            let current: &str = out.as_deref().unwrap_or(text);
            if current.contains(name) {
                out = Some(current.replace(name, put));
            }
        }
        out
    });
}

fn each_text(value: &mut Value, change: &mut impl FnMut(&str) -> Option<String>) {
    match value {
        Value::String(text) => {
            if let Some(changed) = change(text) {
                *text = changed;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(map) => map.values_mut().for_each(|item| each_text(item, change)),
        _ => {}
    }
}

/// Removes the blocks that we add to summaries: pinned messages and the last request.
pub fn without_our_blocks(summary: &str) -> String {
    let mut out = summary.to_owned();
    for name in ["pinned", "last-user-request"] {
        if let Ok(block) = Regex::new(&format!(r"(?s)\n\n<{name}>\n.*?\n</{name}>")) {
            out = block.replace_all(&out, "").into_owned();
        }
    }
    out
}

/// Compares two values with one assignment of the placeholders. A value from the input does not count as created at run time.
///
/// # Errors
///
/// Returns the first difference, followed by both sides.
pub fn matches(expected: &Value, actual: &Value, input: &str) -> Result<(), String> {
    let mut matcher = Matcher { input, bound: HashMap::new() };
    matcher
        .differ("", expected, actual)
        .map_or(Ok(()), |at| Err(format!("{at}\n  expected {expected}\n  actual   {actual}")))
}

struct Matcher<'a> {
    input: &'a str,
    bound: HashMap<String, String>,
}

impl Matcher<'_> {
    fn differ(&mut self, at: &str, expected: &Value, actual: &Value) -> Option<String> {
        let short = || Some(format!("{at}: expected {expected}, got {actual}"));
        match (expected, actual) {
            (Value::String(any), _) if any == "$any" => None,
            (Value::String(e), Value::String(a)) if e.starts_with("$re:") => {
                if Regex::new(&e["$re:".len()..]).is_ok_and(|pattern| pattern.is_match(a)) { None } else { short() }
            }
            (Value::String(ms), Value::Number(number)) if ms == "<ms>" => {
                let is_made = self.input.is_empty() || !self.input.contains(&number.to_string());
                if is_made && number.as_f64().is_some_and(|n| n > 1e12) { None } else { short() }
            }
            (Value::Object(e), Value::Object(a)) => {
                if let Some(key) = a.keys().find(|key| !e.contains_key(*key)) {
                    return Some(format!("{at}/{key}: not expected: {}", a[key]));
                }
                e.iter().find_map(|(key, value)| match a.get(key) {
                    Some(Value::String(summary)) if key == "summary" => {
                        self.differ(&format!("{at}/{key}"), value, &without_our_blocks(summary).into())
                    }
                    Some(other) => self.differ(&format!("{at}/{key}"), value, other),
                    None => Some(format!("{at}/{key}: missing, expected {value}")),
                })
            }
            (Value::Array(e), Value::Array(a)) => {
                let pairs = e.iter().zip(a).enumerate();
                let mut first = None;
                for (i, (e, a)) in pairs {
                    first = self.differ(&format!("{at}/{i}"), e, a);
                    if first.is_some() {
                        break;
                    }
                }
                first.or_else(|| {
                    (e.len() != a.len()).then(|| format!("{at}: {} elements expected, {} found", e.len(), a.len()))
                })
            }
            (Value::String(e), Value::String(a)) if e != a => {
                if self.same_text(e, a) {
                    None
                } else {
                    short()
                }
            }
            _ => match (expected.as_f64(), actual.as_f64()) {
                (Some(e), Some(a)) if (e - a).abs() <= 1e-9 * e.abs().max(a.abs()) => None,
                _ if expected == actual => None,
                _ => short(),
            },
        }
    }

    /// Matches a text with placeholders; new ones are bound to the text they match.
    fn same_text(&mut self, expected: &str, actual: &str) -> bool {
        let Ok(placeholder) = Regex::new(r"<(id\d+|uuid\d*|ts|iso|filets|timestamp|8 hex)>") else { return false };
        let mut pattern = String::from("^(?s)");
        let mut names = Vec::new();
        let mut done = 0;
        for found in placeholder.find_iter(expected) {
            pattern.push_str(&regex::escape(&expected[done..found.start()]));
            done = found.end();
            let name = found.as_str();
            match self.bound.get(name) {
                Some(value) => pattern.push_str(&regex::escape(value)),
                None => {
                    pattern.push_str(match &name[1..3] {
                        "id" => "([0-9a-f]{8})",
                        "uu" => "([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})",
                        "8 " => "([0-9a-f]{8})",
                        "ts" | "is" => r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)",
                        _ => r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z)",
                    });
                    names.push(name);
                }
            }
        }
        pattern.push_str(&regex::escape(&expected[done..]));
        pattern.push('$');
        let Some(captures) = Regex::new(&pattern).ok().and_then(|regex| regex.captures(actual)) else { return false };
        for (at, name) in names.into_iter().enumerate() {
            let value = &captures[at + 1];
            if self.input.contains(value) {
                return false;
            }
            if !name.contains(|c: char| c.is_ascii_digit()) || name == "<8 hex>" {
                continue;
            }
            // The same placeholder means the same value, and different placeholders mean different values.
            if self.bound.get(name).is_some_and(|bound| bound != value)
                || self.bound.iter().any(|(other, bound)| other != name && bound == value)
            {
                return false;
            }
            self.bound.insert(name.to_owned(), value.to_owned());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn repeats_are_expanded() {
        let mut value = json!(["@repeat:x:3", "a@repeat:é:2;b", "@repeat:x", "/@repeat:y:2;"]);
        expand(&mut value);
        assert_eq!(value, json!(["xxx", "aééb", "@repeat:x", "/yy"]));
    }

    #[test]
    fn placeholders_are_bound_once_and_to_different_values() {
        let expected = json!({ "a": "<id1>", "b": ["<id2>", "<id1>"], "t": "<ts>", "m": "<ms>", "x": "$any" });
        let good = json!({ "a": "0000000a", "b": ["0000000b", "0000000a"], "t": "2026-01-01T00:00:00.000Z", "m": 1.76e12, "x": {} });
        assert_eq!(matches(&expected, &good, ""), Ok(()));
        assert!(matches(&expected, &good, "0000000b").is_err(), "a value of the input is no made value");
        let mut bad = good.clone();
        bad["b"] = json!(["0000000a", "0000000a"]);
        assert!(matches(&expected, &bad, "").is_err());
        bad["b"] = json!(["0000000b", "0000000c"]);
        assert!(matches(&expected, &bad, "").is_err());
    }

    #[test]
    fn our_blocks_are_removed() {
        let text = "S\n\n<pinned>\na\n</pinned>\n\n<last-user-request>\nb\n\nc\n</last-user-request>\n\n<read-files>\nx\n</read-files>";
        assert_eq!(without_our_blocks(text), "S\n\n<read-files>\nx\n</read-files>");
    }
}

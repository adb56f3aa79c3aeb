//! Compares expected and actual values of a case.

use regex::Regex;
use serde_json::Value;

/// Compares two values: key order is ignored, array order is not, numbers may differ by 1e-9, and `"$any"` and `"$re:…"` work as documented
/// in the files.
///
/// # Errors
///
/// Returns the first difference, followed by both sides.
pub fn same(expected: &Value, actual: &Value) -> Result<(), String> {
    differ("", expected, actual).map_or(Ok(()), |at| Err(format!("{at}\n  expected {expected}\n  actual   {actual}")))
}

/// Checks that `actual` contains everything in `expected`: objects by key, arrays of equal length element by element.
///
/// # Errors
///
/// Returns the first difference, followed by both sides.
pub fn contains(expected: &Value, actual: &Value) -> Result<(), String> {
    lacks("", expected, actual)
        .map_or(Ok(()), |at| Err(format!("{at}\n  expected at least {expected}\n  actual {actual}")))
}

/// Checks that `actual` contains everything in `expected`, where null means an absent member.
///
/// # Errors
///
/// Returns the first difference, followed by both sides.
pub fn subset(expected: &Value, actual: &Value) -> Result<(), String> {
    fn lacking(at: &str, expected: &Value, actual: &Value) -> Option<String> {
        match (expected, actual) {
            (Value::Object(members), _) if actual.is_object() || actual.is_null() => {
                members.iter().find_map(|(name, value)| {
                    lacking(&format!("{at}/{name}"), value, actual.get(name).unwrap_or(&Value::Null))
                })
            }
            (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
                items.iter().zip(others).enumerate().find_map(|(i, (a, b))| lacking(&format!("{at}/{i}"), a, b))
            }
            _ => differ(at, expected, actual),
        }
    }
    lacking("", expected, actual)
        .map_or(Ok(()), |at| Err(format!("{at}\n  expected at least {expected}\n  actual {actual}")))
}

fn differ(at: &str, expected: &Value, actual: &Value) -> Option<String> {
    if let Some(verdict) = placeholder(expected, actual) {
        return (!verdict).then(|| short(at, expected, actual));
    }
    match (expected, actual) {
        (Value::Object(e), Value::Object(a)) => {
            if let Some(key) = a.keys().find(|key| !e.contains_key(*key)) {
                return Some(format!("{at}/{key}: not expected: {}", a[key]));
            }
            e.iter().find_map(|(key, value)| match a.get(key) {
                Some(other) => differ(&format!("{at}/{key}"), value, other),
                None => Some(format!("{at}/{key}: missing, expected {value}")),
            })
        }
        (Value::Array(e), Value::Array(a)) => {
            let first = e.iter().zip(a).enumerate().find_map(|(i, (e, a))| differ(&format!("{at}/{i}"), e, a));
            first.or_else(|| {
                (e.len() != a.len()).then(|| format!("{at}: {} elements expected, {} found", e.len(), a.len()))
            })
        }
        _ => (!scalar_eq(expected, actual)).then(|| short(at, expected, actual)),
    }
}

fn lacks(at: &str, expected: &Value, actual: &Value) -> Option<String> {
    match (expected, actual) {
        (Value::Object(e), Value::Object(a)) => e.iter().find_map(|(key, value)| match a.get(key) {
            Some(other) => lacks(&format!("{at}/{key}"), value, other),
            None => Some(format!("{at}/{key}: missing, expected {value}")),
        }),
        (Value::Array(e), Value::Array(a)) if e.len() == a.len() => {
            e.iter().zip(a).enumerate().find_map(|(i, (e, a))| lacks(&format!("{at}/{i}"), e, a))
        }
        _ => differ(at, expected, actual),
    }
}

fn placeholder(expected: &Value, actual: &Value) -> Option<bool> {
    let text = expected.as_str()?;
    if text == "$any" {
        return Some(true);
    }
    let pattern = text.strip_prefix("$re:")?;
    let Ok(regex) = Regex::new(pattern) else { return Some(false) };
    Some(actual.as_str().is_some_and(|actual| regex.is_match(actual)))
}

fn scalar_eq(expected: &Value, actual: &Value) -> bool {
    match (expected.as_f64(), actual.as_f64()) {
        (Some(e), Some(a)) => (e - a).abs() <= 1e-9 * e.abs().max(a.abs()).max(1e-3),
        _ => expected == actual,
    }
}

fn short(at: &str, expected: &Value, actual: &Value) -> String {
    format!("{at}: expected {expected}, got {actual}")
}

//! Cases of kind `request`: the HTTP request that a call produces.

use pinch_llm::wire::{self, HttpRequest, WireCall};
use pinch_testing::cases::compare::{contains, same};
use serde_json::{Map, Value};

use super::setup;
use crate::cases::{Case, CaseOutcome};

pub(super) fn run(case: &Case<'_>) -> CaseOutcome {
    let model = match setup::model(case) {
        Ok(model) => model,
        Err(why) => return CaseOutcome::Failed(why),
    };
    let Some(format) = wire::builtin().into_iter().find(|format| model.api == *format.api()) else {
        return CaseOutcome::NotImplemented;
    };
    let request = match setup::request(case, model) {
        Ok(request) => request,
        Err(why) => return CaseOutcome::Failed(why),
    };
    let call = WireCall::new(&request, request.host.now_ms());
    let made = format.encode(&call).map_err(|error| error.text);
    check(case.case, made).into()
}

fn check(case: &Value, made: Result<HttpRequest, String>) -> Result<(), String> {
    let (expect, prefer) = (&case["expect"], &case["prefer"]);
    if prefer.is_null() && expect["noRequest"] == true {
        return match made {
            Ok(made) => Err(format!("no request expected, but one leaves for {}", made.url)),
            Err(text) => same(&expect["errorMessage"], &text.into()),
        };
    }
    let made = made.map_err(|text| format!("no request leaves: {text}"))?;
    let headers: Map<String, Value> = made
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into()))
        .collect();
    if expect["noRequest"] != true {
        same(&expect["method"], &"POST".into()).map_err(|why| format!("method{why}"))?;
        same(&expect["url"], &made.url.as_str().into()).map_err(|why| format!("url{why}"))?;
    }
    check_headers(expect, prefer, &headers)?;
    check_body(expect, prefer, &made.body)
}

fn check_headers(expect: &Value, prefer: &Value, actual: &Map<String, Value>) -> Result<(), String> {
    let mut expected = expect["headers"].as_object().cloned().unwrap_or_default();
    for name in prefer["headersAbsent"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        expected.remove(name);
        if let Some(value) = actual.get(name) {
            return Err(format!("header {name} must be absent, is {value}"));
        }
    }
    for (name, value) in prefer["headersSubset"].as_object().into_iter().flatten() {
        expected.insert(name.clone(), value.clone());
    }
    contains(&Value::Object(expected), &Value::Object(actual.clone())).map_err(|why| format!("headers{why}"))
}

fn check_body(expect: &Value, prefer: &Value, body: &Value) -> Result<(), String> {
    let mut expected = expect["body"].clone();
    let mut actual = body.clone();
    let pointers = |name: &str| -> Vec<String> {
        prefer[name].as_array().into_iter().flatten().filter_map(|p| p.as_str().map(str::to_owned)).collect()
    };
    for pointer in pointers("bodyAbsent") {
        if let Some(value) = actual.pointer(&pointer) {
            return Err(format!("body{pointer} must be absent, is {value}"));
        }
        remove(&mut expected, &pointer);
    }
    let distinct: Vec<String> = pointers("distinct");
    let values: Vec<Option<&Value>> = distinct.iter().map(|pointer| actual.pointer(pointer)).collect();
    for (at, value) in values.iter().enumerate() {
        if value.is_none() || values[..at].contains(value) {
            return Err(format!("body{} must be there and differ from the others, is {value:?}", distinct[at]));
        }
    }
    if let Some(subset) = prefer["bodySubset"].as_object() {
        contains(&prefer["bodySubset"], &actual).map_err(|why| format!("body{why}"))?;
        for key in subset.keys() {
            remove(&mut expected, &format!("/{key}"));
            remove(&mut actual, &format!("/{key}"));
        }
    }
    for pointer in pointers("bodyIgnore") {
        remove(&mut expected, &pointer);
        remove(&mut actual, &pointer);
    }
    if expected.is_null() {
        return Ok(());
    }
    same(&expected, &actual).map_err(|why| format!("body{why}"))
}

/// Removes the target of a JSON pointer.
fn remove(value: &mut Value, pointer: &str) {
    let Some((parent, last)) = pointer.rsplit_once('/') else { return };
    let last = last.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(parent) {
        Some(Value::Object(map)) => drop(map.remove(&last)),
        Some(Value::Array(list)) => {
            if let Some(at) = last.parse().ok().filter(|at| *at < list.len()) {
                list.remove(at);
            }
        }
        _ => {}
    }
}

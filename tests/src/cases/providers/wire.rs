//! Cases with a single call: the request that arrives at a server, and the answer.

use std::time::Duration;

use futures::StreamExt;
use pinch_llm::event::StreamEvent;
use pinch_llm::message::Message;
use pinch_llm::provider::ProviderRegistry;
use pinch_llm::request::Request;
use pinch_llm::stdx::cancel::Cancel;
use pinch_testing::cases::compare::{same, subset};
use pinch_testing::cases::shape;
use pinch_testing::server::{Recorded, Server, ServerReply};
use serde_json::{Value, json};

use super::{setup, wanted};
use crate::cases::llm::stream::{event_json, forget_new_members};
use crate::cases::{Case, CaseOutcome};

/// Upper limit for any case.
const MAX_TIME: Duration = Duration::from_secs(20);

/// The result of a call.
#[derive(Debug, Default)]
pub(super) struct ProviderOutput {
    pub(super) requests: Vec<Recorded>,
    pub(super) events: Vec<Value>,
    pub(super) message: Value,
}

/// Runs a case.
pub(super) fn run(case: &Case<'_>) -> CaseOutcome {
    let given = &case.case["given"];
    outcome(call_of(case, given, setup::reply), |seen| check(wanted(&case.case["expect"]), seen))
}

/// Runs a case about prices: the answer has the given usage and tier.
pub(super) fn run_with_tier(case: &Case<'_>) -> CaseOutcome {
    let mut given = case.case["given"].clone();
    given["options"] = json!({"serviceTier": given["serviceTier"]});
    let response = json!({"id": "r", "status": "completed", "usage": given["usage"],
        "service_tier": given["responseServiceTier"]});
    given["sse"] = json!([{"type": "response.completed", "response": response}]);
    outcome(call_of(case, &given, setup::reply), |seen| check(wanted(&case.case["expect"]), seen))
}

/// The outcome of a case whose call may not be supported.
pub(super) fn outcome(called: Called, check: impl FnOnce(ProviderOutput) -> CaseCheck) -> CaseOutcome {
    match called {
        Called::Seen(seen) => match check(*seen) {
            Ok(result) => result.into(),
            Err(_unknown_member) => CaseOutcome::NotImplemented,
        },
        Called::NoProvider => CaseOutcome::NotImplemented,
        Called::Failed(why) => CaseOutcome::Failed(why),
    }
}

/// Whether a case passes; the outer error is the name of a field that is not compared here.
pub(super) type CaseCheck = Result<Result<(), String>, String>;

/// The result of attempting a call.
pub(super) enum Called {
    Seen(Box<ProviderOutput>),
    /// The wire format is not compiled in.
    NoProvider,
    Failed(String),
}

/// Makes the call of a case against a server that sends one reply.
pub(super) fn call_of(
    case: &Case<'_>,
    given: &Value,
    reply: impl FnOnce(&Value) -> Result<ServerReply, String>,
) -> Called {
    let made = setup::model(case, given, Some("http://127.0.0.1:1"));
    match made {
        Ok(model) if ProviderRegistry::builtin().get(&model.api).is_err() => return Called::NoProvider,
        Ok(_) => {}
        Err(why) => return Called::Failed(why),
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => return Called::Failed(why.to_string()),
    };
    let whole = async {
        let server = Server::start().await.map_err(|why| why.to_string())?;
        server.reply(reply(given)?).repeat_last();
        let model = setup::model(case, given, Some(&server.url()))?;
        let mut request = setup::request(case, given, model)?;
        // These cases are about server-sent events, even for formats that also support other transports.
        request.options.native.entry("transport").or_insert_with(|| "sse".into());
        let mut seen = call(request).await?;
        seen.requests = server.requests();
        Ok(seen)
    };
    match runtime.block_on(async { tokio::time::timeout(MAX_TIME, whole).await }) {
        Ok(Ok(seen)) => Called::Seen(Box::new(seen)),
        Ok(Err(why)) => Called::Failed(why),
        Err(_) => Called::Failed(format!("not over after {MAX_TIME:?}")),
    }
}

/// Makes a call and records its events in the form that cases use.
pub(super) async fn call(request: Request) -> Result<ProviderOutput, String> {
    let provider = ProviderRegistry::builtin().get(&request.model.api).map_err(|why| why.to_string())?;
    events_of(provider.stream(request, Cancel::new())).await
}

/// Reads a stream to its end and records its events.
pub(super) async fn events_of(mut stream: pinch_llm::event::EventStream) -> Result<ProviderOutput, String> {
    let mut seen = ProviderOutput::default();
    let mut kinds = Vec::new();
    while let Some(event) = stream.next().await {
        if let StreamEvent::BlockStart { kind, .. } = &event {
            kinds.push(kind.clone());
        }
        let mut told = event_json(&event, &kinds);
        if let StreamEvent::End(finished) = &event {
            seen.message = Message::Assistant(finished.message.clone()).to_value();
            if let Some(map) = seen.message.as_object_mut() {
                map.remove("timestamp");
            }
            if let Some(told) = &mut told {
                told[if finished.is_ok() { "message" } else { "error" }] = seen.message.clone();
            }
        }
        seen.events.extend(told);
    }
    Ok(seen)
}

/// Compares the fields that a case names.
pub(super) fn check(expect: &Value, mut seen: ProviderOutput) -> CaseCheck {
    let request = seen.requests.first();
    for (name, expected) in expect.as_object().into_iter().flatten() {
        let of_request = || request.ok_or_else(|| format!("no request left, but {name} is expected"));
        let result = match name.as_str() {
            "path" => of_request().and_then(|r| same(expected, &r.path.as_str().into())),
            "method" => of_request().and_then(|r| same(expected, &r.method.as_str().into())),
            "headers" => of_request().and_then(|r| check_headers(expected, r)),
            "userAgentPattern" => of_request().and_then(|r| {
                let pattern = format!("$re:{}", expected.as_str().unwrap_or_default());
                same(&pattern.into(), &r.header("user-agent").into())
            }),
            "body" => of_request().and_then(body).and_then(|body| same(expected, &body)),
            "bodySubset" => of_request().and_then(body).and_then(|body| subset(expected, &body)),
            "sent" => check_sent(expected, &seen.requests),
            "requestBodyServiceTier" => {
                of_request().and_then(body).and_then(|body| same(expected, &body["service_tier"]))
            }
            "requests" => same(expected, &seen.requests.len().into()),
            "events" => check_events(expected, &mut seen.events),
            "message" => check_message(expected, &mut seen.message),
            "errorMessage" | "stopReason" | "usage" | "diagnostics" => {
                let (expected, actual) = shape::compared(&pattern(expected), seen.message[name].clone());
                same(&expected, &actual)
            }
            "errorMessageContains" => {
                let (part, text) = (expected.as_str().unwrap_or_default(), seen.message["errorMessage"].as_str());
                let holds = text.is_some_and(|text| text.contains(part));
                holds.then_some(()).ok_or_else(|| format!("should contain {part:?}, is {text:?}"))
            }
            "tolerance" => Ok(()),
            other => return Err(other.to_owned()),
        };
        if let Err(why) = result {
            return Ok(Err(format!("{name}{why}")));
        }
    }
    Ok(Ok(()))
}

fn body(request: &Recorded) -> Result<Value, String> {
    serde_json::from_slice(&request.body).map_err(|why| format!("the body is not JSON: {why}"))
}

/// Compares the named headers; null means absent.
pub(super) fn check_headers(expect: &Value, request: &Recorded) -> Result<(), String> {
    for (name, value) in expect.as_object().into_iter().flatten() {
        same(value, &request.header(name).into()).map_err(|why| format!("/{name}{why}"))?;
    }
    Ok(())
}

/// Compares the named fields of each request's body; a single object refers to the first request.
fn check_sent(expected: &Value, requests: &[Recorded]) -> Result<(), String> {
    let bodies: Vec<Value> = requests.iter().map(body).collect::<Result<_, _>>()?;
    match expected {
        Value::Array(_) => subset(expected, &bodies.into()),
        one => subset(one, bodies.first().ok_or("no request left")?),
    }
}

/// Compares whole events, or only their types where a case contains only types.
pub(super) fn check_events(expected: &Value, actual: &mut [Value]) -> Result<(), String> {
    if expected.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_string)) {
        return same(expected, &actual.iter().map(|event| event["type"].clone()).collect());
    }
    for (at, event) in actual.iter_mut().enumerate() {
        for member in ["message", "error"] {
            if let Some(message) = event.get_mut(member) {
                forget_new_members(&expected[at][member], message);
                forget_raw_stop(&expected[at][member], message);
            }
        }
    }
    same(&pattern(expected), &actual.iter().cloned().collect())
}

fn check_message(expected: &Value, actual: &mut Value) -> Result<(), String> {
    forget_new_members(expected, actual);
    forget_raw_stop(expected, actual);
    same(&pattern(expected), actual)
}

/// Cases recorded from a version without a field do not check it.
fn forget_raw_stop(expected: &Value, actual: &mut Value) {
    if let Some(map) = actual.as_object_mut().filter(|_| expected.get("rawStopReason").is_none()) {
        map.remove("rawStopReason");
    }
}

/// Converts texts that contain `<ms>` or `<n>` to patterns.
fn pattern(expected: &Value) -> Value {
    match expected {
        Value::String(text) if text.contains("<ms>") || text.contains("<n>") => {
            let escaped = regex::escape(text).replace("<ms>", "[0-9]+").replace("<n>", "[^/&]+");
            format!("$re:^{escaped}$").into()
        }
        Value::Array(list) => list.iter().map(pattern).collect(),
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), pattern(value))).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_patterns() {
        let expected = pattern(&json!({"id": "read_<ms>_<n>", "name": "a.b"}));
        assert!(same(&expected, &json!({"id": "read_17_423", "name": "a.b"})).is_ok());
        assert!(same(&expected, &json!({"id": "read_x_423", "name": "a.b"})).is_err());
    }
}

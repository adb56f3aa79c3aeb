//! Cases of the area `headers`.

use pinch_llm::catalog::Catalog;
use pinch_testing::cases::compare::same;
use pinch_testing::server::ServerReply;
use serde_json::{Value, json};

use super::wire::{ProviderOutput, call_of, check_headers, outcome};
use crate::cases::{Case, CaseOutcome};

/// Runs a case.
pub(super) fn run(case: &Case<'_>) -> CaseOutcome {
    let (given, expect) = (&case.case["given"], super::wanted(&case.case["expect"]));
    match given["providers"].as_array() {
        Some(providers) => providers_one_by_one(case, providers, expect),
        None => outcome(call_of(case, &with_history(given), |_| Ok(ServerReply::sse(""))), |seen| check(expect, &seen)),
    }
}

/// Sends the same request to the first model of each provider.
fn providers_one_by_one(case: &Case<'_>, providers: &[Value], expect: &Value) -> CaseOutcome {
    let catalog = Catalog::built_in();
    for provider in providers.iter().filter_map(Value::as_str) {
        let Some(model) = catalog.models(provider).first().map(|model| model.id.to_string()) else {
            return CaseOutcome::Failed(format!("the catalog has no models of {provider}"));
        };
        let mut given = case.case["given"].clone();
        given["provider"] = provider.into();
        given["model"] = model.into();
        if provider == "azure" {
            given["baseUrl"] = "{{server}}/openai/v1".into();
        }
        let one = outcome(call_of(case, &with_history(&given), |_| Ok(ServerReply::sse(""))), |seen| {
            check(&expect[provider], &seen)
        });
        match one {
            CaseOutcome::Passed => {}
            CaseOutcome::Failed(why) => return CaseOutcome::Failed(format!("{provider}: {why}")),
            other => return other,
        }
    }
    CaseOutcome::Passed
}

/// Options and history, converted to the form of other cases.
fn with_history(given: &Value) -> Value {
    let mut given = given.clone();
    given["simpleOptions"] = json!({"sessionId": given["sessionId"]});
    let mut messages = vec![json!({"role": "user", "content": "x"})];
    if given["historyHasImage"] == true {
        let image = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"});
        messages[0]["content"] = json!([{"type": "text", "text": "x"}, image]);
    }
    if given["lastMessageRole"] == "toolResult" {
        let call = json!({"type": "toolCall", "id": "c1", "name": "read", "arguments": {}});
        messages.push(json!({"role": "assistant", "content": [call], "api": "openai-completions", "provider": "other",
            "model": "m", "stopReason": "toolUse"}));
        messages.push(json!({"role": "toolResult", "toolCallId": "c1", "toolName": "read", "isError": false,
            "content": [{"type": "text", "text": "r"}]}));
    }
    given["context"] = json!({"systemPrompt": given["systemPrompt"], "messages": messages});
    given
}

fn check(expect: &Value, seen: &ProviderOutput) -> Result<Result<(), String>, String> {
    let request = seen.requests.first();
    for (name, expected) in expect.as_object().into_iter().flatten() {
        let of_request = || request.ok_or_else(|| format!("no request left: {}", seen.message["errorMessage"]));
        let result = match name.as_str() {
            "path" => of_request().and_then(|r| same(expected, &r.path.as_str().into())),
            "headers" => of_request().and_then(|r| check_headers(expected, r)),
            "system" => of_request().and_then(|r| same(expected, &r.json()["system"])),
            "promptCacheKey" => of_request().and_then(|r| same(expected, &r.json()["prompt_cache_key"])),
            "errorMessage" => same(expected, &seen.message["errorMessage"]),
            other => return Err(other.to_owned()),
        };
        if let Err(why) = result {
            return Ok(Err(format!("{name}{why}")));
        }
    }
    Ok(Ok(()))
}

//! Cases of the areas `bedrock-eventstream` and `bedrock-auth`.

use pinch_llm::cloud::AmbientCredentials;
use pinch_llm::cloud::aws::AwsChain;
use pinch_llm::frame::aws_event::{EventMessage, MAX_MESSAGE_BYTES};
use pinch_llm::http::HttpClient;
use pinch_llm::request::Request;
use pinch_llm::wire::{self, Signing, WireCall};
use pinch_testing::cases::compare::same;
use serde_json::{Map, Value, json};

use super::{setup, wanted};
use crate::cases::{Case, CaseOutcome};

/// Runs a case about one frame.
pub(super) fn run(case: &Case<'_>) -> CaseOutcome {
    let (given, expect) = (&case.case["given"], wanted(&case.case["expect"]));
    let Some(bytes) = given["hex"].as_str().and_then(from_hex) else { return CaseOutcome::NotImplemented };
    let message = match EventMessage::read(&bytes, MAX_MESSAGE_BYTES) {
        Ok(Some(message)) => message,
        // The wording may differ.
        Ok(None) | Err(_) if expect.get("error").is_some() => return CaseOutcome::Passed,
        Ok(None) => return CaseOutcome::Failed("the frame is not whole".into()),
        Err(why) => return CaseOutcome::Failed(why.to_string()),
    };
    if expect.get("error").is_some() {
        return CaseOutcome::Failed("a broken frame is read".into());
    }
    let headers =
        message.headers.iter().filter_map(|(name, value)| Some(((*name).to_owned(), value.as_text()?.into())));
    let actual = json!({
        "headers": Value::Object(headers.collect::<Map<_, _>>()),
        "payload": serde_json::from_slice::<Value>(message.payload).unwrap_or_default(),
        "totalLength": message.total_len,
        "headersLength": message.headers_len,
    });
    for (name, value) in expect.as_object().into_iter().flatten() {
        if let Err(why) = same(value, &actual[name]) {
            return CaseOutcome::Failed(format!("{name}{why}"));
        }
    }
    CaseOutcome::Passed
}

fn from_hex(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// Runs a case about regions and credentials: one request per item of its list.
pub(super) fn run_auth(case: &Case<'_>) -> CaseOutcome {
    let (given, expect) = (&case.case["given"], wanted(&case.case["expect"]));
    let Some(list) = given.as_array().or_else(|| given["requests"].as_array()) else {
        return CaseOutcome::NotImplemented;
    };
    let (mut scopes, mut last_body) = (Vec::new(), Value::Null);
    for item in list {
        let mut item = item.clone();
        item["env"]["AWS_BEDROCK_SKIP_AUTH"] = "1".into();
        put_server(&mut item);
        if item["options"].get("apiKey").is_none() {
            item["options"]["apiKey"] = Value::Null;
        }
        let request = setup::model(case, &item, None).and_then(|model| setup::request(case, &item, model));
        match request.and_then(signed) {
            Ok((scope, body)) => {
                scopes.push(scope);
                last_body = body;
            }
            Err(why) => return CaseOutcome::Failed(why),
        }
    }
    for (name, value) in expect.as_object().into_iter().flatten() {
        let actual = match name.as_str() {
            "credentialScopes" => json!(scopes),
            "lastAdditionalModelRequestFields" => last_body["additionalModelRequestFields"].clone(),
            _ => return CaseOutcome::NotImplemented,
        };
        if let Err(why) = same(value, &actual) {
            return CaseOutcome::Failed(format!("{name}{why}"));
        }
    }
    CaseOutcome::Passed
}

/// Fills in an address where list items refer to the server: nothing is sent to it.
fn put_server(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace("{{server}}", "http://127.0.0.1:1"),
        Value::Array(items) => items.iter_mut().for_each(put_server),
        Value::Object(members) => members.values_mut().for_each(put_server),
        _ => {}
    }
}

/// The scope of a request's signature without its date, and the body.
fn signed(mut request: Request) -> Result<(String, Value), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|why| why.to_string())?;
    let found = runtime.block_on(async { AwsChain::new().resolve(&request, &HttpClient::new()).await });
    request.auth.aws = found.map_err(|error| error.text)?.and_then(|auth| auth.aws);
    let format = wire::builtin().into_iter().find(|format| request.model.api == *format.api()).ok_or("not built in")?;
    let call = WireCall::new(&request, request.host.now_ms());
    let mut made = format.encode(&call).map_err(|error| error.text)?;
    let body = made.body.to_string().into_bytes();
    let signing = Signing { url: &made.url, headers: &mut made.headers, body: &body };
    format.sign(&call, signing).map_err(|error| error.text)?;
    let authorisation = made.headers.get("authorization").map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned());
    let scope = authorisation.as_deref().and_then(|text| text.split("Credential=").nth(1)?.split(',').next());
    // It is preceded by the key's ID and the date.
    let scope: Vec<&str> = scope.unwrap_or_default().split('/').skip(2).collect();
    Ok((scope.join("/"), made.body))
}

//! Requests to Cloud Code Assist.

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::{LlmError, LlmErrorKind};
use crate::keys;
use crate::request::Request;
use crate::wire::google::request as google;
use crate::wire::headers::{self, HeaderLayers};
use crate::wire::{Encoding, HttpRequest, WireCall, address};

/// Address of the service.
const SERVICE: &str = "https://cloudcode-pa.googleapis.com";
/// Address that Antigravity tries first. Rejected requests may succeed at [`SERVICE`].
const SANDBOX: &str = "https://daily-cloudcode-pa.sandbox.googleapis.com";
const METHOD: &str = "v1internal:streamGenerateContent?alt=sse";
const ANTIGRAVITY: &str = "google-antigravity";
/// Client metadata required by the service.
const METADATA: &str = r#"{"ideType":"IDE_UNSPECIFIED","platform":"PLATFORM_UNSPECIFIED","pluginType":"GEMINI"}"#;

const NO_KEY: &str = "Google Cloud Code Assist requires OAuth authentication. Use /login to authenticate.";
const BAD_KEY: &str = "Invalid Google Cloud Code Assist credentials. Use /login to re-authenticate.";
const HALF_KEY: &str = "Missing token or projectId in Google Cloud credentials. Use /login to re-authenticate.";

/// The token, and the project to bill.
struct CloudCodeCredentials {
    token: String,
    project: String,
}

pub(super) fn encode(call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
    let request = call.request;
    let CloudCodeCredentials { token, project } = credentials(request)?;
    let id = google::model_id(request)?;
    if request.options.response_format.is_some() && is_claude(id) {
        let text = format!("{} cannot ask Claude models for a response format", request.model.api);
        return Err(LlmError::new(request.model.provider.clone(), LlmErrorKind::InvalidRequest, text));
    }
    let is_antigravity = is_antigravity(request);
    let url = address::url_under(request, base(call), METHOD)?;
    let mut layers = HeaderLayers::new(&request.model);
    headers::common(&mut layers)?;
    layers.set("accept", "text/event-stream")?;
    layers.set("authorization", &format!("Bearer {token}"))?;
    layers.set("x-goog-api-client", "gl-node/22.17.0")?;
    layers.set("client-metadata", METADATA)?;
    if !is_antigravity {
        layers.set("user-agent", "google-cloud-sdk vscode_cloudshelleditor/0.1")?;
    }
    if is_claude(id) && request.model.reasoning {
        layers.set("anthropic-beta", "interleaved-thinking-2025-05-14")?;
    }
    layers.lay(&request.model.headers)?;
    layers.lay(&request.auth.headers)?;
    headers::provider_quirks(&mut layers, request)?;
    layers.lay(&request.options.headers)?;
    let (agent, prefix) = if is_antigravity { ("antigravity", "agent") } else { ("pi-coding-agent", "pi") };
    let inner = inner(call, id)?;
    let request_id = format!("{prefix}-{}-{}", call.timestamp, digest(&inner));
    let mut body =
        json!({"project": project, "model": id, "request": inner, "userAgent": agent, "requestId": request_id});
    if is_antigravity {
        body["requestType"] = "agent".into();
    }
    Ok(HttpRequest { url, headers: layers.finish(), body })
}

/// Identifies a request by its content: equal requests are equal byte for byte.
fn digest(body: &Value) -> String {
    let digest = Sha256::digest(body.to_string().as_bytes());
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Wraps Google's body for the service.
fn inner(call: &WireCall<'_>, id: &str) -> Result<Value, LlmError> {
    let mut body = google::body(call)?;
    let Some(members) = body.as_object_mut() else { return Ok(body) };
    if let Some(prompt) = members.get_mut("systemInstruction").and_then(Value::as_object_mut) {
        prompt.shift_remove("role");
    }
    if is_claude(id) {
        let tools = members.get_mut("tools").and_then(|tools| tools[0]["functionDeclarations"].as_array_mut());
        for tool in tools.into_iter().flatten().filter_map(Value::as_object_mut) {
            if let Some(schema) = tool.shift_remove("parametersJsonSchema") {
                tool.insert("parameters".into(), schema);
            }
        }
    }
    if let Some(session) = headers::session(call.request) {
        members.insert("sessionId".into(), session.into());
    }
    Ok(body)
}

fn is_claude(id: &str) -> bool {
    id.starts_with("claude-")
}

fn is_antigravity(request: &Request) -> bool {
    request.model.provider == *ANTIGRAVITY
}

/// Returns the service's address: the record's, else the provider's default.
fn base<'a>(call: &WireCall<'a>) -> &'a str {
    let given = address::base(call.request);
    let usual = if is_antigravity(call.request) { SANDBOX } else { SERVICE };
    match given {
        _ if call.encoding == Encoding::OtherAddress => SERVICE,
        "" => usual,
        given => given,
    }
}

/// Resends requests rejected by the sandbox to the service itself; otherwise the same as Google's own format.
pub(super) fn reencode(call: &WireCall<'_>, error: &LlmError) -> Option<Encoding> {
    let is_elsewhere = matches!(error.status, Some(StatusCode::FORBIDDEN | StatusCode::NOT_FOUND));
    if call.encoding == Encoding::Usual && is_elsewhere && base(call).trim_end_matches('/') == SANDBOX {
        return Some(Encoding::OtherAddress);
    }
    google::reencode(call, error)
}

fn credentials(request: &Request) -> Result<CloudCodeCredentials, LlmError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Given {
        token: Option<String>,
        project_id: Option<String>,
    }
    let failed = |text: &str| LlmError::new(request.model.provider.clone(), LlmErrorKind::Auth, text);
    let key = request.auth.key.as_ref().filter(|key| !keys::is_placeholder(key)).ok_or_else(|| failed(NO_KEY))?;
    let key = key.reveal().trim();
    let named = || {
        let variables = ["GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT_ID"];
        let native = request.options.native.get("project").and_then(Value::as_str).filter(|name| !name.is_empty());
        native.or_else(|| variables.iter().find_map(|name| request.host.env().non_empty(name))).map(str::to_owned)
    };
    let given = match serde_json::from_str::<Given>(key) {
        Ok(given) => given,
        // Only a token.
        Err(_) if !key.starts_with('{') && named().is_some() => Given { token: Some(key.to_owned()), project_id: None },
        Err(_) => return Err(failed(BAD_KEY)),
    };
    let text = |member: Option<String>| member.filter(|text| !text.is_empty());
    match (text(given.token), text(given.project_id).or_else(named)) {
        (Some(token), Some(project)) => Ok(CloudCodeCredentials { token, project }),
        _ => Err(failed(HALF_KEY)),
    }
}

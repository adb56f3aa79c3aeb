//! Getting an access token.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use pinch_http::{HttpClient, HttpError, Outgoing};
use pinch_stdx::host::Env;
use pinch_stdx::secret::Secret;
use serde::Deserialize;

use super::file::{Grant, TokenSource};
use super::jwt::{self, Claims};
use crate::error::{LlmError, LlmErrorKind, classify, retry};
use crate::request::Request;
use crate::wire::address;

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const METADATA_PATH: &str = "computeMetadata/v1/instance/service-accounts/default/token";
/// Maximum bytes of a response that are read.
const MAX_BYTES: usize = 64 * 1024;
/// Time limit of a response.
const LIMIT: Duration = Duration::from_secs(30);
/// Maximum characters of a response in an error text.
const MAX_SHOWN: usize = 500;
/// Validity in seconds of a token whose response does not state it: an hour is usual, but not guaranteed.
const UNKNOWN_LIFE: i64 = 300;

/// An access token.
pub(super) struct AccessToken {
    pub(super) secret: Secret,
    pub(super) expires_ms: i64,
}

#[derive(Deserialize)]
struct TokenResponse {
    access_token: Option<String>,
    expires_in: Option<i64>,
}

#[derive(Deserialize)]
struct Refusal {
    error: Option<String>,
    error_description: Option<String>,
}

/// Requests a token.
pub(super) async fn fetch(
    source: &TokenSource,
    request: &Request,
    client: &HttpClient,
) -> Result<AccessToken, LlmError> {
    let now_ms = request.host.now_ms();
    let outgoing = outgoing(source, now_ms)
        .map_err(|why| LlmError::new(request.model.provider.clone(), LlmErrorKind::Auth, why))?;
    let connect = request.options.timeouts.connect.filter(|limit| !limit.is_zero());
    // The metadata server is part of the machine, so no proxy is used.
    let direct = Env::default();
    let env = if matches!(source, TokenSource::Metadata { .. }) { &direct } else { request.host.env() };
    let asking = async {
        let mut incoming = client.send(outgoing, env, connect).await?;
        let (status, headers) = (incoming.status(), incoming.headers().clone());
        Ok((status, headers, incoming.text_up_to(MAX_BYTES).await))
    };
    let Ok(asked) = tokio::time::timeout(LIMIT, asking).await else {
        let text =
            format!("Getting a Google access token: {} did not answer in {} s", source.token_host(), LIMIT.as_secs());
        return Err(LlmError::new(request.model.provider.clone(), LlmErrorKind::Timeout, text));
    };
    let (status, headers, body) = asked.map_err(|error| unreachable_error(source, request, &error))?;
    if !status.is_success() {
        return Err(refused(source, request, status, &headers, &body));
    }
    let answer = serde_json::from_slice::<TokenResponse>(&body).ok();
    let token = answer.and_then(|answer| Some((answer.access_token.filter(|t| !t.is_empty())?, answer.expires_in)));
    let Some((secret, seconds)) = token else {
        let text = format!("{} answered without an access token.", source.token_host());
        return Err(LlmError::new(request.model.provider.clone(), LlmErrorKind::Protocol, text));
    };
    let life_ms = seconds.unwrap_or(UNKNOWN_LIFE).saturating_mul(1_000);
    Ok(AccessToken { secret: Secret::new(secret), expires_ms: now_ms.saturating_add(life_ms) })
}

fn outgoing(source: &TokenSource, now_ms: i64) -> Result<Outgoing, String> {
    let mut headers = HeaderMap::new();
    match source {
        TokenSource::Metadata { host } => {
            headers.insert("metadata-flavor", HeaderValue::from_static("Google"));
            let url = format!("http://{host}/{METADATA_PATH}?scopes={}", address::encoded(SCOPE));
            Ok(Outgoing::get(url, headers))
        }
        TokenSource::File { name, token_uri, grant, .. } => {
            let form = match grant {
                Grant::Refresh { client_id, client_secret, refresh_token } => address::pairs(&[
                    ("grant_type", "refresh_token"),
                    ("client_id", client_id),
                    ("client_secret", client_secret.reveal()),
                    ("refresh_token", refresh_token.reveal()),
                ]),
                Grant::Assertion { email, key_id, private_key } => {
                    let claims = Claims { email, key_id: key_id.as_deref(), scope: SCOPE, audience: token_uri, now_ms };
                    let assertion = jwt::sign(&claims, private_key)
                        .map_err(|why| format!("Google credentials file {name} cannot be used: {why}."))?;
                    address::pairs(&[
                        ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                        ("assertion", &assertion),
                    ])
                }
            };
            let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
            headers.insert(header::CONTENT_TYPE, kind);
            Ok(Outgoing { method: Method::POST, url: token_uri.clone(), headers, body: Bytes::from(form) })
        }
    }
}

fn unreachable_error(source: &TokenSource, request: &Request, error: &HttpError) -> LlmError {
    let text = format!("Getting a Google access token from {}: {error}", source.token_host());
    LlmError::new(request.model.provider.clone(), LlmErrorKind::Connect, text)
}

/// Classifies a rejection. The user must fix rejected file contents; other failures may be transient.
fn refused(source: &TokenSource, request: &Request, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
    let said = match serde_json::from_slice::<Refusal>(body) {
        Ok(Refusal { error: Some(error), error_description: Some(words) }) => format!("{error}: {words}"),
        Ok(Refusal { error: Some(error), .. }) => error,
        _ => String::from_utf8_lossy(body).trim().to_owned(),
    };
    let said: String = said.chars().take(MAX_SHOWN).collect();
    let of = match source {
        TokenSource::File { name, grant: Grant::Refresh { .. }, .. } => {
            format!("Google refused the credentials of {name}; run `gcloud auth application-default login` again")
        }
        TokenSource::File { name, .. } => format!("Google refused the credentials of {name}"),
        TokenSource::Metadata { host } => format!("The metadata server {host} gave no access token"),
    };
    let text = format!("{of} ({} {said})", status.as_u16());
    let kind = match status.as_u16() {
        429 | 500.. => classify::classify(Some(status), None, &text),
        _ => LlmErrorKind::Auth,
    };
    LlmError {
        status: Some(status),
        retry_after: retry::retry_after(headers, request.host.now_ms()),
        ..LlmError::new(request.model.provider.clone(), kind, text)
    }
}

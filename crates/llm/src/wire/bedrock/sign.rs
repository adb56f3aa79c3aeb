//! Authorization of requests: a bearer token, or Amazon's signature, version 4.

use std::time::{Duration, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{self, PayloadChecksumKind, SignableBody, SignableRequest, SigningSettings};
use aws_sigv4::sign::v4;
use http::{HeaderMap, HeaderName, HeaderValue};
use pinch_stdx::secret::Secret;

use super::endpoint;
use crate::error::{LlmError, LlmErrorKind};
use crate::keys;
use crate::request::{AwsKeys, Request};
use crate::wire::{Signing, WireCall};

/// The reason why a request cannot be signed. Never contains a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot sign the request: {0}")]
pub(crate) struct SignError(&'static str);

/// Returns whether requests are signed with dummy keys, for gateways that sign them themselves.
pub(crate) fn skips_auth(request: &Request) -> bool {
    request.host.env().get("AWS_BEDROCK_SKIP_AUTH") == Some("1")
}

/// Returns the token that is sent instead of a signature.
pub(crate) fn bearer(request: &Request) -> Option<Secret> {
    if skips_auth(request) {
        return None;
    }
    let given = request.auth.key.clone().filter(|key| !keys::is_placeholder(key));
    let by_env = || request.host.env().non_empty("AWS_BEARER_TOKEN_BEDROCK");
    given.or_else(|| endpoint::option(request, "bearerToken").or_else(by_env).map(Secret::from))
}

/// Authorizes the request.
pub(super) fn authorise(call: &WireCall<'_>, parts: Signing<'_>) -> Result<(), LlmError> {
    let request = call.request;
    let failed = |text: String| LlmError::new(request.model.provider.clone(), LlmErrorKind::Auth, text);
    if let Some(token) = bearer(request) {
        let mut value = HeaderValue::try_from(format!("Bearer {}", token.reveal()))
            .map_err(|_| failed("the bearer token holds characters that no header may have".into()))?;
        value.set_sensitive(true);
        parts.headers.insert(http::header::AUTHORIZATION, value);
        return Ok(());
    }
    let pair = if skips_auth(request) {
        AwsKeys {
            access_key_id: "dummy-access-key".into(),
            secret_access_key: "dummy-secret-key".into(),
            session_token: None,
        }
    } else if let Some(keys) = request.auth.aws.as_ref().and_then(|aws| aws.keys.clone()) {
        keys
    } else if request.auth.keyless {
        return Ok(());
    } else {
        let provider = &request.model.provider;
        return Err(failed(format!(
            "No AWS credentials for provider: {provider}. Set AWS_PROFILE, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, \
             or AWS_BEARER_TOKEN_BEDROCK."
        )));
    };
    let region = endpoint::find(request)?.region;
    let scope = SigningScope { service: "bedrock", region: &region, time_ms: call.timestamp };
    sign("POST", &parts, &pair, scope).map_err(|error| failed(error.to_string()))?.add_to(parts.headers);
    Ok(())
}

/// The scope of a signature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SigningScope<'a> {
    pub(crate) service: &'a str,
    pub(crate) region: &'a str,
    /// Time in Unix milliseconds.
    pub(crate) time_ms: i64,
}

/// The headers of a signature.
#[derive(Debug)]
pub(crate) struct Signature(Vec<(HeaderName, HeaderValue)>);

impl Signature {
    pub(crate) fn add_to(self, headers: &mut HeaderMap) {
        headers.extend(self.0);
    }
}

/// Signs host, path, query, body and content type of a request.
pub(crate) fn sign(
    method: &str,
    parts: &Signing<'_>,
    keys: &AwsKeys,
    scope: SigningScope<'_>,
) -> Result<Signature, SignError> {
    let token = keys.session_token.as_ref().map(|token| token.reveal().to_owned());
    let identity = Credentials::new(&keys.access_key_id, keys.secret_access_key.reveal(), token, None, "pinch").into();
    let mut settings = SigningSettings::default();
    settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    let time = UNIX_EPOCH + Duration::from_millis(u64::try_from(scope.time_ms).unwrap_or(0));
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(scope.region)
        .name(scope.service)
        .time(time)
        .settings(settings)
        .build()
        .map_err(|_| SignError("incomplete parameters"))?
        .into();
    // Only headers that no proxy changes.
    let signed = parts.headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let signed = signed.map(|value| ("content-type", value)).into_iter();
    let request = SignableRequest::new(method, parts.url, signed, SignableBody::Bytes(parts.body))
        .map_err(|_| SignError("its address is not a URL"))?;
    let (instructions, _) = http_request::sign(request, &params)
        .map_err(|_| SignError("the keys or the address hold characters that cannot be signed"))?
        .into_parts();
    let (headers, _) = instructions.into_parts();
    let headers = headers.into_iter().map(|header| {
        let name = HeaderName::try_from(header.name()).map_err(|_| SignError("a header's name"))?;
        let mut value = HeaderValue::try_from(header.value()).map_err(|_| SignError("a header's value"))?;
        value.set_sensitive(true);
        Ok((name, value))
    });
    headers.collect::<Result<_, _>>().map(Signature)
}

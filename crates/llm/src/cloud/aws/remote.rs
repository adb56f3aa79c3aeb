//! Credentials from a server: Amazon's token service, its sign-on portal, the container's agent, the machine's metadata service.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use pinch_http::url_parts;
use pinch_http::{HttpError, Outgoing};
use pinch_stdx::host::{Env, ms_from_iso};
use pinch_stdx::secret::Secret;
use serde_json::Value;

use super::files::{expand, read_file};
use super::{AwsKeys, Cx, Fetched, Lasts, failed};
use crate::error::{LlmError, LlmErrorKind};
use crate::wire::bedrock::{endpoint, sign};
use crate::wire::{Signing, address};

/// Time limit for a server on the network.
const LIMIT: Duration = Duration::from_secs(30);
/// Time limit for the machine's metadata service: on other machines nothing responds.
const NEAR_LIMIT: Duration = Duration::from_secs(1);
/// Maximum bytes of a response that are read.
const MAX_BYTES: usize = 1024 * 1024;
/// The container agent's address.
const AGENT: &str = "169.254.170.2";
/// Hosts that may be called without TLS: agents, and the machine itself.
const NEAR_HOSTS: [&str; 5] = [AGENT, "169.254.170.23", "fd00:ec2::23", "localhost", "::1"];

/// A role assumed with a token of another service.
pub(super) struct WebIdentity<'a> {
    pub(super) token_file: &'a str,
    pub(super) role: &'a str,
    pub(super) session: Option<&'a str>,
    pub(super) region: Option<&'a str>,
}

/// A role assumed with other keys.
pub(super) struct AssumedRole<'a> {
    pub(super) arn: &'a str,
    pub(super) session: Option<&'a str>,
    pub(super) external_id: Option<&'a str>,
    pub(super) seconds: Option<&'a str>,
    pub(super) region: Option<&'a str>,
}

/// A role of a sign-on portal.
pub(super) struct SsoRole<'a> {
    pub(super) region: &'a str,
    pub(super) account: &'a str,
    pub(super) role: &'a str,
    pub(super) token: &'a Secret,
}

pub(super) async fn web_identity(cx: Cx<'_>, identity: WebIdentity<'_>) -> Result<Fetched, LlmError> {
    let path = expand(identity.token_file, cx.request.host.home());
    let token = read_file(&path).await.map_err(|text| failed(cx.request, text))?;
    let token = token.trim();
    if token.is_empty() {
        let text = format!("the AWS web identity token file {} is missing or empty", path.display());
        return Err(failed(cx.request, text));
    }
    let form = [
        ("Action", "AssumeRoleWithWebIdentity"),
        ("Version", "2011-06-15"),
        ("RoleArn", identity.role),
        ("RoleSessionName", identity.session.unwrap_or("pinch")),
        ("WebIdentityToken", token),
    ];
    token_service(cx, &form, identity.region, None).await
}

pub(super) async fn assume_role(cx: Cx<'_>, role: AssumedRole<'_>, by: &AwsKeys) -> Result<Fetched, LlmError> {
    let mut form = vec![
        ("Action", "AssumeRole"),
        ("Version", "2011-06-15"),
        ("RoleArn", role.arn),
        ("RoleSessionName", role.session.unwrap_or("pinch")),
    ];
    form.extend(role.external_id.map(|id| ("ExternalId", id)));
    form.extend(role.seconds.map(|seconds| ("DurationSeconds", seconds)));
    token_service(cx, &form, role.region, Some(by)).await
}

/// Calls Amazon's token service.
async fn token_service(
    cx: Cx<'_>,
    form: &[(&str, &str)],
    region: Option<&str>,
    keys: Option<&AwsKeys>,
) -> Result<Fetched, LlmError> {
    let region = endpoint::configured_region(cx.request).or(region).unwrap_or("us-east-1");
    let china = if region.starts_with("cn-") { ".cn" } else { "" };
    let url = service_url(cx, "AWS_ENDPOINT_URL_STS", || format!("https://sts.{region}.amazonaws.com{china}")) + "/";
    let body = address::pairs(form);
    let mut headers = HeaderMap::new();
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    headers.insert(http::header::CONTENT_TYPE, kind);
    if let Some(keys) = keys {
        let scope = sign::SigningScope { service: "sts", region, time_ms: cx.request.host.now_ms() };
        let parts = Signing { url: &url, headers: &mut headers, body: body.as_bytes() };
        let signature = sign::sign("POST", &parts, keys, scope);
        signature.map_err(|error| failed(cx.request, error.to_string()))?.add_to(&mut headers);
    }
    let outgoing = Outgoing { method: Method::POST, url, headers, body: Bytes::from(body) };
    let (status, answer) = ask(cx, outgoing, cx.request.host.env(), LIMIT).await?;
    let text = String::from_utf8_lossy(&answer);
    if !status.is_success() {
        let said = |name| element(&text, name).unwrap_or_default();
        let what = format!("{} {} {}", status.as_u16(), said("Code"), said("Message"));
        return Err(failed(cx.request, format!("AWS STS refused to give credentials: {}", what.trim_end())));
    }
    let (Some(id), Some(secret)) = (element(&text, "AccessKeyId"), element(&text, "SecretAccessKey")) else {
        return Err(failed(cx.request, "AWS STS answered without credentials"));
    };
    let session_token = element(&text, "SessionToken").map(Secret::from);
    let keys = AwsKeys { access_key_id: id, secret_access_key: secret.into(), session_token };
    Ok(Fetched { keys, lasts: Lasts::Until(element(&text, "Expiration").as_deref().and_then(time)) })
}

/// Calls the sign-on portal; returns `None` if it rejects the token.
pub(super) async fn sso(cx: Cx<'_>, role: SsoRole<'_>) -> Result<Option<Fetched>, LlmError> {
    let region = role.region;
    let base = service_url(cx, "AWS_ENDPOINT_URL_SSO", || format!("https://portal.sso.{region}.amazonaws.com"));
    let query = address::pairs(&[("account_id", role.account), ("role_name", role.role)]);
    let url = format!("{base}/federation/credentials?{query}");
    let headers = one_secret(cx, "x-amz-sso_bearer_token", role.token)?;
    let outgoing = Outgoing::get(url, headers);
    let (status, answer) = ask(cx, outgoing, cx.request.host.env(), LIMIT).await?;
    if status == StatusCode::UNAUTHORIZED {
        return Ok(None);
    }
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    let given = &answer["roleCredentials"];
    let text = |name: &str| given[name].as_str();
    match (text("accessKeyId"), text("secretAccessKey")) {
        (Some(id), Some(secret)) if status.is_success() => {
            let session_token = text("sessionToken").map(Secret::from);
            let keys = AwsKeys { access_key_id: id.to_owned(), secret_access_key: secret.into(), session_token };
            Ok(Some(Fetched { keys, lasts: Lasts::Until(given["expiration"].as_i64()) }))
        }
        _ => {
            let text = format!("AWS SSO gave no credentials for role {} ({})", role.role, status.as_u16());
            Err(failed(cx.request, text))
        }
    }
}

/// Calls the container's agent, if the environment names one.
pub(super) async fn container(cx: Cx<'_>) -> Result<Option<Fetched>, LlmError> {
    let env = cx.request.host.env();
    let relative = env.non_empty("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    let url = match (relative, env.non_empty("AWS_CONTAINER_CREDENTIALS_FULL_URI")) {
        (Some(path), _) => format!("http://{AGENT}/{}", path.trim_start_matches('/')),
        (None, Some(url)) => url.to_owned(),
        (None, None) => return Ok(None),
    };
    let host = url_parts::host(&url);
    let is_near = NEAR_HOSTS.contains(&&*host) || host.parse::<std::net::Ipv4Addr>().is_ok_and(|ip| ip.is_loopback());
    if !url.starts_with("https://") && !is_near {
        let text = "AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or name this machine or a container agent";
        return Err(failed(cx.request, text));
    }
    let token = match env.non_empty("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(file) => {
            let text = read_file(Path::new(file)).await.map_err(|text| failed(cx.request, text))?;
            Some(Secret::new(text.trim()))
        }
        None => env.non_empty("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(Secret::from),
    };
    let headers = token.as_ref().map(|token| one_secret(cx, "authorization", token)).transpose()?.unwrap_or_default();
    let outgoing = Outgoing::get(url, headers);
    // The machine's own services are not called through a proxy.
    let near = Env::default();
    let (status, answer) = ask(cx, outgoing, if is_near { &near } else { env }, LIMIT).await?;
    match from_json(&answer).filter(|_| status.is_success()) {
        Some(found) => Ok(Some(found)),
        None => {
            let text = format!("the container's credentials service gave none ({})", status.as_u16());
            Err(failed(cx.request, text))
        }
    }
}

/// Calls the machine's metadata service, version 2; returns `None` if there is none.
pub(super) async fn machine(cx: Cx<'_>) -> Result<Option<Fetched>, LlmError> {
    let env = cx.request.host.env();
    if env.get("AWS_EC2_METADATA_DISABLED").is_some_and(|word| word.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let base = env.non_empty("AWS_EC2_METADATA_SERVICE_ENDPOINT").unwrap_or("http://169.254.169.254");
    let base = base.trim_end_matches('/');
    let near = Env::default();
    let seconds = HeaderValue::from_static("21600");
    let headers = HeaderMap::from_iter([(HeaderName::from_static("x-aws-ec2-metadata-token-ttl-seconds"), seconds)]);
    let url = format!("{base}/latest/api/token");
    let outgoing = Outgoing { method: Method::PUT, url, headers, body: Bytes::new() };
    // Nothing is there, or something else that does not understand the request.
    let Ok((StatusCode::OK, token)) = ask(cx, outgoing, &near, NEAR_LIMIT).await else { return Ok(None) };
    let token = Secret::new(String::from_utf8_lossy(&token).trim());
    let (status, roles) = metadata(cx, base, &token, "").await?;
    let roles = String::from_utf8_lossy(&roles);
    let Some(role) = roles.lines().next().filter(|role| status.is_success() && !role.trim().is_empty()) else {
        return Ok(None);
    };
    let (status, answer) = metadata(cx, base, &token, role.trim()).await?;
    match from_json(&answer).filter(|_| status.is_success()) {
        Some(found) => Ok(Some(found)),
        None => {
            let text = format!("the machine's metadata service gave no credentials for its role ({})", status.as_u16());
            Err(failed(cx.request, text))
        }
    }
}

async fn metadata(cx: Cx<'_>, base: &str, token: &Secret, role: &str) -> Result<(StatusCode, Vec<u8>), LlmError> {
    let headers = one_secret(cx, "x-aws-ec2-metadata-token", token)?;
    let url = format!("{base}/latest/meta-data/iam/security-credentials/{}", address::encoded(role));
    let outgoing = Outgoing::get(url, headers);
    ask(cx, outgoing, &Env::default(), LIMIT).await
}

/// Returns the address of a service: the one in the environment, else Amazon's.
fn service_url(cx: Cx<'_>, variable: &str, own: impl FnOnce() -> String) -> String {
    let named = cx.request.host.env().non_empty(variable);
    named.map_or_else(own, |url| url.trim_end_matches('/').to_owned())
}

fn one_secret(cx: Cx<'_>, name: &'static str, secret: &Secret) -> Result<HeaderMap, LlmError> {
    let mut value = HeaderValue::from_str(secret.reveal())
        .map_err(|_| failed(cx.request, format!("the token for {name} holds characters that no header may have")))?;
    value.set_sensitive(true);
    Ok(HeaderMap::from_iter([(HeaderName::from_static(name), value)]))
}

async fn ask(cx: Cx<'_>, outgoing: Outgoing, env: &Env, limit: Duration) -> Result<(StatusCode, Vec<u8>), LlmError> {
    let failed = |kind, text| LlmError::new(cx.request.model.provider.clone(), kind, text);
    let place = url_parts::host(&outgoing.url);
    let asking = async {
        let mut incoming = cx.client.send(outgoing, env, Some(limit)).await?;
        Ok::<_, HttpError>((incoming.status(), incoming.text_up_to(MAX_BYTES).await))
    };
    match tokio::time::timeout(limit, asking).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => {
            let text = format!("AWS credentials could not be fetched from {place}: {error}");
            Err(failed(LlmErrorKind::Connect, text))
        }
        Err(_) => {
            let text = format!("AWS credentials could not be fetched: {place} did not answer in {} s", limit.as_secs());
            Err(failed(LlmErrorKind::Timeout, text))
        }
    }
}

/// Parses credentials as returned by agents and commands.
pub(super) fn from_json(bytes: &[u8]) -> Option<Fetched> {
    let given: Value = serde_json::from_slice(bytes).ok()?;
    let text = |name: &str| given[name].as_str().filter(|text| !text.is_empty());
    let keys = AwsKeys {
        access_key_id: text("AccessKeyId")?.to_owned(),
        secret_access_key: text("SecretAccessKey")?.into(),
        session_token: text("Token").or_else(|| text("SessionToken")).map(Secret::from),
    };
    Some(Fetched { keys, lasts: Lasts::Until(text("Expiration").and_then(time)) })
}

/// Parses a time in Amazon's format, which formerly ended in `UTC`.
pub(super) fn time(text: &str) -> Option<i64> {
    ms_from_iso(text).or_else(|| ms_from_iso(&format!("{}Z", text.strip_suffix("UTC")?)))
}

/// Returns the text of the first element with a name. The service's responses are flat, and their values plain.
fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let text = text.trim().replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    Some(text).filter(|text| !text.is_empty())
}
